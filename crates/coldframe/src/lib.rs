//! Reads and writes all formats through one interface.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//!
//! use arrow_array::{Int64Array, RecordBatch, RecordBatchIterator, StringArray};
//! use coldframe::store::Mode;
//! use coldframe::{Dest, OpenOptions, Scan, WriteOptions, open, scan, write_file};
//!
//! # let dir = tempfile::tempdir()?;
//! # let warehouse = dir.path().to_owned();
//! let rows = RecordBatch::try_from_iter([
//!     ("id", Arc::new(Int64Array::from(vec![1, 2, 3])) as _),
//!     ("name", Arc::new(StringArray::from(vec!["a", "b", "c"])) as _),
//! ])?;
//! let path = warehouse.join("region=eu/part-0.orc");
//! # std::fs::create_dir_all(path.parent().ok_or("no folder")?)?;
//! let dest = Dest::new(&path, &BTreeMap::new(), Mode::New)?;
//! let mut batches = RecordBatchIterator::new([Ok(rows.clone())], rows.schema());
//! write_file(&mut batches, &dest, "orc", &WriteOptions::default(), |_| Ok(()))?;
//!
//! // One file, part by part.
//! let file = open(&path, None, &OpenOptions::default())?;
//! for split in file.table.splits(128 << 20)? {
//!     let mut reader = file.scan(&Scan::default(), &split)?;
//!     while let Some(batch) = reader.next_batch()? {
//!         assert_eq!(batch.columns(), rows.columns());
//!     }
//! }
//!
//! // Many files as one table; `region` is a column of it.
//! let mut rows = scan(&warehouse)?.columns(["name", "region"]).filter("id > 1 and region = 'eu'").read()?;
//! while let Some(batch) = rows.next_batch()? {
//!     assert_eq!((batch.num_rows(), batch.num_columns()), (2, 2));
//! }
//!
//! // A plan can be sent as bytes; another process reads its splits.
//! use coldframe::dataset::{Plan, wire::Bound};
//! let bytes = scan(&warehouse)?.filter("id > 1").splits()?.to_bytes()?;
//! let plan = Plan::from_bytes(&bytes, &Bound::default())?;
//! assert_eq!(plan.read().map(|batch| batch.map_or(0, |b| b.num_rows())).sum::<usize>(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each format has structs for its options. Options can also be given by name, as text or as values:
//!
//! ```
//! # use std::collections::BTreeMap;
//! # use std::sync::Arc;
//! # use arrow_array::{Int64Array, RecordBatch, RecordBatchIterator};
//! use coldframe::hive::{self, Codec};
//! use coldframe::store::Mode;
//! use coldframe::{Dest, OpenOptions, WriteOptions, open, write_file};
//!
//! let path = std::env::temp_dir().join(format!("numbers-{}.orc", std::process::id()));
//!
//! let batch = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from_iter_values(0..1000)) as _)])?;
//! let mut rows = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
//! let options = WriteOptions::from(hive::WriteOptions { codec: Codec::Snappy, ..Default::default() });
//! let dest = Dest::new(&path, &BTreeMap::new(), Mode::Over)?;
//! assert_eq!(write_file(&mut rows, &dest, "orc", &options, |_| Ok(()))?.rows, 1000);
//!
//! let options = OpenOptions::new()
//!     .with(hive::OpenOptions { dictionary: true, ..Default::default() })
//!     .option("max_columns", 10)
//!     .threads(2);
//! let file = open(&path, None, &options)?;
//! assert_eq!((file.table.format(), file.table.row_count()), ("orc", Some(1000)));
//!
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A file that does not store its column types, and the error for an option that does not exist:
//!
//! ```
//! # use coldframe::{OpenOptions, open_source, Source};
//! use coldframe::rcfile::{self, HiveVersion, Serde, TableOptions};
//!
//! let table = TableOptions { serde: Some(Serde::Text), hive_version: HiveVersion::V2_3, ..Default::default() };
//! let options = OpenOptions::new()
//!     .schema_ddl("id bigint, tags array<string>")
//!     .with(rcfile::OpenOptions { table, ..Default::default() });
//! assert_eq!(options.extra.len(), 2);
//!
//! use coldframe::Options as _;
//! let error = rcfile::OpenOptions::read("rcfile", &options.option("seperator", ",").extra).unwrap_err();
//! assert!(error.to_string().starts_with("rcfile has no option `seperator`; it knows: serde,"));
//! ```
//!
//! A new format is a crate and a line in [`formats`].

