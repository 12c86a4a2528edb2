//! Time zones with the offsets that Java uses.
//!
//! Hive's and ORC's writers convert wall clocks to instants with `java.util.TimeZone`, which differs from the
//! time zone database:
//!
//! * Before 1900, Java's zones have no transitions and use the zone's standard time of today, not the local
//!   mean time.
//! * Java accepts names such as `GMT+05:30` and the old three-letter names.
//!
//! After the last year in the table, the last rules of a zone stay in force: a later year has the offsets of
//! a year in the table that has the same calendar.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::{Error, Result};

/// 1900-01-01T00:00:00Z, where the transitions of `java.util.TimeZone` start.
const YEAR_1900: i64 = -2_208_988_800;
/// 2038-01-01T00:00:00Z: later years map to the 28 years from this instant on.
const YEAR_2038: i64 = 2_145_916_800;
/// 2066-01-01T00:00:00Z.
const YEAR_2066: i64 = 3_029_529_600;
/// The minimum distance between transitions.
const STEP: i64 = 6 * 3600;
const DAY: i64 = 86_400;

/// Java's names that the database lacks.
const JAVA_NAMES: &[(&str, &str)] = &[
    ("ACT", "Australia/Darwin"),
    ("AET", "Australia/Sydney"),
    ("AGT", "America/Argentina/Buenos_Aires"),
    ("ART", "Africa/Cairo"),
    ("AST", "America/Anchorage"),
    ("BET", "America/Sao_Paulo"),
    ("BST", "Asia/Dhaka"),
    ("CAT", "Africa/Harare"),
    ("CNT", "America/St_Johns"),
    ("CST", "America/Chicago"),
    ("CTT", "Asia/Shanghai"),
    ("EAT", "Africa/Addis_Ababa"),
    ("ECT", "Europe/Paris"),
    ("IET", "America/Indiana/Indianapolis"),
    ("IST", "Asia/Kolkata"),
    ("JST", "Asia/Tokyo"),
    ("MIT", "Pacific/Apia"),
    ("NET", "Asia/Yerevan"),
    ("NST", "Pacific/Auckland"),
    ("PLT", "Asia/Karachi"),
    ("PNT", "America/Phoenix"),
    ("PRT", "America/Puerto_Rico"),
    ("PST", "America/Los_Angeles"),
    ("SST", "Pacific/Guadalcanal"),
    ("VST", "Asia/Ho_Chi_Minh"),
];

/// A zone as a table of offsets.
#[derive(Debug)]
pub struct Zone {
    /// The instants, in seconds, from which each offset applies. The first is the smallest possible.
    starts: Vec<i64>,
    /// The offset that applies from each instant on, in seconds.
    offsets: Vec<i64>,
    /// The zone's rules before 1900, with local mean times; `None` for a fixed offset.
    rules: Option<Tz>,
}

/// A cache of zones, because building a table takes several milliseconds.
static ZONES: LazyLock<Mutex<HashMap<String, Arc<Zone>>>> = LazyLock::new(Mutex::default);

impl Zone {
    /// The zone with this Java name; UTC if there is no name.
    pub fn named(name: Option<&str>) -> Result<Arc<Self>> {
        let name = name.unwrap_or("UTC");
        Self::kept(name, || {
            if let Some(offset) = fixed(name) {
                return Ok(Self { starts: vec![i64::MIN], offsets: vec![offset], rules: None });
            }
            let known = JAVA_NAMES.iter().find(|(java, _)| *java == name).map_or(name, |(_, zone)| zone);
            let zone: Tz = known
                .parse()
                .map_err(|_| Error::unsupported(format!("the time zone \"{}\"", name.escape_default())))?;
            Ok(Self::table(zone))
        })
    }

    /// The zone for a zone of the time zone database.
    pub fn of(zone: Tz) -> Arc<Self> {
        Self::kept(zone.name(), || Ok(Self::table(zone))).unwrap_or_else(|_| Arc::new(Self::table(zone)))
    }

