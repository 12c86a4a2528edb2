//! Look-ups, their results and their requests; the wide table and its splits; pruning by key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, UInt8Array};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use coldframe_core::{
    DamageLog, OnError, Op, OpenOptions, Predicate, Scan, ScanReader, Source, TableFile, Value,
};
use coldframe_hfile::{CellReader, HFile, HFileFormat, RowQuery};
use coldframe_testing::{Logged, rows, written};

/// The row, qualifier, timestamp, type and value of a cell.
type Cell = (Vec<u8>, Vec<u8>, i64, u8, Vec<u8>);

fn write(cells: &[Cell], options: &[(&str, Value)]) -> Bytes {
    let binary =
        |of: fn(&Cell) -> &[u8]| Arc::new(BinaryArray::from_iter_values(cells.iter().map(of))) as ArrayRef;
    let family: ArrayRef = Arc::new(BinaryArray::from_iter_values(cells.iter().map(|_| b"cf")));
    let timestamp: ArrayRef = Arc::new(Int64Array::from_iter_values(cells.iter().map(|c| c.2)));
    let kind: ArrayRef = Arc::new(UInt8Array::from_iter_values(cells.iter().map(|c| c.3)));
    let batch = RecordBatch::try_from_iter([
        ("row", binary(|c| &c.0)),
        ("family", family),
        ("qualifier", binary(|c| &c.1)),
        ("timestamp", timestamp),
        ("type", kind),
        ("value", binary(|c| &c.4)),
    ])
    .unwrap();
    written(&HFileFormat, &[batch], options).unwrap()
}

fn open(bytes: &Bytes, extra: &[(&str, Value)]) -> HFile {
    let extra: BTreeMap<String, Value> = extra.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    let source = Source::file("test.hfile", Arc::new(bytes.clone()));
    HFile::open(&source, &OpenOptions { extra, ..OpenOptions::default() }).unwrap()
}

fn row(i: usize) -> Vec<u8> {
    format!("row-{i:06}").into_bytes()
}

/// `n` rows, each with a single cell.
fn plain(n: usize) -> Vec<Cell> {
    (0..n).map(|i| (row(i), b"q".to_vec(), 5, 4, format!("value {i:0100}").into_bytes())).collect()
}

#[test]
fn a_look_up_over_a_store_takes_few_requests() {
    let bytes =
        write(&plain(20_000), &[("block_size", Value::Int(16384)), ("index_block_size", Value::Int(2048))]);
    let logged = Arc::new(Logged::with_gap(bytes, 1 << 20));
    let source = Source::file("test.hfile", logged.clone());
    let file = HFile::open(&source, &OpenOptions::default()).unwrap();
    let batches = file.get(&row(12_345)).unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    let first = logged.take();
    assert!(first.iter().map(Vec::len).sum::<usize>() <= 4, "{first:?}");
    // This row is listed by the same leaf of the index, but is in another block.
    let mut requests = Vec::new();
    for i in [12_345, 12_346, 12_600, 12_000] {
        assert_eq!(file.get(&row(i)).unwrap()[0].num_rows(), 1);
        requests.push(logged.take().iter().map(Vec::len).sum::<usize>());
    }
    assert!(requests.iter().all(|n| *n <= 1), "{requests:?}");
    // Many rows: their blocks are read together.
    let many: Vec<Vec<u8>> = (0..20_000).step_by(100).map(row).collect();
    let count: usize = file.get_many(&many).unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(count, 200);
    let requests: usize = logged.take().iter().map(Vec::len).sum();
    assert!(requests < 60, "{requests} requests for 200 rows");
}

#[test]
fn a_filter_on_the_key_reads_only_its_blocks() {
    let bytes = write(&plain(20_000), &[("block_size", Value::Int(4096))]);
    let logged = Arc::new(Logged::new(bytes));
    let file = HFile::open(&Source::file("test.hfile", logged.clone()), &OpenOptions::default()).unwrap();
    logged.take();
    let bound =
        |op, i| Predicate::compare("row", op, Arc::new(BinaryArray::from_iter_values([row(i)])) as ArrayRef);
    let predicate = Predicate::And(vec![bound(Op::Ge, 7_000), bound(Op::Lt, 7_100)]);
    let scan = Scan { predicate: Some(predicate), ..Scan::default() };
    let outcome = rows::scan(&file, &scan, None).unwrap();
    assert_eq!(outcome.batch.num_rows(), 100);
    let read: u64 = logged.take().iter().flatten().map(|r| r.end - r.start).sum();
    assert!(read < 40_000, "{read} bytes read");
}

