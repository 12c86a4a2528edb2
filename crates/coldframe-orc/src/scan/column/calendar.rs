//! Days of the hybrid calendar as days of the proleptic Gregorian one.
//!
//! Java's writer counts days as `java.util.GregorianCalendar` does unless it is told otherwise: before 1582-10-15 a day's
//! number is that of its Julian date. The date that people see, year, month and day, is kept; its number changes.

/// 1582-10-15, the first Gregorian day of the hybrid calendar.
pub(crate) const CUTOVER: i32 = -141_427;
/// Days from 0000-03-01 to 1970-01-01 in the Gregorian calendar.
const MARCH_EPOCH: i64 = 719_468;
const DAY: i64 = 86_400;

/// The proleptic number of a hybrid day.
#[inline]
pub(crate) fn to_proleptic(day: i32) -> i32 {
    if day >= CUTOVER { day } else { i32::try_from(relabel(day.into())).unwrap_or(day) }
}

/// The same for seconds since 1970-01-01 of a wall clock.
#[inline]
pub(crate) fn seconds_to_proleptic(seconds: i64) -> i64 {
    let day = seconds.div_euclid(DAY);
    if day >= i64::from(CUTOVER) {
        seconds
    } else {
        relabel(day).saturating_mul(DAY) + seconds.rem_euclid(DAY)
    }
}

/// The Gregorian number of the date that has the Julian number `day`. Years begin in March in both, so that leap days
/// are last.
fn relabel(day: i64) -> i64 {
    let since = day.saturating_add(MARCH_EPOCH + 2);
    let (cycle, of_cycle) = (since.div_euclid(1461), since.rem_euclid(1461));
    let in_cycle = (of_cycle - of_cycle / 1460) / 365;
    let of_year = of_cycle - 365 * in_cycle;
    let year = cycle * 4 + in_cycle;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - MARCH_EPOCH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_keep_their_names() {
        // 1582-10-04 Julian is the day in front of 1582-10-15; as a Gregorian date it is ten days earlier.
        assert_eq!(to_proleptic(CUTOVER), CUTOVER);
        assert_eq!(to_proleptic(CUTOVER - 1), CUTOVER - 11);
        // 0001-01-01: Julian day number 1721424, Gregorian 1721426.
        assert_eq!(to_proleptic(1_721_424 - 2_440_588), 1_721_426 - 2_440_588);
        assert_eq!(seconds_to_proleptic(i64::from(CUTOVER - 1) * DAY + 5), i64::from(CUTOVER - 11) * DAY + 5);
        assert_eq!(seconds_to_proleptic(-1), -1);
    }
}
