//! Damages files at known places and checks which rows are lost and which remain. Every byte belongs to a
//! structure.

use crate::support;

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use coldframe_core::Format;
use coldframe_core::{Error, ErrorKind, Limits, OnError, OpenOptions, Result, Scan, TableFile, Value};
use coldframe_orc::{Kind, Options, OrcFile, OrcFormat, proto};
use coldframe_testing::laws::assert_tolerant;
use coldframe_testing::mutate::flipped;
use coldframe_testing::{Fixture, fixture, layout, rows};
use support::crafted::tailed;

/// Low limits, so that a damaged file that requests too much memory is refused early.
fn limits() -> Limits {
    Limits {
        max_block_bytes: 64 << 20,
        max_metadata_bytes: 16 << 20,
        max_unit_rows: Some(1 << 20),
        ..Limits::default()
    }
}

fn default_options() -> Options {
    Options::new(&coldframe_orc::OpenOptions::default(), &OpenOptions::default())
}

fn open(bytes: impl Into<Bytes>) -> Result<Arc<dyn TableFile>> {
    let mut options = OpenOptions { limits: limits(), ..OpenOptions::default() };
    options.extra.insert("timestamp_unit".to_owned(), Value::from("us"));
    OrcFormat.open(&fixture::source(bytes), &options)
}

fn files() -> Vec<Fixture> {
    fixture::distinct(fixture::files("orc")).into_iter().filter(|f| f.path.is_file()).collect()
}

/// The committed files, which are small.
fn small() -> Vec<Fixture> {
    files().into_iter().filter(|f| f.path.starts_with(fixture::data())).collect()
}

#[test]
fn the_leaves_of_the_tree_cover_the_file() {
    for file in files() {
        let Ok(table) = open(file.bytes()) else { continue };
        let node = table.inspect().unwrap();
        assert_eq!(node.bytes, 0..file.bytes().len() as u64, "{}", file.name());
        layout::assert_tiled(&node);
        assert_eq!(table.verify_structure().unwrap(), [], "{}", file.name());
    }
}

fn error_of(bytes: Bytes) -> Error {
    let table = match open(bytes) {
        Ok(table) => table,
        Err(e) => return e,
    };
    rows::read(table.as_ref(), OnError::Raise).unwrap().error.unwrap_or_else(|| panic!("no error"))
}

const ROWS: i64 = 20_000;

/// Numbers, and texts that belong to their row.
fn written(codec: &str) -> Vec<u8> {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|i| i * 7919 % 1_000_003)));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(
        (0..ROWS).map(|i| format!("{} and some words of row {i}", i * 7919 % 1_000_003)),
    ));
    let batch = RecordBatch::try_from_iter([("id", id), ("text", text)]).unwrap();
    let options = [
        ("row_index_stride", Value::Int(1000)),
        ("compression_block_size", Value::Int(4096)),
        ("codec", codec.into()),
    ];
    support::written(&batch, &options).to_vec()
}

/// The bytes of the DATA stream of a column.
fn data_of(bytes: &[u8], column: usize) -> std::ops::Range<usize> {
    let file = OrcFile::open(Arc::new(Bytes::copy_from_slice(bytes)), default_options());
    let node = file.unwrap().inspect().unwrap();
    let stripe = node.children.iter().find(|n| n.name == "stripe 0").unwrap();
    let is_data = |n: &&coldframe_core::Node| {
        n.name == "DATA" && n.detail.contains(&("column".to_owned(), Value::from(column)))
    };
    let data = stripe.children.iter().find(is_data).unwrap().bytes.clone();
    usize::try_from(data.start).unwrap()..usize::try_from(data.end).unwrap()
}

#[test]
fn a_broken_chunk_loses_its_row_groups() {
    // Deflate may read the damage as its last block: the chunk becomes too short, without an error.
    for codec in ["snappy", "zlib"] {
        broken_chunk(codec);
    }
}

