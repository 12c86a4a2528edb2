//! The laws of every format, on a table of two files: every loss in a file is reported, and no deleted row
//! is returned.

use crate::support;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Fields};
use bytes::Bytes;
use coldframe_core::{ErrorKind, Format, Node, OnError, OpenOptions, Result, TableFile, Value};
use coldframe_hive::HiveFormat;
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::laws::{assert_tolerant, made};
use coldframe_testing::rows;
use support::written;

const BUCKET: i32 = 0x2000_0000;

/// Events for `rows` of write 1: inserts, or deletes by write 2.
fn events(rows: impl Iterator<Item = i64> + Clone, deletes: bool) -> Bytes {
    stored(1, rows, |_| if deletes { 2 } else { 0 })
}

/// Deletes by write 2 of `rows` of write `original`.
fn events_of(original: i64, rows: impl Iterator<Item = i64> + Clone) -> Bytes {
    stored(original, rows, |_| 2)
}

/// Rows of `write` in a bucket.
fn inserted(write: i64, bucket: i32, rows: impl Iterator<Item = i64> + Clone) -> Bytes {
    stored_in(bucket, write, rows, |_| 0)
}

/// A file of `rows`, with an operation for each row. Operation 2 is a delete, by write 2.
fn stored(original: i64, rows: impl Iterator<Item = i64> + Clone, operation: impl Fn(i64) -> i32) -> Bytes {
    stored_in(BUCKET, original, rows, operation)
}

