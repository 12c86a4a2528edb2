//! Gives the literals of a filter the types of the columns they are compared with.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, Schema, SortOptions};
use coldframe_encoding::{Error, Result};

use super::Predicate;
use crate::arrow_error;

impl Predicate {
    /// The filter with each literal in its column's type where that loses nothing. A literal that the column's type
    /// cannot hold (`int_column < 2.5`) keeps its own; then evaluation widens the column.
    pub fn bind(self, schema: &Schema) -> Result<Self> {
        Ok(match self {
            Self::Compare { column, op, value, negated } => {
                let to = type_of(schema, &column)?;
                let value = literal(&value, &to, &column)?;
                // Only floating point numbers have a value for which neither a comparison nor its opposite holds.
                if negated && !to.is_floating() && !value.data_type().is_floating() {
                    Self::Compare { column, op: op.opposite(), value, negated: false }
                } else {
                    Self::Compare { column, op, value, negated }
                }
            }
            Self::In { column, values, negated } => {
                let to = type_of(schema, &column)?;
                Self::In { values: literal(&values, &to, &column)?, column, negated }
            }
            Self::Null { column, negated } => {
                type_of(schema, &column)?;
                Self::Null { column, negated }
            }
            Self::And(all) => Self::And(all.into_iter().map(|p| p.bind(schema)).collect::<Result<_>>()?),
            Self::Or(any) => Self::Or(any.into_iter().map(|p| p.bind(schema)).collect::<Result<_>>()?),
        })
    }
}

/// The type of the column or struct child that `path` names.
fn type_of(schema: &Schema, path: &str) -> Result<DataType> {
    let projection = crate::Projection::resolve(&Arc::new(schema.clone()), Some(&[path.to_owned()]), &[])?;
    let mut data_type = projection.output.fields().first().map_or(DataType::Null, |f| f.data_type().clone());
    // The path leads to one leaf: follow the only children there are, unless the column itself was named.
    if schema.column_with_name(path).is_none() {
        let levels = path.matches('.').count();
        for _ in 0..levels {
            data_type = match &data_type {
                DataType::Struct(fields) => fields.first().map_or(DataType::Null, |f| f.data_type().clone()),
                _ => {
                    return Err(Error::unsupported(format!(
                        "a filter on `{path}`, which is inside a list or map"
                    )));
                }
            };
        }
    }
    if data_type.is_nested() {
        return Err(Error::unsupported(format!("a filter on `{path}` of the nested type {data_type}")));
    }
    Ok(data_type)
}

/// `value` in the type `to` if every one of its values survives the way there and back, else in the narrowest type
/// in which both can be compared.
fn literal(value: &ArrayRef, to: &DataType, column: &str) -> Result<ArrayRef> {
    if value.data_type() == to {
        return Ok(value.clone());
    }
    if value.null_count() == value.len() {
        return Ok(new_null_array(to, value.len()));
    }
    if let Some(same) =
        cast(value, to).filter(|c| cast(c, value.data_type()).is_some_and(|b| equal(&b, value)))
    {
        return Ok(same);
    }
    // A text that names a date or number need not come back letter by letter.
    if matches!(value.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        && let Some(parsed) = cast(value, to)
    {
        return Ok(parsed);
    }
    let wide = wider(value.data_type(), to).ok_or_else(|| {
        Error::schema(format!("column `{column}` of type {to} cannot be compared with {}", value.data_type()))
    })?;
    cast(value, &wide)
        .ok_or_else(|| Error::schema(format!("column `{column}`: {} does not fit {wide}", value.data_type())))
}

/// A type that holds the values of both.
pub(super) fn wider(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::{Date32, Date64, Decimal128, Decimal256, Float64, Timestamp};
    let number = |t: &DataType| t.is_numeric();
    match (a, b) {
        (x, y) if number(x) && number(y) && (x.is_floating() || y.is_floating()) => Some(Float64),
        (Decimal128(_, s) | Decimal256(_, s), Decimal128(_, t) | Decimal256(_, t)) => {
            Some(Decimal256(76, *s.max(t)))
        }
        (Decimal128(_, s) | Decimal256(_, s), x) | (x, Decimal128(_, s) | Decimal256(_, s))
            if x.is_integer() =>
        {
            Some(Decimal256(76, *s))
        }
        (x, y) if x.is_integer() && y.is_integer() => Some(DataType::Decimal128(38, 0)),
        (Date32 | Date64, Timestamp(u, z)) | (Timestamp(u, z), Date32 | Date64) => {
            Some(Timestamp(*u, z.clone()))
        }
        (Timestamp(u, z), Timestamp(v, _)) => Some(Timestamp(*u.max(v), z.clone())),
        _ => None,
    }
}

fn cast(value: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    if !can_cast_types(value.data_type(), to) {
        return None;
    }
    let options = CastOptions { safe: true, ..CastOptions::default() };
    cast_with_options(value, to, &options)
        .map_err(arrow_error)
        .ok()
        .filter(|c| c.null_count() == value.null_count())
}

fn equal(a: &ArrayRef, b: &ArrayRef) -> bool {
    make_comparator(a, b, SortOptions::default()).is_ok_and(|c| (0..a.len()).all(|i| c(i, i).is_eq()))
}
