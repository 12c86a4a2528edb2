//! Decodes Phoenix's values to Arrow.
//!
//! ```text
//! integers    big-endian, sign bit inverted: -1 is 7f ff ff ff.  UNSIGNED_..: unchanged
//! floating    bits i: (i ^ (i >> 31 | 80 00 00 00)) + 1.  UNSIGNED_..: unchanged
//! BOOLEAN     01, 00; in descending order the other way round
//! DATE, TIME  ms, as a BIGINT;  TIMESTAMP: ms, then ns of the ms, u32
//! CHAR        padded with spaces
//! DECIMAL     | exponent | two digits + 1 ..      positive: exponent 80 | 65 + base-100 digits before the point;  0: 80
//!             | ~exponent | 101 - two digits .. | 66 |      negative
//!   12.50     c1 0d 33          -12.50    3e 59 33 66
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Decimal128Builder, Float32Builder, Float64Builder, Int8Builder,
    Int16Builder, Int32Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
    TimestampMillisecondBuilder,
};
use coldframe_core::{Result, arrow_error};

use super::PhoenixType;
use crate::columns::decimal::java_decimal;

/// Collects the values of a column.
#[derive(Debug)]
pub(crate) struct PhoenixValues {
    of: PhoenixType,
    descending: bool,
    built: Built,
}

#[derive(Debug)]
enum Built {
    Tiny(Int8Builder),
    Small(Int16Builder),
    Int(Int32Builder),
    Big(Int64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, (u8, i8)),
    DecimalText(StringBuilder),
    Boolean(BooleanBuilder),
    Millis(TimestampMillisecondBuilder),
    Micros(TimestampMicrosecondBuilder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

/// Runs the same code for every kind of builder.
macro_rules! each {
    ($built:expr, $builder:ident => $do:expr) => {
        match $built {
            Built::Tiny($builder) => $do,
            Built::Small($builder) => $do,
            Built::Int($builder) => $do,
            Built::Big($builder) => $do,
            Built::Float($builder) => $do,
            Built::Double($builder) => $do,
            Built::Decimal($builder, _) => $do,
            Built::DecimalText($builder) => $do,
            Built::Boolean($builder) => $do,
            Built::Millis($builder) => $do,
            Built::Micros($builder) => $do,
            Built::Text($builder) => $do,
            Built::Bytes($builder) => $do,
        }
    };
}

impl PhoenixValues {
    /// A collector for a column with this type and order.
    pub(crate) fn new(of: PhoenixType, descending: bool) -> Result<Self> {
        let built = match of {
            PhoenixType::Integer { width: 1, .. } => Built::Tiny(Int8Builder::new()),
            PhoenixType::Integer { width: 2, .. } => Built::Small(Int16Builder::new()),
            PhoenixType::Integer { width: 4, .. } => Built::Int(Int32Builder::new()),
            PhoenixType::Integer { .. } => Built::Big(Int64Builder::new()),
            PhoenixType::Floating { width: 4, .. } => Built::Float(Float32Builder::new()),
            PhoenixType::Floating { .. } => Built::Double(Float64Builder::new()),
            PhoenixType::Decimal(Some(digits)) => {
                let empty = Decimal128Builder::new().with_precision_and_scale(digits.0, digits.1);
                Built::Decimal(empty.map_err(arrow_error)?, digits)
            }
            PhoenixType::Decimal(None) => Built::DecimalText(StringBuilder::new()),
            PhoenixType::Boolean => Built::Boolean(BooleanBuilder::new()),
            PhoenixType::Date { .. } => Built::Millis(TimestampMillisecondBuilder::new()),
            PhoenixType::Timestamp { .. } => Built::Micros(TimestampMicrosecondBuilder::new()),
            PhoenixType::Char(_) | PhoenixType::Varchar => Built::Text(StringBuilder::new()),
            PhoenixType::Binary(_) | PhoenixType::Varbinary => Built::Bytes(BinaryBuilder::new()),
        };
        Ok(Self { of, descending, built })
    }

    /// Appends a value. Returns `false`, and appends nothing, if its bytes are no value of the column's type.
    pub(crate) fn append(&mut self, stored: &[u8]) -> bool {
        if stored.is_empty() {
            self.append_null();
            return true;
        }
        let turned = self.descending && self.of != PhoenixType::Boolean;
        let bytes: Cow<'_, [u8]> = match turned {
            true => stored.iter().map(|b| !b).collect::<Vec<_>>().into(),
            false => stored.into(),
        };
        self.append_ascending(&bytes).is_some()
    }

    fn append_ascending(&mut self, bytes: &[u8]) -> Option<()> {
        match &mut self.built {
            Built::Tiny(b) => b.append_value(i8::try_from(integer(bytes, self.of)?).ok()?),
            Built::Small(b) => b.append_value(i16::try_from(integer(bytes, self.of)?).ok()?),
            Built::Int(b) => b.append_value(i32::try_from(integer(bytes, self.of)?).ok()?),
            Built::Big(b) => b.append_value(integer(bytes, self.of)?),
            Built::Float(b) => b.append_value(float(bytes, self.of)?),
            Built::Double(b) => b.append_value(double(bytes, self.of)?),
            Built::Decimal(b, (precision, scale)) => {
                b.append_value(Digits::of(bytes)?.scaled(*precision, *scale)?);
            }
            Built::DecimalText(b) => {
                let digits = Digits::of(bytes)?;
                b.append_value(java_decimal(digits.negative, &digits.digits, digits.scale)?);
            }
            Built::Boolean(b) => match bytes {
                [byte] => b.append_value((*byte != 0) != self.descending),
                _ => return None,
            },
            Built::Millis(b) => b.append_value(millis(bytes, self.of)?),
            Built::Micros(b) => b.append_value(micros(bytes, self.of)?),
            Built::Text(b) => {
                let text = std::str::from_utf8(bytes).ok()?;
                let padded = matches!(self.of, PhoenixType::Char(_));
                b.append_value(if padded { text.trim_end_matches(' ') } else { text });
            }
            Built::Bytes(b) => b.append_value(bytes),
        }
        Some(())
    }

    pub(crate) fn append_null(&mut self) {
        each!(&mut self.built, b => b.append_null());
    }

    /// Returns all values since the last call.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef> {
        if let Built::Decimal(b, (precision, scale)) = &mut self.built {
            let array = b.finish().with_precision_and_scale(*precision, *scale);
            return Ok(Arc::new(array.map_err(arrow_error)?));
        }
        Ok(each!(&mut self.built, b => Arc::new(b.finish()) as ArrayRef))
    }
}

