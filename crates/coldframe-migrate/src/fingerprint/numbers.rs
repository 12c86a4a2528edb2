//! The hashes of booleans, numbers and times, each value in the target's scale and unit.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_buffer::i256;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use coldframe_core::Result;

use coldframe_encoding::hash::splitmix64;

use super::absent::{LOST, mismatch};
use super::kernels;

fn map<T: ArrowPrimitiveType>(array: &dyn Array, out: &mut Vec<u64>, hash: impl Fn(T::Native) -> u64) {
    kernels::map(array.as_primitive::<T>().values(), out, hash);
}

/// The hash of a 64-bit integer, which equals the hash by [`whole`] for the same value.
#[inline]
fn word(value: i64) -> u64 {
    splitmix64(value.cast_unsigned())
}

/// Calls a function over the values of an array of integers, each as an `i128`.
macro_rules! integers {
    ($array:expr, $out:expr, $hash:expr, $otherwise:expr) => {
        match $array.data_type() {
            DataType::Int8 => map::<Int8Type>($array, $out, |v| $hash(v.into())),
            DataType::Int16 => map::<Int16Type>($array, $out, |v| $hash(v.into())),
            DataType::Int32 => map::<Int32Type>($array, $out, |v| $hash(v.into())),
            DataType::Int64 => map::<Int64Type>($array, $out, |v| $hash(v.into())),
            DataType::UInt8 => map::<UInt8Type>($array, $out, |v| $hash(v.into())),
            DataType::UInt16 => map::<UInt16Type>($array, $out, |v| $hash(v.into())),
            DataType::UInt32 => map::<UInt32Type>($array, $out, |v| $hash(v.into())),
            DataType::UInt64 => map::<UInt64Type>($array, $out, |v| $hash(v.into())),
            _ => $otherwise,
        }
    };
}

/// Hashes an array; the caller overwrites the hashes of nulls.
pub(super) fn hashes(array: &dyn Array, target: &DataType, out: &mut Vec<u64>) -> Result<()> {
    let actual = array.data_type();
    match target {
        DataType::Boolean if actual == target => {
            out.extend(array.as_boolean().values().iter().map(|bit| splitmix64(u64::from(bit))));
        }
        t if t.is_integer() => match actual {
            // Converting to 128 bits would take a quarter longer.
            DataType::Int8 => map::<Int8Type>(array, out, |v| word(v.into())),
            DataType::Int16 => map::<Int16Type>(array, out, |v| word(v.into())),
            DataType::Int32 => map::<Int32Type>(array, out, |v| word(v.into())),
            DataType::Int64 => map::<Int64Type>(array, out, word),
            _ => integers!(array, out, whole, return Err(mismatch(actual, target))),
        },
        t if t.is_floating() => floats(array, target, out)?,
        t if t.is_decimal() => decimals(array, target, out)?,
        DataType::Date32 | DataType::Date64 => dates(array, target, out)?,
        DataType::Timestamp(unit, zone) => match actual {
            // The hash of an instant never equals the hash of a local time. The name of a zone does not
            // change an instant.
            DataType::Timestamp(_, own) if own.is_none() != zone.is_none() => {
                return Err(mismatch(actual, target));
            }
            _ => times(array, *unit, target, out)?,
        },
        DataType::Time32(unit) | DataType::Time64(unit) | DataType::Duration(unit) => {
            times(array, *unit, target, out)?
        }
        DataType::Interval(unit) if actual == target => intervals(array, *unit, out),
        _ => return Err(mismatch(actual, target)),
    }
    Ok(())
}

/// The hash of an integer, or of a decimal's unscaled value. Values that fit in 64 bits hash like 64-bit
/// integers; in larger values the high bits are hashed, too.
#[inline]
fn whole(value: i128) -> u64 {
    let [low, high] = halves(value);
    let hash = splitmix64(low);
    let sign = if low >> 63 == 1 { u64::MAX } else { 0 };
    if high == sign { hash } else { splitmix64(hash ^ high.wrapping_mul(3)) }
}

