//! Reads `timestamp` and `timestamp with local time zone`.
//!
//! ```text
//! | 4 bytes, big-endian: flag, low 31 bits of the seconds |
//!     flag set: | VInt: the nine digits of the nanoseconds, reversed |
//!         negative, !x: | VInt: seconds >> 31 |
//! ```
//!
//! Reversed, the trailing zeros of the digits come first and take no space: 0.12 s is `21`, one byte. Without the
//! second VInt the seconds are 0 to 2^31 - 1 (1970 to 2038). Hive 0.8 has no second VInt, and its seconds
//! wrap around; this writer refuses such values. If there are no nanoseconds, Hive 0.8 leaves a 0 byte after
//! the seconds.
//!
//! Since Hive 3 a `timestamp` is the wall clock as if it were UTC; before, it is an instant.

use std::sync::Arc;

use arrow_array::{ArrayRef, TimestampMicrosecondArray, TimestampNanosecondArray};
use coldframe_core::{Change, Changes};
use coldframe_encoding::calendar::{hybrid_to_proleptic_seconds, proleptic_to_hybrid_seconds};
use coldframe_encoding::varint::put_hadoop_vlong;
use coldframe_encoding::zone::Zone;
use coldframe_encoding::{Cursor, Error, Result};

use super::cells::{CellError, Run, Values, at};
use super::framing::Framing;
use super::has_old_calendar;
use crate::serde::{SerdeOptions, TimestampUnit};

/// What the seconds in the file count.
pub(super) enum Clock {
    /// The wall clock as if it were UTC, or an instant, as in Arrow.
    Proleptic,
    /// The wall clock of UTC in the hybrid calendar.
    Hybrid,
    /// Instants, shown as the wall clock of a zone in the hybrid calendar.
    HybridIn(Arc<Zone>),
}

impl Clock {
    /// The clock of `timestamp` columns.
    pub(super) fn new(options: &SerdeOptions) -> Self {
        match options.timezone {
            _ if !has_old_calendar(options.hive_version) => Self::Proleptic,
            None | Some(chrono_tz::UTC) => Self::Hybrid,
            Some(tz) => Self::HybridIn(Zone::of(tz)),
        }
    }

    /// Converts the file's seconds to Arrow's.
    #[inline]
    fn shown(&self, seconds: i64) -> i64 {
        match self {
            Self::Proleptic => seconds,
            Self::Hybrid => hybrid_to_proleptic_seconds(seconds),
            Self::HybridIn(zone) => hybrid_to_proleptic_seconds(zone.wall_clock(seconds)),
        }
    }

    /// Converts Arrow's seconds to the file's.
    pub(super) fn stored(&self, seconds: i64) -> i64 {
        match self {
            Self::Proleptic => seconds,
            Self::Hybrid => proleptic_to_hybrid_seconds(seconds),
            Self::HybridIn(zone) => zone.instant(proleptic_to_hybrid_seconds(seconds)),
        }
    }
}

pub(super) struct Timestamp {
    clock: Clock,
    unit: TimestampUnit,
    utc: Option<Arc<str>>,
    changes: Changes,
}

impl Timestamp {
    /// `timestamp`
    pub(super) fn wall_clock(options: &SerdeOptions) -> Self {
        let changes = options.changes.clone();
        Self { clock: Clock::new(options), unit: options.timestamp_unit, utc: None, changes }
    }

    /// `timestamp with local time zone`
    pub(super) fn instant(options: &SerdeOptions) -> Self {
        let changes = options.changes.clone();
        Self { clock: Clock::Proleptic, unit: options.timestamp_unit, utc: Some("UTC".into()), changes }
    }

    /// Arrow's values in a unit with `PER_SECOND` ticks per second.
    fn values<const PER_SECOND: i64>(&self, run: &Run<'_>) -> Result<Vec<i64>, CellError> {
        match &self.clock {
            Clock::Proleptic => self.shown_values::<PER_SECOND>(run, |seconds| seconds),
            Clock::Hybrid => self.shown_values::<PER_SECOND>(run, hybrid_to_proleptic_seconds),
            clock => self.shown_values::<PER_SECOND>(run, |seconds| clock.shown(seconds)),
        }
    }

    fn shown_values<const PER_SECOND: i64>(
        &self,
        run: &Run<'_>,
        shown: impl Fn(i64) -> i64,
    ) -> Result<Vec<i64>, CellError> {
        let data = run.data.as_slice();
        let mut cut = 0;
        let mut fraction = |nanos: i64| {
            let divisor = const { 1_000_000_000 / PER_SECOND };
            cut += u64::from(nanos % divisor != 0);
            nanos / divisor
        };
        let (starts, ends) = run.bounds();
        let mut values = vec![0; run.len()];
        let mut unusual = Vec::new();
        for (i, ((start, end), to)) in starts.iter().zip(ends).zip(&mut values).enumerate() {
            match short(data, at(*start), at(*end)) {
                // 31 bits of seconds overflow in no unit, even after the zone's offset is added.
                Some((seconds, nanos)) => {
                    *to = shown(seconds).wrapping_mul(PER_SECOND).wrapping_add(fraction(nanos));
                }
                None if start == end => {}
                None => unusual.push(i),
            }
        }
        for i in unusual {
            let (seconds, nanos) = long(run.cell(i)).map_err(|e| CellError::new(i, e))?;
            // Computed in 128 bits: for the smallest values of a unit the seconds alone overflow, before the
            // fraction is added.
            let value = i128::from(shown(seconds)) * i128::from(PER_SECOND) + i128::from(fraction(nanos));
            let value = i64::try_from(value).map_err(|_| CellError::new(i, self.out_of_range(seconds)))?;
            values.get_mut(i).into_iter().for_each(|to| *to = value);
        }
        self.changes.add(Change::Digits, cut);
        Ok(values)
    }

