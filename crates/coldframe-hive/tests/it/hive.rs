//! Tables that Hive's own classes wrote, changed and compacted: the rows that Hive reads with each list of
//! write ids. `tests/python/test_fixtures.py` checks every value.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use coldframe_core::{Format, OnError, Op, Predicate, Scan, Source, TableFile, Value};
use coldframe_hive::HiveFormat;
use coldframe_store::LocalFolder;
use coldframe_testing::fixture::{self, Fixture};
use coldframe_testing::rows::{as_text, read, scan};

fn fixtures() -> Vec<Fixture> {
    fixture::manifest(&fixture::data().join("hive/files/MANIFEST.json"))
}

fn open(fixture: &Fixture, list: bool) -> Arc<dyn TableFile> {
    let source = Source::Folder { path: "table".into(), folder: Arc::new(LocalFolder::new(&fixture.path)) };
    let mut options = fixture.options();
    if !list {
        options.extra.remove("acid_valid_write_ids");
    }
    HiveFormat.open(&source, &options).unwrap()
}

fn rows(table: &dyn TableFile, predicate: Option<Predicate>) -> Vec<String> {
    scan(table, &Scan { predicate, ..Scan::default() }, None).unwrap().sorted()
}

#[test]
fn each_list_returns_its_rows_in_splits_of_any_size() {
    let all = fixtures();
    assert!(all.len() > 30);
    for fixture in all {
        let table = open(&fixture, true);
        let whole = rows(table.as_ref(), None);
        assert_eq!(whole.len() as u64, fixture.number("rows"), "{:?}", fixture.entry);
        for target in [1, 1500] {
            let mut parts = Vec::new();
            for split in table.splits(target).unwrap() {
                parts.extend(as_text(&scan(table.as_ref(), &Scan::default(), Some(&split)).unwrap().batch));
            }
            parts.sort();
            assert_eq!(parts, whole, "{:?}", fixture.entry);
        }
        // A filter is applied only to live rows.
        let limit: ArrayRef = Arc::new(Int64Array::from(vec![9]));
        let few = rows(table.as_ref(), Some(Predicate::compare("id", Op::Le, limit)));
        assert!(few.len() <= 10 && few.iter().all(|row| whole.contains(row)), "{:?}", fixture.entry);
        let report = coldframe_core::scan::verify(table.as_ref(), |_| Ok(())).unwrap();
        assert_eq!(report.damage, [], "{:?}", fixture.entry);
    }
}

#[test]
fn without_a_list_all_writes_are_visible() {
    let tables =
        [("changes", 60), ("originals", 41), ("converted", 31), ("overwritten", 10), ("insert_only", 16)];
    for (name, count) in tables {
        let fixture = fixtures().into_iter().rfind(|f| f.entry["file"] == name).unwrap();
        let table = open(&fixture, false);
        let outcome = read(table.as_ref(), OnError::Raise).unwrap();
        assert_eq!(outcome.batch.num_rows(), count, "{name}");
        assert!(matches!(table.metadata().unwrap(), Value::Map(_)));
    }
}
