//! A scan: which streams of a stripe are fetched, and from their bytes to arrays.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | stripes of a split, row groups of a stripe |
//! | [`job`] | what plan hands to decode: columns, runs of rows, parts of streams |
//! | [`ranges`] | what row groups take of a stream |
//! | [`decode`] | batches of a stripe |
//! | [`column`](mod@column) | from streams to arrays |
//! | [`stream`], [`rle`] | bytes of a stream, chunk by chunk; runs of bits, bytes and integers |

pub(crate) mod column;
pub(crate) mod decode;
pub(crate) mod job;
pub(crate) mod plan;
pub(crate) mod ranges;
pub(crate) mod rle;
pub(crate) mod stream;
mod varint;
