//! One reader and writer over all formats.
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
//! let mut found = scan(&warehouse)?.columns(["name", "region"]).filter("id > 1 and region = 'eu'").read()?;
//! while let Some(batch) = found.next_batch()? {
//!     assert_eq!((batch.num_rows(), batch.num_columns()), (2, 2));
//! }
//!
//! // A plan travels as bytes: who gets it reads its splits, in another process too.
//! use coldframe::dataset::{Plan, wire::Bound};
//! let bytes = scan(&warehouse)?.filter("id > 1").splits()?.to_bytes()?;
//! let plan = Plan::from_bytes(&bytes, &Bound::default())?;
//! assert_eq!(plan.read().map(|batch| batch.map_or(0, |b| b.num_rows())).sum::<usize>(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A sixth format is a crate of its own and a line in [`formats`].

pub mod dataset;
mod open;
mod opened;
mod pool;
mod stream;
mod table_scan;
mod write;

use std::sync::Arc;

/// What only a CFile can do, on the types of its crate.
#[cfg(feature = "cfile")]
pub use coldframe_cfile as cfile;
pub use coldframe_core::*;
/// What only an HBase table can do, on the types of its crate.
#[cfg(feature = "hfile")]
pub use coldframe_hbase as hbase;
/// What only a Kudu directory can do, on the types of its crate.
#[cfg(feature = "cfile")]
pub use coldframe_kudu as kudu;
pub use coldframe_store as store;
pub use dataset::scan::scan;
pub use open::{File, detect, open, open_source, source_of_path};
pub use pool::stop_reading;
pub use table_scan::{Ahead, TableScan};
pub use write::{Dest, FileWriter, Written, write_file};

/// All formats of this build.
pub fn formats() -> Vec<Arc<dyn Format>> {
    vec![
        #[cfg(feature = "hfile")]
        Arc::new(coldframe_hudi::HudiFormat),
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

/// The format called `name`; an unsupported error that lists the ones there are.
pub fn format_named(name: &str) -> Result<Arc<dyn Format>> {
    let all = formats();
    if let Some(format) = all.iter().find(|f| f.name() == name) {
        return Ok(format.clone());
    }
    let names: Vec<&str> = all.iter().map(|f| f.name()).collect();
    Err(Error::unsupported(format!("format {name:?}; this build knows: {}", names.join(", "))))
}
