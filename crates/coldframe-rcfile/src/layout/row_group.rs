//! A row group: its record header, its key, and the positions of its columns.
//!
//! ```text
//! | [-1 i32 | sync [16]] | record length i32 | key length i32 | key length on disk i32 | key | column | column ...
//! ```
//!
//! All integers are big-endian. Hive uses the record length (decompressed key + columns on disk) only to skip a group.
//! This reader does not use it either, so no row is lost if it is wrong. The key of an uncompressed file
//! shows where it ends, so the reader ignores its two lengths as well. Source: Hive's
//! `RCFile.Reader.nextKeyBuffer`, `RCFile.Writer.flushRecords`.

use std::ops::Range;

use coldframe_core::Limits;
use coldframe_encoding::codec::hadoop::HadoopCodec;

use super::header::SYNC_LEN;
use super::key::KeyBuffer;

/// A sync marker: the escape and the hash.
pub(crate) const SYNC_MARKER_LEN: u64 = 4 + SYNC_LEN as u64;

/// The value -1 in place of a record length; a sync marker follows.
pub(crate) const SYNC_ESCAPE: i32 = -1;

/// The lengths before a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    /// Decompressed key + columns on disk, as the writer states it.
    pub(crate) record_len: i32,
    /// Decompressed key.
    pub(crate) key_len: i32,
    /// Length of the key on disk.
    pub(crate) key_disk_len: i32,
}

impl RecordHeader {
    /// Parses the 12 bytes of a record header.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (record, rest) = bytes.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        let [record_len, key_len, key_disk_len] =
            [record, key, rest.first_chunk()?].map(|bytes| i32::from_be_bytes(*bytes));
        Some(Self { record_len, key_len, key_disk_len })
    }
}

/// A row group with its key.
#[derive(Clone, Debug)]
pub(crate) struct RowGroup {
    /// The sync marker before it, if there is one.
    pub(crate) sync: Option<Range<u64>>,
    /// Offset of the record header.
    pub(crate) header_offset: u64,
    /// The record header.
    pub(crate) header: RecordHeader,
    /// The bytes of the key on disk.
    pub(crate) key_bytes: Range<u64>,
    /// The key.
    pub(crate) key: KeyBuffer,
}

impl RowGroup {
    /// The first byte of the group, including the sync marker.
    pub(crate) fn start(&self) -> u64 {
        self.sync.as_ref().map_or(self.header_offset, |s| s.start)
    }

    /// End of the last column.
    pub(crate) fn end(&self) -> u64 {
        self.key_bytes.end.saturating_add(self.key.disk_len())
    }

    /// The bytes of each column on disk.
    pub(crate) fn column_ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut at = self.key_bytes.end;
        self.key.columns.iter().map(move |c| {
            let start = at;
            at = at.saturating_add(c.disk_len);
            start..at
        })
    }
}

/// The properties of a file that are needed to read its row groups.
#[derive(Clone, Debug)]
pub(crate) struct FileContext {
    /// The file's sync hash.
    pub(crate) sync: [u8; SYNC_LEN],
    /// Number of columns in each key.
    pub(crate) columns: usize,
    /// The codec, if the file is compressed.
    pub(crate) codec: Option<HadoopCodec>,
    /// Where the first row group starts.
    pub(crate) header_end: u64,
    /// The limits on memory.
    pub(crate) limits: Limits,
}

impl FileContext {
    /// The smallest key: its row count, and three lengths for each column.
    pub(crate) fn min_key_len(&self) -> u64 {
        1 + 3 * self.columns as u64
    }
}