/// Hashes integers. Most decimals fit in 64 bits; if all values of an array fit, they need not be checked one
/// by one.
#[expect(clippy::cast_possible_truncation, reason = "only values of 64 bits")]
fn wholes(values: &[i128], out: &mut Vec<u64>) {
    let beyond = values.iter().fold(0, |beyond, value| beyond | (i128::from(*value as i64) ^ value));
    if beyond == 0 {
        kernels::map(values, out, |value| word(value as i64));
    } else {
        kernels::map(values, out, whole);
    }
}

/// The low and the high 64 bits.
fn halves(value: i128) -> [u64; 2] {
    let bytes = value.to_le_bytes();
    let (low, high) = bytes.split_at(8);
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    [word(low), word(high)]
}

/// Hashes the bits of the double; all NaNs have the same hash.
#[inline]
fn float(value: f64) -> u64 {
    splitmix64(if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() })
}

fn floats(array: &dyn Array, target: &DataType, out: &mut Vec<u64>) -> Result<()> {
    match array.data_type() {
        DataType::Float16 => map::<Float16Type>(array, out, |v| float(v.to_f64())),
        DataType::Float32 => map::<Float32Type>(array, out, |v| float(v.into())),
        DataType::Float64 => map::<Float64Type>(array, out, float),
        actual => integers!(array, out, exactly, return Err(mismatch(actual, target))),
    }
    Ok(())
}

/// An integer as a double, if that is exact.
#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, and the result is compared")]
#[expect(clippy::cast_precision_loss, reason = "the conversion back detects the loss")]
fn exactly(value: i128) -> u64 {
    let near = value as f64;
    if near as i128 == value { float(near) } else { LOST }
}

/// An exact conversion from one scale to another.
#[derive(Clone, Copy)]
enum Scale {
    Same,
    Up(i128),
    Down(i128),
}

impl Scale {
    fn between(own: i8, target: i8) -> Self {
        let by = i32::from(target) - i32::from(own);
        // If the power is too large for the type, zero is the only value that can be converted.
        let power = 10i128.checked_pow(by.unsigned_abs()).unwrap_or(i128::MAX);
        match by {
            0 => Self::Same,
            1.. => Self::Up(power),
            _ => Self::Down(power),
        }
    }

    #[inline]
    fn hash(self, value: i128) -> u64 {
        let scaled = match self {
            Self::Same => Some(value),
            Self::Up(power) => value.checked_mul(power),
            Self::Down(power) => (value % power == 0).then(|| value / power),
        };
        scaled.map_or(LOST, whole)
    }
}

fn decimals(array: &dyn Array, target: &DataType, out: &mut Vec<u64>) -> Result<()> {
    let goal = scale_of(target).unwrap_or(0);
    let scale = Scale::between(scale_of(array.data_type()).unwrap_or(0), goal);
    match (array.data_type(), scale) {
        (DataType::Decimal32(_, _), _) => map::<Decimal32Type>(array, out, |v| scale.hash(v.into())),
        (DataType::Decimal64(_, _), _) => map::<Decimal64Type>(array, out, |v| scale.hash(v.into())),
        (DataType::Decimal128(_, _), Scale::Same) => {
            wholes(array.as_primitive::<Decimal128Type>().values(), out)
        }
        (DataType::Decimal128(_, _), _) => map::<Decimal128Type>(array, out, |v| scale.hash(v)),
        (DataType::Decimal256(_, _), Scale::Same) => map::<Decimal256Type>(array, out, wide),
        (DataType::Decimal256(_, _), _) => {
            map::<Decimal256Type>(array, out, |v| v.to_i128().map_or(LOST, |v| scale.hash(v)))
        }
        (actual, _) => {
            integers!(array, out, |v: i128| scale.hash(v), return Err(mismatch(actual, target)))
        }
    }
    Ok(())
}

/// A decimal's scale.
pub(super) fn scale_of(of: &DataType) -> Option<i8> {
    match of {
        DataType::Decimal32(_, s)
        | DataType::Decimal64(_, s)
        | DataType::Decimal128(_, s)
        | DataType::Decimal256(_, s) => Some(*s),
        _ => None,
    }
}

/// The hash of a 256-bit integer. A value that fits in 128 bits hashes like a 128-bit integer.
fn wide(value: i256) -> u64 {
    value.to_i128().map_or_else(
        || {
            let (low, high) = value.to_parts();
            let [a, b] = halves(low.cast_signed());
            let [c, d] = halves(high);
            [b, c, d].iter().fold(splitmix64(a), |hash, word| splitmix64(hash ^ word))
        },
        whole,
    )
}

