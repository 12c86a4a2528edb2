//! All returned rows are proved: positions and statistics of the index are compared with the values, and a wrong
//! index is not used.

use crate::support;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use coldframe_core::predicate::parse;
use coldframe_core::scan::verify;
use coldframe_core::{
    Damage, DamageLog, OnError, Op, OpenOptions, Predicate, Scan, ScanReader, TableFile, Value,
};
use coldframe_orc::proto;
use coldframe_testing::mutate::flipped;
use coldframe_testing::rows;
use prost::Message;

const ROWS: i64 = 6000;
const STRIDE: i64 = 1000;

fn table() -> RecordBatch {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let some: ArrayRef = Arc::new(
        (0..ROWS).map(|i| (i * 7919 % 10_007 % 7 > 0).then_some(i * 7919 % 10_007)).collect::<Int64Array>(),
    );
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|i| {
        let more = usize::try_from(i * i % 11).unwrap();
        format!("{i} {}{}", i * 7919 % 10_007, "x".repeat(more))
    })));
    let float: ArrayRef =
        Arc::new(Float64Array::from_iter_values((0..1000).cycle().take(6000).map(f64::from)));
    let day: ArrayRef = Arc::new(Date32Array::from_iter_values((0..6000).map(|i| i * 31 % 977)));
    RecordBatch::try_from_iter_with_nullable([
        ("id", id, true),
        ("some", some, true),
        ("text", text, true),
        ("float", float, true),
        ("day", day, true),
    ])
    .unwrap()
}

fn written(codec: &str) -> Bytes {
    let options = [
        ("row_index_stride", Value::Int(STRIDE)),
        ("compression_block_size", Value::Int(4096)),
        ("codec", codec.into()),
    ];
    support::written(&table(), &options)
}

fn open(bytes: Bytes) -> Arc<dyn TableFile> {
    support::open("proof", bytes, &OpenOptions::default()).unwrap().file
}

/// The bytes of a stream of a column.
fn stream(bytes: &Bytes, name: &str, column: usize) -> Range<usize> {
    let node = open(bytes.clone()).inspect().unwrap();
    let stripe = node.children.iter().find(|n| n.name == "stripe 0").unwrap();
    let is = |n: &&coldframe_core::Node| {
        n.name == name && n.detail.contains(&("column".to_owned(), Value::from(column)))
    };
    let place = stripe.children.iter().find(is).unwrap().bytes.clone();
    usize::try_from(place.start).unwrap()..usize::try_from(place.end).unwrap()
}

fn read(table: &dyn TableFile, scan: Scan) -> (RecordBatch, Vec<Damage>) {
    let outcome = rows::scan(table, &scan, None).unwrap();
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    (outcome.batch, outcome.damage)
}

/// The rows that are right: each text and number belongs to its id.
fn assert_right(saved: &RecordBatch, what: &str) {
    let truth = table();
    let ids = saved.column(0).as_primitive::<Int64Type>();
    let indices: Int64Array = ids.iter().collect();
    let expected = arrow_select::take::take_record_batch(&truth, &indices).unwrap();
    assert_eq!(&expected, saved, "{what}");
}

