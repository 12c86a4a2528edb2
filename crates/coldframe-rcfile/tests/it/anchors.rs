//! What proves the rows of a row group: its key's numbers agree, and something that can follow a group follows it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use coldframe_core::{DamageLog, ErrorKind, OnError, OpenOptions, Scan, ScanReader, SchemaSpec, Split};
use coldframe_encoding::varint::{put_hadoop_text, put_hadoop_vlong};
use coldframe_rcfile::{RcFile, RcFileFormat};
use coldframe_testing::fixture::source;
use coldframe_testing::rows::{self, Outcome, as_text};
use coldframe_testing::written;

const SYNC: [u8; 16] = [7; 16];

fn header(columns: usize) -> Vec<u8> {
    let mut file = b"RCF\x01\x00\x00\x00\x00\x01".to_vec();
    put_hadoop_text(&mut file, b"hive.io.rcfile.column.number");
    put_hadoop_text(&mut file, columns.to_string().as_bytes());
    file.extend(SYNC);
    file
}

/// A row group of columns of text that states `rows` rows.
fn group(rows: i64, columns: &[&[&str]]) -> Vec<u8> {
    let (mut key, mut data) = (Vec::new(), Vec::new());
    put_hadoop_vlong(&mut key, rows);
    for cells in columns {
        let mut lengths = Vec::new();
        cells.iter().for_each(|cell| put_hadoop_vlong(&mut lengths, i64::try_from(cell.len()).unwrap()));
        let bytes = cells.concat();
        for _ in 0..2 {
            put_hadoop_vlong(&mut key, i64::try_from(bytes.len()).unwrap());
        }
        put_hadoop_text(&mut key, &lengths);
        data.extend(bytes.bytes());
    }
    let mut group = Vec::new();
    for len in [key.len() + data.len(), key.len(), key.len()] {
        group.extend(u32::try_from(len).unwrap().to_be_bytes());
    }
    [group, key, data].concat()
}

fn marker() -> Vec<u8> {
    [&[0xff; 4][..], &SYNC].concat()
}

/// Opens a file with this schema, or with as many columns of text as it has, up to two.
fn open(bytes: Vec<u8>, ddl: Option<&str>) -> RcFile {
    let columns = RcFile::open(&source(bytes.clone()), &OpenOptions::default()).unwrap().header().columns;
    let text = if columns == 1 { "a string" } else { "a string, b string" };
    let schema = Some(SchemaSpec::Ddl(ddl.unwrap_or(text).to_owned()));
    let mut options = OpenOptions { schema, ..OpenOptions::default() };
    options.extra.insert("serde".into(), "text".into());
    RcFile::open(&source(bytes), &options).unwrap()
}

/// Opens a file of numbers in binary form.
fn open_numbers(bytes: Vec<u8>) -> RcFile {
    let columns = RcFile::open(&source(bytes.clone()), &OpenOptions::default()).unwrap().header().columns;
    let numbers = if columns == 1 { "a bigint" } else { "a bigint, b bigint" };
    let schema = Some(SchemaSpec::Ddl(numbers.to_owned()));
    let mut options = OpenOptions { schema, ..OpenOptions::default() };
    options.extra.insert("serde".into(), "binary".into());
    RcFile::open(&source(bytes), &options).unwrap()
}

fn read(file: &RcFile, on_error: OnError) -> Outcome {
    let outcome = rows::read(file, on_error).unwrap();
    assert!(on_error == OnError::Raise || outcome.error.is_none(), "{:?}", outcome.error);
    outcome
}

/// Texts of the rows that skip keeps, and the rows that each record loses.
fn skipped(bytes: Vec<u8>) -> (Vec<String>, Vec<Option<u64>>) {
    let file = open(bytes, None);
    let outcome = read(&file, OnError::Skip);
    let verified = coldframe_core::scan::verify(&file, |_| Ok(())).unwrap();
    assert!(outcome.damage.is_empty() || !verified.damage.is_empty(), "{:?}", outcome.damage);
    let lossless = outcome.damage.iter().all(|d| d.rows_lost == Some(0));
    assert!(lossless || read(&file, OnError::Raise).error.is_some(), "{:?}", outcome.damage);
    // What is saved does not depend on how the rows are cut.
    for batch_rows in 1..4 {
        let scan = Scan { on_error: OnError::Skip, batch_rows, limit: Some(4), ..Scan::default() };
        let part = rows::scan(&file, &scan, None).unwrap();
        let first = outcome.batch.slice(0, outcome.batch.num_rows().min(4));
        assert_eq!(as_text(&part.batch), as_text(&first));
    }
    (as_text(&outcome.batch), outcome.damage.iter().map(|d| d.rows_lost).collect())
}

