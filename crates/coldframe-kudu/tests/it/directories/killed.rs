//! Directories of killed servers: the test data has what Kudu reads from files and from the log when it is
//! started on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array};
use coldframe_core::predicate::Op;
use coldframe_core::{OnError, OpenOptions, Predicate, Scan, TableFile, Value};
use coldframe_testing::fixture::{self, Fixture};
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::mutate::{flipped, spread};
use coldframe_testing::rows::{as_text, read, scan, sorted};

use super::folder::open;

fn fixtures() -> Vec<Fixture> {
    fixture::manifest(&fixture::data().join("kudu_wal/files/MANIFEST.json"))
}

fn with(options: &OpenOptions, name: &str, value: Value) -> OpenOptions {
    let mut extra: BTreeMap<String, Value> = options.extra.clone();
    extra.insert(name.to_owned(), value);
    OpenOptions { extra, ..options.clone() }
}

/// The directory of a fixture.
fn folder(fixture: &Fixture) -> MemoryFolder {
    MemoryFolder::load(&fixture.path)
}

/// The last state of a table, with the directory of the fixture.
pub(crate) fn latest(name: &str, table: &str) -> (MemoryFolder, OpenOptions) {
    let of = |fixture: &Fixture| {
        fixture.entry["file"] == name && fixture.options().extra.get("table") == Some(&table.into())
    };
    let fixture = fixtures().into_iter().rfind(of).unwrap();
    (folder(&fixture), fixture.options())
}

/// Paths of the log segments of a table's tablets, longest first.
pub(crate) fn segments(folder: &MemoryFolder, options: &OpenOptions) -> Vec<String> {
    let metadata = open(folder, options).unwrap().metadata().unwrap();
    let Some(Value::List(tablets)) = metadata.get("tablets") else { panic!("{metadata:?}") };
    let of = |tablet: &Value| {
        let Some(Value::Str(id)) = tablet.get("tablet") else { panic!("{tablet:?}") };
        let id = format!("wals/{id}/wal-");
        folder.files.keys().filter(move |path| path.contains(&id)).cloned().collect::<Vec<_>>()
    };
    let mut paths: Vec<String> = tablets.iter().flat_map(of).collect();
    paths.sort_by_key(|path| std::cmp::Reverse(folder.files[path].len()));
    paths
}