pub mod dataset;
#[cfg(feature = "rcfile")]
pub mod ddl;
pub mod load;
#[cfg(feature = "rcfile")]
pub mod metastore;
mod open;
mod opened;
mod option_text;
mod pool;
mod stream;
mod table_scan;
mod write;

use std::sync::Arc;

/// CFiles: options, and the table type with its own methods.
#[cfg(feature = "cfile")]
pub use coldframe_cfile as cfile;
pub use coldframe_core::{
    BatchWriter, Capabilities, Change, ColumnExtremes, CommonOptions, Content, Damage, DamageLog, Error,
    ErrorKind, Extremes, Fault, Format, KeySource, Limits, Node, Notice, OnError, Op, OpenOptions,
    OptionSpec, Options, PassedOver, Piece, Predicate, ReadAt, Result, Scan, ScanReader, SchemaSpec, Source,
    Split, StoredDictionary, TableFile, Value, Work, WriteOptions, arrow_error,
};
pub use coldframe_core::{io, options, predicate, projection, salvage, scan, threads, types, writing};
/// HBase tables: options, and the table type with its own methods.
#[cfg(feature = "hfile")]
pub use coldframe_hbase as hbase;
/// ORC files and Hive's transactional tables: options.
#[cfg(feature = "orc")]
pub use coldframe_hive as hive;
/// HFiles and Hudi's metadata tables: options, and the table type with its own methods.
#[cfg(feature = "hfile")]
pub use coldframe_hudi as hudi;
/// Kudu's directories: options, and the table type with its own methods.
#[cfg(feature = "cfile")]
pub use coldframe_kudu as kudu;
/// RCFiles: options.
#[cfg(feature = "rcfile")]
pub use coldframe_rcfile as rcfile;
/// Redfiles: options.
#[cfg(feature = "redfile")]
pub use coldframe_redfile as redfile;
pub use coldframe_store as store;
pub use dataset::scan::scan;
pub use open::{File, detect, open, open_source, source_of_path};
pub use option_text::{Side, parse_option};
pub use pool::stop_reading;
pub use table_scan::{Ahead, TableScan};
pub use write::folders::write_partitioned;
pub use write::partitions::{PartitionLimits, PartitionSink, write_partitions};
pub use write::{Dest, FileWriter, Written, write_file};

/// All formats of this build.
pub fn formats() -> Vec<Arc<dyn Format>> {
    vec![
        #[cfg(feature = "hfile")]
        Arc::new(coldframe_hudi::HudiFormat),
        #[cfg(feature = "hfile")]
        Arc::new(coldframe_hudi::HudiTableFormat),
        #[cfg(feature = "cfile")]
        Arc::new(coldframe_cfile::CFileFormat),
        #[cfg(feature = "cfile")]
        Arc::new(coldframe_kudu::KuduFormat),
        #[cfg(feature = "hfile")]
        Arc::new(coldframe_hbase::HBaseFormat),
        #[cfg(feature = "orc")]
        Arc::new(coldframe_hive::HiveFormat),
        #[cfg(feature = "rcfile")]
        Arc::new(coldframe_rcfile::RcFileFormat),
        #[cfg(feature = "redfile")]
        Arc::new(coldframe_redfile::RedfileFormat),
    ]
}

/// The format called `name`. If there is no such format, the error lists the formats of this build.
pub fn format_named(name: &str) -> Result<Arc<dyn Format>> {
    let all = formats();
    if let Some(format) = all.iter().find(|f| f.name() == name) {
        return Ok(format.clone());
    }
    let names: Vec<&str> = all.iter().map(|f| f.name()).collect();
    Err(Error::unsupported(format!("format {name:?}; this build knows: {}", names.join(", "))))
}