fn a() -> Vec<u8> {
    group(3, &[&["a", "bb", "ccc"], &["1", "2", "3"]])
}

fn b() -> Vec<u8> {
    group(2, &[&["d", "e"], &["4", "5"]])
}

const A: [&str; 3] = ["a\u{1}1\u{1}", "bb\u{1}2\u{1}", "ccc\u{1}3\u{1}"];
const B: [&str; 2] = ["d\u{1}4\u{1}", "e\u{1}5\u{1}"];

#[test]
fn a_column_whose_lengths_contradict_its_bytes_loses_all_its_cells() {
    let mut damaged = a();
    let lengths = damaged.windows(3).position(|w| w == [1, 2, 3]).unwrap();
    damaged[lengths + 1] = 3;
    let bytes = [header(2), damaged, b()].concat();
    assert_eq!(skipped(bytes.clone()), (B.map(String::from).to_vec(), vec![Some(3)]));
    let nulled = read(&open(bytes, None), OnError::Null);
    assert_eq!((nulled.batch.num_rows(), nulled.batch.column(0).null_count()), (5, 3));
    assert_eq!(nulled.batch.column(1).null_count(), 0);
    assert_eq!(nulled.damage[0].rows_lost, Some(0));
}

/// All columns have three cells, so there are three rows, whatever the key states.
#[test]
fn columns_that_agree_outvote_the_number_of_rows() {
    let columns: [&[&str]; 2] = [&["a", "bb", "ccc"], &["1", "2", "3"]];
    for stated in [0, 1, 2, 4, 100] {
        let (rows, lost) = skipped([header(2), group(stated, &columns), b()].concat());
        assert_eq!(
            (rows, lost),
            ([&A[..], &B[..]].concat().iter().map(|&s| s.into()).collect(), vec![Some(0)])
        );
    }
    // One column against the key: nothing says which is right, and null makes up no rows.
    let bytes = [header(1), group(4, &columns[..1]), group(1, &[&["x"]])].concat();
    assert_eq!(skipped(bytes.clone()), (vec!["x\u{1}".into()], vec![None]));
    assert_eq!(read(&open(bytes, None), OnError::Null).batch.num_rows(), 1);
}

#[test]
fn a_group_is_anchored_by_what_follows_it() {
    let all: Vec<String> = [&A[..], &B[..]].concat().iter().map(|&s| s.into()).collect();
    assert_eq!(skipped([header(2), a(), marker(), b()].concat()).0, all);
    // A damaged group still follows if its header or its key leads to the next boundary.
    let c = || group(1, &[&["f"], &["6"]]);
    for place in [0, 3, 4, 12, 15] {
        let mut damaged = b();
        damaged[place] ^= 0x40;
        let (rows, _) = skipped([header(2), a(), damaged, c()].concat());
        assert_eq!(rows[..3], A, "byte {place}");
        assert_eq!(rows.last().unwrap(), "f\u{1}6\u{1}", "byte {place}");
    }
    // So does a group that the end of the file cuts off.
    for len in 1..b().len() {
        let (rows, lost) = skipped([header(2), a(), b()[..len].to_vec()].concat());
        assert_eq!((rows, lost), (A.map(String::from).to_vec(), vec![None]), "{len} bytes");
    }
    // Zeros cannot follow a group, and may begin before the group ends.
    let (rows, lost) = skipped([header(2), a(), vec![0; 40], marker(), b()].concat());
    assert_eq!((rows, lost), (B.map(String::from).to_vec(), vec![None]));
}

/// A length on disk that leads elsewhere shifts all columns after it.
#[test]
fn a_group_that_ends_nowhere_is_lost() {
    let mut damaged = a();
    damaged[13] -= 1;
    let (rows, lost) = skipped([header(2), damaged, marker(), b()].concat());
    assert_eq!((rows, lost), (B.map(String::from).to_vec(), vec![None]));
}