const DAY_MS: i64 = 86_400_000;

fn dates(array: &dyn Array, target: &DataType, out: &mut Vec<u64>) -> Result<()> {
    match array.data_type() {
        DataType::Date32 => map::<Date32Type>(array, out, |days| word(days.into())),
        DataType::Date64 => map::<Date64Type>(array, out, |ms| word(ms.div_euclid(DAY_MS))),
        actual => return Err(mismatch(actual, target)),
    }
    Ok(())
}

/// Units per second.
pub(super) fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// The unit of a time type, and whether it is a timestamp, a time of day or a duration.
pub(super) fn unit_of(of: &DataType) -> Option<(TimeUnit, u8)> {
    match of {
        DataType::Timestamp(unit, _) => Some((*unit, 0)),
        DataType::Time32(unit) | DataType::Time64(unit) => Some((*unit, 1)),
        DataType::Duration(unit) => Some((*unit, 2)),
        _ => None,
    }
}

/// Converts a time to another unit: to a coarser unit by rounding down, even before 1970; to a finer unit
/// exactly.
pub(super) fn in_unit(value: i64, own: TimeUnit, target: TimeUnit) -> Option<i64> {
    let (have, want) = (per_second(own), per_second(target));
    if have > want { Some(value.div_euclid(have / want)) } else { value.checked_mul(want / have) }
}

fn times(array: &dyn Array, target_unit: TimeUnit, target: &DataType, out: &mut Vec<u64>) -> Result<()> {
    let actual = array.data_type();
    let own = unit_of(actual).filter(|(_, kind)| unit_of(target).is_some_and(|(_, other)| *kind == other));
    let Some((own, _)) = own else { return Err(mismatch(actual, target)) };
    let hash = |v: i64| in_unit(v, own, target_unit).map_or(LOST, word);
    match actual {
        DataType::Timestamp(TimeUnit::Second, _) => map::<TimestampSecondType>(array, out, hash),
        DataType::Timestamp(TimeUnit::Millisecond, _) => map::<TimestampMillisecondType>(array, out, hash),
        DataType::Timestamp(TimeUnit::Microsecond, _) => map::<TimestampMicrosecondType>(array, out, hash),
        // This is the most common pair of units; a constant divisor makes the division fast.
        DataType::Timestamp(TimeUnit::Nanosecond, _) if target_unit == TimeUnit::Microsecond => {
            map::<TimestampNanosecondType>(array, out, |v| word(v.div_euclid(1_000)));
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => map::<TimestampNanosecondType>(array, out, hash),
        DataType::Time32(TimeUnit::Second) => map::<Time32SecondType>(array, out, |v| hash(v.into())),
        DataType::Time32(_) => map::<Time32MillisecondType>(array, out, |v| hash(v.into())),
        DataType::Time64(TimeUnit::Microsecond) => map::<Time64MicrosecondType>(array, out, hash),
        DataType::Time64(_) => map::<Time64NanosecondType>(array, out, hash),
        DataType::Duration(TimeUnit::Second) => map::<DurationSecondType>(array, out, hash),
        DataType::Duration(TimeUnit::Millisecond) => map::<DurationMillisecondType>(array, out, hash),
        DataType::Duration(TimeUnit::Microsecond) => map::<DurationMicrosecondType>(array, out, hash),
        _ => map::<DurationNanosecondType>(array, out, hash),
    }
    Ok(())
}

fn intervals(array: &dyn Array, unit: IntervalUnit, out: &mut Vec<u64>) {
    let pair = |a: i64, b: i64| splitmix64(whole(a.into()) ^ whole(b.into()).rotate_left(1));
    match unit {
        IntervalUnit::YearMonth => map::<IntervalYearMonthType>(array, out, |v| whole(v.into())),
        IntervalUnit::DayTime => {
            map::<IntervalDayTimeType>(array, out, |v| pair(v.days.into(), v.milliseconds.into()))
        }
        IntervalUnit::MonthDayNano => map::<IntervalMonthDayNanoType>(array, out, |v| {
            splitmix64(pair(v.months.into(), v.days.into()) ^ whole(v.nanoseconds.into()))
        }),
    }
}
