//! The smallest and the largest value of a column, in the target's type.
//!
//! Numbers and times use the target's scale and unit. Long texts and blobs are truncated: their start is
//! enough for a user who looks at a difference.

mod texts;

use arrow_arith::aggregate::{self, max, min};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowNumericType, RunArray, UInt64Array};
use arrow_schema::DataType;
use arrow_select::take::take;
use coldframe_core::{Result, arrow_error};

use super::kernels;
use super::numbers::{in_unit, scale_of, unit_of};

/// The smallest or the largest value.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Extreme {
    /// A boolean.
    Bool(bool),
    /// An integer. Dates are in days, times in the target's unit.
    Whole(i128),
    /// The unscaled value of a decimal, and its scale.
    Decimal(i128, i8),
    /// A float, never a NaN.
    Float(f64),
    /// The first 64 characters of a text.
    Text(String),
    /// The first 64 bytes.
    Bytes(Vec<u8>),
}

/// Maximum characters or bytes of a value that are kept.
const KEPT: usize = 64;

/// The smallest and the largest value, if there is any.
pub type Ends = Option<(Extreme, Extreme)>;

/// Combines the extremes of two sets of values.
pub(crate) fn merged(a: Ends, b: Ends) -> Ends {
    let (Some((low, high)), Some((smallest, largest))) = (&a, &b) else { return a.or(b) };
    Some((
        if smallest < low { smallest.clone() } else { low.clone() },
        if largest > high { largest.clone() } else { high.clone() },
    ))
}

fn both<T>(ends: Option<(T, T)>, make: impl Fn(T) -> Option<Extreme>) -> Ends {
    let (smallest, largest) = ends?;
    Some((make(smallest)?, make(largest)?))
}

/// The extremes of numbers and times.
fn number_ends<T: ArrowNumericType>(array: &ArrayRef) -> Option<(T::Native, T::Native)> {
    let array = array.as_primitive::<T>();
    if array.null_count() == 0 { kernels::extremes(array.values()) } else { min(array).zip(max(array)) }
}

/// `None` for nested types, and if all values are null or do not fit the target.
pub(crate) fn extremes(array: &ArrayRef, target: &DataType) -> Result<Ends> {
    let text = |t: &str| Some(Extreme::Text(t.chars().take(KEPT).collect()));
    let blob = |b: &[u8]| Some(Extreme::Bytes(b.iter().take(KEPT).copied().collect()));
    Ok(match array.data_type() {
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            return extremes(
                &take(dictionary.values(), dictionary.keys(), None).map_err(arrow_error)?,
                target,
            );
        }
        DataType::RunEndEncoded(ends, _) => {
            let plain = unrolled_by(ends.data_type(), array)?;
            return plain.map_or(Ok(None), |plain| extremes(&plain, target));
        }
        DataType::Boolean => {
            let bits = array.as_boolean();
            both(aggregate::min_boolean(bits).zip(aggregate::max_boolean(bits)), |b| Some(Extreme::Bool(b)))
        }
        DataType::Utf8 => both(texts::ends(array.as_string::<i32>()), text),
        DataType::LargeUtf8 => both(texts::ends(array.as_string::<i64>()), text),
        DataType::Utf8View => {
            let texts = array.as_string_view();
            both(aggregate::min_string_view(texts).zip(aggregate::max_string_view(texts)), text)
        }
        DataType::Binary => both(texts::ends(array.as_binary::<i32>()), blob),
        DataType::LargeBinary => both(texts::ends(array.as_binary::<i64>()), blob),
        DataType::BinaryView => {
            let blobs = array.as_binary_view();
            both(aggregate::min_binary_view(blobs).zip(aggregate::max_binary_view(blobs)), blob)
        }
        DataType::FixedSizeBinary(_) => {
            let blobs = array.as_fixed_size_binary();
            both(aggregate::min_fixed_size_binary(blobs).zip(aggregate::max_fixed_size_binary(blobs)), blob)
        }
        DataType::Float16 => floats::<Float16Type>(array, |v| v.to_f64()),
        DataType::Float32 => floats::<Float32Type>(array, f64::from),
        DataType::Float64 => floats::<Float64Type>(array, |v| v),
        _ => whole(array, target),
    })
}

