//! What is written is read back: random nested tables, both dialects, all codecs, pages and row groups of all
//! sizes.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, Float32Array, Float64Array, Int32Array,
    Int64Array, ListArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema};
use arrow_select::concat::concat_batches;
use coldframe_core::{
    DamageLog, Format as _, OnError, OpenOptions, Scan, ScanReader, Source, TableFile, Value,
};
use coldframe_redfile::write::{Codec, Dialect, Encoding, WriteOptions, Writer};
use coldframe_redfile::{RedFile, RedfileFormat};
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::rows;
use proptest::prelude::*;

fn write(batch: &RecordBatch, step: usize, options: WriteOptions) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &batch.schema(), options).unwrap();
    for start in (0..batch.num_rows()).step_by(step) {
        writer.write(&batch.slice(start, step.min(batch.num_rows() - start))).unwrap();
    }
    writer.finish().unwrap().0
}

fn open(bytes: Vec<u8>, extra: &[(&str, Value)]) -> coldframe_core::Result<RedFile> {
    let extra = extra.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    RedFile::open(
        &Source::file("test.redfile", Arc::new(bytes::Bytes::from(bytes))),
        &OpenOptions { extra, ..OpenOptions::default() },
    )
}

fn read(file: &RedFile) -> RecordBatch {
    read_by(file, Scan::default().batch_rows)
}

/// Reads all rows in batches of at most `batch_rows`.
fn read_by(file: &RedFile, batch_rows: usize) -> RecordBatch {
    let scan = Scan { batch_rows, ..Scan::default() };
    let mut batches = Vec::new();
    for split in file.splits(1).unwrap() {
        let damage = DamageLog::default();
        let mut reader = ScanReader::try_new(file, &scan, &split, damage).unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            batches.push(batch);
        }
    }
    concat_batches(file.schema(), &batches).unwrap()
}

/// A field's type, without names.
#[derive(Clone, Debug)]
enum Shape {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    Binary,
    Text,
    List(bool, Box<Shape>),
    Struct(Vec<(bool, Shape)>),
}

fn shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        Just(Shape::Boolean),
        Just(Shape::Int32),
        Just(Shape::Int64),
        Just(Shape::Int96),
        Just(Shape::Float),
        Just(Shape::Double),
        Just(Shape::Binary),
        Just(Shape::Text),
    ];
    leaf.prop_recursive(5, 12, 3, |inner| {
        prop_oneof![
            (any::<bool>(), inner.clone()).prop_map(|(null, item)| Shape::List(null, Box::new(item))),
            prop::collection::vec((any::<bool>(), inner), 1..4).prop_map(Shape::Struct),
        ]
    })
}

