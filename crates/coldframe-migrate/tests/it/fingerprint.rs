//! Equal rows have equal fingerprints in whatever form they are stored; different rows have different
//! fingerprints.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch,
    RunArray, StringArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use coldframe_migrate::{Fingerprint, row_hashes};

fn batch_of(array: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("x", array, true)]).unwrap()
}

fn target(kind: DataType) -> Schema {
    Schema::new(vec![Field::new("x", kind, true)])
}

fn hashes(array: ArrayRef, kind: &DataType) -> Vec<u64> {
    row_hashes(&batch_of(array), &target(kind.clone())).unwrap()
}

#[test]
fn values_hash_in_the_target_type() {
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![Some(5), None, Some(-3)]));
    let cents: ArrayRef = Arc::new(
        Decimal128Array::from(vec![Some(500), None, Some(-300)]).with_precision_and_scale(12, 2).unwrap(),
    );
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![Some(5.0), None, Some(-3.0)]));
    let longs: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None, Some(-3)]));
    for written in [&cents, &floats, &longs] {
        let kind = written.data_type();
        assert_eq!(hashes(ints.clone(), kind), hashes(written.clone(), kind), "{kind}");
    }
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b"), Some("a")]));
    let entries: DictionaryArray<Int32Type> = [Some("a"), None, Some("b"), Some("a")].into_iter().collect();
    assert_eq!(hashes(Arc::new(entries), &DataType::Utf8), hashes(texts, &DataType::LargeUtf8));
}

#[test]
fn values_that_do_not_fit_have_another_hash() {
    let big: ArrayRef = Arc::new(Int64Array::from(vec![(1 << 53) + 1]));
    let near: ArrayRef = Arc::new(Float64Array::from(vec![9_007_199_254_740_992.0]));
    assert_ne!(hashes(big, &DataType::Float64), hashes(near, &DataType::Float64));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
    let error = row_hashes(&batch_of(texts), &target(DataType::Int32)).unwrap_err();
    assert!(error.to_string().contains("column x"), "{error}");
}

fn fingerprint(batches: &[RecordBatch]) -> Fingerprint {
    let mut fingerprint = Fingerprint::new(batches[0].schema());
    batches.iter().for_each(|batch| fingerprint.add(batch).unwrap());
    fingerprint
}

fn table(a: Vec<i64>, b: Vec<&str>) -> RecordBatch {
    let lists = a.iter().map(|n| Some((0..n % 4).map(|i| Some(i32::try_from(i).unwrap()))));
    let lists: ListArray = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    RecordBatch::try_from_iter([
        ("a", Arc::new(Int64Array::from(a)) as ArrayRef),
        ("b", Arc::new(StringArray::from(b))),
        ("c", Arc::new(lists)),
    ])
    .unwrap()
}

#[test]
fn only_the_order_of_rows_and_batches_is_ignored() {
    let whole = fingerprint(&[table(vec![1, 2, 3, 7], vec!["p", "q", "r", "s"])]);
    let cut = fingerprint(&[table(vec![7, 3], vec!["s", "r"]), table(vec![2, 1], vec!["q", "p"])]);
    assert!(whole.differences(&cut).is_empty());
    assert_eq!(whole.checksum(), cut.checksum());
    let mut joined = fingerprint(&[table(vec![7, 3], vec!["s", "r"])]);
    joined.join(&fingerprint(&[table(vec![2, 1], vec!["q", "p"])])).unwrap();
    assert!(whole.differences(&joined).is_empty());
    assert!(joined.join(&fingerprint(&[batch_of(Arc::new(Int32Array::from(vec![1])))])).is_err());
    let exchanged = fingerprint(&[table(vec![1, 2, 3, 7], vec!["q", "p", "r", "s"])]);
    assert_eq!(whole.differences(&exchanged).len(), 1, "only the row checksum differs");
    assert!(whole.differences(&exchanged)[0].starts_with("row checksum"));
    let fewer = fingerprint(&[table(vec![1, 2, 3], vec!["p", "q", "r"])]);
    assert!(whole.differences(&fewer)[0].starts_with("rows: read 4, written 3"));
    let another = fingerprint(&[table(vec![1, 2, 3, 8], vec!["p", "q", "r", "s"])]);
    assert!(whole.differences(&another).iter().any(|d| d.contains("column a: smallest and largest")));
}