    fn kept(name: &str, make: impl FnOnce() -> Result<Self>) -> Result<Arc<Self>> {
        if let Some(zone) = ZONES.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(zone.clone());
        }
        let zone = Arc::new(make()?);
        ZONES.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), zone.clone());
        Ok(zone)
    }

    fn table(zone: Tz) -> Self {
        let offsets = vec![standard_offset(zone)];
        let mut zone_table = Self { starts: vec![i64::MIN], offsets, rules: Some(zone) };
        let mut at = YEAR_1900;
        let mut old = offset(zone, at);
        zone_table.change(at, old);
        while at < YEAR_2066 {
            let next = at + STEP;
            let new = offset(zone, next);
            if new != old {
                let (mut before, mut behind) = (at, next);
                while behind - before > 1 {
                    let middle = before + (behind - before) / 2;
                    if offset(zone, middle) == old { before = middle } else { behind = middle }
                }
                zone_table.change(behind, new);
                old = new;
            }
            at = next;
        }
        zone_table
    }

    /// Adds the offset that applies from `start` on, if it differs from the previous offset.
    fn change(&mut self, start: i64, offset: i64) {
        if self.offsets.last() != Some(&offset) {
            self.starts.push(start);
            self.offsets.push(offset);
        }
    }

    /// Whether all instants have the same offset.
    fn is_fixed(&self) -> bool {
        self.starts.len() == 1
    }

    /// The offset of the wall clock at an instant.
    pub fn offset(&self, instant: i64) -> i64 {
        let within = if self.is_beyond(instant) { like_year(instant) } else { instant };
        let next = self.starts.partition_point(|start| *start <= within);
        self.offsets.get(next.wrapping_sub(1)).copied().unwrap_or(0)
    }

    /// The first and the last instant of the period around `instant` in which the offset is the same, and
    /// that offset.
    pub fn span(&self, instant: i64) -> (i64, i64, i64) {
        if self.is_beyond(instant) {
            let like = like_year(instant);
            let (start, end, offset) = self.span(like);
            let shift = instant - like;
            // A span that crosses the start or end of the year differs from year to year, so the result is
            // just the day.
            let day = instant - instant.rem_euclid(DAY);
            return ((start + shift).max(day), (end.saturating_add(shift)).min(day + DAY), offset);
        }
        let index = self.starts.partition_point(|start| *start <= instant);
        let start = self.starts.get(index.wrapping_sub(1)).copied().unwrap_or(i64::MIN);
        let end =
            self.starts.get(index).copied().unwrap_or(if self.is_fixed() { i64::MAX } else { YEAR_2066 });
        (start, end, self.offsets.get(index.wrapping_sub(1)).copied().unwrap_or(0))
    }

    /// The wall clock at an instant, as seconds since 1970.
    pub fn wall_clock(&self, instant: i64) -> i64 {
        instant.saturating_add(self.offset(instant))
    }

    /// The instant of a wall clock. A skipped time uses the offset before the transition; a repeated time
    /// means the second occurrence.
    pub fn instant(&self, wall_clock: i64) -> i64 {
        let within = if self.is_beyond(wall_clock) { like_year(wall_clock) } else { wall_clock };
        // Transitions are days apart and offsets differ by hours, so wall clocks have the order of instants.
        let next = partition(self.starts.len(), |i| {
            let change = self.starts.get(i).zip(self.offsets.get(i));
            change.is_some_and(|(start, offset)| start.saturating_add(*offset) <= within)
        });
        let offset = self.offsets.get(next.wrapping_sub(1)).copied().unwrap_or(0);
        wall_clock.saturating_sub(offset)
    }

    /// Whether both zones have the same wall clock at any time.
    pub fn has_same_rules(&self, other: &Self) -> bool {
        self.starts == other.starts && self.offsets == other.offsets
    }

    /// The instant at which `other` has the wall clock that this zone has at `instant`, as ORC's Java reader
    /// computes it from the zones of writer and reader.
    pub fn instant_in(&self, other: &Self, instant: i64) -> i64 {
        let wall_clock = self.wall_clock(instant);
        let near = wall_clock.saturating_sub(other.offset(instant));
        wall_clock.saturating_sub(other.offset(near))
    }

    /// The instant of a wall clock before 1900 by the rules of `java.time`, which have local mean times.
    /// Of a repeated time it is the second occurrence; a skipped time has the offset before it.
    pub fn early_instant(&self, wall_clock: i64) -> i64 {
        let Some(zone) = self.rules else { return self.instant(wall_clock) };
        let day = |seconds: i64| offset(zone, seconds.saturating_sub(DAY));
        let before = day(wall_clock);
        let later = offset(zone, wall_clock.saturating_add(DAY));
        let with = |by: i64| {
            let instant = wall_clock.saturating_sub(by);
            (offset(zone, instant) == by).then_some(instant)
        };
        with(later).or_else(|| with(before)).unwrap_or(wall_clock.saturating_sub(before))
    }

    fn is_beyond(&self, seconds: i64) -> bool {
        seconds >= YEAR_2066 && !self.is_fixed()
    }
}

