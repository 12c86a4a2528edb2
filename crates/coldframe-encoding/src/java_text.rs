//! Numbers as text, as Java prints and parses them.
//!
//! ```text
//! parsed    blanks [+-] ( NaN | Infinity | digits [. digits] [e [+-] digits] [f|d]
//!                       | 0x hex [. hex] p [+-] digits [f|d] ) blanks
//! printed   100.0   1.5   1.0E10   1.0E-5   -0.0   NaN   Infinity
//! ```
//!
//! Every character up to U+0020 is a blank. Java does not accept `inf`, `nan` or other spellings. The text of a number is
//! the shortest that gives the number again, as Java 19 and later print it.

use std::io::Write as _;

/// Writing to a `Vec` cannot fail.
macro_rules! put {
    ($out:expr, $($format:tt)*) => {{
        let _ = write!($out, $($format)*);
    }};
}

/// A type of floating-point numbers: `f32` or `f64`.
pub trait Binary:
    Copy + Default + fast_float2::FastFloat + std::ops::Neg<Output = Self>
{
    /// The canonical NaN.
    const NOT_A_NUMBER: Self;
    /// Positive infinity.
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

/// What `Double.parseDouble` and `Float.parseFloat` return; `None` where they fail.
pub fn parse<T: Binary>(text: &[u8]) -> Option<T> {
    let text = trim(text);
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
#[must_use]
pub fn trim(text: &[u8]) -> &[u8] {
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

/// Prints the text of `Double.toString`.
pub fn print_double(value: f64, out: &mut Vec<u8>) {
    if !special(value, out) {
        let mut digits = Vec::with_capacity(32);
        put!(digits, "{value:e}");
        if !digits.contains(&b'.') {
            // Where one digit would be enough, Java prints the nearest two.
            digits.clear();
            put!(digits, "{value:.1e}");
        } else if can_tie(value) {
            even_of_two(value, &mut digits);
        }
        java_notation(&digits, out);
    }
}

/// Prints the text of `Float.toString`.
pub fn print_float(value: f32, out: &mut Vec<u8>) {
    if !special(value.into(), out) {
        let mut digits = Vec::with_capacity(32);
        put!(digits, "{value:e}");
        if !digits.contains(&b'.') {
            digits.clear();
            put!(digits, "{value:.1e}");
        } else if can_tie(value.into()) {
            even_of_two(value.into(), &mut digits);
        }
        java_notation(&digits, out);
    }
}

/// Whether the value's last bit is worth at least 2^-20: only then can its exact decimal expansion end in a 5 after the
/// printed digits, since that needs as many digits after the point as bits.
fn can_tie(value: f64) -> bool {
    let bits = value.to_bits();
    let exponent = i64::from((bits >> 52) as u16 & 0x7ff);
    let fraction_bits = 52 - i64::from((bits | 1 << 52).trailing_zeros());
    exponent - 1023 - fraction_bits >= -20
}

/// Of two decimals that are equally short and near, Java takes the one with the even last digit; Rust the greater.
fn even_of_two(value: f64, digits: &mut [u8]) {
    let Some(e) = digits.iter().position(|&b| b == b'e') else { return };
    let Some(last) = e.checked_sub(1).and_then(|i| digits.get(i).copied()) else { return };
    if last % 2 == 0 {
        return;
    }
    // The exact digits: at most 53 bits before the point and 20 behind it.
    let exact = format!("{value:.80e}");
    let tail = exact.as_bytes().get(e..).unwrap_or_default();
    let exact_last = e.checked_sub(1).and_then(|i| exact.as_bytes().get(i).copied());
    let is_tie =
        tail.first() == Some(&b'5') && tail.iter().skip(1).take_while(|b| **b != b'e').all(|b| *b == b'0');
    if is_tie
        && exact_last == Some(last - 1)
        && let Some(slot) = digits.get_mut(e - 1)
    {
        *slot = last - 1;
    }
}

fn special(value: f64, out: &mut Vec<u8>) -> bool {
    let text: &[u8] = if value.is_nan() {
        b"NaN"
    } else if value.is_infinite() {
        if value > 0.0 { b"Infinity" } else { b"-Infinity" }
    } else if value == 0.0 {
        if value.is_sign_negative() { b"-0.0" } else { b"0.0" }
    } else {
        return false;
    };
    out.extend_from_slice(text);
    true
}

/// From `-d.ddde-x` to Java's form: plain from 1e-3 to 1e7, else `d.dddE-x`; at least one digit after the point.
fn java_notation(scientific: &[u8], out: &mut Vec<u8>) {
    let unsigned = scientific.strip_prefix(b"-").unwrap_or(scientific);
    if unsigned.len() < scientific.len() {
        out.push(b'-');
    }
    let at = unsigned.iter().position(|&b| b == b'e').unwrap_or(unsigned.len());
    let (significand, exponent) = unsigned.split_at_checked(at).unwrap_or((unsigned, &[]));
    let exponent =
        exponent.get(1..).and_then(|e| std::str::from_utf8(e).ok()?.parse::<i32>().ok()).unwrap_or(0);
    let mut digits: Vec<u8> = significand.iter().copied().filter(|&b| b != b'.').collect();
    while digits.len() > 1 && digits.ends_with(b"0") {
        digits.pop();
    }
    let (whole, scientific) = match exponent {
        0..=6 => (usize::try_from(exponent).unwrap_or(0) + 1, false),
        -3..=-1 => {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + usize::try_from(-1 - exponent).unwrap_or(0), b'0');
            out.extend_from_slice(&digits);
            return;
        }
        _ => (1, true),
    };
    while digits.len() <= whole {
        digits.push(b'0');
    }
    let (before, behind) = digits.split_at_checked(whole).unwrap_or((&digits, &[]));
    out.extend_from_slice(before);
    out.push(b'.');
    out.extend_from_slice(behind);
    if scientific {
        put!(out, "E{exponent}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        print_double(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_printed_as_in_java() {
        for text in ["0.0", "-0.0", "1.0", "0.001", "1.0E-4", "9999999.0", "1.0E7", "1.5", "NaN", "-Infinity", "4.9E-324"] {
            assert_eq!(double(parse(text.as_bytes()).unwrap()), text);
        }
        let mut out = Vec::new();
        print_float(0.1, &mut out);
        print_float(1.4e-45, &mut out);
        assert_eq!(out, b"0.11.4E-45");
    }

    #[test]
    fn text_is_parsed_as_in_java() {
        for (text, value) in [("1", 1.0), (" 1d\t", 1.0), (".5", 0.5), ("5.", 5.0), ("0x1p4", 16.0), ("1e400", f64::INFINITY)] {
            assert_eq!(parse(text.as_bytes()), Some(value), "{text}");
        }
        for text in ["", " ", "e5", ".", "inf", "nan", "1 2", "0x10", "1e", "--1", "1_0"] {
            assert_eq!(parse::<f64>(text.as_bytes()), None, "{text}");
        }
        assert!(parse::<f32>(b"-NaN").unwrap().is_nan());
    }
}
