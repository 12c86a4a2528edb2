//! Tests each file as a whole: its layout, projections by position, batches of any size.

use coldframe_core::{Node, OnError, OpenOptions, Scan, TableFile, Value};
use coldframe_rcfile::RcFile;
use coldframe_testing::fixture::{self, Fixture, source};
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::rows;
use serde_json::Value as Json;

fn open(case: &Fixture) -> RcFile {
    RcFile::open(&source(case.bytes()), &case.options()).unwrap_or_else(|e| panic!("{}: {e}", case.name()))
}

fn expect_row_count(case: &Fixture) -> Option<u64> {
    case.entry.get("rows").and_then(Json::as_u64)
}

#[test]
fn files_have_the_row_counts_that_their_writers_state() {
    for case in fixture::files("rcfile") {
        let file = open(&case);
        let outcome = rows::read(&file, OnError::Raise).unwrap();
        assert!(outcome.error.is_none(), "{}: {:?}", case.name(), outcome.error);
        if let Some(rows) = expect_row_count(&case) {
            assert_eq!(outcome.batch.num_rows() as u64, rows, "{}", case.name());
            assert_eq!(coldframe_core::scan::count(&file, None).unwrap(), rows, "{}", case.name());
        }
        // Skipping damage loses nothing in an undamaged file.
        for on_error in [OnError::Skip, OnError::Null] {
            let tolerant = rows::read(&file, on_error).unwrap();
            assert!(
                tolerant.error.is_none() && tolerant.damage.is_empty(),
                "{}: {:?}",
                case.name(),
                tolerant.damage
            );
            assert_eq!(tolerant.batch, outcome.batch, "{}", case.name());
        }
    }
}

#[test]
fn the_batch_size_does_not_change_the_rows() {
    for case in fixture::manifest(&fixture::data().join("rcfile/files/MANIFEST.json")) {
        let file = open(&case);
        let whole = rows::read(&file, OnError::Raise).unwrap().batch;
        for batch_rows in [1, 7, 64] {
            let scan = Scan { batch_rows, ..Scan::default() };
            let outcome = rows::scan(&file, &scan, None).unwrap();
            assert!(outcome.error.is_none(), "{}: {:?}", case.name(), outcome.error);
            assert_eq!(outcome.batch, whole, "{} by {batch_rows}", case.name());
        }
    }
}

/// Each byte belongs to one leaf, in damaged files too.
#[test]
fn inspect_lists_each_byte_once() {
    let mut all = fixture::distinct(fixture::files("rcfile"));
    all.extend(fixture::manifest(&fixture::data().join("rcfile/damaged/MANIFEST.json")));
    for case in all {
        let tree = open(&case).inspect().unwrap();
        assert_eq!(tree.bytes, 0..case.bytes().len() as u64);
        assert!(!tree.children.is_empty());
        assert_tiled(&tree);
        let unknown = tree.children.iter().filter(|n| n.name == "unknown").count();
        assert_eq!(unknown, 0, "{}", case.name());
    }
}

#[test]
fn undamaged_files_verify() {
    for case in fixture::files("rcfile") {
        let report = coldframe_core::scan::verify(&open(&case), |_| Ok(())).unwrap();
        assert_eq!(report.damage, [], "{}", case.name());
        assert_eq!(Some(report.rows), expect_row_count(&case).or(Some(report.rows)), "{}", case.name());
    }
}

fn detail(node: &Node, key: &str) -> Json {
    match node.detail.iter().find(|(k, _)| k == key).map(|(_, v)| v) {
        Some(Value::Int(n)) => Json::from(*n),
        other => panic!("{}: {key}: {other:?}", node.name),
    }
}

/// Header and row groups are where an independent parser found them.
#[test]
fn the_layout_equals_the_layout_of_another_parser() {
    let Some(folder) = fixture::larger_corpus("rcfile") else { return };
    let layouts = fixture::json(&folder.join("layout.json"));
    let layouts = layouts.as_object().unwrap();
    assert!(layouts.len() > 100);
    for (name, layout) in layouts {
        let bytes = std::fs::read(folder.join(format!("{name}.rc"))).unwrap();
        let file =
            RcFile::open(&source(bytes), &OpenOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(Json::from(file.header().end), layout["header_end"], "{name}");
        assert_eq!(Json::from(file.header().codec_class.clone()), layout["codec"], "{name}");
        let tree = file.inspect().unwrap();
        let groups = tree.children.iter().filter(|n| n.name.starts_with("row group"));
        let actual: Vec<Json> = groups
            .map(|g| {
                let header = g.children.iter().find(|n| n.name == "record header").unwrap();
                let sync = g.children.iter().any(|n| n.name == "sync marker");
                serde_json::json!({
                    "offset": g.bytes.start, "sync": sync, "rows": detail(g, "rows"),
                    "record_len": detail(header, "record_length"), "key_len": detail(header, "key_length"),
                    "ckey_len": detail(header, "key_length_on_disk"), "end": g.bytes.end,
                })
            })
            .collect();
        assert_eq!(Json::from(actual), layout["groups"], "{name}");
    }
}
