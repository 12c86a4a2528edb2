//! The integration tests of this crate: one binary, so that it is linked once.

mod directories;
mod laws;
