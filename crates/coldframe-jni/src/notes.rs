//! Spark's types without a counterpart in ORC, which Spark's own writer notes in an attribute of the ORC type.
//!
//! ```text
//! type in ORC   attribute spark.sql.catalyst.type    type in Spark      values
//! bigint        timestamp_ntz                        timestamp_ntz      microseconds since 1970
//! bigint        interval day to second, ..           the same interval  microseconds
//! int           interval year to month, ..           the same interval  months
//! ```
//! Spark stores integers, and its reader returns them as the type that the attribute names. coldframe's ORC reader puts
//! the attribute into the metadata of the Arrow field. Source: Spark's `OrcUtils` (`orcTypeDescription`,
//! `toCatalystSchema`).

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_schema::{DataType, Field, FieldRef, Schema, TimeUnit};
use coldframe::{Result, arrow_error};

/// The name of the attribute.
const NOTE: &str = "spark.sql.catalyst.type";

/// The Arrow type that a field's attribute gives to its integers; `None` without the attribute.
fn noted(field: &Field) -> Option<DataType> {
    let of = |name: &str| kind(name).filter(|(storage, _)| storage == field.data_type());
    field.metadata().get(NOTE).and_then(|name| of(name)).map(|(_, kind)| kind)
}

/// The Arrow type of the stored integers, and that of the values, for a type that Spark notes.
fn kind(name: &str) -> Option<(DataType, DataType)> {
    if name == "timestamp_ntz" {
        return Some((DataType::Int64, DataType::Timestamp(TimeUnit::Microsecond, None)));
    }
    interval(name).map(|kind| match kind {
        DataType::Int32 => (DataType::Int32, DataType::Int32),
        micros => (DataType::Int64, micros),
    })
}

/// The Arrow type of one of Spark's intervals: integers are months, durations are microseconds.
pub(crate) fn interval(name: &str) -> Option<DataType> {
    match name.strip_prefix("interval ")?.split(" to ").next()? {
        "year" | "month" => Some(DataType::Int32),
        "day" | "hour" | "minute" | "second" => Some(DataType::Duration(TimeUnit::Microsecond)),
        _ => None,
    }
}

/// The name of a field's type in Spark, if its attribute has one.
pub(crate) fn name(field: &Field) -> Option<&str> {
    let name = field.metadata().get(NOTE)?;
    kind(name).filter(|(_, kind)| kind == field.data_type()).map(|_| name.as_str())
}

/// Whether a field's attribute gives its type in Spark.
pub(crate) fn has(field: &Field) -> bool {
    name(field).is_some()
}

/// The field `plain` with the types that the attributes of `own` give to integers. `own` is the same field as the file
/// has it. `keep`: whether these attributes stay in the metadata, where [`name`] finds them.
pub(crate) fn followed(own: &Field, plain: &Field, keep: bool) -> Field {
    if let Some(kind) = noted(own) {
        let metadata = own.metadata().get(NOTE).filter(|_| keep).cloned();
        let metadata = metadata.map(|note| (NOTE.to_owned(), note));
        let made = Field::new(plain.name(), kind, plain.is_nullable());
        return made.with_metadata(metadata.into_iter().collect::<HashMap<_, _>>());
    }
    let below = |own: &FieldRef, plain: &FieldRef| Arc::new(followed(own, plain, keep));
    let kind = match (own.data_type(), plain.data_type()) {
        (DataType::Struct(own), DataType::Struct(plain)) if own.len() == plain.len() => {
            DataType::Struct(own.iter().zip(plain).map(|(own, plain)| below(own, plain)).collect())
        }
        (DataType::List(own), DataType::List(plain)) => DataType::List(below(own, plain)),
        (DataType::Map(own, _), DataType::Map(plain, sorted)) => DataType::Map(below(own, plain), *sorted),
        (_, plain) => plain.clone(),
    };
    plain.clone().with_data_type(kind)
}

/// The columns in which Spark's own ORC writer stores these: `timestamp_ntz` as integers with an attribute.
pub fn stored(columns: &Schema) -> Schema {
    Schema::new(columns.fields().iter().map(|field| stored_field(field)).collect::<Vec<_>>())
}

