//! GROUP_VAR_INT: integers in groups, preceded by their lengths.
//!
//! ```text
//! INT32 | u8: four lengths - 1 of 2 bits, the first in the top bits | 4 values, low bytes first |
//! INT64 | u16 LE: bit 15 unused, five lengths - 1 of 3 bits, the first in the top ones | 5 values |
//! ```
//!
//! The last group is padded with zeros. The number of values follows from the definition levels. The README
//! describes the encoding; no writer of the time implemented it, and the byte order of the INT64 header is
//! not documented.

use coldframe_encoding::{Cursor, Error, Result};

/// Appends `count` integers to `out` in native byte order; `bytes` must end with the last group.
pub(crate) fn decode_i32(bytes: &[u8], count: usize, out: &mut Vec<i32>) -> Result<()> {
    check_room(bytes, count, 4, 5)?;
    out.reserve(count);
    let mut c = Cursor::new(bytes, 0);
    let mut left = count;
    while left > 0 {
        let group = c.group_varint()?.map(u32::cast_signed);
        let n = left.min(4);
        out.extend_from_slice(group.get(..n).unwrap_or_default());
        left -= n;
    }
    c.finish()
}

/// Like [`decode_i32`], for 64 bits.
pub(crate) fn decode_i64(bytes: &[u8], count: usize, out: &mut Vec<i64>) -> Result<()> {
    check_room(bytes, count, 5, 7)?;
    out.reserve(count);
    let mut c = Cursor::new(bytes, 0);
    let mut left = count;
    while left > 0 {
        let header = c.u16_le()?;
        let n = left.min(5);
        for i in 0..5 {
            let length = usize::from(header >> (12 - 3 * i) & 7) + 1;
            let value = match c.rest().first_chunk() {
                Some(word) => {
                    c.skip(length)?;
                    u64::from_le_bytes(*word) & (u64::MAX >> (64 - 8 * length))
                }
                None => c.take(length)?.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b)),
            };
            if i < n {
                out.push(value.cast_signed());
            }
        }
        left -= n;
    }
    c.finish()
}

/// Before anything is allocated, fails for a count that the bytes cannot hold: a group of `values` values
/// takes at least `least` bytes.
fn check_room(bytes: &[u8], count: usize, values: usize, least: usize) -> Result<()> {
    let groups = bytes.len() / least;
    if count.div_ceil(values) <= groups {
        return Ok(());
    }
    Err(Error::corrupt(format!("expected {count} integers, found room for {}", groups * values)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_readme_is_read() {
        let bytes = [0x2d, 1, 0, 0, 1, 0, 0, 0, 1, 0, 1];
        let mut out = vec![];
        decode_i32(&bytes, 4, &mut out).unwrap();
        assert_eq!(out, [1, 0x1_0000, 0x100_0000, 0x100]);
        assert!(decode_i32(&bytes[..10], 4, &mut vec![]).is_err());
        assert!(decode_i32(&bytes, 5, &mut vec![]).is_err());
        assert!(decode_i32(&[bytes.as_slice(), &[0]].concat(), 4, &mut vec![]).is_err());
    }

    #[test]
    fn five_longs_share_a_header_of_two_bytes() {
        // Lengths 1, 2, 8, 1, 1.
        let header = (1u16 << 9 | 7 << 6).to_le_bytes();
        let mut bytes = header.to_vec();
        bytes.extend([5, 0, 1]);
        bytes.extend((-2i64).to_le_bytes());
        bytes.extend([7, 0]);
        let mut out = vec![];
        decode_i64(&bytes, 4, &mut out).unwrap();
        assert_eq!(out, [5, 256, -2, 7]);
        for n in 0..bytes.len() {
            assert!(decode_i64(&bytes[..n], 4, &mut vec![]).is_err());
        }
    }
}
