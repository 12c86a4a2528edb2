//! Reads `float` and `double`: all text that Java's `Double.parseDouble` accepts.
//!
//! ```text
//! blanks [+-] ( NaN | Infinity | digits [. digits] [e [+-] digits] [f|d]
//!             | 0x hex [. hex] p [+-] digits [f|d] ) blanks
//! ```
//!
//! Every character up to U+0020 is a blank. Java does not accept `inf`, `nan` or other spellings. Hive checks
//! the length first (`LazyUtils.isNumberMaybe`): a cell of one byte must be a digit, and one of four must not begin
//! with `n`.

use super::cells::Cell;
use super::digits::{POWERS_OF_TEN, in_two_words, point, sign, without_point};
use super::fixed::Parse;

/// Parser for `float` (`f32`) or `double` (`f64`).
pub(super) struct Float<T>(std::marker::PhantomData<T>);

impl<T> Float<T> {
    pub(super) fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

/// The differences between the two types.
pub(super) trait Binary:
    Copy + Default + fast_float2::FastFloat + std::ops::Neg<Output = Self>
{
    const NOT_A_NUMBER: Self;
    const POSITIVE_INFINITY: Self;
    /// Exponent of the smallest normal value.
    const MIN_EXPONENT: i64;
    /// Number of bits of a significand.
    const SIGNIFICAND: u32;
    /// The value nearest to an integer.
    fn nearest(value: u64) -> Self;
    /// The value itself, which is representable.
    fn narrowed(value: f64) -> Self;
    /// Exactly `self * 2^exponent`, if it is representable.
    fn scaled(self, exponent: i64) -> Self;
}

impl Binary for f64 {
    const NOT_A_NUMBER: Self = Self::NAN;
    const POSITIVE_INFINITY: Self = Self::INFINITY;
    const MIN_EXPONENT: i64 = -1022;
    const SIGNIFICAND: u32 = 53;

    #[expect(clippy::cast_precision_loss, reason = "the nearest value is asked for")]
    fn nearest(value: u64) -> Self {
        value as Self
    }

    fn narrowed(value: f64) -> Self {
        value
    }

    fn scaled(self, exponent: i64) -> Self {
        // Multiplied in two steps, because 2^exponent itself can be too small or too large; the first step is
        // exact.
        let half = i32::try_from(exponent.clamp(-2200, 2200) / 2).unwrap_or(0);
        let rest = i32::try_from(exponent.clamp(-2200, 2200)).unwrap_or(0) - half;
        self * Self::powi(2.0, half) * Self::powi(2.0, rest)
    }
}

impl Binary for f32 {
    const NOT_A_NUMBER: Self = Self::NAN;
    const POSITIVE_INFINITY: Self = Self::INFINITY;
    const MIN_EXPONENT: i64 = -126;
    const SIGNIFICAND: u32 = 24;

    #[expect(clippy::cast_precision_loss, reason = "the nearest value is asked for")]
    fn nearest(value: u64) -> Self {
        value as Self
    }

    #[expect(clippy::cast_possible_truncation, reason = "exact")]
    fn narrowed(value: f64) -> Self {
        value as Self
    }

    #[expect(clippy::cast_possible_truncation, reason = "exact, or beyond the type's range by intent")]
    fn scaled(self, exponent: i64) -> Self {
        f64::from(self).scaled(exponent) as Self
    }
}

impl<T: Binary> Parse for Float<T> {
    type Value = T;

    #[inline(always)]
    fn parse(&self, cell: Cell<'_>) -> Option<T> {
        if let Some(value) = plain(cell) {
            return Some(value);
        }
        let bytes = cell.bytes();
        // Text that begins and ends with a digit satisfies Java's grammar if it satisfies the crate's.
        let unsigned = bytes.strip_prefix(b"-").unwrap_or(bytes);
        if let ([first, ..], [.., last]) = (unsigned, unsigned)
            && first.is_ascii_digit()
            && last.is_ascii_digit()
            && let Ok(value) = fast_float2::parse(bytes)
        {
            return Some(value);
        }
        leniently(bytes)
    }
}

/// `[-] digits . digits`, at most 19 digits: at most 16 after the point, and at most seven before them.
#[inline(always)]
fn plain<T: Binary>(cell: Cell<'_>) -> Option<T> {
    let (negative, rest, len) = sign(cell);
    let point = point(rest)?;
    let behind = len.checked_sub(point + 1)?;
    let tail_len = behind.min(16);
    let head_len = len - tail_len;
    if len > 20 || point == 0 || tail_len == 0 || head_len > 8 {
        return None;
    }
    let head = without_point(rest, head_len, point)?;
    let tail = in_two_words(rest.get(head_len..)?, tail_len)?;
    quotient(negative, head * POWERS_OF_TEN.get(tail_len)? + tail, behind)
}

/// `10^-k` as `(m, e)`: `m * 2^-e`, with m truncated to 64 bits.
const TENTHS: [(u64, i32); 20] = {
    let mut tenths = [(0, 0); 20];
    let mut k = 0;
    #[expect(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "evaluated at compile time; 2^63 <= 2^e / 10^k < 2^64"
    )]
    while k < 20 {
        let e = 127 - (POWERS_OF_TEN[k] - 1).leading_zeros();
        tenths[k] = (((1u128 << e) / POWERS_OF_TEN[k] as u128) as u64, e as i32);
        k += 1;
    }
    tenths
};

