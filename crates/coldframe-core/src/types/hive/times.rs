//! Conversions to dates and timestamps.

use arrow_schema::TimeUnit;
use coldframe_encoding::calendar::{Civil, hybrid_to_proleptic_seconds, proleptic_to_hybrid_seconds};
use coldframe_encoding::java_text::{self, trim};

use super::number::Number;
use super::value::{Time, Value};
use super::{HiveVersion, Reader, Rules};
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

pub(super) fn date(value: Value<'_>, rules: Rules) -> Option<i32> {
    match value {
        Value::Date(days) => Some(days),
        Value::Time(time) => i32::try_from(time.seconds.div_euclid(DAY)).ok(),
        Value::Text(text) | Value::Character(text) => {
            let days = if rules.is_of_rows() {
                date_of_row(trim(text.as_bytes()), rules.version)?
            } else if rules.is_old_orc() {
                sql_date(text.as_bytes())?.days()
            } else {
                let mut scanner = Scanner(text.as_bytes());
                let date = scanner.date(false)?;
                scanner.end()?;
                date.days()
            };
            i32::try_from(days).ok()
        }
        _ => None,
    }
}

pub(super) fn time(value: Value<'_>, rules: Rules) -> Option<Time> {
    match value {
        Value::Time(time) => Some(time),
        Value::Date(days) => Some(Time { seconds: i64::from(days) * DAY, nanos: 0 }),
        Value::Boolean(value) => time(Value::Integer(value.into()), rules),
        Value::Integer(millis) if is_exact(rules) => Some(Time::of_millis(millis).labelled(rules)),
        // The multiplication overflows as in Java.
        Value::Integer(seconds) => Some(Time::of_millis(seconds.wrapping_mul(1000)).labelled(rules)),
        Value::Float(seconds, _) if is_exact(rules) => Some(exact_seconds(seconds)?.labelled(rules)),
        Value::Float(seconds, _) => Some(rounded_seconds(seconds)?.labelled(rules)),
        Value::Decimal(number) => {
            let (seconds, nanos) = number.seconds()?;
            // Beyond milliseconds of 64 bits, which overflow in Hive; beyond the years that Java's `Instant` holds.
            let most = if is_exact(rules) { i64::MAX.unsigned_abs() / 1000 } else { 31_556_889_864_403_199 };
            if seconds.unsigned_abs() > most {
                return None;
            }
            let (more, nanos) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
            let time = Time { seconds: seconds.checked_add(more)?, nanos: u32::try_from(nanos).ok()? };
            Some(time.labelled(rules))
        }
        Value::Text(text) | Value::Character(text) => {
            if rules.is_of_rows() {
                timestamp_of_row(trim(text.as_bytes()), rules.version)
            } else if rules.is_old_orc() {
                sql_timestamp(trim(text.as_bytes()), false)
            } else {
                timestamp(text)
            }
        }
        Value::Bytes(_) => None,
    }
}

/// Whether integers are milliseconds, and the digits of other numbers are kept: everywhere but in ORC's reader of Hive 4.
fn is_exact(rules: Rules) -> bool {
    rules.is_of_rows() || rules.is_old_orc()
}

impl Time {
    /// A time that was made of a number. `java.sql` and ORC's reader of Hive 4 take it for an instant of the hybrid
    /// calendar, and keep its year, month and day.
    fn labelled(self, rules: Rules) -> Self {
        let is_hybrid = match rules.reader {
            Reader::Orc => (rules.hybrid && rules.is_hive4()) || rules.version <= HiveVersion::V2_3,
            Reader::Rows => rules.version <= HiveVersion::V2_3,
        };
        if is_hybrid { Self { seconds: hybrid_to_proleptic_seconds(self.seconds), ..self } } else { self }
    }

    /// A time as the number of its seconds: before Hive 4, those of the hybrid calendar.
    pub(super) fn as_number(self, rules: Rules) -> Self {
        if rules.is_hive4() {
            self
        } else {
            Self { seconds: proleptic_to_hybrid_seconds(self.seconds), ..self }
        }
    }
}

