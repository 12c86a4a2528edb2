//! The work of a migration on the data itself: rows become files of the target, and what was read and what was written are the same
//! rows.
//!
//! | module | holds |
//! |---|---|
//! | [`convert`](mod@convert) | the unit of work: a part of a source becomes files |
//! | [`target`] | a file of the target, whatever its format |
//! | [`parquet_file`] | Parquet files, with a checksum on each page |
//! | [`fingerprint`] | rows as sums that neither their order nor their types' details change |
//! | [`observed`] | what is known of decoded columns, as files state it of theirs |
//!
//! Python plans, schedules and commits (`coldframe.pipeline`), and has what was written read back by Arrow's C++ library, another
//! implementation than this one.

pub mod convert;
pub mod fingerprint;
mod hashed;
pub mod observed;
pub mod parquet_file;
pub mod target;

pub use convert::{Converted, Decoded, Names, Seen, Shape, convert, decode};
pub use fingerprint::{ColumnPrint, Extreme, Fingerprint, row_hashes};
pub use observed::{Observed, ObservedColumn};
pub use parquet_file::ParquetOptions;
pub use target::{Finished, TargetFile, TargetFormat};
