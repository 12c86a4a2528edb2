//! Exact comparison of a column with a value of another type.
//!
//! A literal often has no equal in the column's type: `id > 5.5` on integers, a timestamp with nanoseconds on
//! a column of milliseconds, 2^40 on an int32. Casting the literal would change which rows match. Discrete
//! types (integers, decimals, dates, timestamps) are therefore compared in *ticks*: the literal as an exact
//! number of the column's unit, rounded down, with the operator changed so that the same rows match. If no
//! row or every row matches, the comparison becomes `< smallest` or `>= smallest`, with the type's smallest
//! value, so that its result is still null for null rows.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Date64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal32Array, Decimal64Array, Decimal128Array,
    Decimal256Array, FixedSizeBinaryArray, Float64Array, PrimitiveArray, StringArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
    new_null_array,
};
use arrow_buffer::i256;
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, SortOptions, TimeUnit};
use coldframe_encoding::{Error, Result};

use super::Op;
use super::instant::{self, DAY};
use super::literal::{Literal, nanoseconds};
use super::number::{Number, Ticks, float_ticks};

/// A comparison that matches exactly the same rows as the requested comparison.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) op: Op,
    /// An array of one value: in the column's type, or in a wider type that the column must be cast to.
    pub(super) value: ArrayRef,
}

/// `column op literal` for a column of `data_type`.
pub(super) fn compare(op: Op, literal: &Literal, data_type: &DataType, column: &str) -> Result<Comparison> {
    if let DataType::Dictionary(_, values) = data_type {
        let plain = compare(op, literal, values, column)?;
        let value = cast(&plain.value, data_type).unwrap_or(plain.value);
        return Ok(Comparison { op: plain.op, value });
    }
    let mismatch = || mismatch(literal, data_type, column);
    if matches!(literal, Literal::Null) {
        return Ok(Comparison { op, value: new_null_array(data_type, 1) });
    }
    if data_type.is_integer() || data_type.is_decimal() || is_instant(data_type) {
        return countable(op, ticks(literal, data_type, column)?, data_type).ok_or_else(mismatch);
    }
    let value: Option<ArrayRef> = match (data_type, literal) {
        (DataType::Boolean, Literal::Bool(v)) => Some(Arc::new(BooleanArray::from(vec![*v]))),
        (t, Literal::Number(v)) if t.is_floating() => Some(float(v.to_f64(), t)),
        (t, Literal::Float(v)) if t.is_floating() => Some(float(*v, t)),
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, Literal::Text(v)) => {
            let text: ArrayRef = Arc::new(StringArray::from(vec![v.as_str()]));
            cast(&text, data_type)
        }
        (t, Literal::Text(v)) if is_bytes(t) => Some(bytes(v.as_bytes(), t)),
        (t, Literal::Bytes(v)) if is_bytes(t) => Some(bytes(v, t)),
        (DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_), Literal::Array(v)) => {
            same(v, data_type)
        }
        (DataType::Time32(_) | DataType::Time64(_), Literal::Text(v)) => {
            let text: ArrayRef = Arc::new(StringArray::from(vec![v.as_str()]));
            cast(&text, data_type)
        }
        _ => None,
    };
    Ok(Comparison { op, value: value.ok_or_else(mismatch)? })
}

fn mismatch(literal: &Literal, data_type: &DataType, column: &str) -> Error {
    Error::schema(format!("column `{column}` of type {data_type} cannot be compared with {literal}"))
}

