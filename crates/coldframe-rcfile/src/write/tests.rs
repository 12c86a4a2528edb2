//! An independent parser of written files gives the expected headers, ends of groups, sync markers, runs of
//! lengths and cells.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the lengths in files written here are small and positive"
)]

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{Int32Array, Int64Array, LargeStringArray, StringArray};
use coldframe_encoding::Cursor;
use coldframe_encoding::codec::{Algorithm, Decompressor};
use proptest::prelude::*;

use super::*;

/// The parser's result for a file.
#[derive(Debug, Default, PartialEq)]
struct Layout {
    magic: [u8; 4],
    classes: Vec<String>,
    metadata: Vec<(String, String)>,
    header_end: u64,
    groups: Vec<Group>,
}

#[derive(Debug, Default, PartialEq)]
struct Group {
    /// Where the group starts, including its marker.
    start: u64,
    marked: bool,
    rows: usize,
    /// The cells of each column.
    columns: Vec<Vec<Vec<u8>>>,
    /// The bytes of the lengths of each column's cells.
    lengths: Vec<Vec<u8>>,
}

fn text(file: &mut Cursor<'_>) -> String {
    String::from_utf8(file.hadoop_text().unwrap().to_vec()).unwrap()
}

fn parse(bytes: &[u8]) -> Layout {
    let mut file = Cursor::new(bytes, 0);
    let mut layout = Layout { magic: file.array().unwrap(), ..Layout::default() };
    if layout.magic == *b"SEQ\x06" {
        layout.classes.extend([text(&mut file), text(&mut file)]);
    }
    let compressed = file.u8().unwrap() == 1;
    if layout.magic == *b"SEQ\x06" {
        assert_eq!(file.u8().unwrap(), 0);
    }
    let codec = compressed.then(|| {
        layout.classes.push(text(&mut file));
        HadoopCodec::from_class_name(layout.classes.last().unwrap()).unwrap()
    });
    for _ in 0..file.u32_be().unwrap() {
        layout.metadata.push((text(&mut file), text(&mut file)));
    }
    let sync: [u8; 16] = file.array().unwrap();
    layout.header_end = file.offset();
    while !file.is_empty() {
        layout.groups.push(parse_group(&mut file, &sync, codec));
    }
    layout
}

fn parse_group(file: &mut Cursor<'_>, sync: &[u8], codec: Option<HadoopCodec>) -> Group {
    let mut group = Group { start: file.offset(), ..Group::default() };
    let plain = |bytes: &[u8], length: usize| match codec {
        Some(codec) => {
            let mut out = Vec::new();
            codec.decompress_exact(&mut Decompressor::new(), bytes, length, &mut out).unwrap();
            out
        }
        None => bytes.to_vec(),
    };
    let mut record_length = file.u32_be().unwrap();
    if record_length == u32::MAX {
        assert_eq!(file.take(16).unwrap(), sync);
        group.marked = true;
        record_length = file.u32_be().unwrap();
    }
    let [key_length, stored_key_length] = [file.u32_be().unwrap(), file.u32_be().unwrap()];
    let key = plain(file.take(stored_key_length as usize).unwrap(), key_length as usize);
    let columns_start = file.offset();
    let mut key = Cursor::new(&key, 0);
    group.rows = key.hadoop_vint().unwrap() as usize;
    while !key.is_empty() {
        let [stored, length] = [key.hadoop_vint().unwrap(), key.hadoop_vint().unwrap()];
        group.lengths.push(key.hadoop_text().unwrap().to_vec());
        let mut runs = Cursor::new(group.lengths.last().unwrap(), 0);
        let mut lengths = Vec::new();
        while !runs.is_empty() {
            match runs.hadoop_vlong().unwrap() {
                n @ 0.. => lengths.push(n as usize),
                n => lengths.resize(lengths.len() + !n as usize, *lengths.last().unwrap()),
            }
        }
        let data = plain(file.take(stored as usize).unwrap(), length as usize);
        let mut data = Cursor::new(&data, 0);
        group.columns.push(lengths.into_iter().map(|n| data.take(n).unwrap().to_vec()).collect());
        data.finish().unwrap();
    }
    // The uncompressed key and the columns as they are on disk.
    assert_eq!(u64::from(record_length), u64::from(key_length) + file.offset() - columns_start);
    group
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn numbers(rows: i64) -> RecordBatch {
    let text: StringArray = (0..rows).map(|i| Some("x".repeat((i % 50) as usize))).collect();
    batch(vec![("n", Arc::new(Int64Array::from_iter_values(0..rows))), ("t", Arc::new(text))])
}

fn options() -> Settings {
    Settings { sync_seed: Some(7), ..Settings::default() }
}

fn write(batches: &[RecordBatch], options: Settings) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &batches[0].schema(), options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    let (bytes, length) = writer.finish().unwrap();
    assert_eq!(bytes.len() as u64, length);
    bytes
}

