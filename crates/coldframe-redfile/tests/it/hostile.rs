//! Hostile files, and valid files of extreme shapes: time and memory are in proportion to their length.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_wrap,
    reason = "a test that fails must show where; columns are few enough"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use coldframe_core::{
    DamageLog, ErrorKind, OnError, OpenOptions, Result, Scan, ScanReader, SchemaSpec, Source, TableFile,
    Value,
};
use coldframe_redfile::RedFile;
use coldframe_redfile::metadata::{Children, FileMetaData, RowGroup, SchemaElement, Type};
use coldframe_redfile::write::{WriteOptions, Writer};
use coldframe_testing::Logged;
use coldframe_testing::layout::assert_tiled;

fn options(schema: Option<SchemaRef>) -> OpenOptions {
    let extra = BTreeMap::from([("recover".to_owned(), Value::Bool(true))]);
    OpenOptions { extra, schema: schema.map(SchemaSpec::Arrow), ..OpenOptions::default() }
}

fn open(bytes: Vec<u8>, options: &OpenOptions) -> (Arc<Logged>, Result<RedFile>) {
    let log = Arc::new(Logged::new(bytes));
    let file = RedFile::open(&Source::file("test.redfile", log.clone()), options);
    (log, file)
}

fn bytes_read(log: &Logged) -> u64 {
    log.take().into_iter().flatten().map(|r| r.end - r.start).sum()
}

fn read(file: &RedFile, on_error: OnError) -> Vec<RecordBatch> {
    let scan = Scan { on_error, ..Scan::default() };
    let mut batches = Vec::new();
    for split in file.splits(u64::MAX).unwrap() {
        let mut reader = ScanReader::try_new(file, &scan, &split, DamageLog::default()).unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            batches.push(batch);
        }
    }
    batches
}

/// One row of `columns` columns; column `i` holds `i`.
fn wide(columns: usize, nullable: bool) -> (SchemaRef, Vec<u8>) {
    let fields: Vec<Field> =
        (0..columns).map(|i| Field::new(format!("c{i}"), DataType::Int64, nullable)).collect();
    let schema = Arc::new(Schema::new(fields));
    let values = (0..columns).map(|i| Arc::new(Int64Array::from(vec![i as i64])) as ArrayRef);
    let batch = RecordBatch::try_new(schema.clone(), values.collect()).unwrap();
    let mut writer = Writer::new(Vec::new(), &schema, WriteOptions::default()).unwrap();
    writer.write(&batch).unwrap();
    (schema, writer.finish().unwrap().0)
}

fn check_wide(batches: &[RecordBatch], columns: usize) {
    let [batch] = batches else { panic!("{} batches", batches.len()) };
    assert_eq!((batch.num_rows(), batch.num_columns()), (1, columns));
    assert!((0..columns).all(|i| batch.column(i).as_primitive::<Int64Type>().value(0) == i as i64));
}

/// A file with this footer and nothing else.
fn only_footer(metadata: &FileMetaData) -> Vec<u8> {
    let footer = metadata.encode();
    let mut bytes = b"RED1".to_vec();
    bytes.extend_from_slice(&footer);
    bytes.extend_from_slice(&u32::try_from(footer.len()).unwrap().to_le_bytes());
    bytes.extend_from_slice(b"RED1");
    bytes
}

fn element(name: &str, children: Children) -> SchemaElement {
    let physical_type = (children == Children::None).then_some(Type::Int64);
    SchemaElement { physical_type, name: name.to_owned(), children, ..SchemaElement::default() }
}

/// Each `RED1` might end a footer, and might begin a row group.
#[test]
fn a_file_of_magic_bytes_is_refused_after_a_few_reads() {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
    for schema in [None, Some(schema)] {
        let (log, file) = open(b"RED1".repeat(1 << 20), &options(schema));
        assert!(file.unwrap_err().is_damage());
        let read = bytes_read(&log);
        assert!(read < 16 << 20, "{read}");
    }
}

/// As many columns as the default limit allows: written, read back, inspected and recovered.
#[test]
fn a_row_of_a_hundred_thousand_columns_is_written_and_read() {
    const COLUMNS: usize = 100_000;
    let (_, bytes) = wide(COLUMNS, true);
    let len = bytes.len() as u64;
    let (log, file) = open(bytes, &OpenOptions::default());
    let file = file.unwrap();
    check_wide(&read(&file, OnError::Raise), COLUMNS);
    check_wide(&read(&file, OnError::Skip), COLUMNS);
    bytes_read(&log);
    let tree = file.inspect().unwrap();
    assert_tiled(&tree);
    assert_eq!(tree.children.iter().find(|n| n.name == "row group 0").unwrap().children.len(), COLUMNS);
    let read = bytes_read(&log);
    assert!(read < 2 * len + (1 << 20), "{read} of {len}");

    let fields: Vec<Field> =
        (0..=COLUMNS).map(|i| Field::new(format!("c{i}"), DataType::Int64, true)).collect();
    let e = Writer::new(Vec::new(), &Schema::new(fields), WriteOptions::default()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Schema(_)), "{e}");
}