fn stored_in(
    bucket: i32,
    original: i64,
    rows: impl Iterator<Item = i64> + Clone,
    operation: impl Fn(i64) -> i32,
) -> Bytes {
    let count = rows.clone().count();
    let operations: Vec<i32> = rows.clone().map(operation).collect();
    let writes: Vec<i64> =
        operations.iter().map(|operation| if *operation == 2 { 2 } else { original }).collect();
    let numbers: ArrayRef = Arc::new(rows.collect::<Int64Array>());
    let fields = Fields::from(vec![Field::new("id", DataType::Int64, true)]);
    let row: ArrayRef = Arc::new(StructArray::new(fields, vec![numbers.clone()], None));
    let all: [(&str, ArrayRef, bool); 6] = [
        ("operation", Arc::new(Int32Array::from(operations)), true),
        ("originalTransaction", Arc::new(Int64Array::from(vec![original; count])), true),
        ("bucket", Arc::new(Int32Array::from(vec![bucket; count])), true),
        ("rowId", numbers, true),
        ("currentTransaction", Arc::new(Int64Array::from(writes)), true),
        ("row", row, true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(all).unwrap();
    let options =
        [("row_index_stride", Value::Int(50)), ("stripe_rows", Value::Int(150)), ("codec", "none".into())];
    written(&batch, &options)
}

fn table(base: Bytes, deletes: Bytes) -> Result<Arc<dyn TableFile>> {
    let mut options = OpenOptions::default();
    options.extra.insert("acid".to_owned(), Value::Bool(true));
    let folder = MemoryFolder::default()
        .with("base_1/bucket_00000", base)
        .with("delete_delta_2_2/bucket_00000", deletes);
    HiveFormat.open(&folder.source(), &options)
}

fn deletes() -> Bytes {
    events((0..400).filter(|n| n % 5 == 0), true)
}

/// ORC has no checksums: a bit flip in the identities of rows may undo a delete without being noticed. Damage
/// that is detected is reported.
#[test]
fn damage_of_a_base_is_reported() {
    let base = events(0..400, false);
    let whole = Node::new("file", 0..base.len() as u64);
    let (mut opened, mut lost) = (0, 0);
    for damaged in made(&whole, &base, 300) {
        let Ok(table) = table(damaged.apply(&base), deletes()) else { continue };
        opened += 1;
        let raised = rows::read(table.as_ref(), OnError::Raise).unwrap();
        let [skipped, nulled] = [OnError::Skip, OnError::Null].map(|on_error| {
            let outcome = rows::read(table.as_ref(), on_error).unwrap();
            assert!(outcome.error.as_ref().is_none_or(|e| !e.is_damage()), "{damaged}: {:?}", outcome.error);
            outcome
        });
        assert!(nulled.batch.num_rows() >= skipped.batch.num_rows(), "{damaged}");
        let is_damage = raised.error.is_some_and(|e| e.is_damage());
        assert!(!is_damage || !(skipped.damage.is_empty() || nulled.damage.is_empty()), "{damaged}");
        lost += usize::from(is_damage);
    }
    assert!(opened > 20 && lost > 5, "{opened} {lost}");
}

/// Rows that may have been deleted by deletes that cannot be read are not returned, and are reported as lost.
#[test]
fn damage_of_deletes_brings_back_no_row() {
    let (base, deletes) = (events(0..400, false), deletes());
    for cut in [deletes.len() / 2, deletes.len() - 40, deletes.len() - 1] {
        let table = table(base.clone(), deletes.slice(..cut)).unwrap();
        let refused = rows::read(table.as_ref(), OnError::Raise).map_or_else(Some, |outcome| outcome.error);
        let refused = refused.unwrap();
        assert!(refused.is_damage() && refused.path().unwrap().contains("delete_delta"), "{refused}");
        for on_error in [OnError::Skip, OnError::Null] {
            let outcome = rows::read(table.as_ref(), on_error).unwrap();
            assert!(outcome.error.is_none(), "{cut}: {:?}", outcome.error);
            assert_eq!(outcome.batch.num_rows(), 0);
            let lost: Vec<_> = outcome.damage.iter().map(|d| (d.structure.as_str(), d.rows_lost)).collect();
            assert!(
                lost[0].0.starts_with("delete_delta_2_2/bucket_00000") && lost[0].1.is_none(),
                "{lost:?}"
            );
            assert!(lost[1..].iter().all(|(place, _)| place.starts_with("base_1/bucket_00000: stripe")));
            assert_eq!(lost.iter().filter_map(|(_, rows)| *rows).sum::<u64>(), 400, "{lost:?}");
        }
    }
}

/// Opens files by path as a table.
fn opened(files: &[(&str, Bytes)]) -> Result<Arc<dyn TableFile>> {
    let mut options = OpenOptions::default();
    options.extra.insert("acid".to_owned(), Value::Bool(true));
    let folder =
        files.iter().fold(MemoryFolder::default(), |folder, (path, bytes)| folder.with(path, bytes.clone()));
    HiveFormat.open(&folder.source(), &options)
}

fn ids(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().iter().flatten().collect()
}

/// Only rows of the lost file's bucket that were written before its last write are in doubt.
#[test]
fn lost_deletes_cost_what_they_may_have_deleted() {
    let of = |write: i64, bucket: i32, numbers: std::ops::Range<i64>| {
        inserted(write, BUCKET | bucket << 16, numbers)
    };
    let lost = Bytes::from_static(b"ORC and nothing else");
    let files = [
        ("base_1/bucket_00000", of(1, 0, 0..10)),
        ("base_1/bucket_00001", of(1, 1, 10..20)),
        ("delete_delta_2_2/bucket_00000", lost.clone()),
        ("delta_3_3/bucket_00000", of(3, 0, 20..30)),
    ];
    let table = opened(&files).unwrap();
    assert!(rows::read(table.as_ref(), OnError::Raise).is_err());
    assert_eq!(table.row_count(), None);
    let got = rows::read(table.as_ref(), OnError::Skip).unwrap();
    assert!(got.error.is_none());
    assert_eq!(ids(&got.batch), (10..30).collect::<Vec<_>>());
    let lost_rows: Vec<_> = got.damage.iter().map(|d| (d.structure.as_str(), d.rows_lost)).collect();
    assert_eq!(
        lost_rows,
        [("delete_delta_2_2/bucket_00000: postscript", None), ("base_1/bucket_00000: stripe 0", Some(10))]
    );
    let metadata = table.metadata().unwrap();
    assert!(format!("{metadata:?}").contains("lost_files"), "{metadata:?}");

    // If a file of rows is lost, only its own rows are lost, since this table stores updates as deletes and
    // inserts.
    let files =
        [files[0].clone(), ("delta_2_2/bucket_00000", lost.clone()), files[3].clone(), files[1].clone()];
    let with_deletes = [&files[..], &[("delete_delta_4_4/bucket_00001", events_of(1, 0..0))]].concat();
    let table = opened(&with_deletes).unwrap();
    let got = rows::read(table.as_ref(), OnError::Null).unwrap();
    assert_eq!(ids(&got.batch), (0..30).collect::<Vec<_>>());
    assert_eq!(got.damage.len(), 1, "{:?}", got.damage);
    assert!(table.inspect().unwrap().children.iter().any(|node| node.name.contains("cannot be opened")));
    // If the table has no file of deletes, the lost file may have had updates of earlier rows.
    let table = opened(&files).unwrap();
    assert_eq!(ids(&rows::read(table.as_ref(), OnError::Skip).unwrap().batch), (10..30).collect::<Vec<_>>());
    assert!(opened(&[("base_1/bucket_00000", lost)]).is_err(), "nobody knows the columns");
}

/// Identity columns of the wrong type are damage of their file.
#[test]
fn identities_of_other_types_are_damage() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3));
    let fields = Fields::from(vec![Field::new("id", DataType::Int64, true)]);
    let row: ArrayRef = Arc::new(StructArray::new(fields, vec![numbers.clone()], None));
    let names = ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction"];
    let columns = names.iter().map(|name| (*name, numbers.clone())).chain([("row", row)]);
    let wrong = written(&RecordBatch::try_from_iter(columns).unwrap(), &[]);
    let files = [("base_1/bucket_00000", events(0..10, false)), ("delta_2_2/bucket_00001", wrong.clone())];
    let table = opened(&files).unwrap();
    let refused = rows::read(table.as_ref(), OnError::Raise).map_or_else(Some, |outcome| outcome.error);
    assert!(refused.unwrap().to_string().contains("expected Int32 in the column `operation`"));
    let got = rows::read(table.as_ref(), OnError::Skip).unwrap();
    assert!(got.error.is_none() && got.batch.num_rows() == 10 && got.damage.len() == 1, "{:?}", got.damage);
    let table = opened(&[files[0].clone(), ("delete_delta_2_2/bucket_00000", wrong)]).unwrap();
    assert_eq!(rows::read(table.as_ref(), OnError::Null).unwrap().batch.num_rows(), 0);
}

