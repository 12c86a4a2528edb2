//! Damaged files: tests every promise of the README's section on error recovery, truncation at every byte,
//! and flips in every byte.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test that fails must show where"
)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, Float32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    TimestampNanosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema};
use arrow_select::concat::concat_batches;
use coldframe_core::{
    Damage, DamageLog, Limits, OnError, OpenOptions, Result, Scan, ScanReader, Source, TableFile, Value,
};
use coldframe_redfile::RedFile;
use coldframe_redfile::metadata::FileMetaData;
use coldframe_redfile::write::{self, WriteOptions, Writer};

const ROWS: usize = 300;

/// A number, a text that may be null, a list of numbers; each contains its row number.
fn table() -> RecordBatch {
    let rows = || 0..ROWS as i64;
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(rows()));
    let texts: Vec<Option<Vec<u8>>> =
        rows().map(|i| (i % 7 != 0).then(|| format!("row {i}").into_bytes())).collect();
    let text: ArrayRef = Arc::new(BinaryArray::from_iter(texts));
    let item = Arc::new(Field::new("element", DataType::Int64, false));
    let offsets = OffsetBuffer::from_lengths(rows().map(|i| (i % 4) as usize));
    let values: Vec<i64> = rows().flat_map(|i| (0..i % 4).map(move |k| i * 10 + k)).collect();
    let list: ArrayRef =
        Arc::new(ListArray::new(item.clone(), offsets, Arc::new(Int64Array::from(values)), None));
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("text", DataType::Binary, true),
        Field::new("list", DataType::List(item), false),
    ]);
    RecordBatch::try_new(Arc::new(schema), vec![id, text, list]).unwrap()
}

