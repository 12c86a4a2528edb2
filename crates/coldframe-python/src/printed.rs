//! Types and values as the command line prints them, without pyarrow, which takes longer to import than a small
//! file takes to read.
//!
//! Both give `None` for what they do not know; pyarrow prints that.

use std::collections::BTreeSet;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use chrono::{DateTime, Datelike};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use pyo3::{BoundObject, IntoPyObjectExt};

/// The name, the type in pyarrow's notation, and whether it may be null, of each column.
pub(crate) fn columns(fields: &Fields) -> Option<Vec<(String, String, bool)>> {
    let column = |field: &Field| Some((field.name().clone(), type_of(field)?, field.is_nullable()));
    fields.iter().map(|field| column(field)).collect()
}

/// A field's type in pyarrow's notation.
fn type_of(field: &Field) -> Option<String> {
    if field.extension_type_name().is_some() {
        return None;
    }
    let plain = match field.data_type() {
        DataType::Boolean => "bool",
        DataType::Int8 => "int8",
        DataType::Int16 => "int16",
        DataType::Int32 => "int32",
        DataType::Int64 => "int64",
        DataType::UInt8 => "uint8",
        DataType::UInt16 => "uint16",
        DataType::UInt32 => "uint32",
        DataType::UInt64 => "uint64",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Utf8 => "string",
        DataType::Binary => "binary",
        DataType::Date32 => "date32[day]",
        DataType::Timestamp(unit, zone) => {
            let unit = match unit {
                TimeUnit::Second => "s",
                TimeUnit::Millisecond => "ms",
                TimeUnit::Microsecond => "us",
                TimeUnit::Nanosecond => "ns",
            };
            let zone = zone.as_ref().map(|zone| format!(", tz={zone}")).unwrap_or_default();
            return Some(format!("timestamp[{unit}{zone}]"));
        }
        DataType::Decimal128(precision, scale) => return Some(format!("decimal128({precision}, {scale})")),
        DataType::List(item) => return Some(format!("list<{}>", named(item)?)),
        DataType::Struct(fields) => {
            let fields: Option<Vec<_>> = fields.iter().map(|field| named(field)).collect();
            return Some(format!("struct<{}>", fields?.join(", ")));
        }
        DataType::Map(entries, sorted) => return map(entries, *sorted),
        _ => return None,
    };
    Some(plain.to_owned())
}

/// A field inside a type: its name, its type, and whether it is never null.
fn named(field: &Field) -> Option<String> {
    let required = if field.is_nullable() { "" } else { " not null" };
    Some(format!("{}: {}{required}", field.name(), type_of(field)?))
}

/// A map; names that differ from Arrow's own are shown.
fn map(entries: &Field, sorted: bool) -> Option<String> {
    let DataType::Struct(fields) = entries.data_type() else { return None };
    let [key, value] = fields.as_ref() else { return None };
    let name = |field: &Field, usual: &str| {
        if field.name() == usual { String::new() } else { format!(" ('{}')", field.name()) }
    };
    let (key, value) = (type_of(key)? + &name(key, "key"), type_of(value)? + &name(value, "value"));
    let sorted = if sorted { ", keys_sorted" } else { "" };
    Some(format!("map<{key}, {value}{sorted}{}>", name(entries, "entries")))
}

/// The values of an array as Python's own, where moments and decimals are text as the command line prints it.
pub(crate) fn values<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    Ok(match array.data_type() {
        DataType::Boolean => {
            let array = array.as_boolean();
            each(py, array, |row| array.value(row).into_bound_py_any(py).map(Some))?
        }
        DataType::Int8 => primitives::<Int8Type>(py, array)?,
        DataType::Int16 => primitives::<Int16Type>(py, array)?,
        DataType::Int32 => primitives::<Int32Type>(py, array)?,
        DataType::Int64 => primitives::<Int64Type>(py, array)?,
        DataType::UInt8 => primitives::<UInt8Type>(py, array)?,
        DataType::UInt16 => primitives::<UInt16Type>(py, array)?,
        DataType::UInt32 => primitives::<UInt32Type>(py, array)?,
        DataType::UInt64 => primitives::<UInt64Type>(py, array)?,
        DataType::Float32 => primitives::<Float32Type>(py, array)?,
        DataType::Float64 => primitives::<Float64Type>(py, array)?,
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            each(py, array, |row| array.value(row).into_bound_py_any(py).map(Some))?
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            each(py, array, |row| Ok(Some(PyBytes::new(py, array.value(row)).into_any())))?
        }
        DataType::Date32 => texts::<Date32Type>(py, array, |days| {
            let seconds = i64::from(days).checked_mul(86_400)?;
            moment(seconds, 0).map(|moment| moment.format("%Y-%m-%d").to_string())
        })?,
        DataType::Timestamp(unit, zone) if zone.as_deref().is_none_or(|zone| zone == "UTC") => {
            timestamps(py, array, *unit, zone.is_some())?
        }
        DataType::Decimal128(_, scale) => texts::<Decimal128Type>(py, array, |value| decimal(value, *scale))?,
        DataType::List(_) => {
            let array = array.as_list::<i32>();
            each(py, array, |row| {
                let items = values(py, &array.value(row))?;
                items.map(|items| Ok(PyList::new(py, items)?.into_any())).transpose()
            })?
        }
        DataType::Map(..) => {
            let array = array.as_map();
            each(py, array, |row| {
                let entries = array.value(row);
                let (keys, items) = (values(py, entries.column(0))?, values(py, entries.column(1))?);
                let pairs =
                    keys.zip(items).map(|(keys, items)| keys.into_iter().zip(items).collect::<Vec<_>>());
                pairs.map(|pairs| Ok(PyList::new(py, pairs)?.into_any())).transpose()
            })?
        }
        DataType::Struct(fields) => structs(py, array, fields)?,
        _ => None,
    })
}

