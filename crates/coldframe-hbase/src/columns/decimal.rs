//! Decimal numbers as text.
//!
//! ```text
//! BigDecimal   | scale i32 | unscaled value, two's complement, big-endian |       as text, as Java writes it
//! ```
//!
//! HBase: `Bytes.toBytes(BigDecimal)`; Java: `BigDecimal.toString`.

/// Maximum bytes of a number, because the time to format one grows faster than its length.
const MAX_DIGITS: usize = 4096;

/// A `BigDecimal` as Java prints it; `None` for invalid bytes.
pub(crate) fn decimal_text(bytes: &[u8]) -> Option<String> {
    let (scale, unscaled) = bytes.split_first_chunk::<4>()?;
    if unscaled.is_empty() || unscaled.len() > MAX_DIGITS {
        return None;
    }
    let (negative, digits) = digits(unscaled);
    java_decimal(negative, &digits, i64::from(i32::from_be_bytes(*scale)))
}

/// Prints a number as Java does. `digits`: its decimal digits, of which `scale` are after the point. `None`
/// if the text would be much longer than the digits.
pub(crate) fn java_decimal(negative: bool, digits: &str, scale: i64) -> Option<String> {
    let sign = if negative { "-" } else { "" };
    let len = i64::try_from(digits.len()).ok()?;
    let exponent = len - 1 - scale;
    if scale == 0 {
        return Some(format!("{sign}{digits}"));
    }
    if scale > 0 && exponent >= -6 {
        let point = usize::try_from(len - scale).ok();
        return Some(match point.filter(|point| *point > 0) {
            Some(point) => {
                let (whole, part) = digits.split_at_checked(point)?;
                format!("{sign}{whole}.{part}")
            }
            None => {
                let zeros = "0".repeat(usize::try_from(scale - len).ok()?);
                format!("{sign}0.{zeros}{digits}")
            }
        });
    }
    let (first, others) = digits.split_at_checked(1)?;
    let point = if others.is_empty() { "" } else { "." };
    let plus = if exponent >= 0 { "+" } else { "" };
    if exponent == 0 {
        return Some(format!("{sign}{first}{point}{others}"));
    }
    Some(format!("{sign}{first}{point}{others}E{plus}{exponent}"))
}

/// The decimal digits of a two's complement number, and whether it is negative.
fn digits(bytes: &[u8]) -> (bool, String) {
    const BASE: u64 = 1_000_000_000;
    let negative = bytes.first().is_some_and(|b| *b >= 0x80);
    let mut carry = true;
    let mut magnitude: Vec<u8> = bytes.to_vec();
    if negative {
        for byte in magnitude.iter_mut().rev() {
            let (flipped, over) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (flipped, over);
        }
    }
    // The digits in groups of nine, the lowest group first.
    let mut groups: Vec<u64> = Vec::new();
    for byte in magnitude {
        let mut carry = u64::from(byte);
        for group in &mut groups {
            let value = (*group << 8) + carry;
            (*group, carry) = (value % BASE, value / BASE);
        }
        if carry > 0 {
            groups.push(carry);
        }
    }
    let Some((highest, lower)) = groups.split_last() else { return (false, "0".to_owned()) };
    let mut text = highest.to_string();
    for group in lower.iter().rev() {
        text.push_str(&format!("{group:09}"));
    }
    (negative, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(scale: i32, unscaled: i128) -> String {
        decimal_text(&[&scale.to_be_bytes()[..], &unscaled.to_be_bytes()].concat()).unwrap()
    }

    #[test]
    fn decimals_are_as_java_writes_them() {
        assert_eq!(text(0, -812_823), "-812823");
        assert_eq!(text(1, 4_034_000_810_670), "403400081067.0");
        assert_eq!(text(4, 5), "0.0005");
        assert_eq!(text(10, -5), "-5E-10");
        assert_eq!(text(-3, 12), "1.2E+4");
        assert_eq!(text(3, 0), "0.000");
        assert_eq!(text(2, i128::MIN), "-1701411834604692317316873037158841057.28");
        assert_eq!(decimal_text(&[0, 0, 0, 0, 0xff]).unwrap(), "-1");
        assert!(decimal_text(&[0, 0, 0, 0]).is_none() && decimal_text(&[0, 0]).is_none());
    }
}
