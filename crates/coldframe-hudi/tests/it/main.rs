//! The integration tests of this crate: one binary, so that it is linked once.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod hudi;
mod laws;
mod support;
mod tables;