/// The value of each row that is not null; `None` if one of them is not known.
fn each<'py>(
    py: Python<'py>,
    array: &dyn Array,
    value: impl Fn(usize) -> PyResult<Option<Bound<'py, PyAny>>>,
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let value = |row| match array.is_null(row) {
        true => Ok(Some(py.None().into_bound(py))),
        false => value(row),
    };
    (0..array.len()).map(value).collect()
}

fn primitives<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &ArrayRef,
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>>
where
    T::Native: IntoPyObject<'py>,
{
    let array = array.as_primitive::<T>();
    each(py, array, |row| {
        let value = array.value(row).into_pyobject(py).map_err(Into::into)?;
        Ok(Some(value.into_any().into_bound()))
    })
}

fn texts<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &ArrayRef,
    text: impl Fn(T::Native) -> Option<String>,
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let array = array.as_primitive::<T>();
    each(py, array, |row| text(array.value(row)).map(|text| text.into_bound_py_any(py)).transpose())
}

fn structs<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    fields: &Fields,
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let array = array.as_struct();
    let names: BTreeSet<_> = fields.iter().map(|field| field.name()).collect();
    let columns: PyResult<Option<Vec<_>>> = array.columns().iter().map(|column| values(py, column)).collect();
    let Some(columns) = columns?.filter(|_| names.len() == fields.len()) else { return Ok(None) };
    each(py, array, |row| {
        let dict = PyDict::new(py);
        for (field, column) in fields.iter().zip(&columns) {
            dict.set_item(field.name(), column.get(row))?;
        }
        Ok(Some(dict.into_any()))
    })
}

fn timestamps<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    unit: TimeUnit,
    has_zone: bool,
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    match unit {
        // As Arrow casts them to text.
        TimeUnit::Nanosecond => texts::<TimestampNanosecondType>(py, array, |value| {
            let text = moment(value.div_euclid(1_000_000_000), value.rem_euclid(1_000_000_000))?;
            let zone = if has_zone { "Z" } else { "" };
            Some(format!("{}{zone}", text.format("%Y-%m-%d %H:%M:%S%.9f")))
        }),
        // As Python prints them.
        TimeUnit::Microsecond => texts::<TimestampMicrosecondType>(py, array, |value| {
            let micros = value.rem_euclid(1_000_000);
            let text = moment(value.div_euclid(1_000_000), micros * 1000)?;
            let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
            let zone = if has_zone { "+00:00" } else { "" };
            Some(format!("{}{fraction}{zone}", text.format("%Y-%m-%dT%H:%M:%S")))
        }),
        _ => Ok(None),
    }
}

/// A moment in a year that Python's types know.
fn moment(seconds: i64, nanos: i64) -> Option<DateTime<chrono::Utc>> {
    let moment = DateTime::from_timestamp(seconds, u32::try_from(nanos).ok()?)?;
    (1..=9999).contains(&moment.year()).then_some(moment)
}

/// A decimal as Python prints it: with an exponent if six or more zeros follow the point.
fn decimal(value: i128, scale: i8) -> Option<String> {
    let scale = usize::try_from(scale).ok()?;
    let digits = value.unsigned_abs().to_string();
    let sign = if value < 0 { "-" } else { "" };
    if scale == 0 {
        return Some(format!("{sign}{digits}"));
    }
    if scale >= digits.len() + 6 {
        let exponent = scale + 1 - digits.len();
        let (first, rest) = digits.split_at_checked(1)?;
        let point = if rest.is_empty() { "" } else { "." };
        return Some(format!("{sign}{first}{point}{rest}E-{exponent}"));
    }
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at_checked(digits.len() - scale)?;
    Some(format!("{sign}{whole}.{fraction}"))
}
