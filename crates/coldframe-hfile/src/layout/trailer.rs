//! The trailer, which states where the other parts of the file are.
//!
//! ```text
//! version 1     |                  "TRABLK\"$" | fixed fields, 48 bytes                     | version i32 |     60 bytes
//! version 2.0/1 |                  "TRABLK\"$" | fixed fields, 200 bytes                    | version i32 |    212 bytes
//! version 2.2+  |                  "TRABLK\"$" | protobuf, length-delimited | zeros         | version i32 |    212 bytes
//! version 3     |                  "TRABLK\"$" | protobuf, length-delimited | zeros         | version i32 |  4,096 bytes
//! version i32 BE = minor << 24 | major
//! ```
//!
//! HBase: `FixedFileTrailer`, `HFile.proto`.

use coldframe_encoding::Cursor;
use coldframe_encoding::error::ErrorContext;
use coldframe_encoding::{Error, Result};
use prost::Message;

use crate::layout::proto::FileTrailerProto;

/// The magic of a trailer.
pub(crate) const MAGIC: &[u8; 8] = b"TRABLK\"$";
/// The longest trailer.
pub(crate) const MAX_LEN: u64 = 4096;

/// A trailer of any version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trailer {
    /// The major version: 1, 2 or 3.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
    /// The offset of the file info.
    pub file_info_offset: u64,
    /// The offset of the blocks that are read on opening: the root data index is the first of them.
    pub load_on_open_offset: u64,
    /// The offset of the meta index; only version 1 states it.
    pub meta_index_offset: Option<u64>,
    /// The uncompressed size of the data index, as the writer stated it; unreliable.
    pub uncompressed_data_index_size: Option<u64>,
    /// The uncompressed size of all blocks, as the writer stated it; unreliable.
    pub total_uncompressed_bytes: Option<u64>,
    /// Number of entries of the root data index.
    pub data_index_count: u32,
    /// Number of entries of the meta index.
    pub meta_index_count: u32,
    /// Number of cells.
    pub entry_count: u64,
    /// Number of levels of the data index.
    pub index_levels: u32,
    /// The offset of the first data block, if there is one.
    pub first_data_block: Option<u64>,
    /// The offset of the last data block, if there is one.
    pub last_data_block: Option<u64>,
    /// The Java class that orders the keys; empty in version 1.
    pub comparator: String,
    /// The ordinal of the codec.
    pub codec: u32,
    /// The wrapped data key of an encrypted file.
    pub encryption_key: Option<Vec<u8>>,
}

/// The length of a trailer, by the major version.
pub(crate) fn len_of(major: u32) -> Option<u64> {
    match major {
        1 => Some(60),
        2 => Some(212),
        3 => Some(4096),
        _ => None,
    }
}

/// The major and minor version at the end of a file.
pub(crate) fn version_of(tail: &[u8]) -> Option<(u32, u32)> {
    let version = u32::from_be_bytes(*tail.last_chunk()?);
    Some((version & 0x00ff_ffff, version >> 24))
}

/// Whether `tail`, the last bytes of a file, ends with a trailer.
pub(crate) fn probe(tail: &[u8]) -> bool {
    let Some((major, _)) = version_of(tail) else { return false };
    let start = len_of(major).and_then(|n| tail.len().checked_sub(usize::try_from(n).ok()?));
    start.and_then(|at| tail.get(at..)).is_some_and(|t| t.starts_with(MAGIC))
}

impl Trailer {
    /// Parses the trailer at the end of `tail`: the last `MAX_LEN` bytes of a file of `file_len` bytes, or the whole
    /// file.
    pub fn parse(tail: &[u8], file_len: u64) -> Result<Self> {
        Self::parse_at_end(tail, file_len).within(|| "trailer")
    }

    fn parse_at_end(tail: &[u8], file_len: u64) -> Result<Self> {
        let at = file_len.saturating_sub(4);
        let Some((major, minor)) = version_of(tail) else {
            return Err(Error::corrupt(format!("expected a version, found a file of {} bytes", tail.len())));
        };
        let Some(len) = len_of(major) else {
            return Err(Error::corrupt(format!("expected version 1, 2 or 3, found {major}")).at(at));
        };
        let start = usize::try_from(len).ok().and_then(|len| tail.len().checked_sub(len));
        let bytes = start.and_then(|start| tail.get(start..)).ok_or_else(|| {
            Error::corrupt(format!("expected {len} bytes for version {major}, found {}", tail.len())).at(0)
        })?;
        let mut c = Cursor::new(bytes, file_len.saturating_sub(len));
        c.expect("magic", MAGIC)?;
        let trailer = match (major, minor) {
            (1, _) => fixed_v1(&mut c)?,
            (2, 0 | 1) => fixed_v2(&mut c)?,
            _ => protobuf(&mut c)?,
        };
        let trailer = Self { major, minor, ..trailer };
        trailer.check(file_len, len)?;
        Ok(trailer)
    }

