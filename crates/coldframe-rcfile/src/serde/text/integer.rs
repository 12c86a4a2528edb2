//! Reads `tinyint`, `smallint`, `int`, `bigint`: `[+-] digits [. digits]`, without the fraction.
//!
//! Neither blanks nor exponents are accepted. A value that does not fit the type is null. Source: Hive's
//! `LazyInteger`, `LazyLong`.

use std::marker::PhantomData;

use super::cells::Cell;
use super::digits::{sign, up_to_16};
use super::fixed::Parse;

/// Parser for the integer type `T`.
pub(super) struct Integer<T>(PhantomData<T>);

impl<T> Integer<T> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Copy + Default + TryFrom<i64>> Parse for Integer<T> {
    type Value = T;

    #[inline(always)]
    fn parse(&self, cell: Cell<'_>) -> Option<T> {
        let (negative, rest, len) = sign(cell);
        let value = match up_to_16(rest, len).and_then(|n| i64::try_from(n).ok()) {
            Some(magnitude) => {
                if negative {
                    -magnitude
                } else {
                    magnitude
                }
            }
            None => leniently(cell.bytes())?,
        };
        T::try_from(value).ok()
    }
}

/// The integer in `text`, read byte by byte.
#[cold]
pub(super) fn leniently(text: &[u8]) -> Option<i64> {
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let end = unsigned.iter().position(|&b| b == b'.').unwrap_or(unsigned.len());
    let (whole, fraction) = unsigned.split_at_checked(end)?;
    let fraction_digits = fraction.get(1..).unwrap_or_default();
    if !fraction_digits.iter().all(u8::is_ascii_digit) || (whole.is_empty() && fraction_digits.is_empty()) {
        return None;
    }
    // The sum is negative, because one more negative value fits the type.
    whole
        .iter()
        .try_fold(0i64, |value, &b| {
            let digit = b.is_ascii_digit().then(|| i64::from(b - b'0'))?;
            value.checked_mul(10)?.checked_sub(digit)
        })
        .and_then(|value| if negative { Some(value) } else { value.checked_neg() })
}
