//! ORC: reader and writer, straight from and into Arrow.
