//! Days since 1970-01-01 and the calendars that give them a year, month and day.
//!
//! Arrow, Hive since 3 and the `java.time` classes they use count Gregorian days throughout (proleptic). Hive before 3
//! uses `java.util`'s hybrid calendar: Julian up to 1582-10-04, the next day being 1582-10-15. What Hive shows and
//! what text files hold is the year, month and day; so text of Hive 2 keeps them, and the calendar matters only for what
//! is lenient: days that do not exist (`1582-10-10`, `2021-02-30`) and hours beyond 23.

/// 1582-10-15, the first Gregorian day of the hybrid calendar.
const CUTOVER: i64 = -141_427;

/// Days from 0000-03-01 to 1970-01-01.
const MARCH_EPOCH: i64 = 719_468;

/// A year (astronomical: 0 is 1 BC), month 1..=12 and day 1..=31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
}

impl Civil {
    pub(crate) fn new(year: i64, month: i64, day: i64) -> Self {
        Self { year, month, day }
    }

    /// Whether the proleptic Gregorian calendar has this day.
    pub(crate) fn exists(self) -> bool {
        (1..=12).contains(&self.month) && self.day >= 1 && self.day <= days_in_month(self.year, self.month)
    }

    /// Days since 1970-01-01, proleptic Gregorian. A day behind the month's end is one in the next month.
    pub(crate) fn days(self) -> i64 {
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

    /// The proleptic Gregorian day.
    pub(crate) fn from_days(days: i64) -> Self {
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

    /// The days since 1970-01-01 of this day in the hybrid calendar; a day in the gap of 1582 counts as Julian.
    pub(crate) fn hybrid_days(self) -> i64 {
        let gregorian = self.days();
        if gregorian >= CUTOVER { gregorian } else { self.julian_days() }
    }

    /// The day of the hybrid calendar.
    pub(crate) fn from_hybrid_days(days: i64) -> Self {
        if days >= CUTOVER { Self::from_days(days) } else { Self::from_julian_days(days) }
    }
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

/// Days since 1970-01-01 of a year of 0..=9999 in few instructions, or `None` if there is no such day.
#[inline]
pub(crate) fn days_of_common_year(year: u32, month: u32, day: u32) -> Option<i32> {
    let leap = u32::from(year & 3 == 0 && (!year.is_multiple_of(100) || year & 15 == 0));
    // Days of the months in two bits each, less 28; February's are the leap day.
    const OVER_28: u32 = 0b11_10_11_10_11_11_10_11_10_11_00_11_00;
    let last = 28 + ((OVER_28 >> (2 * (month & 15))) & 3) + if month == 2 { leap } else { 0 };
    if month.wrapping_sub(1) >= 12 || day.wrapping_sub(1) >= last {
        return None;
    }
    // Years from March, shifted by a cycle of 400 so that year 0 stays positive. 979 / 32 approximates a month.
    let before_march = u32::from(month <= 2);
    let year = year + 400 - before_march;
    let century = year / 100;
    let days =
        1461 * year / 4 - century + century / 4 + (979 * (month + 12 * before_march) - 2919) / 32 + day;
    // At most 10400 years of days.
    Some(i32::try_from(days).ok()? - (719_469 + 146_097))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_the_common_years_goes_there_and_back() {
        let mut civil = Civil::new(0, 1, 1);
        for days in civil.days()..=Civil::new(9999, 12, 31).days() {
            let found = Civil::from_days(days);
            assert_eq!(found.days(), days);
            let narrow = |n: i64| u32::try_from(n).unwrap();
            assert_eq!(
                days_of_common_year(narrow(found.year), narrow(found.month), narrow(found.day))
                    .map(i64::from),
                Some(days),
                "{found:?}"
            );
            assert!(found.exists() && (days == -719_528 || found > civil));
            civil = found;
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
        }
    }
}
