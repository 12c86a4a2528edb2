//! Values that are written are the same when they are read, or are refused with an error that names column
//! and value.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, TimestampMicrosecondType, TimestampSecondType};
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, ListArray, PrimitiveArray, RecordBatch,
    TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray,
};
use arrow_schema::{DataType, Field, Schema};
use coldframe_core::{
    Error, ErrorKind, Format, OnError, OpenOptions, Result, SchemaSpec, Value, WriteOptions,
};
use coldframe_rcfile::{RcFile, RcFileFormat};
use coldframe_testing::fixture::source;
use coldframe_testing::rows::{self, as_text};

fn written(batch: &RecordBatch, pairs: &[(&str, &str)]) -> Result<Vec<u8>> {
    let options: Vec<_> = pairs.iter().map(|(name, value)| (*name, Value::from(*value))).collect();
    coldframe_testing::written(&RcFileFormat, std::slice::from_ref(batch), &options).map(Vec::from)
}

fn single_column(name: &str, array: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([(name, array, true)]).unwrap()
}

fn read(bytes: Vec<u8>, ddl: &str, pairs: &[(&str, &str)]) -> RecordBatch {
    let mut open = OpenOptions { schema: Some(SchemaSpec::Ddl(ddl.to_owned())), ..OpenOptions::default() };
    for (name, value) in pairs {
        open.extra.insert((*name).to_owned(), Value::from(*value));
    }
    let file = RcFile::open(&source(bytes), &open).unwrap();
    let outcome = rows::read(&file, OnError::Raise).unwrap();
    assert!(outcome.error.is_none(), "{ddl} {pairs:?}: {:?}", outcome.error);
    outcome.batch
}

/// The error must concern the input, not state that the file is damaged.
fn assert_unsuitable(e: &Error) {
    assert!(matches!(e.kind(), ErrorKind::Schema(_) | ErrorKind::InvalidArgument(_)), "{e:?}");
}

#[test]
fn more_columns_than_readers_accept_are_refused() {
    for (columns, fits) in [(100_000, true), (100_001, false)] {
        let fields: Vec<Field> =
            (0..columns).map(|i| Field::new(format!("c{i}"), DataType::Int32, true)).collect();
        let result = RcFileFormat.create(
            Box::new(std::io::sink()),
            &Schema::new(fields).into(),
            &WriteOptions::default(),
        );
        assert_eq!(result.is_ok(), fits);
        if let Err(e) = result {
            assert_unsuitable(&e);
            assert!(e.to_string().contains("100001"), "{e}");
        }
    }
}

/// The first and last values of each unit, in all SerDes and versions: the values are equal, or the error
/// names column and row.
#[test]
fn extreme_timestamps_are_equal_or_refused() {
    let ends = [i64::MIN, i64::MIN + 1, -1, 0, 253_402_300_800, i64::MAX - 1, i64::MAX];
    let year_10000 = ends[4];
    let mut refused = 0;
    for zone in [None, Some("UTC")] {
        let arrays: [(&str, ArrayRef); 3] = [
            ("ns", Arc::new(TimestampNanosecondArray::from(ends.to_vec()).with_timezone_opt(zone))),
            ("us", Arc::new(TimestampMicrosecondArray::from(ends.to_vec()).with_timezone_opt(zone))),
            ("s", Arc::new(TimestampSecondArray::from(ends.to_vec()).with_timezone_opt(zone))),
        ];
        let ddl = if zone.is_some() { "t timestamp with local time zone" } else { "t timestamp" };
        for (unit, array) in &arrays {
            for serde in ["text", "binary"] {
                for version in ["0.8", "2.3", "3.1", "4.1"] {
                    let pairs = [("serde", serde), ("hive_version", version)];
                    for row in 0..array.len() {
                        let value = array.slice(row, 1);
                        match written(&single_column("t", value.clone()), &pairs) {
                            Ok(bytes) => {
                                let unit = if *unit == "s" { "us" } else { unit };
                                let open = [pairs[0], pairs[1], ("timestamp_unit", unit)];
                                let batch = read(bytes, ddl, &open);
                                let wanted = arrow_cast::cast(&value, batch.column(0).data_type());
                                assert_eq!(batch.column(0), &wanted.unwrap(), "{unit} {pairs:?} {row}");
                            }
                            Err(e) => {
                                assert_unsuitable(&e);
                                let text = e.to_string();
                                assert!(text.starts_with("column \"t\": row 0 to be written: "), "{text}");
                                refused += 1;
                            }
                        }
                    }
                }
            }
        }
        let later: ArrayRef = Arc::new(TimestampSecondArray::from(vec![year_10000]).with_timezone_opt(zone));
        for serde in ["text", "binary"] {
            let bytes = written(&single_column("t", later.clone()), &[("serde", serde)]).unwrap();
            let batch = read(bytes, ddl, &[("serde", serde), ("timestamp_unit", "us")]);
            let column = batch.column(0).as_primitive::<TimestampMicrosecondType>();
            assert_eq!(column.value(0), year_10000 * 1_000_000);
        }
    }
    assert!(refused > 20, "{refused}");
}

/// A dictionary of times is written in the unit of its values: the year 9999 does not fit nanoseconds.
#[test]
fn a_dictionary_keeps_its_unit_of_time() {
    let values = PrimitiveArray::<TimestampSecondType>::from(vec![253_402_214_400, 0]);
    let keys = Int32Array::from(vec![Some(1), Some(0), None]);
    let array: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(values)));
    for serde in ["text", "binary"] {
        let bytes = written(&single_column("t", array.clone()), &[("serde", serde)]).unwrap();
        let batch = read(bytes, "t timestamp", &[("serde", serde), ("timestamp_unit", "us")]);
        assert_eq!(as_text(&batch), ["1970-01-01T00:00:00\u{1}", "9999-12-31T00:00:00\u{1}", "\u{0}\u{1}"]);
    }
}

#[test]
fn an_error_names_a_value_outside_its_type() {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 300, 4]));
    for serde in ["text", "binary"] {
        let e = written(&single_column("n", array.clone()), &[("serde", serde), ("schema", "n tinyint")])
            .unwrap_err();
        assert_unsuitable(&e);
        let text = e.to_string();
        assert!(text.starts_with("column \"n\": row 2 to be written: ") && text.contains("300"), "{text}");
    }
}

#[test]
fn types_nested_too_deeply_are_errors_of_the_schema() {
    let mut array: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    for _ in 0..128 {
        let item = Arc::new(Field::new("item", array.data_type().clone(), true));
        array = Arc::new(ListArray::new(item, arrow_buffer::OffsetBuffer::from_lengths([1]), array, None));
    }
    for serde in ["text", "binary"] {
        let e = written(&single_column("deep", array.clone()), &[("serde", serde)]).unwrap_err();
        assert_unsuitable(&e);
        assert!(e.to_string().contains("column \"deep\""), "{e}");
    }
}
