//! Provides test files: from `tests/data`, from a larger corpus if present, and files that tests write.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod crafted;

use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use coldframe_core::{Format, OpenOptions, ReadAt, Result, Source, TableFile, Value};
use coldframe_orc::OrcFormat;
use coldframe_testing::Fixture;
use coldframe_testing::fixture;

/// An open file.
pub(crate) struct Opened {
    pub(crate) name: String,
    pub(crate) file: Arc<dyn TableFile>,
}

pub(crate) fn open_source(name: &str, source: Arc<dyn ReadAt>, options: &OpenOptions) -> Result<Opened> {
    let file = OrcFormat.open(&Source::file(name, source), options)?;
    Ok(Opened { name: name.to_owned(), file })
}

pub(crate) fn open(name: &str, bytes: Bytes, options: &OpenOptions) -> Result<Opened> {
    open_source(name, Arc::new(bytes), options)
}

/// The small files under `tests/data`.
pub(crate) fn fixtures() -> Vec<Fixture> {
    let mut manifests = vec![fixture::data().join("orc/files/MANIFEST.json")];
    if let Some(folder) = fixture::larger_corpus("orc") {
        manifests.push(folder.join("MANIFEST.json"));
        manifests.push(folder.join("apache-examples/MANIFEST.json"));
    }
    manifests.retain(|m| m.is_file());
    let all = manifests.iter().flat_map(|m| fixture::manifest(m)).collect();
    let mut all = fixture::distinct(all);
    all.retain(|f| f.path.is_file() && f.bytes().len() < 1 << 20);
    all
}

/// The fixtures that open without keys, with timestamps in microseconds.
pub(crate) fn files() -> Vec<Opened> {
    let mut options = OpenOptions::default();
    options.extra.insert("timestamp_unit".into(), Value::from("us"));
    let opened = fixtures().into_iter().filter_map(|f| open(&f.name(), f.bytes(), &options).ok());
    opened.filter(|o| o.file.row_count().is_some_and(|n| n < 40_000)).collect()
}

/// A file of our writer.
pub(crate) fn written(batch: &RecordBatch, options: &[(&str, Value)]) -> Bytes {
    coldframe_testing::written(&OrcFormat, std::slice::from_ref(batch), options).unwrap()
}
