//! The data path of a migration: converts rows to files of the target, and proves that it writes the rows that it
//! reads.
//!
//! | module | holds |
//! |---|---|
//! | `convert` | the unit of work: a part of a source becomes files |
//! | `partitioned` | files of one partition each |
//! | `target` | a file of the target, of any format |
//! | `parquet_file` | Parquet files, with a checksum on each page |
//! | `fingerprint` | sums over rows that do not depend on row order or on the width of types |
//! | `observed`, `statistics` | statistics of decoded columns; compares them with a file's own statistics |
//!
//! Python plans, schedules and commits (`coldframe.pipeline`). It reads the written files back with an independent implementation,
//! Arrow's C++ library.

mod convert;
mod fingerprint;
mod hashed;
mod observed;
mod parquet_file;
mod partitioned;
mod statistics;
mod target;

pub use convert::{Converted, Decoded, Names, RowSummary, Shape, WrittenFile, append, convert, decode};
pub use fingerprint::{ColumnFingerprint, Ends, Extreme, Fingerprint, row_hashes};
pub use observed::{Observed, ObservedColumn};
pub use parquet_file::ParquetOptions;
pub use partitioned::{Partitioner, convert_partitioned};
pub use statistics::FileStatistics;
pub use target::{Finished, TargetFile, TargetFormat};
