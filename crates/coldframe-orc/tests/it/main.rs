//! The integration tests of this crate: one binary, so that it is linked once.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod corrupt;
mod damage;
mod decimals;
mod encrypted;
mod evolution;
mod hostile;
mod laws;
mod proof;
mod pushdown;
mod recover;
mod refused;
mod support;
mod text;

/// Counts what tests allocate, because each law limits the memory that may be used.
#[global_allocator]
static MEMORY: coldframe_testing::alloc::Counting = coldframe_testing::alloc::Counting;
