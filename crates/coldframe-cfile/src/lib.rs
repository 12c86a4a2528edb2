//! Kudu: CFiles and whole tablets from a data directory, straight into Arrow.
