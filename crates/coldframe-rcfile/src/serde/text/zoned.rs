//! Reads `timestamp with local time zone`: `2020-01-31 23:59:59.5 Europe/Paris`, an instant.
//!
//! Time, fraction and zone may be absent; the default zone is the session's, or UTC if none is set. Source:
//! Hive's `LazyTimestampLocalTZ` and `TimestampTZUtil`.

use chrono::offset::LocalResult;
use chrono::{DateTime, FixedOffset, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;
use coldframe_encoding::Result;
use coldframe_encoding::calendar::Civil;

use super::cells::Cell;
use super::digits::POWERS_OF_TEN;
use super::fixed::Parse;
use super::instant::{Instant, Range};
use super::scanner::Scanner;

pub(super) struct Zoned {
    session: Tz,
    range: Range,
}

impl Zoned {
    pub(super) fn new(session: Option<Tz>, range: Range) -> Self {
        Self { session: session.unwrap_or(Tz::UTC), range }
    }
}

impl Parse for Zoned {
    type Value = i64;

    fn parse(&self, cell: Cell<'_>) -> Option<i64> {
        if cell.len < 8 {
            return None;
        }
        let (local, zone) = local(cell.bytes())?;
        let offset = match zone {
            [] => offset_at(&self.session, local.seconds)?,
            _ => named_offset(std::str::from_utf8(zone).ok()?, local.seconds)?,
        };
        self.range.count(Instant { seconds: local.seconds - i64::from(offset), ..local })
    }

    fn check(&self) -> Result<()> {
        self.range.check()
    }
}

/// Parses `yyyy-MM-dd[ HH:mm:ss[.n]][ ]` as wall clock, and returns the rest, which is a zone.
fn local(text: &[u8]) -> Option<(Instant, &[u8])> {
    let mut scanner = Scanner::new(text);
    let year = scanner.padded_year()?;
    scanner.literal(b'-')?;
    let month = scanner.unsigned(2, 2)?;
    scanner.literal(b'-')?;
    let mut date = Civil::new(year, month, scanner.unsigned(2, 2)?);
    if (29..=31).contains(&date.day) && (1..=12).contains(&month) {
        // Java's resolver is in SMART mode: the 31st of a shorter month is its last day.
        while !date.exists() {
            date.day -= 1;
        }
    }
    let (mut of_day, mut nanos) = (0, 0);
    let space = scanner.literal(b' ').is_some();
    if space && scanner.peek().is_some_and(|b| b.is_ascii_digit()) {
        let hour = scanner.unsigned(2, 2)?;
        scanner.literal(b':')?;
        let minute = scanner.unsigned(2, 2)?;
        scanner.literal(b':')?;
        let second = scanner.unsigned(2, 2)?;
        if hour >= 24 || minute >= 60 || second >= 60 {
            return None;
        }
        of_day = hour * 3600 + minute * 60 + second;
        if scanner.literal(b'.').is_some() {
            nanos = fraction(&mut scanner)?;
        }
        // One blank may precede the zone.
        let _ = scanner.literal(b' ');
    }
    let seconds = date.exists().then(|| date.days() * 86_400 + of_day)?;
    Some((Instant { seconds, nanos }, scanner.rest()))
}

fn fraction(scanner: &mut Scanner<'_>) -> Option<u32> {
    let before = scanner.rest().len();
    let value = u64::try_from(scanner.unsigned(1, 9)?).ok()?;
    let digits = before - scanner.rest().len();
    u32::try_from(value * POWERS_OF_TEN.get(9 - digits)?).ok()
}

/// The zone's offset in seconds at that wall clock: the earlier offset if the wall clock repeats, the offset before the
/// gap if it does not exist, as in `java.time.ZonedDateTime`.
fn offset_at(zone: &Tz, local_seconds: i64) -> Option<i32> {
    let local: NaiveDateTime = DateTime::from_timestamp(local_seconds, 0)?.naive_utc();
    let offset = match zone.offset_from_local_datetime(&local) {
        LocalResult::Single(offset) | LocalResult::Ambiguous(offset, _) => Some(offset),
        LocalResult::None => {
            let before = local.checked_sub_signed(chrono::TimeDelta::hours(26))?;
            zone.offset_from_local_datetime(&before).latest()
        }
    };
    offset.map(|offset| offset.fix().local_minus_utc())
}

/// The offset of a region (`Europe/Paris`), of `Z`, or of `[UTC|GMT|UT][+-]h[h][:]mm[[:]ss]`.
fn named_offset(zone: &str, local_seconds: i64) -> Option<i32> {
    if zone == "Z" || zone == "z" {
        return Some(0);
    }
    let offset = ["UTC", "GMT", "UT"].iter().find_map(|prefix| zone.strip_prefix(prefix)).unwrap_or(zone);
    match offset.as_bytes() {
        [] => Some(0),
        [b'+', digits @ ..] => fixed(digits),
        [b'-', digits @ ..] => fixed(digits).map(|seconds| -seconds),
        _ => offset_at(&zone.parse::<Tz>().ok()?, local_seconds),
    }
}

fn fixed(text: &[u8]) -> Option<i32> {
    let fields: Vec<&[u8]> = match text.contains(&b':') {
        true => text.split(|&b| b == b':').collect(),
        false if text.len() <= 2 => vec![text],
        false => text.chunks(2).collect(),
    };
    let number = |field: &&[u8]| {
        let valid = (1..=2).contains(&field.len()) && field.iter().all(u8::is_ascii_digit);
        valid.then(|| field.iter().fold(0, |n, b| n * 10 + i32::from(b - b'0')))
    };
    let numbers: Vec<i32> = fields.iter().map(number).collect::<Option<_>>()?;
    let seconds = match numbers.as_slice() {
        [hours] => hours * 3600,
        [hours, minutes] if *minutes < 60 => hours * 3600 + minutes * 60,
        [hours, minutes, seconds] if *minutes < 60 && *seconds < 60 => hours * 3600 + minutes * 60 + seconds,
        _ => return None,
    };
    // Java's offsets are at most 18 hours.
    (seconds <= 18 * 3600).then(|| FixedOffset::east_opt(seconds))?.map(|o| o.local_minus_utc())
}