    fn out_of_range(&self, seconds: i64) -> Error {
        match self.unit {
            TimestampUnit::Nanosecond => Error::schema(format!(
                "the timestamp {seconds} s from 1970 is outside the years 1677 to 2262 of nanoseconds: read it with \
                 timestamp_unit=\"us\""
            )),
            TimestampUnit::Microsecond => {
                Error::corrupt(format!("the timestamp {seconds} s from 1970 exceeds 64 bits of microseconds"))
            }
        }
    }
}

impl Values for Timestamp {
    fn framing(&self) -> Framing {
        Framing::Timestamp
    }

    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        let (nulls, zone) = (run.nulls.clone(), self.utc.clone());
        Ok(match self.unit {
            TimestampUnit::Nanosecond => {
                let values = self.values::<1_000_000_000>(run)?;
                Arc::new(TimestampNanosecondArray::new(values.into(), nulls).with_timezone_opt(zone))
            }
            TimestampUnit::Microsecond => {
                let values = self.values::<1_000_000>(run)?;
                Arc::new(TimestampMicrosecondArray::new(values.into(), nulls).with_timezone_opt(zone))
            }
        })
    }
}

/// Seconds and nanoseconds of a cell with at most one VInt. `None` for other cells, and for cells at the end of the
/// column, since it loads 12 bytes.
#[inline]
fn short(data: &[u8], start: usize, end: usize) -> Option<(i64, i64)> {
    let bytes: &[u8; 12] = data.get(start..)?.first_chunk()?;
    let first = u32::from_be_bytes(*bytes.first_chunk()?);
    let digits = u64::from_be_bytes(*bytes.last_chunk()?);
    let length = end.wrapping_sub(start);
    if length == 4 && first >> 31 == 0 {
        return Some((first.into(), 0));
    }
    // One non-negative byte, or 144 - n and n bytes: nine digits fit four.
    let payload = u32::try_from(length.wrapping_sub(5)).ok().filter(|n| *n <= 4)?;
    let lead = u32::from(digits.to_be_bytes()[0]);
    let single = payload == 0;
    let wrong = if single { lead > 127 } else { lead != 144 - payload };
    let number = if single { digits >> 56 } else { (digits << 8) >> ((64 - 8 * payload) & 63) };
    if wrong | (first >> 31 == 0) | (number > 999_999_999) {
        return None;
    }
    Some(((first & 0x7fff_ffff).into(), nanos(u32::try_from(number).unwrap_or(0))))
}

/// Seconds and nanoseconds of any cell.
fn long(cell: &[u8]) -> Result<(i64, i64)> {
    let mut cell = Cursor::new(cell, 0);
    let first = cell.u32_be()?;
    let low = i64::from(first & 0x7fff_ffff);
    if first >> 31 == 0 {
        // Hive 0.8 writes the nanoseconds' VInt even if it is 0 and the flag is not set.
        if cell.rest() != [0] {
            cell.finish()?;
        }
        return Ok((low, 0));
    }
    let stored = cell.hadoop_vint()?;
    let digits = u32::try_from(if stored < 0 { !stored } else { stored }).unwrap_or(u32::MAX);
    if digits > 999_999_999 {
        return Err(Error::corrupt(format!("expected nine digits of nanoseconds, found {digits}")));
    }
    let high = if stored < 0 { cell.hadoop_vlong()? } else { 0 };
    cell.finish()?;
    if high.unsigned_abs() > 1 << 31 {
        return Err(Error::corrupt(format!("expected seconds of at most 62 bits, found {high} << 31")));
    }
    Ok(((high << 31) | low, nanos(digits)))
}

/// Appends a timestamp.
pub(super) fn put(out: &mut Vec<u8>, seconds: i64, nanos: u32) {
    let high = seconds >> 31;
    let digits = i64::from(reversed(nanos));
    let flag = if high != 0 || digits != 0 { 1 << 31 } else { 0 };
    let low = u32::try_from(seconds & 0x7fff_ffff).unwrap_or(0);
    out.extend_from_slice(&(low | flag).to_be_bytes());
    if flag != 0 {
        put_hadoop_vlong(out, if high != 0 { !digits } else { digits });
    }
    if high != 0 {
        put_hadoop_vlong(out, high);
    }
}

#[inline]
fn nanos(digits: u32) -> i64 {
    reversed(digits).into()
}

/// Nine digits, the last digit first.
#[inline]
fn reversed(digits: u32) -> u32 {
    let three = |n: u32| usize::try_from(n).ok().and_then(|n| REVERSED.get(n)).map_or(0, |r| u32::from(*r));
    three(digits % 1000) * 1_000_000 + three(digits / 1000 % 1000) * 1000 + three(digits / 1_000_000)
}

/// Three digits, the last digit first.
static REVERSED: [u16; 1000] = {
    let mut table = [0; 1000];
    let mut number: u16 = 0;
    let mut rest: &mut [u16] = &mut table;
    while let Some((first, others)) = rest.split_first_mut() {
        *first = number % 10 * 100 + number / 10 % 10 * 10 + number / 100;
        number += 1;
        rest = others;
    }
    table
};
