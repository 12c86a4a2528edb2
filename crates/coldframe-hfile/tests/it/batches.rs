//! Batches of a scan: their sizes, and the removal of blocks that turn out to be damaged.

use std::sync::Arc;

use arrow_array::Array as _;
use arrow_array::cast::AsArray;
use arrow_array::{
    ArrayRef, BinaryArray, Int64Array, ListArray, RecordBatch, RecordBatchOptions, StructArray, UInt8Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use coldframe_core::options::Strings;
use coldframe_core::{
    DamageLog, Node, OnError, Op, OpenOptions, Predicate, Scan, ScanReader, Source, TableFile, Value,
};
use coldframe_hfile::{Cell, Columns, HFile, HFileFormat, View, schema_of};
use coldframe_testing::{rows, written};

/// A file with one cell per row, written with these options.
fn write(keys: &[Vec<u8>], options: &[(&str, Value)]) -> Bytes {
    let rows: ArrayRef = Arc::new(BinaryArray::from_iter_values(keys));
    let families: ArrayRef = Arc::new(BinaryArray::from_iter_values(keys.iter().map(|_| b"f")));
    let batch = RecordBatch::try_from_iter([("row", rows), ("family", families)]).unwrap();
    let fixed = [("block_size", Value::Int(2048)), ("timestamp", Value::Int(5))];
    written(&HFileFormat, &[batch], &[options, &fixed].concat()).unwrap()
}

fn open(bytes: &Bytes, view: &str) -> HFile {
    let mut options = OpenOptions::default();
    options.extra.insert("view".to_owned(), Value::from(view));
    HFile::open(&Source::file("test.hfile", Arc::new(bytes.clone())), &options).unwrap()
}

fn key(i: usize) -> Vec<u8> {
    format!("row-{i:06}").into_bytes()
}

/// The data blocks of a layout.
fn data_blocks(node: &Node) -> usize {
    let own = usize::from(node.name.ends_with("data block"));
    own + node.children.iter().map(data_blocks).sum::<usize>()
}

#[test]
fn batches_are_full_up_to_their_maximum() {
    let keys: Vec<Vec<u8>> = (0..2_000).map(key).collect();
    for options in [&[][..], &[("encoding", Value::from("fast_diff"))], &[("codec", Value::from("gz"))]] {
        let file = open(&write(&keys, options), "cells");
        for most in [1, 7, 50, 1_000, 65_536] {
            let scan = Scan { batch_rows: most, ..Scan::default() };
            let split = file.splits(u64::MAX).unwrap().remove(0);
            let mut reader = ScanReader::try_new(&file, &scan, &split, DamageLog::default()).unwrap();
            let mut read = Vec::new();
            let mut batches = 0;
            while let Some(batch) = reader.next_batch().unwrap() {
                assert!(batch.num_rows() <= most);
                batches += 1;
                read.extend(batch.column(0).as_binary::<i32>().iter().map(|row| row.unwrap().to_vec()));
            }
            assert!(read == keys, "batches of {most}");
            // Blocks are divided only if they have more rows than a batch.
            let fewest = keys.len().div_ceil(most);
            assert!(batches <= 2 * fewest + data_blocks(&file.inspect().unwrap()), "{batches} of {most}");
        }
    }
}

/// A scan that decodes the filter's columns first, and the other columns only for cells that pass, gives the
/// same cells as filtering afterwards.
#[test]
fn filtered_scans_equal_filtered_results() {
    let rows: ArrayRef = Arc::new(BinaryArray::from_iter_values((0..5_000).map(key)));
    let families: ArrayRef = Arc::new(BinaryArray::from_iter_values((0..5_000).map(|_| b"f")));
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values((0..5_000).map(|i| i * 7_919 % 5_000)));
    let values: ArrayRef = Arc::new(BinaryArray::from_iter_values((0..5_000).map(|i| vec![b'x'; i % 50])));
    let columns = [("row", rows), ("family", families), ("timestamp", times), ("value", values)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let value = |n: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![n])) };
    let text = |text: &[u8]| -> ArrayRef { Arc::new(BinaryArray::from(vec![text])) };
    let filters = [
        Predicate::compare("timestamp", Op::Lt, value(10)),
        Predicate::compare("timestamp", Op::Ge, value(10)),
        Predicate::compare("timestamp", Op::Lt, value(-1)),
        Predicate::compare("value", Op::Eq, text(b"xxx")),
        Predicate::And(vec![
            Predicate::compare("timestamp", Op::Lt, value(2_000)),
            Predicate::compare("row", Op::Ge, text(&key(3_000))),
        ]),
    ];
    for options in [&[][..], &[("encoding", Value::from("fast_diff"))], &[("codec", Value::from("gz"))]] {
        let options = [options, &[("block_size", Value::Int(2048))]].concat();
        let file = open(&written(&HFileFormat, std::slice::from_ref(&batch), &options).unwrap(), "cells");
        let all = rows::read(&file, OnError::Raise).unwrap().batch;
        for filter in &filters {
            let expected = filter_record_batch(&all, &filter.evaluate(&all).unwrap()).unwrap();
            for most in [1, 100, 65_536] {
                let scan = Scan { predicate: Some(filter.clone()), batch_rows: most, ..Scan::default() };
                let outcome = rows::scan(&file, &scan, None).unwrap();
                assert!(
                    outcome.error.is_none() && outcome.batch == expected,
                    "{filter:?}, batches of {most}"
                );
                let views = Scan { strings: Some(Strings::View), ..scan.clone() };
                let outcome = rows::scan(&file, &views, None).unwrap();
                outcome.batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
                assert!(outcome.error.is_none(), "{:?}", outcome.error);
                assert!(
                    rows::as_text(&outcome.batch) == rows::as_text(&expected),
                    "{filter:?}, views of {most}"
                );
                let scan = Scan { columns: Some(vec!["row".to_owned()]), ..scan };
                let batch = rows::scan(&file, &scan, None).unwrap().batch;
                assert_eq!(batch.column(0), expected.column(0), "{filter:?}, batches of {most}");
            }
        }
    }
}

