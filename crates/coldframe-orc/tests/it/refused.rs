//! If the writer cannot store data, it refuses the data with an error that names column and value.

use crate::support;

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, FixedSizeBinaryArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use coldframe_core::{Error, ErrorKind, Format, OnError, OpenOptions, Result, Value, WriteOptions};
use coldframe_orc::OrcFormat;
use coldframe_testing::rows;

fn write(schema: Schema, columns: Vec<ArrayRef>) -> Result<u64> {
    let schema = Arc::new(schema);
    let mut writer = OrcFormat.create(Box::new(std::io::sink()), &schema, &WriteOptions::default())?;
    // The batch is like one from the C data interface, where the nulls are not checked against the fields.
    let batch = unsafe_batch(&schema, columns);
    writer.write(&batch)?;
    writer.finish()
}

/// A batch with nullable fields, for arrays of a schema whose fields are not nullable.
fn unsafe_batch(schema: &Arc<Schema>, columns: Vec<ArrayRef>) -> RecordBatch {
    let fields: Vec<Field> = schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn refused(schema: Schema, columns: Vec<ArrayRef>, texts: &[&str]) -> Error {
    let e = write(schema, columns).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::InvalidArgument(_) | ErrorKind::Schema(_)), "{:?}", e.kind());
    for text in texts {
        assert!(e.to_string().contains(text), "{e}");
    }
    e
}

fn single_column(name: &str, data_type: DataType, nullable: bool) -> Schema {
    Schema::new(vec![Field::new(name, data_type, nullable)])
}

#[test]
fn errors_name_values_that_do_not_fit() {
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    refused(single_column("n", DataType::Int64, false), vec![nulls], &["column \"n\"", "1 nulls"]);
    let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MIN]));
    let of = DataType::Timestamp(TimeUnit::Second, None);
    refused(single_column("t", of, true), vec![seconds], &["column \"t\"", "-9223372036854775808"]);
    for far in [i64::MIN, i64::MAX / 1000 + 1] {
        let millis: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![far]));
        let of = DataType::Timestamp(TimeUnit::Millisecond, None);
        refused(single_column("t", of, true), vec![millis], &["column \"t\"", "64 bits of microseconds"]);
    }
    let last: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![-500]));
    let of = DataType::Timestamp(TimeUnit::Millisecond, None);
    refused(
        single_column("t", of, true),
        vec![last],
        &["column \"t\"", "1969-12-31 23:59:59.500000000", "last_second"],
    );
}

#[test]
fn types_that_would_be_read_differently_are_named() {
    let extension = |name: &str, of: DataType| {
        let metadata = [("ARROW:extension:name".to_owned(), name.to_owned())];
        Field::new("x", of, true).with_metadata(std::collections::HashMap::from(metadata))
    };
    let uuid: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[7u8; 16]].iter()).unwrap());
    let schema = Schema::new(vec![extension("arrow.uuid", DataType::FixedSizeBinary(16))]);
    refused(schema, vec![uuid], &["column \"x\"", "arrow.uuid", "cast"]);
    // An extension type is kept if ORC has its storage type.
    let json: ArrayRef = Arc::new(StringArray::from(vec!["{}"]));
    write(Schema::new(vec![extension("arrow.json", DataType::Utf8)]), vec![json]).unwrap();
    let deep = (0..128).fold(DataType::Int8, |of, _| DataType::List(Arc::new(Field::new("item", of, true))));
    refused(single_column("deep", deep, true), vec![], &["127 levels", "deep"]);
    let wide = Schema::new(
        (0..100_001).map(|i| Field::new(format!("c{i}"), DataType::Int8, true)).collect::<Vec<_>>(),
    );
    refused(wide, vec![], &["100000 columns", "100001"]);
}

