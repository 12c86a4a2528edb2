//! One reader and writer over all formats.
//!
//! ```no_run
//! use coldframe::{OpenOptions, Scan, open};
//!
//! let file = open("warehouse/000000_0", None, &OpenOptions::default())?;
//! for split in file.table.splits(128 << 20)? {
//!     let mut reader = file.scan(&Scan::default(), &split)?;
//!     while let Some(batch) = reader.next_batch()? {
//!         assert!(batch.num_rows() > 0);
//!     }
//! }
//! # Ok::<(), coldframe::Error>(())
//! ```
//!
//! A sixth format is a crate of its own and a line in [`formats`].

mod open;
mod parallel;
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
pub use open::{File, detect, open, open_source, source_of_path};
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