/// A table with a column for each kind of number that has a code path of its own. Every third value is null.
fn wide_table(rows: i64) -> RecordBatch {
    let some = |n: i64| (n % 3 != 0).then_some(n);
    let longs: ArrayRef = Arc::new((0..rows).map(some).collect::<Int64Array>());
    let large = |n: i64| some(n).map(|n| i128::from(n) << (n % 5 * 16));
    let decimals: Decimal128Array = (0..rows).map(large).collect();
    let decimals = decimals.with_precision_and_scale(38, 0).unwrap();
    let nan = |n: i64| some(n).map(|n| if n % 7 == 0 { f64::NAN } else { n as f64 / 4.0 });
    let floats: ArrayRef = Arc::new((0..rows).map(nan).collect::<Float64Array>());
    // Texts of all lengths that have a code path of their own.
    let text = |n: i64| some(n).map(|n| "text ".repeat(usize::try_from(n % 17).unwrap()) + "x");
    let texts: ArrayRef = Arc::new((0..rows).map(text).collect::<StringArray>());
    let columns = [("n", longs), ("d", Arc::new(decimals) as ArrayRef), ("f", floats), ("t", texts)];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

#[test]
fn the_fingerprints_of_slices_add_up() {
    let table = wide_table(10_000);
    let whole = fingerprint(std::slice::from_ref(&table));
    // These steps end neither with a word of the null bitmap nor with a pass.
    for step in [1_001, 4_097, 9_999] {
        let cuts: Vec<_> =
            (0..10_000).step_by(step).map(|at| table.slice(at, step.min(10_000 - at))).collect();
        assert_eq!(whole.differences(&fingerprint(&cuts)), Vec::<String>::new(), "{step}");
    }
    let rows = row_hashes(&table, &table.schema()).unwrap();
    for at in [0, 1, 2, 62, 63, 64, 65, 9_999] {
        assert_eq!(row_hashes(&table.slice(at, 1), &table.schema()).unwrap(), rows[at..=at], "{at}");
    }
    let (_, decimals) = whole.columns().nth(1).unwrap();
    assert_eq!(decimals.nulls, 3_334);
    let (low, high) = decimals.extremes.clone().unwrap();
    assert_eq!([low.to_string(), high.to_string()], ["5".to_owned(), (9_994i128 << 64).to_string()]);
}

#[test]
fn nans_are_counted_in_float_columns() {
    let values = [Some(f64::NAN), None, Some(-f64::NAN), Some(1.0)];
    let plain: ArrayRef = Arc::new(values.into_iter().collect::<Float64Array>());
    let entries = Float64Array::from(vec![f64::NAN, 1.0]);
    let keys = [Some(0), None, Some(0), Some(1)].into_iter().collect::<Int32Array>();
    let dictionary: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(entries.clone())));
    let runs: ArrayRef = Arc::new(RunArray::try_new(&Int32Array::from(vec![2, 4]), &entries).unwrap());
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let nans = |array: &ArrayRef, mut fingerprint: Fingerprint| {
        fingerprint.add(&batch_of(array.clone())).unwrap();
        fingerprint.columns().next().unwrap().1.nans
    };
    for (array, count) in [(&plain, 2), (&dictionary, 2), (&runs, 2), (&whole, 0)] {
        let target: SchemaRef = Arc::new(target(DataType::Float64));
        assert_eq!(nans(array, Fingerprint::new(target.clone())), Some(count), "{}", array.data_type());
        assert_eq!(nans(array, Fingerprint::of_rows(target)), None);
    }
    assert_eq!(nans(&whole, Fingerprint::new(Arc::new(target(DataType::Int64)))), None);
    let mut both = fingerprint(&[batch_of(plain.clone())]);
    both.join(&fingerprint(&[batch_of(plain)])).unwrap();
    assert_eq!(both.columns().next().unwrap().1.nans, Some(4));
}

#[test]
fn long_runs_and_dictionaries_hash_like_their_values() {
    let texts: Vec<String> = (0..10_000).map(|n| format!("text {}", n / 700)).collect();
    let plain: ArrayRef = Arc::new(StringArray::from(texts.clone()));
    let entries: DictionaryArray<Int32Type> = texts.iter().map(String::as_str).collect();
    let runs: RunArray<Int32Type> = texts.iter().map(String::as_str).collect();
    let expected = fingerprint(&[batch_of(plain.clone())]);
    for stored in [Arc::new(entries) as ArrayRef, Arc::new(runs)] {
        let mut actual = Fingerprint::new(Arc::new(target(DataType::Utf8)));
        actual.add(&batch_of(stored.slice(0, 4_500))).unwrap();
        actual.add(&batch_of(stored.slice(4_500, 5_500))).unwrap();
        assert_eq!(expected.differences(&actual), Vec::<String>::new(), "{}", stored.data_type());
    }
}
