//! Whole directories. `tests/python/test_fixtures.py` checks every value.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use coldframe_core::{ErrorKind, Format, OnError, Scan, TableFile, Value};
use coldframe_kudu::KuduFormat;
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::rows::{as_text, read, scan, sorted};

use super::folder::{Watched, ending, fixtures, open, table, tree};

fn sorted_columns(table: &dyn TableFile, columns: &[&str]) -> Vec<String> {
    let columns = Some(columns.iter().map(|s| (*s).to_owned()).collect());
    scan(table, &Scan { columns, ..Scan::default() }, None).unwrap().sorted()
}

#[test]
fn each_snapshot_has_its_rows() {
    for fixture in fixtures() {
        let table = open(&MemoryFolder::load(&fixture.path), &fixture.options()).unwrap();
        let outcome = read(table.as_ref(), OnError::Raise).unwrap();
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        assert_eq!(outcome.batch.num_rows() as u64, fixture.number("rows"), "{:?}", fixture.entry);
        if let Some(rows) = table.row_count() {
            assert_eq!(rows, fixture.number("rows"));
        }
        // A snapshot at exactly the time of the first operation does not include that operation.
        assert!(table.row_count().is_some() || fixture.options().extra.contains_key("snapshot"));
    }
}

#[test]
fn splits_give_each_row_once() {
    for fixture in fixtures() {
        let table = open(&MemoryFolder::load(&fixture.path), &fixture.options()).unwrap();
        let whole = sorted(table.as_ref());
        for target in [1, 700, 5000, u64::MAX] {
            let mut rows = Vec::new();
            let splits = table.splits(target).unwrap();
            for split in &splits {
                let part = scan(table.as_ref(), &Scan::default(), Some(split)).unwrap();
                rows.extend(as_text(&part.batch));
            }
            assert!(target > 1 || splits.len() > 100, "{}", splits.len());
            rows.sort();
            assert_eq!(rows, whole);
        }
        let narrow = Scan { batch_rows: 7, ..Scan::default() };
        assert_eq!(scan(table.as_ref(), &narrow, None).unwrap().sorted(), whole);
    }
}

#[test]
fn only_requested_columns_are_read() {
    let folder = Watched::new(tree("file_blocks"));
    let table = folder.table(&table("events"));
    let all = sorted(table.as_ref()).len();
    folder.opened.store(0, Ordering::Relaxed);
    assert_eq!(sorted_columns(table.as_ref(), &["amount"]).len(), all);
    let opened = folder.opened.load(Ordering::Relaxed);
    // For each rowset, these are opened: the first column for the row count, the requested column, and one or
    // more delta files.
    assert!(opened < 20, "{opened}");
    assert_eq!(sorted_columns(table.as_ref(), &[]).len(), all);
}

#[test]
fn a_tablet_with_three_replicas_is_read_once() {
    let all = tree("replicas");
    let together = open(&all, &table("numbers")).unwrap();
    let rows = sorted(together.as_ref());
    assert!(KuduFormat.probe_folder(&all).unwrap());
    for server in ["ts0", "ts1", "ts2"] {
        let single =
            all.files.iter().filter_map(|(p, b)| Some((p.strip_prefix(server)?[1..].to_owned(), b.clone())));
        let single = MemoryFolder { files: single.collect() };
        assert!(KuduFormat.probe_folder(&single).unwrap());
        assert_eq!(sorted(open(&single, &table("numbers")).unwrap().as_ref()), rows, "{server}");
    }
    // If there are other files beside the servers, the folder is not recognised as a Kudu directory; the user
    // must name the format.
    let mut mixed = all.clone();
    mixed.files.insert("hive/sales/000000_0".to_owned(), Bytes::from_static(b"RCF1"));
    assert!(!KuduFormat.probe_folder(&mixed).unwrap());
    assert_eq!(sorted(open(&mixed, &table("numbers")).unwrap().as_ref()), rows);
}

#[test]
fn several_tables_need_a_name() {
    let tree = tree("file_blocks");
    let e = open(&tree, &coldframe_core::OpenOptions::default()).unwrap_err();
    assert!(e.to_string().contains("events, numbers"), "{e}");
    let e = open(&tree, &table("nothing")).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::NotFound(_)) && e.to_string().contains("events, numbers"), "{e}");
    let mut options = table("numbers");
    options.extra.insert("colour".to_owned(), Value::Null);
    assert!(open(&tree, &options).is_err());
    let Some(Value::List(tablets)) =
        open(&tree, &table("numbers")).unwrap().metadata().unwrap().get("tablets").cloned()
    else {
        panic!("no tablets")
    };
    assert_eq!(tablets.len(), 2);
    let of = |tablet: &Value| {
        let mut options = coldframe_core::OpenOptions::default();
        options.extra.insert("tablet".to_owned(), tablet.get("tablet").unwrap().clone());
        sorted(open(&tree, &options).unwrap().as_ref())
    };
    let mut parts: Vec<String> = tablets.iter().flat_map(of).collect();
    parts.sort();
    assert_eq!(parts, sorted(open(&tree, &table("numbers")).unwrap().as_ref()));
}