fn number(value: &Value, name: &str) -> i64 {
    match value.get("wal").and_then(|wal| wal.get(name)) {
        Some(Value::Int(n)) => *n,
        Some(Value::UInt(n)) => i64::try_from(*n).unwrap(),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn rows_of_memory_are_read_and_counted() {
    for fixture in fixtures() {
        let (folder, options) = (folder(&fixture), fixture.options());
        let table = open(&folder, &options).unwrap();
        let rows = sorted(table.as_ref());
        assert_eq!(rows.len() as u64, fixture.number("rows"), "{:?}", fixture.entry);
        match table.row_count() {
            Some(counted) => assert_eq!(counted, fixture.number("rows")),
            None => assert!(options.extra.contains_key("snapshot")),
        }
        for target in [1, 500, u64::MAX] {
            let splits = table.splits(target).unwrap();
            let part = |split| read_split(table.as_ref(), split);
            let mut parts: Vec<String> = splits.iter().flat_map(part).collect();
            parts.sort();
            assert_eq!(parts, rows);
        }
        let metadata = table.metadata().unwrap();
        assert!(number(&metadata, "operations") > 0 && number(&metadata, "segments") > 0);
        let recovered = number(&metadata, "rows") + number(&metadata, "changes");
        assert!(recovered > 0 || options.extra.get("table") == Some(&"trips".into()));
        assert!(metadata.get("wal").unwrap().get("damage").is_none(), "{metadata:?}");
    }
}

fn read_split(table: &dyn TableFile, split: &coldframe_core::Split) -> Vec<String> {
    let outcome = scan(table, &Scan::default(), Some(split)).unwrap();
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    as_text(&outcome.batch)
}

#[test]
fn without_the_log_only_flushed_rows_are_read() {
    let (folder, options) = latest("lz4", "ledger");
    let flushed = open(&folder, &with(&options, "wal", Value::Bool(false))).unwrap();
    let rows = sorted(flushed.as_ref());
    assert_eq!((rows.len(), flushed.row_count()), (300, Some(300)));
    let metadata = flushed.metadata().unwrap();
    assert!(number(&metadata, "segments") > 0);
    assert_eq!(metadata.get("wal").unwrap().get("read"), Some(&Value::Bool(false)));
    // The result is the same for a copy without the log.
    let mut copy = folder.clone();
    copy.files.retain(|path, _| !path.contains("wals/"));
    assert_eq!(sorted(open(&copy, &options).unwrap().as_ref()), rows);
}

#[test]
fn filters_on_keys_find_rows_of_memory() {
    let (folder, options) = latest("lz4", "ledger");
    let table = open(&folder, &options).unwrap();
    for value in [0, 1, 3, 10, 79, 80, 299, 598, 705, 800] {
        for op in [Op::Eq, Op::Lt, Op::Ge] {
            let literal: ArrayRef = Arc::new(Int32Array::from(vec![value]));
            let filter = Predicate::compare("k", op, literal);
            let opaque = Predicate::Or(vec![filter.clone(), filter.clone()]);
            let rows = |predicate| {
                let outcome =
                    scan(table.as_ref(), &Scan { predicate: Some(predicate), ..Scan::default() }, None);
                as_text(&outcome.unwrap().batch)
            };
            assert_eq!(rows(filter), rows(opaque), "k {op:?} {value}");
        }
    }
}

#[test]
fn a_log_is_read_from_its_recovery_folder() {
    let (folder, options) = latest("lz4", "trips");
    let rows = sorted(open(&folder, &options).unwrap().as_ref());
    let mut moved = folder.clone();
    for path in segments(&folder, &options) {
        let bytes = moved.files.remove(&path).unwrap();
        let (before, name) = path.rsplit_once('/').unwrap();
        moved.files.insert(format!("{before}.recovery/{name}"), bytes.clone());
        // A new segment, which the server had only partly written when it stopped.
        moved.files.insert(path.clone(), bytes.slice(..bytes.len() / 2));
    }
    assert_eq!(sorted(open(&moved, &options).unwrap().as_ref()), rows);
}

/// Checks that the rows read from a damaged log are correct and that missing rows are reported. Returns the
/// number of rows.
fn survives(folder: &MemoryFolder, options: &OpenOptions, truth: &[String], what: &str) -> usize {
    let table = open(folder, options).unwrap();
    let raised = read(table.as_ref(), OnError::Raise);
    let failed = raised.as_ref().map_or(true, |outcome| outcome.error.is_some());
    let mut kept = 0;
    for on_error in [OnError::Skip, OnError::Null] {
        let outcome = read(table.as_ref(), on_error).unwrap();
        assert!(outcome.error.is_none(), "{what}: {:?}", outcome.error);
        let rows = as_text(&outcome.batch);
        for row in &rows {
            assert!(truth.contains(row), "{what}: {row:?} under {on_error:?}");
        }
        assert_eq!(failed, !outcome.damage.is_empty(), "{what}: {:?}", outcome.damage);
        assert!(rows.len() == truth.len() || failed, "{what}: {} of {}", rows.len(), truth.len());
        kept = rows.len();
    }
    drop(table.inspect().unwrap());
    let report = coldframe_core::scan::verify(table.as_ref(), |_| Ok(())).unwrap();
    assert!(!report.damage.is_empty(), "{what}");
    kept
}

#[test]
fn broken_records_never_expose_old_values() {
    for (name, table) in
        [("lz4", "ledger"), ("lz4", "trips"), ("plain", "ledger"), ("snappy_encrypted", "notes")]
    {
        let (folder, options) = latest(name, table);
        let truth = sorted(open(&folder, &options).unwrap().as_ref());
        let path = segments(&folder, &options).remove(0);
        let bytes = &folder.files[&path];
        let mut kept = Vec::new();
        for at in spread(bytes.len(), 60) {
            let hurt = folder.with(&path, flipped(bytes, at, 0x41));
            kept.push(survives_if_hurt(&hurt, &options, &truth, &format!("{name}/{table} byte {at}")));
        }
        assert!(kept.iter().any(|n| *n < truth.len()), "{name} {table}");
    }
}

/// Like [`survives`], but a flipped byte in the header may be one that is not read, which costs no rows.
fn survives_if_hurt(hurt: &MemoryFolder, options: &OpenOptions, truth: &[String], what: &str) -> usize {
    let table = open(hurt, options).unwrap();
    let whole = read(table.as_ref(), OnError::Raise).is_ok_and(|o| {
        let mut rows = as_text(&o.batch);
        rows.sort();
        o.error.is_none() && rows == truth
    });
    if whole { truth.len() } else { survives(hurt, options, truth, what) }
}

#[test]
fn missing_and_invalid_segments_are_holes() {
    let (folder, options) = latest("lz4", "ledger");
    let truth = sorted(open(&folder, &options).unwrap().as_ref());
    let path = segments(&folder, &options).remove(0);
    let bytes = folder.files[&path].clone();
    // Tests a missing segment, an invalid segment, and a file of another kind.
    let next = path.replace("wal-000000001", "wal-000000003");
    assert_ne!(path, next, "{path}");
    let gone = folder.with(&next, bytes.clone());
    survives(&gone, &options, &truth, "a segment is gone");
    survives(&folder.with(&path, vec![7; 100]), &options, &truth, "no segment");
    // Flushed rows are not lost: all of them are read if only they are requested.
    let flushed = with(&options, "wal", Value::Bool(false));
    assert_eq!(sorted(open(&folder.with(&path, vec![7; 100]), &flushed).unwrap().as_ref()).len(), 300);
}

#[test]
fn an_older_snapshot_ignores_later_holes() {
    let all = fixtures();
    let of = |fixture: &&Fixture| {
        fixture.entry["file"] == "lz4" && fixture.options().extra.get("table") == Some(&"ledger".into())
    };
    let first = all.iter().find(of).unwrap();
    assert!(first.options().extra.contains_key("snapshot"));
    let folder = folder(first);
    let (_, latest) = latest("lz4", "ledger");
    let truth = sorted(open(&folder, &first.options()).unwrap().as_ref());
    for path in segments(&folder, &latest) {
        // Damages the last complete record, which the third phase wrote.
        let bytes = &folder.files[&path];
        let at = bytes.iter().rposition(|b| *b != 0).unwrap() - 20;
        let hurt = folder.with(&path, flipped(bytes, at, 1));
        let raised = read(open(&hurt, &latest).unwrap().as_ref(), OnError::Raise);
        assert!(raised.map_or(true, |outcome| outcome.error.is_some()), "{path}");
        assert_eq!(sorted(open(&hurt, &first.options()).unwrap().as_ref()), truth);
    }
}

#[test]
fn the_replica_with_the_longest_log_is_read() {
    let (folder, options) = latest("replicas", "ledger");
    let truth = sorted(open(&folder, &options).unwrap().as_ref());
    for server in ["ts0", "ts1", "ts2"] {
        // The log of this replica is cut off early.
        let mut behind = folder.clone();
        for path in segments(&folder, &options).into_iter().filter(|p| p.starts_with(server)) {
            let bytes = behind.files[&path].clone();
            behind.files.insert(path, bytes.slice(..bytes.len() / 3));
        }
        assert_eq!(sorted(open(&behind, &options).unwrap().as_ref()), truth, "{server}");
        // Without the other replicas, it returns the operations on which it knows that the group agreed.
        let mut alone = folder.clone();
        alone.files.retain(|path, _| path.starts_with(server));
        let rows = sorted(open(&alone, &options).unwrap().as_ref());
        assert!(rows.len() > 300, "{server}: {}", rows.len());
    }
}

#[test]
fn operations_without_a_commit_message_are_applied_again() {
    for (name, table) in [("lz4", "ledger"), ("lz4", "trips"), ("plain", "ledger"), ("zlib", "notes")] {
        let (folder, options) = latest(name, table);
        let whole = open(&folder, &options).unwrap();
        let (truth, counted) = (sorted(whole.as_ref()), whole.row_count());
        for path in segments(&folder, &options) {
            // The last record, which is a commit message, is cut off.
            let bytes = &folder.files[&path];
            let torn = folder.with(&path, bytes.slice(..bytes.len() - 5));
            let table = open(&torn, &options).unwrap();
            assert_eq!(sorted(table.as_ref()), truth, "{path}");
            assert_eq!(table.row_count(), counted);
        }
    }
}

#[test]
fn lost_ranges_of_a_log_never_expose_old_values() {
    for (name, table) in [("lz4", "ledger"), ("lz4", "trips"), ("plain", "ledger"), ("replicas", "notes")] {
        let (folder, options) = latest(name, table);
        let truth = sorted(open(&folder, &options).unwrap().as_ref());
        let path = segments(&folder, &options).remove(0);
        let bytes = folder.files[&path].to_vec();
        for (from, to) in [(1, 2), (1, 3), (2, 3), (1, 6), (4, 6), (5, 9)] {
            let range = bytes.len() * from / 9..bytes.len() * to / 9;
            // The range is overwritten with zeros, or removed.
            let mut wiped = bytes.clone();
            wiped[range.clone()].fill(0xa5);
            let cut = [&bytes[..range.start], &bytes[range.end..]].concat();
            // A log that ends early looks like the log of a server that stopped earlier.
            let both = [(wiped, "wiped"), (cut, "cut out")];
            for (hurt, how) in both.into_iter().take(if to == 9 { 1 } else { 2 }) {
                let what = format!("{name}/{table} {range:?} {how}");
                survives_if_hurt(&folder.with(&path, hurt), &options, &truth, &what);
            }
        }
    }
}

/// Operations without a commit message are applied to rows that are looked up by key. If the keys are lost too, a
/// read under `skip` continues.
#[test]
fn tolerant_reads_continue_without_keys() {
    let mut damaged = 0;
    for (name, table) in [("lz4", "ledger"), ("plain", "ledger")] {
        let (whole, options) = latest(name, table);
        let blocks: Vec<String> =
            whole.files.keys().filter(|path| path.ends_with(".data")).cloned().collect();
        assert!(!blocks.is_empty());
        let segment = segments(&whole, &options).remove(0);
        let len = whole.files[&segment].len();
        for cut in spread(len, 9).chain([len]) {
            for path in &blocks {
                let mut hurt = whole.clone();
                hurt.files.insert(segment.clone(), whole.files[&segment].slice(..cut));
                let bytes = &whole.files[path];
                let mut zeros = bytes.to_vec();
                let (from, to) = (zeros.len() / 20, zeros.len());
                zeros[from..to].fill(0);
                hurt.files.insert(path.clone(), zeros.into());
                let Ok(opened) = open(&hurt, &options) else { continue };
                for on_error in [OnError::Skip, OnError::Null] {
                    let outcome = read(opened.as_ref(), on_error);
                    let outcome = outcome.unwrap_or_else(|e| panic!("{name} {path} {cut}: {e}"));
                    assert!(outcome.error.is_none(), "{name} {path} {cut}: {:?}", outcome.error);
                    damaged += usize::from(!outcome.damage.is_empty());
                }
            }
        }
    }
    assert!(damaged > 10, "{damaged}");
}
