//! The Hive type of an Arrow field.

use arrow_schema::{DataType, Field, FieldRef};
use coldframe_encoding::Limits;

use super::super::ddl::{self, Kind, Type};
use super::super::hive_char::HIVE_TYPE;
use crate::{Error, Result};

/// The Hive type of a field. An error if Hive has no such type.
pub(super) fn kind_of(field: &Field) -> Result<Kind> {
    if let Some(text) = field.metadata().get(HIVE_TYPE) {
        return Ok(ddl::parse_type(text, &Limits::default())?.kind);
    }
    of_arrow(field.data_type())
}

fn of_arrow(data_type: &DataType) -> Result<Kind> {
    let boxed = |field: &FieldRef| Ok::<_, Error>(Box::new(typed(field)?));
    Ok(match data_type {
        DataType::Boolean => Kind::Boolean,
        DataType::Int8 => Kind::TinyInt,
        DataType::Int16 => Kind::SmallInt,
        DataType::Int32 => Kind::Int,
        DataType::Int64 => Kind::BigInt,
        DataType::Float32 => Kind::Float,
        DataType::Float64 => Kind::Double,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => {
            Kind::Decimal { precision: (*precision).into(), scale: u32::try_from(*scale).unwrap_or(0) }
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::String,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Kind::Binary,
        DataType::Date32 => Kind::Date,
        DataType::Timestamp(_, None) => Kind::Timestamp,
        DataType::Timestamp(_, Some(_)) => Kind::TimestampLocalTz,
        DataType::Dictionary(_, values) => of_arrow(values)?,
        DataType::List(item) | DataType::LargeList(item) => Kind::Array(boxed(item)?),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                let mut pair = pair.iter().map(boxed);
                match (pair.next(), pair.next()) {
                    (Some(key), Some(value)) => Kind::Map(key?, value?),
                    _ => return Err(unknown(data_type)),
                }
            }
            _ => return Err(unknown(data_type)),
        },
        DataType::Struct(fields) => {
            let named = fields.iter().map(|field| Ok((field.name().clone(), typed(field)?)));
            Kind::Struct(named.collect::<Result<_>>()?)
        }
        DataType::Union(branches, _) => {
            Kind::Union(branches.iter().map(|(_, field)| typed(field)).collect::<Result<_>>()?)
        }
        _ => return Err(unknown(data_type)),
    })
}

fn typed(field: &FieldRef) -> Result<Type> {
    Ok(Type { kind: kind_of(field)?, at: 0 })
}

fn unknown(data_type: &DataType) -> Error {
    Error::schema(format!("Hive has no type for {data_type}"))
}

/// Whether all values of a file's type are the same in the table's type: the types are the same, or texts get more room.
pub(super) fn keeps_values(left: &Kind, right: &Kind) -> bool {
    let same = |left: &Type, right: &Type| keeps_values(&left.kind, &right.kind);
    match (left, right) {
        (Kind::Array(left), Kind::Array(right)) => same(left, right),
        (Kind::Map(key, value), Kind::Map(other_key, other_value)) => {
            same(key, other_key) && same(value, other_value)
        }
        (Kind::Struct(left), Kind::Struct(right)) => {
            let field = |(left, right): (&(String, Type), &(String, Type))| {
                left.0.eq_ignore_ascii_case(&right.0) && same(&left.1, &right.1)
            };
            left.len() == right.len() && left.iter().zip(right).all(field)
        }
        (Kind::Union(left), Kind::Union(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Kind::Varchar(_), Kind::String) => true,
        (Kind::Varchar(length), Kind::Varchar(longer)) => length <= longer,
        _ => left == right,
    }
}
