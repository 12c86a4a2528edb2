//! Values that together are too long for one array are written and read. Input that no file can hold is an
//! error that gives the reason.

use crate::support;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, Decimal128Array, DictionaryArray, Int32Array, Int64Array, LargeStringArray, StringArray,
    StringViewArray, TimestampMicrosecondArray, TimestampSecondArray,
};
use arrow_schema::DataType;
use coldframe_cfile::layout::types::KuduType;
use coldframe_cfile::write::Options;
use coldframe_core::Limits;
use coldframe_core::{DamageLog, ErrorKind, OnError, Scan, ScanReader, TableFile, Value};
use coldframe_testing::rows;
use support::{open, open_with, try_write, write};

/// Scans everything without keeping a batch; returns rows and damage. Each batch has the right length.
fn drained(table: &dyn TableFile, on_error: OnError) -> (usize, usize) {
    let log = DamageLog::default();
    let mut total = 0;
    for split in table.splits(u64::MAX).unwrap() {
        let scan = Scan { on_error, ..Scan::default() };
        let mut reader = ScanReader::try_new(table, &scan, &split, log.clone()).unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            if let Some(text) = batch.column(0).as_string_opt::<i32>() {
                assert!(text.value_data().len() as u64 <= 2 * Limits::default().batch_bytes());
            }
            total += batch.num_rows();
        }
    }
    (total, log.len())
}

#[test]
fn a_dictionary_of_long_values_is_read_in_batches_that_fit() {
    // Together the values are too long for the offsets of one array.
    let rows = 54_000;
    let texts: Vec<String> = (0..6).map(|i| format!("{i}").repeat(40_000)).collect();
    let keys = Int32Array::from_iter_values((0..rows).map(|i| i % 6));
    let values: ArrayRef =
        Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(StringArray::from(texts))).unwrap());
    let bytes = write(&values, false, &Options::default());
    assert!(bytes.len() < 1 << 20, "{}", bytes.len());
    let rows = usize::try_from(rows).unwrap();
    let table = open(&bytes).unwrap();
    assert_eq!(drained(&table, OnError::Raise), (rows, 0));
    assert_eq!(drained(&table, OnError::Skip), (rows, 0));
    let table = open_with(&bytes, &[("dictionary", Value::Bool(true))]).unwrap();
    let outcome = rows::read(&table, OnError::Raise).unwrap();
    assert_eq!(outcome.batch.num_rows(), rows);
}

/// Values behind a full dictionary are stored as they are, in blocks of the usual size.
#[test]
fn blocks_behind_a_full_dictionary_are_no_longer_than_others() {
    let texts = (0..200).map(|i| format!("{i:04}").repeat(250));
    let values: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let bytes = write(&values, false, &Options { block_size: 4096, ..Options::default() });
    let table = open(&bytes).unwrap();
    let blocks = table.inspect().unwrap().children;
    let lengths = blocks.iter().filter(|node| node.name == "data block");
    let longest = lengths.map(|node| node.bytes.end - node.bytes.start).max().unwrap();
    assert!(longest < 6000, "{longest}");
    assert_eq!(rows::read(&table, OnError::Raise).unwrap().batch.column(0).to_data(), values.to_data());
}

#[test]
fn every_layout_of_text_is_written_and_read() {
    let text = ["a", "", "long enough to be no inline view", "ä"];
    let plain: ArrayRef = Arc::new(StringArray::from(text.to_vec()));
    let keys = Int32Array::from(vec![Some(3), Some(0), None, Some(2), Some(1)]);
    let texts = DictionaryArray::<Int32Type>::try_new(keys, plain.clone()).unwrap();
    let shapes: Vec<(ArrayRef, Vec<Option<&str>>)> = vec![
        (Arc::new(LargeStringArray::from(text.to_vec())), text.map(Some).into()),
        (Arc::new(StringViewArray::from(text.to_vec())), text.map(Some).into()),
        (plain.slice(1, 2), vec![Some(text[1]), Some(text[2])]),
        (Arc::new(texts), vec![Some("ä"), Some("a"), None, Some(text[2]), Some("")]),
    ];
    for (values, expected) in shapes {
        let bytes = write(&values, true, &Options::default());
        let outcome = rows::read(&open(&bytes).unwrap(), OnError::Raise).unwrap();
        let back: Vec<Option<&str>> = outcome.batch.column(0).as_string::<i32>().iter().collect();
        assert_eq!(back, expected, "{}", values.data_type());
    }
    // A dictionary of times without a zone is written like the times themselves.
    let keys = Int32Array::from(vec![1, 0]);
    let times = Arc::new(TimestampMicrosecondArray::from(vec![5, 7]));
    let values: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::try_new(keys, times).unwrap());
    let outcome = rows::read(&open(&write(&values, false, &Options::default())).unwrap(), OnError::Raise);
    let batch = outcome.unwrap().batch;
    let back = arrow_cast::cast(batch.column(0), &DataType::Int64).unwrap();
    assert_eq!(back.to_data(), Int64Array::from(vec![7, 5]).to_data());
}

#[test]
fn values_that_do_not_fit_are_schema_errors_of_their_column() {
    let decimal = |precision, scale, value| -> ArrayRef {
        Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(precision, scale).unwrap())
    };
    let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX]));
    // A null among the dictionary's values: Arrow itself refuses only null keys.
    let texts = Arc::new(StringArray::from(vec![Some("a"), None]));
    let keys = Int32Array::from(vec![0, 1]);
    let null: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::try_new(keys, texts).unwrap());
    let short = Options { data_type: Some(KuduType::Decimal32), ..Options::default() };
    for (values, options) in [
        (seconds, Options::default()),
        (null, Options::default()),
        (decimal(9, 2, i128::from(i32::MAX) + 1), short),
    ] {
        let e = try_write(&values, false, &options).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Schema(_)), "{e:?}");
        assert!(e.to_string().contains("column `value`"), "{e}");
    }
    // No reader accepts a negative scale, and a CFile does not store a scale.
    let e = try_write(&decimal(5, -2, 12), false, &Options::default()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Unsupported(_)), "{e}");
}