/// A random number generator of these tests. An array depends on a single number, so that proptest can reduce
/// failures to small shapes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 29) ^ (self.0 >> 50)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Runs of values or of nulls, whose lengths differ from array to array.
    fn nulls(&mut self, len: usize, null: bool) -> Option<NullBuffer> {
        let longest = 1 + self.below(20);
        let mut valid = Vec::new();
        while valid.len() < len {
            let run = usize::try_from(1 + self.below(longest)).unwrap();
            let value = self.below(3) > 0;
            valid.resize(valid.len() + run, value);
        }
        valid.truncate(len);
        null.then(|| NullBuffer::from(valid))
    }

    fn integer(&mut self) -> i64 {
        let shift = self.below(64);
        (self.next().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift).cast_signed()
            * (1 - 2 * i64::from(self.below(2) == 0))
    }

    fn array(&mut self, shape: &Shape, len: usize, null: bool) -> ArrayRef {
        let nulls = self.nulls(len, null);
        let n = 0..len;
        let low = |r: &mut Self| i32::from_le_bytes(r.integer().to_le_bytes()[..4].try_into().unwrap());
        match shape {
            Shape::Boolean => {
                let values = n.map(|_| self.below(2) == 1).collect::<Vec<_>>();
                Arc::new(BooleanArray::new(values.into(), nulls))
            }
            Shape::Int32 => Arc::new(Int32Array::new(n.map(|_| low(self)).collect(), nulls)),
            Shape::Int64 => Arc::new(Int64Array::new(n.map(|_| self.integer()).collect(), nulls)),
            Shape::Int96 => {
                let bytes: Vec<u8> = (0..len * 12).map(|_| self.next().to_le_bytes()[0]).collect();
                Arc::new(FixedSizeBinaryArray::new(12, bytes.into(), nulls))
            }
            Shape::Float => Arc::new(Float32Array::new(
                n.map(|_| f32::from_bits(low(self).cast_unsigned() >> 2)).collect(),
                nulls,
            )),
            Shape::Double => {
                let values = n.map(|_| f64::from_bits(self.integer().cast_unsigned() >> 2)).collect();
                Arc::new(Float64Array::new(values, nulls))
            }
            Shape::Binary | Shape::Text => {
                let texts: Vec<String> = n
                    .map(|_| "abcdefghijklmnopqrstu"[..usize::try_from(self.below(22)).unwrap()].to_owned())
                    .collect();
                let valid = |i: usize| nulls.as_ref().is_none_or(|n| n.is_valid(i));
                let texts = texts.iter().enumerate().map(|(i, t)| valid(i).then_some(t));
                if matches!(shape, Shape::Text) {
                    Arc::new(texts.collect::<StringArray>())
                } else {
                    Arc::new(texts.map(|t| t.map(String::as_bytes)).collect::<BinaryArray>())
                }
            }
            Shape::List(null, item) => {
                let most = 1 + self.below(5);
                let lengths: Vec<usize> = n.map(|_| usize::try_from(self.below(most)).unwrap()).collect();
                let items = self.array(item, lengths.iter().sum(), *null);
                let field = Arc::new(Field::new("element", items.data_type().clone(), *null));
                Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(lengths), items, nulls))
            }
            Shape::Struct(children) => {
                let arrays: Vec<ArrayRef> =
                    children.iter().map(|(null, c)| self.array(c, len, *null)).collect();
                let fields = children.iter().zip(&arrays).enumerate();
                let fields: Fields = fields
                    .map(|(i, ((null, _), a))| Field::new(format!("f{i}"), a.data_type().clone(), *null))
                    .collect();
                Arc::new(StructArray::new(fields, arrays, nulls))
            }
        }
    }

    fn batch(&mut self, shapes: &[(bool, Shape)], rows: usize) -> RecordBatch {
        let columns: Vec<ArrayRef> = shapes.iter().map(|(null, s)| self.array(s, rows, *null)).collect();
        let fields = shapes.iter().zip(&columns).enumerate();
        let fields: Fields = fields
            .map(|(i, ((null, _), a))| Field::new(format!("c{i}"), a.data_type().clone(), *null))
            .collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }
}

/// Checks that batches are equal, which they are if their valid values are.
fn assert_same(actual: &RecordBatch, expected: &RecordBatch) {
    assert_eq!(actual.schema().fields(), expected.schema().fields());
    for (i, (actual, expected)) in actual.columns().iter().zip(expected.columns()).enumerate() {
        assert_eq!(actual, expected, "column {i}");
    }
}

const CODECS: [Codec; 4] = [Codec::None, Codec::Snappy, Codec::Gzip, Codec::Lzo];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_table_is_the_same_after_writing_and_reading(
        shapes in prop::collection::vec((any::<bool>(), shape()), 1..5),
        seed: u64,
        rows in 0usize..700,
        step in 1usize..700,
        page_bytes in prop_oneof![0usize..300, Just(8192)],
        row_group_bytes in prop_oneof![0u64..20_000, Just(50 << 20)],
        batch_rows in prop_oneof![1usize..100, Just(65536)],
        codec in 0usize..4,
        flags: [bool; 4],
    ) {
        let [spec, crc, group_var_int, footers] = flags;
        let batch = Random(seed).batch(&shapes, rows);
        let options = WriteOptions {
            dialect: if spec { Dialect::Spec } else { Dialect::RedelmF },
            codec: CODECS[codec],
            page_bytes,
            row_group_bytes,
            crc,
            encoding: if group_var_int { Encoding::GroupVarInt } else { Encoding::Plain },
            footer_every: footers.then_some(2),
            sync_seed: Some(seed),
            ..WriteOptions::default()
        };
        let bytes = write(&batch, step, options.clone());
        // The size of the batches makes no difference to the file.
        prop_assert_eq!(&bytes, &write(&batch, rows.max(1), options));
        let dialect = if spec { "spec" } else { "redelm-f" };
        for extra in [&[("dialect", Value::from(dialect))][..], &[]] {
            assert_same(&read_by(&open(bytes.clone(), extra).unwrap(), batch_rows), &batch);
        }
    }
}

