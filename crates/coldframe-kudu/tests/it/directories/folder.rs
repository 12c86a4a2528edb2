//! Data directories in memory, and a wrapper that counts what is read.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use coldframe_core::io::{Entry, Folder};
use coldframe_core::{Format, OpenOptions, ReadAt, Result, Source, TableFile, Value};
use coldframe_kudu::KuduFormat;
use coldframe_testing::fixture::{self, Fixture};
use coldframe_testing::folder::MemoryFolder;

/// Opens a table of a directory.
pub(crate) fn open(folder: &MemoryFolder, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
    KuduFormat.open(&folder.source(), options)
}

/// The paths that end with `end`.
pub(crate) fn ending(folder: &MemoryFolder, end: &str) -> Vec<String> {
    folder.files.keys().filter(|p| p.ends_with(end)).cloned().collect()
}

/// A directory that counts what is read.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    folder: MemoryFolder,
    /// The number of bytes read.
    pub(crate) read: Arc<AtomicU64>,
    /// How often a file was opened.
    pub(crate) opened: Arc<AtomicU64>,
}

#[derive(Debug)]
struct File(Arc<dyn ReadAt>, Arc<AtomicU64>);

impl ReadAt for File {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.1.fetch_add(ranges.iter().map(|r| r.end - r.start).sum(), Ordering::Relaxed);
        self.0.read_ranges(ranges)
    }
}

impl Watched {
    pub(crate) fn new(folder: MemoryFolder) -> Self {
        Self { folder, read: Arc::default(), opened: Arc::default() }
    }

    /// Opens a table in the directory.
    pub(crate) fn table(&self, options: &OpenOptions) -> Arc<dyn TableFile> {
        let source = Source::Folder { path: "watched".into(), folder: Arc::new(self.clone()) };
        KuduFormat.open(&source, options).unwrap()
    }
}

impl Folder for Watched {
    fn list(&self, path: &str) -> Result<Vec<Entry>> {
        self.folder.list(path)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(File(self.folder.open(path)?, self.read.clone())))
    }
}

/// The committed directories.
pub(crate) fn fixtures() -> Vec<Fixture> {
    fixture::manifest(&fixture::data().join("kudu/files/MANIFEST.json"))
}

/// The directory with this name.
pub(crate) fn tree(name: &str) -> MemoryFolder {
    MemoryFolder::load(&fixture::data().join("kudu/files").join(name))
}

/// Options of a table.
pub(crate) fn table(name: &str) -> OpenOptions {
    let extra = [("table".to_owned(), Value::Str(name.to_owned()))].into();
    OpenOptions { extra, ..OpenOptions::default() }
}