#[test]
fn a_block_with_a_key_that_is_not_text_is_dropped_whole() {
    let mut keys: Vec<Vec<u8>> = (0..1_000).map(key).collect();
    keys[500] = b"row-000500\xff".to_vec();
    for encoding in ["none", "fast_diff", "prefix", "diff", "row_index_v1"] {
        let bytes = write(&keys, &[("encoding", Value::from(encoding))]);
        let file = open(&bytes, "kv");
        let raised = rows::read(&file, OnError::Raise).unwrap();
        let error = raised.error.unwrap().to_string();
        assert!(error.contains("key: expected UTF-8"), "{error}");
        let skipped = rows::read(&file, OnError::Skip).unwrap();
        assert!(skipped.error.is_none() && skipped.damage.len() == 1, "{:?}", skipped.damage);
        let lost = keys.len() - skipped.batch.num_rows();
        assert!((2..100).contains(&lost), "{lost} rows lost");
        let left = skipped.batch.column(0).as_string::<i32>();
        assert!(left.iter().all(|key| keys.contains(&key.unwrap().as_bytes().to_vec())));
        // In the view `cells` the file is valid.
        assert_eq!(rows::read(&open(&bytes, "cells"), OnError::Raise).unwrap().batch.num_rows(), keys.len());
    }
}

/// Where `wanted` begins in `bytes`.
fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).position(|window| window == wanted).unwrap()
}