fn write(options: WriteOptions) -> Vec<u8> {
    let batch = table();
    let mut writer = Writer::new(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap().0
}

fn small_pages(crc: bool) -> Vec<u8> {
    write(WriteOptions { page_bytes: 200, crc, ..WriteOptions::default() })
}

fn open(bytes: &[u8], extra: &[(&str, Value)]) -> Result<RedFile> {
    let extra = extra.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    let bytes = Arc::new(bytes::Bytes::from(bytes.to_vec()));
    RedFile::open(&Source::file("test.redfile", bytes), &OpenOptions { extra, ..OpenOptions::default() })
}

fn read(file: &RedFile, on_error: OnError) -> Result<(RecordBatch, Vec<Damage>)> {
    let damage = DamageLog::default();
    let mut batches = Vec::new();
    for split in file.splits(1)? {
        let scan = Scan { on_error, batch_rows: 50, ..Scan::default() };
        let mut reader = ScanReader::try_new(file, &scan, &split, damage.clone())?;
        while let Some(batch) = reader.next_batch()? {
            batches.push(batch);
        }
    }
    Ok((concat_batches(file.schema(), &batches).unwrap(), damage.records()))
}

/// Checks that the values of each row are the values of one written row.
fn check_rows(batch: &RecordBatch) {
    let ids = batch.column(0).as_primitive::<Int64Type>();
    let texts = batch.column(1).as_binary::<i32>();
    let lists: &ListArray = batch.column(2).as_list();
    for (row, id) in ids.values().iter().enumerate() {
        if texts.is_valid(row) {
            assert_eq!(texts.value(row), format!("row {id}").as_bytes());
        }
        let list = lists.value(row).as_primitive::<Int64Type>().values().to_vec();
        assert_eq!(list, (0..id % 4).map(|k| id * 10 + k).collect::<Vec<_>>());
    }
}

/// The range of a node, by the names on its path.
fn place(file: &RedFile, path: &[&str]) -> std::ops::Range<usize> {
    let mut node = file.inspect().unwrap();
    for name in path {
        node = node.children.into_iter().find(|n| n.name == *name).unwrap();
    }
    usize::try_from(node.bytes.start).unwrap()..usize::try_from(node.bytes.end).unwrap()
}

const GROUP: &str = "row group 0";

#[test]
fn a_bad_page_costs_only_that_page() {
    let whole = small_pages(true);
    let file = open(&whole, &[]).unwrap();
    for (column, nullable) in
        [("column chunk `id`", false), ("column chunk `text`", true), ("column chunk `list`", false)]
    {
        let at = place(&file, &[GROUP, column, "page 2", "page data"]).end - 1;
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        let damaged = open(&bytes, &[]).unwrap();
        assert!(read(&damaged, OnError::Raise).is_err());
        let (rows, damage) = read(&damaged, OnError::Skip).unwrap();
        check_rows(&rows);
        assert_eq!(damage.len(), 1, "{damage:?}");
        let lost = damage[0].rows_lost.unwrap();
        assert!((1..100).contains(&lost), "{column} {lost}");
        assert_eq!(rows.num_rows() as u64 + lost, ROWS as u64);
        let (rows, damage) = read(&damaged, OnError::Null).unwrap();
        check_rows(&rows);
        if nullable {
            assert_eq!((rows.num_rows(), damage[0].rows_lost), (ROWS, Some(0)));
            let lost_values = rows.column(1).null_count() - table().column(1).null_count();
            assert!((1..lost as usize + 1).contains(&lost_values));
        } else {
            assert_eq!(rows.num_rows() as u64 + lost, ROWS as u64);
        }
    }
}

#[test]
fn a_bad_page_header_costs_the_rest_of_the_chunk() {
    let whole = small_pages(false);
    let file = open(&whole, &[]).unwrap();
    let header = place(&file, &[GROUP, "column chunk `text`", "page 1", "page header"]);
    let mut bytes = whole;
    bytes[header.start] = 0xff;
    let damaged = open(&bytes, &[]).unwrap();
    assert!(read(&damaged, OnError::Raise).is_err());
    let (rows, damage) = read(&damaged, OnError::Skip).unwrap();
    check_rows(&rows);
    assert_eq!(rows.num_rows() as u64 + damage[0].rows_lost.unwrap(), ROWS as u64);
    assert!(rows.num_rows() > 0);
    let (nulled, _) = read(&damaged, OnError::Null).unwrap();
    check_rows(&nulled);
    assert_eq!(nulled.num_rows(), ROWS);
    assert!((rows.num_rows()..ROWS).all(|row| nulled.column(1).is_null(row)));
}

/// A `spec` file whose column metadata is only after the chunks, not in the footer.
fn metadata_at_chunks() -> (Vec<u8>, Vec<usize>) {
    let options = WriteOptions { page_bytes: 200, dialect: write::Dialect::Spec, ..WriteOptions::default() };
    let whole = write(options);
    let frame = whole.len() - 8;
    let length = u32::from_le_bytes(*whole[frame..].first_chunk().unwrap()) as usize;
    let start = frame - length;
    let mut footer = FileMetaData::parse(&whole[start..frame], 0, &Limits::default()).unwrap();
    let mut places = Vec::new();
    for chunk in &mut footer.row_groups[0].columns {
        chunk.meta_data = None;
        places.push(usize::try_from(chunk.file_offset).unwrap());
    }
    let footer = footer.encode();
    let mut bytes = whole[..start].to_vec();
    bytes.extend_from_slice(&footer);
    bytes.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    bytes.extend_from_slice(b"RED1");
    (bytes, places)
}

#[test]
fn bad_column_metadata_costs_only_that_chunk() {
    let (whole, places) = metadata_at_chunks();
    assert_eq!(read(&open(&whole, &[]).unwrap(), OnError::Raise).unwrap().0, table());
    let mut bytes = whole;
    bytes[places[1]] = 0xff;
    let damaged = open(&bytes, &[]).unwrap();
    let e = read(&damaged, OnError::Raise).unwrap_err();
    assert!(e.to_string().contains("`text`"), "{e}");
    // The other columns are unchanged.
    let (rows, damage) = read(&damaged, OnError::Null).unwrap();
    assert_eq!((rows.column(0), rows.column(2)), (table().column(0), table().column(2)));
    assert_eq!(rows.column(1).null_count(), ROWS);
    assert_eq!((damage.len(), damage[0].rows_lost), (1, Some(0)));
    assert!(damage[0].structure.contains("`text`"), "{damage:?}");
    // If the column is lost, no row is complete.
    let (rows, damage) = read(&damaged, OnError::Skip).unwrap();
    assert_eq!((rows.num_rows(), damage[0].rows_lost), (0, Some(ROWS as u64)));
}

#[test]
fn a_bad_footer_costs_the_file_if_there_is_no_earlier_footer() {
    let options = WriteOptions {
        page_bytes: 200,
        row_group_rows: 50,
        footer_every: Some(2),
        sync_seed: Some(1),
        ..WriteOptions::default()
    };
    let whole = write(options);
    let recover = [("recover", Value::Bool(true))];
    let plain = small_pages(false);
    assert!(open(&plain[..plain.len() - 3], &recover).is_err());
    let mut row_counts = std::collections::BTreeSet::new();
    for len in (0..=whole.len()).rev().step_by(7) {
        let bytes = &whole[..len];
        if let Err(e) = open(bytes, &[]) {
            assert!(e.is_damage(), "{e}");
        }
        let Ok(file) = open(bytes, &recover) else { continue };
        let (rows, damage) = read(&file, OnError::Skip).unwrap();
        assert_eq!(damage.is_empty(), open(bytes, &[]).is_ok());
        assert_eq!(damage.is_empty(), read(&file, OnError::Raise).is_ok());
        check_rows(&rows);
        row_counts.insert(rows.num_rows());
    }
    assert_eq!(row_counts.into_iter().collect::<Vec<_>>(), [100, 200, 300]);
}

#[test]
fn truncation_at_every_byte_is_an_error() {
    let whole = small_pages(false);
    for len in 0..whole.len() {
        let result = open(&whole[..len], &[]).and_then(|f| read(&f, OnError::Raise));
        assert!(result.is_err_and(|e| e.is_damage()), "{len}");
    }
}

/// With checksums, a flip in a page is an error or changes nothing; in a header or the footer it is an error or, if it
/// hits only unused fields, has no effect.
#[test]
fn flips_are_errors_and_never_other_data() {
    let whole = small_pages(true);
    let file = open(&whole, &[]).unwrap();
    let expected = read(&file, OnError::Raise).unwrap().0;
    let metadata = place(&file, &["metadata"]);
    for at in 0..whole.len() {
        for flip in [0x01, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            let Ok(damaged) = open(&bytes, &[]) else { continue };
            let _ = damaged.inspect().unwrap();
            let _ = damaged.verify_structure().unwrap();
            if let Ok((rows, _)) = read(&damaged, OnError::Raise)
                && !metadata.contains(&at)
            {
                assert_eq!(rows, expected, "byte {at}");
            }
            if let Ok((rows, _)) = read(&damaged, OnError::Skip)
                && !metadata.contains(&at)
            {
                check_rows(&rows);
            }
        }
    }
}

/// A table of one text column, in pages of 20 to 30 rows.
fn texts(rows: usize) -> (Vec<u8>, RecordBatch) {
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|i| format!("row {i}"))));
    let batch = RecordBatch::try_from_iter_with_nullable([("text", text, true)]).unwrap();
    let options = WriteOptions { page_bytes: 300, ..WriteOptions::default() };
    let mut writer = Writer::new(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    (writer.finish().unwrap().0, batch)
}

