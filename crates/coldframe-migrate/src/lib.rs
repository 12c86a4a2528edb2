//! The work of a migration on the data itself: what was read and what was written are the same rows.
//!
//! | module | holds |
//! |---|---|
//! | [`fingerprint`] | rows as sums that neither their order nor their types' details change |
//! | [`observed`] | what is known of decoded columns, as files state it of theirs |
//! | [`readback`] | the fingerprint of a Parquet file, by another implementation than the one that wrote it |
//!
//! Python plans, schedules and commits (`coldframe.pipeline`); it writes Parquet by Arrow's C++ library, whose pages have
//! checksums, which this `parquet` crate does not write but compares.

pub mod fingerprint;
pub mod observed;
pub mod readback;

pub use fingerprint::{ColumnPrint, Extreme, Fingerprint, row_hashes};
pub use observed::{Observed, ObservedColumn};
pub use readback::add_parquet;
