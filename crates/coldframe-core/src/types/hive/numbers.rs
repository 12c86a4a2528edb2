//! Conversions to booleans, integers, floating-point numbers and decimals.

use coldframe_encoding::java_text;

use super::number::Number;
use super::primitive::{Time, Value};
use super::{HiveVersion, Rules};

/// 2^63, the first double beyond the integers of 64 bits.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

pub(super) fn boolean(value: Value<'_>, rules: Rules) -> Option<bool> {
    match value {
        Value::Boolean(value) => Some(value),
        Value::Decimal(number) => Some(number.magnitude != 0),
        other => Some(integer(other, rules)? != 0),
    }
}

/// The integer before it is narrowed to the column's type.
pub(super) fn integer(value: Value<'_>, _: Rules) -> Option<i64> {
    match value {
        Value::Boolean(value) => Some(value.into()),
        Value::Integer(value) => Some(value),
        Value::Float(value, _) => whole(value),
        Value::Decimal(number) => number.truncated(),
        Value::Text(text) => java_long(text),
        Value::Time(time) => Some(time.seconds),
        Value::Date(_) | Value::Bytes(_) => None,
    }
}

/// A number without its fraction, if it is in the range of 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked; the fraction is dropped as by Java's cast")]
fn whole(value: f64) -> Option<i64> {
    (value >= -BEYOND && value < BEYOND).then_some(value as i64)
}

/// `Long.parseLong`
fn java_long(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

#[expect(clippy::cast_possible_truncation, reason = "the nearest float is asked for")]
pub(super) fn float(value: Value<'_>, rules: Rules) -> Option<f32> {
    double(value, rules).map(|value| value as f32)
}

#[expect(clippy::cast_precision_loss, reason = "the nearest double is asked for")]
pub(super) fn double(value: Value<'_>, _: Rules) -> Option<f64> {
    match value {
        Value::Boolean(value) => Some(f64::from(u8::from(value))),
        Value::Integer(value) => Some(value as f64),
        Value::Float(value, _) => Some(value),
        Value::Decimal(number) => number.double(),
        Value::Text(text) => java_text::parse(text.as_bytes()),
        Value::Time(Time { seconds, nanos }) => Some(seconds as f64 + f64::from(nanos) / 1e9),
        Value::Date(_) | Value::Bytes(_) => None,
    }
}

pub(super) fn decimal(value: Value<'_>, rules: Rules) -> Option<Number> {
    let hive4 = rules.version >= HiveVersion::V4_1;
    match value {
        Value::Boolean(value) => Some(Number::new(value.into(), 0)),
        Value::Integer(value) => Some(Number::new(value.into(), 0)),
        Value::Float(value, _) => {
            let mut text = Vec::new();
            java_text::print_double(value, &mut text);
            Number::parse(&text, hive4)
        }
        Value::Decimal(number) => Some(number),
        Value::Text(text) => Number::parse(text.as_bytes(), hive4),
        Value::Time(time) => {
            let nanos = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
            Some(Number::new(nanos, 9))
        }
        Value::Date(_) | Value::Bytes(_) => None,
    }
}
