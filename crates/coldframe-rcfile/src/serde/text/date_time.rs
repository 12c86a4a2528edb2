//! Reads `date` and `timestamp`: `2020-01-31` and `2020-01-31 23:59:59.123456789`.
//!
//! Which other forms are accepted differs between the versions of Hive:
//!
//! | | up to 2.x (`java.sql`) | 3.x (`java.time`, lenient) | 4.x (`java.time`, strict) |
//! |---|---|---|---|
//! | calendar | hybrid | proleptic | proleptic |
//! | year | 4 digits | 1..=10 digits, sign | date: 1..=4, timestamp: 1..=10 digits, sign |
//! | a day that does not exist | rolls over, up to the 31st | rolls over | null |
//! | hour 24, second 60 | rolls over | rolls over | null |
//! | text after a date | null | ignored after a space | ignored if no digit |
//! | surrounding blanks | timestamps only | ignored | ignored |
//! | `2020-01-31T23:59` | null | accepted | accepted |
//!
//! In all versions, text of fewer than 8 bytes is null. Sources: Hive's `LazyDate`, `LazyTimestamp`,
//! `common.type.Date` and `Timestamp`;
//! `java.sql.Date.valueOf`, `java.sql.Timestamp.valueOf`, `java.time.format.DateTimeFormatterBuilder`.

use std::cell::Cell as Shared;

use coldframe_encoding::Result;
use coldframe_encoding::calendar::{Civil, days_of_common_year};
use coldframe_encoding::java_text::trim;

use super::cells::Cell;
use super::digits::{POWERS_OF_TEN, up_to_16};
use super::fixed::Parse;
use super::formats::{Formats, Reading};
use super::instant::{Instant, Range};
use super::scanner::Scanner;
use crate::serde::HiveVersion;

const SECONDS_PER_DAY: i64 = 86_400;

/// The first year in which all calendars agree.
const FIRST_COMMON_YEAR: u32 = 1583;

/// Pairs of digits between separators, eight bytes at a time.
///
/// Each byte is XORed with a pattern: a separator must give 0, a digit its value. Adding 0x7f (0x76) sets the top bit
/// of each byte that is not 0 (not below 10).
struct Pairs {
    pattern: u64,
    addend: u64,
}

impl Pairs {
    /// `pattern` has `0` for digits.
    const fn new(pattern: [u8; 8]) -> Self {
        let mut addend = [0x7f; 8];
        let mut i = 0;
        #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
        while i < 8 {
            if pattern[i] == b'0' {
                addend[i] = 0x76;
            }
            i += 1;
        }
        Self { pattern: u64::from_le_bytes(pattern), addend: u64::from_le_bytes(addend) }
    }

    /// In byte i the number formed by digits i and i + 1; zero if all bytes match the pattern.
    #[inline]
    fn read(&self, text: &[u8; 8]) -> (u64, u64) {
        let digits = u64::from_le_bytes(*text) ^ self.pattern;
        let wrong = (digits.wrapping_add(self.addend) | digits) & 0x8080_8080_8080_8080;
        (digits.wrapping_mul(10).wrapping_add(digits >> 8), wrong)
    }
}

const YEAR_MONTH: Pairs = Pairs::new(*b"0000-00-");
const YEAR_MONTH_DAY: Pairs = Pairs::new(*b"00-00-00");
const HOUR_MINUTE_SECOND: Pairs = Pairs::new(*b"00:00:00");

/// The number at byte `i`.
#[inline(always)]
fn at(pairs: u64, i: u32) -> u32 {
    u32::from(pairs.to_le_bytes().get(i as usize).copied().unwrap_or(0))
}

/// Days since 1970-01-01 of a day that exists in all calendars; in `year_month`, bytes 0, 2 and 5 are the
/// pairs of digits.
#[inline(always)]
fn common_days(year_month: u64, day: u32, version: HiveVersion) -> Option<i32> {
    let year = at(year_month, 0) * 100 + at(year_month, 2);
    if year < FIRST_COMMON_YEAR && version <= HiveVersion::V2_3 {
        return None;
    }
    days_of_common_year(year, at(year_month, 5), day)
}