fn broken_chunk(codec: &str) {
    let whole = written(codec);
    let place = data_of(&whole, 2);
    let mut bytes = whole.clone();
    let middle = place.start + place.len() / 2;
    bytes.get_mut(middle..middle + 40).unwrap().fill(0xff);
    let table = open(bytes).unwrap();
    let raised = rows::read(table.as_ref(), OnError::Raise).unwrap().error;
    assert!(raised.is_some(), "{codec}");

    let skipped = rows::read(table.as_ref(), OnError::Skip).unwrap();
    assert!(skipped.error.is_none());
    let lost: u64 = skipped.damage.iter().map(|d| d.rows_lost.unwrap()).sum();
    // The rows of a row group before the damage remain.
    assert!((1..=2000).contains(&lost), "{:?}", skipped.damage);
    assert_eq!(skipped.batch.num_rows() as u64 + lost, ROWS.unsigned_abs());
    let (ids, texts) =
        (skipped.batch.column(0).as_primitive::<Int64Type>(), skipped.batch.column(1).as_string::<i32>());
    for (id, text) in ids.values().iter().zip(texts) {
        assert!(text.unwrap().starts_with(&format!("{id} ")), "{id} {text:?}");
    }

    let nulled = rows::read(table.as_ref(), OnError::Null).unwrap();
    assert_eq!(i64::try_from(nulled.batch.num_rows()), Ok(ROWS));
    let ids: HashSet<i64> =
        nulled.batch.column(0).as_primitive::<Int64Type>().values().iter().copied().collect();
    assert_eq!(i64::try_from(ids.len()), Ok(ROWS));
    assert!((1..=2000).contains(&nulled.batch.column(1).null_count()));
    let bytes = nulled.damage.first().unwrap().bytes.clone();
    assert!(place.start as u64 <= bytes.start && bytes.end <= place.end as u64, "{bytes:?}");
    assert!(bytes.contains(&(middle as u64)), "{bytes:?}");
}

#[test]
fn a_broken_stripe_footer_loses_the_stripe() {
    let whole = written("zlib");
    let node = open(whole.clone()).unwrap().inspect().unwrap();
    let stripe = node.children.iter().find(|n| n.name == "stripe 0").unwrap();
    let footer = stripe.children.iter().find(|n| n.name == "stripe footer").unwrap().bytes.start;
    let bytes = flipped(&whole, usize::try_from(footer).unwrap() + 5, 0xff);
    let outcome = rows::read(open(bytes).unwrap().as_ref(), OnError::Skip).unwrap();
    assert_eq!((outcome.batch.num_rows(), outcome.damage.len()), (0, 1));
    assert_eq!(outcome.damage.first().unwrap().rows_lost, Some(ROWS.unsigned_abs()));
}

#[test]
fn a_limit_reads_the_first_row_groups_only() {
    let bytes = written("zlib");
    let source = Arc::new(coldframe_testing::Logged::new(bytes));
    let file = OrcFile::open(source.clone(), default_options()).unwrap();
    let fetched = |limit: Option<u64>| {
        source.take();
        let outcome = rows::scan(&file, &Scan { limit, ..Scan::default() }, None).unwrap();
        let bytes: u64 = source.take().iter().flatten().map(|r| r.end - r.start).sum();
        (outcome.batch, bytes)
    };
    let (all, everything) = fetched(None);
    let (few, some) = fetched(Some(10));
    assert_eq!(few, all.slice(0, 10));
    assert!(some * 2 < everything, "{some} of {everything}");
}