/// The value nearest to `digits / 10^k` (negated if `negative`); `None` if 64 bits do not decide it.
///
/// `digits`, shifted up to 64 bits, times `m` is less than the true product by less than `2^64`: the upper
/// half of the product is exact or too small by 1. That matters only if the bits after the value's last bit
/// are a half
/// or just below it: about one random number in 500.
#[inline(always)]
fn quotient<T: Binary>(negative: bool, digits: u64, k: usize) -> Option<T> {
    let (tenths, scale) = *TENTHS.get(k)?;
    let sign = u64::from(negative) << 63;
    if digits == 0 {
        return Some(T::narrowed(f64::from_bits(sign)));
    }
    let free = digits.leading_zeros();
    let product = u128::from(digits << free) * u128::from(tenths);
    let high = u64::try_from(product >> 64).ok()?;
    // The upper half has 63 or 64 bits.
    let surplus = 63 - T::SIGNIFICAND + u32::try_from(high >> 63).ok()?;
    let half = 1u64 << (surplus - 1);
    let behind = high & (2 * half - 1);
    if behind == half || behind + 1 == half {
        return None;
    }
    let kept = (high >> surplus) + u64::from(behind > half);
    // As an f64 it has 53 bits, or one more if it was rounded up to 2^53: the carry correctly goes to the exponent.
    let narrower = 53 - T::SIGNIFICAND;
    let exponent = i64::from(surplus) + 64 - i64::from(scale) - i64::from(free) - i64::from(narrower);
    let biased = u64::try_from(exponent + 52 + 1023 - 1).ok()?;
    Some(T::narrowed(f64::from_bits(sign | ((biased << 52) + (kept << narrower)))))
}

/// Parses the rest of Java's grammar.
#[cold]
fn leniently<T: Binary>(cell: &[u8]) -> Option<T> {
    match cell {
        [] | [_] => return None,
        [a, b] if !a.is_ascii_digit() && !b.is_ascii_digit() => return None,
        [b'N' | b'n', _, _, _] => return None,
        _ => {}
    }
    let text = trim(cell);
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let value = match unsigned {
        // The canonical NaN, whatever the sign.
        b"NaN" => return Some(T::NOT_A_NUMBER),
        b"Infinity" => T::POSITIVE_INFINITY,
        [b'0', b'x' | b'X', hex @ ..] => hexadecimal(without_suffix(hex))?,
        _ => decimal(without_suffix(unsigned))?,
    };
    Some(if negative { -value } else { value })
}

/// Removes the characters that Java's `String.trim` removes.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&b| b > b' ').unwrap_or(text.len());
    let end = text.iter().rposition(|&b| b > b' ').map_or(start, |last| last + 1);
    text.get(start..end).unwrap_or_default()
}

fn without_suffix(text: &[u8]) -> &[u8] {
    match text {
        [rest @ .., b'f' | b'F' | b'd' | b'D'] => rest,
        _ => text,
    }
}

fn decimal<T: Binary>(text: &[u8]) -> Option<T> {
    let (significand, exponent) = match text.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => (text.get(..at)?, text.get(at + 1..)),
        None => (text, None),
    };
    let digits = significand.iter().filter(|b| b.is_ascii_digit()).count();
    let points = significand.iter().filter(|&&b| b == b'.').count();
    if digits == 0 || points > 1 || digits + points != significand.len() {
        return None;
    }
    if let Some(exponent) = exponent {
        signed_digits(exponent)?;
    }
    fast_float2::parse(text).ok()
}

