//! Timestamps as seconds and nanoseconds.
//!
//! ```text
//! seconds      since 2015-01-01 00:00:00 in the writer's zone, which is UTC here
//! nanoseconds  n << 3 | 0, or with at least two zeros at the end  n / 10^(z + 1) << 3 | z
//! ```
//!
//! ORC specification v1, "Timestamp Columns". Before 1970, if the fraction is a millisecond or more, Java's writer
//! rounds the second towards zero, and readers take one off again. They cannot for the second before 1970, which Java
//! so moves by one. There the C++ writer's way is taken: a fraction below zero. C++ reads that back; Java's
//! `Timestamp` refuses it, but does not give another time.

use arrow_schema::TimeUnit;
use coldframe_encoding::{Error, Result};

/// 2015-01-01 in seconds.
const EPOCH: i64 = 1_420_070_400;
const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// The second a value is in, and the nanoseconds behind its start.
fn parts(value: i64, unit: TimeUnit) -> (i64, i64) {
    let in_second = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => SECOND,
    };
    (value.div_euclid(in_second), value.rem_euclid(in_second) * (SECOND / in_second))
}

/// What is stored for a value.
pub(super) fn stored(value: i64, unit: TimeUnit) -> Result<(i64, i64)> {
    let (mut second, mut nanos) = parts(value, unit);
    if second < 0 && nanos >= MILLISECOND {
        second += 1;
        if second == 0 {
            nanos -= SECOND;
        }
    }
    let seconds = second.checked_sub(EPOCH);
    let seconds = seconds.ok_or_else(|| {
        Error::invalid(format!("expected seconds that ORC can count from 2015, found {second} since 1970"))
    })?;
    Ok((seconds, without_zeros(nanos)))
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

/// The millisecond a value is in, and the nanoseconds behind its start: for statistics and bloom filters.
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
        let of = |value| stored(value, TimeUnit::Nanosecond).map(|(s, n)| (s + EPOCH, n)).unwrap();
        assert_eq!(of(1_500_000_000), (1, 5 << 3 | 7));
        assert_eq!(of(-1_500_000_000), (-1, 5 << 3 | 7));
        assert_eq!(of(-1_999_500_000), (-2, 5 << 3 | 4));
        assert_eq!(of(-500_000_000), (0, -5 << 3 | 7));
        assert_eq!(of(-1), (0, -1 << 3));
        assert_eq!(of(-2_000_000_000), (-2, 0));
        assert_eq!(of(1_000_000_010), (1, 10 << 3));
        assert_eq!(of(1_000_000_100), (1, 1 << 3 | 1));
        assert!(stored(i64::MIN, TimeUnit::Second).is_err());
        assert_eq!(stored(i64::MIN, TimeUnit::Millisecond).unwrap().0 + EPOCH, i64::MIN / 1000);
    }

    #[test]
    fn milliseconds_are_rounded_down() {
        assert_eq!(milliseconds(-1, TimeUnit::Nanosecond), (-1, 999_999));
        assert_eq!(milliseconds(1_500_001, TimeUnit::Microsecond), (1500, 1000));
        assert_eq!(milliseconds(i64::MAX, TimeUnit::Second), (i64::MAX, 0));
    }
}