#[test]
fn row_ranges_respect_their_bounds() {
    let bytes =
        write(&plain(3_000), &[("block_size", Value::Int(1000)), ("index_block_size", Value::Int(300))]);
    let file = open(&bytes, &[]);
    let rows_of = |query: RowQuery| -> Vec<Vec<u8>> {
        let batches: Vec<RecordBatch> = file.scan_rows(&query).unwrap().map(Result::unwrap).collect();
        batches
            .iter()
            .flat_map(|b| b.column(0).as_binary::<i32>().iter().map(|v| v.unwrap().to_vec()))
            .collect()
    };
    let query = |reverse| RowQuery { reverse, batch_rows: 64, ..RowQuery::default() };
    let all: Vec<_> = (0..3_000).map(row).collect();
    assert_eq!(rows_of(query(false)), all);
    let backwards: Vec<_> = all.iter().rev().cloned().collect();
    assert_eq!(rows_of(query(true)), backwards);
    let range = RowQuery { start: Some(row(17)), stop: Some(row(1_500)), ..query(false) };
    assert_eq!(rows_of(range), all[17..1_500]);
    let prefix = RowQuery { prefix: Some(b"row-0012".to_vec()), ..query(true) };
    assert_eq!(rows_of(prefix), backwards[1_700..1_800]);
    assert!(rows_of(RowQuery { start: Some(b"z".to_vec()), ..query(true) }).is_empty());
    assert!(rows_of(RowQuery { stop: Some(b"a".to_vec()), ..query(false) }).is_empty());
}

/// Rows with several columns and versions, some of them deleted.
fn versions() -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for i in 0..700usize {
        let number = |n: i64| n.to_be_bytes().to_vec();
        if i % 7 == 3 {
            cells.push((row(i), Vec::new(), 100, 14, Vec::new())); // the family is deleted
        }
        for version in (0..(i % 90)).rev() {
            let time = i64::try_from(version).unwrap();
            cells.push((row(i), b"a".to_vec(), time, 4, number(time * 10)));
        }
        if i % 5 == 1 {
            cells.push((row(i), b"b".to_vec(), 200, 12, Vec::new())); // the column is deleted
        }
        cells.push((row(i), b"b".to_vec(), 150, 4, format!("text {i}").into_bytes()));
    }
    cells
}

#[test]
fn a_pivot_returns_each_row_once_for_all_splits() {
    let bytes = write(&versions(), &[("block_size", Value::Int(600)), ("index_block_size", Value::Int(400))]);
    let pivot = Value::map([("cf:a", Value::from("long")), ("cf:b", Value::from("string"))]);
    let file = open(&bytes, &[("pivot", pivot)]);
    let expected: Vec<String> = (0..700usize)
        .filter_map(|i| {
            let a = (i % 7 != 3).then(|| (i % 90).checked_sub(1).map(|last| last * 10)).flatten();
            let b = (i % 5 != 1).then(|| format!("text {i}"));
            (a.is_some() || b.is_some()).then(|| format!("{i} {a:?} {b:?}"))
        })
        .collect();
    let show = |batch: &RecordBatch| -> Vec<String> {
        let (key, a, b) =
            (batch.column(0).as_binary::<i32>(), batch.column(1), batch.column(2).as_string::<i32>());
        let a = a.as_primitive::<Int64Type>();
        let rows = key.iter().zip(a.iter()).zip(b.iter());
        rows.map(|((k, a), b)| {
            let i: usize = std::str::from_utf8(&k.unwrap()[4..]).unwrap().parse().unwrap();
            format!("{i} {a:?} {b:?}")
        })
        .collect()
    };
    for target in [u64::MAX, 100_000, 5_000, 700, 90] {
        for batch_rows in [65536, 11] {
            let mut batches = Vec::new();
            for split in file.splits(target).unwrap() {
                let scan = Scan { batch_rows, ..Scan::default() };
                let outcome = rows::scan(&file, &scan, Some(&split)).unwrap();
                assert!(outcome.error.is_none(), "{:?}", outcome.error);
                batches.push(outcome.batch);
            }
            let all = concat_batches(file.schema(), &batches).unwrap();
            assert_eq!(show(&all), expected, "splits of {target} bytes, batches of {batch_rows}");
        }
    }
    // Requesting fewer columns does not change which rows there are.
    let scan = Scan { columns: Some(vec!["cf:b".to_owned()]), ..Scan::default() };
    assert_eq!(rows::scan(&file, &scan, None).unwrap().batch.num_rows(), expected.len());
}

