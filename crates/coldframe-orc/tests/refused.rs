//! What the writer is given and cannot store is refused by a word of the caller's: column and value.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeBinaryArray, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
    TimestampSecondArray,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use coldframe_core::{Error, ErrorKind, Format, OnError, OpenOptions, Result, WriteOptions};
use coldframe_orc::OrcFormat;
use coldframe_testing::rows;

fn write(schema: Schema, columns: Vec<ArrayRef>) -> Result<u64> {
    let schema = Arc::new(schema);
    let mut writer = OrcFormat.create(Box::new(std::io::sink()), &schema, &WriteOptions::default())?;
    // As it comes over an interface: nobody has looked whether the nulls fit the fields.
    let batch = unsafe_batch(&schema, columns);
    writer.write(&batch)?;
    writer.finish()
}

/// A batch whose fields all may be null, for arrays of a schema that says otherwise.
fn unsafe_batch(schema: &Arc<Schema>, columns: Vec<ArrayRef>) -> RecordBatch {
    let fields: Vec<Field> = schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn refused(schema: Schema, columns: Vec<ArrayRef>, words: &[&str]) -> Error {
    let e = write(schema, columns).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::InvalidArgument(_) | ErrorKind::Schema(_)), "{:?}", e.kind());
    for word in words {
        assert!(e.to_string().contains(word), "{e}");
    }
    e
}

fn one(name: &str, data_type: DataType, nullable: bool) -> Schema {
    Schema::new(vec![Field::new(name, data_type, nullable)])
}

#[test]
fn values_that_do_not_fit_are_named() {
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    refused(one("n", DataType::Int64, false), vec![nulls], &["column \"n\"", "1 nulls"]);
    let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MIN]));
    let of = DataType::Timestamp(TimeUnit::Second, None);
    refused(one("t", of, true), vec![seconds], &["column \"t\"", "-9223372036854775808"]);
    let last: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![-500]));
    let of = DataType::Timestamp(TimeUnit::Millisecond, None);
    refused(
        one("t", of, true),
        vec![last],
        &["column \"t\"", "1969-12-31 23:59:59.500000000", "last_second"],
    );
}

#[test]
fn types_that_are_not_read_back_are_named() {
    let extension = |name: &str, of: DataType| {
        let metadata = [("ARROW:extension:name".to_owned(), name.to_owned())];
        Field::new("x", of, true).with_metadata(std::collections::HashMap::from(metadata))
    };
    let uuid: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[7u8; 16]].iter()).unwrap());
    let schema = Schema::new(vec![extension("arrow.uuid", DataType::FixedSizeBinary(16))]);
    refused(schema, vec![uuid], &["column \"x\"", "arrow.uuid", "cast"]);
    // One whose storage ORC has stays what it is.
    let json: ArrayRef = Arc::new(StringArray::from(vec!["{}"]));
    write(Schema::new(vec![extension("arrow.json", DataType::Utf8)]), vec![json]).unwrap();
    let deep = (0..64).fold(DataType::Int8, |of, _| DataType::List(Arc::new(Field::new("item", of, true))));
    refused(one("deep", deep, true), vec![], &["63 levels", "deep"]);
    let wide = Schema::new(
        (0..100_001).map(|i| Field::new(format!("c{i}"), DataType::Int8, true)).collect::<Vec<_>>(),
    );
    refused(wide, vec![], &["100000 columns", "100001"]);
}

/// The deepest type that is taken is read back.
#[test]
fn what_is_not_refused_is_read_back() {
    let deep = (0..62).fold(DataType::Int8, |of, _| DataType::List(Arc::new(Field::new("item", of, true))));
    let array = arrow_array::new_null_array(&deep, 2);
    let batch = RecordBatch::try_new(Arc::new(one("deep", deep, true)), vec![array]).unwrap();
    let file = support::open("deep", support::written(&batch, &[]), &OpenOptions::default()).unwrap().file;
    let found = rows::read(file.as_ref(), OnError::Raise).unwrap();
    assert!(found.error.is_none(), "{:?}", found.error);
    assert_eq!(found.batch.num_rows(), 2);
}
