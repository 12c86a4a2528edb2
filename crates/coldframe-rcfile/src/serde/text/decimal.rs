//! Reads `decimal(p, s)`: `[+-] digits [. digits] [e [+-] digits]`, rounded half up to the scale; null where
//! it does not fit.
//!
//! Hive holds 38 significant digits. More digits before the point give null; further digits after it are rounded
//! away before the value is rounded to the scale. Surrounding blanks are allowed since Hive 4. Source: Hive's
//! `FastHiveDecimalImpl.fastSetFromBytes`.

use coldframe_core::types::hive::Number;

use super::cells::Cell;
use super::digits::{POWERS_OF_TEN, sign, up_to_16, without_point};
use super::fixed::Parse;
use crate::serde::HiveVersion;

pub(super) struct Decimal {
    precision: u8,
    scale: u8,
    /// Hive 4 trims, and accepts an exponent after `.5`.
    hive4: bool,
    /// `10^precision`, saturated to 64 bits, for the fast path.
    short_bound: u64,
}

impl Decimal {
    pub(super) fn new(precision: u8, scale: u8, version: HiveVersion) -> Self {
        Self {
            precision,
            scale,
            hive4: version >= HiveVersion::V4_1,
            short_bound: POWERS_OF_TEN.get(usize::from(precision)).copied().unwrap_or(u64::MAX),
        }
    }
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
        Number::parse(text, self.hive4)?.fitted(self.precision, self.scale)
    }
}