/// If a page is intact but its text is not UTF-8, only that page is lost.
#[test]
fn invalid_text_costs_only_its_page() {
    let (whole, table) = texts(20_000);
    let at = place(&open(&whole, &[]).unwrap(), &[GROUP, "column chunk `text`", "page 57", "page data"]);
    let mut bytes = whole;
    bytes[at.end - 1] = 0xff;
    let damaged = open(&bytes, &[]).unwrap();
    let e = read(&damaged, OnError::Raise).unwrap_err();
    assert!(e.is_damage() && e.to_string().contains("UTF-8"), "{e}");
    for on_error in [OnError::Skip, OnError::Null] {
        let (rows, damage) = read(&damaged, on_error).unwrap();
        let [lost] = damage.as_slice() else { panic!("{damage:?}") };
        assert!(lost.bytes.contains(&(at.start as u64)) && lost.structure.contains("page 57"), "{lost:?}");
        let text = rows.column(0).as_string::<i32>();
        let kept: Vec<&str> = text.iter().flatten().collect();
        let missing = table.num_rows() - kept.len();
        assert!((1..50).contains(&missing), "{missing}");
        match on_error {
            OnError::Null => assert_eq!((text.len(), lost.rows_lost), (table.num_rows(), Some(0))),
            _ => assert_eq!(lost.rows_lost, Some(missing as u64)),
        }
        let all: Vec<String> = (0..table.num_rows()).map(|i| format!("row {i}")).collect();
        assert!(kept.iter().all(|text| all.iter().any(|row| row == text)));
    }
}

