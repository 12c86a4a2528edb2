//! The encoding `GROUP_VAR_INT`: integers by their significant bytes, in groups.
//!
//! ```text
//! INT32 | lengths u8      | 4 values, low byte first     2 bits a length - 1, the first value's on top
//! INT64 | lengths u16 LE  | 5 values, low byte first     3 bits a length - 1, the first value's in bits 14 to 12
//! ```
//!
//! The last group is padded with zeros. Source: the description of `Encoding` in the Thrift definitions. The order of
//! the two length bytes is not documented: little endian, like all other numbers of a page. Only coldframe's
//! reader is known to read this encoding; the reference never read it.

use coldframe_encoding::varint::put_group_varint;

/// Appends integers of 4 bytes each, little endian.
pub(super) fn encode_int32(plain: &[u8], out: &mut Vec<u8>) {
    let (values, _) = plain.as_chunks::<4>();
    for group in values.chunks(4) {
        let mut four = [0; 4];
        for (to, from) in four.iter_mut().zip(group) {
            *to = u32::from_le_bytes(*from);
        }
        put_group_varint(out, four);
    }
}

/// Appends integers of 8 bytes each, little endian.
pub(super) fn encode_int64(plain: &[u8], out: &mut Vec<u8>) {
    let (values, _) = plain.as_chunks::<8>();
    for group in values.chunks(5) {
        let mut five = [[0; 8]; 5];
        for (to, from) in five.iter_mut().zip(group) {
            *to = *from;
        }
        let lengths = five.map(|v| 8 - (u64::from_le_bytes(v) | 1).leading_zeros() / 8);
        let header = lengths.iter().fold(0, |h, n| h << 3 | (n - 1));
        out.extend(header.to_le_bytes().iter().take(2));
        for (value, length) in five.iter().zip(lengths) {
            out.extend(value.iter().take(length as usize));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn int32(values: &[i32]) -> Vec<u8> {
        let mut out = Vec::new();
        encode_int32(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>(), &mut out);
        out
    }

    fn int64(values: &[i64]) -> Vec<u8> {
        let mut out = Vec::new();
        encode_int64(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>(), &mut out);
        out
    }

    #[test]
    fn the_example_of_the_readme_is_written() {
        // Lengths 1, 3, 4 and 2.
        assert_eq!(int32(&[1, 1 << 16, 1 << 24, 1 << 8]), [0x2d, 1, 0, 0, 1, 0, 0, 0, 1, 0, 1]);
    }

    #[test]
    fn the_last_group_is_filled_up() {
        assert!(int32(&[]).is_empty());
        assert_eq!(int32(&[-1]), [0xc0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0]);
        assert_eq!(int32(&[1, 2, 3, 4, 5]), [0, 1, 2, 3, 4, 0, 5, 0, 0, 0]);
        assert!(int64(&[]).is_empty());
        // 7 in bits 14 to 12.
        assert_eq!(int64(&[i64::MIN]), [0x00, 0x70, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0]);
        assert_eq!(int64(&[0, 0, 0, 0, 256]), [0x01, 0, 0, 0, 0, 0, 0, 1]);
    }

    proptest! {
        #[test]
        fn every_integer_is_the_same_after_writing_and_reading(values: Vec<i64>, shift in 0u32..64) {
            let values: Vec<i64> = values.into_iter().map(|v| v >> shift).collect();
            let bytes = int64(&values);
            let mut rest = &bytes[..];
            let mut decoded = Vec::new();
            while let [low, high, values @ ..] = rest {
                let header = u16::from_le_bytes([*low, *high]);
                rest = values;
                for shift in [12, 9, 6, 3, 0] {
                    let length = usize::from(header >> shift & 7) + 1;
                    let value = rest[..length].iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b));
                    decoded.push(value.cast_signed());
                    rest = &rest[length..];
                }
            }
            prop_assert!(decoded[values.len()..].iter().all(|v| *v == 0));
            prop_assert_eq!(decoded.len(), values.len().next_multiple_of(5));
            prop_assert_eq!(&decoded[..values.len()], &values[..]);
        }
    }
}
