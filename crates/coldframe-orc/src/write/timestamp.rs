//! Converts timestamps to seconds and nanoseconds.
//!
//! ```text
//! seconds      since 2015-01-01 00:00:00 in the writer's zone, which is UTC here
//! nanoseconds  n << 3 | 0, or with at least two trailing zeros  n / 10^(z + 1) << 3 | z
//! ```
//!
//! ORC specification v1, "Timestamp Columns". Before 1970, if the fraction is a millisecond or more, Java's
//! writer rounds the second towards zero, and readers subtract one again. This fails for the last second
//! before 1970: it is rounded up to 0, which is not before 1970, so readers do not subtract, and the value is
//! one second late. Java reads no stored form of such values correctly, so they are refused.
//! The C++ form, a negative fraction, is an option ([`LastSecond::Cpp`]): C++ and this reader read it back,
//! but Java, and with it Spark, fails on the whole file.

use arrow_schema::TimeUnit;
use coldframe_encoding::{Error, Result};

use super::options::LastSecond;

/// 2015-01-01 in seconds.
const EPOCH: i64 = 1_420_070_400;
const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// The second that contains a value, and the nanoseconds since its start.
fn parts(value: i64, unit: TimeUnit) -> (i64, i64) {
    let in_second = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => SECOND,
    };
    (value.div_euclid(in_second), value.rem_euclid(in_second) * (SECOND / in_second))
}

/// The stored seconds and nanoseconds of a value.
pub(super) fn stored(value: i64, unit: TimeUnit, last: LastSecond) -> Result<(i64, i64)> {
    let (mut second, mut nanos) = parts(value, unit);
    // The largest unit of the reader is the microsecond, so the value must fit 64 bits in it.
    let micros = match unit {
        TimeUnit::Second => value.checked_mul(1_000_000),
        TimeUnit::Millisecond => value.checked_mul(1000),
        TimeUnit::Microsecond | TimeUnit::Nanosecond => Some(value),
    };
    if micros.is_none() {
        return Err(Error::schema(format!(
            "expected timestamps within 64 bits of microseconds, found second {second} since 1970, which no \
             reader returns"
        )));
    }
    if second < 0 && nanos >= MILLISECOND {
        second += 1;
        if second == 0 && last == LastSecond::Refuse {
            return Err(Error::invalid(format!(
                "1969-12-31 23:59:59.{nanos:09} cannot be stored so that Java reads it, like all times from \
                 23:59:59.001 up to 1970; \
                 the option `last_second=\"cpp\"` stores it for C++ readers, but Java then fails on the file"
            )));
        }
        if second == 0 {
            nanos -= SECOND;
        }
    }
    Ok((second - EPOCH, without_zeros(nanos)))
}

fn without_zeros(mut nanos: i64) -> i64 {
    if nanos == 0 {
        return 0;
    }
    if nanos % 100 != 0 {
        return nanos << 3;
    }
    nanos /= 100;
    let mut zeros = 1;
    while zeros < 7 && nanos % 10 == 0 {
        nanos /= 10;
        zeros += 1;
    }
    nanos << 3 | zeros
}

/// The millisecond that contains a value, and the nanoseconds since its start: for statistics and bloom filters.
pub(super) fn milliseconds(value: i64, unit: TimeUnit) -> (i64, i32) {
    let (second, nanos) = parts(value, unit);
    let milliseconds = second.saturating_mul(1000).saturating_add(nanos / MILLISECOND);
    (milliseconds, i32::try_from(nanos % MILLISECOND).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_before_1970_are_rounded_as_java_does() {
        let of = |value| {
            stored(value, TimeUnit::Nanosecond, LastSecond::Cpp).map(|(s, n)| (s + EPOCH, n)).unwrap()
        };
        assert_eq!(of(1_500_000_000), (1, 5 << 3 | 7));
        assert_eq!(of(-1_500_000_000), (-1, 5 << 3 | 7));
        assert_eq!(of(-1_999_500_000), (-2, 5 << 3 | 4));
        assert_eq!(of(-500_000_000), (0, -5 << 3 | 7));
        assert_eq!(of(-1), (0, -1 << 3));
        assert_eq!(of(-2_000_000_000), (-2, 0));
        assert_eq!(of(1_000_000_010), (1, 10 << 3));
        assert_eq!(of(1_000_000_100), (1, 1 << 3 | 1));
        for unit in [TimeUnit::Second, TimeUnit::Millisecond] {
            for value in [i64::MIN, i64::MAX] {
                let e = stored(value, unit, LastSecond::Cpp).unwrap_err();
                assert!(e.to_string().contains("64 bits of microseconds"), "{e}");
            }
        }
        for (unit, per_second) in [(TimeUnit::Microsecond, 1_000_000), (TimeUnit::Nanosecond, SECOND)] {
            // With a fraction of a millisecond or more, the stored second is the next second.
            let first = stored(i64::MIN, unit, LastSecond::Refuse).unwrap().0 + EPOCH;
            assert_eq!(first, i64::MIN.div_euclid(per_second) + 1);
            assert_eq!(stored(i64::MAX, unit, LastSecond::Refuse).unwrap().0 + EPOCH, i64::MAX / per_second);
        }
    }

    #[test]
    fn timestamps_that_java_misreads_are_refused() {
        for value in [-1i64, -500, -999] {
            let e = stored(value, TimeUnit::Millisecond, LastSecond::Refuse).unwrap_err();
            assert!(e.to_string().contains("1969-12-31 23:59:59."), "{e}");
        }
        for value in [-1000i64, -1001, -1999, 0, 1] {
            stored(value, TimeUnit::Millisecond, LastSecond::Refuse).unwrap();
        }
        // Java reads fractions below a millisecond correctly.
        stored(-999_999_500, TimeUnit::Nanosecond, LastSecond::Refuse).unwrap();
    }

    #[test]
    fn milliseconds_are_rounded_down() {
        assert_eq!(milliseconds(-1, TimeUnit::Nanosecond), (-1, 999_999));
        assert_eq!(milliseconds(1_500_001, TimeUnit::Microsecond), (1500, 1000));
        assert_eq!(milliseconds(i64::MAX, TimeUnit::Second), (i64::MAX, 0));
    }
}
