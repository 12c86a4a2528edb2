//! Decodes timestamps.
//!
//! ```text
//! DATA       seconds since 2015-01-01 00:00:00 in the writer's zone, signed
//! SECONDARY  nanoseconds with their zeros cut off: n << 3 | zeros - 1
//! ```
//!
//! ORC specification v1, "Timestamp Columns". The reader returns the writer's wall clock, or the instant in
//! UTC for timestamps with local time zone. With the zone of a reader, timestamps are instants as well: see
//! [`Reader`]. If an instant before 1970 has a fraction of a millisecond or
//! more, Java stores it one second later, and the reader undoes this. The C++ writer in pyarrow stores
//! truncated seconds and negative nanoseconds.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::types::{TimestampMicrosecondType, TimestampNanosecondType};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, TimeUnit};
use coldframe_core::arrays::with_nulls;
use coldframe_core::{Change, Changes, Error, ErrorContext, Result};
use coldframe_encoding::calendar;
use coldframe_encoding::zone::Zone;

use super::input::Input;
use super::{
    ColumnReader, Malformed, MalformedValue, Present, Step, Validity, array, boxed, filtered, is_sparse,
    placed, primitive, rows_of, rows_of_kept,
};
use crate::layout::stripe::StreamKind;
use crate::layout::types::{Column, Kind};
use crate::scan::rle::int::IntRle;
use crate::scan::stream::StreamPosition;
use crate::schema;

/// Largest fraction below a millisecond, in nanoseconds.
const MILLI: i64 = 999_999;
const SECOND: i64 = 1_000_000_000;
/// 1582-10-15 in seconds.
const CUTOVER: i64 = calendar::CUTOVER * DAY;
const DAY: i64 = 86_400;
/// 2015-01-01T00:00:00 in UTC.
const BASE: i64 = 1_420_070_400;

/// Number of values that are converted together.
const BATCH: usize = 1024;

pub(super) fn reader(input: &Input<'_>, column: &Column, field: &Field) -> Result<Box<dyn ColumnReader>> {
    let version = input.version(column.id)?;
    let instant = column.kind == Kind::TimestampInstant;
    let own = input.timezone.filter(|_| !instant);
    let zone = Zone::named(own.or(input.timestamps_in.filter(|_| !instant)))?;
    let reader = input.timestamps_in.filter(|_| !instant);
    let reader = reader.map(|name| Reader::new(&zone, name)).transpose()?;
    boxed(Timestamps {
        present: input.present(column.id)?,
        seconds: input.integers(column.id, StreamKind::Data, version, true)?,
        nanos: input.integers(column.id, StreamKind::Secondary, version, false)?,
        fractions: vec![0; BATCH],
        changes: input.changes.clone(),
        clock: Clock {
            base: base(&zone),
            zone,
            reader,
            instant,
            unit: schema::unit_of(field.data_type()),
            hybrid: input.quirks.hybrid,
        },
        data_type: field.data_type().clone(),
        nullable: field.is_nullable(),
        malformed: Vec::new(),
    })
}

/// Seconds of the instant that timestamps count from.
fn base(zone: &Zone) -> i64 {
    // In some cases only the wall clock is known. The offset of the wall clock is the offset at `BASE`, since
    // no zone changed its offset in January 2015.
    BASE - zone.offset(BASE)
}

struct Timestamps {
    present: Present,
    seconds: IntRle,
    nanos: IntRle,
    /// Memory for nanoseconds.
    fractions: Vec<u64>,
    changes: Changes,
    clock: Clock,
    data_type: DataType,
    /// A map's keys may not be null.
    nullable: bool,
    /// The values of the last batch that the unit cannot express.
    malformed: Vec<MalformedValue>,
}

