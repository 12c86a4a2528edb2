//! Files without a footer: row groups reconstructed from their pages and a schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BinaryArray, Int64Array, ListArray, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use coldframe_core::{
    DamageLog, OnError, OpenOptions, Result, Scan, ScanReader, SchemaSpec, Source, TableFile, Value,
};
use coldframe_redfile::RedFile;
use coldframe_redfile::write::{Codec, Dialect, WriteOptions, Writer};

const ROWS: i64 = 300;

fn table() -> RecordBatch {
    let rows = || 0..ROWS;
    let texts = rows().map(|i| (i % 7 != 0).then(|| format!("row {i}").into_bytes()));
    let item = Arc::new(Field::new("element", DataType::Int64, false));
    let offsets = OffsetBuffer::from_lengths(rows().map(|i| usize::try_from(i % 4).unwrap()));
    let values: Vec<i64> = rows().flat_map(|i| (0..i % 4).map(move |k| i * 10 + k)).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows())),
        Arc::new(BinaryArray::from_iter(texts)),
        Arc::new(ListArray::new(item.clone(), offsets, Arc::new(Int64Array::from(values)), None)),
    ];
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("text", DataType::Binary, true),
        Field::new("list", DataType::List(item), false),
    ]);
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn write(batch: &RecordBatch, options: WriteOptions) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap().0
}

fn small() -> WriteOptions {
    WriteOptions { page_bytes: 200, row_group_rows: 70, ..WriteOptions::default() }
}

fn open(bytes: &[u8], schema: SchemaRef, extra: &[(&str, Value)]) -> Result<RedFile> {
    let mut extra: BTreeMap<String, Value> =
        extra.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    extra.insert("recover".to_owned(), Value::Bool(true));
    let bytes = Arc::new(bytes::Bytes::from(bytes.to_vec()));
    let options = OpenOptions { extra, schema: Some(SchemaSpec::Arrow(schema)), ..OpenOptions::default() };
    RedFile::open(&Source::file("test.redfile", bytes), &options)
}

fn read(file: &RedFile, on_error: OnError) -> (RecordBatch, DamageLog) {
    let damage = DamageLog::default();
    let mut batches = Vec::new();
    for split in file.splits(1).unwrap() {
        let scan = Scan { on_error, ..Scan::default() };
        let mut reader = ScanReader::try_new(file, &scan, &split, damage.clone()).unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            batches.push(batch);
        }
    }
    (concat_batches(file.schema(), &batches).unwrap(), damage)
}

#[test]
fn all_rows_of_a_file_whose_footer_is_damaged_are_recovered() {
    let table = table();
    for dialect in [Dialect::RedelmF, Dialect::Spec] {
        for codec in [Codec::None, Codec::Snappy, Codec::Gzip, Codec::Lzo] {
            for rows in [70, 1000] {
                let options = WriteOptions { dialect, codec, row_group_rows: rows, ..small() };
                let mut bytes = write(&table, options);
                let end = bytes.len();
                bytes[end - 1] ^= 1;
                let file = open(&bytes, table.schema(), &[]).unwrap();
                assert_eq!(
                    file.groups().len() as u64,
                    (ROWS.unsigned_abs()).div_ceil(rows),
                    "{dialect:?} {codec}"
                );
                let (batch, damage) = read(&file, OnError::Skip);
                assert_eq!(batch, table, "{dialect:?} {codec}");
                let [lost] = damage.records().try_into().unwrap();
                assert_eq!(lost.structure, "footer");
                assert!(!file.verify_structure().unwrap().is_empty());
                coldframe_testing::layout::assert_tiled(&file.inspect().unwrap());
            }
        }
    }
}

/// A truncated file gives its complete row groups, in order.
#[test]
fn the_row_groups_before_a_cut_are_recovered() {
    let table = table();
    let whole = write(&table, small());
    let mut row_counts = std::collections::BTreeSet::new();
    for len in (0..whole.len()).rev().step_by(11) {
        let Ok(file) = open(&whole[..len], table.schema(), &[]) else { continue };
        let (rows, _) = read(&file, OnError::Skip);
        assert_eq!(rows, table.slice(0, rows.num_rows()), "{len}");
        row_counts.insert(rows.num_rows());
    }
    assert_eq!(row_counts.into_iter().collect::<Vec<_>>(), [70, 140, 210, 280, 300]);
}

