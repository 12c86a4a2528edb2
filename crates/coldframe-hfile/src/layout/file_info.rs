//! The file info: a sorted map of bytes to bytes. The format defines some of the keys.
//!
//! ```text
//! protobuf  | "PBUF" | FileInfoProto, length-delimited |                        version 2.2 on
//! Writable  | entries i32 | ( key: VInt length, bytes | id u8 | value: VInt length, bytes ) ... |
//! ```
//!
//! HBase: `HFileInfo`, `HbaseMapWritable` (its id is the id of the value's class, which is always the class
//! of byte arrays).

use std::collections::BTreeMap;

use coldframe_encoding::Cursor;
use coldframe_encoding::error::ErrorContext;
use coldframe_encoding::limits::message;
use coldframe_encoding::{Error, Limits, Result};
use prost::Message;

use crate::layout::proto::FileInfoProto;

/// The magic of a protobuf message in a block.
pub const PROTOBUF_MAGIC: &[u8; 4] = b"PBUF";

/// The last key of the file.
pub const LAST_KEY: &[u8] = b"hfile.LASTKEY";
/// The average length of keys.
pub const AVG_KEY_LEN: &[u8] = b"hfile.AVG_KEY_LEN";
/// The average length of values.
pub const AVG_VALUE_LEN: &[u8] = b"hfile.AVG_VALUE_LEN";
/// When the file was created.
pub const CREATE_TIME: &[u8] = b"hfile.CREATE_TIME_TS";
/// `hfile.COMPARATOR`: the class of the comparator, in files of version 1.
pub const COMPARATOR: &[u8] = b"hfile.COMPARATOR";
/// `hfile.MAX_TAGS_LEN`: present if cells have tags.
pub const MAX_TAGS_LEN: &[u8] = b"hfile.MAX_TAGS_LEN";
/// `hfile.TAGS_COMPRESSED`: whether encoded blocks store tags through a dictionary.
pub const TAGS_COMPRESSED: &[u8] = b"hfile.TAGS_COMPRESSED";
/// The encoding of the data blocks.
pub const DATA_BLOCK_ENCODING: &[u8] = b"DATA_BLOCK_ENCODING";
/// `KEY_VALUE_VERSION`: 1 if cells have a sequence id.
pub const KEY_VALUE_VERSION: &[u8] = b"KEY_VALUE_VERSION";
/// `MAX_MEMSTORE_TS_KEY`: the largest sequence id.
pub const MAX_MEMSTORE_TS: &[u8] = b"MAX_MEMSTORE_TS_KEY";
/// The type of the bloom filter.
pub const BLOOM_FILTER_TYPE: &[u8] = b"BLOOM_FILTER_TYPE";
/// `BLOOM_FILTER_PARAM`: the prefix length of ROWPREFIX_FIXED_LENGTH.
pub const BLOOM_FILTER_PARAM: &[u8] = b"BLOOM_FILTER_PARAM";
/// In Hudi's files: the Avro schema of the values.
pub const HUDI_SCHEMA: &[u8] = b"schema";
/// In Hudi's files: the smallest key.
pub const HUDI_MIN_KEY: &[u8] = b"minRecordKey";

/// The message without its length prefix, if the prefix is valid; decoding checks the message.
fn delimited(message: &[u8]) -> &[u8] {
    let length = message.iter().position(|b| *b < 0x80).map_or(message.len(), |last| last + 1);
    message.get(length..).unwrap_or_default()
}

/// The entries of the file info, by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileInfo(pub BTreeMap<Vec<u8>, Vec<u8>>);

impl FileInfo {
    /// Parses the content of a file info block at `offset` in the file.
    pub(crate) fn parse(bytes: &[u8], offset: u64, limits: &Limits, file_len: u64) -> Result<Self> {
        match bytes.strip_prefix(PROTOBUF_MAGIC) {
            Some(message) => {
                message::check::<FileInfoProto>(delimited(message), limits, file_len).at(offset)?;
                let message = FileInfoProto::decode_length_delimited(message)
                    .map_err(|e| Error::corrupt(format!("protobuf: {e}")).at(offset))?;
                Ok(Self(message.map_entry.into_iter().map(|e| (e.first, e.second)).collect()))
            }
            None => Self::parse_writable(&mut Cursor::new(bytes, offset), limits),
        }
    }

    /// Parses the form that old files have (`Writable`), and ignores bytes after it.
    pub(crate) fn parse_writable(c: &mut Cursor<'_>, limits: &Limits) -> Result<Self> {
        let at = c.offset();
        let entries = c.i32_be()?;
        let entries = u64::try_from(entries)
            .map_err(|_| Error::corrupt(format!("expected 0 entries or more, found {entries}")).at(at))?;
        // An entry takes at least three bytes.
        let (least, room) = (entries.saturating_mul(3), c.remaining());
        if least > room as u64 {
            let e = Error::corrupt(format!("expected {entries} entries, found only {room} bytes"));
            return Err(e.at(at));
        }
        limits.metadata("a file info", least)?;
        let mut map = BTreeMap::new();
        for _ in 0..entries {
            let key = c.hadoop_text()?.to_vec();
            c.skip(1)?;
            map.insert(key, c.hadoop_text()?.to_vec());
        }
        Ok(Self(map))
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.0.get(key).map(Vec::as_slice)
    }

    /// The value of a key as text; `None` if it is not UTF-8.
    pub fn text(&self, key: &[u8]) -> Option<&str> {
        std::str::from_utf8(self.get(key)?).ok()
    }

    /// The value of a key as a big-endian integer of four or eight bytes.
    pub fn integer(&self, key: &[u8]) -> Option<i64> {
        let value = self.get(key)?;
        match (<[u8; 4]>::try_from(value), <[u8; 8]>::try_from(value)) {
            (Ok(four), _) => Some(i32::from_be_bytes(four).into()),
            (_, Ok(eight)) => Some(i64::from_be_bytes(eight)),
            _ => None,
        }
    }

    /// Whether cells have a sequence id.
    pub fn has_sequence_ids(&self) -> bool {
        self.integer(KEY_VALUE_VERSION) == Some(1)
    }

    /// Whether cells have tags.
    pub fn has_tags(&self) -> bool {
        self.get(MAX_TAGS_LEN).is_some()
    }

    /// Whether encoded blocks store tags through a dictionary.
    pub fn has_compressed_tags(&self) -> bool {
        self.get(TAGS_COMPRESSED).is_some_and(|v| v.first().is_some_and(|b| *b != 0))
    }
}
