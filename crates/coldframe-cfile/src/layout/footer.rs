//! The header and the footer of a CFile.
//!
//! ```text
//! header | magic (8) | length u32 LE | CFileHeaderPB | [CRC-32C u32 LE of all before] |
//! footer | [CRC-32C u32 LE of all that follows] | CFileFooterPB | magic (8) | length u32 LE |
//! ```
//!
//! The magic bytes are `kuducfl2`, or up to Kudu 1.2 `kuducfil`. Files have checksums if bit 0 of the
//! footer's `incompatible_features` is set, so the footer is read first. ("CFile" in Kudu's design documents,
//! "File format".)

use std::ops::Range;

use coldframe_core::{Error, ErrorContext, Limits, ReadAt, Result};
use coldframe_encoding::limits::message;
use coldframe_encoding::{Cursor, checksum};
use prost::Message;

use super::block::BlockPointer;
use super::proto::{self, CFileFooter, CFileHeader, MetadataPair};
use super::types::{Compression, Encoding, KuduType, Version};

/// The length of the magic bytes and the length field together.
pub const FRAME_LEN: u64 = 12;
/// The length of a checksum.
pub const CHECKSUM_LEN: u64 = 4;
/// How many bytes at the end of a file are read first.
const TAIL_GUESS: u64 = 1024;
/// The bit of `incompatible_features` for checksums.
pub const CHECKSUM_FEATURE: u32 = 1;
/// The bit of `incompatible_features` for array values.
const ARRAY_FEATURE: u32 = 2;

/// The contents of the footer and the header.
#[derive(Clone, Debug)]
pub struct Footer {
    /// The version of the layout.
    pub version: Version,
    /// The values' type.
    pub data_type: KuduType,
    /// The values' encoding.
    pub encoding: Encoding,
    /// The number of values, including nulls.
    pub num_values: u64,
    /// The root of the positional index.
    pub positional: Option<BlockPointer>,
    /// The root of the value index.
    pub value: Option<BlockPointer>,
    /// The compression of blocks.
    pub compression: Compression,
    /// Key-value pairs that the writer added.
    pub metadata: Vec<MetadataPair>,
    /// Whether there may be nulls.
    pub nullable: bool,
    /// The location of the dictionary block.
    pub dictionary: Option<BlockPointer>,
    /// Features that a reader must know.
    pub incompatible_features: u32,
    /// Features that a reader may ignore.
    pub compatible_features: u32,
    /// Key-value pairs of the header.
    pub header_metadata: Vec<MetadataPair>,
    /// The range of the header, including its checksum.
    pub header: Range<u64>,
    /// The range of the footer, including its checksum.
    pub range: Range<u64>,
}

impl Footer {
    /// Whether the file has checksums.
    pub fn has_checksums(&self) -> bool {
        self.incompatible_features & CHECKSUM_FEATURE != 0
    }

    /// The value that the writer added under `key`.
    pub fn pair(&self, key: &str) -> Option<&[u8]> {
        self.metadata.iter().find(|p| p.key == key.as_bytes()).map(|p| p.value.as_slice())
    }

    /// Reads the header and the footer of `source`; verifies their checksums if `verify` is set.
    pub fn read(source: &dyn ReadAt, verify: bool, limits: &Limits) -> Result<Self> {
        let mut footer = read_footer(source, verify, limits).within(|| "footer")?;
        read_header(source, verify, limits, &mut footer).within(|| "header")?;
        Ok(footer)
    }
}

fn read_footer(source: &dyn ReadAt, verify: bool, limits: &Limits) -> Result<Footer> {
    let len = source.len();
    if len < 2 * FRAME_LEN {
        return Err(Error::corrupt(format!("expected at least {} bytes, found {len}", 2 * FRAME_LEN)).at(0));
    }
    let mut start = len.saturating_sub(TAIL_GUESS);
    let mut tail = source.read(start..len)?;
    let frame_at = len - FRAME_LEN;
    let (version, message_len) = frame(tail.get(tail.len() - 12..).unwrap_or_default(), frame_at)?;
    let (message_len, room) = (u64::from(message_len), frame_at - FRAME_LEN);
    if message_len > room {
        let e = Error::corrupt(format!("expected a footer of at most {room} bytes, found {message_len}"));
        return Err(e.at(frame_at + 8));
    }
    limits.metadata("footer", message_len)?;
    let message_at = frame_at - message_len;
    let wanted = message_at - CHECKSUM_LEN;
    if wanted < start {
        start = wanted;
        tail = source.read(start..len)?;
    }
    let mut cursor = Cursor::new(&tail, start);
    cursor.skip(usize::try_from(wanted - start).unwrap_or(usize::MAX))?;
    let stored = cursor.u32_le()?;
    let summed = cursor.rest();
    let message = cursor.take(usize::try_from(message_len).unwrap_or(usize::MAX))?;
    message::check::<CFileFooter>(message, limits, len).map_err(|e| e.at(message_at))?;
    let message = CFileFooter::decode(message).map_err(|e| malformed(&e).at(message_at))?;
    let incompatible = message.incompatible_features.unwrap_or(0);
    let has_checksums = incompatible & CHECKSUM_FEATURE != 0;
    if has_checksums && verify {
        checksum::check_crc32c(stored, summed).map_err(|e| e.at(wanted))?;
    }
    let range = if has_checksums { wanted } else { message_at }..len;
    parse(message, version, range).map_err(|e| e.at(message_at))
}

