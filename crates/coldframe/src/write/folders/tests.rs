//! Folders of partitions are those that Hive and Spark read.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{
    BooleanArray, Date64Array, Decimal128Array, DictionaryArray, Int32Array, Int64Array, RecordBatchIterator,
};
use arrow_schema::Field;

use super::*;

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

/// Writes the batches as a folder; returns the paths and row counts.
fn written(batches: &[RecordBatch], keys: &[&str]) -> Result<Vec<(String, u64)>> {
    let place = tempfile::tempdir().unwrap();
    let root = Store::new(place.path().as_os_str(), &BTreeMap::new()).unwrap();
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    let schema = batches[0].schema();
    let mut data = RecordBatchIterator::new(batches.iter().cloned().map(Ok), schema);
    let mut ticks = Vec::new();
    let tick = |rows| {
        ticks.push(rows);
        Ok(())
    };
    let files = write_partitioned(&mut data, &root, &keys, "orc", &WriteOptions::default(), tick)?;
    assert_eq!(ticks.last().copied(), Some(batches.iter().map(|batch| batch.num_rows() as u64).sum()));
    for (path, file) in &files {
        assert_eq!(std::fs::metadata(place.path().join(path)).unwrap().len(), file.bytes);
    }
    Ok(files.into_iter().map(|(path, file)| (path, file.rows)).collect())
}

fn numbers(count: i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(0..count))
}

#[test]
fn each_combination_of_values_is_a_folder() {
    let texts: StringArray = [Some("a/b"), None, Some("a/b"), Some("c"), None].into_iter().collect();
    let batch = table(vec![("x", numbers(5)), ("city", Arc::new(texts))]);
    let expected = [("city=__HIVE_DEFAULT_PARTITION__", 2), ("city=a%2Fb", 2), ("city=c", 1)];
    let expected = expected.map(|(folder, rows)| (format!("{folder}/part-0.orc"), rows));
    assert_eq!(written(&[batch.slice(0, 2), batch.slice(2, 3)], &["city"]).unwrap(), expected);
}

#[test]
fn values_are_texts_without_units_and_times() {
    let day: ArrayRef = Arc::new(Date64Array::from(vec![86_400_000, 86_400_001]));
    let cents = Decimal128Array::from(vec![150, 150]).with_precision_and_scale(9, 2).unwrap();
    let dictionary: DictionaryArray<arrow_array::types::Int8Type> = vec!["é", "é"].into_iter().collect();
    let batch = table(vec![
        ("x", numbers(2)),
        ("day", day),
        ("price", Arc::new(cents)),
        ("on", Arc::new(BooleanArray::from(vec![true, true]))),
        ("n", Arc::new(Int32Array::from(vec![-7, -7]))),
        ("word", Arc::new(dictionary)),
    ]);
    let files = written(&[batch], &["day", "price", "on", "n", "word"]).unwrap();
    assert_eq!(files, [("day=1970-01-02/price=1.50/on=true/n=-7/word=é/part-0.orc".to_owned(), 2)]);
}

#[test]
fn what_cannot_be_read_back_is_refused() {
    let of = |value: &str| -> ArrayRef { Arc::new(StringArray::from(vec![value])) };
    let floats: ArrayRef = Arc::new(arrow_array::Float64Array::from(vec![1.5]));
    let message = |columns, keys: &[&str]| written(&[table(columns)], keys).unwrap_err().to_string();
    let e = message(vec![("x", numbers(1)), ("p", of(""))], &["p"]);
    assert!(e.contains("partitioning: p=\"\": this text would be read back as null"), "{e}");
    let e = message(vec![("x", numbers(1)), ("p", of(HIVE_NULL))], &["p"]);
    assert!(e.contains("would be read back as null"), "{e}");
    let e = message(vec![("x", numbers(1)), ("p", floats)], &["p"]);
    assert!(e.contains("partitioning by \"p\", a double: only texts"), "{e}");
    let e = message(vec![("x", numbers(1)), ("p", of("a"))], &["x", "p"]);
    assert!(e.contains("the files would have no columns"), "{e}");
    for keys in [["q"].as_slice(), &["p", "p"]] {
        let e = message(vec![("x", numbers(1)), ("p", of("a"))], keys);
        assert!(e.contains("must be one column of the data"), "{e}");
    }
    let twice = Schema::new(vec![
        Field::new("x", DataType::Int64, true),
        Field::new("p", DataType::Utf8, true),
        Field::new("p", DataType::Utf8, true),
    ]);
    let twice = RecordBatch::try_new(Arc::new(twice), vec![numbers(1), of("a"), of("b")]).unwrap();
    assert!(written(&[twice], &["p"]).unwrap_err().to_string().contains("must be one column of the data"));
}