#[test]
fn a_file_without_rows_is_its_header() {
    let bytes = write(&[numbers(0)], options());
    assert_eq!(bytes.len(), 56);
    assert_eq!(&bytes[..40], b"RCF\x01\0\0\0\0\x01\x1chive.io.rcfile.column.number\x012");
    let layout = parse(&bytes);
    assert_eq!((layout.header_end, layout.groups.len()), (56, 0));
}

#[test]
fn both_variants_of_the_header_are_written() {
    let codec = Some(HadoopCodec::from_algorithm(Algorithm::Zlib).unwrap());
    let metadata = BTreeMap::from([("a".to_owned(), "ä".to_owned()), ("z".to_owned(), String::new())]);
    let options = Settings { codec, metadata, ..options() };
    let class = "org.apache.hadoop.io.compress.DefaultCodec";
    let metadata = [("a", "ä"), ("hive.io.rcfile.column.number", "2"), ("z", "")];
    let metadata: Vec<_> = metadata.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();

    let rcf1 = parse(&write(&[numbers(3)], options.clone()));
    assert_eq!(
        (&rcf1.magic, &rcf1.classes, &rcf1.metadata),
        (b"RCF\x01", &vec![class.to_owned()], &metadata)
    );

    let seq6 = parse(&write(&[numbers(3)], Settings { header: Magic::Seq6, ..options }));
    let hive = "org.apache.hadoop.hive.ql.io.RCFile$";
    let classes = vec![format!("{hive}KeyBuffer"), format!("{hive}ValueBuffer"), class.to_owned()];
    assert_eq!((&seq6.magic, &seq6.classes, &seq6.metadata), (b"SEQ\x06", &classes, &metadata));
    assert_eq!(rcf1.groups[0].columns, seq6.groups[0].columns);
}

#[test]
fn a_group_ends_with_the_row_that_exceeds_its_bytes() {
    // Each row has ten bytes.
    let text: StringArray = (0..25).map(|_| Some("0123456789")).collect();
    let rows = |row_group_bytes| {
        let options = Settings { row_group_bytes, ..options() };
        let layout = parse(&write(&[batch(vec![("t", Arc::new(text.clone()))])], options));
        layout.groups.iter().map(|g| g.rows).collect::<Vec<_>>()
    };
    assert_eq!(rows(99), [10, 10, 5]);
    assert_eq!(rows(100), [11, 11, 3]);
    assert_eq!(rows(0), vec![1; 25]);
    assert_eq!(rows(4 << 20), [25]);
}

#[test]
fn a_group_ends_at_its_record_interval_across_batches() {
    let options = Settings { record_interval: 700, ..options() };
    let whole = numbers(5000);
    let parts = [whole.slice(0, 1), whole.slice(1, 1500), whole.slice(1501, 3499)];
    let bytes = write(&parts, options.clone());
    let layout = parse(&bytes);
    assert_eq!(
        layout.groups.iter().map(|g| g.rows).collect::<Vec<_>>(),
        [700, 700, 700, 700, 700, 700, 700, 100]
    );
    assert_eq!(layout.groups[7].columns[1][99], b"x".repeat(4999 % 50));
    // The division of the rows into batches makes no difference.
    assert_eq!(bytes, write(&[whole], options));
}

#[test]
fn sync_markers_are_2000_bytes_apart() {
    for (codec, header) in [(None, Magic::Rcf1), (Some(Algorithm::Snappy), Magic::Seq6)] {
        let codec = codec.map(|c| HadoopCodec::from_algorithm(c).unwrap());
        let options = Settings { row_group_bytes: 600, codec, header, ..options() };
        let layout = parse(&write(&[numbers(3000)], options));
        let mut next_sync = 2000;
        for group in &layout.groups {
            assert_eq!(group.marked, group.start >= next_sync, "{} {next_sync}", group.start);
            if group.marked {
                next_sync = group.start + 20 + 2000;
            }
        }
        let marked = layout.groups.iter().filter(|g| g.marked).count();
        assert!(marked > 5 && marked < layout.groups.len());
    }
}

#[test]
fn after_a_header_of_2000_bytes_the_first_group_has_a_marker() {
    let metadata = BTreeMap::from([("long".to_owned(), "v".repeat(2000))]);
    let layout = parse(&write(&[numbers(1)], Settings { metadata, ..options() }));
    assert!(layout.header_end > 2000 && layout.groups[0].marked);
}

#[test]
fn lengths_of_cells_are_stored_as_runs() {
    let texts = ["a", "a", "bc", "", "", "", "", "d"];
    let options = Settings { types: Some(vec![HiveType::Varchar(9)]), ..options() };
    let layout = parse(&write(&[batch(vec![("t", Arc::new(StringArray::from(texts.to_vec())))])], options));
    // A length, then ~k for k further cells with the same length.
    assert_eq!(layout.groups[0].lengths[0], [1, 0xfe, 2, 0, 0xfc, 1]);
    assert_eq!(layout.groups[0].columns[0], texts.map(|t| t.as_bytes().to_vec()));
}

