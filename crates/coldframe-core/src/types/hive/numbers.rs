//! Conversions to booleans, integers, floating-point numbers and decimals.

use coldframe_encoding::java_text;

use super::number::Number;
use super::value::{Time, Value};
use super::{HiveVersion, Rules, texts};

/// 2^63, the first double beyond the integers of 64 bits.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

/// Texts that are false for the converter of rows.
const FALSE: [&str; 5] = ["", "0", "false", "no", "off"];

pub(super) fn boolean(value: Value<'_>, rules: Rules) -> Option<bool> {
    match value {
        Value::Boolean(value) => Some(value),
        Value::Decimal(number) => Some(number.magnitude != 0),
        Value::Text(text) if rules.is_of_rows() && rules.version <= HiveVersion::V2_3 => {
            Some(!text.is_empty())
        }
        Value::Text(text) if rules.is_of_rows() => {
            Some(!FALSE.iter().any(|known| known.eq_ignore_ascii_case(text)))
        }
        other => Some(integer(other, Width::Boolean, rules)? != 0),
    }
}

/// The types of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    /// `boolean`: the number is compared with 0.
    Boolean,
    Tiny,
    Small,
    Int,
    Big,
}

/// The integer of a column's type. A number that does not fit is null for the reader of ORC. In rows it wraps, or is the
/// nearest that fits, depending on its type.
pub(super) fn integer(value: Value<'_>, width: Width, rules: Rules) -> Option<i64> {
    if rules.is_of_rows() {
        return of_row(value, width, rules);
    }
    let wide = match value {
        Value::Boolean(value) => value.into(),
        Value::Integer(value) => value,
        Value::Float(value, _) => whole(value)?,
        Value::Decimal(number) => number.truncated()?,
        Value::Text(text) | Value::Character(text) => java_long(text)?,
        Value::Time(time) => time.as_number(rules).seconds,
        Value::Date(_) | Value::Bytes(_) => return None,
    };
    let narrow = narrowed(wide, width);
    (narrow == wide).then_some(narrow)
}

/// As Java's `(byte)`, `(short)` and `(int)`.
#[expect(clippy::cast_possible_truncation, reason = "as in Java")]
fn narrowed(value: i64, width: Width) -> i64 {
    match width {
        Width::Tiny => (value as i8).into(),
        Width::Small => (value as i16).into(),
        Width::Int => (value as i32).into(),
        Width::Boolean | Width::Big => value,
    }
}

/// As `PrimitiveObjectInspectorUtils`, which has all but `bigint` go through `int`.
#[expect(clippy::cast_possible_truncation, reason = "the nearest value that fits is asked for, as in Java")]
fn of_row(value: Value<'_>, width: Width, rules: Rules) -> Option<i64> {
    let is_big = width == Width::Big;
    let wide = match value {
        Value::Boolean(value) => value.into(),
        Value::Integer(value) => value,
        Value::Float(value, _) if is_big => value as i64,
        Value::Float(value, _) => i64::from(value as i32),
        Value::Decimal(number) => {
            let whole = number.truncated()?;
            return (narrowed(whole, width) == whole).then_some(whole);
        }
        Value::Text(text) => {
            let value = lazy_long(text)?;
            if !is_big && i32::try_from(value).is_err() {
                return None;
            }
            value
        }
        Value::Character(text) => {
            let value = java_long(text)?;
            if !is_big && i32::try_from(value).is_err() {
                return None;
            }
            value
        }
        Value::Time(time) => time.as_number(rules).seconds,
        Value::Date(_) | Value::Bytes(_) => return None,
    };
    Some(if width == Width::Boolean { narrowed(wide, Width::Int) } else { narrowed(wide, width) })
}

/// A number without its fraction, if it is in the range of 64 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is checked; the fraction is dropped as by Java's cast"
)]
fn whole(value: f64) -> Option<i64> {
    (-BEYOND..BEYOND).contains(&value).then_some(value as i64)
}

/// `Long.parseLong`
fn java_long(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// `LazyLong.parseLong`, which ignores the digits of a fraction.
fn lazy_long(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let has_digits = whole.bytes().any(|byte| byte.is_ascii_digit());
    if !has_digits && matches!(whole, "" | "+" | "-") && !fraction.is_empty() {
        return Some(0);
    }
    java_long(whole)
}

#[expect(clippy::cast_possible_truncation, reason = "the nearest float is asked for")]
pub(super) fn float(value: Value<'_>, rules: Rules) -> Option<f32> {
    match value {
        Value::Float(value, true) => Some(value as f32),
        other => double(other, rules).map(|value| value as f32),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the nearest double is asked for")]
pub(super) fn double(value: Value<'_>, rules: Rules) -> Option<f64> {
    match value {
        Value::Boolean(value) => Some(f64::from(u8::from(value))),
        Value::Integer(value) => Some(value as f64),
        Value::Float(value, true) if rules.is_old_orc() => java_text::parse(texts::float(value).as_bytes()),
        Value::Float(value, _) => Some(value),
        Value::Decimal(number) => number.double(),
        Value::Text(text) | Value::Character(text) => java_text::parse(text.as_bytes()),
        Value::Time(time) => {
            let Time { seconds, nanos } = time.as_number(rules);
            Some(seconds as f64 + f64::from(nanos) / 1e9)
        }
        Value::Date(_) | Value::Bytes(_) => None,
    }
}

pub(super) fn decimal(value: Value<'_>, rules: Rules) -> Option<Number> {
    let printed = |value: f64| {
        let mut text = Vec::new();
        java_text::print_double(value, &mut text);
        Number::parse(&text, rules.is_hive4())
    };
    match value {
        Value::Boolean(value) => Some(Number::new(value.into(), 0)),
        Value::Integer(value) => Some(Number::new(value.into(), 0)),
        Value::Float(value, true) if rules.is_of_rows() || rules.is_old_orc() => {
            Number::parse(texts::float(value).as_bytes(), rules.is_hive4())
        }
        Value::Float(value, _) => printed(value),
        Value::Decimal(number) => Some(number),
        Value::Text(text) | Value::Character(text) => {
            Number::parse(java_text::trim(text.as_bytes()), rules.is_hive4())
        }
        Value::Time(_) if rules.is_of_rows() || rules.is_old_orc() => printed(double(value, rules)?),
        Value::Time(time) => {
            let nanos = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
            Some(Number::new(nanos, 9))
        }
        Value::Date(_) | Value::Bytes(_) => None,
    }
}
