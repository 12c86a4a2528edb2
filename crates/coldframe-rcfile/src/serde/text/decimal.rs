//! Reads `decimal(p, s)`: `[+-] digits [. digits] [e [+-] digits]`, rounded half up to the scale; null where
//! it does not fit.
//!
//! Hive holds 38 significant digits. More digits before the point give null; further digits after it are rounded
//! away before the value is rounded to the scale. Surrounding blanks are allowed since Hive 4. Source: Hive's
//! `FastHiveDecimalImpl.fastSetFromBytes`.

use super::cells::Cell;
use super::digits::{POWERS_OF_TEN, sign, up_to_16, without_point};
use super::fixed::Parse;
use crate::serde::HiveVersion;

const MAX_DIGITS: usize = 38;

pub(super) struct Decimal {
    precision: u8,
    scale: u8,
    /// Hive 4 trims, and accepts an exponent after `.5`.
    hive4: bool,
    /// `10^precision`
    bound: i128,
    /// `bound`, saturated to 64 bits, for the fast path.
    short_bound: u64,
}

impl Decimal {
    pub(super) fn new(precision: u8, scale: u8, version: HiveVersion) -> Self {
        Self {
            precision,
            scale,
            hive4: version >= HiveVersion::V4_1,
            bound: power(u32::from(precision)),
            short_bound: POWERS_OF_TEN.get(usize::from(precision)).copied().unwrap_or(u64::MAX),
        }
    }
}

/// `10^exponent`, for exponents up to 38.
fn power(exponent: u32) -> i128 {
    10i128.pow(exponent.min(38))
}

impl Parse for Decimal {
    type Value = i128;

    #[inline(always)]
    fn parse(&self, cell: Cell<'_>) -> Option<i128> {
        let (negative, rest, len) = sign(cell);
        match self.short(rest, len) {
            Some(magnitude) if negative => Some(-i128::from(magnitude)),
            Some(magnitude) => Some(i128::from(magnitude)),
            None => self.leniently(cell.bytes()),
        }
    }
}

impl Decimal {
    /// A number with exactly the scale's digits after the point, as Hive writes it, and not too long.
    #[inline(always)]
    fn short(&self, rest: &[u8], len: usize) -> Option<u64> {
        let scale = usize::from(self.scale);
        if scale == 0 {
            return up_to_16(rest, len).filter(|n| *n < self.short_bound);
        }
        let whole_len = len.checked_sub(scale + 1)?;
        if len <= 8 {
            // Without the point, all digits fit one word.
            return without_point(rest, len, whole_len).filter(|value| *value < self.short_bound);
        }
        if scale > 8 || whole_len > 10 || rest.get(whole_len) != Some(&b'.') {
            return None;
        }
        let whole = up_to_16(rest, whole_len)?;
        let fraction = up_to_16(rest.get(whole_len + 1..)?, scale)?;
        let value = whole * POWERS_OF_TEN.get(scale)? + fraction;
        (value < self.short_bound).then_some(value)
    }

    /// Parses every form that Hive accepts.
    #[cold]
    fn leniently(&self, text: &[u8]) -> Option<i128> {
        let mut number = self.scan(text)?;
        let scale = i32::from(self.scale);
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
        if value >= self.bound || self.precision == 0 {
            return None;
        }
        Some(if number.negative { -value } else { value })
    }

    fn scan(&self, cell: &[u8]) -> Option<Number> {
        let text = if self.hive4 { trim(cell) } else { cell };
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
        // Before Hive 4 nothing may follow `.5`; but if digits are dropped, Hive does not check that.
        let naked = !self.hive4 && !rest.is_empty() && fraction.len() <= MAX_DIGITS;
        if whole.is_empty() && (fraction.is_empty() || naked) {
            return None;
        }
        let exponent = match rest {
            [] => 0,
            // Hive 4 accepts a blank instead of the exponent's digits.
            [b'e' | b'E', exponent @ ..] => exponent_of(exponent, self.hive4 && !cell.ends_with(text))?,
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
        Some(Number { negative, magnitude, scale })
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

/// `magnitude * 10^-scale`; the magnitude is at most `10^38`.
struct Number {
    negative: bool,
    magnitude: i128,
    scale: i32,
}

impl Number {
    /// Rounds to at most `scale` digits after the point, half away from zero.
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

/// The text without the blanks that Hive 4 skips: space, tab, VT and FF.
fn trim(text: &[u8]) -> &[u8] {
    let is_blank = |b: &u8| matches!(b, b' ' | b'\t' | 0x0b | 0x0c);
    let start = text.iter().position(|b| !is_blank(b)).unwrap_or(text.len());
    let end = text.iter().rposition(|b| !is_blank(b)).map_or(start, |last| last + 1);
    text.get(start..end).unwrap_or_default()
}