/// After a lost plain file the row numbers that deletes refer to are unknown.
#[test]
fn after_a_lost_plain_file_row_numbers_are_unknown() {
    let plain = |numbers: std::ops::Range<i64>| {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        written(&RecordBatch::try_from_iter_with_nullable([("id", numbers, true)]).unwrap(), &[])
    };
    let files = [
        ("000000_0", plain(0..10)),
        ("000000_0_copy_1", Bytes::from_static(b"no ORC at all, but long enough")),
        ("000000_0_copy_2", plain(20..30)),
        ("000001_0", plain(30..40)),
        ("delete_delta_2_2/bucket_00000", events_of(0, 3..5)),
    ];
    let table = opened(&files).unwrap();
    let got = rows::read(table.as_ref(), OnError::Skip).unwrap();
    assert!(got.error.is_none());
    assert_eq!(ids(&got.batch), [0, 1, 2, 5, 6, 7, 8, 9].into_iter().chain(30..40).collect::<Vec<_>>());
    assert_eq!(got.damage.iter().filter_map(|d| d.rows_lost).sum::<u64>(), 10);
    assert!(got.damage.iter().any(|d| d.structure.contains("copy_1")), "{:?}", got.damage);
}

/// The byte ranges of the stripes' footers.
fn stripe_footers(file: &Bytes) -> Vec<std::ops::Range<usize>> {
    let orc = HiveFormat.open(&coldframe_testing::fixture::source(file.clone()), &OpenOptions::default());
    let tree = orc.unwrap().inspect().unwrap();
    let mut footers = Vec::new();
    let mut open = vec![&tree];
    while let Some(node) = open.pop() {
        if node.name.contains("footer") && node.bytes.end < file.len() as u64 * 3 / 4 {
            let at = |place: u64| usize::try_from(place).unwrap();
            footers.push(at(node.bytes.start)..at(node.bytes.end));
        }
        open.extend(&node.children);
    }
    footers.sort_by_key(|r| r.start);
    footers
}

fn wiped(file: &Bytes, place: std::ops::Range<usize>) -> Bytes {
    let mut bytes = file.to_vec();
    bytes[place].fill(0);
    bytes.into()
}

/// Gives the last column an unknown encoding.
fn of_unknown_encoding(file: &Bytes, footer: std::ops::Range<usize>) -> Bytes {
    let mut bytes = file.to_vec();
    // `columns` of two bytes, whose `kind` is DIRECT_V2.
    let columns = [0x12, 2, 8, 2];
    let at = bytes[footer.clone()].windows(4).rposition(|w| w == columns).unwrap();
    bytes[footer.start + at + 3] = 10;
    bytes.into()
}

