//! With the data that is sent with a split, a reader opens only the files of one region, and reads the same
//! rows.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use bytes::Bytes;
use coldframe_core::io::{Entry, Folder};
use coldframe_core::{
    DamageLog, Format, OnError, OpenOptions, ReadAt, Result, Scan, ScanReader, Source, Split, TableFile,
    Value,
};
use coldframe_hbase::HBaseFormat;
use coldframe_testing::fixture;
use coldframe_testing::folder::MemoryFolder;

/// Counts the requests to a folder: opened files, bytes read of each, listed folders.
#[derive(Debug, Default)]
struct Requests {
    read: BTreeMap<String, u64>,
    listed: Vec<String>,
}

#[derive(Clone, Debug)]
struct Watched {
    folder: MemoryFolder,
    requests: Arc<Mutex<Requests>>,
}

impl Watched {
    fn new(folder: &MemoryFolder) -> Self {
        Self { folder: folder.clone(), requests: Arc::default() }
    }

    fn source(&self) -> Source {
        Source::Folder { path: "watched".into(), folder: Arc::new(self.clone()) }
    }
}

impl Folder for Watched {
    fn list(&self, path: &str) -> Result<Vec<Entry>> {
        self.requests.lock().unwrap().listed.push(path.to_owned());
        self.folder.list(path)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        let file = self.folder.open(path)?;
        self.requests.lock().unwrap().read.entry(path.to_owned()).or_default();
        Ok(Arc::new(WatchedFile { file, path: path.to_owned(), requests: self.requests.clone() }))
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn ReadAt>,
    path: String,
    requests: Arc<Mutex<Requests>>,
}

impl ReadAt for WatchedFile {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        *self.requests.lock().unwrap().read.entry(self.path.clone()).or_default() += bytes;
        self.file.read_ranges(ranges)
    }
}

fn orders() -> MemoryFolder {
    MemoryFolder::load(&fixture::data().join("hbase/files/orders"))
}

fn options(more: &[(&str, Value)]) -> OpenOptions {
    let fixed = [("table", Value::from("shop:orders"))];
    let all = fixed.iter().chain(more).map(|(name, value)| ((*name).to_owned(), value.clone()));
    OpenOptions { extra: all.collect(), ..OpenOptions::default() }
}

fn rows(table: &dyn TableFile, split: &Split, on_error: OnError) -> (Vec<RecordBatch>, usize) {
    let damage = DamageLog::default();
    let scan = Scan { on_error, ..Scan::default() };
    let reader = ScanReader::try_new(table, &scan, split, damage.clone()).unwrap();
    let batches = reader.map(|batch| batch.unwrap()).collect();
    (batches, damage.len())
}

fn together(table: &dyn TableFile, batches: &[RecordBatch]) -> RecordBatch {
    arrow_select::concat::concat_batches(table.schema(), batches).unwrap()
}

/// Checks that each split, read with only the data sent with it, gives the same rows as the open table.
fn assert_travels(folder: &MemoryFolder, options: &OpenOptions, on_error: OnError) {
    let whole = HBaseFormat.open(&folder.source(), options).unwrap();
    for target in [1, 20_000, 1 << 40] {
        let splits = whole.splits(target).unwrap();
        let recorded = whole.recorded(&splits).unwrap();
        let mut all = Vec::new();
        for (split, recorded) in splits.iter().zip(&recorded) {
            let alone = HBaseFormat.open_recorded(&folder.source(), options, recorded).unwrap();
            let (actual, lost) = rows(alone.as_ref(), split, on_error);
            let (expected, expected_lost) = rows(whole.as_ref(), split, on_error);
            assert_eq!(together(whole.as_ref(), &actual), together(whole.as_ref(), &expected));
            assert_eq!(lost, expected_lost);
            all.extend(actual);
            // A table opened for one split cannot be used as the whole table.
            assert!(
                alone.splits(1).is_err() && alone.metadata().is_err() && alone.verify_structure().is_err()
            );
            if let Some(other) = splits.iter().find(|other| *other != split) {
                let scan = Scan::default();
                assert!(ScanReader::try_new(alone.as_ref(), &scan, other, DamageLog::default()).is_err());
            }
        }
        let mut expected = Vec::new();
        for split in whole.splits(u64::MAX).unwrap() {
            expected.extend(rows(whole.as_ref(), &split, on_error).0);
        }
        assert_eq!(together(whole.as_ref(), &all), together(whole.as_ref(), &expected));
    }
}

#[test]
fn recorded_splits_have_the_same_rows() {
    let columns = Value::map([("f:note", Value::from("string"))]);
    for more in [
        vec![],
        vec![("view", Value::from("raw"))],
        vec![("view", Value::from("versions")), ("families", Value::from("g"))],
        vec![("view", Value::from("pivot")), ("columns", columns)],
        vec![("wal", Value::Bool(false))],
    ] {
        assert_travels(&orders(), &options(&more), OnError::Raise);
    }
}

