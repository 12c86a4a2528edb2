//! Exact numbers: digits of any length and an exponent, so that a comparison with a column is exact.

use arrow_buffer::i256;

/// The maximum number of digits: more than any Arrow type has (a decimal of 256 bits has 76).
const MAX_DIGITS: i64 = 77;

/// A decimal number: `digits * 10^exponent`, negative or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    negative: bool,
    /// The digits, without leading zeros; empty for zero.
    digits: String,
    exponent: i64,
}

/// Where a number lies relative to the values of a discrete type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ticks {
    /// The largest integer that is not greater than the number, and whether the two are equal.
    At(i256, bool),
    /// Greater than all values.
    Above,
    /// Less than all values.
    Below,
    /// Not a number: unequal to everything.
    Unordered,
}

impl Number {
    /// Parses `[+-]digits[.digits][e[+-]digits]`, with at least one digit before the exponent.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, fraction].concat();
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let exponent = i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
        Some(Self { negative, digits: digits.trim_start_matches('0').to_owned(), exponent })
    }

    /// The number with the sign changed.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { negative: !self.negative, ..self }
    }

    /// The nearest double.
    pub(super) fn to_f64(&self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// Whether the number is zero.
    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The number in units of `10^-scale`, rounded down.
    pub(super) fn ticks(&self, scale: i8) -> Ticks {
        let length = i64::try_from(self.digits.len()).unwrap_or(i64::MAX);
        let point = length.saturating_add(self.exponent).saturating_add(i64::from(scale));
        if self.digits.is_empty() {
            return Ticks::At(i256::ZERO, true);
        }
        let far = if self.negative { Ticks::Below } else { Ticks::Above };
        if point > MAX_DIGITS {
            return far;
        }
        let kept = usize::try_from(point.clamp(0, length)).unwrap_or(0);
        let (whole, fraction) = self.digits.split_at(kept);
        let zeros = usize::try_from(point.saturating_sub(length)).unwrap_or(0);
        let exact = fraction.bytes().all(|b| b == b'0');
        let text = format!("0{whole}{}", "0".repeat(zeros));
        let Some(size) = i256::from_string(&text) else { return far };
        if !self.negative {
            return Ticks::At(size, exact);
        }
        let below = if exact { i256::ZERO } else { i256::ONE };
        Ticks::At(size.wrapping_neg().wrapping_sub(below), exact)
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        if self.exponent == 0 {
            write!(f, "{sign}{digits}")
        } else {
            write!(f, "{sign}{digits}e{}", self.exponent)
        }
    }
}

impl From<i64> for Number {
    fn from(v: i64) -> Self {
        let digits = v.unsigned_abs().to_string().trim_start_matches('0').to_owned();
        Self { negative: v < 0, digits, exponent: 0 }
    }
}

/// A double as an integer, rounded down. This is exact, since a double is an integer plus a binary fraction.
pub(super) fn float_ticks(v: f64) -> Ticks {
    if v.is_nan() {
        return Ticks::Unordered;
    }
    if v.is_infinite() {
        return if v > 0.0 { Ticks::Above } else { Ticks::Below };
    }
    let floor = v.floor();
    match Number::parse(&format!("{floor:.0}")).map(|n| n.ticks(0)) {
        Some(Ticks::At(whole, _)) => Ticks::At(whole, floor == v),
        Some(far) => far,
        None => Ticks::Unordered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, scale: i8) -> (i128, bool) {
        match Number::parse(text).unwrap().ticks(scale) {
            Ticks::At(v, exact) => (v.to_i128().unwrap(), exact),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn ticks_round_down_and_report_whether_they_are_exact() {
        assert_eq!(at("5", 0), (5, true));
        assert_eq!(at("5.0", 0), (5, true));
        assert_eq!(at("-5.5", 0), (-6, false));
        assert_eq!(at("0.001", 2), (0, false));
        assert_eq!(at("-0.001", 2), (-1, false));
        assert_eq!(at("1e3", 2), (100_000, true));
        assert_eq!(at("1234", -2), (12, false));
        assert_eq!(at("000", 5), (0, true));
        assert_eq!(at("12e-1", 0), (1, false));
        assert_eq!(Number::parse("1e100").unwrap().ticks(0), Ticks::Above);
        assert_eq!(Number::parse("-1e2000000000").unwrap().ticks(0), Ticks::Below);
    }

    #[test]
    fn text_that_is_no_number_is_refused() {
        for text in ["", "-", ".", "1e", "1.2.3", "e5", "1_0", "inf", "nan", "0x1", "1e99999999999"] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
        assert_eq!(Number::parse(".5").unwrap().to_string(), "5e-1");
        assert_eq!(Number::from(-120).to_string(), "-120");
        assert_eq!(Number::from(0).to_string(), "0");
    }

    #[test]
    fn doubles_are_converted_exactly() {
        assert_eq!(float_ticks(-0.5), Ticks::At(i256::MINUS_ONE, false));
        assert_eq!(float_ticks(2f64.powi(70)), Ticks::At(i256::from_i128(1 << 70), true));
        assert_eq!(float_ticks(1e300), Ticks::Above);
        assert_eq!(float_ticks(f64::NAN), Ticks::Unordered);
        assert_eq!(Number::parse("0.1").unwrap().to_f64().to_bits(), 0.1f64.to_bits());
    }
}