/// The number of indexes in `0..n` for which `begun` is true; these indexes must all come before the other
/// indexes.
fn partition(n: usize, begun: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if begun(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// Parses the offset in a name such as `UTC`, `GMT+05:30`, `UTC-8` or `+0100`.
fn fixed(name: &str) -> Option<i64> {
    if matches!(name, "UTC" | "GMT" | "Z" | "UT" | "Etc/UTC" | "Etc/GMT" | "GMT0" | "Zulu" | "Universal") {
        return Some(0);
    }
    let rest = ["GMT", "UTC", "UT", ""].iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let (sign, rest) = match rest.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let digits: Vec<i64> =
        rest.chars().filter(|c| *c != ':').map(|c| c.to_digit(10).map(i64::from)).collect::<Option<_>>()?;
    let seconds = match digits.as_slice() {
        [h] => h * 3600,
        [h, i] => (h * 10 + i) * 3600,
        [h, m, n] => h * 3600 + (m * 10 + n) * 60,
        [h, i, m, n] => (h * 10 + i) * 3600 + (m * 10 + n) * 60,
        [h, i, m, n, s, t] => (h * 10 + i) * 3600 + (m * 10 + n) * 60 + s * 10 + t,
        _ => return None,
    };
    Some(sign * seconds)
}

fn naive(instant: i64) -> NaiveDateTime {
    DateTime::from_timestamp(instant, 0).unwrap_or_default().naive_utc()
}

fn offset(zone: Tz, instant: i64) -> i64 {
    zone.offset_from_utc_datetime(&naive(instant)).fix().local_minus_utc().into()
}

/// Today's standard time, as in Java's data: the smallest offset in the last year of the table. (For Ireland,
/// the database treats winter time as the exception, Java summer time.)
fn standard_offset(zone: Tz) -> i64 {
    (1..=12).map(|month| offset(zone, YEAR_2066 - month * 30 * DAY)).min().unwrap_or(0)
}

/// Maps an instant (or wall clock) of a later year to the same position in a year of 2038 to 2065 with the
/// same calendar.
fn like_year(instant: i64) -> i64 {
    // Four hundred years are 146097 days, a whole number of weeks.
    let cycle = 146_097 * DAY;
    let within = (instant - YEAR_2038).rem_euclid(cycle) + YEAR_2038;
    let date = naive(within).date();
    let begin = |year: i32| NaiveDate::from_ymd_opt(year, 1, 1).unwrap_or_default();
    let same = |year: &i32| {
        let first = begin(*year);
        first.weekday() == begin(date.year()).weekday() && first.leap_year() == date.leap_year()
    };
    let year = (2038..2066).find(same).unwrap_or(2038);
    let shift = begin(date.year()).signed_duration_since(begin(year)).num_seconds();
    within - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_equal_the_offsets_of_java() {
        let zone = Zone::named(Some("America/Los_Angeles")).unwrap();
        assert_eq!(zone.offset(1_420_070_400), -8 * 3600);
        assert_eq!(zone.offset(1_436_000_000), -7 * 3600);
        // Before 1900, the offset is today's standard offset and not the local mean time.
        assert_eq!(zone.offset(-3_000_000_000), -8 * 3600);
        assert_eq!(Zone::named(Some("Asia/Kathmandu")).unwrap().offset(-3_000_000_000), 20_700);
        // 2100-07-01 and 2500-07-01 are in summer.
        assert_eq!(zone.offset(4_118_083_200), -7 * 3600);
        assert_eq!(zone.offset(16_741_036_800), -7 * 3600);
    }

    #[test]
    fn java_knows_names_that_the_database_does_not() {
        assert_eq!(Zone::named(Some("GMT+05:30")).unwrap().offset(0), 19_800);
        assert_eq!(Zone::named(Some("GMT-8")).unwrap().offset(0), -8 * 3600);
        assert_eq!(Zone::named(Some("PST")).unwrap().offset(0), -8 * 3600);
        assert!(Zone::named(None).unwrap().is_fixed());
        let e = Zone::named(Some("Mars/Olympus")).unwrap_err();
        assert_eq!(e.to_string(), "the time zone \"Mars/Olympus\"");
    }

    #[test]
    fn a_span_has_a_single_offset_and_wall_clocks_convert_back() {
        for zone in
            [chrono_tz::America::Los_Angeles, chrono_tz::Australia::Lord_Howe, chrono_tz::Asia::Tehran]
        {
            let zone = Zone::of(zone);
            for instant in (-3_000_000_000i64..20_000_000_000).step_by(10_000_019) {
                let (start, end, offset) = zone.span(instant);
                assert!(start <= instant && instant < end);
                assert_eq!(
                    (zone.offset(start), zone.offset(instant), zone.offset(end - 1)),
                    (offset, offset, offset)
                );
                let wall = zone.wall_clock(instant);
                let back = zone.instant(wall);
                // A repeated wall clock means its second occurrence.
                assert!(back == instant || zone.wall_clock(back) == wall, "{instant} {wall} {back}");
            }
        }
    }

    #[test]
    fn clocks_that_skip_and_repeat_are_converted_as_in_java() {
        let zone = Zone::of(chrono_tz::America::Los_Angeles);
        let seconds = |text: &str| text.parse::<chrono::NaiveDateTime>().unwrap().and_utc().timestamp();
        // 2:30 was skipped and means 3:30. 1:30 occurred twice, and the second occurrence is meant.
        assert_eq!(zone.instant(seconds("2021-03-14T02:30:00")), seconds("2021-03-14T10:30:00"));
        assert_eq!(zone.instant(seconds("2021-03-14T03:00:00")), seconds("2021-03-14T10:00:00"));
        assert_eq!(zone.instant(seconds("2021-11-07T01:30:00")), seconds("2021-11-07T09:30:00"));
        assert_eq!(zone.wall_clock(seconds("2021-11-07T08:30:00")), seconds("2021-11-07T01:30:00"));
        // Before 1900, today's standard time applies and not the local mean time of -7:52:58.
        assert_eq!(zone.wall_clock(seconds("1850-01-01T08:00:00")), seconds("1850-01-01T00:00:00"));
        // Daylight saving time continues after the end of the zone database.
        assert_eq!(zone.wall_clock(seconds("2101-07-01T07:00:00")), seconds("2101-07-01T00:00:00"));
        assert_eq!(zone.wall_clock(seconds("9999-12-31T08:00:00")), seconds("9999-12-31T00:00:00"));
        // Dublin's standard offset is GMT, although the database treats its winter time as the exception.
        assert_eq!(Zone::of(chrono_tz::Europe::Dublin).wall_clock(0), 3600);
        assert_eq!(Zone::of(chrono_tz::Europe::Dublin).wall_clock(-5_000_000_000), -5_000_000_000);
    }

    #[test]
    fn readers_have_the_instants_that_orc_and_spark_compute() {
        let zone = |name: &str| Zone::named(Some(name)).unwrap();
        let seconds = |text: &str| text.parse::<chrono::NaiveDateTime>().unwrap().and_utc().timestamp();
        let (new_york, berlin) = (zone("America/New_York"), zone("Europe/Berlin"));
        // 2:30 in Berlin, which New York's clocks skip.
        let skipped = seconds("2021-03-14T01:30:00");
        assert_eq!(berlin.wall_clock(skipped), seconds("2021-03-14T02:30:00"));
        assert_eq!(berlin.instant_in(&new_york, skipped), seconds("2021-03-14T06:30:00"));
        assert_eq!(new_york.instant_in(&new_york, skipped), skipped);
        assert!(zone("Europe/Rome").has_same_rules(&zone("Europe/Rome")));
        assert!(!new_york.has_same_rules(&berlin));
        // Local mean time: 4:56:02 behind Greenwich until 1883-11-18, when a few minutes occurred twice.
        assert_eq!(new_york.early_instant(seconds("1883-11-18T12:00:00")), seconds("1883-11-18T17:00:00"));
        assert_eq!(new_york.early_instant(seconds("1883-11-17T12:00:00")), seconds("1883-11-17T16:56:02"));
        assert_eq!(new_york.early_instant(seconds("1899-07-01T12:00:00")), seconds("1899-07-01T17:00:00"));
        assert_eq!(zone("GMT+05:30").early_instant(19_800), 0);
    }
}
