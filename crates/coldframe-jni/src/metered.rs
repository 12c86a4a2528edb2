//! Counts the bytes that a task reads, whatever store they come from.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use coldframe::dataset::{Opening, Split, SplitFile, Storage};
use coldframe::io::{Entry, Folder, Identity, Pending};
use coldframe::store::Store;
use coldframe::{ReadAt, Result, Source};

/// The bytes read so far; clones share one count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter(Arc<AtomicU64>);

impl Meter {
    /// The bytes read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, ranges: &[Range<u64>]) {
        let bytes = ranges.iter().map(|range| range.end.saturating_sub(range.start));
        self.0.fetch_add(bytes.fold(0, u64::saturating_add), Ordering::Relaxed);
    }

    /// A split whose file is read through this meter.
    pub(crate) fn over(&self, split: Split) -> Split {
        let opening = split.file.opening.as_ref().clone();
        let storage = Arc::new(Metered { inner: opening.storage, meter: self.clone() });
        let opening = Arc::new(Opening { storage, ..opening });
        Split { file: Arc::new(SplitFile { opening, ..split.file.as_ref().clone() }), ..split }
    }

    fn source(&self, inner: Arc<dyn ReadAt>) -> Arc<dyn ReadAt> {
        Arc::new(Metered { inner, meter: self.clone() })
    }

    fn folder(&self, inner: Arc<dyn Folder>) -> Arc<dyn Folder> {
        Arc::new(Metered { inner, meter: self.clone() })
    }
}

/// A source of bytes with the meter that counts them.
#[derive(Debug)]
struct Metered<T> {
    inner: T,
    meter: Meter,
}

impl Storage for Metered<Arc<dyn Storage>> {
    fn store(&self, location: &OsStr) -> Result<Store> {
        self.inner.store(location)
    }

    fn source(&self, location: &OsStr, known: Option<&Identity>) -> Result<Source> {
        Ok(match self.inner.source(location, known)? {
            Source::File { path, bytes, siblings } => Source::File {
                path,
                bytes: self.meter.source(bytes),
                siblings: siblings.map(|folder| self.meter.folder(folder)),
            },
            Source::Folder { path, folder } => Source::Folder { path, folder: self.meter.folder(folder) },
        })
    }

    fn is_of_this_machine(&self, location: &OsStr) -> bool {
        self.inner.is_of_this_machine(location)
    }

    fn options(&self, location: &OsStr) -> Option<&BTreeMap<String, String>> {
        self.inner.options(location)
    }
}

impl ReadAt for Metered<Arc<dyn ReadAt>> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.meter.add(ranges);
        self.inner.read_ranges(ranges)
    }

    fn identity(&self) -> Identity {
        self.inner.identity()
    }

    fn begin(&self, ranges: &[Range<u64>]) -> Option<Pending> {
        let pending = self.inner.begin(ranges)?;
        self.meter.add(ranges);
        Some(pending)
    }

    fn worthwhile_gap(&self) -> u64 {
        self.inner.worthwhile_gap()
    }
}

impl Folder for Metered<Arc<dyn Folder>> {
    fn list(&self, path: &str) -> Result<Vec<Entry>> {
        self.inner.list(path)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        Ok(self.meter.source(self.inner.open(path)?))
    }

    fn parent(&self) -> Result<Option<(Arc<dyn Folder>, String)>> {
        Ok(self.inner.parent()?.map(|(folder, name)| (self.meter.folder(folder), name)))
    }
}
