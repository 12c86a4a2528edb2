//! The header of a block, its type and its checksums.
//!
//! ```text
//! block, version 2 and 3
//!  0 | magic 8 | on-disk size without header i32 | raw size without header i32 | previous block of the type i64 |
//! 24 | checksum type u8 | bytes per checksum i32 | on-disk size of header and data i32 |     not in version 2, minor 0
//! 33 | data: encrypted( compressed( content ) ) | a checksum u32 for each chunk of header and data |
//!
//! block, version 1
//!  0 | compressed( magic 8 | content ) |    its size is the distance to the next block
//! ```
//!
//! All integers are big-endian. The on-disk size without header includes the checksums, the on-disk size of
//! header and data does not. The number of checksums follows from the size of header and data. The offset of
//! the previous block is ignored: Hudi's writer stores a wrong offset. HBase: `HFileBlock`, `BlockType`,
//! `ChecksumUtil`.

use std::fmt;

use coldframe_encoding::Cursor;
use coldframe_encoding::checksum::{check_crc32, check_crc32c};
use coldframe_encoding::error::ErrorContext;
use coldframe_encoding::{Error, Result};

/// The length of a block's magic.
pub(crate) const MAGIC_LEN: usize = 8;
/// The length of a header without checksum fields.
pub(crate) const SHORT_HEADER_LEN: usize = 24;
/// The length of a header with checksum fields.
pub(crate) const HEADER_LEN: usize = 33;

macro_rules! types {
    ($($variant:ident $magic:literal $name:literal;)*) => {
        /// The type of a block.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum BlockType {
            $(#[doc = $name] $variant,)*
        }

        impl BlockType {
            /// All types.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The magic of this block type.
            pub const fn magic(self) -> &'static [u8; MAGIC_LEN] {
                match self { $(Self::$variant => $magic,)* }
            }

            /// The block type with this magic.
            pub fn from_magic(magic: &[u8; MAGIC_LEN]) -> Option<Self> {
                match magic { $($magic => Some(Self::$variant),)* _ => None }
            }

            /// The name of the type in errors and layouts.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

types! {
    Data b"DATABLK*" "data block";
    EncodedData b"DATABLKE" "encoded data block";
    LeafIndex b"IDXLEAF2" "leaf index block";
    IntermediateIndex b"IDXINTE2" "intermediate index block";
    RootIndex b"IDXROOT2" "root index block";
    IndexV1 b"IDXBLK)+" "index block";
    BloomChunk b"BLMFBLK2" "bloom chunk";
    BloomMeta b"BLMFMET2" "bloom meta block";
    DeleteFamilyBloomMeta b"DFBLMET2" "delete family bloom meta block";
    Meta b"METABLKc" "meta block";
    FileInfo b"FILEINF2" "file info block";
}

impl BlockType {
    /// Whether blocks of this type hold cells.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::EncodedData)
    }
}

impl fmt::Display for BlockType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How the checksums of a block are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checksums {
    /// 0 means no checksums, 1 CRC-32, 2 CRC-32C.
    pub kind: u8,
    /// How many bytes one checksum covers.
    pub chunk: u32,
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The type of the block.
    pub block_type: BlockType,
    /// The length of the header.
    pub header_len: usize,
    /// The length of the stored data.
    pub stored: usize,
    /// The length of the checksums after the data.
    pub checksum_bytes: usize,
    /// The length of the data after decryption and decompression.
    pub raw: usize,
    /// The offset of the previous block of the same type, as the writer stated it; it may be wrong.
    pub previous: i64,
    /// How the checksums are computed; `None` if the format version has no fields for it.
    pub checksums: Option<Checksums>,
}

impl Header {
    /// Parses the header at the start of `bytes`, which is at `offset` in the file. `with_checksums` follows from the
    /// trailer's version.
    pub(crate) fn parse(bytes: &[u8], offset: u64, with_checksums: bool) -> Result<Self> {
        let mut c = Cursor::new(bytes, offset);
        let magic = c.array::<MAGIC_LEN>().within(|| "block")?;
        let block_type = BlockType::from_magic(&magic).ok_or_else(|| {
            let message = format!("expected a block's magic, found \"{}\"", magic.escape_ascii());
            Error::corrupt(message).at(offset).within("block")
        })?;
        Self::parse_fields(&mut c, block_type, with_checksums).within(|| format!("{block_type} header"))
    }

    fn parse_fields(c: &mut Cursor<'_>, block_type: BlockType, with_checksums: bool) -> Result<Self> {
        let on_disk = size(c, "size on disk")?;
        let raw = size(c, "raw size")?;
        let previous = c.i64_be()?;
        if !with_checksums {
            let header_len = SHORT_HEADER_LEN;
            return Ok(Self {
                block_type,
                header_len,
                stored: on_disk,
                checksum_bytes: 0,
                raw,
                previous,
                checksums: None,
            });
        }
        let at = c.offset();
        let checksums = Checksums { kind: c.u8()?, chunk: c.u32_be()? };
        if checksums.kind > 2 {
            let kind = checksums.kind;
            return Err(Error::corrupt(format!("expected checksum type 0, 1 or 2, found {kind}")).at(at));
        }
        if checksums.chunk == 0 || i32::try_from(checksums.chunk).is_err() {
            let chunk = checksums.chunk;
            return Err(Error::corrupt(format!("expected bytes per checksum, found {chunk}")).at(at + 1));
        }
        let at = c.offset();
        let with_header = size(c, "size of header and data")?;
        let stored = with_header.checked_sub(HEADER_LEN);
        let chunks = (with_header as u64).div_ceil(checksums.chunk.into());
        let fitting = stored.filter(|n| (*n as u64).checked_add(chunks * 4) == Some(on_disk as u64));
        let Some(stored) = fitting else {
            let message = format!(
                "expected {on_disk} bytes of data and checksums, found {with_header} bytes of header and data with {chunks} checksums"
            );
            return Err(Error::corrupt(message).at(at));
        };
        let checksum_bytes = on_disk - stored;
        Ok(Self {
            block_type,
            header_len: HEADER_LEN,
            stored,
            checksum_bytes,
            raw,
            previous,
            checksums: Some(checksums),
        })
    }

    /// Whether [`Self::parse`] would accept `bytes` as the header of a block of at most `max_len` bytes. The
    /// function gives no reason and is cheap, for searches that try many offsets.
    pub(crate) fn fits(bytes: &[u8], with_checksums: bool, max_len: u64) -> bool {
        let int = |at: usize| {
            let four = bytes.get(at..).and_then(|b| b.first_chunk::<4>());
            four.and_then(|four| u64::try_from(i32::from_be_bytes(*four)).ok())
        };
        let known = bytes.first_chunk::<MAGIC_LEN>().and_then(BlockType::from_magic).is_some();
        let (Some(on_disk), Some(_), true) = (int(8), int(12), known) else { return false };
        let header_len = if with_checksums { HEADER_LEN } else { SHORT_HEADER_LEN };
        if on_disk + header_len as u64 > max_len || bytes.len() < header_len {
            return false;
        }
        if !with_checksums {
            return true;
        }
        let (kind, chunk, with_header) = (bytes.get(24), int(25), int(29));
        let (Some(0..=2), Some(chunk @ 1..), Some(with_header)) = (kind, chunk, with_header) else {
            return false;
        };
        with_header >= HEADER_LEN as u64
            && with_header - HEADER_LEN as u64 + with_header.div_ceil(chunk) * 4 == on_disk
    }

    /// The length of the whole block.
    pub(crate) fn block_len(&self) -> u64 {
        (self.header_len as u64).saturating_add(self.stored as u64).saturating_add(self.checksum_bytes as u64)
    }

    /// The stored data of the block `block`. Verifies the block's checksums first if `verify` is set.
    pub(crate) fn data<'a>(&self, block: &'a [u8], offset: u64, verify: bool) -> Result<&'a [u8]> {
        let mut c = Cursor::new(block, offset);
        let covered = c.take(self.header_len.saturating_add(self.stored))?;
        let sums = c.take(self.checksum_bytes)?;
        if let Some(checksums) = self.checksums.filter(|_| verify) {
            checksums.verify(covered, sums, offset).within(|| self.block_type.name())?;
        }
        covered
            .get(self.header_len..)
            .ok_or_else(|| Error::corrupt("expected data after the header of the block").at(offset))
    }
}