/// Doubtful are the rows in front of a contradiction, and those of a group that nothing anchors.
#[test]
fn rows_in_front_of_a_contradiction_are_doubtful() {
    let doubtful = |bytes: Vec<u8>| {
        let scan = Scan { on_error: OnError::Skip, doubtful: true, ..Scan::default() };
        as_text(&rows::scan(&open(bytes, None), &scan, None).unwrap().batch)
    };
    let mut damaged = a();
    let lengths = damaged.windows(3).position(|w| w == [1, 2, 3]).unwrap();
    damaged[lengths + 1] = 6;
    assert_eq!(doubtful([header(2), damaged, b()].concat()), A[..1]);
    assert_eq!(doubtful([header(2), a(), vec![0; 40], marker(), b()].concat()), A);
    assert!(doubtful([header(2), a(), b()].concat()).is_empty());
}

/// No row is lost, but the file states two sizes.
#[test]
fn sizes_that_differ_without_a_codec_are_reported() {
    let mut damaged = a();
    damaged[14] += 1;
    let file = open([header(2), damaged].concat(), None);
    assert_eq!(as_text(&read(&file, OnError::Skip).batch), A);
    let report = coldframe_core::scan::verify(&file, |_| Ok(())).unwrap();
    assert_eq!(report.damage[0].structure, "row group 0: column 0: bytes decompressed");
}

/// Cells may hold the bytes of a marker: no split begins there.
#[test]
fn splits_do_not_begin_within_cells() {
    let cell = String::from_utf8(vec![7; 16]).unwrap();
    let long = "x".repeat(50);
    let mut bytes = [header(1), group(2, &[&[&long, &["1234", &cell, &long].concat()]])].concat();
    let hash = bytes.windows(20).position(|w| w[4..] == SYNC && w[..4] == *b"1234").unwrap();
    bytes[hash..hash + 4].fill(0xff);
    bytes.extend([marker(), group(1, &[&["last"]])].concat());
    let len = bytes.len() as u64;
    let file = open(bytes, None);
    let whole = as_text(&read(&file, OnError::Raise).batch);
    for cut in 1..len {
        let mut parts = Vec::new();
        for range in [0..cut, cut..len] {
            let split = Split { part: 0, range, rows: None };
            let part = rows::scan(&file, &Scan::default(), Some(&split)).unwrap();
            assert!(part.error.is_none(), "cut at {cut}: {:?}", part.error);
            parts.extend(as_text(&part.batch));
        }
        assert_eq!(parts, whole, "cut at {cut}");
    }
}

/// A cell of separators: memory grows with the bytes of the cells, and lists are not refused.
#[test]
fn separators_take_memory_in_proportion() {
    let file = |cells: &[String]| {
        let column: ArrayRef =
            Arc::new(cells.iter().map(|cell| Some(cell.as_str())).collect::<StringArray>());
        let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
        written(&RcFileFormat, &[batch], &[("serde", "text".into())]).unwrap().to_vec()
    };
    let cell = "\u{2}".repeat(1 << 20);
    let single = file(std::slice::from_ref(&cell));
    let outcome = read(&open(single.clone(), Some("a array<string>")), OnError::Raise);
    assert_eq!(outcome.batch.column(0).as_list::<i32>().value(0).len(), (1 << 20) + 1);
    // A hundred fields for each separator are more than a block may hold.
    let fields: Vec<String> = (0..100).map(|i| format!("f{i}: string")).collect();
    let wide = format!("a array<struct<{}>>", fields.join(","));
    let e = read(&open(single, Some(&wide)), OnError::Raise).error.unwrap();
    assert!(matches!(e.kind(), ErrorKind::LimitExceeded { option: "max_block_bytes", .. }), "{e}");
    // Several rows come in shorter batches instead.
    let many = open(
        file(&vec!["\u{2}".repeat(250 << 10); 8]),
        Some("a array<struct<b:string,c:string,d:string,e:string,f:string>>"),
    );
    let split = Split { part: 0, range: 0..u64::MAX, rows: None };
    let mut reader = ScanReader::try_new(&many, &Scan::default(), &split, DamageLog::default()).unwrap();
    let mut rows = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        rows.push(batch.num_rows());
    }
    assert_eq!(rows, [4, 4]);
}

