//! Tests which bytes are read for projections, counts, limits and filters.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, StringArray};
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use coldframe_core::{
    DamageLog, Node, OnError, Op, OpenOptions, Predicate, Scan, ScanReader, Source, Split, TableFile, Value,
};
use coldframe_rcfile::{RcFile, RcFileFormat};
use coldframe_testing::fixture::{self, Fixture};
use coldframe_testing::{Logged, rows, written};

/// An open file whose reads are recorded.
fn logged(case: &Fixture) -> (Arc<Logged>, RcFile) {
    let log = Arc::new(Logged::new(case.bytes()));
    let file = RcFile::open(&Source::file("logged", log.clone()), &case.options()).unwrap();
    (log, file)
}

fn fixture(name: &str) -> Fixture {
    let all = fixture::manifest(&fixture::data().join("rcfile/files/MANIFEST.json"));
    all.into_iter().find(|f| f.name() == name).unwrap()
}

/// The ranges that were read, including the windows of the walk over the keys.
fn fetched(log: &Logged) -> Vec<Range<u64>> {
    log.take().into_iter().flatten().collect()
}

fn columns(tree: &Node, wanted: &str) -> BTreeSet<(u64, u64)> {
    let groups = tree.children.iter().filter(|n| n.name.starts_with("row group"));
    groups
        .flat_map(|g| &g.children)
        .filter(|n| n.name == wanted)
        .map(|n| (n.bytes.start, n.bytes.end))
        .collect()
}

/// A file of few large groups, so that the walk's windows do not cover it all.
fn large() -> Bytes {
    let ids: ArrayRef = Arc::new((0..400_000i64).collect::<Int64Array>());
    let text = |k: i64| {
        Arc::new(StringArray::from_iter_values((0..400_000i64).map(|i| format!("{k} {i:x}")))) as ArrayRef
    };
    let batch = arrow_array::RecordBatch::try_from_iter([
        ("id", ids),
        ("a", text(1)),
        ("b", text(2)),
        ("c", text(3)),
    ])
    .unwrap();
    let options = [("serde", Value::from("binary")), ("record_interval", Value::Int(100_000))];
    written(&RcFileFormat, &[batch], &options).unwrap()
}

fn large_file() -> (Arc<Logged>, RcFile, u64) {
    let bytes = large();
    let len = bytes.len() as u64;
    let log = Arc::new(Logged::new(bytes));
    let mut options = OpenOptions {
        schema: Some(coldframe_core::SchemaSpec::Ddl("id bigint, a string, b string, c string".to_owned())),
        ..OpenOptions::default()
    };
    options.extra.insert("serde".to_owned(), Value::from("binary"));
    let file = RcFile::open(&Source::file("logged", log.clone()), &options).unwrap();
    (log, file, len)
}

/// One column costs its own bytes and the keys, not the other columns.
#[test]
fn a_projection_reads_its_column_and_the_keys() {
    let (log, file, len) = large_file();
    let tree = file.inspect().unwrap();
    let wanted = columns(&tree, "column 2");
    assert_eq!(wanted.len(), 4);
    log.take();
    let scan = Scan { columns: Some(vec!["b".to_owned()]), ..Scan::default() };
    let outcome = rows::scan(&file, &scan, None).unwrap();
    assert_eq!((outcome.batch.num_rows(), outcome.batch.num_columns()), (400_000, 1));
    assert_eq!(outcome.batch.column(0).as_string::<i32>().value(399_999), "2 61a7f");
    let read = fetched(&log);
    for (start, end) in &wanted {
        assert!(read.iter().any(|r| r.start == *start && r.end == *end), "{start}..{end} in {read:?}");
    }
    let keys: u64 = columns(&tree, "key buffer").iter().map(|(start, end)| end - start).sum();
    let column: u64 = wanted.iter().map(|(start, end)| end - start).sum();
    let total: u64 = read.iter().map(|r| r.end - r.start).sum();
    // A walk reads a key in windows of 64 KiB, and may have to read twice if a key is longer.
    assert!(
        total <= column + 3 * keys + 4 * 2 * (64 << 10),
        "{total} of {len}; column {column}, keys {keys}"
    );
    assert!(total < len / 2, "{total} of {len}");
}