/// Makes the postscript name an unknown codec.
fn of_unknown_codec(file: &Bytes) -> Bytes {
    let mut bytes = file.to_vec();
    let end = bytes.len() - 1;
    let postscript = &mut bytes[..end];
    let start = end - usize::from(file[end]);
    // The length of the footer is the first field.
    let at = start + 2 + postscript[start + 1..].iter().position(|b| b & 0x80 == 0).unwrap();
    assert_eq!(postscript[at], 2 << 3);
    postscript[at + 1] = 9;
    bytes.into()
}

/// A read under `raise` fails because of an unsupported file; a read under `skip` loses only its contents.
#[test]
fn a_file_of_an_unknown_codec_costs_its_contents() {
    let (first, second) = (inserted(1, 0, 0..10), inserted(2, 0, 10..20));
    let deletes = events_of(1, 3..5);
    let files = |first: &Bytes, second: &Bytes, deletes: &Bytes| {
        opened(&[
            ("delta_1_1/bucket_00000", first.clone()),
            ("delta_2_2/bucket_00000", second.clone()),
            ("delete_delta_3_3/bucket_00000", deletes.clone()),
        ])
        .unwrap()
    };
    for (table, left) in [
        (files(&of_unknown_codec(&first), &second, &deletes), (10..20).collect::<Vec<i64>>()),
        (files(&first, &second, &of_unknown_codec(&deletes)), Vec::new()),
    ] {
        assert_tolerant(table.as_ref(), None, &[1 << 8]);
        let plain = rows::read(table.as_ref(), OnError::Raise);
        let e = plain.map_or_else(Some, |outcome| outcome.error).unwrap();
        assert!(matches!(e.kind(), ErrorKind::Unsupported(_)), "{e}");
        let got = rows::read(table.as_ref(), OnError::Skip).unwrap();
        assert_eq!(ids(&got.batch), left);
        assert!(got.damage.iter().any(|d| d.reason.contains("compression kind 9")), "{:?}", got.damage);
    }
}

/// A base that may have updates is first read for events. Damage that is found in this step costs one stripe
/// and not the whole table.
#[test]
fn a_damaged_stripe_of_a_base_costs_that_stripe() {
    let base = stored(1, 0..400, |n| i32::from(n % 7 == 0));
    let footers = stripe_footers(&base);
    assert!(!footers.is_empty());
    let whole = rows::read(table(base.clone(), deletes()).unwrap().as_ref(), OnError::Raise).unwrap();
    assert_eq!(whole.batch.num_rows(), 320);
    for footer in footers {
        let table = table(wiped(&base, footer), deletes()).unwrap();
        let raised = rows::read(table.as_ref(), OnError::Raise);
        let raised = raised.map_or_else(Some, |outcome| outcome.error).unwrap();
        assert!(raised.is_damage(), "{raised}");
        for on_error in [OnError::Skip, OnError::Null] {
            let got = rows::read(table.as_ref(), on_error).unwrap();
            assert!(got.error.is_none(), "{:?}", got.error);
            assert!((200..=240).contains(&got.batch.num_rows()), "{}", got.batch.num_rows());
            assert_eq!(got.damage.len(), 1, "{:?}", got.damage);
        }
        let report = coldframe_core::scan::verify(table.as_ref(), |_| Ok(())).unwrap();
        assert!(report.damage.iter().any(|d| d.structure.contains("base_1")), "{:?}", report.damage);
    }
}

/// `verify` reports lost deletes; a scan returns no row that they may have deleted.
#[test]
fn lost_deletes_are_reported_and_bring_back_no_row() {
    let base = events(0..400, false);
    let deletes = events(0..400, true);
    for footer in stripe_footers(&deletes) {
        let table = table(base.clone(), wiped(&deletes, footer)).unwrap();
        let refused = rows::read(table.as_ref(), OnError::Raise);
        let refused = refused.map_or_else(Some, |outcome| outcome.error).unwrap();
        assert!(refused.is_damage() && refused.to_string().contains("delete_delta"), "{refused}");
        for on_error in [OnError::Skip, OnError::Null] {
            let got = rows::read(table.as_ref(), on_error).unwrap();
            assert!(got.error.is_none() && got.batch.num_rows() == 0, "{:?}", got.error);
            // Rows that the rest of the file deletes are known to be gone.
            let lost: u64 = got.damage.iter().filter_map(|d| d.rows_lost).sum();
            assert!((1..400).contains(&lost), "{lost}");
        }
        let report = coldframe_core::scan::verify(table.as_ref(), |_| Ok(())).unwrap();
        assert_eq!(report.rows, 0);
        assert!(report.damage.iter().any(|d| d.structure.contains("delete_delta")), "{:?}", report.damage);
    }
}