/// The type with the maximum number of levels can be read.
#[test]
fn the_deepest_accepted_type_is_read_back() {
    let deep = (0..126).fold(DataType::Int8, |of, _| DataType::List(Arc::new(Field::new("item", of, true))));
    let array = arrow_array::new_null_array(&deep, 2);
    let batch = RecordBatch::try_new(Arc::new(single_column("deep", deep, true)), vec![array]).unwrap();
    let file = support::open("deep", support::written(&batch, &[]), &OpenOptions::default()).unwrap().file;
    let outcome = rows::read(file.as_ref(), OnError::Raise).unwrap();
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(outcome.batch.num_rows(), 2);
}

#[test]
fn the_first_and_last_values_of_a_unit_can_be_read() {
    let all = vec![Some(i64::MIN), None, Some(i64::MIN + 1), Some(i64::MAX), Some(0)];
    let micros: ArrayRef = Arc::new(TimestampMicrosecondArray::from(all.clone()));
    let nanos: ArrayRef = Arc::new(TimestampNanosecondArray::from(all));
    for (column, unit) in [(micros, "us"), (nanos, "ns")] {
        let batch = RecordBatch::try_from_iter_with_nullable([("t", column, true)]).unwrap();
        let mut options = OpenOptions::default();
        options.extra.insert("timestamp_unit".into(), Value::from(unit));
        let file = support::open("t", support::written(&batch, &[]), &options).unwrap().file;
        let got = rows::read(file.as_ref(), OnError::Raise).unwrap();
        assert!(got.error.is_none(), "{:?}", got.error);
        assert_eq!(got.batch.columns(), batch.columns());
    }
}

/// Columns that fail at different rows are each lost once: the row group is not read again and again.
#[test]
fn columns_may_fail_at_different_rows() {
    let column = |bad: usize| -> ArrayRef {
        let mut all: Vec<i64> = (0..30).collect();
        all[bad] = 10_000_000_000 * 1_000_000;
        Arc::new(TimestampMicrosecondArray::from(all))
    };
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("a", column(12), true),
        ("b", column(15), true),
        ("c", column(17), true),
    ]);
    let bytes = support::written(&batch.unwrap(), &[("row_index_stride", Value::Int(10))]);
    let file = support::open("t", bytes, &OpenOptions::default()).unwrap().file;
    let got = rows::read(file.as_ref(), OnError::Null).unwrap();
    assert!(got.error.is_none(), "{:?}", got.error);
    let nulls: Vec<usize> = got.batch.columns().iter().map(|column| column.null_count()).collect();
    assert_eq!((nulls, got.damage.len()), (vec![1, 1, 1], 3));
}

/// A timestamp outside the range of nanoseconds may be damage: a scan with `raise` ends with a helpful error;
/// a scan with `skip` or `null` keeps the rows before it.
#[test]
fn values_beyond_the_unit_cost_only_themselves() {
    let mut all: Vec<i64> = (0..30).collect();
    all[12] = 10_000_000_000 * 1_000_000;
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(all));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..30));
    let batch = RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("t", times, true)]).unwrap();
    let bytes = support::written(&batch, &[("row_index_stride", Value::Int(10))]);
    let file = support::open("t", bytes, &OpenOptions::default()).unwrap().file;
    let raised = rows::read(file.as_ref(), OnError::Raise).unwrap().error.unwrap();
    assert!(matches!(raised.kind(), ErrorKind::Schema(what) if what.contains("timestamp_unit")), "{raised}");
    for (on_error, kept) in [(OnError::Skip, 29), (OnError::Null, 30)] {
        let got = rows::read(file.as_ref(), on_error).unwrap();
        assert!(got.error.is_none(), "{:?}", got.error);
        assert_eq!(got.batch.num_rows(), kept, "{on_error:?}");
        assert_eq!(got.damage.len(), 1, "{:?}", got.damage);
        assert!(got.damage[0].reason.contains("timestamp_unit"), "{:?}", got.damage);
        if on_error == OnError::Null {
            assert_eq!(got.batch.column(1).null_count(), 1);
            assert_eq!(got.batch.column(0).null_count(), 0);
        }
    }
}
