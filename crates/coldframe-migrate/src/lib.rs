//! The work of a migration on the data itself: what was read and what was written are the same rows.
//!
//! | module | holds |
//! |---|---|
//! | [`arrange`] | a file's columns as the table has them: in its order, under its names, nulls where the file lacks some |
//! | [`conform`](mod@conform) | batches in exactly the types of a target, where no value changes by it |
//! | [`fingerprint`] | rows as sums that neither their order nor their types' details change |
//! | [`observed`] | what is known of decoded columns, as files state it of theirs |
//! | [`readback`] | the fingerprint of a Parquet file, by another implementation than the one that wrote it |
//!
//! Python plans, schedules and commits (`coldframe.pipeline`); it writes Parquet by Arrow's C++ library, whose pages have
//! checksums, which this `parquet` crate does not write but compares. The other way round would cost more, too: a million rows
//! of eight columns take 0.24 s of CPU to write and 0.10 to read back as it is, 0.23 and 0.15 with the roles exchanged. None of
//! the two, nor decoding or fingerprints, holds Python's lock: two tasks as threads of one process take 0.57 of the time.

pub mod arrange;
pub mod conform;
pub mod fingerprint;
pub mod observed;
pub mod readback;

pub use arrange::{Arrangement, with_fields};
pub use conform::conform;
pub use fingerprint::{ColumnPrint, Extreme, Fingerprint, row_hashes};
pub use observed::{Observed, ObservedColumn};
pub use readback::add_parquet;