#[test]
fn a_value_of_another_type_is_an_error_or_null() {
    let bytes = write(&plain(3), &[]);
    let file = open(&bytes, &[("pivot", Value::map([("cf:q", Value::from("long"))]))]);
    let outcome = rows::read(&file, OnError::Raise).unwrap();
    let message = outcome.error.unwrap().to_string();
    assert!(message.contains("column \"q\": 106 bytes are not of its type"), "{message}");
    let outcome = rows::read(&file, OnError::Null).unwrap();
    assert_eq!(
        (outcome.batch.num_rows(), outcome.batch.column(1).null_count(), outcome.damage.len()),
        (3, 3, 3)
    );
    let source = Source::file("x", Arc::new(bytes));
    for wrong in [Value::map([("q", Value::from("long"))]), Value::map([("cf:q", Value::from("int128"))])] {
        let extra = BTreeMap::from([("pivot".to_owned(), wrong)]);
        assert!(HFile::open(&source, &OpenOptions { extra, ..OpenOptions::default() }).is_err());
    }
}

#[test]
fn queries_select_versions_and_times() {
    let bytes = write(&versions(), &[("block_size", Value::Int(600))]);
    let file = open(&bytes, &[]);
    let count = |query: RowQuery| -> usize {
        let query = RowQuery { batch_rows: 100, start: Some(row(89)), stop: Some(row(90)), ..query };
        file.scan_rows(&query).unwrap().map(|b| b.unwrap().num_rows()).sum()
    };
    // Row 89 has 89 versions of `a` and one of `b`.
    assert_eq!(count(RowQuery::default()), 90);
    assert_eq!(count(RowQuery { max_versions: Some(3), ..RowQuery::default() }), 4);
    assert_eq!(count(RowQuery { time_range: Some((10, 20)), ..RowQuery::default() }), 10);
    let columns = vec!["cf:a".to_owned()];
    assert_eq!(count(RowQuery { columns, max_versions: Some(2), reverse: true, ..RowQuery::default() }), 2);
    assert_eq!(count(RowQuery { columns: vec!["other".to_owned()], ..RowQuery::default() }), 0);
}

#[test]
fn reading_near_keys_reads_only_their_blocks() {
    let bytes = write(&plain(20_000), &[("block_size", Value::Int(4096))]);
    let logged = Arc::new(Logged::new(bytes));
    let file = HFile::open(&Source::file("test.hfile", logged.clone()), &OpenOptions::default()).unwrap();
    logged.take();
    let wanted = BTreeSet::from([b"a".to_vec(), row(0), row(7_000), row(7_001), row(19_999), b"z".to_vec()]);
    let (mut cells, lie) = CellReader::near(file.raw().clone(), Arc::new(wanted.clone())).unwrap();
    assert!(lie.is_none());
    let mut rows = Vec::new();
    while let Some(cell) = cells.next().unwrap() {
        rows.extend(wanted.get(cell.row).cloned());
    }
    assert_eq!(rows, [row(0), row(7_000), row(7_001), row(19_999)]);
    let read: u64 = logged.take().iter().flatten().map(|r| r.end - r.start).sum();
    assert!(read < 40_000, "{read} bytes read");
}

/// Seeks forwards and backwards, to existing rows and to places before, between and after them, with an index
/// of several levels and without an index.
#[test]
fn a_cell_reader_seeks_rows() {
    let row = |i: usize| format!("row-{:05}", 2 * i).into_bytes();
    // Rows of up to three cells, some of which continue in the next block.
    let cells: Vec<Cell> = (0..400)
        .flat_map(|i| (0..=i % 3).map(move |c| (i, c)))
        .map(|(i, c)| (row(i), format!("q{c}").into_bytes(), 5, 4, vec![b'v'; 40]))
        .collect();
    let small = [("block_size", Value::Int(256)), ("index_block_size", Value::Int(256))];
    let whole = write(&cells, &small);
    let cut = whole.slice(..whole.len() - 4200);
    for bytes in [whole, cut] {
        let file = HFile::open(&Source::file("cells", Arc::new(bytes)), &OpenOptions::default()).unwrap();
        let mut reader = CellReader::new(file.raw().clone());
        let places = [0, 799, 3, 4, 800, 398, 397, 5, 0].map(|n| format!("row-{n:05}").into_bytes());
        for wanted in places.into_iter().chain([Vec::new(), b"a".to_vec(), b"z".to_vec()]) {
            reader.seek(&wanted).unwrap();
            let mut expected = cells.iter().filter(|cell| cell.0 >= wanted);
            for _ in 0..30 {
                let expected = expected.next().map(|c| (c.0.clone(), c.1.clone()));
                let actual = reader.next().unwrap().map(|c| (c.row.to_vec(), c.qualifier.to_vec()));
                assert_eq!(actual, expected, "from {}", wanted.escape_ascii());
            }
        }
    }
}

