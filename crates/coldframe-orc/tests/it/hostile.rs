//! For small files that state much data, and for undamaged files that are wide or long, work and memory are
//! in proportion to the file.

use crate::support;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use coldframe_core::{
    DamageLog, Format, OnError, Op, OpenOptions, Predicate, Scan, ScanReader, SchemaSpec, Source, TableFile,
    Value,
};
use coldframe_orc::proto::{self, Footer, StripeEncryptionVariant, Type};
use coldframe_orc::{Kind, OrcFormat};
use coldframe_testing::laws::{Opener, assert_bounded, assert_linear, opener};
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::rows;
use support::crafted::{Crafted, compressed, tailed};
use support::{open, written};

/// Allocations are counted for the whole process, so these tests run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn orc() -> Opener {
    opener(|source: Source| OrcFormat.open(&source, &OpenOptions::default()))
}

fn root(children: u32, name: &str) -> Type {
    Type {
        kind: Some(Kind::Struct.number()),
        subtypes: (1..=children).collect(),
        field_names: (1..=children).map(|i| format!("{name}{i}")).collect(),
        ..Type::default()
    }
}

fn int() -> Type {
    Type { kind: Some(Kind::Int.number()), ..Type::default() }
}

/// Each empty message takes two bytes in the footer and hundreds in memory.
#[test]
fn empty_messages_are_counted_before_they_are_decoded() {
    let _alone = alone();
    let types = proto::encode(&Footer { types: vec![root(1, "c"), int()], ..Footer::default() });
    for tag in [0x3a, 0x22, 0x1a, 0x2a] {
        let many = [types.clone(), [tag, 0].repeat(30_000_000)].concat();
        let file = compressed(&many);
        assert!(file.len() < 200_000);
        assert_bounded("empty messages", &file, &orc());
        assert!(open("empty messages", file, &OpenOptions::default()).is_err());
    }
}

#[test]
fn a_long_name_is_not_repeated_for_each_child() {
    let _alone = alone();
    let children = 99_000u32;
    let mut types = vec![Type { subtypes: vec![1], ..root(1, &"n".repeat(1 << 20)) }];
    let mut inner = root(children, "c");
    inner.subtypes = (2..children + 2).collect();
    types.push(inner);
    types.extend(std::iter::repeat_with(int).take(children as usize));
    let file = tailed(b"ORC".to_vec(), &Footer { types, ..Footer::default() });
    // Doubling both the children and the name's length must not take four times the memory.
    assert!(file.len() < 4 << 20);
    let opened = open("long name", file, &OpenOptions::default()).unwrap();
    let Some(Value::List(all)) = opened.file.metadata().unwrap().get("types").cloned() else { panic!() };
    let longest = all.iter().map(|t| match t.get("path") {
        Some(Value::Str(path)) => path.len(),
        _ => 0,
    });
    assert!(longest.max().unwrap() <= 256);
    let Some(Value::Str(last)) = all.last().unwrap().get("path") else { panic!() };
    assert!(last.starts_with("nnn") && last.ends_with(".c99000"), "{last}");
}

fn empty_words(rows: u64, entries: u32) -> Crafted {
    // The entries are empty: runs of 512 zeros take four bytes.
    let lengths = [0xc1, 0xff, 0, 0].repeat(entries.div_ceil(512) as usize);
    let streams = vec![(1, 1, vec![0x02, 0, 0]), (2, 1, lengths), (3, 1, vec![])];
    let mut file = Crafted::new(Kind::String, rows, streams);
    file.encodings[1] =
        proto::ColumnEncoding { kind: Some(3), dictionary_size: Some(entries), bloom_encoding: None };
    file
}

#[test]
fn a_dictionary_has_no_more_entries_than_values() {
    let _alone = alone();
    let file = empty_words(1, 1 << 24).bytes();
    assert_bounded("empty words", &file, &orc());
    let opened = open("empty words", file, &OpenOptions::default()).unwrap();
    let outcome = rows::read(opened.file.as_ref(), OnError::Skip).unwrap();
    assert_eq!((outcome.batch.num_rows(), outcome.damage.len()), (0, 1));
    assert!(outcome.damage[0].reason.contains("at most 1 entries"), "{:?}", outcome.damage);
}