#[test]
fn a_count_reads_keys_only() {
    let (log, file, len) = large_file();
    let tree = file.inspect().unwrap();
    log.take();
    assert_eq!(coldframe_core::scan::count(&file, None).unwrap(), 400_000);
    let total: u64 = fetched(&log).iter().map(|r| r.end - r.start).sum();
    let keys: u64 = columns(&tree, "key buffer").iter().map(|(start, end)| end - start).sum();
    assert!(total <= 3 * keys + 4 * 2 * (64 << 10) && total < len / 4, "{total} of {len}; keys {keys}");
}

#[test]
fn a_scan_with_a_limit_reads_no_further_groups() {
    let (log, file, len) = large_file();
    let tree = file.inspect().unwrap();
    let second = tree.children.iter().find(|n| n.name == "row group 1").unwrap().bytes.clone();
    log.take();
    for (limit, rows) in [(0, 0), (1, 1), (99_999, 99_999), (1_000_000, 400_000)] {
        let scan = Scan { limit: Some(limit), ..Scan::default() };
        let outcome = rows::scan(&file, &scan, None).unwrap();
        assert_eq!(outcome.batch.num_rows(), rows);
        let read = fetched(&log);
        let beyond = read.iter().map(|r| r.end).max().unwrap_or(0);
        match limit {
            0 => assert_eq!(read, []),
            1 | 99_999 => assert!(beyond <= second.start + (64 << 10), "{beyond} {second:?}"),
            _ => assert!(beyond >= len - 1),
        }
    }
}

/// Opening reads the first bytes of the file once, whatever its length.
#[test]
fn opening_reads_the_header_only() {
    let (log, _file, _) = large_file();
    let read = log.take();
    assert_eq!(read.len(), 1, "{read:?}");
    assert!(read[0].iter().all(|r| r.end <= 4096), "{read:?}");
}

/// A scan with a filter yields the rows that pass the filter in a scan without it, whatever is projected.
#[test]
fn filtered_scans_equal_filtered_results() {
    for name in ["text_groups.rc", "binary_groups_zlib.rc"] {
        let case = fixture(name);
        let (_, file) = logged(&case);
        let all = rows::read(&file, OnError::Raise).unwrap().batch;
        let ids = all.column_by_name("id").unwrap().as_primitive::<Int64Type>().clone();
        let some = |i: usize| ids.value(i * all.num_rows() / 10);
        for (op, bound) in
            [(Op::Lt, some(3)), (Op::Ge, some(7)), (Op::Eq, some(5)), (Op::Ne, some(5)), (Op::Gt, i64::MAX)]
        {
            let value: ArrayRef = Arc::new(Int64Array::from(vec![bound]));
            let predicate = Predicate::compare("id", op, value);
            let keep = predicate.clone().bind(&all.schema()).unwrap().evaluate(&all).unwrap();
            let want = filter_record_batch(&all, &keep).unwrap();
            for columns in [None, Some(vec!["name".to_owned(), "flag".to_owned()]), Some(vec![])] {
                let scan =
                    Scan { predicate: Some(predicate.clone()), columns: columns.clone(), ..Scan::default() };
                let got = rows::scan(&file, &scan, None).unwrap();
                assert_eq!(got.batch.num_rows(), want.num_rows(), "{name} {op:?} {bound}");
                for (i, field) in got.batch.schema().fields().iter().enumerate() {
                    assert_eq!(
                        got.batch.column(i),
                        want.column_by_name(field.name()).unwrap(),
                        "{name} {op:?} {bound}"
                    );
                }
            }
            let counted = coldframe_core::scan::count(&file, Some(predicate)).unwrap();
            assert_eq!(counted, want.num_rows() as u64);
        }
    }
}