/// An integer such as `-12`, kept within an i32's range.
fn signed_digits(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = digits.iter().fold(0i64, |n, b| (n * 10 + i64::from(b - b'0')).min(i64::from(i32::MAX)));
    Some(if negative { -magnitude } else { magnitude })
}

/// `hex [. hex] p exponent`, rounded once, half to even.
fn hexadecimal<T: Binary>(text: &[u8]) -> Option<T> {
    let at = text.iter().position(|b| matches!(b, b'p' | b'P'))?;
    let mut exponent = signed_digits(text.get(at + 1..)?)?;
    let mut significand = 0u64;
    let (mut digits, mut behind_point) = (0usize, false);
    for &b in text.get(..at)? {
        if b == b'.' {
            if behind_point {
                return None;
            }
            behind_point = true;
            continue;
        }
        let digit = u64::from(char::from(b).to_digit(16)?);
        digits += 1;
        if significand >> 60 == 0 {
            significand = significand << 4 | digit;
            exponent -= if behind_point { 4 } else { 0 };
        } else {
            // Overflow: further digits matter only if they are not zero.
            significand |= u64::from(digit != 0);
            exponent += if behind_point { 0 } else { 4 };
        }
    }
    if digits == 0 {
        return None;
    }
    if significand == 0 {
        return Some(T::nearest(0));
    }
    let free = significand.leading_zeros();
    significand <<= free;
    exponent -= i64::from(free);
    // A subnormal value has fewer bits; round the dropped bits.
    let lost = (T::MIN_EXPONENT - (exponent + 63)).clamp(0, 64);
    if lost > 0 {
        let shift = u32::try_from(lost).unwrap_or(64);
        let dropped = significand.checked_shl(64 - shift).unwrap_or(significand);
        let kept = significand.checked_shr(shift).unwrap_or(0);
        significand = kept | u64::from(dropped != 0);
        exponent += lost;
    }
    Some(T::nearest(significand).scaled(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check<T: Binary + PartialEq + std::fmt::Debug + std::str::FromStr>(digits: u64, k: usize)
    where
        T::Err: std::fmt::Debug,
    {
        let expected: T = format!("{digits}e-{k}").parse().unwrap();
        if let Some(value) = quotient::<T>(false, digits, k) {
            assert_eq!(value, expected, "{digits}e-{k}");
        }
    }

    #[test]
    fn quotients_near_halfway_are_right_or_left_to_the_slow_path() {
        for power in 0..64 {
            for bits in [24, 25, 53, 54, 63] {
                for near in 0..9 {
                    let half = (1u64 << power) | (1u64 << power).checked_shr(bits).unwrap_or(0);
                    for k in 0..=19 {
                        check::<f64>(half.wrapping_add(near).wrapping_sub(4), k);
                        check::<f32>(half.wrapping_add(near).wrapping_sub(4), k);
                    }
                }
            }
        }
        assert_eq!(quotient::<f64>(false, u64::MAX, 20), None);
        assert_eq!(quotient::<f64>(false, 1725, 2), Some(17.25));
        assert_eq!(quotient::<f64>(false, 0, 2), Some(0.0));
    }

    proptest! {
        #[test]
        fn plain_numbers_are_as_the_standard_library_reads_them(
            text in "-?[0-9]{1,8}\\.[0-9]{1,19}", digits: u64, k in 0usize..20,
        ) {
            let buffer = format!("{text}0123456789.12345678-0123456789");
            let cell = Cell { rest: buffer.as_bytes(), len: text.len() };
            let whole = text.trim_start_matches('-').find('.').unwrap();
            let easy = whole < 8 && text.trim_start_matches('-').len() <= 20;
            if let Some(value) = plain::<f64>(cell) {
                prop_assert!(easy);
                prop_assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits());
            }
            if let Some(value) = plain::<f32>(cell) {
                prop_assert_eq!(value.to_bits(), text.parse::<f32>().unwrap().to_bits());
            }
            check::<f64>(digits, k);
            check::<f32>(digits, k);
            check::<f64>(digits >> 11, k);
        }

        #[test]
        fn few_numbers_need_the_slow_path(numbers in proptest::collection::vec(any::<u64>(), 2000)) {
            let left = numbers.iter().filter(|n| quotient::<f64>(false, **n, 16).is_none()).count();
            prop_assert!(left < 40, "{left}");
        }
    }
}