#[test]
fn a_seed_makes_a_file_reproducible() {
    let sync = |seed| {
        let bytes = write(&[numbers(0)], Settings { sync_seed: seed, ..Settings::default() });
        bytes[40..].to_vec()
    };
    assert_eq!(sync(Some(1)), sync(Some(1)));
    assert_ne!(sync(Some(1)), sync(Some(2)));
    assert_ne!(sync(None), sync(None));
}

#[test]
fn arrays_are_cast_where_that_loses_nothing() {
    let mut dictionary = StringDictionaryBuilder::<Int32Type>::new();
    dictionary.extend([Some("a"), None, Some("a")]);
    let batch = batch(vec![
        ("d", Arc::new(dictionary.finish())),
        ("l", Arc::new(LargeStringArray::from(vec!["x", "yy", "z"]))),
        ("i", Arc::new(Int32Array::from(vec![1, 2, 3]))),
    ]);
    let types = vec![HiveType::String, HiveType::String, HiveType::TinyInt];
    let layout =
        parse(&write(std::slice::from_ref(&batch), Settings { types: Some(types.clone()), ..options() }));
    let columns = &layout.groups[0].columns;
    assert_eq!(columns[0], [&b"a"[..], b"", b"a"]);
    assert_eq!(columns[1], [&b"x"[..], b"yy", b"z"]);
    assert_eq!(columns[2], [[1], [2], [3]]);

    // A value that does not fit is an error, and nothing more can be written.
    let mut columns = batch.columns().to_vec();
    columns[2] = Arc::new(Int32Array::from(vec![1, 2, 300]));
    let large = RecordBatch::try_new(batch.schema(), columns).unwrap();
    let mut writer =
        Writer::new(Vec::new(), &batch.schema(), Settings { types: Some(types), ..options() }).unwrap();
    assert!(writer.write(&large).is_err());
    assert!(writer.write(&batch).unwrap_err().to_string().contains("incomplete"));
    assert!(writer.finish().is_err());
}

#[test]
fn an_unsuitable_schema_is_refused() {
    let schema = numbers(0).schema();
    let writer = |types| Writer::new(Vec::new(), &schema, Settings { types: Some(types), ..options() });
    let error = writer(vec![HiveType::Int]).unwrap_err().to_string();
    assert_eq!(error, "expected Hive types for 2 columns, found 1");
    let nested = HiveType::Struct(vec![("a".to_owned(), HiveType::Int)]);
    assert!(writer(vec![HiveType::BigInt, nested]).unwrap_err().to_string().starts_with("column \"t\": "));
    assert!(Writer::new(Vec::new(), &Schema::empty(), options()).is_err());
}

proptest! {
    #[test]
    fn every_cell_is_where_the_key_puts_it(
        rows in prop::collection::vec((any::<Option<i64>>(), prop::option::of("[a-c]{0,9}")), 0..300),
        row_group_bytes in 0usize..500,
        record_interval in 1usize..100,
        algorithm in 0usize..6,
        text: bool,
    ) {
        let codec = [None, Some(Algorithm::Zlib), Some(Algorithm::Gzip), Some(Algorithm::Snappy), Some(Algorithm::Lz4), Some(Algorithm::Zstd)];
        let codec = codec[algorithm].map(|a| HadoopCodec::from_algorithm(a).unwrap());
        let serde = if text { Serde::Text } else { Serde::Binary };
        let options = Settings { codec, row_group_bytes, record_interval, serde, ..options() };
        let numbers: Int64Array = rows.iter().map(|r| r.0).collect();
        let texts: StringArray = rows.iter().map(|r| r.1.as_deref()).collect();
        let batch = batch(vec![("n", Arc::new(numbers)), ("t", Arc::new(texts))]);
        let layout = parse(&write(std::slice::from_ref(&batch), options.clone()));
        prop_assert_eq!(layout.groups.iter().map(|g| g.rows).sum::<usize>(), rows.len());
        for (i, array) in batch.columns().iter().enumerate() {
            let hive_type = HiveType::from_arrow(array.data_type()).unwrap();
            let encoder = match serde {
                Serde::Text => text::encoder(&hive_type, &options.serde_options),
                Serde::Binary => lazy_binary::encoder(&hive_type, &options.serde_options),
            };
            let (mut data, mut lengths) = (Vec::new(), Vec::new());
            encoder.unwrap().encode(array, 0..rows.len(), &mut data, &mut lengths).unwrap();
            let cells: Vec<&Vec<u8>> = layout.groups.iter().flat_map(|g| &g.columns[i]).collect();
            prop_assert_eq!(cells.iter().map(|c| c.len() as u32).collect::<Vec<_>>(), lengths);
            prop_assert_eq!(cells.into_iter().flatten().copied().collect::<Vec<u8>>(), data);
        }
    }
}