    /// Whether block headers have checksum fields.
    pub fn has_checksums(&self) -> bool {
        self.major > 2 || (self.major == 2 && self.minor > 0)
    }

    /// Whether the file info is a protobuf message.
    pub fn has_protobuf_info(&self) -> bool {
        self.major > 2 || (self.major == 2 && self.minor > 1)
    }

    fn check(&self, file_len: u64, len: u64) -> Result<()> {
        let start = file_len.saturating_sub(len);
        let places = [
            ("file info", Some(self.file_info_offset)),
            ("load-on-open section", Some(self.load_on_open_offset)),
            ("meta index", self.meta_index_offset.filter(|_| self.meta_index_count > 0)),
            ("first data block", self.first_data_block),
            ("last data block", self.last_data_block),
        ];
        for (what, place) in places {
            if let Some(place) = place.filter(|p| *p > start) {
                let message =
                    format!("expected the {what} before the trailer at {start}, found offset {place}");
                return Err(Error::corrupt(message).at(start));
            }
        }
        Ok(())
    }
}

/// An offset; `None` if all of its bits are ones, which means that there is none.
fn offset_or_none(offset: u64) -> Option<u64> {
    Some(offset).filter(|o| *o != u64::MAX)
}

fn count(c: &mut Cursor<'_>, what: &str) -> Result<u32> {
    let at = c.offset();
    let n = c.i32_be()?;
    u32::try_from(n).map_err(|_| Error::corrupt(format!("{what}: expected 0 or more, found {n}")).at(at))
}

fn fixed_v1(c: &mut Cursor<'_>) -> Result<Trailer> {
    Ok(Trailer {
        file_info_offset: c.u64_be()?,
        load_on_open_offset: c.u64_be()?,
        data_index_count: count(c, "data index entries")?,
        meta_index_offset: Some(c.u64_be()?),
        meta_index_count: count(c, "meta index entries")?,
        total_uncompressed_bytes: Some(c.u64_be()?),
        entry_count: count(c, "cells")?.into(),
        codec: c.u32_be()?,
        index_levels: 1,
        ..Trailer::default()
    })
}

fn fixed_v2(c: &mut Cursor<'_>) -> Result<Trailer> {
    let mut trailer = Trailer {
        file_info_offset: c.u64_be()?,
        load_on_open_offset: c.u64_be()?,
        data_index_count: count(c, "data index entries")?,
        uncompressed_data_index_size: Some(c.u64_be()?),
        meta_index_count: count(c, "meta index entries")?,
        total_uncompressed_bytes: Some(c.u64_be()?),
        entry_count: c.u64_be()?,
        codec: c.u32_be()?,
        index_levels: count(c, "index levels")?,
        first_data_block: offset_or_none(c.u64_be()?),
        last_data_block: offset_or_none(c.u64_be()?),
        ..Trailer::default()
    };
    let at = c.offset();
    let name = c.take(128)?;
    let name = name.split(|b| *b == 0).next().unwrap_or_default();
    trailer.comparator = std::str::from_utf8(name)
        .map_err(|_| Error::corrupt("comparator: expected UTF-8").at(at))?
        .to_owned();
    Ok(trailer)
}

fn protobuf(c: &mut Cursor<'_>) -> Result<Trailer> {
    let at = c.offset();
    let message = FileTrailerProto::decode_length_delimited(c.rest())
        .map_err(|e| Error::corrupt(format!("protobuf: {e}")).at(at))?;
    let required = |what: &str, field: Option<u64>| {
        field.ok_or_else(|| Error::corrupt(format!("expected the field {what}, found none")).at(at))
    };
    Ok(Trailer {
        file_info_offset: required("file_info_offset", message.file_info_offset)?,
        load_on_open_offset: required("load_on_open_data_offset", message.load_on_open_data_offset)?,
        uncompressed_data_index_size: message.uncompressed_data_index_size,
        total_uncompressed_bytes: message.total_uncompressed_bytes,
        data_index_count: message.data_index_count.unwrap_or(0),
        meta_index_count: message.meta_index_count.unwrap_or(0),
        entry_count: message.entry_count.unwrap_or(0),
        index_levels: message.num_data_index_levels.unwrap_or(0),
        first_data_block: message.first_data_block_offset.and_then(offset_or_none),
        last_data_block: message.last_data_block_offset.and_then(offset_or_none),
        comparator: message.comparator_class_name.unwrap_or_default(),
        codec: message.compression_codec.unwrap_or(2),
        encryption_key: message.encryption_key,
        ..Trailer::default()
    })
}