/// The number of NaNs in a column of floats.
pub(crate) fn nans(array: &ArrayRef) -> Result<u64> {
    fn of<T: ArrowNumericType>(array: &ArrayRef, is_nan: impl Fn(&T::Native) -> bool) -> u64 {
        let array = array.as_primitive::<T>();
        let count = match array.null_count() {
            0 => array.values().iter().filter(|value| is_nan(value)).count(),
            // The values under nulls are arbitrary.
            _ => array.iter().flatten().filter(is_nan).count(),
        };
        count as u64
    }
    Ok(match array.data_type() {
        DataType::Float16 => of::<Float16Type>(array, |value| value.is_nan()),
        DataType::Float32 => of::<Float32Type>(array, |value| value.is_nan()),
        DataType::Float64 => of::<Float64Type>(array, |value| value.is_nan()),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            nans(&take(dictionary.values(), dictionary.keys(), None).map_err(arrow_error)?)?
        }
        DataType::RunEndEncoded(ends, _) => {
            unrolled_by(ends.data_type(), array)?.map_or(Ok(0), |plain| nans(&plain))?
        }
        _ => 0,
    })
}

/// Expands a run-end encoded array whose runs end at numbers of this type.
fn unrolled_by(ends: &DataType, array: &ArrayRef) -> Result<Option<ArrayRef>> {
    match ends {
        DataType::Int16 => unrolled::<Int16Type>(array),
        DataType::Int32 => unrolled::<Int32Type>(array),
        _ => unrolled::<Int64Type>(array),
    }
}

/// Expands a run-end encoded array.
fn unrolled<T: RunEndIndexType>(array: &ArrayRef) -> Result<Option<ArrayRef>> {
    let Some(runs) = array.as_any().downcast_ref::<RunArray<T>>() else { return Ok(None) };
    let places: UInt64Array = (0..array.len()).map(|row| Some(runs.get_physical_index(row) as u64)).collect();
    take(runs.values(), &places, None).map(Some).map_err(arrow_error)
}

/// -0.0 and 0.0 are equal; which of them is returned is arbitrary.
fn floats<T: ArrowNumericType>(array: &ArrayRef, double: impl Fn(T::Native) -> f64) -> Ends {
    let array = array.as_primitive::<T>();
    let ends = match array.null_count() {
        0 => kernels::extremes(array.values()),
        _ => kernels::extremes(&array.iter().flatten().collect::<Vec<_>>()),
    };
    both(ends, |v| Some(Extreme::Float(double(v) + 0.0)))
}

/// Integers, dates, times and decimals.
fn whole(array: &ArrayRef, target: &DataType) -> Ends {
    fn of<T: ArrowNumericType>(array: &ArrayRef, make: impl Fn(T::Native) -> Option<Extreme>) -> Ends {
        both(number_ends::<T>(array), make)
    }
    let number = |v: i128| number(v, array.data_type(), target);
    match array.data_type() {
        DataType::Int8 => of::<Int8Type>(array, |v| number(v.into())),
        DataType::Int16 => of::<Int16Type>(array, |v| number(v.into())),
        DataType::Int32 => of::<Int32Type>(array, |v| number(v.into())),
        DataType::Int64 => of::<Int64Type>(array, |v| number(v.into())),
        DataType::UInt8 => of::<UInt8Type>(array, |v| number(v.into())),
        DataType::UInt16 => of::<UInt16Type>(array, |v| number(v.into())),
        DataType::UInt32 => of::<UInt32Type>(array, |v| number(v.into())),
        DataType::UInt64 => of::<UInt64Type>(array, |v| number(v.into())),
        DataType::Decimal32(_, _) => of::<Decimal32Type>(array, |v| number(v.into())),
        DataType::Decimal64(_, _) => of::<Decimal64Type>(array, |v| number(v.into())),
        DataType::Decimal128(_, _) => of::<Decimal128Type>(array, number),
        DataType::Decimal256(_, _) => of::<Decimal256Type>(array, |v| v.to_i128().and_then(number)),
        DataType::Date32 => of::<Date32Type>(array, |v| number(v.into())),
        DataType::Date64 => of::<Date64Type>(array, |v| number(v.div_euclid(86_400_000).into())),
        actual => {
            let units = unit_of(actual).zip(unit_of(target));
            let number = |v: i64| {
                let ((own, _), (goal, _)) = units?;
                in_unit(v, own, goal).map(|v| Extreme::Whole(v.into()))
            };
            times(array, number)
        }
    }
}

