//! A scan: which streams of a stripe are fetched, and from their bytes to arrays.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | stripes of a split, row groups of a stripe |
//! | [`job`] | what plan hands to decode: columns, runs of rows, parts of streams |
//! | [`ranges`] | what row groups take of a stream |
//! | [`unit`] | the bytes of a stripe, passed to the decoder |
//! | [`fetched`] | the bytes of streams that came with the unit, or are read where a row passes |
//! | [`decode`] | batches of a stripe |
//! | [`scout`] | which row groups the filter leaves, by its own columns |
//! | [`column`](mod@column) | from streams to arrays |
//! | [`stream`], [`rle`] | bytes of a stream, chunk by chunk; runs of bits, bytes and integers |

pub(crate) mod column;
pub(crate) mod decode;
pub(crate) mod fetched;
pub(crate) mod job;
pub(crate) mod plan;
pub(crate) mod ranges;
pub(crate) mod rle;
pub(crate) mod scout;
pub(crate) mod stream;
pub(crate) mod unit;
mod varint;