/// Files with one broken cell (a tag, a type, a key that is not text), the view in which it is broken, and a part of the reason.
fn files_with_a_broken_cell() -> [(Bytes, &'static str, &'static str); 3] {
    const ROWS: usize = 1_000;
    let mut keys: Vec<Vec<u8>> = (0..ROWS).map(key).collect();
    keys[500] = b"row-000500\xff".to_vec();
    let binary = |of: &dyn Fn(usize) -> Vec<u8>| -> ArrayRef {
        Arc::new(BinaryArray::from_iter_values((0..ROWS).map(of)))
    };
    let kinds: ArrayRef = Arc::new(UInt8Array::from(vec![9; ROWS]));
    let tags = StructArray::from(vec![
        (Arc::new(Field::new("type", DataType::UInt8, false)), kinds),
        (
            Arc::new(Field::new("value", DataType::Binary, false)),
            binary(&|i| format!("tag {i:04}").into_bytes()),
        ),
    ]);
    let item = Arc::new(Field::new_list_field(tags.data_type().clone(), false));
    let tags = ListArray::new(item, OffsetBuffer::from_lengths(vec![1; ROWS]), Arc::new(tags), None);
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values((0..1_000).map(|i| 2 * i)));
    let columns = [
        ("row", binary(&|i| keys[i].clone())),
        ("family", binary(&|_| b"f".to_vec())),
        ("timestamp", times),
        ("value", binary(&|i| format!("a long value with the number {:04}", 2 * i).into_bytes())),
        ("tags", Arc::new(tags) as ArrayRef),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let options = [("block_size", Value::Int(2048)), ("checksum", Value::from("null"))];
    let bytes = written(&HFileFormat, &[batch], &options).unwrap();
    let (mut tagged, mut typed) = (bytes.to_vec(), bytes.to_vec());
    // Damages the length of a tag, which precedes its type and value.
    tagged[find(&bytes, b"tag 0500") - 2] += 1;
    // Damages the type of a cell, which follows row, family and timestamp.
    typed[find(&bytes, &keys[500]) + keys[500].len() + 2 + 8] = 77;
    [(tagged.into(), "cells", "tag"), (typed.into(), "cells", "cell type"), (bytes, "kv", "UTF-8")]
}

/// The cells with one of these numbers.
fn numbered(view: &str, numbers: &[i64]) -> Predicate {
    let compare = |i: &i64| match view {
        "kv" => {
            let value = BinaryArray::from_iter_values([format!("a long value with the number {i:04}")]);
            Predicate::compare("value", Op::Eq, Arc::new(value))
        }
        _ => Predicate::compare("timestamp", Op::Eq, Arc::new(Int64Array::from(vec![*i]))),
    };
    Predicate::Or(numbers.iter().map(compare).collect())
}

/// This holds even if the broken cell does not pass the filter, and if the filter does not read the broken
/// part of the cell.
#[test]
fn filtered_and_full_scans_lose_the_same_blocks() {
    for (bytes, view, reason) in files_with_a_broken_cell() {
        let mut named = OpenOptions::default();
        named.extra.extend([("view", view), ("types", "name")].map(|(k, v)| (k.to_owned(), Value::from(v))));
        let file = HFile::open(&Source::file("test.hfile", Arc::new(bytes)), &named).unwrap();
        let full = rows::read(&file, OnError::Skip).unwrap();
        assert!(full.error.is_none() && full.damage.len() == 1, "{:?}", full.damage);
        assert!(full.damage[0].reason.contains(reason), "{:?}", full.damage);
        let raised = rows::read(&file, OnError::Raise).unwrap().error.unwrap().to_string();
        // Cells pass before and after the block of the broken cell and in it; only in that block; or nowhere.
        for passing in [&[6, 600, 998, 1_002, 1_998][..], &[998], &[1_001]] {
            let filter = numbered(view, passing);
            let expected = filter_record_batch(&full.batch, &filter.evaluate(&full.batch).unwrap()).unwrap();
            for strings in [None, Some(Strings::View)] {
                let scan = Scan { predicate: Some(filter.clone()), strings, ..Scan::default() };
                let error = rows::scan(&file, &scan, None).unwrap().error.unwrap().to_string();
                assert_eq!(error, raised, "{passing:?}");
                let outcome = rows::scan(&file, &Scan { on_error: OnError::Skip, ..scan }, None).unwrap();
                assert!(outcome.error.is_none(), "{:?}", outcome.error);
                assert_eq!(outcome.damage, full.damage, "{passing:?}");
                assert_eq!(rows::as_text(&outcome.batch), rows::as_text(&expected), "{passing:?}");
            }
        }
    }
}

