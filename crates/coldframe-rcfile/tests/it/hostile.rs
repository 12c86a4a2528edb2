//! Files whose numbers exceed their size are read in short time and little memory.

use bytes::Bytes;
use coldframe_core::{
    DamageLog, Format, OnError, OpenOptions, Scan, ScanReader, SchemaSpec, Split, TableFile, Value,
};
use coldframe_encoding::varint::{put_hadoop_text, put_hadoop_vlong};
use coldframe_rcfile::{RcFile, RcFileFormat};
use coldframe_testing::fixture::source;
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::{laws, rows};

/// A header without a codec.
fn header(columns: usize) -> Vec<u8> {
    let mut file = b"RCF\x01\x00\x00\x00\x00\x01".to_vec();
    put_hadoop_text(&mut file, b"hive.io.rcfile.column.number");
    put_hadoop_text(&mut file, columns.to_string().as_bytes());
    file.extend([7; 16]);
    file
}

/// A row group with this key.
fn group(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut group = Vec::new();
    for len in [key.len() + data.len(), key.len(), key.len()] {
        group.extend(u32::try_from(len).unwrap().to_be_bytes());
    }
    group.extend(key);
    group.extend_from_slice(data);
    group
}

/// A key of `rows` rows and `columns` columns, in which each cell has `cell` bytes.
fn key(rows: i64, columns: usize, cell: i64) -> Vec<u8> {
    let mut lengths = Vec::new();
    put_hadoop_vlong(&mut lengths, cell);
    if rows > 1 {
        put_hadoop_vlong(&mut lengths, !(rows - 1));
    }
    let mut key = Vec::new();
    put_hadoop_vlong(&mut key, rows);
    for _ in 0..columns {
        put_hadoop_vlong(&mut key, rows * cell);
        put_hadoop_vlong(&mut key, rows * cell);
        put_hadoop_text(&mut key, &lengths);
    }
    key
}

fn open(bytes: Vec<u8>) -> RcFile {
    RcFile::open(&source(bytes), &OpenOptions::default()).unwrap()
}

/// If work were done for each pair of columns, that would be 10^10 steps, and this test would take minutes.
#[test]
fn one_row_of_many_columns_is_read_in_linear_time() {
    let columns = 99_000;
    let bytes = [header(columns), group(&key(1, columns, 1), &vec![b'5'; columns])].concat();
    let ddl: Vec<String> = (0..columns).map(|i| format!("column_with_a_long_name_{i} int")).collect();
    let mut options = OpenOptions { schema: Some(SchemaSpec::Ddl(ddl.join(","))), ..OpenOptions::default() };
    options.extra.insert("serde".into(), Value::from("text"));
    let file = RcFile::open(&source(bytes), &options).unwrap();
    let outcome = rows::read(&file, OnError::Raise).unwrap();
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!((outcome.batch.num_rows(), outcome.batch.num_columns()), (1, columns));
}

/// Empty cells take no bytes in the file but memory in a batch, so batches have fewer rows.
#[test]
fn many_empty_cells_are_returned_in_short_batches() {
    let columns = 20_000;
    let bytes = [header(columns), group(&key(1 << 16, columns, 0), b"")].concat();
    let most = bytes.len() * 4 + (80 << 20);
    let file = open(bytes);
    let all = Split { part: 0, range: 0..u64::MAX, rows: None };
    let scan = Scan { limit: Some(1000), ..Scan::default() };
    let mut reader = ScanReader::try_new(&file, &scan, &all, DamageLog::default()).unwrap();
    let mut rows = 0;
    while let Some(batch) = reader.next_batch().unwrap() {
        assert!(batch.get_array_memory_size() < most, "{} rows", batch.num_rows());
        rows += batch.num_rows();
    }
    assert_eq!(rows, 1000);
}

/// The shortest file.
const BASE: usize = 3 << 19;

/// Reads files of `unit` repeated n, 2n and 4n times: the work grows in proportion, and the memory is
/// limited. Returns the number of readable rows of the first file.
fn survive(what: &str, header: &[u8], unit: &[u8]) -> usize {
    let base = BASE / unit.len();
    let twins = [base, 2 * base, 4 * base].map(|n| Bytes::from([header, &unit.repeat(n)].concat()));
    let open = laws::opener(|source| RcFileFormat.open(&source, &OpenOptions::default()));
    // The budget of searches has a constant part. Short files do not use it up, so the work is linear only
    // without searches.
    if what == "no markers" {
        laws::assert_linear(what, &twins, &open);
    }
    laws::assert_bounded(what, &twins[0], &open);
    let file = RcFile::open(&source(twins[0].clone()), &OpenOptions::default()).unwrap();
    assert_tiled(&file.inspect().unwrap());
    let outcome = rows::read(&file, OnError::Skip).unwrap();
    assert!(outcome.error.is_none() && !outcome.damage.is_empty(), "{what}: {:?}", outcome.error);
    outcome.batch.num_rows()
}

/// Each offset looks like a record header whose key is long and, at its end, wrong.
#[test]
fn not_every_likely_header_is_examined() {
    // These bytes also parse as lengths, so each key is parsed up to its last column.
    let likely = 0x0f00u32.to_be_bytes().repeat(3);
    assert_eq!(survive("likely headers", &header(1000), &likely), 0);
}

/// Groups without markers, with a wrong byte between them, so that only the last is anchored: each search for the next marker
/// could read the rest of the file.
#[test]
fn damage_between_groups_without_markers_takes_linear_time() {
    let unit = [group(&key(1, 1, 4), b"abcd"), vec![0xfe]].concat();
    assert_eq!(survive("no markers", &header(1), &unit), 1);
}

/// The hash alone, repeated: it is no marker, but parses as the lengths of inconsistent groups.
#[test]
fn hashes_without_an_escape_take_linear_time() {
    survive("hashes", &header(100), &[7; 16]);
}

/// Markers without a following group: each is damage, and the reader resynchronises at each.
#[test]
fn markers_without_groups_take_linear_time() {
    let marker = [&[0xff; 4][..], &[7; 16]].concat();
    assert_eq!(survive("markers", &header(2), &marker), 0);
    assert_eq!(
        survive("markers and headers", &header(2), &[&marker[..], &[0, 0, 0, 9, 0, 0, 0, 1]].concat()),
        0
    );
}

/// Ten million entries of a header would take a hundred times its bytes.
#[test]
fn a_header_of_empty_entries_takes_little_memory() {
    let mut bytes = b"RCF\x01\x00".to_vec();
    bytes.extend((8u32 << 20).to_be_bytes());
    put_hadoop_text(&mut bytes, b"hive.io.rcfile.column.number");
    put_hadoop_text(&mut bytes, b"1");
    bytes.resize(bytes.len() + (16 << 20) + 16, 0);
    let e = RcFile::open(&source(bytes), &OpenOptions::default()).unwrap_err();
    assert!(e.to_string().contains("max_metadata_bytes"), "{e}");
}