fn numbers(rows: Range<i32>) -> RecordBatch {
    let array: ArrayRef = Arc::new(Int32Array::from_iter_values(rows));
    RecordBatch::try_from_iter_with_nullable([("n", array, false)]).unwrap()
}

/// Batches have many pages, end with a page, or are a part of a page.
#[test]
fn numbers_are_read_from_pages_of_all_sizes() {
    let batch = numbers(-700..6300);
    for codec in CODECS {
        for page_bytes in [64, 4000, 1 << 20] {
            let options = WriteOptions { codec, page_bytes, crc: true, ..WriteOptions::default() };
            let bytes = write(&batch, 7000, options);
            let file = open(bytes.clone(), &[]).unwrap();
            for batch_rows in [1, 17, 1000, 1001, 7000] {
                assert_same(&read_by(&file, batch_rows), &batch);
            }
        }
    }
}

/// Tests the "Potential extension" of the README.
#[test]
fn a_file_cut_off_anywhere_is_read_up_to_its_last_footer() {
    let batch = numbers(0..3000);
    let options = WriteOptions {
        row_group_bytes: 800,
        page_bytes: 100,
        footer_every: Some(2),
        sync_seed: Some(1),
        ..WriteOptions::default()
    };
    let bytes = write(&batch, 3000, options);
    let recover = [("recover", Value::Bool(true))];
    let whole = open(bytes.clone(), &[]).unwrap();
    assert_eq!(read(&whole), batch);
    let mut rows = Vec::new();
    for end in (0..bytes.len()).step_by(97) {
        let cut = bytes[..end].to_vec();
        if open(cut.clone(), &[]).is_ok() {
            continue; // cut right after a footer: a complete file
        }
        match open(cut, &recover) {
            Ok(file) => {
                let recovered = rows::read(&file, OnError::Skip).unwrap().batch;
                assert_eq!(recovered, batch.slice(0, recovered.num_rows()));
                rows.push(recovered.num_rows());
            }
            Err(_) => rows.push(0),
        }
    }
    assert!(rows.is_sorted() && rows.first() == Some(&0) && *rows.last().unwrap() > 2000, "{rows:?}");
    let distinct = rows.iter().collect::<std::collections::BTreeSet<_>>().len();
    assert!(distinct > 3, "{rows:?}");
}

#[test]
fn arrays_of_other_types_are_cast() {
    use arrow_array::{Int16Array, LargeBinaryArray, LargeListArray, TimestampNanosecondArray};

    let items: ArrayRef = Arc::new(Int16Array::from(vec![1, 2, 3]));
    let item = Arc::new(Field::new("item", DataType::Int16, false));
    let lists = LargeListArray::new(item, OffsetBuffer::from_lengths([1, 0, 2]), items, None);
    let times = TimestampNanosecondArray::from(vec![0, -1, 86_400_000_000_001]);
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("b", Arc::new(LargeBinaryArray::from_vec(vec![b"x", b"", b"yz"])) as ArrayRef, false),
        ("l", Arc::new(lists) as ArrayRef, false),
        ("t", Arc::new(times) as ArrayRef, false),
    ])
    .unwrap();
    let bytes = write(&batch, 3, WriteOptions::default());
    let cast = read(&open(bytes.clone(), &[("int96", Value::from("timestamp"))]).unwrap());
    assert_eq!(cast.column(0).as_ref(), &BinaryArray::from_vec(vec![b"x", b"", b"yz"]) as &dyn Array);
    assert_eq!(cast.column(2), batch.column(2));
    let list = cast.column(1).as_any().downcast_ref::<ListArray>().unwrap();
    assert_eq!(list.values().as_ref(), &Int32Array::from(vec![1, 2, 3]) as &dyn Array);
    assert_eq!(list.value_offsets(), [0, 1, 1, 3]);
}