/// A file of deletes without identity columns is damage, whatever columns are requested.
#[test]
fn deletes_without_identities_are_damage() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3));
    let plain = RecordBatch::try_from_iter([("id", numbers)]).unwrap();
    let table = table(events(0..10, false), written(&plain, &[])).unwrap();
    let refused =
        rows::read(table.as_ref(), OnError::Raise).map_or_else(Some, |outcome| outcome.error).unwrap();
    assert!(refused.is_damage(), "{refused}");
    let got = rows::read(table.as_ref(), OnError::Skip).unwrap();
    assert!(got.error.is_none() && got.batch.num_rows() == 0 && !got.damage.is_empty());
    assert!(!coldframe_core::scan::verify(table.as_ref(), |_| Ok(())).unwrap().damage.is_empty());
}

/// Deletes refer to the rows of a plain file by number. After a lost stripe the numbers are unknown, so those rows are
/// lost too.
#[test]
fn damage_of_counted_rows_brings_back_no_row() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..400));
    let plain = RecordBatch::try_from_iter_with_nullable([("id", numbers, true)]).unwrap();
    let options = [("stripe_rows", Value::Int(100)), ("codec", "none".into())];
    let plain = written(&plain, &options);
    let deleted = |n: i64| n % 5 == 0;
    let deletes = {
        let rows: Vec<i64> = (0..400).filter(|n| deleted(*n)).collect();
        events_of(0, rows.into_iter())
    };
    let footers = stripe_footers(&plain);
    assert!(footers.len() > 1);
    let wiped = footers.iter().map(|footer| wiped(&plain, footer.clone()));
    let unknown = footers.iter().map(|footer| of_unknown_encoding(&plain, footer.clone()));
    for damaged in wiped.chain(unknown) {
        let table =
            opened(&[("000000_0", damaged), ("delete_delta_2_2/bucket_00000", deletes.clone())]).unwrap();
        for on_error in [OnError::Skip, OnError::Null] {
            let got = rows::read(table.as_ref(), on_error).unwrap();
            assert!(got.error.is_none() && got.damage.len() == 1, "{:?} {:?}", got.error, got.damage);
            let ids = got.batch.column(0).as_primitive::<Int64Type>();
            assert!(ids.iter().flatten().all(|n| !deleted(n)), "{ids:?}");
        }
        assert!(!coldframe_core::scan::verify(table.as_ref(), |_| Ok(())).unwrap().damage.is_empty());
    }
}

/// Bit flips in each file of a table that Hive 3 wrote: no flip ends a scan under `skip`, once it has
/// started; and what ends a scan under `raise` is reported by the scan under `skip` and by `verify`.
#[test]
fn no_damage_ends_a_scan_or_verify() {
    let whole = MemoryFolder::load(&coldframe_testing::fixture::data().join("orc/files/acid_table"));
    let mut options = OpenOptions::default();
    options.extra.insert("acid".to_owned(), Value::Bool(true));
    let (mut opened, mut refused) = (0, 0);
    for (path, content) in &whole.files {
        for at in (0..content.len()).step_by(3) {
            let mut bytes = content.to_vec();
            bytes[at] ^= 0xff;
            let mut folder = MemoryFolder { files: whole.files.clone() };
            folder.files.insert(path.clone(), bytes.into());
            let Ok(table) = HiveFormat.open(&folder.source(), &options) else { continue };
            opened += 1;
            let plain = rows::read(table.as_ref(), OnError::Raise);
            let plain = plain.map_or_else(Some, |outcome| outcome.error).filter(|e| e.is_damage());
            let got = match rows::read(table.as_ref(), OnError::Skip) {
                Err(e) if !e.is_damage() => continue,
                got => got.unwrap_or_else(|e| panic!("{path} {at}: {e}")),
            };
            let error = got.error.filter(|e| e.is_damage());
            assert!(error.is_none(), "{path} {at}: {error:?}");
            assert!(plain.is_none() || !got.damage.is_empty(), "{path} {at}: {plain:?}");
            refused += usize::from(plain.is_some());
            let report = coldframe_core::scan::verify(table.as_ref(), |_| Ok(()));
            let report = report.unwrap_or_else(|e| panic!("{path} {at}: {e}"));
            assert!(plain.is_none() || !report.damage.is_empty(), "{path} {at}");
        }
    }
    assert!(opened > 100 && refused > 10, "{opened} {refused}");
}
