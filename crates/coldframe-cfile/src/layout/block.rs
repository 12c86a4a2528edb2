//! The bytes of a block: its location, checksum and compression.
//!
//! ```text
//! stored      | payload | [CRC-32C u32 LE of the payload] |          the pointer's size includes both
//! payload     | bytes |                                              without a codec
//! version 2   | uncompressed size u32 LE | compressed bytes |        of equal length: the bytes are uncompressed
//! version 1   | compressed size u32 LE | uncompressed size u32 LE | compressed bytes |
//! ```

use std::ops::Range;

use bytes::Bytes;
use coldframe_core::{Error, Limits, Result};
use coldframe_encoding::codec::Decompressor;
use coldframe_encoding::{Cursor, checksum};

use super::proto;
use super::types::{Compression, Version};

/// The location of a block in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockPointer {
    /// The block's offset.
    pub offset: u64,
    /// The block's length, including the checksum.
    pub size: u32,
}

impl BlockPointer {
    /// Converts a message. The block must end at `end` or before.
    pub fn new(message: proto::BlockPointer, end: u64) -> Result<Self> {
        let pointer = message.offset.zip(message.size).and_then(|(offset, size)| {
            Some(Self { offset: u64::try_from(offset).ok()?, size: u32::try_from(size).ok()? })
        });
        let pointer = pointer.ok_or_else(|| {
            Error::corrupt(format!(
                "expected an offset and a size of 0 or more, found {:?} and {:?}",
                message.offset, message.size
            ))
        })?;
        pointer.check(end)
    }

    /// Returns the pointer if the block ends at `end` or before; otherwise an error.
    pub fn check(self, end: u64) -> Result<Self> {
        if self.offset.checked_add(self.size.into()).is_some_and(|e| e <= end) {
            return Ok(self);
        }
        let (offset, size) = (self.offset, self.size);
        Err(Error::corrupt(format!(
            "expected a block before byte {end}, found a block at {offset} of {size} bytes"
        )))
    }

    /// The range of the block's bytes.
    pub fn range(self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.size.into())
    }
}

/// A data block and its ordinals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataBlock {
    /// The block's location.
    pub pointer: BlockPointer,
    /// The ordinals of the block's rows.
    pub rows: Range<u64>,
}

/// The maximum number of rows of a data block. Nothing in the file bounds this number, since runs of equal
/// values take almost no bytes. But ordinals of a rowset have 32 bits, and its blocks are written at a few
/// hundred kilobytes.
const MAX_ROWS: u64 = 1 << 30;

impl DataBlock {
    /// The number of its rows, which only an index and the footer state.
    pub(crate) fn row_count(&self) -> Result<usize> {
        let rows = self.rows.end.saturating_sub(self.rows.start);
        usize::try_from(rows).ok().filter(|_| rows <= MAX_ROWS).ok_or_else(|| {
            Error::corrupt(format!("expected a data block of at most {MAX_ROWS} rows, found {rows}"))
        })
    }

    /// The block's name in errors.
    pub fn name(&self) -> String {
        format!("data block of ordinals {}..{}", self.rows.start, self.rows.end)
    }
}

/// How all blocks of a file are stored.
#[derive(Clone, Copy, Debug)]
pub struct BlockFormat {
    /// The version of the layout.
    pub version: Version,
    /// The codec of the blocks.
    pub compression: Compression,
    /// Whether each block has a checksum.
    pub checksums: bool,
    /// Whether checksums are verified.
    pub verify: bool,
    /// The limits on memory.
    pub limits: Limits,
}