/// `YYYY-MM-DD`
#[inline(always)]
fn common_date(text: &[u8; 10], version: HiveVersion) -> Option<i32> {
    let (year_month, wrong) = YEAR_MONTH.read(text.first_chunk()?);
    let (day, wrong_too) = YEAR_MONTH_DAY.read(text.last_chunk()?);
    if wrong | wrong_too != 0 {
        return None;
    }
    common_days(year_month, at(day, 6), version)
}

/// The day of the previous value: rows are often in time order, so the next value often has the same day.
struct LastDay {
    text: Shared<[u8; 10]>,
    days: Shared<i32>,
}

impl LastDay {
    fn new() -> Self {
        Self { text: Shared::new(*b"1970-01-01"), days: Shared::new(0) }
    }

    /// Returns the result of [`common_date`], which is kept for the next call.
    #[inline(always)]
    fn days(&self, text: &[u8; 10], version: HiveVersion) -> Option<i32> {
        if self.text.get() == *text {
            return Some(self.days.get());
        }
        let days = common_date(text, version)?;
        self.text.set(*text);
        self.days.set(days);
        Some(days)
    }
}

/// Parser for `date`: days since 1970-01-01.
pub(super) struct Date {
    version: HiveVersion,
    last: LastDay,
}

impl Date {
    pub(super) fn new(version: HiveVersion) -> Self {
        Self { version, last: LastDay::new() }
    }
}

impl Parse for Date {
    type Value = i32;

    #[inline(always)]
    fn parse(&self, cell: Cell<'_>) -> Option<i32> {
        if cell.len == 10
            && let Some(text) = cell.rest.first_chunk()
            && let Some(days) = self.last.days(text, self.version)
        {
            return Some(days);
        }
        self.leniently(cell.bytes())
    }
}

impl Date {
    #[cold]
    fn leniently(&self, text: &[u8]) -> Option<i32> {
        if text.len() < 8 {
            return None;
        }
        let days = match self.version {
            HiveVersion::V0_8 | HiveVersion::V2_3 => {
                Civil::from_hybrid_days(sql_date(text)?.hybrid_days()).days()
            }
            HiveVersion::V3_1 => {
                let text = trim(text);
                let end = text.iter().position(|&b| b == b' ').unwrap_or(text.len());
                let mut scanner = Scanner::new(text.get(..end)?);
                let date = scanner.date(10)?;
                scanner.end()?;
                rolled_over(date)?
            }
            HiveVersion::V4_1 => {
                let mut scanner = Scanner::new(trim(text));
                let date = scanner.date(4)?;
                if !date.exists() || scanner.peek().is_some_and(|b| b.is_ascii_digit()) {
                    return None;
                }
                date.days()
            }
        };
        i32::try_from(days).ok()
    }
}

/// The day number of a date whose month and day may be out of range.
fn rolled_over(date: Civil) -> Option<i64> {
    if date.year.abs() > 999_999_999 {
        return None;
    }
    let months = date.month - 1;
    let first = Civil::new(date.year + months.div_euclid(12), months.rem_euclid(12) + 1, 1);
    Some(first.days() + date.day - 1)
}

/// A date as `java.sql.Date.valueOf` accepts it: any day up to the 31st.
fn sql_date(text: &[u8]) -> Option<Civil> {
    let mut parts = text.splitn(3, |&b| b == b'-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if year.len() != 4 || month.len() > 2 || day.len() > 2 {
        return None;
    }
    let (month, day) = (java_int(month)?, java_int(day)?);
    let in_range = (1..=12).contains(&month) && (1..=31).contains(&day);
    in_range.then_some(Civil::new(java_int(year)?, month, day))
}

/// `Integer.parseInt`
fn java_int(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0i64, |n, b| n * 10 + i64::from(b - b'0'));
    let value = if text.first() == Some(&b'-') { -value } else { value };
    i32::try_from(value).is_ok().then_some(value)
}

/// Parser for `timestamp`: nanoseconds or microseconds of the wall clock.
pub(super) struct Timestamp<'a> {
    version: HiveVersion,
    formats: &'a Formats,
    range: Range,
    last: LastDay,
}

