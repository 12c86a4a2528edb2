//! Conversions to dates and timestamps.

use arrow_schema::TimeUnit;
use coldframe_encoding::calendar::Civil;

use super::Rules;
use super::primitive::{Time, Value};
use crate::{Error, Result};

/// Seconds of a day.
pub(super) const DAY: i64 = 86_400;

pub(super) fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

impl Time {
    /// A count of units of which a second has `per_second`.
    pub(super) fn of_units(count: i64, per_second: i64) -> Self {
        let rest = count.rem_euclid(per_second) * (1_000_000_000 / per_second);
        Self { seconds: count.div_euclid(per_second), nanos: u32::try_from(rest).unwrap_or(0) }
    }

    fn of_millis(millis: i64) -> Self {
        Self::of_units(millis, 1000)
    }

    /// The number of units since 1970-01-01; an error if 64 bits do not hold it.
    pub(super) fn count(self, unit: TimeUnit) -> Result<i64> {
        let per_second = per_second(unit);
        let rest = i64::from(self.nanos) / (1_000_000_000 / per_second);
        let count = self.seconds.checked_mul(per_second).and_then(|count| count.checked_add(rest));
        count.ok_or_else(|| {
            let year = Civil::from_days(self.seconds.div_euclid(DAY)).year;
            Error::schema(format!(
                "a timestamp of the year {year} does not fit its unit; read with timestamp_unit=\"us\""
            ))
        })
    }
}

pub(super) fn date(value: Value<'_>, _: Rules) -> Option<i32> {
    match value {
        Value::Date(days) => Some(days),
        Value::Time(time) => i32::try_from(time.seconds.div_euclid(DAY)).ok(),
        Value::Text(text) => {
            let mut scanner = Scanner(text.as_bytes());
            let days = scanner.date()?.days();
            scanner.end()?;
            i32::try_from(days).ok()
        }
        _ => None,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(super) fn time(value: Value<'_>, is_instant: bool, _: Rules) -> Option<Time> {
    match value {
        Value::Time(time) => Some(time),
        Value::Date(days) => Some(Time { seconds: i64::from(days) * DAY, nanos: 0 }),
        Value::Boolean(value) => Some(Time { seconds: value.into(), nanos: 0 }),
        // The multiplication overflows as in Java.
        Value::Integer(seconds) => Some(Time::of_millis(seconds.wrapping_mul(1000))),
        Value::Float(seconds, _) => {
            let millis = (seconds * 1000.0 + 0.5).floor();
            let in_range = millis >= -9.223_372_036_854_775e18 && millis <= 9.223_372_036_854_775e18;
            in_range.then(|| Time::of_millis(millis as i64))
        }
        Value::Decimal(number) => {
            let (seconds, nanos) = number.seconds()?;
            Some(Time::of_units(seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?, 1_000_000_000))
        }
        Value::Text(text) => timestamp(text, is_instant),
        Value::Bytes(_) => None,
    }
}

/// `yyyy-MM-dd HH:mm[:ss[.fffffffff]]`, followed by a zone if it is an instant.
fn timestamp(text: &str, is_instant: bool) -> Option<Time> {
    let mut scanner = Scanner(text.as_bytes());
    let days = scanner.date()?.days();
    scanner.take(b' ')?;
    let (hour, _, minute) = (scanner.digits(2)?, scanner.take(b':')?, scanner.digits(2)?);
    let (mut second, mut nanos) = (0, 0);
    if scanner.take(b':').is_some() {
        second = scanner.digits(2)?;
        if scanner.take(b'.').is_some() {
            nanos = scanner.fraction();
        }
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    if is_instant {
        return None;
    }
    scanner.end()?;
    Some(Time { seconds: days.checked_mul(DAY)? + hour * 3600 + minute * 60 + second, nanos })
}

/// Reads the fields of a date and a time.
struct Scanner<'a>(&'a [u8]);

impl Scanner<'_> {
    fn take(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    /// Exactly `count` digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        number(digits)
    }

    /// The nanoseconds of up to nine digits.
    fn fraction(&mut self) -> u32 {
        let count = self.0.iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(count).unwrap_or((self.0, &[]));
        self.0 = rest;
        let padded = digits.iter().map(|digit| digit - b'0').chain(std::iter::repeat(0)).take(9);
        padded.fold(0, |sum, digit| sum * 10 + u32::from(digit))
    }

    /// `yyyy-MM-dd`: years of more than four digits have a sign; a day up to the 31st that its month lacks is the month's last.
    fn date(&mut self) -> Option<Civil> {
        let sign = self.0.first().copied().filter(|byte| matches!(byte, b'+' | b'-'));
        self.0 = self.0.get(usize::from(sign.is_some())..)?;
        let count = self.0.iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
        if count < 4 || (count > 4) != (sign == Some(b'+')) && sign != Some(b'-') {
            return None;
        }
        let year = self.digits(count)?;
        let year = if sign == Some(b'-') { -year } else { year };
        self.take(b'-')?;
        let month = self.digits(2)?;
        self.take(b'-')?;
        let day = self.digits(2)?;
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        let last = (28..=31).rev().find(|day| Civil::new(year, month, *day).exists()).unwrap_or(28);
        Some(Civil::new(year, month, day.min(last)))
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0i64, |sum, byte| {
        byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0'))
    })
}
