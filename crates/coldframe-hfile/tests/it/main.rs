//! The integration tests of this crate: one binary, so that it is linked once.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod batches;
mod damage;
mod hostile;
mod laws;
mod lookup;
mod pivot;
mod roundtrip;
mod support;
mod version1;

/// Counts what tests allocate, because each law limits the memory that may be used.
#[global_allocator]
static MEMORY: coldframe_testing::alloc::Counting = coldframe_testing::alloc::Counting;
