//! Parses dates and timestamps from text: `yyyy-mm-dd`, optionally followed by `hh[:mm[:ss[.fraction]]]` and
//! a zone `Z` or `±hh[[:]mm]`.

/// Nanoseconds of a day.
pub(super) const DAY: i128 = 86_400_000_000_000;

/// Days since 1970 of a date without a time.
pub(super) fn date(text: &str) -> Option<i64> {
    let mut at = Text(text.trim());
    at.date().filter(|_| at.0.is_empty())
}

/// Nanoseconds since 1970 in UTC, and whether the text has a zone.
pub(super) fn instant(text: &str) -> Option<(i128, bool)> {
    let mut at = Text(text.trim());
    let day = i128::from(at.date()?) * DAY;
    if at.0.is_empty() {
        return Some((day, false));
    }
    at.accept(&['T', ' '])?;
    let mut clock = i128::from(at.number(2, 23)?) * 3600;
    let mut fraction = 0;
    if at.accept(&[':']).is_some() {
        clock += i128::from(at.number(2, 59)?) * 60;
        if at.accept(&[':']).is_some() {
            clock += i128::from(at.number(2, 59)?);
            if at.accept(&['.']).is_some() {
                fraction = at.fraction()?;
            }
        }
    }
    let zone = at.zone()?;
    let seconds = clock - i128::from(zone.unwrap_or(0));
    at.0.is_empty().then_some((day + seconds * 1_000_000_000 + i128::from(fraction), zone.is_some()))
}

/// The text that is not read yet.
struct Text<'a>(&'a str);

impl Text<'_> {
    fn accept(&mut self, signs: &[char]) -> Option<char> {
        let sign = self.0.chars().next().filter(|c| signs.contains(c))?;
        self.0 = self.0.get(sign.len_utf8()..)?;
        Some(sign)
    }

    /// A number of exactly this many digits.
    fn number(&mut self, digits: usize, most: i64) -> Option<i64> {
        let text = self.0.get(..digits).filter(|t| t.bytes().all(|b| b.is_ascii_digit()))?;
        self.0 = self.0.get(digits..)?;
        text.parse().ok().filter(|v| *v <= most)
    }

    fn date(&mut self) -> Option<i64> {
        let year = self.number(4, 9999)?;
        self.accept(&['-'])?;
        let month = self.number(2, 12)?;
        self.accept(&['-'])?;
        let day = self.number(2, 31)?;
        (month >= 1 && day >= 1 && day <= days_of(year, month)).then(|| days_since_1970(year, month, day))
    }

    /// Reads up to nine digits of a second's fraction, as nanoseconds.
    fn fraction(&mut self) -> Option<i64> {
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let value = self.number(digits, i64::MAX).filter(|_| (1..=9).contains(&digits))?;
        Some(value * 10i64.pow(9 - u32::try_from(digits).ok()?))
    }

    /// Seconds east of Greenwich, if a zone follows; the outer `None` if other text follows.
    fn zone(&mut self) -> Option<Option<i64>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let sign = match self.accept(&['Z', '+', '-'])? {
            'Z' => return Some(Some(0)),
            '+' => 1,
            _ => -1,
        };
        let mut seconds = self.number(2, 23)? * 3600;
        let colon = self.accept(&[':']).is_some();
        if colon || !self.0.is_empty() {
            seconds += self.number(2, 59)? * 60;
        }
        Some(Some(sign * seconds))
    }
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The proleptic Gregorian calendar, with years that begin in March, so that the leap day is the last day of
/// a year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_instants() {
        assert_eq!(date("1970-01-01"), Some(0));
        assert_eq!(date(" 2000-02-29 "), Some(11_016));
        assert_eq!(date("0001-01-01"), Some(-719_162));
        assert_eq!(date("9999-12-31"), Some(2_932_896));
        for wrong in
            ["2014-13-01", "2014-02-29", "2014-1-1", "20140101", "2014-01-01x", "x", "", "2014-00-01"]
        {
            assert_eq!(date(wrong), None, "{wrong}");
        }
        assert_eq!(instant("1970-01-02"), Some((DAY, false)));
        assert_eq!(instant("1970-01-01 00:00:01.000000001"), Some((1_000_000_001, false)));
        assert_eq!(instant("1970-01-01T01:00:01+01:00"), Some((1_000_000_000, true)));
        assert_eq!(instant("1970-01-01 01:00:01+0100"), Some((1_000_000_000, true)));
        assert_eq!(instant("1969-12-31 23Z"), Some((-3_600_000_000_000, true)));
        for wrong in [
            "1970-01-01 24:00",
            "1970-01-01 1:00",
            "1970-01-01 00:00:00.",
            "1970-01-01 00:00:00+1",
            "1970-01-01 00:00:00.0000000001",
            "1970-01-01 00:00:00 UTC",
            "1970-01-01 ",
        ] {
            assert_eq!(instant(wrong).is_some(), wrong == "1970-01-01 ", "{wrong}");
        }
    }
}
