//! Conversions to text: what Hive prints, cut to the length of `varchar(n)` and padded to the length of
//! `char(n)`.

use std::fmt::Write as _;

use coldframe_encoding::calendar::Civil;
use coldframe_encoding::java_text;

use super::primitive::{Time, Value};
use super::{Rules, times};

/// Writing to a `String` cannot fail.
macro_rules! put {
    ($out:expr, $($format:tt)*) => {{
        let _ = write!($out, $($format)*);
    }};
}

/// Appends a value's text; `None` where the result in Hive is null.
pub(super) fn print(value: Value<'_>, rules: Rules, out: &mut String) -> Option<()> {
    match value {
        Value::Boolean(value) => out.push_str(if value { "TRUE" } else { "FALSE" }),
        Value::Integer(value) => put!(out, "{value}"),
        Value::Float(value, is_float) => number(value, is_float, rules, out)?,
        Value::Decimal(number) => number.print(rules.is_of_rows() && rules.is_hive4(), out),
        Value::Text(text) | Value::Character(text) => out.push_str(text),
        Value::Bytes(bytes) if rules.is_of_rows() => out.push_str(std::str::from_utf8(bytes).ok()?),
        Value::Bytes(bytes) => hex(bytes, out),
        Value::Date(days) => civil(Civil::from_days(days.into()), out),
        Value::Time(time) => timestamp(time, rules, out),
    }
    Some(())
}

/// ORC's reader prints floats as doubles, and has no text for NaN.
fn number(value: f64, is_float: bool, rules: Rules, out: &mut String) -> Option<()> {
    if is_float && !value.is_nan() && (rules.is_of_rows() || rules.is_old_orc()) {
        out.push_str(&float(value));
        return Some(());
    }
    if value.is_nan() && !rules.is_of_rows() {
        return None;
    }
    let mut text = Vec::new();
    java_text::print_double(value, &mut text);
    out.push_str(std::str::from_utf8(&text).ok()?);
    Some(())
}

/// A float, which was read as a double, as `Float.toString` prints it.
#[expect(clippy::cast_possible_truncation, reason = "the value was a float")]
pub(super) fn float(value: f64) -> String {
    let mut text = Vec::new();
    java_text::print_float(value as f32, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Pairs of digits between blanks.
fn hex(bytes: &[u8], out: &mut String) {
    for (number, byte) in bytes.iter().enumerate() {
        put!(out, "{}{byte:02x}", if number == 0 { "" } else { " " });
    }
}

fn civil(date: Civil, out: &mut String) {
    let sign = if date.year < 0 { "-" } else { "" };
    put!(out, "{sign}{:04}-{:02}-{:02}", date.year.unsigned_abs(), date.month, date.day);
}

/// ORC's reader before Hive 4 prints at least one digit of the fraction, as `java.sql.Timestamp` does.
fn timestamp(time: Time, rules: Rules, out: &mut String) {
    let of_day = time.seconds.rem_euclid(times::DAY);
    civil(Civil::from_days(time.seconds.div_euclid(times::DAY)), out);
    put!(out, " {:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
    if time.nanos > 0 {
        put!(out, ".{:09}", time.nanos);
        out.truncate(out.trim_end_matches('0').len());
    } else if rules.is_old_orc() {
        out.push_str(".0");
    }
}

/// Cuts a text to `length` characters.
pub(super) fn cut(text: &mut String, length: u32) {
    if let Some((end, _)) = text.char_indices().nth(length as usize) {
        text.truncate(end);
    }
}

/// Cuts a text to `length` characters, and pads it with blanks to this length.
pub(super) fn padded(text: &mut String, length: u32) {
    cut(text, length);
    let missing = (length as usize).saturating_sub(text.chars().count());
    text.extend(std::iter::repeat_n(' ', missing));
}
