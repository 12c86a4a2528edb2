//! The calendar and the clock of Hive before 3: those of `java.util`.
//!
//! The calendar is Julian before 1582-10-15 and Gregorian from then on, so a day number before that date stands for
//! another year, month and day than in Arrow, whose dates are Gregorian throughout. What a user of Hive saw was year,
//! month and day; they are kept, and the day number changes.
//!
//! A zone's offset is the one of the zone database from 1900 on. Before that, `sun.util.calendar.ZoneInfo` has no
//! transitions and uses the standard time that the zone has today, not the local mean time.

use std::sync::OnceLock;

use chrono::{DateTime, Datelike, NaiveDate, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use crate::serde::calendar::Civil;

/// 1582-10-15, the first Gregorian day.
pub(super) const HYBRID_CUTOVER: i64 = -141_427;

const SECONDS_PER_DAY: i64 = 86_400;

/// 1900-01-01, where the transitions of `java.util.TimeZone` start.
const YEAR_1900: i64 = -2_208_988_800;

/// 2100-01-01: the zone database's rules are expanded up to here. They repeat with the calendar.
const YEAR_2100: i64 = 4_102_444_800;

/// The Gregorian day with the year, month and day that the hybrid calendar gives `day`.
///
/// (A 29th of February that only the Julian calendar has becomes the 1st of March.)
pub(super) fn hybrid_to_proleptic(day: i64) -> i64 {
    if day >= HYBRID_CUTOVER { day } else { Civil::from_hybrid_days(day).days() }
}

/// The day of the hybrid calendar with the year, month and day that the Gregorian calendar gives `day`.
pub(super) fn proleptic_to_hybrid(day: i64) -> i64 {
    if day >= HYBRID_CUTOVER { day } else { Civil::from_days(day).hybrid_days() }
}

/// `hybrid_to_proleptic` for seconds.
pub(super) fn hybrid_to_proleptic_seconds(seconds: i64) -> i64 {
    let day = seconds.div_euclid(SECONDS_PER_DAY);
    seconds.saturating_add((hybrid_to_proleptic(day) - day).saturating_mul(SECONDS_PER_DAY))
}

/// `proleptic_to_hybrid` for seconds.
pub(super) fn proleptic_to_hybrid_seconds(seconds: i64) -> i64 {
    let day = seconds.div_euclid(SECONDS_PER_DAY);
    seconds.saturating_add((proleptic_to_hybrid(day) - day).saturating_mul(SECONDS_PER_DAY))
}

/// A zone's offsets from UTC, as a JVM has them.
pub(super) struct Zone {
    tz: Tz,
    transitions: OnceLock<Vec<(i64, i64)>>,
}

impl Zone {
    pub(super) fn new(tz: Tz) -> Self {
        Self { tz, transitions: OnceLock::new() }
    }

    /// The wall clock, as seconds since 1970, that the zone shows at an instant.
    pub(super) fn wall_clock(&self, instant: i64) -> i64 {
        let (shown, shift) = within_rules(instant);
        let transitions = self.transitions();
        let next = transitions.partition_point(|(start, _)| *start <= shown);
        let offset = next.checked_sub(1).and_then(|i| transitions.get(i)).map_or(0, |(_, offset)| *offset);
        shown.saturating_add(offset).saturating_add(shift)
    }

    /// The instant at which the zone shows a wall clock. What a change of clocks skips is taken with the offset before
    /// the change, what it repeats is the second time.
    pub(super) fn instant(&self, wall_clock: i64) -> i64 {
        let (shown, shift) = within_rules(wall_clock);
        let transitions = self.transitions();
        let next = transitions.partition_point(|(start, offset)| start.saturating_add(*offset) <= shown);
        let offset = next.checked_sub(1).and_then(|i| transitions.get(i)).map_or(0, |(_, offset)| *offset);
        shown.saturating_sub(offset).saturating_add(shift)
    }

    /// The instants at which the offset changes, and the offset from then on.
    fn transitions(&self) -> &[(i64, i64)] {
        self.transitions.get_or_init(|| {
            let mut found = vec![(i64::MIN, self.standard_offset())];
            let mut before = None;
            for day in (YEAR_1900..YEAR_2100).step_by(usize::try_from(SECONDS_PER_DAY).unwrap_or(usize::MAX))
            {
                let offset = self.offset(day);
                match before {
                    None => found.push((day, offset)),
                    Some(old) if old != offset => {
                        found.push((self.change(day - SECONDS_PER_DAY, day), offset))
                    }
                    Some(_) => {}
                }
                before = Some(offset);
            }
            found
        })
    }

    /// When the offset at `after` began, knowing that it is another one at `before`.
    fn change(&self, mut before: i64, mut after: i64) -> i64 {
        let new = self.offset(after);
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            if self.offset(middle) == new { after = middle } else { before = middle }
        }
        after
    }

    fn offset(&self, instant: i64) -> i64 {
        let utc = DateTime::<Utc>::from_timestamp(instant, 0).unwrap_or_default().naive_utc();
        self.tz.offset_from_utc_datetime(&utc).fix().local_minus_utc().into()
    }

    /// Today's standard time: the smallest offset in the last year of the rules.
    fn standard_offset(&self) -> i64 {
        (1..=12).map(|month| self.offset(YEAR_2100 - month * 30 * SECONDS_PER_DAY)).min().unwrap_or(0)
    }
}

/// An instant (or wall clock) for which the rules are known and at which they say the same, and what to add to come
/// back. From 2100 on, that is the same day of a year before with as many days and the same weekdays.
fn within_rules(seconds: i64) -> (i64, i64) {
    if seconds < YEAR_2100 - SECONDS_PER_DAY {
        return (seconds, 0);
    }
    let first_day = |year| NaiveDate::from_ymd_opt(year, 1, 1);
    let found = DateTime::<Utc>::from_timestamp(seconds, 0).and_then(|t| {
        let this = first_day(t.year())?;
        let alike = |d: &NaiveDate| d.weekday() == this.weekday() && d.leap_year() == this.leap_year();
        let like = (2060..2099).filter_map(first_day).rfind(alike)?;
        Some(this.signed_duration_since(like))
    });
    let shift = found.map_or(0, |d: TimeDelta| d.num_seconds());
    (seconds - shift, shift)
}