impl<'a> Timestamp<'a> {
    pub(super) fn new(version: HiveVersion, range: Range, formats: &'a Formats) -> Self {
        Self { version, formats, range, last: LastDay::new() }
    }
}

impl Parse for Timestamp<'_> {
    type Value = i64;

    #[inline(always)]
    fn parse(&self, cell: Cell<'_>) -> Option<i64> {
        let instant = match common_timestamp(cell, self.version, &self.last) {
            Some(instant) if self.formats.is_empty() => instant,
            _ => leniently(cell.bytes(), self.version, self.formats)?,
        };
        self.range.count(instant)
    }

    fn check(&self) -> Result<()> {
        self.range.check()
    }
}

/// `YYYY-MM-DD HH:MM:SS[.fffffffff]` with all fields in range.
#[inline(always)]
fn common_timestamp(cell: Cell<'_>, version: HiveVersion, last: &LastDay) -> Option<Instant> {
    let text: &[u8; 19] = cell.rest.first_chunk()?;
    let (clock, wrong) = HOUR_MINUTE_SECOND.read(text.last_chunk()?);
    let (hour, minute, second) = (at(clock, 0), at(clock, 3), at(clock, 6));
    if wrong != 0 || text.get(10) != Some(&b' ') || hour >= 24 || minute >= 60 || second >= 60 {
        return None;
    }
    let days = last.days(text.first_chunk()?, version)?;
    let seconds = i64::from(days) * SECONDS_PER_DAY + i64::from(hour * 3600 + minute * 60 + second);
    let nanos = match cell.len {
        19 => 0,
        21..=29 if cell.rest.get(19) == Some(&b'.') => {
            let digits = cell.len - 20;
            let fraction = up_to_16(cell.rest.get(20..)?, digits)?;
            u32::try_from(fraction * POWERS_OF_TEN.get(9 - digits)?).ok()?
        }
        _ => return None,
    };
    Some(Instant { seconds, nanos })
}

#[cold]
fn leniently(text: &[u8], version: HiveVersion, formats: &Formats) -> Option<Instant> {
    if text.len() < 8 && version > HiveVersion::V0_8 {
        return None;
    }
    match formats.parse(text) {
        Reading::Time(instant) => return Some(instant),
        Reading::Null => return None,
        Reading::Unmatched => {}
    }
    let text = trim(text);
    match version {
        HiveVersion::V0_8 | HiveVersion::V2_3 => sql_timestamp(text),
        HiveVersion::V3_1 => fields(text).and_then(|f| f.rolled_over()).or_else(|| iso(text)),
        HiveVersion::V4_1 => fields(text).and_then(|f| f.strict()).or_else(|| iso(text)),
    }
}

/// A timestamp as `java.sql.Timestamp.valueOf` accepts it: hours, minutes and seconds of any size.
fn sql_timestamp(text: &[u8]) -> Option<Instant> {
    let space = text.iter().position(|&b| b == b' ')?;
    let date = sql_date(text.get(..space)?)?;
    let mut parts = text.get(space + 1..)?.splitn(3, |&b| b == b':');
    let (hour, minute, rest) = (java_int(parts.next()?)?, java_int(parts.next()?)?, parts.next()?);
    let (second, nanos) = match rest.iter().position(|&b| b == b'.') {
        Some(point) => (rest.get(..point)?, nanos(rest.get(point + 1..)?)?),
        None => (rest, 0),
    };
    let of_day = hour * 3600 + minute * 60 + java_int(second)?;
    // The hours are added before the calendar is applied: with them the time may be after the days that 1582
    // does not have.
    let date = Civil { day: date.day + of_day.div_euclid(SECONDS_PER_DAY), ..date };
    let days = Civil::from_hybrid_days(date.hybrid_days()).days();
    Some(Instant { seconds: days * SECONDS_PER_DAY + of_day.rem_euclid(SECONDS_PER_DAY), nanos })
}