/// Zeros in place of numbers: where a number had several bytes, the cell contradicts its type, and otherwise it is
/// another number.
#[test]
fn cells_between_contradictions_are_doubtful() {
    let column: &[&str] = &["\u{7}", "\0\0\0\0", "\0", "", "\0\0\0\0", "\0", "\u{5}", "\u{6}"];
    let bytes = [header(1), group(8, &[column])].concat();
    let file = open_numbers(bytes);
    let outcome = |on_error, doubtful, batch_rows| {
        let scan = Scan { on_error, doubtful, batch_rows, ..Scan::default() };
        let outcome = rows::scan(&file, &scan, None).unwrap();
        let values: Vec<_> = outcome.batch.column(0).as_primitive::<Int64Type>().iter().collect();
        (values, outcome.damage)
    };
    for batch_rows in [1, 3, 100] {
        let (kept, damage) = outcome(OnError::Skip, false, batch_rows);
        assert_eq!(kept, [None, Some(5), Some(6)], "batches of {batch_rows}");
        let lost: u64 = damage.iter().filter_map(|d| d.rows_lost).sum();
        assert_eq!(lost, 5, "{damage:?}");
        assert_eq!(outcome(OnError::Skip, true, batch_rows).0, [Some(7), Some(0), Some(0)]);
        let (nulled, _) = outcome(OnError::Null, false, batch_rows);
        assert_eq!(nulled, [None, None, None, None, None, None, Some(5), Some(6)]);
    }
}

/// A cell alone proves nothing of its neighbours, but the zeros of a lost sector do.
#[test]
fn zeros_around_a_contradiction_are_doubtful() {
    let zeros = "\0".repeat(80);
    let short: Vec<&str> = zeros.split("").filter(|cell| !cell.is_empty()).collect();
    for (zeros, kept) in [(10, 13), (70, 3)] {
        let column = [&["\u{7}", "\0\0"][..], &short[..zeros], &["\u{5}", "\u{6}"]].concat();
        let rows = i64::try_from(column.len()).unwrap();
        let file = open_numbers([header(1), group(rows, &[&column])].concat());
        assert_eq!(read(&file, OnError::Skip).batch.num_rows(), kept);
    }
}

/// Columns lie next to each other: the zeros of a lost sector go on in the next column, where they contradict no type.
#[test]
fn zeros_around_a_contradiction_go_on_in_the_next_column() {
    let first = [&["\u{7}"; 3][..], &["\0\0"], &["\0"; 40]].concat();
    let zeros_first = [&["\0"; 40][..], &["\u{5}"; 4]].concat();
    let zeros_last = [&["\u{5}"; 4][..], &["\0"; 40]].concat();
    for (second, kept) in [(zeros_first, 0), (zeros_last, 43)] {
        let file = open_numbers([header(2), group(44, &[&first, &second])].concat());
        assert_eq!(read(&file, OnError::Skip).batch.num_rows(), kept);
        let scan = Scan { on_error: OnError::Skip, doubtful: true, ..Scan::default() };
        assert_eq!(rows::scan(&file, &scan, None).unwrap().batch.num_rows(), 43 - kept);
    }
}

/// Other bytes of damage end and begin near the boundary of two columns.
#[test]
fn cells_between_contradictions_of_two_columns_are_doubtful() {
    // A number of two bytes that is not one.
    let bad = "\0\0";
    let first = [&["\u{7}"; 4][..], &[bad, bad, "\u{1}", "\u{1}"]].concat();
    let second = [&["\u{1}", bad, bad][..], &["\u{5}"; 5]].concat();
    let file = open_numbers([header(2), group(8, &[&first, &second])].concat());
    let kept = read(&file, OnError::Skip).batch;
    // Of the first column rows 3 to 7 fall, of the second rows 0 to 3.
    assert_eq!(kept.num_rows(), 0);
    let alone = open_numbers([header(2), group(8, &[&first, &["\u{5}"; 8]])].concat());
    assert_eq!(
        as_text(&read(&alone, OnError::Skip).batch),
        ["7\u{1}5\u{1}"; 3].iter().chain(&["1\u{1}5\u{1}"]).copied().collect::<Vec<_>>()
    );
}