/// With one changed byte anywhere in the values, `skip` hands out right rows only, or reports nothing. What is
/// saved depends neither on batches nor on a limit, a filter or splits.
#[test]
fn what_is_saved_does_not_depend_on_the_request() {
    let mut reported = 0;
    for codec in ["none", "zlib", "lz4"] {
        let whole = written(codec);
        let data = stream(&whole, "DATA", 1).start..stream(&whole, "DATA", 5).end;
        for at in data.step_by(1931) {
            let bytes = flipped(&whole, at, 0x10);
            let file = open(bytes.clone());
            let skip = Scan { on_error: OnError::Skip, ..Scan::default() };
            let (saved, damage) = read(file.as_ref(), skip.clone());
            let what = format!("{codec} byte {at}");
            let raised = rows::read(file.as_ref(), OnError::Raise).unwrap().error;
            assert_eq!(raised.is_some(), damage.iter().any(|d| d.rows_lost != Some(0)), "{what}: {damage:?}");
            if damage.is_empty() {
                continue;
            }
            reported += 1;
            assert_right(&saved, &what);
            let lost: u64 = damage.iter().map(|d| d.rows_lost.unwrap()).sum();
            assert_eq!(saved.num_rows() as u64 + lost, ROWS.unsigned_abs(), "{what}: {damage:?}");
            for batch_rows in [1, 77, 1 << 20] {
                let other = read(file.as_ref(), Scan { batch_rows, ..skip.clone() });
                assert_eq!(other, (saved.clone(), damage.clone()), "{what}: batches of {batch_rows}");
            }
            let limited = read(file.as_ref(), Scan { limit: Some(1234), ..skip.clone() }).0;
            assert_eq!(limited, saved.slice(0, saved.num_rows().min(1234)), "{what}");
            let predicate =
                Predicate::compare("id", Op::Ge, Arc::new(Int64Array::from(vec![2500])) as ArrayRef);
            let expected = filter_record_batch(&saved, &predicate.evaluate(&saved).unwrap()).unwrap();
            let filtered = read(file.as_ref(), Scan { predicate: Some(predicate), ..skip.clone() });
            assert_eq!(filtered, (expected, damage.clone()), "{what}");
            let nulled = read(file.as_ref(), Scan { on_error: OnError::Null, ..Scan::default() }).0;
            assert!(nulled.num_rows() >= saved.num_rows(), "{what}");
            assert!(!verify(file.as_ref(), |_| Ok(())).unwrap().damage.is_empty(), "{what}");
        }
    }
    assert!(reported > 40, "{reported}");
}

/// Rows that decode are saved or doubtful, and never both.
#[test]
fn doubtful_rows_are_those_that_decode_without_a_proof() {
    let whole = written("none");
    let skip = Scan { on_error: OnError::Skip, ..Scan::default() };
    let doubtful = Scan { doubtful: true, ..skip.clone() };
    assert_eq!(read(open(whole.clone()).as_ref(), doubtful.clone()).0.num_rows(), 0);
    let mut some = 0;
    for at in stream(&whole, "DATA", 2).step_by(997) {
        let file = open(flipped(&whole, at, 0x10));
        let (saved, damage) = read(file.as_ref(), skip.clone());
        let rest = read(file.as_ref(), doubtful.clone()).0;
        let ids = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        let (mut both, count) = (ids(&saved), saved.num_rows() + rest.num_rows());
        both.extend(ids(&rest));
        both.sort_unstable();
        both.dedup();
        assert_eq!(both.len(), count, "byte {at}");
        if damage.iter().all(|d| d.reason.contains("a sum of")) {
            assert_eq!(count as u64, ROWS.unsigned_abs(), "byte {at}: {damage:?}");
        }
        some += usize::from(rest.num_rows() > 0);
        let cut = read(file.as_ref(), Scan { batch_rows: 77, ..doubtful.clone() }).0;
        assert_eq!(cut, rest, "byte {at}");
    }
    assert!(some > 3, "{some}");
}

/// A changed value that still decodes contradicts the sum of its row group, and that of the stripe.
#[test]
fn sums_are_compared() {
    let whole = written("none");
    let mut contradicted = 0;
    for at in stream(&whole, "DATA", 2).step_by(397) {
        let bytes = flipped(&whole, at, 0x10);
        let file = open(bytes.clone());
        let (saved, damage) = read(file.as_ref(), Scan { on_error: OnError::Skip, ..Scan::default() });
        if !damage.iter().any(|d| d.reason.contains("a sum of")) {
            continue;
        }
        contradicted += 1;
        assert_right(&saved, "a number");
        assert_eq!(damage.iter().map(|d| d.rows_lost).collect::<Vec<_>>(), [Some(STRIDE.unsigned_abs())]);
        let raised = rows::read(file.as_ref(), OnError::Raise).unwrap().error.unwrap();
        assert!(raised.is_damage(), "{raised}");
        let options = OpenOptions { skip_checksums: true, ..OpenOptions::default() };
        let trusting = support::open("proof", bytes, &options).unwrap();
        let trusted = rows::read(trusting.file.as_ref(), OnError::Raise).unwrap().error;
        assert!(trusted.is_none_or(|e| !e.to_string().contains("a sum of")));
    }
    assert!(contradicted > 10, "{contradicted}");
}

