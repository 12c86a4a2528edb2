//! Decodes timestamps.
//!
//! ```text
//! DATA       seconds since 2015-01-01 00:00:00 in the writer's zone, signed
//! SECONDARY  nanoseconds with their zeros cut off: n << 3 | zeros - 1
//! ```
//!
//! ORC specification v1, "Timestamp Columns". The reader returns the writer's wall clock, or the instant in
//! UTC for timestamps with local time zone. If an instant before 1970 has a fraction of a millisecond or
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
const CUTOVER: i64 = calendar::CUTOVER * 86_400;
/// 2015-01-01T00:00:00 in UTC.
const BASE: i64 = 1_420_070_400;

/// Number of values that are converted together.
const BATCH: usize = 1024;

pub(super) fn reader(input: &Input<'_>, column: &Column, field: &Field) -> Result<Box<dyn ColumnReader>> {
    let version = input.version(column.id)?;
    let instant = column.kind == Kind::TimestampInstant;
    let zone = Zone::named(input.timezone.filter(|_| !instant))?;
    boxed(Timestamps {
        present: input.present(column.id)?,
        seconds: input.integers(column.id, StreamKind::Data, version, true)?,
        nanos: input.integers(column.id, StreamKind::Secondary, version, false)?,
        fractions: vec![0; BATCH],
        changes: input.changes.clone(),
        clock: Clock {
            base: base(&zone),
            zone,
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

/// Converts stored numbers to values.
struct Clock {
    base: i64,
    zone: Arc<Zone>,
    instant: bool,
    unit: TimeUnit,
    hybrid: bool,
}

impl Clock {
    /// The shift from stored seconds to seconds of the wall clock, if all `values` are since 1970, in range,
    /// and have a common zone offset.
    fn usual_shift(&self, values: &[u64]) -> Option<i64> {
        let first = values.first()?.cast_signed().checked_add(self.base)?;
        let (start, end, offset) = self.zone.span(first);
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
            if !(start..end).contains(&seconds) {
                (start, end, offset) = self.zone.span(seconds);
            }
            let mut wall = seconds.wrapping_add(offset);
            if self.hybrid && wall < CUTOVER {
                wall = calendar::hybrid_to_proleptic_seconds(wall);
            }
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
            let clock = Clock { base: base(&zone), zone: zone.clone(), instant: false, unit, hybrid: false };
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

    #[test]
    fn fast_and_slow_conversions_agree() {
        for zone in ["UTC", "America/New_York", "Asia/Kolkata"] {
            let zone = Zone::named(Some(zone)).unwrap();
            for unit in [TimeUnit::Nanosecond, TimeUnit::Microsecond] {
                let clock =
                    Clock { base: base(&zone), zone: zone.clone(), instant: false, unit, hybrid: true };
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
        let clock =
            Clock { base: base(&zone), zone, instant: false, unit: TimeUnit::Nanosecond, hybrid: false };
        assert!(!clock.convert_repeated(&mut [0], u64::MAX));
    }
}
