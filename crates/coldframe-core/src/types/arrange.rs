//! Arranges a file's columns in the table's order and under its names.
//!
//! ```text
//! file      name, ID                      table    id     name   at         region
//!                                                  ID     name   (nulls)    'eu', repeated
//! ```
//!
//! Columns are matched by name, ignoring upper and lower case if there is no exact match. They keep their
//! decoded types: fingerprints are computed from these types, before [`conform`](super::conform()) converts
//! them to the table's types.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::arrays::window;
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray, UInt32Array,
    new_null_array,
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow_select::take::take;

/// How the columns of one file become the columns of a table.
#[derive(Clone, Debug)]
pub struct Arrangement {
    /// The table's columns.
    pub target: SchemaRef,
    /// New names for the file's columns by position, if the file has only placeholder names. These names are
    /// used only if there are as many names as columns.
    pub names: Option<Vec<String>>,
    /// Columns with the same value in each row, as arrays of one value, which may be null. A constant
    /// replaces the file's column of the same name.
    pub constants: BTreeMap<String, ArrayRef>,
}

impl Arrangement {
    /// The batch's columns in the table's order and under its names, in the batch's types. A missing column
    /// becomes nulls of the table's type.
    pub fn arrange(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let named = self.named_columns(batch);
        let exact: HashMap<&str, &ArrayRef> = named.iter().copied().collect();
        let folded: HashMap<String, &ArrayRef> =
            named.iter().map(|(name, column)| (name.to_lowercase(), *column)).collect();
        let of_field = |field: &FieldRef| {
            let name = field.name();
            if let Some(constant) = self.constants.get(name) {
                return repeated(name, constant, field.data_type(), rows);
            }
            match exact.get(name.as_str()).or_else(|| folded.get(&name.to_lowercase())) {
                Some(column) => {
                    with_fields(column, field.data_type()).map_err(|e| e.within(format!("column {name}")))
                }
                None => Ok(new_null_array(field.data_type(), rows)),
            }
        };
        let columns = self.target.fields().iter().map(of_field).collect::<Result<Vec<_>>>()?;
        if columns.is_empty() {
            return Err(Error::schema("a table without columns"));
        }
        let fields = self.target.fields().iter().zip(&columns);
        let fields: Fields = fields
            .map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(unfit)
    }

    /// The batch's columns with their names, or with the new names.
    fn named_columns<'a>(&'a self, batch: &'a RecordBatch) -> Vec<(&'a str, &'a ArrayRef)> {
        let names: Vec<&str> = match &self.names {
            Some(names) if names.len() == batch.num_columns() => names.iter().map(String::as_str).collect(),
            _ => batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect(),
        };
        names.into_iter().zip(batch.columns()).collect()
    }
}

fn repeated(name: &str, value: &ArrayRef, kind: &DataType, rows: usize) -> Result<ArrayRef> {
    match (value.len(), value.logical_null_count()) {
        (1, 0) => take(value, &UInt32Array::from(vec![0; rows]), None).map_err(unfit),
        (1, _) => Ok(new_null_array(kind, rows)),
        (count, _) => Err(Error::invalid(format!("constant {name}: expected one value, found {count}"))),
    }
}

fn unfit(e: ArrowError) -> Error {
    Error::schema(e.to_string())
}

/// `array` with the struct fields of `target`, in the order and under the names of `target`; missing fields
/// become nulls.
///
/// Fields are matched by name, ignoring upper and lower case; fields that the target lacks are dropped. Types
/// are kept; an array of another kind than the target is returned unchanged.
pub fn with_fields(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    with_defaults(array, target, &|_| None)
}

/// The default of a field that a struct lacks: an array of length 1; `None` means null.
pub type DefaultOf<'a> = &'a dyn Fn(&Field) -> Option<ArrayRef>;

/// Like [`with_fields`], with default values for missing fields.
pub fn with_defaults(array: &ArrayRef, target: &DataType, default: DefaultOf<'_>) -> Result<ArrayRef> {
    match (array.data_type(), target) {
        (own, _) if alike(own, target) => Ok(array.clone()),
        (DataType::Struct(_), DataType::Struct(wanted)) => structure(array.as_struct(), wanted, default),
        (DataType::List(own), DataType::List(wanted)) => list(array, own, wanted, default),
        (DataType::Map(own, sorted), DataType::Map(wanted, _)) => map(array, own, *sorted, wanted, default),
        _ => Ok(array.clone()),
    }
}

