//! Converts Arrow data from files to exactly the Arrow types of a target. Digits below a microsecond may
//! be lost.
//!
//! ```text
//! dictionary, runs            their values                      null            nulls of any type
//! text, bytes (any layout)    text, bytes; bytes as text must be UTF-8
//! integer, float, decimal     each other; only floats are rounded, to floats and decimals
//! date, time, duration        another unit, where no digit is lost
//! timestamp                   another unit: nanoseconds down, all else exact; never an instant for a wall clock
//! list (any layout)           list<element>
//! map                         map<key, value>
//! struct                      struct, fields by name in the target's order
//! union                       struct<tag, f0, f1, ..>, in which one field is not null
//! ```
//!
//! Consumers of batches with a fixed schema (Spark, a table's writer) compare types field by field and refuse
//! `LargeUtf8`, nanoseconds, or another name of a list's child. A conversion that is not in the table above
//! is an error. Columns that already have the target's type are not copied.
//!
//! | module | holds |
//! |---|---|
//! | this | batches and columns; which conversion applies to which pair of types |
//! | `cast` | conversions of values that must be exact |
//! | `nested` | lists, maps, structs and unions |
//! | `times` | timestamps |

mod cast;
mod nested;
#[cfg(test)]
mod tests;
mod times;

use std::fmt;

use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use arrow_select::take::take;

/// `batch` with exactly the schema `target`. The columns of the batch are taken by position; their names must
/// agree.
///
/// A column that has the target's type is unchanged. A schema error names the column or nested field
/// (`a.element.b`) whose type or value the target's type cannot represent, or that has a null although it is
/// not nullable.
pub fn conform(batch: &RecordBatch, target: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == target {
        return Ok(batch.clone());
    }
    check_names(batch, target)?;
    let columns = batch.columns().iter().zip(target.fields()).map(|(array, field)| {
        let column = Column { outer: None, name: field.name() };
        declared(array, field, column)
    });
    // A batch without columns (for a count) keeps its number of rows.
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = columns.collect::<Result<_>>()?;
    RecordBatch::try_new_with_options(target.clone(), columns, &options).map_err(unfit)
}

fn check_names(batch: &RecordBatch, target: &SchemaRef) -> Result<()> {
    let actual = batch.schema_ref();
    let same = actual.fields().len() == target.fields().len()
        && actual.fields().iter().zip(target.fields()).all(|(own, other)| own.name() == other.name());
    if same {
        return Ok(());
    }
    let names = |schema: &SchemaRef| schema.fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    Err(Error::schema(format!("expected columns {:?}, found {:?}", names(target), names(actual))))
}

/// A column, or a field within one, as errors name it.
#[derive(Clone, Copy)]
struct Column<'a> {
    outer: Option<&'a Column<'a>>,
    name: &'a str,
}

impl<'a> Column<'a> {
    fn field(&'a self, name: &'a str) -> Self {
        Self { outer: Some(self), name }
    }

    fn refused(&self, target: &DataType, actual: &DataType) -> Error {
        Error::schema(format!("column {self}: expected {target}, found {actual}"))
    }
}

impl fmt::Display for Column<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outer {
            Some(outer) => write!(f, "{outer}.{}", self.name),
            None => f.write_str(self.name),
        }
    }
}

/// Converts an Arrow error to a schema error.
fn unfit(e: ArrowError) -> Error {
    Error::schema(e.to_string())
}

/// Converts `array` to a field's type; an error for a null if the field is not nullable.
fn declared(array: &ArrayRef, field: &Field, column: Column<'_>) -> Result<ArrayRef> {
    let made = retyped(array, field.data_type(), column)?;
    check_values(&made, field, None, column)?;
    Ok(made)
}

/// An error for a null in a field that is not nullable, unless the enclosing value is null as well, according
/// to `around`.
fn check_values(
    array: &ArrayRef,
    field: &Field,
    around: Option<&NullBuffer>,
    column: Column<'_>,
) -> Result<()> {
    if field.is_nullable() {
        return Ok(());
    }
    let count = |nulls: Option<&NullBuffer>| nulls.map_or(0, NullBuffer::null_count);
    let nulls = NullBuffer::union(around, array.logical_nulls().as_ref());
    match count(nulls.as_ref()) - count(around) {
        0 => Ok(()),
        nulls => Err(Error::schema(format!("column {column} is declared NOT NULL, found {nulls} nulls"))),
    }
}

/// Converts `array` to another type.
fn retyped(array: &ArrayRef, target: &DataType, column: Column<'_>) -> Result<ArrayRef> {
    let own = array.data_type();
    match (own, target) {
        // Nested values of the same type may still have nulls in fields that are not nullable.
        (_, DataType::List(_) | DataType::Map(_, _) | DataType::Struct(_)) => {}
        _ if own == target => return Ok(array.clone()),
        _ => {}
    }
    match (own, target) {
        (DataType::Dictionary(_, _), _) => {
            let dictionary = array.as_any_dictionary();
            let values = take(dictionary.values(), dictionary.keys(), None).map_err(unfit)?;
            retyped(&values, target, column)
        }
        (DataType::RunEndEncoded(_, values), _) => {
            let values = arrow_cast::cast(array, values.data_type()).map_err(unfit)?;
            retyped(&values, target, column)
        }
        (DataType::Null, _) => Ok(new_null_array(target, array.len())),
        (DataType::Union(_, _), DataType::Struct(fields)) => nested::branches(array, fields, target, column),
        (DataType::Struct(_), DataType::Struct(fields)) => nested::structure(array, fields, column),
        (DataType::Map(_, _), DataType::Map(entries, sorted)) => {
            nested::map(array, entries, *sorted, target, column)
        }
        (
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(_, _)
            | DataType::ListView(_)
            | DataType::LargeListView(_),
            DataType::List(child),
        ) => nested::list(array, child, column),
        (DataType::Timestamp(_, _), DataType::Timestamp(unit, zone)) => {
            times::timestamps(array, *unit, zone.as_deref(), target, column)
        }
        _ => cast::cast(array, target, column),
    }
}