impl Checksums {
    /// Verifies the checksums of header and data.
    fn verify(&self, covered: &[u8], sums: &[u8], offset: u64) -> Result<()> {
        let check = match self.kind {
            1 => check_crc32,
            2 => check_crc32c,
            _ => return Ok(()),
        };
        let chunk = usize::try_from(self.chunk).unwrap_or(usize::MAX);
        let mut at = offset;
        for (bytes, stored) in covered.chunks(chunk).zip(sums.as_chunks::<4>().0) {
            check(u32::from_be_bytes(*stored), bytes).at(at)?;
            at = at.saturating_add(chunk as u64);
        }
        Ok(())
    }
}

/// Reads a size, which must not be negative.
fn size(c: &mut Cursor<'_>, what: &str) -> Result<usize> {
    let at = c.offset();
    let n = c.i32_be()?;
    usize::try_from(n).map_err(|_| Error::corrupt(format!("{what}: expected 0 or more, found {n}")).at(at))
}

/// The offset in `bytes` of the next magic of a block, from `from` on.
pub(crate) fn find_magic(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    // All magics begin with one of these five letters. Most bytes are none of these letters.
    let mut at = 0;
    while let Some(next) =
        rest.get(at..).and_then(|r| r.iter().position(|b| matches!(b, b'D' | b'I' | b'B' | b'M' | b'F')))
    {
        at += next;
        let magic = rest.get(at..).and_then(|r| r.first_chunk::<MAGIC_LEN>())?;
        if BlockType::from_magic(magic).is_some() {
            return Some(from + at);
        }
        at += 1;
    }
    None
}