fn malformed(e: &prost::DecodeError) -> Error {
    Error::corrupt(format!("expected a protobuf message, found something else ({e})"))
}

/// Parses the magic bytes and the length.
fn frame(bytes: &[u8], at: u64) -> Result<(Version, u32)> {
    let mut cursor = Cursor::new(bytes, at);
    let magic = cursor.take(8)?;
    let version = Version::of(magic).ok_or_else(|| {
        let actual = magic.escape_ascii();
        Error::corrupt(format!("magic: expected \"kuducfl2\" or \"kuducfil\", found \"{actual}\"")).at(at)
    })?;
    Ok((version, cursor.u32_le()?))
}

fn missing(field: &str) -> Error {
    Error::corrupt(format!("expected the field {field}, found none"))
}

fn parse(message: CFileFooter, version: Version, range: Range<u64>) -> Result<Footer> {
    let incompatible_features = message.incompatible_features.unwrap_or(0);
    let unknown = incompatible_features & !(CHECKSUM_FEATURE | ARRAY_FEATURE);
    if unknown != 0 {
        return Err(Error::unsupported(format!("a CFile with the incompatible features {unknown:#x}")));
    }
    if incompatible_features & ARRAY_FEATURE != 0 || message.is_type_array == Some(true) {
        return Err(Error::unsupported(
            "a CFile of arrays (incompatible feature 0x2, later than Kudu 1.18.1)",
        ));
    }
    let num_values = message.num_values.ok_or_else(|| missing("num_values"))?;
    let num_values = u64::try_from(num_values)
        .map_err(|_| Error::corrupt(format!("expected 0 values or more, found {num_values}")))?;
    if num_values > u64::from(u32::MAX) + 1 {
        return Err(Error::corrupt(format!("expected ordinals of 32 bits, found {num_values} values")));
    }
    let pointer = |p: Option<proto::BlockPointer>| p.map(|p| BlockPointer::new(p, range.start)).transpose();
    let root = |info: Option<proto::BTreeInfo>| match info {
        None => Ok(None),
        Some(info) => pointer(Some(info.root_block.ok_or_else(|| missing("root_block"))?)),
    };
    Ok(Footer {
        version,
        data_type: KuduType::from_number(message.data_type.ok_or_else(|| missing("data_type"))?)?,
        encoding: Encoding::from_number(message.encoding.ok_or_else(|| missing("encoding"))?)?,
        num_values,
        positional: root(message.posidx_info).within(|| "positional index")?,
        value: root(message.validx_info).within(|| "value index")?,
        compression: Compression::from_number(message.compression.unwrap_or(Compression::None.number()))?,
        metadata: message.metadata,
        nullable: message.is_type_nullable.unwrap_or(false),
        dictionary: pointer(message.dict_block_ptr).within(|| "dictionary")?,
        incompatible_features,
        compatible_features: message.compatible_features.unwrap_or(0),
        header_metadata: Vec::new(),
        header: 0..0,
        range,
    })
}

fn read_header(source: &dyn ReadAt, verify: bool, limits: &Limits, footer: &mut Footer) -> Result<()> {
    let room = footer.range.start;
    let first = source.read(0..room.min(64))?;
    let (version, message_len) = frame(&first, 0)?;
    if version != footer.version {
        return Err(Error::corrupt(
            "expected the magic of the file's end, found the magic of another version",
        )
        .at(0));
    }
    let message_len = u64::from(message_len);
    let sum_len = if footer.has_checksums() { CHECKSUM_LEN } else { 0 };
    let end = FRAME_LEN.saturating_add(message_len).saturating_add(sum_len);
    if end > room {
        return Err(Error::corrupt(format!("expected a header of at most {room} bytes, found {end}")).at(8));
    }
    limits.metadata("header", message_len)?;
    let bytes = if end <= first.len() as u64 { first } else { source.read(0..end)? };
    let mut cursor = Cursor::new(&bytes, 0);
    let summed = cursor.take(usize::try_from(end - sum_len).unwrap_or(usize::MAX))?;
    if sum_len > 0 && verify {
        let at = cursor.offset();
        checksum::check_crc32c(cursor.u32_le()?, summed).map_err(|e| e.at(at))?;
    }
    let message = summed.get(12..).unwrap_or_default();
    message::check::<CFileHeader>(message, limits, source.len()).map_err(|e| e.at(FRAME_LEN))?;
    let header = CFileHeader::decode(message).map_err(|e| malformed(&e).at(FRAME_LEN))?;
    footer.header_metadata = header.metadata;
    footer.header = 0..end;
    Ok(())
}