impl ColumnReader for Timestamps {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        self.timestamps(&validity.all(), rows, &validity)
    }

    fn read_kept(
        &mut self,
        rows: usize,
        parent: Option<&NullBuffer>,
        kept: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        if !is_sparse(kept) {
            return filtered(&self.read(rows, parent)?, kept);
        }
        let validity = self.present.read(rows, parent)?;
        let steps = validity.steps(kept);
        let timestamps = self.timestamps(&steps, kept.count_set_bits(), &validity.of_kept(kept))?;
        let places: Vec<usize> = self.malformed.iter().map(|value| value.row).collect();
        let rows = rows_of_kept(&places, kept);
        self.malformed.iter_mut().zip(rows).for_each(|(value, row)| value.row = row);
        Ok(timestamps)
    }

    fn skip(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<()> {
        let validity = self.present.read(rows, parent)?;
        self.seconds.skip(validity.valid).within(|| "DATA")?;
        self.nanos.skip(validity.valid).within(|| "SECONDARY")
    }

    fn positions(&self, into: &mut Vec<StreamPosition>) {
        self.present.positions(into);
        into.extend([self.seconds.position(StreamKind::Data), self.nanos.position(StreamKind::Secondary)]);
    }

    fn malformed(&self, into: &mut Vec<MalformedValue>) {
        into.extend(&self.malformed);
    }
}

impl Timestamps {
    /// The values of some steps, in `rows` rows with this validity.
    fn timestamps(&mut self, steps: &[Step], rows: usize, validity: &Validity) -> Result<ArrayRef> {
        let (mut values, mut outside) = (Vec::with_capacity(rows), Vec::new());
        for step in steps {
            self.seconds.skip(step.pass).within(|| "DATA")?;
            self.nanos.skip(step.pass).within(|| "SECONDARY")?;
            let first = values.len();
            self.seconds.append::<u64>(step.take, &mut values).within(|| "DATA")?;
            self.add_nanos(values.get_mut(first..).unwrap_or_default(), first, &mut outside)?;
        }
        let values = placed(values, rows, validity)?;
        let nulls = self.without(&outside, rows, validity)?;
        let zone = match &self.data_type {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        };
        Ok(match self.clock.unit {
            TimeUnit::Microsecond => {
                array(primitive::<TimestampMicrosecondType, _>(values, nulls).with_timezone_opt(zone))
            }
            _ => array(primitive::<TimestampNanosecondType, _>(values, nulls).with_timezone_opt(zone)),
        })
    }

    /// The nulls of a batch, and nulls for the values that the unit cannot express.
    fn without(
        &mut self,
        outside: &[(usize, i64)],
        rows: usize,
        validity: &Validity,
    ) -> Result<Option<NullBuffer>> {
        let why =
            |second: i64| Malformed::Second { second, instant: self.clock.instant, unit: self.clock.unit };
        if let Some((_, second)) = outside.first().filter(|_| !self.nullable) {
            return Err(why(*second).to_error(0));
        }
        let places: Vec<usize> = outside.iter().map(|(place, _)| *place).collect();
        let malformed = rows_of(validity, &places);
        let values = malformed.iter().zip(outside).map(|(row, (_, second))| (*row, why(*second)));
        self.malformed = values.map(|(row, why)| MalformedValue { row, column: None, why }).collect();
        Ok(with_nulls(validity.nulls.clone(), rows, &malformed))
    }

