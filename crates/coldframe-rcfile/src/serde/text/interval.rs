//! Reads `interval_year_month`: `[+-]years-months`; `interval_day_time`: `[+-]days
//! hours:minutes:seconds[.fraction]`.
//!
//! Source: Hive's `HiveIntervalYearMonth` and `HiveIntervalDayTime`.

use super::cells::Cell;
use super::fixed::Parse;

/// Parses `interval_year_month` to months.
pub(super) struct YearMonth;

impl Parse for YearMonth {
    type Value = i32;

    fn parse(&self, cell: Cell<'_>) -> Option<i32> {
        let (sign, text) = sign(cell.bytes());
        let dash = text.iter().position(|&b| b == b'-')?;
        let years = in_range(text.get(..dash)?, i64::from(i32::MAX))?;
        let months = in_range(text.get(dash + 1..)?, 11)?;
        // Hive lets the months of more than 178 million years wrap around.
        i32::try_from(sign * (years * 12 + months)).ok()
    }
}

/// Parses `interval_day_time` to seconds and nanoseconds, both with the interval's sign.
pub(super) struct DayTime;

impl Parse for DayTime {
    type Value = (i64, i32);

    fn parse(&self, cell: Cell<'_>) -> Option<(i64, i32)> {
        let (sign, text) = sign(cell.bytes());
        let mut parts = text.splitn(2, |&b| b == b' ');
        let days = in_range(parts.next()?, i64::from(i32::MAX))?;
        let mut parts = parts.next()?.splitn(3, |&b| b == b':');
        let hours = in_range(parts.next()?, 23)?;
        let minutes = in_range(parts.next()?, 59)?;
        let seconds = parts.next()?;
        let (seconds, nanos) = match seconds.iter().position(|&b| b == b'.') {
            Some(point) => (seconds.get(..point)?, fraction(seconds.get(point + 1..)?)?),
            None => (seconds, 0),
        };
        let seconds = in_range(seconds, i64::from(i32::MAX))?;
        let total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
        Some((sign * total, if sign < 0 { -nanos } else { nanos }))
    }
}

fn sign(text: &[u8]) -> (i64, &[u8]) {
    match text {
        [b'-', rest @ ..] => (-1, rest),
        // Hive's pattern `[+|-]` also accepts a bar.
        [b'+' | b'|', rest @ ..] => (1, rest),
        _ => (1, text),
    }
}

fn in_range(digits: &[u8], max: i64) -> Option<i64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0i64, |n, b| n.saturating_mul(10).saturating_add(i64::from(b - b'0')));
    (value <= max).then_some(value)
}

/// Nanoseconds of the digits after a point; digits after the ninth are dropped.
fn fraction(digits: &[u8]) -> Option<i32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let nanos = digits.iter().chain(std::iter::repeat(&b'0')).take(9);
    Some(nanos.fold(0, |n, b| n * 10 + i32::from(b - b'0')))
}