/// A footer may list one stripe any number of times; each entry takes about twelve bytes.
#[test]
fn stripes_that_share_their_bytes_are_not_all_read() {
    let _alone = alone();
    let rows = 50_000u64;
    let mut file = Crafted::new(Kind::Double, rows, vec![(1, 1, vec![7; 400_000])]);
    let files = [5_000, 20_000].map(|times| {
        file.times = times;
        file.bytes()
    });
    assert_bounded("one stripe", &files[1], &orc());
    let opened = open("one stripe", files[0].clone(), &OpenOptions::default()).unwrap();
    let outcome = rows::read(opened.file.as_ref(), OnError::Skip).unwrap();
    assert!(outcome.error.is_none() && outcome.batch.num_rows() as u64 >= rows);
    assert!(outcome.damage.iter().all(|d| d.rows_lost == Some(rows)), "{:?}", outcome.damage);
    assert_eq!(outcome.batch.num_rows() as u64 + outcome.damage.len() as u64 * rows, rows * 5_000);
}

/// Such a union cannot have a value, not even a null.
#[test]
fn a_union_of_no_types_is_damage() {
    let _alone = alone();
    let mut file = Crafted::new(Kind::Union, 5, vec![(1, 1, vec![0xff, 0])]);
    file.types[1].subtypes.clear();
    let e = open("union", file.bytes(), &OpenOptions::default()).map(|_| ()).unwrap_err();
    assert!(e.is_damage() && e.to_string().contains("children of a uniontype, found 0"), "{e}");
}

/// The nulls of the root belong to no column: if they are damaged, their rows are lost, and the scan
/// continues.
#[test]
fn damaged_nulls_of_the_root_do_not_end_the_scan() {
    let _alone = alone();
    for present in [vec![], vec![0xff], vec![0x7f]] {
        let streams = vec![(0, 0, present), (1, 1, vec![0xc0, 9, 0, 2])];
        let opened =
            open("root", Crafted::new(Kind::Long, 10, streams).bytes(), &OpenOptions::default()).unwrap();
        for on_error in [OnError::Skip, OnError::Null] {
            let outcome = rows::read(opened.file.as_ref(), on_error).unwrap();
            assert!(outcome.error.is_none(), "{:?}", outcome.error);
            assert_eq!(outcome.batch.num_rows(), 0);
            assert_eq!(outcome.damage.iter().map(|d| d.rows_lost).collect::<Vec<_>>(), [Some(10)]);
        }
    }
}

#[test]
fn repeated_placeholders_of_encrypted_streams_are_refused() {
    let _alone = alone();
    let variant = StripeEncryptionVariant {
        streams: vec![proto::Stream { kind: Some(1), column: Some(1), length: Some(0) }; 20_000],
        ..StripeEncryptionVariant::default()
    };
    let holders = (0..20_000).map(|_| (10, 0, vec![])).collect();
    let mut file = Crafted::new(Kind::Long, 10, holders);
    file.variants = vec![variant];
    assert_bounded("place holders", &file.bytes(), &orc());
}

#[test]
fn row_groups_without_index_entries_take_no_memory() {
    let _alone = alone();
    let mut file = Crafted::new(Kind::Long, 1 << 24, vec![(1, 1, vec![0xc1, 0xff, 0, 0])]);
    file.stride = Some(1);
    let bytes = file.bytes();
    assert_bounded("row groups", &bytes, &orc());
    let opened = open("row groups", bytes, &OpenOptions::default()).unwrap();
    let value: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let scan = Scan {
        predicate: Some(Predicate::compare("id", Op::Eq, value)),
        on_error: OnError::Skip,
        ..Scan::default()
    };
    assert!(rows::scan(opened.file.as_ref(), &scan, None).unwrap().error.is_none());
}

/// The file has one row of many columns, and the work is linear in the columns.
#[test]
fn work_is_linear_in_the_columns() {
    let _alone = alone();
    let wide = |columns: usize| {
        let fields: Vec<Field> =
            (0..columns).map(|i| Field::new(format!("c{i}"), DataType::Int32, true)).collect();
        let column: ArrayRef = Arc::new(Int32Array::from(vec![7]));
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![column; columns]).unwrap();
        written(&batch, &[("codec", Value::from("none"))])
    };
    assert_linear("wide", &[wide(10_000), wide(20_000)], &orc());
    let most = open("wide", wide(100_000), &OpenOptions::default()).unwrap();
    assert_eq!(rows::read(most.file.as_ref(), OnError::Raise).unwrap().batch.num_columns(), 100_000);
}

