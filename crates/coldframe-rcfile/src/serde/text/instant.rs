//! Represents a point of the wall clock, and its value in the requested unit.

use std::cell::Cell as Shared;

use coldframe_core::{Change, Changes};
use coldframe_encoding::calendar::Civil;
use coldframe_encoding::{Error, Result};

use crate::serde::TimestampUnit;

const SECONDS_PER_DAY: i64 = 86_400;

/// Seconds since 1970-01-01 00:00:00 of the wall clock, and nanoseconds 0..1e9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instant {
    pub(super) seconds: i64,
    pub(super) nanos: u32,
}

/// Converts instants to values of a unit, and remembers an instant that does not fit.
pub(super) struct Range {
    unit: TimestampUnit,
    beyond: Shared<Option<Instant>>,
    /// Instants that lost digits.
    cut: Shared<u64>,
    changes: Changes,
}

impl Drop for Range {
    fn drop(&mut self) {
        self.changes.add(Change::Digits, self.cut.get());
    }
}

impl Range {
    pub(super) fn new(unit: TimestampUnit, changes: Changes) -> Self {
        Self { unit, beyond: Shared::new(None), cut: Shared::new(0), changes }
    }

    #[inline(always)]
    pub(super) fn count(&self, instant: Instant) -> Option<i64> {
        let (per_second, fraction) = match self.unit {
            TimestampUnit::Nanosecond => (1_000_000_000, instant.nanos),
            TimestampUnit::Microsecond => {
                self.cut.set(self.cut.get() + u64::from(!instant.nanos.is_multiple_of(1000)));
                (1_000_000, instant.nanos / 1000)
            }
        };
        let count = instant.seconds.checked_mul(per_second).and_then(|n| n.checked_add(i64::from(fraction)));
        count.or_else(|| self.count_widely(instant, per_second, fraction))
    }

    /// Computed in 128 bits, because the seconds of 1677-09-21 alone overflow before the nanoseconds are
    /// added.
    #[cold]
    fn count_widely(&self, instant: Instant, per_second: i64, fraction: u32) -> Option<i64> {
        let count = i128::from(instant.seconds) * i128::from(per_second) + i128::from(fraction);
        let count = i64::try_from(count).ok();
        if count.is_none() {
            self.beyond.set(Some(instant));
        }
        count
    }

    /// An error if an instant did not fit.
    pub(super) fn check(&self) -> Result<()> {
        let Some(instant) = self.beyond.get() else { return Ok(()) };
        let date = Civil::from_days(instant.seconds.div_euclid(SECONDS_PER_DAY));
        let unit = match self.unit {
            TimestampUnit::Nanosecond => {
                "nanoseconds reach from 1677-09-21 to 2262-04-11: set the option timestamp_unit=\"us\""
            }
            TimestampUnit::Microsecond => {
                "microseconds reach from -290307 to 294246: read the column as string"
            }
        };
        Err(Error::schema(format!("timestamp of {:04}-{:02}-{:02}: {unit}", date.year, date.month, date.day)))
    }
}