/// Seconds rounded to milliseconds.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn rounded_seconds(seconds: f64) -> Option<Time> {
    let exact = seconds * 1000.0;
    let millis = (exact + 0.5).floor();
    let in_range = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&millis);
    // A number just below zero is null.
    (in_range && (millis >= 0.0) == (exact >= 0.0)).then(|| Time::of_millis(millis as i64))
}

/// Seconds with all their printed digits, at most nine after the point.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn exact_seconds(seconds: f64) -> Option<Time> {
    // Further seconds overflow in Hive.
    if seconds.is_nan() || seconds.abs() >= 9_223_372_036_854_775.0 {
        return None;
    }
    let mut text = Vec::new();
    java_text::print_double(seconds, &mut text);
    let digits = Number::parse(&text, true)?;
    let nanos = if digits.scale <= 0 { 0 } else { digits.seconds().map_or(0, |(_, nanos)| nanos) };
    let whole = (seconds as i64).checked_add(nanos.div_euclid(1_000_000_000))?;
    Some(Time { seconds: whole, nanos: u32::try_from(nanos.rem_euclid(1_000_000_000)).ok()? })
}

/// `yyyy-MM-dd HH:mm[:ss[.fffffffff]]`
fn timestamp(text: &str) -> Option<Time> {
    let mut scanner = Scanner(text.as_bytes());
    let days = scanner.date(true)?.days();
    scanner.take(b' ')?;
    let (hour, _, minute) = (scanner.digits(2)?, scanner.take(b':')?, scanner.digits(2)?);
    let (mut second, mut nanos) = (0, 0);
    if scanner.take(b':').is_some() {
        second = scanner.digits(2)?;
        if scanner.take(b'.').is_some() {
            nanos = scanner.fraction();
        }
    }
    scanner.end()?;
    clock(days, [hour, minute, second], nanos)
}

fn clock(days: i64, [hour, minute, second]: [i64; 3], nanos: u32) -> Option<Time> {
    let exists = hour < 24 && minute < 60 && second < 60;
    let seconds = days.checked_mul(DAY)? + hour * 3600 + minute * 60 + second;
    exists.then_some(Time { seconds, nanos })
}

/// A date as `java.sql.Date.valueOf` accepts it, in the hybrid calendar: a day up to the 31st that its month lacks is in the
/// next month.
fn sql_date(text: &[u8]) -> Option<Civil> {
    let mut scanner = Scanner(text);
    let year = scanner.digits(4)?;
    scanner.take(b'-')?;
    let month = scanner.up_to(2)?;
    scanner.take(b'-')?;
    let day = scanner.up_to(2)?;
    scanner.end()?;
    let in_range = (1..=12).contains(&month) && (1..=31).contains(&day);
    in_range.then(|| Civil::from_hybrid_days(Civil::new(year, month, day).hybrid_days()))
}

/// A timestamp as `java.sql.Timestamp.valueOf` accepts it. `cut`: whether digits after the ninth of the fraction are ignored.
fn sql_timestamp(text: &[u8], cut: bool) -> Option<Time> {
    let space = text.iter().position(|byte| *byte == b' ')?;
    let (date, time) = text.split_at_checked(space)?;
    let days = sql_date(date)?.days();
    let mut scanner = Scanner(time.get(1..)?);
    let (hour, _, minute) = (scanner.up_to(2)?, scanner.take(b':')?, scanner.up_to(2)?);
    scanner.take(b':')?;
    let second = scanner.up_to(2)?;
    let nanos = match scanner.take(b'.') {
        Some(()) if scanner.0.is_empty() => return None,
        Some(()) => scanner.fraction(),
        None => 0,
    };
    if cut {
        scanner.skip_digits();
    }
    scanner.end()?;
    Some(Time { seconds: days.checked_mul(DAY)? + hour * 3600 + minute * 60 + second, nanos })
}

