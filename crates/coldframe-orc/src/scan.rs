//! Scans a file: fetches streams of a stripe, and decodes their bytes to arrays.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | plans the stripes of a split and the row groups of a stripe |
//! | [`job`] | the input of decode: columns, runs of rows, parts of streams |
//! | [`groups`] | what the index and metadata state of row groups |
//! | [`ranges`] | the bytes of row groups in a stream |
//! | [`unit`] | the bytes of a stripe, passed to the decoder |
//! | [`fetched`] | the bytes of streams: fetched with the unit, or read once a row passes the filter |
//! | [`decode`], [`batch`] | batches of a stripe, and how the next one is decoded |
//! | [`readers`] | the columns of a stripe, open at a row |
//! | [`anchor`], [`statements`], [`lanes`], [`tallies`], [`text_bounds`] | what decoded values must agree with: positions, statistics |
//! | [`survey`] | how well the row groups of a column are proved, once one of them has failed |
//! | [`scout`], [`scouted`], [`handed`] | rows that pass, by the filter's columns; these columns beside the others |
//! | [`malformed`] | values that their types cannot hold |
//! | [`superfluous`] | fields with values for the nulls of their struct, too |
//! | [`column`](mod@column) | from streams to arrays |
//! | [`stream`], [`rle`] | bytes of a stream, chunk by chunk; runs of bits, bytes and integers |

mod anchor;
mod batch;
pub(crate) mod column;
pub(crate) mod decode;
mod doubtful;
pub(crate) mod fetched;
pub(crate) mod groups;
mod handed;
pub(crate) mod job;
mod lanes;
mod malformed;
pub(crate) mod plan;
pub(crate) mod ranges;
mod readers;
pub(crate) mod rle;
pub(crate) mod scout;
mod scouted;
pub(crate) mod statements;
pub(crate) mod stream;
mod superfluous;
mod survey;
mod tallies;
mod text_bounds;
pub(crate) mod unit;
mod varint;