impl BlockFormat {
    /// Verifies the checksum and returns the payload without it.
    pub fn payload<'a>(&self, stored: &'a [u8], at: u64) -> Result<&'a [u8]> {
        if !self.checksums {
            return Ok(stored);
        }
        let Some((payload, sum)) = stored.split_last_chunk::<4>() else {
            return Err(Error::corrupt(format!("expected a checksum, found {} bytes", stored.len())).at(at));
        };
        if self.verify {
            let sum_at = at + payload.len() as u64;
            checksum::check_crc32c(u32::from_le_bytes(*sum), payload).map_err(|e| e.at(sum_at))?;
        }
        Ok(payload)
    }

    /// The block's contents: a slice of `stored` if they are stored uncompressed, otherwise decompressed into
    /// `scratch`, which is cleared and reused.
    pub fn open(
        &self,
        stored: &Bytes,
        at: u64,
        decompressor: &mut Decompressor,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Bytes>> {
        self.open_bounded(stored, at, decompressor, scratch, |size| self.limits.block("block", size))
    }

    /// Like [`Self::open`]; `bound` checks the size before memory is allocated.
    fn open_bounded(
        &self,
        stored: &Bytes,
        at: u64,
        decompressor: &mut Decompressor,
        scratch: &mut Vec<u8>,
        bound: impl FnOnce(u64) -> Result<usize>,
    ) -> Result<Option<Bytes>> {
        let payload = self.payload(stored, at)?;
        if self.compression == Compression::None {
            return Ok(Some(stored.slice_ref(payload)));
        }
        let mut cursor = Cursor::new(payload, at);
        let compressed = match self.version {
            Version::V1 => Some(cursor.u32_le()?),
            Version::V2 => None,
        };
        let size = cursor.u32_le()?;
        let body = match compressed {
            Some(n) => {
                let body = cursor.take(usize::try_from(n).unwrap_or(usize::MAX))?;
                cursor.finish()?;
                body
            }
            None => cursor.rest(),
        };
        let size = u64::from(size);
        let most = self.compression.algorithm().max_expansion(body.len()) as u64;
        if size > most.max(body.len() as u64) {
            let message = format!("expected a block of at most {most} bytes, found one of {size}");
            return Err(Error::corrupt(message).at(at));
        }
        let size = bound(size)?;
        if self.version == Version::V2 && body.len() == size {
            return Ok(Some(stored.slice_ref(body)));
        }
        scratch.clear();
        let body_at = at + (payload.len() - body.len()) as u64;
        decompressor
            .decompress_exact(self.compression.algorithm(), body, size, scratch)
            .map_err(|e| e.at(body_at))?;
        Ok(None)
    }

    /// The contents of an index block in a file of `file_len` bytes, which limits their decompressed size.
    pub fn open_metadata(&self, stored: &Bytes, at: u64, file_len: u64) -> Result<Bytes> {
        let bound = |size| {
            self.limits.decoded("index block, decompressed", size, file_len)?;
            self.limits.metadata("index block, decompressed", size)
        };
        let mut scratch = Vec::new();
        let opened = self.open_bounded(stored, at, &mut Decompressor::new(), &mut scratch, bound)?;
        Ok(opened.unwrap_or_else(|| scratch.into()))
    }

    /// The block's contents as owned bytes, or as a slice of `stored`.
    pub fn open_owned(&self, stored: &Bytes, at: u64) -> Result<Bytes> {
        let mut scratch = Vec::new();
        Ok(match self.open(stored, at, &mut Decompressor::new(), &mut scratch)? {
            Some(bytes) => bytes,
            None => scratch.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_encoding::codec::Compressor;

    fn format(version: Version) -> BlockFormat {
        let limits = Limits { max_block_bytes: 1000, ..Limits::default() };
        BlockFormat { version, compression: Compression::Lz4, checksums: true, verify: true, limits }
    }

    fn opened(version: Version, head: &[u32], body: &[u8]) -> Result<Bytes> {
        let mut stored: Vec<u8> = head.iter().flat_map(|n| n.to_le_bytes()).collect();
        stored.extend_from_slice(body);
        stored.extend(checksum::crc32c(&stored).to_le_bytes());
        format(version).open_owned(&stored.into(), 100)
    }

    #[test]
    fn compressed_blocks_of_both_versions_are_read() {
        let raw = [7u8; 300];
        let mut packed = Vec::new();
        let mut compressor = Compressor::new();
        compressor.compress(Compression::Lz4.algorithm(), None, &raw, &mut packed).unwrap();
        let len = u32::try_from(packed.len()).unwrap();
        assert_eq!(opened(Version::V2, &[300], &packed).unwrap(), raw[..]);
        assert_eq!(opened(Version::V1, &[len, 300], &packed).unwrap(), raw[..]);
        // Version 2 stores incompressible data uncompressed.
        assert_eq!(opened(Version::V2, &[300], &raw).unwrap(), raw[..]);
        for wrong in [[len + 1, 300], [len - 1, 300], [len, 301], [len, 299], [len, 5000]] {
            assert!(opened(Version::V1, &wrong, &packed).is_err(), "{wrong:?}");
        }
        let e = opened(Version::V2, &[2000], &packed).unwrap_err();
        assert!(e.is_limit() && e.to_string().contains("max_block_bytes"), "{e}");
        // More than the bytes can decompress to.
        assert!(opened(Version::V2, &[5000], &packed).unwrap_err().is_damage());
        let e = format(Version::V2).open_owned(&Bytes::from_static(b"\0\0\0\0\0\0"), 100).unwrap_err();
        assert!(e.to_string().starts_with("byte 102: CRC-32C mismatch"), "{e}");
    }
}
