//! Scans a file: fetches streams of a stripe, and decodes their bytes to arrays.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | plans the stripes of a split and the row groups of a stripe |
//! | [`job`] | the input of decode: columns, runs of rows, parts of streams |
//! | [`ranges`] | computes the bytes of row groups in a stream |
//! | [`unit`] | passes the bytes of a stripe to the decoder |
//! | [`fetched`] | the bytes of streams: fetched with the unit, or read once a row passes the filter |
//! | [`decode`] | decodes the batches of a stripe |
//! | [`scout`] | finds the row groups with rows that pass the filter, from the filter's columns alone |
//! | [`column`](mod@column) | decodes streams to arrays |
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
