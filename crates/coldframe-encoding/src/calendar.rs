//! Days since 1970-01-01 and the calendars that map them to year, month and day.
//!
//! Arrow and Java's `java.time` use the Gregorian calendar for all days (proleptic). `java.util`'s calendar,
//! which Hive before 3 and ORC's Java writer use, is hybrid: Julian up to 1582-10-04, and Gregorian from the
//! next day on, which is 1582-10-15. Before that, the same day number means different dates in the two
//! calendars. Users see the year, month and day, so [`hybrid_to_proleptic`] keeps these and changes the day
//! number.

/// 1582-10-15, the first Gregorian day of the hybrid calendar.
pub const CUTOVER: i64 = -141_427;

/// Days from 0000-03-01 to 1970-01-01.
const MARCH_EPOCH: i64 = 719_468;

const SECONDS_PER_DAY: i64 = 86_400;

/// A year (astronomical: 0 is 1 BC), month 1..=12 and day 1..=31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Civil {
    /// The year.
    pub year: i64,
    /// The month.
    pub month: i64,
    /// The day of the month.
    pub day: i64,
}

impl Civil {
    /// Creates a date, which need not exist in any calendar.
    pub fn new(year: i64, month: i64, day: i64) -> Self {
        Self { year, month, day }
    }

    /// Whether the date exists in the proleptic Gregorian calendar.
    pub fn exists(self) -> bool {
        (1..=12).contains(&self.month) && self.day >= 1 && self.day <= days_in_month(self.year, self.month)
    }

    /// Days since 1970-01-01, proleptic Gregorian. A day after the end of the month is counted into the next
    /// month.
    pub fn days(self) -> i64 {
        // Years begin in March, so that the leap day is the last of a year.
        let year = self.year - i64::from(self.month <= 2);
        let month = (self.month + 9) % 12;
        year * 365 + year.div_euclid(4) - year.div_euclid(100)
            + year.div_euclid(400)
            + (153 * month + 2) / 5
            + self.day
            - 1
            - MARCH_EPOCH
    }

    /// The proleptic Gregorian date of a day number.
    pub fn from_days(days: i64) -> Self {
        let since = days + MARCH_EPOCH;
        let (cycle, of_cycle) = (since.div_euclid(146_097), since.rem_euclid(146_097));
        let year = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
        let of_year = of_cycle - (365 * year + year / 4 - year / 100);
        Self::from_march(cycle * 400 + year, of_year)
    }

    /// The days since 1970-01-01 of this day in the Julian calendar.
    fn julian_days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let month = (self.month + 9) % 12;
        year * 365 + year.div_euclid(4) + (153 * month + 2) / 5 + self.day - 1 - MARCH_EPOCH - 2
    }

    fn from_julian_days(days: i64) -> Self {
        let since = days + MARCH_EPOCH + 2;
        let (cycle, of_cycle) = (since.div_euclid(1461), since.rem_euclid(1461));
        let year = (of_cycle - of_cycle / 1460) / 365;
        Self::from_march(cycle * 4 + year, of_cycle - 365 * year)
    }

    fn from_march(year: i64, of_year: i64) -> Self {
        let march_month = (5 * of_year + 2) / 153;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        Self { year: year + i64::from(month <= 2), month, day: of_year - (153 * march_month + 2) / 5 + 1 }
    }

    /// The days since 1970-01-01 of this day in the hybrid calendar; a day in the gap of 1582 counts as
    /// Julian.
    pub fn hybrid_days(self) -> i64 {
        let gregorian = self.days();
        if gregorian >= CUTOVER { gregorian } else { self.julian_days() }
    }

    /// The date of a day number in the hybrid calendar.
    pub fn from_hybrid_days(days: i64) -> Self {
        if days >= CUTOVER { Self::from_days(days) } else { Self::from_julian_days(days) }
    }
}

/// Converts a hybrid day number to the Gregorian calendar: the result has the same year, month and day of
/// month.
///
/// A 29th of February that exists only in the Julian calendar becomes the 1st of March.
#[inline]
pub fn hybrid_to_proleptic(day: i64) -> i64 {
    if day >= CUTOVER { day } else { relabelled(day) }
}

/// Converts a Julian day number to the Gregorian calendar: the result has the same year, month and day of
/// month. In both calculations years begin in March, so that leap days are last.
fn relabelled(day: i64) -> i64 {
    let since = day.saturating_add(MARCH_EPOCH + 2);
    let (cycle, of_cycle) = (since.div_euclid(1461), since.rem_euclid(1461));
    let in_cycle = (of_cycle - of_cycle / 1460) / 365;
    let of_year = of_cycle - 365 * in_cycle;
    let year = cycle * 4 + in_cycle;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - MARCH_EPOCH
}

/// Converts a Gregorian day number to the hybrid calendar: the result has the same year, month and day of
/// month.
#[inline]
pub fn proleptic_to_hybrid(day: i64) -> i64 {
    if day >= CUTOVER { day } else { Civil::from_days(day).hybrid_days() }
}

/// [`hybrid_to_proleptic`] for seconds since 1970-01-01 of a wall clock.
#[inline]
pub fn hybrid_to_proleptic_seconds(seconds: i64) -> i64 {
    let day = seconds.div_euclid(SECONDS_PER_DAY);
    if day >= CUTOVER {
        return seconds;
    }
    seconds.saturating_add((hybrid_to_proleptic(day) - day).saturating_mul(SECONDS_PER_DAY))
}