/// A healthy row group is decoded once, before its first row is returned: its batches are parts of one array.
#[test]
fn an_intact_group_is_decoded_once() {
    let file = open(&small_pages(true), &[]).unwrap();
    let split = file.splits(u64::MAX).unwrap().remove(0);
    let first_value = |on_error| {
        let scan = Scan { on_error, batch_rows: 50, ..Scan::default() };
        let damage = DamageLog::default();
        let mut reader = ScanReader::try_new(&file, &scan, &split, damage).unwrap();
        let batches = std::iter::from_fn(|| reader.next_batch().unwrap());
        batches.take(2).map(|batch| batch.column(0).to_data().buffers()[0].data_ptr()).collect::<Vec<_>>()
    };
    let [plain, skip] = [OnError::Raise, OnError::Skip].map(first_value);
    assert_ne!(plain[0], plain[1]);
    assert_eq!(skip[0], skip[1]);
}

/// A timestamp outside Arrow's range also costs its page.
#[test]
fn invalid_timestamps_cost_only_their_page() {
    let values: ArrayRef = Arc::new(TimestampNanosecondArray::from_iter_values(0..3000));
    let batch = RecordBatch::try_from_iter_with_nullable([("t", values, false)]).unwrap();
    let options = WriteOptions { page_bytes: 600, ..WriteOptions::default() };
    let mut writer = Writer::new(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let mut bytes = writer.finish().unwrap().0;
    let at = place(&open(&bytes, &[]).unwrap(), &[GROUP, "column chunk `t`", "page 7", "page data"]);
    // The highest byte of a Julian day.
    bytes[at.end - 1] = 0x7f;
    let file = open(&bytes, &[("int96", Value::from("timestamp"))]).unwrap();
    let (rows, damage) = read(&file, OnError::Skip).unwrap();
    let [lost] = damage.as_slice() else { panic!("{damage:?}") };
    assert!(lost.structure.contains("page 7") && lost.rows_lost.is_some_and(|n| n < 60), "{lost:?}");
    assert_eq!(rows.num_rows() as u64 + lost.rows_lost.unwrap(), 3000);
    // Read as 12 bytes, any INT96 value is valid.
    let (rows, damage) = read(&open(&bytes, &[]).unwrap(), OnError::Skip).unwrap();
    assert_eq!((rows.num_rows(), damage.len()), (3000, 0));
}

/// A column name in the footer is changed to the name of the previous column: both columns are read, each
/// with its own values.
#[test]
fn columns_of_the_same_name_stay_apart() {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    let halves: ArrayRef = Arc::new(Float32Array::from_iter_values((0..100u8).map(|i| f32::from(i) / 2.0)));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("aa", ids.clone(), false),
        ("ab", halves.clone(), false),
        ("ac", ids.clone(), false),
    ])
    .unwrap();
    let mut writer = Writer::new(Vec::new(), &batch.schema(), WriteOptions::default()).unwrap();
    writer.write(&batch).unwrap();
    let whole = writer.finish().unwrap().0;
    for name in [b"ab", b"ac"] {
        // The name is changed only in the schema, as by damage, or also in the paths of the chunks, as by a
        // writer.
        for everywhere in [false, true] {
            let mut bytes = whole.clone();
            let places: Vec<usize> = (0..bytes.len() - 1).filter(|i| bytes[*i..].starts_with(name)).collect();
            assert_eq!(places.len(), 2);
            for place in places.iter().take(if everywhere { 2 } else { 1 }) {
                bytes[*place + 1] = b'a';
            }
            let file = open(&bytes, &[]).unwrap();
            for on_error in [OnError::Raise, OnError::Skip, OnError::Null] {
                let outcome = read(&file, on_error);
                match outcome {
                    Ok((rows, _)) if everywhere => {
                        assert_eq!(rows.columns(), [ids.clone(), halves.clone(), ids.clone()])
                    }
                    // A chunk without a leaf is not read as the chunk of another leaf.
                    Ok((rows, damage)) => assert_eq!((rows.num_rows(), damage.is_empty()), (0, false)),
                    Err(e) => assert!(!everywhere && on_error == OnError::Raise && e.is_damage(), "{e}"),
                }
            }
        }
    }
}