/// The file with another index of a column, of the same length.
fn with_index(
    bytes: &Bytes,
    column: usize,
    change: impl Fn(usize, &mut proto::RowIndexEntry),
) -> Option<Bytes> {
    let place = stream(bytes, "ROW_INDEX", column);
    let mut index = proto::RowIndex::decode(bytes.slice(place.clone())).unwrap();
    index.entry.iter_mut().enumerate().for_each(|(group, entry)| change(group, entry));
    let changed = index.encode_to_vec();
    if changed.len() != place.len() {
        return None;
    }
    let mut all = bytes.to_vec();
    all.get_mut(place).unwrap().copy_from_slice(&changed);
    (all != bytes.to_vec()).then(|| all.into())
}

/// Positions that are shifted in any row groups of any column: filters give the rows of the full read, with a
/// note, and `verify` names the index.
#[test]
fn a_wrong_index_misleads_no_filter() {
    let whole = written("none");
    let truth = table();
    let mut lies = 0;
    // Of dates, and of floating point numbers of this writer, no sum counts: a shift by whole values goes unnoticed.
    for column in 1..=3 {
        for (number, by) in [(0, 8u64), (0, 1), (1, 1), (2, 3), (4, 1)] {
            for groups in [1..6, 3..4, 3..6] {
                let shift = |group: usize, entry: &mut proto::RowIndexEntry| {
                    if let Some(position) =
                        entry.positions.get_mut(number).filter(|_| groups.contains(&group))
                    {
                        *position += by;
                    }
                };
                // So does a shift of nulls, if as many of them are in the row group.
                if column == 2 && number < 3 {
                    continue;
                }
                let Some(bytes) = with_index(&whole, column, shift) else { continue };
                lies += 1;
                let what = format!("column {column}, number {number} + {by} in {groups:?}");
                let file = open(bytes);
                assert_eq!(read(file.as_ref(), Scan::default()).0, truth, "{what}");
                let mut warned = false;
                for id in [0, 999, 1000, 2999, 3000, 3500, 3999, 4000, 5999] {
                    let (actual, notices) = look_up(file.as_ref(), id);
                    assert_eq!(actual, truth.slice(usize::try_from(id).unwrap(), 1), "{what}: id {id}");
                    warned |= notices > 0;
                }
                let report = verify(file.as_ref(), |_| Ok(())).unwrap();
                assert!(
                    report.damage.iter().any(|d| d.structure.contains("row index")),
                    "{what}: {report:?}"
                );
                assert!(warned, "{what}");
                let (saved, damage) =
                    read(file.as_ref(), Scan { on_error: OnError::Skip, ..Scan::default() });
                assert_eq!(saved, truth, "{what}");
                assert!(damage.iter().all(|d| d.rows_lost == Some(0)), "{what}: {damage:?}");
            }
        }
    }
    assert!(lies > 8, "{lies}");
}

/// A filter with rows in many row groups decodes and drops the rows between them: it uses no position of the index.
#[test]
fn a_filter_of_many_row_groups_believes_no_index() {
    for codec in ["none", "zlib"] {
        let whole = written(codec);
        let shift = |group: usize, entry: &mut proto::RowIndexEntry| {
            entry.positions.iter_mut().take(1).filter(|_| group > 0).for_each(|position| *position += 1);
        };
        let lying = if codec == "none" { with_index(&whole, 2, shift) } else { None };
        assert_eq!(lying.is_some(), codec == "none");
        for bytes in [whole.clone()].into_iter().chain(lying) {
            let file = open(bytes);
            for step in [1usize, 7, 331, 600, 613, 1700] {
                let ids: Vec<usize> = (step / 2..6000).step_by(step).collect();
                let list = ids.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
                let filter = parse::condition(&format!("id in ({list})")).unwrap();
                let (actual, notices) = filtered(file.as_ref(), filter.bind(file.schema()).unwrap());
                assert_right(&actual, codec);
                assert_eq!(actual.num_rows(), ids.len(), "{codec}, {step}");
                assert!(notices == 0 || step == 1700, "{codec}, {step}: {notices}");
            }
        }
    }
}