/// An index without a checksum whose separator was moved: each row is found, by a look-up, a range and a filter, and a
/// notice says why all blocks were read.
#[test]
fn an_index_that_lies_hides_no_row() {
    let options = [
        ("block_size", Value::Int(2048)),
        ("checksum", "null".into()),
        ("codec", "none".into()),
        ("bloom", "none".into()),
    ];
    let bytes = write(&plain(200), &options);
    let file = open(&bytes, &[]);
    assert!(coldframe_core::scan::verify(&file, |_| Ok(())).unwrap().damage.is_empty());
    for missing in ["row-00", "row-000100-", "row-999"] {
        assert_eq!(file.get(missing.as_bytes()).unwrap()[0].num_rows(), 0);
    }
    // The last place of the row that begins a block is in the index.
    let mut first = None;
    for i in 60..120 {
        let places: Vec<usize> =
            (0..bytes.len() - 10).filter(|at| bytes[*at..].starts_with(&row(i))).collect();
        if let [_, in_index] = places[..] {
            first = Some((i, in_index));
            break;
        }
    }
    let (i, place) = first.unwrap();
    for moved in [i - 3, i + 3] {
        let mut lying = bytes.to_vec();
        lying[place..place + 10].copy_from_slice(&row(moved));
        let open = || open(&lying.clone().into(), &[]);
        let all = rows::read(&open(), OnError::Raise).unwrap();
        assert!(all.error.is_none() && all.batch.num_rows() == 200);
        let mut notices = [0; 3];
        for wanted in i - 5..i + 5 {
            let file = open();
            assert_eq!(file.get(&row(wanted)).unwrap()[0].num_rows(), 1, "{wanted}, {moved} instead of {i}");
            notices[0] += file.take_notices().len();
            for reverse in [false, true] {
                let file = open();
                let (start, stop) = (Some(row(wanted)), Some(row(wanted + 2)));
                let query = RowQuery { start, stop, reverse, batch_rows: 64, ..RowQuery::default() };
                let rows: usize =
                    file.scan_rows(&query).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
                assert_eq!(rows, 2, "{wanted}, {moved} instead of {i}");
                notices[1] += file.take_notices().len();
            }
            let (rows, noted) = filtered(open(), wanted);
            assert_eq!(rows, 1, "{wanted}, {moved} instead of {i}");
            notices[2] += noted;
        }
        assert!(notices.iter().all(|noted| *noted > 0), "{notices:?}");
        let damage = coldframe_core::scan::verify(&open(), |_| Ok(())).unwrap().damage;
        assert!(damage.iter().any(|d| d.structure.contains("data index")), "{damage:?}");
    }
}

/// An index whose keys are not sorted: a search in it and a walk through it lead to other blocks.
#[test]
fn an_unsorted_index_hides_no_row_of_many() {
    let options = [
        ("block_size", Value::Int(1024)),
        ("checksum", "null".into()),
        ("codec", "none".into()),
        ("bloom", "none".into()),
    ];
    let bytes = write(&plain(200), &options);
    let all: Vec<Vec<u8>> = (0..200).map(row).collect();
    let mut copies = 0;
    for i in 1..199 {
        let places: Vec<usize> =
            (0..bytes.len() - 10).filter(|at| bytes[*at..].starts_with(&row(i))).collect();
        let [_, in_index] = places[..] else { continue };
        copies += 1;
        // Behind all other keys: by a walk, the block before has all rows.
        let mut lying = bytes.to_vec();
        lying[in_index] += 1;
        let lying = lying.into();
        let pair = [row(i - 3), row((i + 9).min(199))];
        for wanted in [&all[..], &pair[..]] {
            let file = open(&lying, &[]);
            let rows: usize = file.get_many(wanted).unwrap().iter().map(RecordBatch::num_rows).sum();
            assert_eq!(rows, wanted.len(), "the key of row {i} moved");
            let is_noted = !file.take_notices().is_empty();
            assert!(is_noted || wanted.len() < all.len(), "the key of row {i} moved");
        }
        let healthy = open(&bytes, &[]);
        let rows: usize = healthy.get_many(&all).unwrap().iter().map(RecordBatch::num_rows).sum();
        assert_eq!((rows, healthy.take_notices().len()), (200, 0));
    }
    assert!(copies > 2, "{copies}");
}

/// How many rows the filter for one row finds, and how many notices that gives.
fn filtered(file: HFile, wanted: usize) -> (usize, usize) {
    let log = DamageLog::default();
    let value: ArrayRef = Arc::new(BinaryArray::from_vec(vec![&row(wanted)]));
    let predicate = Predicate::Compare { column: "row".to_owned(), op: Op::Eq, value, negated: false };
    let scan = Scan { predicate: Some(predicate), ..Scan::default() };
    let split = file.splits(u64::MAX).unwrap().remove(0);
    let reader = ScanReader::try_new(&file, &scan, &split, log.clone()).unwrap();
    (reader.map(|batch| batch.unwrap().num_rows()).sum(), log.take_notices().len())
}
