//! Prints numbers and times as Hive does: the text of Java's `toString`.

use std::io::Write as _;

use coldframe_encoding::calendar::Civil;
use coldframe_encoding::{Error, Result};

use crate::serde::HiveVersion;
use crate::serde::bounds::check_instant;

const SECONDS_PER_DAY: i64 = 86_400;

/// Writing to a `Vec` cannot fail.
macro_rules! put {
    ($out:expr, $($format:tt)*) => {{
        let _ = write!($out, $($format)*);
    }};
}

pub(super) fn integer(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut rest = value.unsigned_abs();
    let mut used = 0;
    for slot in digits.iter_mut().rev() {
        let [digit, ..] = (rest % 10).to_le_bytes();
        *slot = b'0' + digit;
        used += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(digits.get(20 - used..).unwrap_or_default());
}

/// Prints all digits of the scale, including zeros.
pub(super) fn decimal(value: i128, scale: u8, out: &mut Vec<u8>) {
    let unit = 10u128.pow(scale.min(38).into());
    let magnitude = value.unsigned_abs();
    if value < 0 {
        out.push(b'-');
    }
    put!(out, "{}", magnitude / unit);
    if scale > 0 {
        put!(out, ".{:0width$}", magnitude % unit, width = usize::from(scale));
    }
}

fn civil(date: Civil, out: &mut Vec<u8>) {
    let sign = if date.year < 0 { "-" } else { "" };
    put!(out, "{sign}{:04}-{:02}-{:02}", date.year.unsigned_abs(), date.month, date.day);
}

/// Refuses years and days that the Hive version in question would read differently.
fn check_readable(date: Civil, years: std::ops::RangeInclusive<i64>, version: HiveVersion) -> Result<()> {
    if !years.contains(&date.year) {
        return Err(Error::invalid(format!(
            "the year {}: text of Hive {version:?} holds the years {} to {}",
            date.year,
            years.start(),
            years.end()
        )));
    }
    if version <= HiveVersion::V2_3 && Civil::from_hybrid_days(date.hybrid_days()) != date {
        return Err(Error::invalid(format!(
            "{:04}-{:02}-{:02}: the calendar of Hive before 3 lacks this day",
            date.year, date.month, date.day
        )));
    }
    Ok(())
}

pub(super) fn date(days: i32, version: HiveVersion, out: &mut Vec<u8>) -> Result<()> {
    let date = Civil::from_days(days.into());
    let years = match version {
        HiveVersion::V0_8 | HiveVersion::V2_3 => 1..=9999,
        HiveVersion::V3_1 => i64::MIN..=i64::MAX,
        HiveVersion::V4_1 => -9999..=9999,
    };
    check_readable(date, years, version)?;
    civil(date, out);
    Ok(())
}

/// `yyyy-MM-dd HH:mm:ss` and the fraction without trailing zeros.
pub(super) fn timestamp((seconds, nanos): (i64, i64), version: HiveVersion, out: &mut Vec<u8>) -> Result<()> {
    check_instant(seconds, nanos)?;
    let date = Civil::from_days(seconds.div_euclid(SECONDS_PER_DAY));
    let years = if version <= HiveVersion::V2_3 { 1..=9999 } else { i64::MIN..=i64::MAX };
    check_readable(date, years, version)?;
    clock(date, seconds.rem_euclid(SECONDS_PER_DAY), out);
    fraction(nanos, 0, out);
    Ok(())
}

/// `yyyy-MM-dd HH:mm:ss.f UTC`, with at least one digit of the fraction. Years of five digits have a sign, as Java's
/// pattern `yyyy` prints and requires; it prints years before 1 without their era.
pub(super) fn instant((seconds, nanos): (i64, i64), out: &mut Vec<u8>) -> Result<()> {
    check_instant(seconds, nanos)?;
    let date = Civil::from_days(seconds.div_euclid(SECONDS_PER_DAY));
    if date.year < 1 {
        return Err(Error::invalid(format!(
            "the year {}: text of instants begins with the year 1",
            date.year
        )));
    }
    if date.year > 9999 {
        out.push(b'+');
    }
    clock(date, seconds.rem_euclid(SECONDS_PER_DAY), out);
    fraction(nanos, 1, out);
    out.extend_from_slice(b" UTC");
    Ok(())
}

fn clock(date: Civil, of_day: i64, out: &mut Vec<u8>) {
    civil(date, out);
    put!(out, " {:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
}

fn fraction(nanos: i64, least: usize, out: &mut Vec<u8>) {
    let point = out.len();
    put!(out, ".{nanos:09}");
    while out.len() > point + 1 + least && out.ends_with(b"0") {
        out.pop();
    }
    if out.ends_with(b".") {
        out.pop();
    }
}

pub(super) fn year_month(months: i32, out: &mut Vec<u8>) {
    let sign = if months < 0 { "-" } else { "" };
    let months = months.unsigned_abs();
    put!(out, "{sign}{}-{}", months / 12, months % 12);
}

pub(super) fn day_time(seconds: i64, nanos: i32, out: &mut Vec<u8>) {
    // Both fields are first given the same sign, as Hive's constructor does.
    let total = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let sign = if total < 0 { "-" } else { "" };
    let magnitude = total.unsigned_abs();
    let (seconds, nanos) = (magnitude / 1_000_000_000, magnitude % 1_000_000_000);
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    put!(out, "{sign}{} {:02}:{:02}:{:02}.{nanos:09}", hours / 24, hours % 24, minutes % 60, seconds % 60);
}