/// Repeated values: a dictionary or runs give the same file as the values themselves.
#[test]
fn dictionaries_and_runs_are_written_as_their_values() {
    use arrow_array::types::Int32Type;
    use arrow_array::{DictionaryArray, RunArray};

    let texts = ["a", "bb", "", "ccc"];
    let values: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    let keys = Int32Array::from_iter((0..1000).map(|i| (i % 7 != 0).then_some(i % 4)));
    let plain: ArrayRef =
        Arc::new(keys.iter().map(|k| k.map(|k| texts[usize::try_from(k).unwrap()])).collect::<StringArray>());
    let dictionary: ArrayRef = Arc::new(DictionaryArray::new(keys, values.clone()));
    let ends = Int32Array::from(vec![10, 300, 999, 1000]);
    let runs: ArrayRef = Arc::new(RunArray::<Int32Type>::try_new(&ends, &values).unwrap());
    let run = |i: i32| texts[ends.values().partition_point(|end| *end <= i)];
    let unrolled: ArrayRef = Arc::new((0..1000).map(|i| Some(run(i))).collect::<StringArray>());
    let given =
        RecordBatch::try_from_iter_with_nullable([("d", dictionary, true), ("r", runs, true)]).unwrap();
    let expected =
        RecordBatch::try_from_iter_with_nullable([("d", plain, true), ("r", unrolled, true)]).unwrap();
    for step in [1000, 333] {
        let bytes = write(&given, step, WriteOptions::default());
        assert_eq!(bytes, write(&expected, step, WriteOptions::default()));
        assert_same(&read(&open(bytes, &[]).unwrap()), &expected);
    }
}

/// 300 rows of a dictionary's only value of a megabyte, and 9,000 rows of lists of 2,100 numbers: batches end
/// before they get too long, and nothing is recorded as damage.
#[test]
fn batches_of_long_rows_have_fewer_rows() {
    use arrow_array::DictionaryArray;
    use coldframe_core::OnError;

    let text = "x".repeat(1 << 20);
    let texts: ArrayRef = Arc::new(StringArray::from(vec![text.as_str()]));
    let long: ArrayRef = Arc::new(DictionaryArray::new(Int32Array::from(vec![0; 300]), texts));
    let item = Arc::new(Field::new("element", DataType::Int64, false));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7; 9000 * 2100]));
    let offsets = OffsetBuffer::from_repeated_length(2100, 9000);
    let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, numbers, None));
    for (column, rows) in [(long, 300), (lists, 9000)] {
        let batch = RecordBatch::try_from_iter_with_nullable([("c", column, false)]).unwrap();
        let options = WriteOptions {
            codec: Codec::Snappy,
            page_bytes: 1 << 20,
            row_group_bytes: 1 << 30,
            ..WriteOptions::default()
        };
        let file = open(write(&batch, rows, options), &[]).unwrap();
        assert_eq!(file.groups().len(), 1);
        for on_error in [OnError::Raise, OnError::Skip] {
            let damage = DamageLog::default();
            let scan = Scan { on_error, ..Scan::default() };
            let [split] = file.splits(u64::MAX).unwrap().try_into().unwrap();
            let mut reader = ScanReader::try_new(&file, &scan, &split, damage.clone()).unwrap();
            let mut total = 0;
            while let Some(batch) = reader.next_batch().unwrap() {
                assert!(batch.get_array_memory_size() < 300 << 20, "{}", batch.get_array_memory_size());
                assert!(batch.num_rows() < rows);
                total += batch.num_rows();
            }
            assert_eq!((total, damage.len()), (rows, 0));
        }
    }
}

/// Input that could not be read back, or contradicts its field, is an error about the input, not about a
/// file.
#[test]
fn unwritable_input_is_refused_by_name() {
    use coldframe_core::ErrorKind;

    let refused = |batch: &RecordBatch| {
        let mut writer = Writer::new(Vec::new(), &batch.schema(), WriteOptions::default())?;
        writer.write(batch)
    };
    let numbers = |rows: i32| Arc::new(Int32Array::from_iter_values(0..rows)) as ArrayRef;
    let twice = Schema::new(["a", "b", "a"].map(|n| Field::new(n, DataType::Int32, false)).to_vec());
    let twice = RecordBatch::try_new(Arc::new(twice), vec![numbers(2), numbers(2), numbers(2)]).unwrap();
    let inner: Fields = ["x", "x"].map(|n| Field::new(n, DataType::Int32, false)).to_vec().into();
    let group: ArrayRef = Arc::new(StructArray::new(inner, vec![numbers(2), numbers(2)], None));
    let group = RecordBatch::try_from_iter_with_nullable([("g", group, false)]).unwrap();
    let mut deep = numbers(1);
    for _ in 0..140 {
        let field = Arc::new(Field::new("element", deep.data_type().clone(), true));
        deep = Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([1]), deep, None));
    }
    let deep = RecordBatch::try_from_iter_with_nullable([("deep", deep, true)]).unwrap();
    for (batch, expected) in [(&twice, "two of the name `a`"), (&group, "column `g`"), (&deep, "max_depth")] {
        let e = refused(batch).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Schema(_)) && e.to_string().contains(expected), "{e}");
    }

    // The writer checks nulls by its own schema, not by the batch's: here only the writer's column is not nullable.
    let schema = Schema::new(vec![Field::new("n", DataType::Int32, false)]);
    let mut writer = Writer::new(Vec::new(), &schema, WriteOptions::default()).unwrap();
    let null: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), None]));
    let batch = RecordBatch::try_from_iter_with_nullable([("n", null, true)]).unwrap();
    let e = writer.write(&batch).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Schema(_)), "{e}");
    assert_eq!(
        e.to_string(),
        "column `n`: expected no nulls in a field that is not nullable, found one in row 2 of the batch"
    );
}