/// [`proleptic_to_hybrid`] for seconds since 1970-01-01 of a wall clock.
pub fn proleptic_to_hybrid_seconds(seconds: i64) -> i64 {
    let day = seconds.div_euclid(SECONDS_PER_DAY);
    seconds.saturating_add((proleptic_to_hybrid(day) - day).saturating_mul(SECONDS_PER_DAY))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days since 1970-01-01 for a year of 0..=9999, computed in few instructions. `None` if the date does not
/// exist.
#[inline]
pub fn days_of_common_year(year: u32, month: u32, day: u32) -> Option<i32> {
    let leap = u32::from(year & 3 == 0 && (!year.is_multiple_of(100) || year & 15 == 0));
    // Each month's length minus 28, in two bits; the leap day is added below.
    const OVER_28: u32 = 0b11_10_11_10_11_11_10_11_10_11_00_11_00;
    let last = 28 + ((OVER_28 >> (2 * (month & 15))) & 3) + if month == 2 { leap } else { 0 };
    if month.wrapping_sub(1) >= 12 || day.wrapping_sub(1) >= last {
        return None;
    }
    // Years begin in March, and are shifted by a cycle of 400 so that year 0 is positive. 979 / 32
    // approximates the length of a month.
    let before_march = u32::from(month <= 2);
    let year = year + 400 - before_march;
    let century = year / 100;
    let days =
        1461 * year / 4 - century + century / 4 + (979 * (month + 12 * before_march) - 2919) / 32 + day;
    // `days` cannot overflow: the year is below 10400.
    Some(i32::try_from(days).ok()? - (719_469 + 146_097))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_the_common_years_is_converted_and_back() {
        let mut civil = Civil::new(0, 1, 1);
        for days in civil.days()..=Civil::new(9999, 12, 31).days() {
            let date = Civil::from_days(days);
            assert_eq!(date.days(), days);
            let narrow = |n: i64| u32::try_from(n).unwrap();
            assert_eq!(
                days_of_common_year(narrow(date.year), narrow(date.month), narrow(date.day)).map(i64::from),
                Some(days),
                "{date:?}"
            );
            assert!(date.exists() && (days == -719_528 || date > civil));
            civil = date;
        }
        assert_eq!(Civil::new(1970, 1, 1).days(), 0);
        assert_eq!(Civil::from_days(-719_529), Civil::new(-1, 12, 31));
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for (year, month, day) in
            [(2021, 2, 29), (1900, 2, 29), (2021, 4, 31), (2021, 13, 1), (2021, 0, 1), (2021, 1, 0)]
        {
            assert!(!Civil::new(year, month, day).exists());
            let narrow = |n: i64| u32::try_from(n).unwrap();
            assert_eq!(days_of_common_year(narrow(year), narrow(month), narrow(day)), None);
        }
        assert!(Civil::new(2000, 2, 29).exists() && Civil::new(-4, 2, 29).exists());
    }

    #[test]
    fn the_hybrid_calendar_leaps_over_ten_days_of_1582() {
        assert_eq!(Civil::from_hybrid_days(CUTOVER), Civil::new(1582, 10, 15));
        assert_eq!(Civil::from_hybrid_days(CUTOVER - 1), Civil::new(1582, 10, 4));
        assert_eq!(Civil::from_hybrid_days(Civil::new(1582, 10, 10).hybrid_days()), Civil::new(1582, 10, 20));
        assert_eq!(Civil::from_hybrid_days(Civil::new(1500, 2, 29).hybrid_days()), Civil::new(1500, 2, 29));
        assert_eq!(Civil::from_hybrid_days(Civil::new(1501, 2, 29).hybrid_days()), Civil::new(1501, 3, 1));
        for days in (-1_000_000..-100_000).step_by(7) {
            assert_eq!(Civil::from_hybrid_days(days).hybrid_days(), days);
            assert_eq!(hybrid_to_proleptic(days), Civil::from_hybrid_days(days).days());
        }
    }

    #[test]
    fn dates_keep_their_year_month_and_day() {
        // 1582-10-04 Julian is the day before 1582-10-15; as a Gregorian date it is ten days earlier.
        assert_eq!(hybrid_to_proleptic(CUTOVER), CUTOVER);
        assert_eq!(hybrid_to_proleptic(CUTOVER - 1), CUTOVER - 11);
        // 0001-01-01: Julian day number 1721424, Gregorian 1721426.
        assert_eq!(hybrid_to_proleptic(1_721_424 - 2_440_588), 1_721_426 - 2_440_588);
        let midday = |day: i64| day * SECONDS_PER_DAY + 43_200;
        assert_eq!(hybrid_to_proleptic_seconds(midday(CUTOVER - 1)), midday(CUTOVER - 11));
        assert_eq!(proleptic_to_hybrid_seconds(midday(CUTOVER - 11)), midday(CUTOVER - 1));
        assert_eq!(hybrid_to_proleptic_seconds(-1), -1);
    }

    #[test]
    fn the_hybrid_calendar_is_converted_and_back() {
        let unlike = (-1_500_000..200_000).filter(|d| hybrid_to_proleptic(*d) != hybrid_to_proleptic(*d + 1));
        for day in unlike.step_by(97) {
            let proleptic = hybrid_to_proleptic(day);
            assert!(proleptic_to_hybrid(proleptic) - day <= 1);
            if hybrid_to_proleptic(day - 1) != proleptic {
                assert_eq!(proleptic_to_hybrid(proleptic), day);
            }
        }
    }
}