#[test]
fn an_empty_log_adds_nothing() {
    let mut tree = tree("file_blocks");
    let rows = sorted(open(&tree, &table("events")).unwrap().as_ref());
    let tablets = tree.files.keys().filter_map(|p| p.strip_prefix("meta/tablet-meta/"));
    for tablet in tablets.map(str::to_owned).collect::<Vec<_>>() {
        // The segment was created but never written to.
        tree.files.insert(format!("wal/wals/{tablet}/wal-000000001"), Bytes::new());
    }
    let events = open(&tree, &table("events")).unwrap();
    assert_eq!(sorted(events.as_ref()), rows);
    assert_eq!(events.row_count(), Some(rows.len() as u64));
    let wal = events.metadata().unwrap().get("wal").cloned().unwrap();
    assert_eq!(
        (wal.get("segments"), wal.get("rows")),
        (Some(&Value::Int(1)), Some(&Value::Int(0))),
        "{wal:?}"
    );
    // A server writes a header first, and these tablets have flushed rows.
    for segment in ending(&tree, "wal-000000001") {
        tree.files.insert(segment, Bytes::from_static(&[0; 64]));
    }
    let events = open(&tree, &table("events")).unwrap();
    let outcome = read(events.as_ref(), OnError::Raise);
    let e = outcome.map_or_else(Some, |outcome| outcome.error).unwrap();
    assert!(e.to_string().contains("expected a header, found zeros"), "{e}");
}

#[test]
fn an_encrypted_directory_opens_only_with_its_key() {
    let tree = tree("encrypted");
    let mut options = table("numbers");
    assert!(open(&tree, &options).is_ok());
    options.keys.insert("server".to_owned(), vec![7; 16]);
    let e = open(&tree, &options).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::KeyUnavailable(_)), "{e}");
    // All files are encrypted, except files that cannot be encrypted.
    assert!(
        ending(&tree, ".data")
            .iter()
            .all(|p| tree.files[p].is_empty() || tree.files[p].starts_with(b"kuduenc"))
    );
}

#[test]
fn an_unknown_block_manager_is_named() {
    let mut tree = tree("file_blocks");
    let mut options = table("events");
    options.skip_checksums = true; // the changed text has a checksum
    for path in ending(&tree, "block_manager_instance") {
        let mut bytes = tree.files[&path].to_vec();
        let at = bytes.windows(6).rposition(|w| w == b"\x12\x04file").unwrap();
        bytes[at + 2..at + 6].copy_from_slice(b"tape");
        tree.files.insert(path, bytes.into());
    }
    let e = open(&tree, &options).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Unsupported(_)) && e.to_string().contains("tape"), "{e}");
}

#[test]
fn intact_directories_are_covered_and_verified() {
    for fixture in fixtures().into_iter().filter(|fixture| !fixture.options().extra.contains_key("snapshot"))
    {
        let tree = MemoryFolder::load(&fixture.path);
        let table = open(&tree, &fixture.options()).unwrap();
        let root = table.inspect().unwrap();
        assert_tiled(&root);
        assert_eq!(root.bytes.end, tree.files.values().map(|b| b.as_ref().len() as u64).sum::<u64>());
        let report = coldframe_core::scan::verify(table.as_ref(), |_| Ok(())).unwrap();
        assert_eq!(report.damage, [], "{:?}", fixture.entry["file"]);
        assert_eq!(report.rows, fixture.number("rows"));
    }
}

#[test]
fn a_table_is_shared_between_threads() {
    let table: Arc<dyn TableFile> = open(&tree("log_blocks"), &table("events")).unwrap();
    let rows = sorted(table.as_ref());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(sorted(table.as_ref()), rows));
        }
    });
}

#[test]
fn statistics_describe_rowsets() {
    let table = open(&tree("file_blocks"), &table("numbers")).unwrap();
    let statistics = table.statistics().unwrap();
    let Some(Value::List(rowsets)) = statistics.get("rowsets") else { panic!("{statistics:?}") };
    let sum = |name: &str| -> i64 {
        let of = |r: &Value| if let Some(Value::Int(n)) = r.get(name) { *n } else { panic!("{r:?}") };
        rowsets.iter().map(of).sum()
    };
    assert_eq!((sum("rows"), sum("live_rows")), (400, 378));
    for rowset in rowsets {
        let (Some(Value::Bytes(min)), Some(Value::Bytes(max))) =
            (rowset.get("min_key"), rowset.get("max_key"))
        else {
            panic!("{rowset:?}")
        };
        assert!(min < max && min.len() == 4);
    }
}
