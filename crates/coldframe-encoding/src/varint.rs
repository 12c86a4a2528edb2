//! Variable-length integers, named by their grammar.
//!
//! | grammar | bytes | used by |
//! |---|---|---|
//! | unsigned LEB128 | 7 bits per byte, low bits first, top bit = more | protobuf, thrift compact, ORC, Kudu |
//! | zigzag | LEB128 of `(n << 1) ^ (n >> 63)` | thrift compact, ORC, Avro |
//! | Hadoop VInt/VLong | one byte for -112..=127, else a byte with sign and count, then big-endian bytes | RCFile, HFile, LazyBinary |
//! | group varint | a selector with two bits per value from the top, length - 1; then the bytes of four values, little-endian | Kudu |
//!
//! Hadoop's first byte `b`: `b >= -112`: `b` is the value. `-120 <= b < -112`: a positive value of `-112 - b`
//! bytes follows. `b < -120`: a negative value follows, as `-120 - b` bytes of `!value`
//! (`WritableUtils.writeVLong`).

use crate::{Cursor, Error, Result};

impl<'a> Cursor<'a> {
    /// Unsigned LEB128 of at most 64 bits.
    #[inline]
    pub fn uleb128(&mut self) -> Result<u64> {
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(first.into());
        }
        self.uleb128_tail(first)
    }

    fn uleb128_tail(&mut self, first: u8) -> Result<u64> {
        let start = self.offset().saturating_sub(1);
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::corrupt("expected a LEB128 integer of at most 64 bits, found a longer one").at(start))
    }

    /// Reads a length in LEB128, then that many bytes, and returns these.
    #[inline]
    pub fn uleb128_bytes(&mut self) -> Result<&'a [u8]> {
        let n = self.uleb128()?;
        self.take(usize::try_from(n).unwrap_or(usize::MAX))
    }

    /// A zigzag-coded signed integer in LEB128.
    #[inline]
    pub fn zigzag(&mut self) -> Result<i64> {
        self.uleb128().map(unzigzag)
    }

    /// A Hadoop `VLong`.
    #[inline]
    pub fn hadoop_vlong(&mut self) -> Result<i64> {
        let first = i8::from_ne_bytes(self.array()?);
        if first >= -112 {
            return Ok(first.into());
        }
        let (negative, len) =
            if first < -120 { (true, -120 - i16::from(first)) } else { (false, -112 - i16::from(first)) };
        let mut value = 0i64;
        for _ in 0..len {
            value = (value << 8) | i64::from(self.u8()?);
        }
        Ok(if negative { !value } else { value })
    }

    /// A Hadoop `VInt`: a `VLong` that must fit in 32 bits.
    #[inline]
    pub fn hadoop_vint(&mut self) -> Result<i32> {
        let start = self.offset();
        let value = self.hadoop_vlong()?;
        i32::try_from(value)
            .map_err(|_| Error::corrupt(format!("expected a 32-bit VInt, found {value}")).at(start))
    }

    /// A group of four 32-bit integers: `selector u8 | 1..4 bytes LE | 1..4 | 1..4 | 1..4`.
    #[inline]
    pub fn group_varint(&mut self) -> Result<[u32; 4]> {
        let start = self.offset();
        let selector = self.u8()?;
        let lengths = group_lengths(selector);
        // A group has at most four values of four bytes. If that many bytes remain, no value needs a bounds
        // check.
        if let Some(window) = self.rest().first_chunk::<16>() {
            let mut at = 0;
            let values = lengths.map(|length| {
                let word = window.get(at..).and_then(|w| w.first_chunk()).copied().unwrap_or_default();
                at += length;
                u32::from_le_bytes(word) & (u32::MAX >> (32 - 8 * length))
            });
            self.skip(at)?;
            return Ok(values);
        }
        let mut values = [0; 4];
        for (value, length) in values.iter_mut().zip(lengths) {
            let bytes =
                self.take(length).map_err(|e| e.within(format!("group of integers at byte {start}")))?;
            *value = bytes.iter().rev().fold(0, |v, b| v << 8 | u32::from(*b));
        }
        Ok(values)
    }

    /// A Hadoop `Text` or length-prefixed byte string: a `VInt` with the length, then that many bytes.
    pub fn hadoop_text(&mut self) -> Result<&'a [u8]> {
        let n = self.hadoop_vint()?;
        self.take_signed(n.into())
    }
}

/// The bytes of each value of a group.
#[inline]
fn group_lengths(selector: u8) -> [usize; 4] {
    [6, 4, 2, 0].map(|shift| usize::from(selector >> shift & 3) + 1)
}

/// Appends a group of four integers.
pub fn put_group_varint(out: &mut Vec<u8>, values: [u32; 4]) {
    let lengths = values.map(|v| 4 - (v | 1).leading_zeros() / 8);
    let selector = lengths.iter().fold(0, |s, n| s << 2 | (n - 1));
    out.push(selector.to_le_bytes()[0]);
    for (value, length) in values.iter().zip(lengths) {
        out.extend(value.to_le_bytes().iter().take(length as usize));
    }
}

/// The signed integer that zigzag coding maps to `n`.
#[inline]
pub fn unzigzag(n: u64) -> i64 {
    (n >> 1).cast_signed() ^ -((n & 1).cast_signed())
}

