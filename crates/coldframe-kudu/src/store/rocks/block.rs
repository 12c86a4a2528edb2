//! The blocks of a table.
//!
//! ```text
//! stored:   | bytes, maybe compressed | compression u8 | checksum u32 |      a handle has the offset, and the length without these five
//! content:  | entry | entry | .. | restart u32 .. | restarts u32 |
//! entry:    | shared | unshared | value's length | unshared bytes of the key | value |
//! index:    | shared | unshared | unshared bytes of the key | handle |        if the properties say that handles are differences
//! handle:   | offset | length |     the first of a run, which shares nothing     | zigzag: length minus that of the one before |   else
//! ```
//!
//! Numbers are LEB128. A key begins with the first `shared` bytes of the previous key (`table/block_based/block_builder.cc`, `table/format.cc`).

use std::borrow::Cow;

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::checksum::{check_crc32c, check_xxh3_low, unmasked_crc32c};
use coldframe_encoding::codec::{Algorithm, Decompressor};

use super::Reading;

/// The size of a block's trailer: compression and checksum.
pub(super) const TRAILER: u64 = 5;

/// The location of a block; its length does not include the trailer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Handle {
    /// Reads a handle: an offset and a length.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Self { offset: cursor.uleb128()?, len: cursor.uleb128()? })
    }

    /// Reads the handle of the block that follows `before`; only the difference of the lengths is stored.
    fn following(before: Self, cursor: &mut Cursor<'_>) -> Result<Self> {
        let more = cursor.zigzag()?;
        let offset = before.end();
        let len = before.len.checked_add_signed(more);
        offset.zip(len).map(|(offset, len)| Self { offset, len }).ok_or_else(|| {
            Error::corrupt(format!("expected the length of a block, found {} and {more}", before.len))
        })
    }

    /// The end of the block including its trailer.
    pub(super) fn end(self) -> Option<u64> {
        self.offset.checked_add(self.len)?.checked_add(TRAILER)
    }
}

/// The checksum algorithm of a table's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checksum {
    None,
    /// CRC-32C, in RocksDB's masked form.
    Crc32c,
    /// The low half of XXH3 of the bytes, modified by the compression byte.
    Xxh3,
}

/// Reads blocks, and reuses the decompressor's buffers from block to block.
pub(super) struct Blocks<'a> {
    pub(super) file: &'a [u8],
    pub(super) checksum: Checksum,
    pub(super) reading: Reading,
    pub(super) decompressor: Decompressor,
}

impl<'a> Blocks<'a> {
    /// The content of the block at `handle`.
    pub(super) fn read(&mut self, handle: Handle) -> Result<Cow<'a, [u8]>> {
        self.content(handle).map_err(|e| e.at(handle.offset))
    }

    fn content(&mut self, handle: Handle) -> Result<Cow<'a, [u8]>> {
        let place = |n: Option<u64>| n.and_then(|n| usize::try_from(n).ok());
        let range = place(Some(handle.offset)).zip(place(handle.end()));
        let stored = range.and_then(|(start, end)| self.file.get(start..end)).ok_or_else(|| {
            let (len, all) = (handle.len, self.file.len());
            Error::corrupt(format!("expected a block of {len} bytes in a table of {all}"))
        })?;
        let mut trailer = Cursor::new(stored, handle.offset);
        let bytes = trailer.take(stored.len().saturating_sub(5))?;
        let compression = trailer.u8()?;
        let checksum = trailer.u32_le()?;
        if self.reading.checked {
            let covered = stored.get(..bytes.len() + 1).unwrap_or_default();
            match self.checksum {
                Checksum::None => {}
                Checksum::Crc32c => check_crc32c(unmasked_crc32c(checksum), covered)?,
                // XXH3 covers the bytes; the compression byte is then combined with the result
                // (`ComputeBuiltinChecksumWithLastByte`).
                Checksum::Xxh3 => {
                    check_xxh3_low(checksum ^ u32::from(compression).wrapping_mul(0x6b90_83d9), bytes)?;
                }
            }
        }
        match compression {
            0 => Ok(Cow::Borrowed(bytes)),
            1 => {
                let max = self.reading.limits.max_metadata_bytes;
                let max = usize::try_from(max).unwrap_or(usize::MAX);
                let mut out = Vec::new();
                self.decompressor.decompress_bounded(Algorithm::Snappy, bytes, max, &mut out)?;
                Ok(Cow::Owned(out))
            }
            n => Err(Error::unsupported(format!("compression {n} of a block of RocksDB"))),
        }
    }
}

/// Iterates over the entries of a block.
pub(super) struct Entries<'a> {
    cursor: Cursor<'a>,
    /// The key of the entry that was read last.
    pub(super) key: Vec<u8>,
}

impl<'a> Entries<'a> {
    /// Begins with the first entry; finds where the entries end.
    pub(super) fn open(block: &'a [u8]) -> Result<Self> {
        let (rest, count) = block
            .split_last_chunk::<4>()
            .ok_or_else(|| Error::corrupt(format!("expected a block, found {} bytes", block.len())))?;
        let count = u32::from_le_bytes(*count);
        if count & 0xf000_0000 != 0 {
            return Err(Error::unsupported(
                "a block of RocksDB with a hash index, or one of a later version",
            ));
        }
        let restarts = usize::try_from(count).ok().and_then(|n| n.checked_mul(4));
        let entries = restarts.and_then(|n| rest.get(..rest.len().checked_sub(n)?)).ok_or_else(|| {
            Error::corrupt(format!(
                "expected {count} restarts at the end of a block, found {} bytes",
                rest.len()
            ))
        })?;
        Ok(Self { cursor: Cursor::new(entries, 0), key: Vec::new() })
    }

    /// The value of the next entry.
    pub(super) fn next(&mut self) -> Result<Option<&'a [u8]>> {
        if self.cursor.is_empty() {
            return Ok(None);
        }
        let (shared, unshared) = (self.len()?, self.len()?);
        let len = self.len()?;
        self.take_key(shared, unshared)?;
        self.cursor.take(len).map(Some)
    }

    /// The handle of the next entry of an index that stores differences; `before` is the previous entry's
    /// handle.
    pub(super) fn next_handle(&mut self, before: Option<Handle>) -> Result<Option<Handle>> {
        if self.cursor.is_empty() {
            return Ok(None);
        }
        let (shared, unshared) = (self.len()?, self.len()?);
        self.take_key(shared, unshared)?;
        match before {
            Some(before) if shared > 0 => Handle::following(before, &mut self.cursor).map(Some),
            _ => Handle::read(&mut self.cursor).map(Some),
        }
    }

    fn len(&mut self) -> Result<usize> {
        self.cursor.uleb128().map(|n| usize::try_from(n).unwrap_or(usize::MAX))
    }

    fn take_key(&mut self, shared: usize, unshared: usize) -> Result<()> {
        if shared > self.key.len() {
            let actual = self.key.len();
            let message = format!("expected a previous key of {shared} bytes or more, found {actual}");
            return Err(Error::corrupt(message).at(self.cursor.offset()));
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(self.cursor.take(unshared)?);
        Ok(())
    }
}