/// A scan keeps one row group in memory, not the file.
#[test]
fn a_scan_keeps_one_row_group_in_memory() {
    let (log, file, _) = large_file();
    let split = Split { part: 0, range: 0..u64::MAX, rows: None };
    let mut reader = ScanReader::try_new(&file, &Scan::default(), &split, DamageLog::default()).unwrap();
    let (mut seen, mut groups) = (0, 0);
    log.take();
    while let Some(batch) = reader.next_batch().unwrap() {
        if seen % 100_000 == 0 {
            groups += 1;
            assert_eq!(reader.units(), groups, "a group was decoded before its rows were requested");
        }
        // No bytes of later groups are fetched before their rows are requested.
        seen += batch.num_rows();
        assert!(seen as u64 <= reader.units() * 100_000);
    }
    assert_eq!((seen, groups), (400_000, 4));
}

fn any_of(values: impl IntoIterator<Item = i64>) -> Predicate {
    let equals =
        |value| Predicate::compare("id", Op::Eq, Arc::new(Int64Array::from(vec![value])) as ArrayRef);
    Predicate::Or(values.into_iter().map(equals).collect())
}

/// Rows that pass have all their cells, whether few or many pass and for any batch size.
#[test]
fn passing_rows_are_complete_in_any_batch_size() {
    let (_, file, _) = large_file();
    let all = rows::read(&file, OnError::Raise).unwrap().batch;
    let below = |n: i64| Predicate::compare("id", Op::Lt, Arc::new(Int64Array::from(vec![n])) as ArrayRef);
    let filters = [
        any_of([0]),
        any_of([399_999]),
        any_of([100_000, 99_999, 262_143, 262_144]),
        any_of((0..40).map(|i| 7 + i * 9_973)),
        below(1),
        below(20_000),
        below(100_000),
        !below(399_000),
        any_of([-1]),
    ];
    for predicate in filters {
        let keep = predicate.clone().bind(&all.schema()).unwrap().evaluate(&all).unwrap();
        let want = filter_record_batch(&all, &keep).unwrap();
        for batch_rows in [1000, 65_536, 1 << 20] {
            let scan = Scan { predicate: Some(predicate.clone()), batch_rows, ..Scan::default() };
            let got = rows::scan(&file, &scan, None).unwrap().batch;
            assert_eq!(got, want, "{predicate:?} in batches of {batch_rows}");
        }
    }
}

/// Cells of rows that do not pass are not decoded, so an error in them does not end the scan. If the row
/// passes, the error names the row.
#[test]
fn other_columns_are_decoded_where_a_row_passes() {
    let ids: ArrayRef = Arc::new((0..1000i64).collect::<Int64Array>());
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true; 1000]));
    let batch = arrow_array::RecordBatch::try_from_iter([("id", ids), ("a", flags)]).unwrap();
    let options = [("serde", Value::from("binary")), ("record_interval", Value::Int(100))];
    let mut bytes = written(&RcFileFormat, &[batch], &options).unwrap().to_vec();
    // Row 555: the sixth group's cells are 1-byte cells, contiguous.
    let flags = |w: &[u8]| w[0] != 1 && w[1..].iter().all(|b| *b == 1);
    let groups: Vec<usize> = (0..bytes.len() - 100).filter(|at| flags(&bytes[*at..=*at + 100])).collect();
    assert_eq!(groups.len(), 10);
    bytes[groups[5] + 1 + 55] = 7;
    let mut options = OpenOptions {
        schema: Some(coldframe_core::SchemaSpec::Ddl("id bigint, a boolean".to_owned())),
        ..OpenOptions::default()
    };
    options.extra.insert("serde".to_owned(), Value::from("binary"));
    let file = RcFile::open(&Source::file("flags", Arc::new(Bytes::from(bytes))), &options).unwrap();
    let read = |predicate| rows::scan(&file, &Scan { predicate, ..Scan::default() }, None).unwrap();
    let others = read(Some(any_of([3, 554, 556])));
    assert!(others.error.is_none() && others.batch.num_rows() == 3, "{:?}", others.error);
    let many = Predicate::compare("id", Op::Ge, Arc::new(Int64Array::from(vec![500])) as ArrayRef);
    for wrong in [Some(any_of([555])), Some(many), None] {
        let e = read(wrong).error.unwrap().to_string();
        assert!(e.contains("row group 5") && e.contains("column 1 (`a`): row 55"), "{e}");
    }
}
