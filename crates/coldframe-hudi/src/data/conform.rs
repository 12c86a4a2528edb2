//! Values of files as the table's types.
//!
//! Fields match by name, at every depth; a field that a file lacks is null. An older file may have narrower types.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{
    Array, ArrayRef, Float64Array, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray,
    new_null_array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, FieldRef, Fields, SchemaRef};
use coldframe_core::{Error, Result, arrow_error};

/// The columns of `schema`, from a batch of a file. `name_in`: the name of a column in the file, or `None` if
/// the file lacks it.
pub(crate) fn conform_batch(
    batch: &RecordBatch,
    schema: &SchemaRef,
    name_in: &dyn Fn(&str) -> Option<String>,
) -> Result<RecordBatch> {
    let columns = schema.fields().iter().map(|field| {
        let own = name_in(field.name()).and_then(|name| batch.column_by_name(&name).cloned());
        match own {
            Some(own) => conform(&own, field.data_type()).map_err(|e| e.within(field.name().clone())),
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        }
    });
    let columns = columns.collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(arrow_error)
}

/// An array as another type.
pub(crate) fn conform(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    match (array.data_type(), to) {
        (DataType::Null, _) => Ok(new_null_array(to, array.len())),
        (DataType::Struct(_), DataType::Struct(fields)) => structure(array.as_struct(), fields),
        (DataType::List(_), DataType::List(item)) => {
            let own = array.as_list::<i32>();
            let values = conform(own.values(), item.data_type())?;
            let made = ListArray::try_new(item.clone(), own.offsets().clone(), values, own.nulls().cloned());
            Ok(Arc::new(made.map_err(arrow_error)?))
        }
        (DataType::Map(..), DataType::Map(entries, sorted)) => map(array.as_map(), entries, *sorted),
        (DataType::Float32, DataType::Float64) => Ok(widened(array)),
        (from, to) if is_nested(from) || is_nested(to) => {
            Err(Error::unsupported(format!("a column that changed its type from {from} to {to}")))
        }
        (from, to) => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(array, to, &options).map_err(|e| {
                Error::unsupported(format!("a column that changed its type from {from} to {to}: {e}"))
            })
        }
    }
}

fn is_nested(of: &DataType) -> bool {
    matches!(of, DataType::Struct(_) | DataType::List(_) | DataType::Map(..))
}

fn structure(own: &StructArray, fields: &Fields) -> Result<ArrayRef> {
    let columns = fields.iter().map(|field| match own.column_by_name(field.name()) {
        Some(column) => conform(column, field.data_type()).map_err(|e| e.within(field.name().clone())),
        None => Ok(new_null_array(field.data_type(), own.len())),
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let nulls = own.nulls().cloned();
    let made = match columns.is_empty() {
        true => Ok(StructArray::new_empty_fields(own.len(), nulls)),
        false => StructArray::try_new(fields.clone(), columns, nulls),
    };
    Ok(Arc::new(made.map_err(arrow_error)?))
}

fn map(own: &MapArray, entries: &FieldRef, sorted: bool) -> Result<ArrayRef> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(Error::schema("expected a map's entries as a struct"));
    };
    let pairs = own.keys().clone();
    let (Some(key), Some(value)) = (fields.first(), fields.get(1)) else {
        return Err(Error::schema("expected a key and a value in a map's entries"));
    };
    let columns = vec![conform(&pairs, key.data_type())?, conform(own.values(), value.data_type())?];
    let inner = StructArray::try_new(fields.clone(), columns, None).map_err(arrow_error)?;
    let made = MapArray::try_new(entries.clone(), own.offsets().clone(), inner, own.nulls().cloned(), sorted);
    Ok(Arc::new(made.map_err(arrow_error)?))
}

/// Floats as the doubles with the same digits: 0.1 stays 0.1, as in Hudi's readers, although the nearest
/// double to the float is 0.10000000149011612.
fn widened(array: &ArrayRef) -> ArrayRef {
    let own = array.as_primitive::<Float32Type>();
    let digits = |v: f32| if v.is_finite() { v.to_string().parse().unwrap_or(v.into()) } else { v.into() };
    let values: Float64Array = own.iter().map(|v| v.map(digits)).collect();
    Arc::new(values)
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float32Array, Int32Array};
    use arrow_schema::Field;

    use super::*;

    #[test]
    fn values_of_older_files_take_the_types_of_the_table() {
        let floats: ArrayRef =
            Arc::new(Float32Array::from(vec![Some(0.1), None, Some(f32::NAN), Some(-0.0)]));
        let doubles = conform(&floats, &DataType::Float64).unwrap();
        let doubles = doubles.as_primitive::<arrow_array::types::Float64Type>().clone();
        assert_eq!((doubles.value(0), doubles.is_null(1)), (0.1, true));
        assert!(doubles.value(2).is_nan() && doubles.value(3).is_sign_negative());
        let ints: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let field = |name: &str, of: DataType| Arc::new(Field::new(name, of, true));
        let inner = Fields::from(vec![field("a", DataType::Int32)]);
        let old: ArrayRef = Arc::new(StructArray::new(inner, vec![ints.clone()], None));
        let new = DataType::Struct(vec![field("b", DataType::Utf8), field("a", DataType::Int64)].into());
        let made = conform(&old, &new).unwrap();
        assert_eq!(made.as_struct().column(0).null_count(), 2);
        assert_eq!(made.as_struct().column(1).as_primitive::<arrow_array::types::Int64Type>().value(1), 2);
        let e = conform(&ints, &new).unwrap_err().to_string();
        assert!(e.contains("changed its type"), "{e}");
    }
}