fn recovering(ddl: &'static str) -> Opener {
    opener(move |source: Source| {
        let mut options =
            OpenOptions { schema: Some(SchemaSpec::Ddl(ddl.to_owned())), ..OpenOptions::default() };
        options.extra.insert("recover".into(), Value::Bool(true));
        OrcFormat.open(&source, &options)
    })
}

/// A file without its tail is searched once, with any codec.
#[test]
fn recovery_is_linear_in_the_file() {
    let _alone = alone();
    let cut = |rows: i64, codec: &str| {
        let mixed = |i: i64| i.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(17);
        let ids: ArrayRef = Arc::new((0..rows).map(mixed).collect::<Int64Array>());
        let text: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..rows).map(|i| format!("{:x}", mixed(i)))));
        let batch = RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("t", text, true)]).unwrap();
        let whole = written(&batch, &[("codec", Value::from(codec))]);
        whole.slice(..whole.len() - 100)
    };
    for codec in ["none", "zlib", "snappy", "lzo"] {
        let files = [cut(15_000, codec), cut(30_000, codec)];
        assert_linear(&format!("cut {codec}"), &files, &recovering("id bigint, t string"));
        let table = recovering("id bigint, t string")(coldframe_testing::fixture::source(files[1].clone()));
        assert_eq!(table.unwrap().row_count(), Some(30_000), "{codec}");
    }
}

/// Runs a scan and drops its batches: returns rows, size of the largest batch, and number of damage records.
fn drained(file: &dyn TableFile, on_error: OnError) -> (usize, usize, usize) {
    let log = DamageLog::default();
    let (mut rows, mut largest) = (0, 0);
    for split in file.splits(u64::MAX).unwrap() {
        let scan = Scan { on_error, ..Scan::default() };
        let mut reader = ScanReader::try_new(file, &scan, &split, log.clone()).unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            rows += batch.num_rows();
            largest = largest.max(batch.get_array_memory_size());
        }
    }
    (rows, largest, log.len())
}

/// Long values are not damage: batches have fewer rows, also for values that were written from an Arrow
/// dictionary.
#[test]
fn dictionaries_of_long_words_are_read_in_short_batches() {
    let _alone = alone();
    let words: Vec<String> = (0..6).map(|i| format!("{i}").repeat(40 << 10)).collect();
    let keys: Int32Array = (0..70_000).map(|i| i % 6).collect();
    let values: ArrayRef = Arc::new(StringArray::from(words));
    let array: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values).unwrap());
    let batch = RecordBatch::try_from_iter([("w", array)]).unwrap();
    let opened = open("words", written(&batch, &[]), &OpenOptions::default()).unwrap();
    for on_error in [OnError::Raise, OnError::Skip] {
        let (rows, largest, damage) = drained(opened.file.as_ref(), on_error);
        assert_eq!((rows, damage), (70_000, 0));
        assert!(largest < 160 << 20, "{largest}");
    }
}

#[test]
fn long_lists_are_read_in_short_batches() {
    let _alone = alone();
    let rows = 65_536u64;
    let list = Type { kind: Some(Kind::List.number()), subtypes: vec![2], ..Type::default() };
    let byte = Type { kind: Some(Kind::Byte.number()), ..Type::default() };
    // There are 128 runs of 512 lengths of 2,100, and runs of 130 bytes.
    let lengths = [0xc1, 0xff, 0xb4, 0x10, 0].repeat(128);
    let mut bytes = [127u8, 5].repeat(usize::try_from(rows * 2100 / 130).unwrap());
    bytes.extend([u8::try_from(rows * 2100 % 130 - 3).unwrap(), 5]);
    let mut file = Crafted::new(Kind::List, rows, vec![(2, 1, lengths), (1, 2, bytes)]);
    file.types = vec![root(1, "l"), list, byte];
    file.encodings = vec![file.encodings[0]; 3];
    let opened = open("lists", file.bytes(), &OpenOptions::default()).unwrap();
    for on_error in [OnError::Raise, OnError::Skip] {
        let (count, largest, damage) = drained(opened.file.as_ref(), on_error);
        assert_eq!((count, damage), (65_536, 0));
        assert!(largest < 160 << 20, "{largest}");
    }
}

