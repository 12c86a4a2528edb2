//! Blocks of fixed-size values in any encoding; blocks of bits.
//!
//! ```text
//! PLAIN, RLE | count u32 LE | first ordinal u32 LE | contiguous values LE, or runs |
//! bits       | count u32 LE | first ordinal u32 LE | bits, lowest of a byte first, or runs |
//! ```

use arrow_buffer::BooleanBufferBuilder;
use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;

use crate::encoding::bit_shuffle::{BitShuffle, Scratch};
use crate::encoding::rle::Rle;
use crate::encoding::{BlockHead, Word, group_varint};
use crate::layout::types::Encoding;

/// The length of the header of PLAIN and RLE.
const HEADER_LEN: usize = 8;

fn head(block: &[u8]) -> Result<BlockHead> {
    let mut cursor = Cursor::new(block, 0);
    Ok(BlockHead { count: cursor.u32_le()?, ordinal: cursor.u32_le()? })
}

/// A position in a block of fixed-size values.
#[derive(Clone, Debug)]
pub(crate) enum Fixed {
    /// Of PLAIN: the offset of the next value.
    Plain(usize),
    /// Of RLE: the position in the runs.
    Rle(Rle),
    /// Of BIT_SHUFFLE: the position in the chunks.
    BitShuffle(BitShuffle),
    /// Of GROUP_VARINT: all values, decoded, and the index of the next value.
    Values(Vec<u32>, usize),
}

impl Fixed {
    /// Parses the header of the block that begins at byte `start`. `size`: bytes of a value of the type.
    pub(crate) fn new(
        encoding: Encoding,
        bytes: &[u8],
        start: usize,
        size: usize,
    ) -> Result<(BlockHead, Self)> {
        let block = bytes.get(start..).unwrap_or_default();
        match encoding {
            Encoding::Plain => {
                let head = head(block)?;
                let (needed, stored) = ((head.count as usize).saturating_mul(size), block.len() - HEADER_LEN);
                if needed != stored {
                    return Err(Error::corrupt(format!("expected {needed} bytes of values, found {stored}")));
                }
                Ok((head, Self::Plain(start + HEADER_LEN)))
            }
            Encoding::Rle if size <= 8 => Ok((head(block)?, Self::Rle(Rle::new(start + HEADER_LEN)))),
            Encoding::BitShuffle => {
                BitShuffle::new(bytes, start, size).map(|(head, block)| (head, Self::BitShuffle(block)))
            }
            Encoding::GroupVarint if size == 4 => {
                group_varint::decode(block).map(|(head, values)| (head, Self::Values(values, 0)))
            }
            other => Err(Error::unsupported(format!("{other} of values of {size} bytes"))),
        }
    }

    /// Decodes the next `out.len()` values.
    pub(crate) fn decode<T: Word>(
        &mut self,
        bytes: &[u8],
        out: &mut [T],
        scratch: &mut Scratch,
    ) -> Result<()> {
        match self {
            Self::Plain(at) => {
                if !T::read(bytes.get(*at..).unwrap_or_default(), out) {
                    return Err(Error::corrupt("expected more values, found the block's end"));
                }
                *at += out.len() * T::SIZE;
                Ok(())
            }
            Self::Rle(runs) => runs.decode(bytes, out),
            Self::BitShuffle(block) => block.decode(bytes, out, scratch),
            Self::Values(values, next) => {
                let wanted = values.get(*next..).and_then(|v| v.get(..out.len()));
                let wanted =
                    wanted.ok_or_else(|| Error::corrupt("expected more values, found the block's end"))?;
                for (place, value) in out.iter_mut().zip(wanted) {
                    *place = T::from_u32(*value);
                }
                *next += out.len();
                Ok(())
            }
        }
    }

    /// Skips `n` values of `size` bytes.
    pub(crate) fn skip(&mut self, bytes: &[u8], n: usize, size: usize) -> Result<()> {
        match self {
            Self::Plain(at) => *at = at.saturating_add(n.saturating_mul(size)),
            Self::Rle(runs) => runs.skip(bytes, n, size)?,
            Self::BitShuffle(block) => block.skip(bytes, n)?,
            Self::Values(_, next) => *next = next.saturating_add(n),
        }
        Ok(())
    }
}

/// A position in a block of bits.
#[derive(Clone, Debug)]
pub(crate) enum Bits {
    /// Of PLAIN: the index of the next bit.
    Plain(usize),
    /// Of RLE: the position in the runs.
    Rle(Rle),
}

impl Bits {
    /// Parses the header of the block that begins at byte `start`.
    pub(crate) fn new(encoding: Encoding, bytes: &[u8], start: usize) -> Result<(BlockHead, Self)> {
        let block = bytes.get(start..).unwrap_or_default();
        let head = head(block)?;
        let first = start + HEADER_LEN;
        match encoding {
            Encoding::Plain => {
                let (needed, stored) = ((head.count as usize).div_ceil(8), block.len() - HEADER_LEN);
                if needed > stored {
                    return Err(Error::corrupt(format!("expected {needed} bytes of bits, found {stored}")));
                }
                Ok((head, Self::Plain(first.saturating_mul(8))))
            }
            Encoding::Rle => Ok((head, Self::Rle(Rle::new(first)))),
            other => Err(Error::unsupported(format!("{other} of booleans"))),
        }
    }

    /// Appends the next `n` bits to `out`.
    pub(crate) fn decode(&mut self, bytes: &[u8], n: usize, out: &mut BooleanBufferBuilder) -> Result<()> {
        match self {
            Self::Plain(at) => {
                if at.saturating_add(n).div_ceil(8) > bytes.len() {
                    return Err(Error::corrupt("expected more bits, found the block's end"));
                }
                out.append_packed_range(*at..*at + n, bytes);
                *at += n;
                Ok(())
            }
            Self::Rle(runs) => runs.decode_bits(bytes, n, out),
        }
    }

    /// Skips `n` bits.
    pub(crate) fn skip(&mut self, bytes: &[u8], n: usize) -> Result<()> {
        match self {
            Self::Plain(at) => {
                *at = at.saturating_add(n);
                Ok(())
            }
            Self::Rle(runs) => runs.skip_bits(bytes, n),
        }
    }
}
