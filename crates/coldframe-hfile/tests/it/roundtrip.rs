//! Writes and reads random sorted cells in every encoding, codec, bloom filter and index depth.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder, StructBuilder, UInt8Builder};
use arrow_array::{
    ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, TimestampSecondArray, UInt8Array,
};
use arrow_schema::{DataType, Field, Fields};
use arrow_select::concat::concat_batches;
use coldframe_core::{DamageLog, Format, OpenOptions, Scan, ScanReader, Source, TableFile, Value};
use coldframe_hfile::HFileFormat;
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::written;
use proptest::prelude::*;

/// Row, qualifier, timestamp and type, in file order (timestamp and type descending).
type Key = (Vec<u8>, Vec<u8>, std::cmp::Reverse<i64>, std::cmp::Reverse<u8>);

#[derive(Clone, Debug)]
struct Cell {
    key: Key,
    value: Vec<u8>,
    tags: Vec<(u8, Vec<u8>)>,
    sequence_id: i64,
}

fn cells(most: usize) -> impl Strategy<Value = Vec<Cell>> {
    // With few letters, names often have long common prefixes, and rows are often equal.
    let name = || prop::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(0), any::<u8>()], 0..6);
    let timestamp =
        prop_oneof![Just(1_700_000_000_000i64), 1_700_000_000_000i64..1_700_000_100_000, any::<i64>()];
    let kind = prop_oneof![6 => Just(4u8), 1 => Just(8), 1 => Just(10), 1 => Just(12), 1 => Just(14)];
    let value = prop_oneof![
        Just(b"the same value".to_vec()),
        prop::collection::vec(any::<u8>(), 0..40),
        prop::collection::vec(Just(b'x'), 0..400)
    ];
    let tag = (any::<u8>(), prop::collection::vec(any::<u8>(), 0..9));
    let sequence_id = prop_oneof![Just(0i64), 0..1000i64, 0..i64::MAX];
    let cell = (name(), name(), timestamp, kind, value, prop::collection::vec(tag, 0..3), sequence_id);
    let cell = cell.prop_map(|(row, qualifier, timestamp, kind, value, tags, sequence_id)| Cell {
        key: (row, qualifier, std::cmp::Reverse(timestamp), std::cmp::Reverse(kind)),
        value,
        tags,
        sequence_id,
    });
    prop::collection::vec(cell, 0..most).prop_map(|mut cells| {
        cells.sort_by(|a, b| a.key.cmp(&b.key));
        cells
    })
}

