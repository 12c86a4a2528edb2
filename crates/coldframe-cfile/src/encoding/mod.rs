//! The encodings of a data block, with one file for each encoding.
//!
//! ```text
//! block      | [rows varint | bitmap length varint | bitmap, run-length coded, 1 = not null] | encoded values |
//! PLAIN, RLE, bits   | count u32 LE | first ordinal u32 LE | ...
//! PLAIN of bytes     | first ordinal u32 LE | count u32 LE | position of the offsets u32 LE | ...
//! BIT_SHUFFLE        | first ordinal u32 LE | count u32 LE | size u32 LE | padded count u32 LE | element size u32 LE | ...
//! DICT               | mode u32 LE: 1 code words, 2 values | BIT_SHUFFLE or PLAIN of bytes
//! PREFIX             | group varint: count, first ordinal, restart interval, 0 | ...
//! GROUP_VARINT       | group varint: count, smallest, first ordinal, 0 | ...
//! ```
//! The order of count and ordinal differs between encodings. The count is the number of non-null values, the
//! ordinal is the ordinal of the first row. A decoder keeps its position in the block, but not the block: the
//! caller passes the bytes with each
//! call.

pub(crate) mod binary;
pub(crate) mod bit_shuffle;
pub(crate) mod dict;
pub(crate) mod fixed;
pub(crate) mod group_varint;
pub(crate) mod lz4;
pub(crate) mod prefix;
pub(crate) mod rle;
pub(crate) mod transpose;

use arrow_buffer::Buffer;
use coldframe_core::{Error, Result};

/// The fields of a block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHead {
    /// The number of non-null values.
    pub(crate) count: u32,
    /// The ordinal of the first row.
    pub(crate) ordinal: u32,
}

impl BlockHead {
    /// Fails if the block does not begin at the ordinal that the index states, or has fewer values than its
    /// rows need.
    pub(crate) fn check(self, ordinal: u64, count: usize) -> Result<()> {
        if u64::from(self.ordinal) != ordinal {
            return Err(Error::corrupt(format!(
                "expected the ordinal {ordinal} of the index, found {}",
                self.ordinal
            )));
        }
        if u64::from(self.count) != count as u64 {
            return Err(Error::corrupt(format!("expected {count} values, found {}", self.count)));
        }
        Ok(())
    }
}

/// A fixed-size value.
pub(crate) trait Word: Copy + Default + Send + Sync + std::fmt::Debug + 'static {
    /// The size of a value in bytes.
    const SIZE: usize;

    /// Reads `out.len()` values from the front of `src`, little-endian; `false` if `src` is too short.
    fn read(src: &[u8], out: &mut [Self]) -> bool;

    /// The first value of `src`; `None` if `src` is too short.
    fn first(src: &[u8]) -> Option<Self> {
        let mut value = [Self::default()];
        Self::read(src, &mut value).then(|| value.first().copied()).flatten()
    }

    /// Reverses the bit transposition of `out.len()` values, a multiple of 8; `false` if `planes` is too short.
    fn untranspose(planes: &[u8], out: &mut [Self]) -> bool;

    /// Transposes the bits of values (a multiple of 8 of them) and appends the result to `out`.
    fn transpose(values: &[Self], out: &mut Vec<u8>);

    /// Converts an unsigned 32-bit value that fits.
    fn from_u32(value: u32) -> Self;

    /// Appends the value's bytes, little-endian.
    fn put(self, out: &mut Vec<u8>);

    /// Turns values into an Arrow buffer.
    fn buffer(values: Vec<Self>) -> Buffer;

    /// The value as a signed number: its highest bit is the sign.
    fn sign_extend(self) -> i128;

    /// Whether a value is not between `-limit` and `limit`, both excluded.
    fn exceed(values: &[Self], limit: i128) -> bool;
}

macro_rules! word_types {
    ($($type:ident $signed:ident $untranspose:ident;)*) => {$(
        impl Word for $type {
            const SIZE: usize = size_of::<$type>();

            #[inline]
            fn read(src: &[u8], out: &mut [Self]) -> bool {
                let Some(src) = src.get(..out.len().saturating_mul(Self::SIZE)) else { return false };
                let (values, _) = src.as_chunks::<{ size_of::<$type>() }>();
                for (place, value) in out.iter_mut().zip(values) {
                    *place = <$type>::from_le_bytes(*value);
                }
                true
            }

            fn untranspose(planes: &[u8], out: &mut [Self]) -> bool {
                transpose::$untranspose(planes, out)
            }

            fn transpose(values: &[Self], out: &mut Vec<u8>) {
                transpose::transpose::<{ size_of::<$type>() }, $type>(values, out, <$type>::to_le_bytes);
            }

            fn from_u32(value: u32) -> Self {
                let mut wide = [0u8; 16];
                if let Some(low) = wide.first_chunk_mut::<4>() {
                    *low = value.to_le_bytes();
                }
                wide.first_chunk().map_or(0, |b| <$type>::from_le_bytes(*b))
            }

            fn put(self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }

            fn buffer(values: Vec<Self>) -> Buffer {
                Buffer::from_vec(values)
            }

            #[inline]
            fn sign_extend(self) -> i128 {
                <$signed>::from_le_bytes(self.to_le_bytes()).into()
            }

            fn exceed(values: &[Self], limit: i128) -> bool {
                // All values are within a limit that exceeds their type.
                <$signed>::try_from(limit).ok().is_some_and(|limit| {
                    values.iter().fold(false, |exceeds, value| {
                        let value = <$signed>::from_le_bytes(value.to_le_bytes());
                        exceeds | (value >= limit) | (value <= -limit)
                    })
                })
            }
        }
    )*};
}

word_types! {
    u8 i8 untranspose_u8;
    u16 i16 untranspose_u16;
    u32 i32 untranspose_u32;
    u64 i64 untranspose_u64;
    i128 i128 untranspose_i128;
}