fn is_instant(t: &DataType) -> bool {
    matches!(t, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
}

fn is_bytes(t: &DataType) -> bool {
    matches!(
        t,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
    )
}

/// Converts a double to the column's type if this does not change its value. 0.1 is not a float32, so it
/// stays a double.
fn float(v: f64, data_type: &DataType) -> ArrayRef {
    let double: ArrayRef = Arc::new(Float64Array::from(vec![v]));
    let narrow = cast(&double, data_type)
        .filter(|n| v.is_nan() || matches!(Literal::from_array(n, 0), Literal::Float(back) if back == v));
    narrow.unwrap_or(double)
}

fn bytes(v: &[u8], data_type: &DataType) -> ArrayRef {
    let plain: ArrayRef = Arc::new(BinaryArray::from(vec![v]));
    match data_type {
        DataType::FixedSizeBinary(width) if usize::try_from(*width).ok() == Some(v.len()) => {
            match FixedSizeBinaryArray::try_from_iter(std::iter::once(v)) {
                Ok(fixed) => Arc::new(fixed),
                Err(_) => plain,
            }
        }
        DataType::FixedSizeBinary(_) => plain, // another length: compared as binary of variable length
        other => cast(&plain, other).unwrap_or(plain),
    }
}

/// A value cast to `to` if the cast is reversible.
fn same(value: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    let there = cast(value, to)?;
    let back = cast(&there, value.data_type())?;
    make_comparator(&back, value, SortOptions::default()).is_ok_and(|c| c(0, 0).is_eq()).then_some(there)
}

fn cast(value: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    if value.data_type() == to {
        return Some(value.clone());
    }
    let options = CastOptions { safe: true, ..CastOptions::default() };
    can_cast_types(value.data_type(), to)
        .then(|| cast_with_options(value, to, &options).ok())?
        .filter(|c| c.null_count() == value.null_count())
}

/// The comparison for a discrete type; `None` if no array of the type can hold the literal.
fn countable(op: Op, ticks: Ticks, data_type: &DataType) -> Option<Comparison> {
    let (low, high) = range(data_type)?;
    let never = |all_rows: bool| {
        let op = if all_rows { Op::Ge } else { Op::Lt };
        array_of(low, data_type).map(|value| Comparison { op, value })
    };
    let (floor, exact) = match ticks {
        Ticks::Unordered => return never(op == Op::Ne),
        Ticks::Above => return never(matches!(op, Op::Ne | Op::Lt | Op::Le)),
        Ticks::Below => return never(matches!(op, Op::Ne | Op::Gt | Op::Ge)),
        Ticks::At(floor, _) if floor > high => return never(matches!(op, Op::Ne | Op::Lt | Op::Le)),
        Ticks::At(floor, _) if floor < low => return never(matches!(op, Op::Ne | Op::Gt | Op::Ge)),
        Ticks::At(floor, exact) => (floor, exact),
    };
    let op = match op {
        op if exact => op,
        Op::Eq | Op::Ne => return never(op == Op::Ne),
        Op::Gt | Op::Ge => Op::Gt,
        Op::Lt | Op::Le => Op::Le,
    };
    array_of(floor, data_type).map(|value| Comparison { op, value })
}

/// The smallest and the largest tick of a type.
fn range(data_type: &DataType) -> Option<(i256, i256)> {
    let whole = |low: i128, high: i128| Some((i256::from_i128(low), i256::from_i128(high)));
    match data_type {
        DataType::Int8 => whole(i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => whole(i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 | DataType::Date32 => whole(i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 | DataType::Date64 | DataType::Timestamp(..) => {
            whole(i64::MIN.into(), i64::MAX.into())
        }
        DataType::UInt8 => whole(0, u8::MAX.into()),
        DataType::UInt16 => whole(0, u16::MAX.into()),
        DataType::UInt32 => whole(0, u32::MAX.into()),
        DataType::UInt64 => whole(0, u64::MAX.into()),
        DataType::Decimal32(p, _)
        | DataType::Decimal64(p, _)
        | DataType::Decimal128(p, _)
        | DataType::Decimal256(p, _) => {
            let most = i256::from_string(&"9".repeat(usize::from(*p)))?;
            Some((most.wrapping_neg(), most))
        }
        _ => None,
    }
}

/// The literal in units of the type.
fn ticks(literal: &Literal, data_type: &DataType, column: &str) -> Result<Ticks> {
    let mismatch = || mismatch(literal, data_type, column);
    let unit = match data_type {
        DataType::Timestamp(unit, _) => nanoseconds(*unit),
        DataType::Date32 => DAY,
        DataType::Date64 => nanoseconds(TimeUnit::Millisecond),
        _ => return number_ticks(literal, data_type).ok_or_else(mismatch),
    };
    let keeps_zone = matches!(data_type, DataType::Timestamp(_, Some(_)));
    let (nanos, zoned) = match literal {
        Literal::Date(days) => (i128::from(*days) * DAY, false),
        Literal::Instant { nanos, zoned } => (*nanos, *zoned),
        Literal::Text(text) => instant::instant(text).ok_or_else(|| {
            Error::schema(format!(
                "column `{column}` of type {data_type} cannot be compared with {literal}: not a date or timestamp"
            ))
        })?,
        _ => return Err(mismatch()),
    };
    if zoned && !keeps_zone {
        return Err(Error::schema(format!(
            "column `{column}` without a time zone cannot be compared with {literal}, which has one"
        )));
    }
    Ok(Ticks::At(i256::from_i128(nanos.div_euclid(unit)), nanos.rem_euclid(unit) == 0))
}

fn number_ticks(literal: &Literal, data_type: &DataType) -> Option<Ticks> {
    let scale = match data_type {
        DataType::Decimal32(_, s)
        | DataType::Decimal64(_, s)
        | DataType::Decimal128(_, s)
        | DataType::Decimal256(_, s) => *s,
        _ => 0,
    };
    match literal {
        Literal::Number(v) => Some(v.ticks(scale)),
        // For a decimal column, a double means the decimal number that is printed for it; an integer column
        // is compared with the double's exact value.
        Literal::Float(v) if data_type.is_decimal() && v.is_finite() => {
            Number::parse(&format!("{v:e}")).map(|n| n.ticks(scale))
        }
        Literal::Float(v) => Some(float_ticks(*v)),
        _ => None,
    }
}

/// An array of this type with one value, whose number of ticks is `ticks`.
fn array_of(ticks: i256, data_type: &DataType) -> Option<ArrayRef> {
    macro_rules! of {
        ($array:ident) => {
            Arc::new(PrimitiveArray::<$array>::from_value(ticks.to_i128()?.try_into().ok()?, 1))
        };
    }
    Some(match data_type {
        DataType::Int8 => of!(Int8Type),
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::UInt64 => of!(UInt64Type),
        DataType::Date32 => of!(Date32Type),
        DataType::Date64 => of!(Date64Type),
        DataType::Timestamp(unit, zone) => {
            let count: i64 = ticks.to_i128()?.try_into().ok()?;
            let zone = zone.clone();
            match unit {
                TimeUnit::Second => Arc::new(TimestampSecondArray::from(vec![count]).with_timezone_opt(zone)),
                TimeUnit::Millisecond => {
                    Arc::new(TimestampMillisecondArray::from(vec![count]).with_timezone_opt(zone))
                }
                TimeUnit::Microsecond => {
                    Arc::new(TimestampMicrosecondArray::from(vec![count]).with_timezone_opt(zone))
                }
                TimeUnit::Nanosecond => {
                    Arc::new(TimestampNanosecondArray::from(vec![count]).with_timezone_opt(zone))
                }
            }
        }
        DataType::Decimal32(..) => {
            let count: i32 = ticks.to_i128()?.try_into().ok()?;
            Arc::new(Decimal32Array::from(vec![count]).with_data_type(data_type.clone()))
        }
        DataType::Decimal64(..) => {
            let count: i64 = ticks.to_i128()?.try_into().ok()?;
            Arc::new(Decimal64Array::from(vec![count]).with_data_type(data_type.clone()))
        }
        DataType::Decimal128(..) => {
            Arc::new(Decimal128Array::from(vec![ticks.to_i128()?]).with_data_type(data_type.clone()))
        }
        DataType::Decimal256(..) => {
            Arc::new(Decimal256Array::from(vec![ticks]).with_data_type(data_type.clone()))
        }
        _ => return None,
    })
}