/// With `skip` and `null`, an unknown zone or encoding counts as damage of its stripe.
#[test]
fn unknown_zones_and_encodings_do_not_end_a_scan_with_skip() {
    let _alone = alone();
    let mut zoned = Crafted::new(Kind::Timestamp, 1, vec![(1, 1, vec![0, 1, 2]), (5, 1, vec![0, 1, 0])]);
    zoned.timezone = Some("Mars/Olympus".to_owned());
    let mut encoded = Crafted::new(Kind::Long, 1, vec![(1, 1, vec![0x02, 0, 0])]);
    encoded.encodings[1].kind = Some(9);
    for (file, word) in [(zoned, "Mars/Olympus"), (encoded, "encoding 9")] {
        let opened = open("unknown", file.bytes(), &OpenOptions::default()).unwrap();
        let raised = rows::read(opened.file.as_ref(), OnError::Raise).unwrap().error.unwrap();
        assert!(!raised.is_damage() && raised.to_string().contains(word), "{raised}");
        let skipped = rows::read(opened.file.as_ref(), OnError::Skip).unwrap();
        assert!(skipped.error.is_none(), "{:?}", skipped.error);
        assert_eq!((skipped.batch.num_rows(), skipped.damage.len()), (0, 1));
        assert!(skipped.damage[0].reason.contains(word), "{:?}", skipped.damage);
        let nulled = rows::read(opened.file.as_ref(), OnError::Null).unwrap();
        assert_eq!((nulled.batch.num_rows(), nulled.batch.column(0).null_count()), (1, 1));
        let report = coldframe_core::scan::verify(opened.file.as_ref(), |_| Ok(())).unwrap();
        assert!(!report.damage.is_empty());
    }
}

/// The C++ tools do not check the bytes that they write, which may be Latin-1.
#[test]
fn statistics_that_are_not_utf8_are_returned_as_bytes() {
    let _alone = alone();
    let stats = |minimum: &[u8]| {
        let strings = proto::StringStatistics { minimum: Some(minimum.to_vec()), ..Default::default() };
        let all = proto::ColumnStatistics {
            number_of_values: Some(1),
            string_statistics: Some(strings),
            ..Default::default()
        };
        Bytes::from(proto::encode(&all))
    };
    let types = Crafted::new(Kind::String, 0, vec![]).types;
    let footer = Footer { types, statistics: vec![stats(b""), stats(b"\xfcber")], ..Footer::default() };
    let opened = open("latin", tailed(b"ORC".to_vec(), &footer), &OpenOptions::default()).unwrap();
    let Some(Value::List(file)) = opened.file.statistics().unwrap().get("file").cloned() else { panic!() };
    assert_eq!(file[1].get("min"), Some(&Value::Bytes(b"\xfcber".to_vec())));
}

/// A stripe without a footer has no node for a footer.
#[test]
fn damaged_stripes_have_no_empty_nodes() {
    let _alone = alone();
    let mut file = Crafted::new(Kind::Long, 1, vec![(1, 1, vec![0x02, 0, 0])]).bytes().to_vec();
    let types = Crafted::new(Kind::Long, 0, vec![]).types;
    file.truncate(6);
    let stripe = proto::StripeInformation {
        offset: Some(3),
        data_length: Some(3),
        footer_length: Some(0),
        number_of_rows: Some(1),
        ..Default::default()
    };
    let footer = Footer { stripes: vec![stripe], types, ..Footer::default() };
    let opened = open("empty", tailed(file, &footer), &OpenOptions::default()).unwrap();
    let tree = opened.file.inspect().unwrap();
    assert_tiled(&tree);
    fn no_empty(node: &coldframe_core::Node) {
        assert!(!node.bytes.is_empty(), "{node:?}");
        node.children.iter().for_each(no_empty);
    }
    no_empty(&tree);
}
