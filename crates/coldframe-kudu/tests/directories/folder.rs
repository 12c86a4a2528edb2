//! A data directory in memory, which tests can hurt, and whose reads they can count.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use bytes::Bytes;
use coldframe_core::io::{Entry, Folder};
use coldframe_core::{Error, Format, OpenOptions, ReadAt, Result, Source, TableFile, Value};
use coldframe_kudu::KuduFormat;
use coldframe_testing::fixture::{self, Fixture};

/// Files by their paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, Bytes>,
    /// Bytes read of files below a directory `data`.
    pub(crate) read: Arc<AtomicU64>,
    /// Paths of the files opened.
    pub(crate) opened: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug)]
struct Counted(Bytes, Arc<AtomicU64>);

impl ReadAt for Counted {
    fn len(&self) -> u64 {
        ReadAt::len(&self.0)
    }

    fn read_ranges(&self, ranges: &[std::ops::Range<u64>]) -> Result<Vec<Bytes>> {
        self.1.fetch_add(ranges.iter().map(|r| r.end - r.start).sum(), Ordering::Relaxed);
        self.0.read_ranges(ranges)
    }
}

impl Tree {
    /// The files below `path`.
    pub(crate) fn load(path: &Path) -> Self {
        let mut tree = Self::default();
        let mut open = vec![path.to_owned()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let at = entry.unwrap().path();
                if at.is_dir() {
                    open.push(at);
                    continue;
                }
                let name = at.strip_prefix(path).unwrap().to_str().unwrap().replace('\\', "/");
                tree.files.insert(name, std::fs::read(&at).unwrap().into());
            }
        }
        tree
    }

    pub(crate) fn open(&self, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        let source = Source::Folder { path: "tree".into(), folder: Arc::new(self.clone()) };
        KuduFormat.open(&source, options)
    }

    /// Paths that end in `end`.
    pub(crate) fn ending(&self, end: &str) -> Vec<String> {
        self.files.keys().filter(|p| p.ends_with(end)).cloned().collect()
    }
}

impl Folder for Tree {
    fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
        for (name, bytes) in &self.files {
            let Some(rest) = name.strip_prefix(&prefix) else { continue };
            let (first, is_folder) = rest.split_once('/').map_or((rest, false), |(first, _)| (first, true));
            let path = format!("{prefix}{first}");
            let len = if is_folder { 0 } else { bytes.as_ref().len() as u64 };
            entries.insert(path.clone(), Entry { path, len, is_folder });
        }
        if entries.is_empty() {
            return Err(Error::not_found(path));
        }
        Ok(entries.into_values().collect())
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        self.opened.lock().unwrap().push(path.to_owned());
        let bytes = self.files.get(path).ok_or_else(|| Error::not_found(path))?;
        Ok(Arc::new(Counted(bytes.clone(), self.read.clone())))
    }
}

/// Each row as one text; times as their integers, as the printer of times knows no names of zones here.
pub(crate) fn as_text(batch: &RecordBatch) -> Vec<String> {
    let schema = batch.schema();
    let plain = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
        let column = match field.data_type() {
            DataType::Timestamp(..) => arrow_cast::cast(column, &DataType::Int64).unwrap(),
            _ => column.clone(),
        };
        (field.name().clone(), column)
    });
    let plain: Vec<_> = plain.collect();
    if plain.is_empty() {
        return vec![String::new(); batch.num_rows()];
    }
    coldframe_testing::rows::as_text(&RecordBatch::try_from_iter(plain).unwrap())
}

/// The committed directories.
pub(crate) fn fixtures() -> Vec<Fixture> {
    fixture::manifest(&fixture::data().join("kudu/files/MANIFEST.json"))
}

/// A directory by its name.
pub(crate) fn tree(name: &str) -> Tree {
    Tree::load(&fixture::data().join("kudu/files").join(name))
}

/// Options of a table.
pub(crate) fn table(name: &str) -> OpenOptions {
    let extra = [("table".to_owned(), Value::Str(name.to_owned()))].into();
    OpenOptions { extra, ..OpenOptions::default() }
}