fn tags_of(cells: &[Cell]) -> ArrayRef {
    let fields: Fields =
        vec![Field::new("type", DataType::UInt8, false), Field::new("value", DataType::Binary, false)].into();
    let item = Field::new("item", DataType::Struct(fields.clone()), false);
    let children: Vec<Box<dyn arrow_array::builder::ArrayBuilder>> =
        vec![Box::new(UInt8Builder::new()), Box::new(BinaryBuilder::new())];
    let mut lists = ListBuilder::new(StructBuilder::new(fields, children)).with_field(item);
    for cell in cells {
        for (kind, value) in &cell.tags {
            let tag = lists.values();
            tag.field_builder::<UInt8Builder>(0).unwrap().append_value(*kind);
            tag.field_builder::<BinaryBuilder>(1).unwrap().append_value(value);
            tag.append(true);
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
}

fn batch(cells: &[Cell], with_tags: bool) -> RecordBatch {
    let bytes =
        |of: fn(&Cell) -> &[u8]| Arc::new(BinaryArray::from_iter_values(cells.iter().map(of))) as ArrayRef;
    let long =
        |of: fn(&Cell) -> i64| Arc::new(Int64Array::from_iter_values(cells.iter().map(of))) as ArrayRef;
    let kinds = UInt8Array::from_iter_values(cells.iter().map(|c| c.key.3.0));
    let mut columns = vec![
        ("row", bytes(|c| &c.key.0)),
        ("family", bytes(|_| b"cf")),
        ("qualifier", bytes(|c| &c.key.1)),
        ("timestamp", long(|c| c.key.2.0)),
        ("type", Arc::new(kinds)),
        ("value", bytes(|c| &c.value)),
        ("sequence_id", long(|c| c.sequence_id)),
    ];
    if with_tags {
        columns.insert(6, ("tags", tags_of(cells)));
    }
    RecordBatch::try_from_iter(columns).unwrap()
}

fn write(batch: &RecordBatch, step: usize, options: &[(&str, Value)]) -> coldframe_core::Result<Vec<u8>> {
    let starts = (0..batch.num_rows()).step_by(step);
    let mut parts: Vec<_> = starts.map(|at| batch.slice(at, step.min(batch.num_rows() - at))).collect();
    if parts.is_empty() {
        parts.push(batch.clone());
    }
    written(&HFileFormat, &parts, options).map(Vec::from)
}

fn open(bytes: Vec<u8>) -> Arc<dyn TableFile> {
    let source = Source::file("test.hfile", Arc::new(bytes::Bytes::from(bytes)));
    HFileFormat.open(&source, &OpenOptions::default()).unwrap()
}

fn read(file: &dyn TableFile) -> RecordBatch {
    let mut batches = Vec::new();
    for split in file.splits(1).unwrap() {
        let damage = DamageLog::default();
        let mut reader = ScanReader::try_new(file, &Scan::default(), &split, damage).unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            batches.push(batch);
        }
    }
    concat_batches(file.schema(), &batches).unwrap()
}

/// Checks that the columns of `wanted`, by name, equal the columns of `got`.
fn assert_same(got: &RecordBatch, wanted: &RecordBatch) {
    for (field, column) in wanted.schema().fields().iter().zip(wanted.columns()) {
        let actual = got.column_by_name(field.name()).unwrap();
        let actual = arrow_cast::cast(actual, column.data_type()).unwrap();
        assert_eq!(&actual, column, "{}", field.name());
    }
}

fn options() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let text = |name: &'static str, of: &'static [&'static str]| {
        prop::sample::select(of).prop_map(move |v| (name, Value::from(v)))
    };
    let number = |name: &'static str, of: &'static [i64]| {
        prop::sample::select(of).prop_map(move |v| (name, Value::Int(v)))
    };
    (
        text("codec", &["none", "gz", "snappy", "lz4", "lzo", "zstd", "brotli", "bzip2"]),
        text("encoding", &["none", "prefix", "diff", "fast_diff", "row_index_v1"]),
        text("bloom", &["none", "row", "rowcol"]),
        text("checksum", &["crc32c", "crc32", "null"]),
        number("block_size", &[1, 64, 500, 65536]),
        number("index_block_size", &[1, 100, 131_072]),
        number("index_min_entries", &[2, 16]),
        number("bytes_per_checksum", &[7, 100, 16384]),
        number("bloom_block_size", &[64, 131_072]),
    )
        .prop_map(|(a, b, c, d, e, f, g, h, i)| vec![a, b, c, d, e, f, g, h, i])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn cells_are_the_same_after_writing_and_reading(cells in cells(120), options in options(), step in 1usize..50, with_tags: bool) {
        let batch = batch(&cells, with_tags);
        let file = open(write(&batch, step, &options).unwrap());
        prop_assert_eq!(file.row_count(), Some(cells.len() as u64));
        assert_same(&read(file.as_ref()), &batch);
        assert_tiled(&file.inspect().unwrap());
        prop_assert_eq!(file.verify_structure().unwrap(), vec![]);
    }

    #[test]
    fn pairs_are_the_same_after_writing_and_reading(mut keys in prop::collection::vec("[a-c]{0,4}", 0..200), gz: bool, block_size in 1i64..400) {
        keys.sort();
        let values = BinaryArray::from_iter_values(keys.iter().enumerate().map(|(i, k)| format!("{k} {i}")));
        let columns = [
            ("key", Arc::new(StringArray::from(keys.clone())) as ArrayRef),
            ("value", Arc::new(values) as ArrayRef),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let codec = if gz { "gz" } else { "none" };
        let options = [("codec", Value::from(codec)), ("block_size", Value::Int(block_size))];
        let file = open(write(&batch, 7, &options).unwrap());
        prop_assert_eq!(file.schema().field(0).name(), "key");
        assert_same(&read(file.as_ref()), &batch);
    }
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn refusal(columns: Vec<(&str, ArrayRef)>, options: &[(&str, Value)]) -> String {
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap();
    write(&batch, 2, options).unwrap_err().to_string()
}

#[test]
fn the_error_names_the_first_unsorted_row() {
    let columns = || {
        let times: ArrayRef = Arc::new(Int64Array::from(vec![5, 4, 4, 6]));
        vec![("row", texts(&["a", "a", "a", "a"])), ("family", texts(&["f"; 4])), ("timestamp", times)]
    };
    // Cells with equal keys are in order; a newer cell after an older cell is not in order.
    assert_eq!(
        refusal(columns(), &[]),
        "row 3 is out of order: a/f:/6/Put sorts before row 2, a/f:/4/Put; cells are ordered by row, family, \
         qualifier, newest timestamp first, highest type first"
    );
    let pairs = vec![("key", texts(&["b", "a"])), ("value", texts(&["", ""]))];
    assert!(refusal(pairs, &[]).starts_with("row 1 is out of order: a/:"));
}

#[test]
fn invalid_cells_and_options_are_refused() {
    let time = ("timestamp", Value::Int(7));
    let family = ("family", Value::from("f"));
    let row = || ("row", texts(&["a", "b"]));
    let families = vec![row(), ("family", texts(&["f", "g"]))];
    let fast_diff = ("encoding", Value::from("fast_diff"));
    assert_eq!(
        refusal(families, &[time.clone(), fast_diff]),
        "row 1 has the family \"g\" after \"f\": this encoding allows one family per file"
    );
    for (columns, options, message) in [
        (vec![("value", texts(&["a"]))], vec![], "expected a column \"row\" (of row, family,"),
        (vec![row()], vec![time.clone()], "expected a column \"family\", or the option `family`"),
        (vec![row()], vec![family.clone()], "expected a column \"timestamp\", or the option `timestamp`"),
        (vec![row(), ("colour", texts(&["", ""]))], vec![], "an HFile has the columns row, family,"),
        (
            vec![row(), ("type", texts(&["Put", "Get"]))],
            vec![time.clone(), family.clone()],
            "column \"type\": expected Put, Delete, DeleteFamilyVersion, DeleteColumn, DeleteFamily, found \"Get\"",
        ),
        (
            vec![("row", Arc::new(StringArray::from(vec![Some("a"), None])) as ArrayRef)],
            vec![time.clone(), family.clone()],
            "column \"row\": null in row 1",
        ),
        (
            vec![("key", Arc::new(BinaryArray::from_iter_values([b"a".as_slice(), b"\xff"])) as ArrayRef)],
            vec![],
            "column \"key\": a key of Hudi is text, expected UTF-8 in row 1 of a batch, found \"\\xff\"",
        ),
        (
            vec![row(), ("timestamp", Arc::new(TimestampSecondArray::from(vec![0, i64::MAX])) as ArrayRef)],
            vec![family.clone()],
            "column \"timestamp\": ",
        ),
        (vec![("key", texts(&["a"]))], vec![("codec", Value::from("lz4"))], "codec lz4 in a file for Hudi"),
        (
            vec![row()],
            vec![("codec", Value::from("rar"))],
            "option `codec`: expected \"none\", \"gz\", \"snappy\",",
        ),
        (
            vec![row()],
            vec![("block_size", Value::Int(0))],
            "option `block_size`: expected 1 to 2147483647, found 0",
        ),
        (
            vec![row()],
            vec![("colour", Value::Int(0))],
            "hfile has no option `colour`; it knows: view, family,",
        ),
    ] {
        let error = refusal(columns, &options);
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn absent_columns_have_defaults() {
    let columns = [("row", texts(&["a", "b"])), ("type", texts(&["Put", "DeleteFamily"]))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let options = [
        ("family", Value::from("f")),
        ("timestamp", Value::Int(7)),
        ("metadata", Value::map([("purpose", Value::from("a test"))])),
        ("meta_blocks", Value::map([("note", Value::from("in a block of its own"))])),
        ("create_time", Value::Int(1)),
    ];
    let bytes = write(&batch, 1, &options).unwrap();
    assert_eq!(bytes, write(&batch, 2, &options).unwrap());
    let file = open(bytes);
    let wanted = [
        ("row", texts(&["a", "b"])),
        ("family", texts(&["f", "f"])),
        ("qualifier", texts(&["", ""])),
        ("timestamp", Arc::new(Int64Array::from(vec![7, 7])) as ArrayRef),
        ("type", Arc::new(UInt8Array::from(vec![4, 14]))),
        ("value", texts(&["", ""])),
        ("sequence_id", Arc::new(Int64Array::from(vec![0, 0]))),
    ];
    assert_same(&read(file.as_ref()), &RecordBatch::try_from_iter(wanted).unwrap());
    let metadata = file.metadata().unwrap();
    let info = metadata.get("file_info").unwrap();
    assert_eq!(info.get("purpose"), Some(&Value::from("a test")));
    assert_eq!(info.get("BULKLOAD_SOURCE_TASK"), Some(&Value::from("coldframe")));
    let names: Vec<&str> = ["version", "comparator"]
        .map(|name| match metadata.get(name) {
            Some(Value::Str(s)) => s.as_str(),
            _ => "",
        })
        .to_vec();
    assert_eq!(names, ["3.3", "org.apache.hadoop.hbase.KeyValue$KVComparator"]);
}