    /// Converts stored seconds to values, and counts the values that lose digits. Adds the values that the unit cannot
    /// express to `outside`: their places from `first` on, and seconds.
    fn add_nanos(&mut self, values: &mut [u64], first: usize, outside: &mut Vec<(usize, i64)>) -> Result<()> {
        let cuts = self.clock.unit == TimeUnit::Microsecond;
        let (mut at, mut cut) = (0, 0);
        // The nanoseconds of whole seconds are runs of one value, which often follow each other.
        let mut repeats = true;
        while at < values.len() {
            let rest = values.get_mut(at..).unwrap_or_default();
            if repeats
                && let Some((stored, n)) =
                    self.nanos.constant(rest.len().min(BATCH)).within(|| "SECONDARY")?
            {
                let stored = stored.cast_unsigned();
                let part = rest.get_mut(..n).unwrap_or_default();
                cut += n * usize::from(cuts && is_finer_than_micros(stored));
                if !self.clock.convert_repeated(part, stored) {
                    let nanos = self.fractions.get_mut(..n).unwrap_or_default();
                    nanos.fill(stored);
                    self.clock.convert(part, nanos, first + at, outside)?;
                }
                at += n;
                continue;
            }
            repeats = false;
            let n = rest.len().min(BATCH);
            let part = rest.get_mut(..n).unwrap_or_default();
            let nanos = self.fractions.get_mut(..n).unwrap_or_default();
            self.nanos.read(nanos).within(|| "SECONDARY")?;
            if cuts {
                cut += nanos.iter().filter(|stored| is_finer_than_micros(**stored)).count();
            }
            if !self.clock.convert_usual(part, nanos) {
                self.clock.convert(part, nanos, first + at, outside)?;
            }
            at += n;
        }
        self.changes.add(Change::Digits, cut as u64);
        Ok(())
    }
}

/// 1900-01-01 in seconds: from there on, the two sets of Java's time zones agree.
const YEAR_1900: i64 = -2_208_988_800;

/// The zone of a reader for which timestamps are instants, as in Spark:
///
/// ```text
/// stored                                   an instant by java.util's zones
/// other rules than the writer's zone       the instant at which the reader's clock shows what the writer's showed
/// before 1900                              the instant at which java.time's clock shows what java.util's shows
/// ```
/// With the same rules, a clock that is turned back is no question. Source: `TimestampTreeReader` in orc-core,
/// `convertBetweenTimezones`, and Spark's `rebaseJulianToGregorianMicros`.
struct Reader {
    zone: Arc<Zone>,
    /// Whether the writer's zone has the same rules.
    same: bool,
}

impl Reader {
    fn new(writer: &Zone, name: &str) -> Result<Self> {
        let zone = Zone::named(Some(name)).within(|| "option `timestamps_in`")?;
        Ok(Self { same: zone.has_same_rules(writer), zone })
    }

    /// The instant for a stored one.
    fn instant(&self, writer: &Zone, stored: i64, hybrid: bool) -> i64 {
        let instant = if self.same { stored } else { writer.instant_in(&self.zone, stored) };
        if instant >= YEAR_1900 {
            return instant;
        }
        let mut wall = self.zone.wall_clock(instant);
        if hybrid && wall < CUTOVER {
            wall = calendar::hybrid_to_proleptic_seconds(wall);
        }
        self.zone.early_instant(wall)
    }

    /// Of the instants around `stored` with the writer's offset `offset`, those that all move by the same seconds:
    /// the first, the end, and these seconds.
    fn span(&self, stored: i64, offset: i64) -> (i64, i64, i64) {
        if self.same {
            return (i64::MIN, i64::MAX, 0);
        }
        let (start, end, own) = self.zone.span(stored);
        // No clocks differ by more than a day.
        (start.saturating_add(2 * DAY), end.saturating_sub(2 * DAY), offset - own)
    }
}

/// Converts stored numbers to values.
struct Clock {
    base: i64,
    /// The writer's zone.
    zone: Arc<Zone>,
    reader: Option<Reader>,
    instant: bool,
    unit: TimeUnit,
    hybrid: bool,
}

impl Clock {
    /// The shift from stored seconds to seconds of the wall clock (of the instant, with a reader's zone), if all
    /// `values` are since 1970, in range, and have a common zone offset.
    fn usual_shift(&self, values: &[u64]) -> Option<i64> {
        let first = values.first()?.cast_signed().checked_add(self.base)?;
        let (mut start, mut end, mut offset) = self.zone.span(first);
        if let Some(reader) = &self.reader {
            let (from, to, shift) = reader.span(first, offset);
            (start, end, offset) = (start.max(from), end.min(to), shift);
        }
        let latest = i64::MAX / SECOND - 1;
        let (from, to) = (start.max(0).max(-offset), end.min(latest - offset));
        let (least, most) = (from.checked_sub(self.base)?, (to - 1).checked_sub(self.base)?);
        // For a value outside the range, at least one of the two differences is negative, even if the other
        // wraps around.
        let outside = values
            .iter()
            .map(|value| value.cast_signed())
            .fold(0, |outside, value| outside | value.wrapping_sub(least) | most.wrapping_sub(value));
        (outside >= 0).then_some(self.base + offset)
    }

