//! Parses numbers and fixed text of dates, as `java.time.format` does in strict mode.

use coldframe_encoding::calendar::Civil;

pub(super) struct Scanner<'a> {
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub(super) fn literal(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    pub(super) fn end(&self) -> Option<()> {
        self.rest.is_empty().then_some(())
    }

    /// Parses a number of `min..=max` digits; at most 18.
    pub(super) fn unsigned(&mut self, min: usize, max: usize) -> Option<i64> {
        let digits = self.rest.iter().take(max).take_while(|b| b.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at_checked(digits)?;
        if digits < min {
            return None;
        }
        self.rest = rest;
        Some(number.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0')))
    }

    /// A number that may be negative; `-0` is not accepted. (`SignStyle.NORMAL`)
    pub(super) fn signed(&mut self, min: usize, max: usize) -> Option<i64> {
        if self.literal(b'-').is_none() {
            return self.unsigned(min, max);
        }
        self.unsigned(min, max).filter(|n| *n != 0).map(|n| -n)
    }

    /// A year of 4 digits, or of up to 10 with a sign. (`SignStyle.EXCEEDS_PAD`)
    pub(super) fn padded_year(&mut self) -> Option<i64> {
        let plus = self.literal(b'+').is_some();
        let minus = !plus && self.literal(b'-').is_some();
        let before = self.rest.len();
        let year = self.unsigned(4, 10)?;
        let digits = before - self.rest.len();
        match (plus, minus) {
            (true, _) if digits <= 4 => None,
            (false, false) if digits > 4 => None,
            (_, true) if year == 0 => None,
            (_, true) => Some(-year),
            _ => Some(year),
        }
    }

    /// `y-m-d` with a year of up to `year_digits` digits; the numbers may be out of range.
    pub(super) fn date(&mut self, year_digits: usize) -> Option<Civil> {
        let year = self.signed(1, year_digits)?;
        self.literal(b'-')?;
        let month = self.signed(1, 2)?;
        self.literal(b'-')?;
        Some(Civil::new(year, month, self.signed(1, 2)?))
    }
}