/// Whether the types are the same, ignoring the names of list elements and map entries.
fn alike(left: &DataType, right: &DataType) -> bool {
    let fields = |left: &Field, right: &Field| {
        left.is_nullable() == right.is_nullable() && alike(left.data_type(), right.data_type())
    };
    match (left, right) {
        (DataType::List(left), DataType::List(right)) => fields(left, right),
        (DataType::Map(left, _), DataType::Map(right, _)) => match (left.data_type(), right.data_type()) {
            (DataType::Struct(left), DataType::Struct(right)) => {
                left.iter().zip(right).all(|(left, right)| fields(left, right))
            }
            _ => false,
        },
        (DataType::Struct(left), DataType::Struct(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| left.name() == right.name() && fields(left, right))
        }
        _ => left == right,
    }
}

fn structure(structs: &StructArray, wanted: &Fields, default: DefaultOf<'_>) -> Result<ArrayRef> {
    let own = structs.fields().iter().zip(structs.columns());
    let places: HashMap<String, &ArrayRef> =
        own.map(|(field, column)| (field.name().to_lowercase(), column)).collect();
    if places.len() < structs.num_columns() {
        let own_type = structs.data_type();
        return Err(Error::schema(format!("{own_type} has fields whose names are equal but for case")));
    }
    let child = |field: &FieldRef| match places.get(&field.name().to_lowercase()) {
        Some(column) => with_defaults(column, field.data_type(), default),
        None => match default(field) {
            Some(value) => repeated(field.name(), &value, field.data_type(), structs.len()),
            None => Ok(new_null_array(field.data_type(), structs.len())),
        },
    };
    let children = wanted.iter().map(child).collect::<Result<Vec<_>>>()?;
    let fields = wanted.iter().zip(&children);
    let fields: Fields =
        fields.map(|(field, child)| Field::new(field.name(), child.data_type().clone(), true)).collect();
    let made = StructArray::try_new_with_length(fields, children, structs.nulls().cloned(), structs.len());
    Ok(Arc::new(made.map_err(unfit)?))
}

fn list(array: &ArrayRef, own: &FieldRef, wanted: &Field, default: DefaultOf<'_>) -> Result<ArrayRef> {
    let lists = array.as_list::<i32>();
    let (start, length, offsets) = window(lists.offsets());
    let values = with_defaults(&lists.values().slice(start, length), wanted.data_type(), default)?;
    if values.data_type() == own.data_type() {
        return Ok(array.clone());
    }
    let made = ListArray::try_new(of_type(own, values.data_type()), offsets, values, lists.nulls().cloned());
    Ok(Arc::new(made.map_err(unfit)?))
}

fn map(
    array: &ArrayRef,
    own: &FieldRef,
    sorted: bool,
    wanted: &Field,
    default: DefaultOf<'_>,
) -> Result<ArrayRef> {
    let (DataType::Struct(fields), DataType::Struct(others)) = (own.data_type(), wanted.data_type()) else {
        return Ok(array.clone());
    };
    let ([key, value], [_, other]) = (fields.as_ref(), others.as_ref()) else { return Ok(array.clone()) };
    let maps = array.as_map();
    let (start, length, offsets) = window(maps.offsets());
    let values = with_defaults(&maps.values().slice(start, length), other.data_type(), default)?;
    if values.data_type() == value.data_type() {
        return Ok(array.clone());
    }
    let fields = Fields::from(vec![key.clone(), of_type(value, values.data_type())]);
    let entries = of_type(own, &DataType::Struct(fields.clone()));
    let children = vec![maps.keys().slice(start, length), values];
    let pairs = StructArray::try_new_with_length(fields, children, None, length).map_err(unfit)?;
    let made = MapArray::try_new(entries, offsets, pairs, maps.nulls().cloned(), sorted);
    Ok(Arc::new(made.map_err(unfit)?))
}

fn of_type(field: &FieldRef, kind: &DataType) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(kind.clone()))
}