    /// Units per second, and nanoseconds per unit.
    fn factors(&self) -> (i64, i64) {
        if self.unit == TimeUnit::Microsecond { (1_000_000, 1000) } else { (SECOND, 1) }
    }

    /// [`Self::convert`] without branches, for usual values: since 1970, in range, with a common zone offset
    /// and valid nanoseconds. Returns `false` and changes nothing if a value is unusual.
    fn convert_usual(&self, values: &mut [u64], nanos: &[u64]) -> bool {
        let Some(shift) = self.usual_shift(values) else { return false };
        if nanos.iter().fold(false, |bad, stored| bad | usual_nanoseconds(*stored).is_none()) {
            return false;
        }
        let (factor, divisor) = self.factors();
        for (value, stored) in values.iter_mut().zip(nanos) {
            let seconds = value.cast_signed() + shift;
            let fraction = usual_nanoseconds(*stored).unwrap_or_default() / divisor;
            *value = (seconds * factor + fraction).cast_unsigned();
        }
        true
    }

    /// Like [`Self::convert_usual`] for equal nanoseconds.
    fn convert_repeated(&self, values: &mut [u64], stored: u64) -> bool {
        let (Some(shift), Some(nanos)) = (self.usual_shift(values), usual_nanoseconds(stored)) else {
            return false;
        };
        let (factor, divisor) = self.factors();
        let fraction = nanos / divisor;
        for value in values {
            *value = ((value.cast_signed() + shift) * factor + fraction).cast_unsigned();
        }
        true
    }

    /// Converts stored seconds to values of the unit. Values that the unit cannot express are added to
    /// `outside`, with their places from `first` on.
    fn convert(
        &self,
        values: &mut [u64],
        nanos: &[u64],
        first: usize,
        outside: &mut Vec<(usize, i64)>,
    ) -> Result<()> {
        // The span of instants that had the last offset, and that offset.
        let (mut start, mut end, mut offset) = (0, 0, 0);
        for (place, (value, nanos)) in values.iter_mut().zip(nanos).enumerate() {
            let nanos = nanoseconds(*nanos)?;
            let mut seconds = value.cast_signed().wrapping_add(self.base);
            if seconds < 0 && nanos > MILLI {
                seconds = seconds.wrapping_sub(1);
            }
            let wall = match &self.reader {
                Some(reader) => reader.instant(&self.zone, seconds, self.hybrid),
                None => {
                    if !(start..end).contains(&seconds) {
                        (start, end, offset) = self.zone.span(seconds);
                    }
                    let wall = seconds.wrapping_add(offset);
                    let is_julian = self.hybrid && wall < CUTOVER;
                    if is_julian { calendar::hybrid_to_proleptic_seconds(wall) } else { wall }
                }
            };
            let (per_second, fraction) = match self.unit {
                TimeUnit::Microsecond => (1_000_000, nanos.div_euclid(1000)),
                _ => (SECOND, nanos),
            };
            // Move one second into the fraction: the first second of the range would overflow.
            let (whole, rest) = if wall < 0 { (wall + 1, fraction - per_second) } else { (wall, fraction) };
            let result = whole.checked_mul(per_second).and_then(|t| t.checked_add(rest));
            if result.is_none() {
                outside.push((first + place, wall));
            }
            *value = result.unwrap_or_default().cast_unsigned();
        }
        Ok(())
    }
}