#[test]
fn a_scan_of_no_columns_counts_rows() {
    let keys: Vec<Vec<u8>> = (0..300).map(key).collect();
    let file = open(&write(&keys, &[("encoding", Value::from("diff"))]), "cells");
    let scan = Scan { columns: Some(Vec::new()), batch_rows: 100, ..Scan::default() };
    let outcome = rows::scan(&file, &scan, None).unwrap();
    let none = RecordBatchOptions::new().with_row_count(Some(300));
    let schema = outcome.batch.schema();
    assert_eq!(outcome.batch, RecordBatch::try_new_with_options(schema, Vec::new(), &none).unwrap());
}

#[test]
fn views_and_dictionaries_have_the_same_cells() {
    let long = |i: usize| format!("a long row with the number {i:06}").into_bytes();
    let keys: Vec<Vec<u8>> = (0..2_000).map(|i| if i % 3 == 0 { long(i) } else { key(i) }).collect();
    let mut keys = keys;
    keys.sort();
    for options in [&[][..], &[("encoding", Value::from("fast_diff"))], &[("codec", Value::from("gz"))]] {
        let bytes = write(&keys, options);
        for (view, dictionary) in [("cells", false), ("cells", true), ("kv", false)] {
            let mut keyed = OpenOptions::default();
            keyed.extra.insert("view".to_owned(), Value::from(view));
            keyed.extra.insert("dictionary".to_owned(), Value::Bool(dictionary));
            let keyed = HFile::open(&Source::file("test.hfile", Arc::new(bytes.clone())), &keyed).unwrap();
            for most in [7, 65_536] {
                let scan = Scan { batch_rows: most, ..Scan::default() };
                let views = Scan { strings: Some(Strings::View), ..scan.clone() };
                let plain = rows::scan(&open(&bytes, view), &scan, None).unwrap().batch;
                for scan in [&scan, &views] {
                    let batch = rows::scan(&keyed, scan, None).unwrap().batch;
                    batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
                    assert!(rows::as_text(&batch) == rows::as_text(&plain), "{view}, {dictionary}, {most}");
                }
            }
        }
    }
}

/// Cells whose parts have different lengths, so that copying them takes each of the code paths.
fn cells(text: &str) -> Vec<Cell<'_>> {
    let part = |at: usize, len: usize| &text.as_bytes()[at..][..len];
    let cell = |i: usize| Cell {
        row: part(i % 7, i % 40),
        family: part(i % 3, i / 5 % 6),
        qualifier: part(i % 5, i / 2 % 35),
        timestamp: i.try_into().unwrap(),
        kind: 4,
        value: part(i % 11, i * 3 % 70),
        tags: if i.is_multiple_of(5) { b"\0\x02\x01x" } else { b"" },
        sequence_id: i.try_into().unwrap(),
    };
    (0..300).map(cell).collect()
}

#[test]
fn appending_cells_together_equals_appending_them_singly() {
    let text = "abcdefghi".repeat(10);
    for (view, names, dictionary) in
        [(View::Cells, false, false), (View::Cells, true, true), (View::KeyValue, false, false)]
    {
        let new = || Columns::new(schema_of(view, names, dictionary), 1_000).unwrap();
        let (mut singly, mut together, mut waiting) = (new(), new(), Vec::new());
        for cell in &cells(&text) {
            singly.push(cell).unwrap();
            together.push_later(cell, &mut waiting).unwrap();
        }
        together.append_waiting(&mut waiting).unwrap();
        assert_eq!(singly.finish().unwrap(), together.finish().unwrap());
    }
}

#[test]
fn appending_cells_together_fails_for_all_cells_or_no_cell() {
    let text = "abcdefghi".repeat(10);
    let mut cells = cells(&text);
    let mut columns = Columns::new(schema_of(View::Cells, true, false), 1_000).unwrap();
    columns.append_waiting(&mut cells[..100].to_vec()).unwrap();
    cells[150].kind = 99;
    let e = columns.append_waiting(&mut cells[100..].to_vec()).unwrap_err();
    assert!(e.to_string().contains("found 99"), "{e}");
    assert_eq!(columns.finish().unwrap().num_rows(), 100);
}
