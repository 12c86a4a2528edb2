//! Files as the reference lays them out: row groups, metadata after chunks, and intermediate footers, each of
//! which completes the file up to this footer.

use std::sync::Arc;

use arrow_array::Int64Array;

use super::*;
use crate::layout::metadata::ColumnMetaData;
use crate::layout::thrift;

fn write(rows: i64, options: WriteOptions) -> Vec<u8> {
    let array: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let batch = RecordBatch::try_from_iter_with_nullable([("n", array, false)]).unwrap();
    let mut writer = Writer::new(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let (bytes, length) = writer.finish().unwrap();
    assert_eq!(bytes.len() as u64, length);
    bytes
}

fn footer(bytes: &[u8]) -> FileMetaData {
    let (bytes, magic) = bytes.split_last_chunk::<4>().unwrap();
    let (bytes, length) = bytes.split_last_chunk::<4>().unwrap();
    assert_eq!((magic, bytes.first_chunk::<4>()), (MAGIC, Some(MAGIC)));
    let start = bytes.len() - u32::from_le_bytes(*length) as usize;
    FileMetaData::parse(&bytes[start..], 0, &Limits::default()).unwrap()
}

fn rows(bytes: &[u8]) -> Vec<i64> {
    footer(bytes).row_groups.iter().map(|g| g.num_rows).collect()
}

#[test]
fn only_the_reference_writes_a_row_group_for_a_file_without_rows() {
    assert_eq!(rows(&write(0, WriteOptions::default())), [0]);
    assert!(rows(&write(0, WriteOptions { dialect: Dialect::Spec, ..WriteOptions::default() })).is_empty());
    // If the last row ends a row group, no empty row group follows.
    let options = WriteOptions { row_group_bytes: 800, ..WriteOptions::default() };
    assert_eq!(rows(&write(101, options.clone())), [101]);
    assert_eq!(rows(&write(202, options)), [101, 101]);
}

#[test]
fn row_groups_end_at_their_maximum_rows() {
    let options = WriteOptions { row_group_rows: 40, ..WriteOptions::default() };
    assert_eq!(rows(&write(100, options)), [40, 40, 20]);
}

#[test]
fn spec_files_have_metadata_after_each_chunk() {
    let bytes =
        write(300, WriteOptions { dialect: Dialect::Spec, page_bytes: 1000, ..WriteOptions::default() });
    let group = &footer(&bytes).row_groups[0];
    assert_eq!(group.total_byte_size, 2400);
    let at = usize::try_from(group.columns[0].file_offset).unwrap();
    let behind =
        ColumnMetaData::decode(&mut thrift::Reader::new(&bytes[at..], 0, &Limits::default())).unwrap();
    assert_eq!(Some(behind), group.columns[0].meta_data);
}

#[test]
fn the_file_up_to_any_footer_is_complete() {
    let options = WriteOptions {
        row_group_rows: 10,
        footer_every: Some(2),
        sync_seed: Some(3),
        metadata: vec![("k".to_owned(), None)],
        ..WriteOptions::default()
    };
    let bytes = write(60, options);
    let sync = sync_marker(Some(3));
    let markers: Vec<usize> = (0..bytes.len() - 16).filter(|i| bytes[*i..i + 16] == sync).collect();
    assert_eq!(markers.len(), 3);
    let ends = (8..=bytes.len()).filter(|end| bytes[..*end].ends_with(MAGIC));
    let groups: Vec<usize> = ends.map(|end| rows(&bytes[..end]).len()).collect();
    assert_eq!(groups, [2, 4, 6]);
    let named = &footer(&bytes).key_value_metadata[1];
    assert_eq!(named.key, SYNC_KEY.as_bytes());
    assert_eq!(named.value, Some(format!("{:032x}", u128::from_be_bytes(sync)).into_bytes()));
}

#[test]
fn unwritable_input_is_refused() {
    let schema = |data_type| arrow_schema::Schema::new(vec![arrow_schema::Field::new("x", data_type, true)]);
    let writer = |schema, options| Writer::new(Vec::new(), &schema, options).unwrap_err().to_string();
    let e = writer(schema(arrow_schema::DataType::Date32), WriteOptions::default());
    assert!(e.contains("Date32"), "{e}");
    let int = schema(arrow_schema::DataType::Int32);
    let e = writer(int, WriteOptions { footer_every: Some(0), ..WriteOptions::default() });
    assert_eq!(e, "option `footer_every`: expected 1 or more, found 0");
    writer(arrow_schema::Schema::empty(), WriteOptions::default());
}