/// The factor that restores the zeros, by the lowest three bits.
const POWERS: [i64; 8] = [1, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Whether nanoseconds as stored have digits below a microsecond.
#[inline(always)]
fn is_finer_than_micros(stored: u64) -> bool {
    let digits = stored.cast_signed() >> 3;
    match stored & 7 {
        0 => digits % 1000 != 0,
        // Two zeros were removed, so one stored digit is below a microsecond.
        1 => digits % 10 != 0,
        _ => false,
    }
}

/// [`nanoseconds`] for stored values that are valid and not negative.
#[inline(always)]
fn usual_nanoseconds(stored: u64) -> Option<i64> {
    let digits = (stored >> 3).cast_signed();
    let power = POWERS.get((stored & 7) as usize).copied().unwrap_or(1);
    // With digits below a second, the product does not overflow.
    (digits < SECOND).then(|| digits * power).filter(|nanos| *nanos < SECOND)
}

/// Nanoseconds with their zeros restored.
#[inline]
fn nanoseconds(stored: u64) -> Result<i64> {
    let digits = stored.cast_signed() >> 3;
    let power = POWERS.get((stored & 7) as usize).copied().unwrap_or(1);
    match digits.checked_mul(power) {
        Some(nanos) if nanos.abs() < SECOND => Ok(nanos),
        _ => Err(Error::corrupt(format!("expected nanoseconds of a second, found {digits} times {power}"))
            .within("SECONDARY")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_zeros_are_restored() {
        assert_eq!(nanoseconds(0x0a).unwrap(), 1000);
        assert_eq!(nanoseconds(1_000 << 3).unwrap(), 1000);
        assert_eq!(nanoseconds(5 << 3 | 7).unwrap(), 500_000_000);
        assert_eq!(nanoseconds(0xffff_ffff_ffff_ffdf).unwrap(), -500_000_000);
        assert!(nanoseconds(10 << 3 | 7).is_err());
    }

    #[test]
    fn the_first_and_last_values_of_a_unit_are_read() {
        let zone = Zone::named(None).unwrap();
        for (unit, per_second) in [(TimeUnit::Microsecond, 1_000_000), (TimeUnit::Nanosecond, SECOND)] {
            let clock = Clock {
                base: base(&zone),
                zone: zone.clone(),
                reader: None,
                instant: false,
                unit,
                hybrid: false,
            };
            let read = |value: i64, more: i64| {
                let nanos = value.rem_euclid(per_second) * (SECOND / per_second);
                let mut second = value.div_euclid(per_second) - clock.base;
                second += i64::from(value < 0 && nanos > MILLI) + more;
                let mut values = [second.cast_unsigned()];
                let mut outside = Vec::new();
                clock.convert(&mut values, &[nanos.cast_unsigned() << 3], 0, &mut outside).unwrap();
                outside.is_empty().then_some(values[0].cast_signed())
            };
            for value in [i64::MIN, i64::MIN + 1, -per_second, 0, 1, i64::MAX - 1, i64::MAX] {
                assert_eq!(read(value, 0).unwrap(), value, "{unit:?}");
            }
            assert!(read(i64::MIN, -1).is_none() && read(i64::MAX, 1).is_none());
        }
    }

    /// Values of Spark 4.3 in JVMs of these zones.
    #[test]
    fn timestamps_are_the_instants_that_spark_returns() {
        let (new_york, berlin, kolkata) = ("America/New_York", "Europe/Berlin", "Asia/Kolkata");
        let second = |text: &str| {
            let parts: Vec<i64> = text.split(['-', 'T', ':']).map(|part| part.parse().unwrap()).collect();
            let day = calendar::Civil::new(parts[0], parts[1], parts[2]).days();
            day * DAY + parts[3] * 3600 + parts[4] * 60 + parts[5]
        };
        for (writer, reader, stored, read) in [
            // An hour that occurs twice.
            (new_york, new_york, "2021-11-07T05:30:00", "2021-11-07T05:30:00"),
            (new_york, new_york, "2021-11-07T06:30:00", "2021-11-07T06:30:00"),
            (new_york, berlin, "2021-11-07T05:30:00", "2021-11-07T00:30:00"),
            (new_york, berlin, "2021-11-07T06:30:00", "2021-11-07T00:30:00"),
            (berlin, new_york, "2021-03-28T01:30:00", "2021-03-28T07:30:00"),
            (berlin, kolkata, "2021-10-31T00:30:00", "2021-10-30T21:00:00"),
            (berlin, "UTC", "2021-10-31T00:30:00", "2021-10-31T02:30:00"),
            (new_york, kolkata, "1919-06-01T00:00:00", "1919-05-31T14:30:00"),
            // Local mean time.
            (new_york, kolkata, "1899-12-31T23:00:00", "1899-12-31T12:38:50"),
            (berlin, new_york, "1899-12-31T23:00:00", "1900-01-01T05:00:00"),
            (new_york, new_york, "1899-12-31T23:00:00", "1899-12-31T23:00:00"),
        ] {
            let zone = Zone::named(Some(writer)).unwrap();
            let reader = Some(Reader::new(&zone, reader).unwrap());
            let unit = TimeUnit::Microsecond;
            let clock = Clock { base: base(&zone), zone, reader, instant: false, unit, hybrid: true };
            let mut values = [(second(stored) - clock.base).cast_unsigned()];
            clock.convert(&mut values, &[0], 0, &mut Vec::new()).unwrap();
            assert_eq!(values[0].cast_signed() / 1_000_000, second(read), "{writer} {stored}");
        }
        assert!(Reader::new(&Zone::named(None).unwrap(), "Mars/Olympus").is_err());
    }

    #[test]
    fn fast_and_slow_conversions_agree() {
        let zones = [
            ("UTC", None),
            ("America/New_York", None),
            ("Asia/Kolkata", None),
            ("America/New_York", Some("America/New_York")),
            ("America/New_York", Some("Australia/Lord_Howe")),
        ];
        for (zone, reader) in zones {
            let zone = Zone::named(Some(zone)).unwrap();
            for unit in [TimeUnit::Nanosecond, TimeUnit::Microsecond] {
                let reader = reader.map(|name| Reader::new(&zone, name).unwrap());
                let base = base(&zone);
                let clock = Clock { base, zone: zone.clone(), reader, instant: false, unit, hybrid: true };
                let mut usual = 0;
                for start in [-2_000_000_000i64, -1_420_070_400, 0, 7_000_000, 600_000_000, 9_000_000_000] {
                    let stored: Vec<u64> = (0..50).map(|n| (start + n * 1000).cast_unsigned()).collect();
                    let nanos: Vec<u64> = (0..50).map(|n| (n * 7 % 10) << 3 | (n % 8)).collect();
                    let (mut fast, mut slow) = (stored.clone(), stored.clone());
                    let is_usual = clock.convert_usual(&mut fast, &nanos);
                    let done = clock.convert(&mut slow, &nanos, 0, &mut Vec::new());
                    assert_eq!(&fast, if is_usual { &slow } else { &stored });
                    assert!(done.is_ok() || !is_usual);
                    usual += usize::from(is_usual);
                    let (mut fast, mut slow) = (stored.clone(), stored.clone());
                    let is_usual = clock.convert_repeated(&mut fast, 7 << 3 | 2);
                    let done = clock.convert(&mut slow, &[7 << 3 | 2; 50], 0, &mut Vec::new());
                    assert_eq!(fast, if is_usual { slow } else { stored });
                    assert!(done.is_ok() || !is_usual);
                }
                assert!((2..6).contains(&usual), "{usual}");
            }
        }
        assert_eq!(usual_nanoseconds(u64::MAX), None);
        assert_eq!(usual_nanoseconds(10 << 3 | 7), None);
        let zone = Zone::named(None).unwrap();
        let clock = Clock {
            base: base(&zone),
            zone,
            reader: None,
            instant: false,
            unit: TimeUnit::Nanosecond,
            hybrid: false,
        };
        assert!(!clock.convert_repeated(&mut [0], u64::MAX));
    }
}
