//! Reads `float` and `double`: all text that Java's `Double.parseDouble` accepts ([`java_text`]). Hive checks the length
//! first (`LazyUtils.isNumberMaybe`): a cell of one byte must be a digit, and one of four must not begin with `n`.

use coldframe_encoding::java_text::{self, Binary};

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

/// Checks the length as Hive does, then parses the rest of Java's grammar.
#[cold]
fn leniently<T: Binary>(cell: &[u8]) -> Option<T> {
    match cell {
        [] | [_] => None,
        [a, b] if !a.is_ascii_digit() && !b.is_ascii_digit() => None,
        [b'N' | b'n', _, _, _] => None,
        _ => java_text::parse(cell),
    }
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