/// The nanoseconds of 1..=9 digits after a point.
fn nanos(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0u64, |n, b| n * 10 + u64::from(b - b'0'));
    u32::try_from(value * POWERS_OF_TEN.get(9 - digits.len())?).ok()
}

/// The fields of a timestamp, each a number that may be outside its range.
struct Clock {
    date: Civil,
    time: [i64; 3],
    nanos: u32,
}

impl Clock {
    fn rolled_over(&self) -> Option<Instant> {
        let [hour, minute, second] = self.time;
        let seconds = rolled_over(self.date)? * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
        Some(Instant { seconds, nanos: self.nanos })
    }

    fn strict(&self) -> Option<Instant> {
        let in_range = |[hour, minute, second]: [i64; 3]| {
            (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second)
        };
        if self.date.exists() && in_range(self.time) { self.rolled_over() } else { None }
    }
}

/// Parses the whole text as `y-m-d h:m:s[.n]`.
fn fields(text: &[u8]) -> Option<Clock> {
    let mut scanner = Scanner::new(text);
    let date = scanner.date(10)?;
    scanner.literal(b' ')?;
    let hour = scanner.signed(1, 2)?;
    scanner.literal(b':')?;
    let minute = scanner.signed(1, 2)?;
    scanner.literal(b':')?;
    let second = scanner.signed(1, 2)?;
    let nanos = match scanner.literal(b'.') {
        Some(()) => nanos(scanner.rest())?,
        None => scanner.end().map(|()| 0)?,
    };
    Some(Clock { date, time: [hour, minute, second], nanos })
}

/// ISO 8601 as in `DateTimeFormatter.ISO_LOCAL_DATE_TIME`: `yyyy-MM-ddTHH:mm[:ss[.n]]`.
fn iso(text: &[u8]) -> Option<Instant> {
    let mut scanner = Scanner::new(text);
    let year = scanner.padded_year()?;
    scanner.literal(b'-')?;
    let month = scanner.unsigned(2, 2)?;
    scanner.literal(b'-')?;
    let date = Civil::new(year, month, scanner.unsigned(2, 2)?);
    scanner.literal(b'T').or_else(|| scanner.literal(b't'))?;
    let hour = scanner.unsigned(2, 2)?;
    scanner.literal(b':')?;
    let minute = scanner.unsigned(2, 2)?;
    let mut clock = Clock { date, time: [hour, minute, 0], nanos: 0 };
    if scanner.literal(b':').is_some() {
        clock.time[2] = scanner.unsigned(2, 2)?;
        if scanner.literal(b'.').is_some() {
            let digits = scanner.rest();
            clock.nanos = if digits.is_empty() { 0 } else { nanos(digits)? };
            return clock.strict();
        }
    }
    scanner.end()?;
    clock.strict()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_cached_day_equals_the_parsed_day() {
        let last = LastDay::new();
        for text in [b"2020-02-29", b"2020-02-29", b"2020-02-28", b"1970-01-01", b"2021-02-29", b"2020-02-29"]
        {
            assert_eq!(last.days(text, HiveVersion::V4_1), common_date(text, HiveVersion::V4_1), "{text:?}");
        }
        assert_eq!(LastDay::new().days(&[0; 10], HiveVersion::V4_1), None);
    }

    proptest! {
        #[test]
        fn the_fast_path_agrees_with_the_lenient_parser(
            cells in proptest::collection::vec(
                "20(19|20)-0[1-3]-(0[1-2]|[23][0-9]) ([01][0-9]|2[0-5]):[0-6][0-9]:[0-6][0-9](\\.[0-9]{1,10})?", 1..20,
            ),
        ) {
            let last = LastDay::new();
            for text in cells {
                let behind = format!("{text}99999999999999999999");
                let cell = Cell { rest: behind.as_bytes(), len: text.len() };
                if let Some(instant) = common_timestamp(cell, HiveVersion::V4_1, &last) {
                    let formats = Formats::compile(&[], HiveVersion::V4_1).unwrap();
                    prop_assert_eq!(Some(instant), leniently(text.as_bytes(), HiveVersion::V4_1, &formats));
                }
            }
        }
    }
}