/// The rows with this id, and how many notes the scan left.
fn look_up(file: &dyn TableFile, id: i64) -> (RecordBatch, usize) {
    let value: ArrayRef = Arc::new(Int64Array::from(vec![id]));
    filtered(file, Predicate::compare("id", Op::Eq, value))
}

/// The rows that pass, and how many notes the scan left.
fn filtered(file: &dyn TableFile, predicate: Predicate) -> (RecordBatch, usize) {
    let scan = Scan { predicate: Some(predicate), ..Scan::default() };
    let (mut batches, mut notices) = (Vec::new(), 0);
    for split in file.splits(u64::MAX).unwrap() {
        let log = DamageLog::default();
        let mut reader = ScanReader::try_new(file, &scan, &split, log.clone()).unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            batches.push(batch);
        }
        notices += log.take_notices().len();
    }
    (concat_batches(file.schema(), &batches).unwrap(), notices)
}

/// Statistics of a row group that contradict the values and the statistics of the stripe cost no row.
#[test]
fn wrong_statistics_of_a_row_group_cost_nothing() {
    let whole = written("none");
    let wrong = with_index(&whole, 1, |group, entry| {
        if let (2, Some(stats)) = (group, entry.statistics.as_mut().and_then(|s| s.int_statistics.as_mut())) {
            stats.sum = stats.sum.map(|sum| sum + 1);
        }
    });
    let file = open(wrong.unwrap());
    let (saved, damage) = read(file.as_ref(), Scan { on_error: OnError::Skip, ..Scan::default() });
    assert_eq!(saved, table());
    assert_eq!(damage.iter().map(|d| d.rows_lost).collect::<Vec<_>>(), [Some(0)]);
    assert!(damage.iter().all(|d| d.structure.contains("row index")), "{damage:?}");
    assert!(rows::read(file.as_ref(), OnError::Raise).unwrap().error.is_none());
}

/// A number of values that one row group denies, and the stripe confirms, costs no row of a column without sums. If two
/// row groups deny theirs, a null may have moved: they are lost with their neighbours, which share a run.
#[test]
fn a_wrong_number_of_values_in_one_row_group_costs_nothing() {
    let whole = written("none");
    for (wrong, lost) in [(vec![(1, 1)], 0), (vec![(1, 1), (2, -1)], 4 * STRIDE)] {
        let file = with_index(&whole, 5, |group, entry| {
            let by = wrong.iter().find(|(of, _)| *of == group).map_or(0, |(_, by)| *by);
            if let Some(count) = entry.statistics.as_mut().and_then(|s| s.number_of_values.as_mut()) {
                *count = count.saturating_add_signed(by);
            }
        });
        let file = open(file.unwrap());
        let (saved, damage) = read(file.as_ref(), Scan { on_error: OnError::Skip, ..Scan::default() });
        assert_eq!(table().num_rows() - saved.num_rows(), usize::try_from(lost).unwrap(), "{damage:?}");
        assert!(!damage.is_empty());
    }
}

/// `verify` compares minima and maxima with the values; a scan does not need them.
#[test]
fn verify_compares_bounds() {
    let whole = written("none");
    let wrong = with_index(&whole, 1, |group, entry| {
        if let (2, Some(stats)) = (group, entry.statistics.as_mut().and_then(|s| s.int_statistics.as_mut())) {
            stats.maximum = stats.maximum.map(|max| max - 10);
        }
    });
    let file = open(wrong.unwrap());
    let report = verify(file.as_ref(), |_| Ok(())).unwrap();
    assert!(report.damage.iter().any(|d| d.reason.contains("minimum and maximum")), "{report:?}");
    assert!(verify(open(whole).as_ref(), |_| Ok(())).unwrap().damage.is_empty());
}