/// An integer of 1, 2, 4 or 8 bytes.
fn integer(bytes: &[u8], of: PhoenixType) -> Option<i64> {
    let PhoenixType::Integer { width, signed } = of else { return None };
    if bytes.len() != width {
        return None;
    }
    number(bytes, signed)
}

fn number(bytes: &[u8], signed: bool) -> Option<i64> {
    let (first, others) = bytes.split_first()?;
    let first = if signed { i64::from((first ^ 0x80).cast_signed()) } else { i64::from(*first) };
    // An unsigned type has only the non-negative values of the signed type.
    if !signed && first >= 0x80 {
        return None;
    }
    Some(others.iter().fold(first, |all, byte| all << 8 | i64::from(*byte)))
}

fn float(bytes: &[u8], of: PhoenixType) -> Option<f32> {
    let bits = i32::from_be_bytes(bytes.try_into().ok()?);
    let PhoenixType::Floating { signed, .. } = of else { return None };
    if !signed {
        return Some(f32::from_bits(bits.cast_unsigned())).filter(|n| *n >= 0.0 || n.is_nan());
    }
    let bits = bits.wrapping_sub(1);
    Some(f32::from_bits((bits ^ ((!bits >> 31) | i32::MIN)).cast_unsigned()))
}

fn double(bytes: &[u8], of: PhoenixType) -> Option<f64> {
    let bits = i64::from_be_bytes(bytes.try_into().ok()?);
    let PhoenixType::Floating { signed, .. } = of else { return None };
    if !signed {
        return Some(f64::from_bits(bits.cast_unsigned())).filter(|n| *n >= 0.0 || n.is_nan());
    }
    let bits = bits.wrapping_sub(1);
    Some(f64::from_bits((bits ^ ((!bits >> 63) | i64::MIN)).cast_unsigned()))
}

fn millis(bytes: &[u8], of: PhoenixType) -> Option<i64> {
    let (PhoenixType::Date { signed } | PhoenixType::Timestamp { signed }) = of else { return None };
    (bytes.len() == 8).then(|| number(bytes, signed)).flatten()
}

/// `None` if the bytes are invalid, or if there is a fraction of a microsecond.
fn micros(bytes: &[u8], of: PhoenixType) -> Option<i64> {
    let (ms, nanos) = bytes.split_at_checked(8)?;
    let ms = millis(ms, of)?;
    let nanos = i64::from(u32::from_be_bytes(nanos.try_into().ok()?));
    // Old writers stored the whole fraction of the second as nanoseconds, so the milliseconds must not be
    // counted twice.
    let ms = if nanos < 1_000_000 { ms } else { ms.div_euclid(1000).checked_mul(1000)? };
    if nanos % 1000 != 0 || nanos >= 1_000_000_000 {
        return None;
    }
    ms.checked_mul(1000)?.checked_add(nanos / 1000)
}

