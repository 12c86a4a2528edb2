//! The B-trees over data blocks: the positional index by ordinal, the value index by key.
//!
//! ```text
//! index block | entry ... | offset of each entry u32 LE ... | IndexBlockTrailerPB | its length u32 LE |
//! entry       | key length varint | key | block offset varint | block size varint |
//! ```
//!
//! A key of the positional index is the ordinal of the block's first value (four bytes, big-endian). A key of the value index is a
//! separator: greater than all values before its block, at most the block's first value, and as short as
//! possible. The key of an entry in an inner block is the first key of the block below.

use bytes::Bytes;
use coldframe_core::{Error, ErrorContext, Result};
use coldframe_encoding::Cursor;
use prost::Message;

use super::block::{BlockFormat, BlockPointer};
use super::proto::IndexBlockTrailer;

/// A block of an index.
#[derive(Clone, Debug)]
pub(crate) struct IndexBlock {
    /// The location of this block.
    pub(crate) pointer: BlockPointer,
    /// Whether the entries point to data blocks.
    pub(crate) leaf: bool,
    bytes: Bytes,
    entries: usize,
    /// The start of the offsets, which is the end of the entries.
    offsets: usize,
    /// All blocks that the entries point to must end at or before this offset.
    end: u64,
}

/// An entry: a block and its first key.
pub(crate) type IndexEntry<'a> = (&'a [u8], BlockPointer);

impl IndexBlock {
    /// Parses stored bytes, in a file of `file_len` bytes. Every block that the entries point to must end at
    /// `end` or before.
    pub(crate) fn parse(
        stored: &Bytes,
        format: &BlockFormat,
        pointer: BlockPointer,
        (end, file_len): (u64, u64),
    ) -> Result<Self> {
        let bytes = format.open_metadata(stored, pointer.offset, file_len)?;
        let short = || Error::corrupt(format!("expected a trailer, found {} bytes", bytes.len()));
        let (body, trailer_len) = bytes.split_last_chunk::<4>().ok_or_else(short)?;
        let trailer_len = usize::try_from(u32::from_le_bytes(*trailer_len)).unwrap_or(usize::MAX);
        let trailer_at = body.len().checked_sub(trailer_len).ok_or_else(short)?;
        let (before, trailer) = body.split_at(trailer_at);
        let trailer = IndexBlockTrailer::decode(trailer)
            .map_err(|e| Error::corrupt(format!("expected a trailer, found something else ({e})")))?;
        let number = trailer.num_entries.unwrap_or(-1);
        let entries = usize::try_from(number).ok().filter(|n| *n <= before.len() / 4);
        let entries = entries.ok_or_else(|| {
            Error::corrupt(format!("expected at most {} entries, found {number}", before.len() / 4))
        })?;
        let leaf = match trailer.block_type {
            Some(0) => true,
            Some(1) => false,
            other => return Err(Error::corrupt(format!("expected a type of 0 or 1, found {other:?}"))),
        };
        let offsets = before.len() - 4 * entries;
        Ok(Self { pointer, leaf, bytes, entries, offsets, end })
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    /// Whether the block has no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// An entry.
    pub(crate) fn entry(&self, i: usize) -> Result<IndexEntry<'_>> {
        let place = self.bytes.get(self.offsets + 4 * i..).and_then(|b| b.first_chunk());
        let at = place.map_or(usize::MAX, |b| usize::try_from(u32::from_le_bytes(*b)).unwrap_or(usize::MAX));
        let entry = || -> Result<IndexEntry<'_>> {
            let bytes = self.bytes.get(at..self.offsets).ok_or_else(|| {
                Error::corrupt(format!("expected an offset of at most {}, found {at}", self.offsets))
            })?;
            let mut cursor = Cursor::new(bytes, self.pointer.offset);
            let key = cursor.uleb128_bytes()?;
            let offset = cursor.uleb128()?;
            let size = cursor.uleb128()?;
            let size = u32::try_from(size)
                .map_err(|_| Error::corrupt(format!("expected a size of 32 bits, found {size}")))?;
            Ok((key, BlockPointer { offset, size }.check(self.end)?))
        };
        entry().within(|| format!("entry {i}")).map_err(|e| e.at(self.pointer.offset))
    }

    /// The index of the last entry whose key is at most `key`; `None` if all keys are greater.
    pub(crate) fn floor(&self, key: &[u8]) -> Result<Option<usize>> {
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle)?.0 <= key { low = middle + 1 } else { high = middle }
        }
        Ok(low.checked_sub(1))
    }
}