/// The day of a text in a row: a date, or the day of a timestamp.
fn date_of_row(text: &[u8], version: HiveVersion) -> Option<i64> {
    if version <= HiveVersion::V2_3 {
        let of_time = || Some(sql_timestamp(text, true)?.seconds.div_euclid(DAY));
        return sql_date(text).map(Civil::days).or_else(of_time);
    }
    let mut scanner = Scanner(text);
    let days = leading_date(&mut scanner, version)?;
    let ends = version >= HiveVersion::V4_1 || matches!(scanner.0, [] | [b' ' | b'T', ..]);
    ends.then_some(days)
}

/// A timestamp in a row: a date, and the time of day if one follows. A zone behind it is ignored.
fn timestamp_of_row(text: &[u8], version: HiveVersion) -> Option<Time> {
    if version <= HiveVersion::V2_3 {
        let midnight = || Some(Time { seconds: sql_date(text)?.days().checked_mul(DAY)?, nanos: 0 });
        return sql_timestamp(text, true).or_else(midnight);
    }
    let days = date_of_row(text, version)?;
    let mut scanner = Scanner(text);
    leading_date(&mut scanner, version)?;
    let of_day = |mut scanner: Scanner<'_>| {
        scanner.take(b' ').or_else(|| scanner.take(b'T'))?;
        let (hour, _, minute) = (scanner.up_to(2)?, scanner.take(b':')?, scanner.up_to(2)?);
        scanner.take(b':')?;
        let second = scanner.up_to(2)?;
        let nanos = scanner.take(b'.').map_or(0, |()| scanner.fraction());
        scanner.skip_digits();
        is_zone(trim(scanner.0)).then_some(([hour, minute, second], nanos))
    };
    match of_day(scanner) {
        Some((time, nanos)) => clock(days, time, nanos),
        None => clock(days, [0; 3], 0),
    }
}

/// Whether a text after a time is a zone, or nothing.
fn is_zone(text: &[u8]) -> bool {
    matches!(text, [] | [b'+' | b'-', ..] | b"Z" | b"UTC" | b"GMT") || text.contains(&b'/')
}

/// The day of `y-M-d` at the start of a text; no digit may follow. Up to four digits of the year in Hive 4. Before, days and
/// months that do not exist are counted on.
fn leading_date(scanner: &mut Scanner<'_>, version: HiveVersion) -> Option<i64> {
    let is_strict = version >= HiveVersion::V4_1;
    let is_negative = scanner.take(b'-').is_some();
    let year = scanner.up_to(if is_strict { 4 } else { 9 })?;
    scanner.take(b'-')?;
    let month = scanner.up_to(2)?;
    scanner.take(b'-')?;
    let (year, day) = (if is_negative { -year } else { year }, scanner.up_to(2)?);
    if scanner.0.first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let date = Civil::new(year, month, day);
    if date.exists() {
        return Some(date.days());
    }
    let months = month - 1;
    let first = Civil::new(year + months.div_euclid(12), months.rem_euclid(12) + 1, 1);
    (!is_strict).then(|| first.days() + day - 1)
}

/// Reads the fields of a date and a time.
#[derive(Clone, Copy)]
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

    fn skip_digits(&mut self) {
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.0 = self.0.get(count..).unwrap_or_default();
    }

    /// Up to `most` digits, at least one.
    fn up_to(&mut self, most: usize) -> Option<i64> {
        match self.0.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count() {
            0 => None,
            count => self.digits(count),
        }
    }

    /// `yyyy-MM-dd`: years of more than four digits have a sign. `lenient`: a day up to the 31st that its month lacks is the
    /// month's last.
    fn date(&mut self, lenient: bool) -> Option<Civil> {
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
        if !(1..=31).contains(&day) {
            return None;
        }
        let date = Civil::new(year, month, day);
        if date.exists() {
            return Some(date);
        }
        let last = (28..=31).rev().map(|day| Civil::new(year, month, day)).find(|date| date.exists());
        last.filter(|_| lenient)
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0i64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}