fn stored_field(field: &Field) -> Field {
    let below = |field: &FieldRef| Arc::new(stored_field(field));
    let kind = match field.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            let mut metadata = field.metadata().clone();
            metadata.insert(NOTE.to_owned(), "timestamp_ntz".to_owned());
            return field.clone().with_data_type(DataType::Int64).with_metadata(metadata);
        }
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(below).collect()),
        DataType::List(item) => DataType::List(below(item)),
        DataType::Map(entries, sorted) => DataType::Map(below(entries), *sorted),
        other => other.clone(),
    };
    field.clone().with_data_type(kind)
}

/// A batch with the types that the attributes of its fields give to integers.
pub fn follow(batch: RecordBatch) -> Result<RecordBatch> {
    let own = batch.schema();
    let fields: Vec<Field> = own.fields().iter().map(|field| followed(field, field, true)).collect();
    if fields.iter().zip(own.fields()).all(|(made, own)| made.data_type() == own.data_type()) {
        return Ok(batch);
    }
    let columns = batch.columns().iter().zip(&fields);
    let columns = columns.map(|(array, field)| as_kind(array, field.data_type()));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(arrow_error)
}

/// The same integers as another type.
fn as_kind(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if array.data_type() == wanted {
        return Ok(array.clone());
    }
    let children: Vec<&FieldRef> = match wanted {
        DataType::Struct(fields) => fields.iter().collect(),
        DataType::List(item) | DataType::Map(item, _) => vec![item],
        _ => Vec::new(),
    };
    let data = array.to_data();
    let below = data.child_data().iter().zip(children);
    let below =
        below.map(|(child, field)| Ok(as_kind(&make_array(child.clone()), field.data_type())?.to_data()));
    let below = below.collect::<Result<Vec<_>>>()?;
    let made = data.into_builder().data_type(wanted.clone()).child_data(below).build();
    Ok(make_array(made.map_err(arrow_error)?))
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{DurationMicrosecondType, TimestampMicrosecondType};
    use arrow_array::{Int32Array, Int64Array, StructArray};

    use super::*;

    fn field(name: &str, kind: DataType, note: &str) -> Field {
        Field::new(name, kind, true).with_metadata(HashMap::from([(NOTE.to_owned(), note.to_owned())]))
    }

    #[test]
    fn integers_have_the_types_of_their_notes() {
        let inner = field("t", DataType::Int64, "timestamp_ntz");
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1_000_000), None]));
        let nested: ArrayRef = Arc::new(StructArray::from(vec![(Arc::new(inner.clone()), numbers.clone())]));
        let fields = vec![
            field("d", DataType::Int64, "interval day to second"),
            field("m", DataType::Int32, "interval year to month"),
            field("text", DataType::Int64, "timestamp"),
            Field::new("s", nested.data_type().clone(), true),
        ];
        let months: ArrayRef = Arc::new(Int32Array::from(vec![14, 15]));
        let columns = vec![numbers.clone(), months, numbers, nested];
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let made = follow(batch).unwrap();
        assert_eq!(made.column(0).as_primitive::<DurationMicrosecondType>().value(0), 1_000_000);
        assert_eq!(made.schema().field(1).data_type(), &DataType::Int32);
        assert_eq!(name(made.schema().field(1)), Some("interval year to month"));
        assert_eq!(made.schema().field(2).data_type(), &DataType::Int64);
        let times = made.column(3).as_struct().column(0).as_primitive::<TimestampMicrosecondType>();
        assert_eq!((times.value(0), times.is_null(1)), (1_000_000, true));
    }

    #[test]
    fn columns_are_stored_as_spark_stores_them() {
        let time = DataType::Timestamp(TimeUnit::Microsecond, None);
        let list = DataType::List(Arc::new(Field::new("element", time.clone(), true)));
        let columns = Schema::new(vec![
            Field::new("t", time, true),
            Field::new("l", list, true),
            Field::new("i", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        ]);
        let made = stored(&columns);
        assert_eq!(made.field(0), &field("t", DataType::Int64, "timestamp_ntz"));
        let item = field("element", DataType::Int64, "timestamp_ntz");
        assert_eq!(made.field(1).data_type(), &DataType::List(Arc::new(item)));
        assert_eq!(made.field(2), columns.field(2));
    }

    #[test]
    fn intervals_are_months_or_microseconds() {
        for (name, kind) in [
            ("interval year", Some(DataType::Int32)),
            ("interval month", Some(DataType::Int32)),
            ("interval hour to second", Some(DataType::Duration(TimeUnit::Microsecond))),
            ("interval", None),
            ("interval x", None),
        ] {
            assert_eq!(interval(name), kind, "{name}");
        }
    }
}