/// The dialects A to C have a marker before each row group, by which the next group is found after damage.
#[test]
fn the_row_groups_after_damage_are_recovered_by_markers() {
    let table = table();
    // The file is almost like one of dialect C: it has the pages of F, and a marker before each row group.
    let options = WriteOptions { row_group_rows: 100, page_bytes: 200, ..WriteOptions::default() };
    let plain = write(&table, options);
    let file = open(&plain, table.schema(), &[]).unwrap();
    let mut marked = b"RED1".to_vec();
    for group in file.groups() {
        let at = |n: u64| usize::try_from(n).unwrap();
        marked.extend_from_slice(b"RED1");
        marked.extend_from_slice(&plain[at(group.start)..at(group.end)]);
    }
    let all = open(&marked, table.schema(), &[]).unwrap();
    assert_eq!((read(&all, OnError::Skip).0, all.groups().len()), (table.clone(), 3));
    let in_second = usize::try_from(all.groups()[1].start).unwrap();
    marked[in_second] = 0xff;
    let file = open(&marked, table.schema(), &[]).unwrap();
    let (rows, damage) = read(&file, OnError::Skip);
    let ids = rows.column(0).as_primitive::<Int64Type>().values().to_vec();
    assert_eq!(ids, (0..100).chain(200..300).collect::<Vec<_>>());
    let [lost] = damage.records().try_into().unwrap();
    assert_eq!(lost.bytes, all.groups()[1].start..all.groups()[1].end - 4);
}

/// Pages of two columns of the same type could be row groups of any size, and the reader does not guess.
#[test]
fn ambiguous_row_groups_are_not_read() {
    let column = |n: i64| Arc::new(Int64Array::from_iter_values((0..80).map(|i| i * n))) as ArrayRef;
    let fields = ["a", "b"].map(|n| Field::new(n, DataType::Int64, false));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let table = RecordBatch::try_new(schema.clone(), vec![column(1), column(-1)]).unwrap();
    let mut bytes = write(&table, WriteOptions { page_bytes: 159, ..WriteOptions::default() });
    bytes.truncate(bytes.len() - 1);
    let e = open(&bytes, schema.clone(), &[]).unwrap_err();
    assert!(e.to_string().contains("row_group_rows"), "{e}");
    let file = open(&bytes, schema, &[("row_group_rows", Value::Int(80))]).unwrap();
    assert_eq!(read(&file, OnError::Skip).0, table);
}

#[test]
fn another_schema_recovers_nothing() {
    let table = table();
    let mut bytes = write(&table, small());
    bytes.truncate(bytes.len() - 1);
    let other = Schema::new(vec![
        Field::new("id", DataType::Binary, false),
        Field::new("text", DataType::Float64, false),
    ]);
    let e = open(&bytes, Arc::new(other), &[]).unwrap_err();
    assert!(e.is_damage(), "{e}");
}

/// Files of each dialect: if the last byte of the footer is missing, the same rows are recovered with the
/// schema alone.
#[test]
fn files_of_all_dialects_are_recovered_without_their_footers() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/redfile/files");
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    let mut whole = 0;
    for path in names.into_iter().filter(|p| p.extension().is_some_and(|e| e == "redfile")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        let plain = Source::file(name.as_str(), Arc::new(bytes::Bytes::from(bytes.clone())));
        let plain = RedFile::open(&plain, &OpenOptions::default()).unwrap();
        let dialect = [("dialect", Value::Str(plain.dialect().unwrap().name().to_owned()))];
        let rows = read(&plain, OnError::Raise).0;
        match open(&bytes[..bytes.len() - 1], plain.schema().clone(), &dialect) {
            Ok(file) => {
                assert_eq!(read(&file, OnError::Skip).0, rows, "{name}");
                whole += 1;
            }
            // There is no row group, or there are too few pages to determine its size.
            Err(e) => {
                assert!(rows.num_rows() < 100 || e.to_string().contains("row_group_rows"), "{name}: {e}")
            }
        }
    }
    assert!(whole > 15, "{whole}");
}

/// Nothing proves that no row group followed, wherever the file ends.
#[test]
fn a_file_without_a_footer_may_have_lost_row_groups() {
    let table = table();
    let whole = write(&table, small());
    let file = open(&whole, table.schema(), &[]).unwrap();
    assert!(read(&file, OnError::Skip).1.is_empty());
    let second = file.groups()[1].end;
    for more in [0, 4] {
        let cut = usize::try_from(second).unwrap() + more;
        let file = open(&whole[..cut], table.schema(), &[]).unwrap();
        let (rows, damage) = read(&file, OnError::Skip);
        assert_eq!(rows, table.slice(0, 140));
        assert_eq!(damage.records().iter().map(|d| d.rows_lost).collect::<Vec<_>>(), [None]);
        assert_eq!(coldframe_core::scan::verify(&file, |_| Ok(())).unwrap().damage.len(), 1);
        let split = file.splits(u64::MAX).unwrap().remove(0);
        let plain = ScanReader::try_new(&file, &Scan::default(), &split, DamageLog::default());
        assert!(plain.err().is_some_and(|e| e.is_damage()));
    }
}