/// Appends unsigned LEB128.
pub fn put_uleb128(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Appends a zigzag-coded signed integer.
pub fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_uleb128(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Appends a Hadoop `VInt`/`VLong`.
pub fn put_hadoop_vlong(out: &mut Vec<u8>, value: i64) {
    if let Ok(small @ -112..=127) = i8::try_from(value) {
        out.push(small.cast_unsigned());
        return;
    }
    let magnitude = if value < 0 { !value } else { value };
    let bytes = magnitude.to_be_bytes();
    let skip = usize::try_from(magnitude.leading_zeros() / 8).unwrap_or(0).min(7);
    let len = 8 - skip;
    let base: u8 = if value < 0 { 136 } else { 144 }; // -120 and -112 as bytes
    out.push(base.wrapping_sub(u8::try_from(len).unwrap_or(8)));
    out.extend_from_slice(bytes.get(skip..).unwrap_or_default());
}

/// Appends a Hadoop `Text`: a `VInt` length and the bytes.
pub fn put_hadoop_text(out: &mut Vec<u8>, text: &[u8]) {
    put_hadoop_vlong(out, i64::try_from(text.len()).unwrap_or(i64::MAX));
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hadoop_integers_leb128_and_zigzag_differ_from_128_on() {
        assert_eq!(Cursor::new(&[0x7f], 0).uleb128().unwrap(), 127);
        assert_eq!(Cursor::new(&[0x7f], 0).hadoop_vlong().unwrap(), 127);
        assert_eq!(Cursor::new(&[0x80, 0x01], 0).uleb128().unwrap(), 128);
        assert_eq!(Cursor::new(&[0x8f, 0x80], 0).hadoop_vlong().unwrap(), 128);
        assert_eq!(Cursor::new(&[0x8f, 0x8d], 0).hadoop_vlong().unwrap(), 141);
        assert_eq!(Cursor::new(&[0x87, 0x80], 0).hadoop_vlong().unwrap(), !128);
    }

    #[test]
    fn overlong_and_truncated_are_errors() {
        assert!(Cursor::new(&[0xff; 10], 7).uleb128().unwrap_err().to_string().starts_with("byte 7: "));
        assert_eq!(
            Cursor::new(&[0xff; 9], 7).uleb128().unwrap_err().to_string(),
            "byte 16: expected 1 more bytes, found 0"
        );
        assert!(Cursor::new(&[0x88, 1], 0).hadoop_vlong().is_err());
        assert!(Cursor::new(&[0x8b, 1, 0, 0, 0, 0], 0).hadoop_vint().is_err());
    }

    #[test]
    fn bytes_with_a_length_prefix_are_read() {
        let mut c = Cursor::new(&[2, 7, 8, 0, 3, 9], 10);
        assert_eq!(c.uleb128_bytes().unwrap(), [7, 8]);
        assert_eq!(c.uleb128_bytes().unwrap(), [0; 0]);
        assert_eq!(c.uleb128_bytes().unwrap_err().to_string(), "byte 15: expected 3 more bytes, found 1");
        let mut most = Vec::new();
        put_uleb128(&mut most, u64::MAX);
        assert_eq!(
            Cursor::new(&most, 0).uleb128_bytes().unwrap_err().to_string(),
            format!("byte 10: expected {} more bytes, found 0", usize::MAX)
        );
    }

    #[test]
    fn group_varint_has_the_first_value_in_the_top_bits() {
        // Lengths 1, 3, 4, 2.
        let group = [0x2d, 1, 0, 0, 1, 0, 0, 0, 1, 0, 1];
        let mut out = vec![];
        put_group_varint(&mut out, [1, 1 << 16, 1 << 24, 1 << 8]);
        assert_eq!(out, group);
        for pad in 0..20 {
            let mut bytes = group.to_vec();
            bytes.resize(group.len() + pad, 0xee);
            let mut c = Cursor::new(&bytes, 0);
            assert_eq!(c.group_varint().unwrap(), [1, 1 << 16, 1 << 24, 1 << 8]);
            assert_eq!(c.offset(), 11);
        }
        for cut in 0..group.len() {
            assert!(Cursor::new(&group[..cut], 0).group_varint().is_err(), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn every_group_is_the_same_after_writing_and_reading(groups: Vec<[u32; 4]>, shifts: [u8; 4]) {
            let groups: Vec<[u32; 4]> = groups
                .iter()
                .map(|g| std::array::from_fn(|i| g[i] >> (shifts[i] % 32)))
                .collect();
            let mut out = Vec::new();
            groups.iter().for_each(|g| put_group_varint(&mut out, *g));
            let mut c = Cursor::new(&out, 0);
            for group in &groups {
                prop_assert_eq!(&c.group_varint().unwrap(), group);
            }
            c.finish().unwrap();
        }

        #[test]
        fn every_integer_is_the_same_after_writing_and_reading(v: i64) {
            let mut out = Vec::new();
            put_hadoop_vlong(&mut out, v);
            put_zigzag(&mut out, v);
            put_uleb128(&mut out, v.cast_unsigned());
            let mut c = Cursor::new(&out, 0);
            prop_assert_eq!(c.hadoop_vlong().unwrap(), v);
            prop_assert_eq!(c.zigzag().unwrap(), v);
            prop_assert_eq!(c.uleb128().unwrap(), v.cast_unsigned());
            c.finish().unwrap();
        }
    }
}