fn times(array: &ArrayRef, number: impl Fn(i64) -> Option<Extreme>) -> Ends {
    use arrow_schema::TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    fn of<T: ArrowNumericType>(array: &ArrayRef, make: impl Fn(T::Native) -> Option<Extreme>) -> Ends {
        both(number_ends::<T>(array), make)
    }
    match array.data_type() {
        DataType::Timestamp(Second, _) => of::<TimestampSecondType>(array, number),
        DataType::Timestamp(Millisecond, _) => of::<TimestampMillisecondType>(array, number),
        DataType::Timestamp(Microsecond, _) => of::<TimestampMicrosecondType>(array, number),
        DataType::Timestamp(Nanosecond, _) => of::<TimestampNanosecondType>(array, number),
        DataType::Time32(Second) => of::<Time32SecondType>(array, |v| number(v.into())),
        DataType::Time32(_) => of::<Time32MillisecondType>(array, |v| number(v.into())),
        DataType::Time64(Microsecond) => of::<Time64MicrosecondType>(array, number),
        DataType::Time64(_) => of::<Time64NanosecondType>(array, number),
        DataType::Duration(Second) => of::<DurationSecondType>(array, number),
        DataType::Duration(Millisecond) => of::<DurationMillisecondType>(array, number),
        DataType::Duration(Microsecond) => of::<DurationMicrosecondType>(array, number),
        DataType::Duration(Nanosecond) => of::<DurationNanosecondType>(array, number),
        _ => None,
    }
}

/// A number in the target's type: a decimal of its scale, a float, or an integer.
#[expect(clippy::cast_precision_loss, reason = "the values' hashes detect the loss")]
fn number(value: i128, own: &DataType, target: &DataType) -> Option<Extreme> {
    if target.is_floating() {
        return Some(Extreme::Float(value as f64));
    }
    let Some(scale) = scale_of(target) else { return Some(Extreme::Whole(value)) };
    let by = i32::from(scale) - i32::from(scale_of(own).unwrap_or(0));
    let power = 10i128.checked_pow(by.unsigned_abs())?;
    let scaled = if by >= 0 { value.checked_mul(power) } else { value.checked_div(power) };
    scaled.map(|value| Extreme::Decimal(value, scale))
}

impl std::fmt::Display for Extreme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Whole(value) => value.fmt(f),
            Self::Decimal(value, scale) => decimal(*value, *scale).fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
            Self::Bytes(value) => value.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

/// The digits with a decimal point at the scale's position.
fn decimal(value: i128, scale: i8) -> String {
    let Ok(places @ 1..) = usize::try_from(scale) else {
        return format!("{value}{}", "0".repeat(scale.unsigned_abs().into()));
    };
    let (sign, digits) = (if value < 0 { "-" } else { "" }, value.unsigned_abs().to_string());
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (before, after) = digits.split_at(digits.len() - places);
    format!("{sign}{before}.{after}")
}