/// Maximum bytes of a DECIMAL, which has at most 38 digits.
const MAX_BYTES: usize = 64;

/// A decimal number: its significant digits, and how many of them are after the point.
#[derive(Debug)]
struct Digits {
    negative: bool,
    digits: String,
    scale: i64,
}

impl Digits {
    fn of(bytes: &[u8]) -> Option<Self> {
        let (exponent, pairs) = bytes.split_first()?;
        let positive = *exponent >= 0x80;
        if pairs.is_empty() {
            let zero = *exponent == 0x80;
            return zero.then(|| Self { negative: false, digits: "0".to_owned(), scale: 0 });
        }
        let pairs = match pairs {
            [pairs @ .., 102] if !positive => pairs,
            pairs => pairs,
        };
        if pairs.is_empty() || pairs.len() > MAX_BYTES {
            return None;
        }
        let places = if positive { i64::from(exponent & 0x7f) - 65 } else { 62 - i64::from(*exponent) };
        let mut digits = String::with_capacity(2 * pairs.len());
        for pair in pairs {
            let two = if positive { pair.checked_sub(1)? } else { 101_u8.checked_sub(*pair)? };
            if two > 99 {
                return None;
            }
            digits.push(char::from(b'0' + two / 10));
            digits.push(char::from(b'0' + two % 10));
        }
        let mut scale = 2 * (i64::try_from(pairs.len()).ok()? - 1 - places);
        if digits.ends_with('0') {
            digits.pop();
            scale -= 1;
        }
        let significant = digits.trim_start_matches('0');
        let digits = if significant.is_empty() { "0".to_owned() } else { significant.to_owned() };
        Some(Self { negative: !positive, digits, scale })
    }

    /// The number times ten to the power of `scale`, if the result is an integer with at most `precision`
    /// digits.
    fn scaled(&self, precision: u8, scale: i8) -> Option<i128> {
        if self.digits == "0" {
            return Some(0);
        }
        let zeros = u32::try_from(i64::from(scale) - self.scale).ok()?;
        let number: i128 = self.digits.parse().ok()?;
        let number = number.checked_mul(10_i128.checked_pow(zeros)?)?;
        let fits = number < 10_i128.checked_pow(u32::from(precision))?;
        fits.then_some(if self.negative { -number } else { number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Option<String> {
        let digits = Digits::of(bytes)?;
        java_decimal(digits.negative, &digits.digits, digits.scale)
    }

    #[test]
    fn decimals_are_decoded() {
        assert_eq!(text(&[0xc1, 13, 51]).unwrap(), "12.5");
        assert_eq!(text(&[0x3e, 89, 51, 102]).unwrap(), "-12.5");
        assert_eq!(text(&[0x80]).unwrap(), "0");
        assert_eq!(Digits::of(&[0xc1, 13, 51]).unwrap().scaled(4, 2), Some(1250));
        assert_eq!(Digits::of(&[0xc1, 13, 51]).unwrap().scaled(3, 2), None);
        assert_eq!(Digits::of(&[0xc1, 13, 51]).unwrap().scaled(3, 0), None);
        assert!(text(&[]).is_none() && text(&[0xc1]).is_none() && text(&[0xc1, 0]).is_none());
        assert!(text(&[0xc1, 101]).is_none() && text(&[0x3e, 102]).is_none());
        assert!(Digits::of(&[0xff, 2]).unwrap().scaled(38, 0).is_none());
        assert!(text(&[&[0xc1][..], &[2; 200]].concat()).is_none());
    }

    #[test]
    fn values_of_another_type_are_rejected() {
        let mut dates = PhoenixValues::new(PhoenixType::Date { signed: false }, false).unwrap();
        assert!(!dates.append(&[0x80, 0, 0, 0, 0, 0, 0, 0]) && !dates.append(&[0; 7]));
        let mut times = PhoenixValues::new(PhoenixType::Timestamp { signed: true }, false).unwrap();
        assert!(!times.append(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), "a fraction of a microsecond");
        assert!(!times.append(&[0xff; 12]), "nanoseconds out of range");
        assert!(times.append(&[]), "null");
        assert_eq!(times.finish().unwrap().null_count(), 1);
    }
}