/// A read with `raise` refuses a value that no array can hold; a read with `skip` or `null` records it as
/// damage.
#[test]
fn a_map_with_a_null_key_is_refused_or_lost() {
    let file = small().into_iter().find(|f| f.name().contains("nested_v011")).unwrap();
    // The changed byte is in a run of the keys' PRESENT stream.
    let changed = flipped(&file.bytes(), 3813, 1);
    let table = open(changed.clone()).unwrap();
    assert_tolerant(table.as_ref(), Some(changed.len() as u64), &[1]);
    let e = rows::read(table.as_ref(), OnError::Raise).unwrap().error.unwrap();
    assert!(matches!(e.kind(), ErrorKind::Unsupported(_)) && e.to_string().contains("null key"), "{e}");
    for on_error in [OnError::Skip, OnError::Null] {
        let left = rows::read(table.as_ref(), on_error).unwrap();
        assert!(
            left.error.is_none() && left.damage.iter().any(|d| d.reason.contains("null key")),
            "{left:?}"
        );
    }
}

/// The footer states more rows than its stripes have, so either rows are missing or the number is wrong.
#[test]
fn different_row_counts_of_footer_and_stripes_are_damage() {
    let info = proto::StripeInformation { offset: Some(3), number_of_rows: Some(0), ..Default::default() };
    let root = proto::Type { kind: Some(Kind::Struct.number()), ..Default::default() };
    let footer = proto::Footer {
        stripes: vec![info],
        types: vec![root],
        number_of_rows: Some(500),
        ..Default::default()
    };
    let bytes = tailed(b"ORC".to_vec(), &footer);
    let e = error_of(bytes.clone());
    assert!(e.is_damage() && e.to_string().contains("expected 500 rows, found stripes of 0"), "{e}");
    let table = open(bytes).unwrap();
    let skipped = rows::read(table.as_ref(), OnError::Skip).unwrap();
    assert!(skipped.error.is_none());
    assert_eq!(skipped.damage.iter().map(|d| d.rows_lost).collect::<Vec<_>>(), [Some(500)]);
    assert!(coldframe_core::scan::count(table.as_ref(), None).is_err());
    let report = coldframe_core::scan::verify(table.as_ref(), |_| Ok(())).unwrap();
    assert_eq!(report.damage.len(), 1);
}

/// A limit applies to returned rows, not to the rows of damaged stripes and row groups.
#[test]
fn a_limit_counts_returned_rows() {
    let bytes = {
        let id: ArrayRef = Arc::new((0..ROWS).collect::<Int64Array>());
        let text: ArrayRef = Arc::new(StringArray::from_iter_values(
            (0..ROWS).map(|i| format!("{i} {}", i * 7919 % 1_000_003)),
        ));
        let batch = RecordBatch::try_from_iter([("id", id), ("text", text)]).unwrap();
        let options = [
            ("row_index_stride", Value::Int(1000)),
            ("stripe_rows", Value::Int(5000)),
            ("codec", "zlib".into()),
        ];
        support::written(&batch, &options).to_vec()
    };
    let node = open(bytes.clone()).unwrap().inspect().unwrap();
    let stripe = node.children.iter().find(|n| n.name == "stripe 0").unwrap();
    let footer = stripe.children.iter().find(|n| n.name == "stripe footer").unwrap().bytes.start;
    let limited = |bytes: Vec<u8>| {
        let scan = Scan { limit: Some(10), on_error: OnError::Skip, ..Scan::default() };
        let outcome = rows::scan(open(bytes).unwrap().as_ref(), &scan, None).unwrap();
        outcome.batch.column(0).as_primitive::<Int64Type>().values().to_vec()
    };
    assert_eq!(limited(bytes.clone()), (0..10).collect::<Vec<i64>>());
    // Damages the footer of the first stripe: only its rows are lost.
    let at = usize::try_from(footer).unwrap() + 5;
    assert_eq!(limited(flipped(&bytes, at, 0xff).to_vec()), (5000..5010).collect::<Vec<i64>>());
    // Damages the first row group of the first stripe: the next row groups are read.
    let mut first = bytes;
    let place = data_of(&first, 2);
    first.get_mut(place.start..place.start + 40).unwrap().fill(0xff);
    let ids = limited(first);
    assert_eq!(ids.len(), 10);
    assert!(ids.iter().all(|id| *id >= 1000), "{ids:?}");
}
