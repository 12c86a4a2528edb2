//! Decimals as Hive computes with them: at most 38 digits, rounded half away from zero.
//!
//! ```text
//! [+-] digits [. digits] [e [+-] digits]
//! ```
//!
//! A number of more than 38 digits before the point is no number; further digits after the point are rounded
//! away. Source: Hive's `FastHiveDecimalImpl.fastSetFromBytes`.

const MAX_DIGITS: usize = 38;

/// `magnitude * 10^-scale`; the magnitude is at most `10^38`.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Whether the number is below zero.
    pub negative: bool,
    /// The digits.
    pub magnitude: i128,
    /// How many of the digits are after the point; negative: how many zeros follow the digits.
    pub scale: i32,
}

impl Number {
    /// A decimal of a column.
    #[must_use]
    pub fn new(value: i128, scale: i8) -> Self {
        Self { negative: value < 0, magnitude: value.saturating_abs(), scale: scale.into() }
    }

    /// Parses the text of a number; `hive4`: like Hive 4, which accepts blanks around the number.
    pub fn parse(cell: &[u8], hive4: bool) -> Option<Self> {
        let text = if hive4 { trim(cell) } else { cell };
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let end = |t: &[u8]| t.iter().position(|b| !b.is_ascii_digit()).unwrap_or(t.len());
        let (whole, rest) = text.split_at_checked(end(text))?;
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => rest.split_at_checked(end(rest))?,
            _ => (Default::default(), rest),
        };
        // Before Hive 4 nothing may follow `.5`; but if digits are dropped, Hive does not check this.
        let naked = !hive4 && !rest.is_empty() && fraction.len() <= MAX_DIGITS;
        if whole.is_empty() && (fraction.is_empty() || naked) {
            return None;
        }
        let exponent = match rest {
            [] => 0,
            // Hive 4 accepts a blank instead of the exponent's digits.
            [b'e' | b'E', exponent @ ..] => exponent_of(exponent, hive4 && !cell.ends_with(text))?,
            _ => return None,
        };
        let leading = whole.iter().position(|&b| b != b'0').unwrap_or(whole.len());
        let whole = whole.get(leading..)?;
        let room = MAX_DIGITS.checked_sub(whole.len())?;
        let (kept, dropped) = fraction.split_at_checked(room).unwrap_or((fraction, &[]));
        let digits = whole.iter().chain(kept);
        let mut magnitude = digits.fold(0i128, |n, b| n * 10 + i128::from(b - b'0'));
        magnitude += i128::from(dropped.first().is_some_and(|b| *b >= b'5'));
        let scale = i32::try_from(kept.len()).ok()? - exponent;
        Some(Self { negative, magnitude, scale })
    }

    /// The value as a `decimal(precision, scale)`, rounded to the scale; `None` where it does not fit.
    pub fn fitted(self, precision: u8, scale: u8) -> Option<i128> {
        let mut number = self;
        let scale = i32::from(scale);
        // Rounds to at most 38 digits after the point, then to the column's scale.
        if number.scale > 38 {
            number = number.rounded_to(38);
        }
        let number = number.rounded_to(scale);
        let missing = u32::try_from(scale - number.scale).ok()?;
        if number.magnitude == 0 {
            return Some(0);
        }
        let value = number.magnitude.checked_mul(10i128.checked_pow(missing)?)?;
        if value >= 10i128.pow(u32::from(precision.min(38))) || precision == 0 {
            return None;
        }
        Some(if number.negative { -value } else { value })
    }

    /// Rounds to at most `scale` digits after the point, half away from zero.
    #[must_use]
    fn rounded_to(self, scale: i32) -> Self {
        let Ok(surplus) = u32::try_from(self.scale - scale) else { return self };
        if surplus == 0 {
            return self;
        }
        let magnitude = match 10i128.checked_pow(surplus) {
            Some(unit) => self.magnitude / unit + i128::from(self.magnitude % unit >= unit / 2),
            None => 0,
        };
        Self { magnitude, scale, ..self }
    }
}

impl Number {
    /// The part before the point, if 64 bits hold it.
    pub(super) fn truncated(self) -> Option<i64> {
        let whole = self.parts()?.0;
        i64::try_from(if self.negative { -whole } else { whole }).ok()
    }

    /// The nearest double.
    pub(super) fn double(self) -> Option<f64> {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}e{}", self.magnitude, -self.scale).parse().ok()
    }

    /// The parts before and after the point. Only for numbers of columns, whose scale is not negative.
    fn parts(self) -> Option<(i128, i128)> {
        let unit = 10i128.checked_pow(u32::try_from(self.scale).ok()?)?;
        Some((self.magnitude / unit, self.magnitude % unit))
    }

    /// Appends the digits; `padded`: with the zeros at the end of the fraction.
    pub(super) fn print(self, padded: bool, out: &mut String) {
        let Some((whole, fraction)) = self.parts() else { return };
        if self.negative {
            out.push('-');
        }
        out.push_str(&whole.to_string());
        if fraction != 0 || (padded && self.scale > 0) {
            let width = usize::try_from(self.scale).unwrap_or(0);
            let digits = format!("{fraction:0width$}");
            out.push('.');
            out.push_str(if padded { &digits } else { digits.trim_end_matches('0') });
        }
    }

    /// As seconds: the whole seconds, and the nanoseconds of the fraction, without further digits. Both
    /// numbers have the sign.
    pub(super) fn seconds(self) -> Option<(i64, i64)> {
        let (whole, fraction) = self.parts()?;
        let missing = 9 - self.scale;
        let shift = 10i128.checked_pow(missing.unsigned_abs())?;
        let nanos = if missing >= 0 { fraction * shift } else { fraction / shift };
        let (seconds, nanos) = (i64::try_from(whole).ok()?, i64::try_from(nanos).ok()?);
        Some(if self.negative { (-seconds, -nanos) } else { (seconds, nanos) })
    }
}

/// `[+-] digits` of an exponent: at most two significant digits, as in Hive.
fn exponent_of(text: &[u8], may_be_empty: bool) -> Option<i32> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let significant = digits.iter().position(|&b| b != b'0').unwrap_or(digits.len());
    if (digits.is_empty() && !may_be_empty)
        || digits.len() - significant > 2
        || !digits.iter().all(u8::is_ascii_digit)
    {
        return None;
    }
    let value = digits.iter().fold(0, |n, b| n * 10 + i32::from(b - b'0'));
    Some(if negative { -value } else { value })
}

/// The text without the blanks that Hive 4 skips: space, tab, VT and FF.
fn trim(text: &[u8]) -> &[u8] {
    let is_blank = |b: &u8| matches!(b, b' ' | b'\t' | 0x0b | 0x0c);
    let start = text.iter().position(|b| !is_blank(b)).unwrap_or(text.len());
    let end = text.iter().rposition(|b| !is_blank(b)).map_or(start, |last| last + 1);
    text.get(start..end).unwrap_or_default()
}