/// The search for row groups must not recurse for each leaf.
#[test]
fn a_row_of_many_columns_without_a_footer_is_recovered() {
    const COLUMNS: usize = 20_000;
    let (schema, mut bytes) = wide(COLUMNS, false);
    bytes.pop();
    let (_, file) = open(bytes, &options(Some(schema)));
    check_wide(&read(&file.unwrap(), OnError::Skip), COLUMNS);
}

/// A row group of five bytes takes memory for each leaf.
#[test]
fn row_groups_without_chunks_are_limited_before_they_are_made() {
    let leaves: Vec<_> = (0..20_000).map(|_| element("x", Children::None)).collect();
    let mut schema = vec![element("root", Children::Count(20_000))];
    schema.extend(leaves);
    let row_groups = vec![RowGroup::default(); 20_000];
    let metadata = FileMetaData { version: 1, schema, row_groups, ..FileMetaData::default() };
    let (_, file) = open(only_footer(&metadata), &OpenOptions::default());
    let e = file.unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::LimitExceeded { .. }), "{e}");
}

/// Each path includes the names of the enclosing groups.
#[test]
fn a_long_name_above_many_columns_is_limited_before_it_is_copied() {
    let mut schema =
        vec![element("root", Children::Count(1)), element(&"n".repeat(1 << 20), Children::Count(90_000))];
    schema.extend((0..90_000).map(|_| element("x", Children::None)));
    let metadata = FileMetaData { version: 1, schema, ..FileMetaData::default() };
    let (_, file) = open(only_footer(&metadata), &OpenOptions::default());
    let e = file.unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::LimitExceeded { .. }), "{e}");
}

/// A list element takes one byte in the file, but fifty in memory.
#[test]
fn lists_of_a_footer_are_limited_before_they_are_built() {
    let metadata = FileMetaData {
        version: 1,
        schema: vec![element("root", Children::Count(1)), element("x", Children::None)],
        ..FileMetaData::default()
    };
    let mut footer = metadata.encode();
    assert_eq!(footer.pop(), Some(0));
    // Field 5, key_value_metadata: a list of 32 Mi structs without fields.
    footer.extend_from_slice(&[0x19, 0xfc, 0x80, 0x80, 0x80, 0x10]);
    footer.resize(footer.len() + (32 << 20) + 1, 0);
    let mut bytes = b"RED1".to_vec();
    let len = u32::try_from(footer.len()).unwrap();
    bytes.append(&mut footer);
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(b"RED1");
    let (_, file) = open(bytes, &OpenOptions::default());
    let e = file.unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::LimitExceeded { .. }), "{e}");
}

/// The metadata of all chunks is at the same place in the file: a megabyte of zeros.
#[test]
fn metadata_that_chunks_share_is_not_read_for_each_chunk() {
    use coldframe_redfile::metadata::ColumnChunk;

    let columns = vec![ColumnChunk { file_offset: 4, ..ColumnChunk::default() }; 20_000];
    let mut schema = vec![element("root", Children::Count(20_000))];
    schema.extend((0..20_000).map(|_| element("x", Children::None)));
    let row_groups = vec![RowGroup { columns, num_rows: 1, ..RowGroup::default() }];
    let metadata = FileMetaData { version: 1, schema, row_groups, ..FileMetaData::default() };
    let footer = metadata.encode();
    let mut bytes = b"RED1".to_vec();
    // Field 2, encodings: a list of integers, each of one byte.
    bytes.extend_from_slice(&[0x29, 0xf5, 0x80, 0x80, 0x40]);
    bytes.resize(bytes.len() + (1 << 20), 0);
    bytes.push(0);
    let tail = only_footer(&metadata);
    bytes.extend_from_slice(tail.get(4..).unwrap());
    assert_eq!(tail.len(), footer.len() + 12);
    let (log, file) = open(bytes, &OpenOptions::default());
    let file = file.unwrap();
    let read = bytes_read(&log);
    assert!(read < 24 << 20, "{read}");
    assert!(file.groups().iter().all(|g| g.chunks.iter().all(|c| c.metadata.is_err())));
}
