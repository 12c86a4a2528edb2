//! Encodes decimals as varints of the digits, each with a scale.
//!
//! ```text
//! DATA       zigzag varints of up to 128 bits
//! SECONDARY  the scale of each value
//! ```
//!
//! ORC specification v1, "Decimal Columns". Java drops the trailing zeros of each value, so that scales
//! differ. Equal scales take almost no bytes and are faster to read: this writer drops the trailing zeros
//! that all values of a batch share. It drops more zeros of a single value only if that saves more bytes than
//! the differing scales take.

use coldframe_encoding::varint::{put_uleb128, put_zigzag};

/// Appends `values` of scale `scale` to `data`, and the scale of each written value to `scales`.
pub(super) fn put(values: &[i128], scale: i8, data: &mut Vec<u8>, scales: &mut Vec<i64>) {
    let most = u32::try_from(scale).unwrap_or(0);
    let zeros: Vec<u32> = values.iter().map(|v| zeros_at_end(*v, most)).collect();
    let common = zeros.iter().copied().min().unwrap_or(0);
    let others: usize = zeros.iter().map(|z| (z - common) as usize).sum();
    // A digit takes 0.47 bytes of a varint; differing scales are usually 4 bits wide.
    let each = others * 47 > values.len() * 50;
    for (value, zeros) in values.iter().zip(zeros) {
        let dropped = if each { zeros } else { common };
        put_varint(data, shortened(*value, dropped));
        scales.push(i64::from(most - dropped));
    }
}

/// The number of trailing zeros of a value, at most `most`.
fn zeros_at_end(value: i128, most: u32) -> u32 {
    // A value has at least as many trailing zeros in binary: 10 is even.
    let most = value.trailing_zeros().min(most);
    let mut zeros = 0;
    if let Ok(mut value) = i64::try_from(value) {
        while zeros < most && value % 10 == 0 {
            value /= 10;
            zeros += 1;
        }
    } else {
        let mut value = value;
        while zeros < most && value % 10 == 0 {
            value /= 10;
            zeros += 1;
        }
    }
    zeros
}

fn shortened(value: i128, zeros: u32) -> i128 {
    match (zeros, i64::try_from(value)) {
        (0, _) => value,
        (1..=18, Ok(value)) => (value / 10i64.pow(zeros)).into(),
        _ => 10i128.checked_pow(zeros).map_or(0, |power| value / power),
    }
}

fn put_varint(out: &mut Vec<u8>, value: i128) {
    if let Ok(value) = i64::try_from(value) {
        put_zigzag(out, value);
        return;
    }
    let mut left = ((value << 1) ^ (value >> 127)).cast_unsigned();
    while let Err(_) | Ok(0x80..) = u64::try_from(left) {
        out.push(left.to_le_bytes()[0] | 0x80);
        left >>= 7;
    }
    put_uleb128(out, u64::try_from(left).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scales(values: &[i128], scale: i8) -> Vec<i64> {
        let (mut data, mut scales) = (vec![], vec![]);
        put(values, scale, &mut data, &mut scales);
        let mut left = data.as_slice();
        for (value, stored) in values.iter().zip(&scales) {
            let (mut zigzag, mut shift) = (0u128, 0);
            while let Some((byte, rest)) = left.split_first() {
                left = rest;
                zigzag |= u128::from(byte & 0x7f) << shift;
                shift += 7;
                if *byte < 0x80 {
                    break;
                }
            }
            let digits = (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
            assert_eq!(digits * 10i128.pow(u32::try_from(i64::from(scale) - stored).unwrap()), *value);
        }
        assert!(left.is_empty());
        scales
    }

    #[test]
    fn common_zeros_are_dropped() {
        assert_eq!(scales(&[1200, -3_400, 0, 56_000], 4), [2; 4]);
        assert_eq!(scales(&[1201, 1200], 2), [2; 2]);
        assert_eq!(scales(&[0, 0], 2), [0; 2]);
        assert_eq!(scales(&[10i128.pow(37), -(10i128.pow(37))], 10), [0; 2]);
        assert_eq!(scales(&[i128::from(i64::MIN), 10i128.pow(37) + 1], 3), [3; 2]);
    }

    #[test]
    fn zeros_of_each_value_are_dropped_where_that_saves_bytes() {
        assert_eq!(scales(&[1_000_000, 1, 20_000, -300], 6), [0, 6, 2, 4]);
    }
}
