//! The data path of a migration: converts rows to files of the target, and proves that the rows read and the rows written are the
//! same.
//!
//! | module | holds |
//! |---|---|
//! | [`convert`](mod@convert) | the unit of work: a part of a source becomes files |
//! | [`divide`] | files by partition |
//! | [`target`] | a file of the target, whatever its format |
//! | [`parquet_file`] | Parquet files, with a checksum on each page |
//! | [`fingerprint`] | sums over rows that do not depend on row order or on the width of types |
//! | [`observed`] | statistics of decoded columns, in the terms in which files state them |
//!
//! Python plans, schedules and commits (`coldframe.pipeline`), and has the written files read back by Arrow's C++ library, which is
//! another implementation than this one.

pub mod convert;
pub mod divide;
pub mod fingerprint;
mod hashed;
pub mod observed;
pub mod parquet_file;
pub mod statistics;
pub mod target;

pub use convert::{Converted, Decoded, Names, Seen, Shape, WrittenFile, convert, decode};
pub use divide::{Divide, Room, convert_divided};
pub use fingerprint::{ColumnPrint, Extreme, Fingerprint, row_hashes};
pub use observed::{Observed, ObservedColumn};
pub use parquet_file::ParquetOptions;
pub use statistics::Witness;
pub use target::{Finished, TargetFile, TargetFormat};