/// The first day of nanoseconds begins before their first timestamp.
#[test]
fn the_first_and_last_instants_are_the_same_after_reading() {
    use arrow_array::TimestampNanosecondArray;

    let all = vec![Some(i64::MIN), None, Some(i64::MIN + 1), Some(-1), Some(i64::MAX)];
    let times: ArrayRef = Arc::new(TimestampNanosecondArray::from(all));
    let batch = RecordBatch::try_from_iter_with_nullable([("t", times, true)]).unwrap();
    let bytes = write(&batch, 5, WriteOptions::default());
    let read_back = read(&open(bytes, &[("int96", Value::from("timestamp"))]).unwrap());
    assert_eq!(read_back.columns(), batch.columns());
}

/// Types inside a list have no names: so the message names the column.
#[test]
fn unsupported_types_are_named_by_their_column() {
    let nothing = DataType::List(Arc::new(Field::new("item", DataType::Null, true)));
    let inner = DataType::Struct(vec![Field::new("y", nothing.clone(), true)].into());
    for (of, expected) in [(nothing, "column `x.list.element`"), (inner, "column `x.y.list.element`")] {
        let schema = Schema::new(vec![Field::new("x", of, true)]);
        let e = Writer::new(Vec::new(), &schema, WriteOptions::default()).unwrap_err();
        assert!(e.to_string().contains(expected), "{e}");
    }
}

/// A job that adds a file to a folder does not change the summary of the job before it.
#[test]
fn files_beside_a_summary_are_read() {
    let whole = numbers(0..300);
    let file = |from, rows| write(&whole.slice(from, rows), 100, WriteOptions::default());
    let footer = |file: &[u8]| {
        let end = file.len() - 8;
        let len = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
        file[end - len..end].to_vec()
    };
    let (first, added) = (file(0, 100), file(100, 200));
    let path = b"hdfs://host/t/part-0.redelm";
    let path_len = u16::try_from(path.len()).unwrap().to_be_bytes();
    let summary = [&[0, 0, 0, 1][..], &path_len, path, &footer(&first)].concat();
    let folder = MemoryFolder::default()
        .with("_RedElmSummary", summary)
        .with("part-0.redelm", first)
        .with("part-1.redelm", added.clone())
        .with("_part-2.redelm", added.clone())
        .with("notes.txt", b"RED".to_vec());
    let options = OpenOptions::default();
    assert_eq!(read(&RedFile::open(&folder.source(), &options).unwrap()), whole);
    // What holds none of the rows, and was not written by Hadoop either.
    let folder = folder
        .with("_SUCCESS", Vec::new())
        .with(".part-0.redelm.crc", b"crc".to_vec())
        .with("_logs/history/job.xml", b"<job/>".to_vec())
        .with("other/part-0.redelm", added.clone());
    let unclaimed = RedfileFormat.unclaimed(&folder.source(), &options).unwrap();
    let names: Vec<&str> = unclaimed.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(names, ["_part-2.redelm", "notes.txt", "other/part-0.redelm"]);
    // A file that is cut off is not passed over.
    let cut = folder.with("part-1.redelm", added[..added.len() - 1].to_vec());
    let e = RedFile::open(&cut.source(), &options).unwrap_err();
    assert!(e.is_damage() && e.to_string().contains("part-1.redelm"), "{e}");
}
