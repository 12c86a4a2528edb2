//! The zone that a writer's wall clock was in, with the offsets that Java gives it.
//!
//! A timestamp is stored as seconds from 2015-01-01 00:00:00 in the writer's zone, so the zone is needed to get the wall clock
//! back. It is that of `java.util.TimeZone`, which differs from the time zone database: before 1900 it has the standard
//! offset of today, and it takes `GMT+05:30` and the three-letter names of old. Behind the database's last year the rules go
//! on: a later year is looked up as one with the same calendar.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Offset};
use chrono_tz::{OffsetComponents, Tz};
use coldframe_core::{Error, Result};

/// 1900-01-01T00:00:00Z.
const YEAR_1900: i64 = -2_208_988_800;
/// 2015-01-01T00:00:00 in UTC.
const BASE: i64 = 1_420_070_400;
/// 2038-01-01T00:00:00Z: later years are as the 28 from here on.
const YEAR_2038: i64 = 2_145_916_800;
/// 2066-01-01T00:00:00Z.
const YEAR_2066: i64 = 3_029_529_600;
/// How far transitions are apart at least.
const STEP: i64 = 6 * 3600;

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
pub(crate) struct Zone {
    /// Instants from which an offset holds, in seconds; the first is the least there is.
    starts: Vec<i64>,
    /// The offsets.
    offsets: Vec<i64>,
}

/// Zones made so far: a table takes some milliseconds.
static ZONES: LazyLock<Mutex<HashMap<String, Arc<Zone>>>> = LazyLock::new(Mutex::default);

impl Zone {
    /// The zone with a Java name; UTC without one.
    pub(crate) fn named(name: Option<&str>) -> Result<Arc<Self>> {
        let name = name.unwrap_or("UTC");
        if let Some(zone) = ZONES.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(zone.clone());
        }
        let zone = Arc::new(Self::new(name)?);
        ZONES.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), zone.clone());
        Ok(zone)
    }

    fn new(name: &str) -> Result<Self> {
        if let Some(offset) = fixed(name) {
            return Ok(Self { starts: vec![i64::MIN], offsets: vec![offset] });
        }
        let known = JAVA_NAMES.iter().find(|(java, _)| *java == name).map_or(name, |(_, zone)| zone);
        let zone: Tz = known
            .parse()
            .map_err(|_| Error::unsupported(format!("the time zone \"{}\"", name.escape_default())))?;
        Ok(Self::of(zone))
    }

    fn of(zone: Tz) -> Self {
        let present = standard_offset(zone, YEAR_2066 - 1);
        let (mut starts, mut offsets) = (vec![i64::MIN], vec![present]);
        let mut add = |start: i64, offset: i64| {
            if offsets.last() != Some(&offset) {
                starts.push(start);
                offsets.push(offset);
            }
        };
        let mut at = YEAR_1900;
        let mut offset = offset(zone, at);
        add(at, offset);
        while at < YEAR_2066 {
            let next = at + STEP;
            let then = self::offset(zone, next);
            if then != offset {
                let (mut before, mut behind) = (at, next);
                while behind - before > 1 {
                    let middle = before + (behind - before) / 2;
                    if self::offset(zone, middle) == offset { before = middle } else { behind = middle }
                }
                add(behind, then);
                offset = then;
            }
            at = next;
        }
        if starts.len() == 2 && offsets.last() == offsets.first() {
            starts.truncate(1);
            offsets.truncate(1);
        }
        Self { starts, offsets }
    }

    /// Whether all instants have the same offset.
    pub(crate) fn is_fixed(&self) -> bool {
        self.starts.len() == 1
    }

    /// Seconds of the instant that timestamps count from.
    pub(crate) fn base(&self) -> i64 {
        // The wall clock is known, the instant is not: the offset half a day around is the same in January.
        BASE - self.offset(BASE)
    }

    /// The offset of the wall clock at an instant.
    pub(crate) fn offset(&self, instant: i64) -> i64 {
        self.span(instant).2
    }

    /// From when and to when an instant's offset holds, and the offset.
    pub(crate) fn span(&self, instant: i64) -> (i64, i64, i64) {
        if instant >= YEAR_2066 && !self.is_fixed() {
            let like = like_year(instant);
            let (start, end, offset) = self.span(like);
            let shift = instant - like;
            // What begins before the year or ends behind it is not the same in another year.
            let day = instant - instant.rem_euclid(86_400);
            return ((start + shift).max(day), (end.saturating_add(shift)).min(day + 86_400), offset);
        }
        let index = self.starts.partition_point(|start| *start <= instant);
        let start = self.starts.get(index.wrapping_sub(1)).copied().unwrap_or(i64::MIN);
        let end =
            self.starts.get(index).copied().unwrap_or(if self.is_fixed() { i64::MAX } else { YEAR_2066 });
        (start, end, self.offsets.get(index.wrapping_sub(1)).copied().unwrap_or(0))
    }
}

/// The offset of `UTC`, `GMT+05:30`, `UTC-8`, `+0100`.
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
    use chrono::TimeZone;
    zone.offset_from_utc_datetime(&naive(instant)).fix().local_minus_utc().into()
}

fn standard_offset(zone: Tz, instant: i64) -> i64 {
    use chrono::TimeZone;
    zone.offset_from_utc_datetime(&naive(instant)).base_utc_offset().num_seconds()
}

/// An instant of 2038 to 2065 that has the same place in a year of the same calendar as one of a later year.
fn like_year(instant: i64) -> i64 {
    // Four hundred years are 146097 days, a whole number of weeks.
    let cycle = 146_097 * 86_400;
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
    fn offsets_are_those_of_java() {
        let zone = Zone::named(Some("America/Los_Angeles")).unwrap();
        assert_eq!(zone.offset(1_420_070_400), -8 * 3600);
        assert_eq!(zone.offset(1_436_000_000), -7 * 3600);
        assert_eq!(zone.base(), 1_420_070_400 + 8 * 3600);
        // Before 1900: today's standard offset, not local mean time.
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
}