/// The levels of two leaves contradict each other, which cannot be seen from a single page.
#[test]
fn leaves_that_disagree_cost_only_the_rows_that_differ() {
    let numbers = |n: i64| {
        Arc::new(Int64Array::from_iter((0..3000).map(|i| (i % 2 == 0).then_some(i * n)))) as ArrayRef
    };
    let fields: Fields = ["a", "b"].map(|n| Field::new(n, DataType::Int64, true)).to_vec().into();
    let nulls: NullBuffer = (0..3000).map(|i| i % 3 != 0).collect();
    let group: ArrayRef = Arc::new(StructArray::new(fields, vec![numbers(1), numbers(2)], Some(nulls)));
    let batch = RecordBatch::try_from_iter_with_nullable([("s", group, true)]).unwrap();
    let options = WriteOptions { page_bytes: 400, ..WriteOptions::default() };
    let mut writer = Writer::new(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let whole = writer.finish().unwrap().0;
    let page = place(&open(&whole, &[]).unwrap(), &[GROUP, "column chunk `s.b`", "page 5", "page data"]);
    let (mut apart, mut rows_of_page) = (0, 0);
    for at in page.clone() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            let damaged = open(&bytes, &[]).unwrap();
            let (rows, damage) = read(&damaged, OnError::Skip).unwrap();
            let lost: u64 = damage.iter().filter_map(|d| d.rows_lost).sum();
            assert_eq!(rows.num_rows() as u64 + lost, 3000);
            assert!(lost < 120, "byte {at}: {damage:?}");
            apart += usize::from(damage.iter().any(|d| d.reason.contains("agree")));
            rows_of_page = rows_of_page.max(lost);
            let (nulled, _) = read(&damaged, OnError::Null).unwrap();
            assert!(nulled.num_rows() >= rows.num_rows());
        }
    }
    assert!(apart > 10 && rows_of_page > 20, "{apart} {rows_of_page}");
}

/// Damage records state bytes that exist.
#[test]
fn a_chunk_beyond_the_file_is_lost_at_its_end() {
    let whole = small_pages(true);
    let frame = whole.len() - 8;
    let length = u32::from_le_bytes(*whole[frame..].first_chunk().unwrap()) as usize;
    let mut footer = FileMetaData::parse(&whole[frame - length..frame], 0, &Limits::default()).unwrap();
    footer.row_groups[0].columns[1].meta_data.as_mut().unwrap().data_page_offset += 1 << 20;
    let footer = footer.encode();
    let mut bytes = whole[..frame - length].to_vec();
    bytes.extend_from_slice(&footer);
    bytes.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    bytes.extend_from_slice(b"RED1");
    let (rows, damage) = read(&open(&bytes, &[]).unwrap(), OnError::Null).unwrap();
    assert_eq!((rows.num_rows(), rows.column(1).null_count()), (ROWS, ROWS));
    let [lost] = damage.as_slice() else { panic!("{damage:?}") };
    assert_eq!(lost.bytes, bytes.len() as u64..bytes.len() as u64);
}

/// In a file that lost its middle, the footer places row groups past its end: exactly one split contains
/// them.
#[test]
fn groups_beyond_the_file_are_lost_once() {
    let whole = write(WriteOptions { row_group_rows: 100, ..WriteOptions::default() });
    let second = place(&open(&whole, &[]).unwrap(), &["row group 1"]).start;
    let frame = whole.len() - 8;
    let length = u32::from_le_bytes(*whole[frame..].first_chunk().unwrap()) as usize;
    let bytes = [&whole[..second], &whole[frame - length..]].concat();
    let file = open(&bytes, &[]).unwrap();
    for on_error in [OnError::Skip, OnError::Null] {
        let (rows, damage) = read(&file, on_error).unwrap();
        let lost: u64 = damage.iter().filter_map(|d| d.rows_lost).sum();
        assert_eq!(rows.num_rows() as u64 + lost, ROWS as u64, "{damage:?}");
        check_rows(&rows);
    }
    let rows: u64 = file.splits(1).unwrap().iter().filter_map(|s| s.rows).sum();
    assert_eq!(rows, ROWS as u64);
}
