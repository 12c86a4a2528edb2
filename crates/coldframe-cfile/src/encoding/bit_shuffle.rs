//! BIT_SHUFFLE: chunks of transposed bits, each an LZ4 block.
//!
//! ```text
//! block | first ordinal u32 LE | count u32 LE | size with this header u32 LE | padded count u32 LE | element size u32 LE |
//!       | chunk ... |
//! chunk | length u32 BE | LZ4 block of the planes of max(128, 8192 / element size, a multiple of 8) values |
//! ```
//!
//! The count is padded with zeros to a multiple of 8. Unsigned 32-bit values (mostly the code words of a
//! dictionary) take 1, 2 or 4 bytes, as the largest value of the block requires; values of all other types
//! have the size of their type.

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;

use crate::encoding::{BlockHead, Word, lz4};

/// The header's length.
pub(crate) const HEADER_LEN: usize = 20;

/// The number of values in a chunk; the last chunk may have fewer.
pub(crate) fn chunk_len(element: usize) -> usize {
    (8192 / element.max(1) / 8 * 8).max(128)
}

/// Buffers for decoding, reused from block to block.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    planes: Vec<u8>,
}

/// A position in a block.
#[derive(Clone, Debug)]
pub(crate) struct BitShuffle {
    /// The size of a value in the block.
    element: usize,
    /// The number of values, including the padding.
    padded: usize,
    /// The offset of the chunk with the next value.
    chunk: usize,
    /// The index of that chunk's first value.
    chunk_first: usize,
    /// The index of the next value.
    next: usize,
}

impl BitShuffle {
    /// Parses the header of the block that begins at byte `start`. `size`: bytes of a value of the type.
    pub(crate) fn new(bytes: &[u8], start: usize, size: usize) -> Result<(BlockHead, Self)> {
        let block = bytes.get(start..).unwrap_or_default();
        let mut cursor = Cursor::new(block, 0);
        let (ordinal, count) = (cursor.u32_le()?, cursor.u32_le()?);
        let (stored, padded, element) = (cursor.u32_le()?, cursor.u32_le()?, cursor.u32_le()?);
        if stored as usize != block.len() {
            return Err(Error::corrupt(format!("expected a size of {}, found {stored}", block.len())));
        }
        if count.checked_next_multiple_of(8) != Some(padded) {
            return Err(Error::corrupt(format!("expected {count} values padded to 8, found {padded}")));
        }
        let narrow = size == 4 && matches!(element, 1 | 2);
        if element as usize != size && !narrow {
            return Err(Error::corrupt(format!("expected elements of {size} bytes, found {element}")));
        }
        let places = Self {
            element: element as usize,
            padded: padded as usize,
            chunk: start + HEADER_LEN,
            chunk_first: 0,
            next: 0,
        };
        Ok((BlockHead { count, ordinal }, places))
    }

    /// The number of values in the current chunk.
    fn chunk_values(&self) -> usize {
        chunk_len(self.element).min(self.padded - self.chunk_first)
    }

    /// The LZ4 block of the current chunk.
    fn chunk_bytes<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let rest = bytes.get(self.chunk..).unwrap_or_default();
        let mut cursor = Cursor::new(rest, 0);
        let len = cursor.u32_be().map_err(|e| e.within("chunk"))?;
        cursor.take(len as usize).map_err(|e| e.within("chunk"))
    }

    /// Decodes the next `out.len()` values.
    pub(crate) fn decode<T: Word>(
        &mut self,
        bytes: &[u8],
        out: &mut [T],
        scratch: &mut Scratch,
    ) -> Result<()> {
        match self.element {
            e if e == T::SIZE => self.decode_as::<T, T>(bytes, out, scratch, |v| v, |out| Some(out)),
            1 => self.decode_as::<u8, T>(bytes, out, scratch, |v| T::from_u32(v.into()), |_| None),
            _ => self.decode_as::<u16, T>(bytes, out, scratch, |v| T::from_u32(v.into()), |_| None),
        }
    }

    /// Decodes values that are stored as `S`.
    fn decode_as<S: Word, T: Word>(
        &mut self,
        bytes: &[u8],
        mut out: &mut [T],
        scratch: &mut Scratch,
        widen: impl Fn(S) -> T + Copy,
        same: impl Fn(&mut [T]) -> Option<&mut [S]>,
    ) -> Result<()> {
        let mut part: Vec<S> = Vec::new();
        while !out.is_empty() {
            let values = self.chunk_values();
            if self.next >= self.chunk_first + values {
                return Err(Error::corrupt("expected another chunk, found the end of the last one"));
            }
            let planes = self.planes(bytes, values * self.element, scratch)?;
            let skipped = self.next - self.chunk_first;
            let n = out.len().min(values - skipped);
            let (now, later) = out.split_at_mut(n);
            let whole = if n == values && S::SIZE == T::SIZE {
                // The whole chunk is requested, in the width in which it is stored.
                same(now).is_some_and(|now| S::untranspose(planes, now))
            } else {
                part.resize(values, S::default());
                let whole = S::untranspose(planes, &mut part);
                for (place, value) in now.iter_mut().zip(part.get(skipped..).unwrap_or_default()) {
                    *place = widen(*value);
                }
                whole
            };
            if !whole {
                return Err(Error::corrupt("expected complete planes, found fewer bytes"));
            }
            self.next += n;
            out = later;
            self.leave_chunk(bytes)?;
        }
        Ok(())
    }

    /// The planes of the current chunk.
    fn planes<'a>(&self, bytes: &[u8], size: usize, scratch: &'a mut Scratch) -> Result<&'a [u8]> {
        let compressed = self.chunk_bytes(bytes)?;
        let planes = &mut scratch.planes;
        if planes.len() < size + lz4::SLACK {
            planes.resize(size + lz4::SLACK, 0);
        }
        if !lz4::decode(compressed, planes, size) {
            return Err(Error::corrupt(format!(
                "expected an LZ4 block of {size} bytes, found something else"
            ))
            .within("chunk"));
        }
        Ok(planes.get(..size).unwrap_or_default())
    }

    /// Moves to the next chunk if all values of the current chunk have been read and it is not the last
    /// chunk.
    fn leave_chunk(&mut self, bytes: &[u8]) -> Result<()> {
        while self.next >= self.chunk_first + self.chunk_values()
            && self.chunk_first + self.chunk_values() < self.padded
        {
            let len = self.chunk_bytes(bytes)?.len();
            self.chunk_first += self.chunk_values();
            self.chunk += 4 + len;
        }
        Ok(())
    }

    /// Skips `n` values. Whole chunks are skipped by their length alone.
    pub(crate) fn skip(&mut self, bytes: &[u8], n: usize) -> Result<()> {
        self.next = self.next.saturating_add(n);
        if self.next > self.padded {
            return Err(Error::corrupt(format!(
                "expected value {}, found {} values",
                self.next, self.padded
            )));
        }
        self.leave_chunk(bytes)
    }
}