/// The edits of a compressed log cannot be read from its middle: the reader of a split decodes the log again.
#[test]
fn recorded_splits_have_the_edits_of_compressed_logs() {
    let logged = options(&[("table", Value::from("shop:logged")), ("view", Value::from("raw"))]);
    let folder = MemoryFolder::load(&fixture::data().join("hbase/files/wal_gz"));
    assert_travels(&folder, &logged, OnError::Raise);
}

#[test]
fn recorded_splits_keep_missing_parts_and_damage() {
    let mut folder = orders();
    let regions: Vec<String> = folder.files.keys().filter(|p| p.ends_with("/.regioninfo")).cloned().collect();
    // A region whose description is lost comes after the other regions.
    let gone = regions.last().unwrap().strip_suffix(".regioninfo").unwrap().to_owned();
    folder.files.insert(format!("{gone}.regioninfo"), Bytes::from_static(b"PBUF"));
    // The log ends with invalid bytes.
    let log = folder.files.keys().find(|path| path.starts_with("WALs/")).unwrap().clone();
    let bytes = folder.files[&log].clone();
    folder.files.insert(log, bytes.slice(..bytes.len() / 2));
    assert_travels(&folder, &options(&[]), OnError::Skip);
    let whole = HBaseFormat.open(&folder.source(), &options(&[])).unwrap();
    let splits = whole.splits(1 << 40).unwrap();
    for (split, recorded) in splits.iter().zip(whole.recorded(&splits).unwrap()) {
        let alone = HBaseFormat.open_recorded(&folder.source(), &options(&[]), &recorded).unwrap();
        let plain = ScanReader::try_new(alone.as_ref(), &Scan::default(), split, DamageLog::default());
        assert!(plain.is_err(), "a strict read of an incomplete table fails");
    }
}

#[test]
fn reading_a_recorded_split_lists_no_folder() {
    let folder = orders();
    let whole = HBaseFormat.open(&folder.source(), &options(&[])).unwrap();
    let splits = whole.splits(1 << 40).unwrap();
    let recorded = whole.recorded(&splits).unwrap();
    assert!(splits.len() > 1);
    for (split, recorded) in splits.iter().zip(&recorded) {
        let watched = Watched::new(&folder);
        let alone = HBaseFormat.open_recorded(&watched.source(), &options(&[]), recorded).unwrap();
        rows(alone.as_ref(), split, OnError::Raise);
        let requests = watched.requests.lock().unwrap();
        assert_eq!(requests.listed, Vec::<String>::new());
        let mut regions: Vec<&str> = requests
            .read
            .keys()
            .filter(|p| p.starts_with("data/"))
            .filter_map(|p| p.split('/').nth(3))
            .collect();
        regions.dedup();
        assert_eq!(regions.len(), 1, "{:?}", requests.read);
        assert!(requests.read.keys().all(|path| !path.contains("/.")), "{:?}", requests.read);
    }
}

#[test]
fn logs_are_read_once_for_all_tables() {
    let folder = orders();
    let log = folder.files.keys().find(|path| path.starts_with("WALs/")).unwrap().clone();
    let length = folder.files[&log].len() as u64;
    let watched = Watched::new(&folder);
    let shared = HBaseFormat.shared(&watched.source(), &options(&[])).unwrap();
    assert_eq!(shared.keys().collect::<Vec<_>>(), ["shop:orders"]);
    let read = watched.requests.lock().unwrap().read[&log];
    assert!((length..length + 4096).contains(&read), "{read} of {length}");

    let plain = HBaseFormat.open(&folder.source(), &options(&[])).unwrap();
    let watched = Watched::new(&folder);
    let table = HBaseFormat.open_recorded(&watched.source(), &options(&[]), &shared["shop:orders"]).unwrap();
    let splits = table.splits(1 << 40).unwrap();
    table.recorded(&splits).unwrap();
    assert_eq!(
        watched.requests.lock().unwrap().read.get(&log),
        Some(&0),
        "the locations of the edits are known"
    );
    for split in &splits {
        let actual = rows(table.as_ref(), split, OnError::Raise).0;
        let expected = rows(plain.as_ref(), split, OnError::Raise).0;
        assert_eq!(together(plain.as_ref(), &actual), together(plain.as_ref(), &expected));
    }
    // Nothing is shared if the options exclude logs.
    assert!(
        HBaseFormat.shared(&folder.source(), &options(&[("wal", Value::Bool(false))])).unwrap().is_empty()
    );
}

#[test]
fn small_regions_are_planned_without_their_files() {
    let folder = orders();
    let watched = Watched::new(&folder);
    let table = HBaseFormat.open(&watched.source(), &options(&[])).unwrap();
    table.splits(1 << 40).unwrap();
    let requests = watched.requests.lock().unwrap();
    assert!(
        requests.read.keys().all(|path| !path.contains("/f/") && !path.contains("/g/")),
        "{:?}",
        requests.read
    );
}
