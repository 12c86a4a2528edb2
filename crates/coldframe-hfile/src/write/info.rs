//! The file info: the entries that HBase's region servers and Hudi's readers need.
//!
//! | key | value |
//! |---|---|
//! | `hfile.LASTKEY`, `hfile.AVG_KEY_LEN`, `hfile.AVG_VALUE_LEN`, `hfile.CREATE_TIME_TS` | last key; i32, i32; milliseconds i64 |
//! | `hfile.KEY_OF_BIGGEST_CELL`, `hfile.LEN_OF_BIGGEST_CELL` | a key; i64 |
//! | `hfile.MAX_TAGS_LEN`, `hfile.TAGS_COMPRESSED` | i32, 00; only if cells have tags |
//! | `DATA_BLOCK_ENCODING` | name; not for NONE |
//! | `KEY_VALUE_VERSION`, `MAX_MEMSTORE_TS_KEY` | 1 i32, i64: cells have a sequence id, this is the largest |
//! | `TIMERANGE`, `EARLIEST_PUT_TS`, `DELETE_FAMILY_COUNT` | least and largest i64; i64; i64. Only in the view `cells`, like the entries below |
//! | `BLOOM_FILTER_TYPE`, `LAST_BLOOM_KEY` | ROW or ROWCOL; row or key |
//! | `BULKLOAD_TIMESTAMP`, `BULKLOAD_SOURCE_TASK` | milliseconds i64; text: the file may be loaded into a table |
//! | `MAJOR_COMPACTION_KEY`, `EXCLUDE_FROM_MINOR_COMPACTION` | ff, 00 |
//! | `minRecordKey`, `maxRecordKey` | first and last key. Only in the view `kv` |
//!
//! HBase: `HFileInfo`, `HStoreFile`, `HFileOutputFormat2`. Hudi: `HoodieAvroHFileWriter`.

use std::collections::BTreeMap;

use coldframe_core::{Error, Result};
use prost::Message;

use super::bloom::Bloom;
use super::key::Key;
use super::options::{BloomKind, Settings};
use crate::layout::cell::Cell;
use crate::layout::file_info::{
    AVG_KEY_LEN, AVG_VALUE_LEN, BLOOM_FILTER_TYPE, CREATE_TIME, DATA_BLOCK_ENCODING, HUDI_MIN_KEY,
    KEY_VALUE_VERSION, LAST_KEY, MAX_MEMSTORE_TS, MAX_TAGS_LEN, PROTOBUF_MAGIC, TAGS_COMPRESSED,
};
use crate::layout::kinds::{DELETE_COLUMN, DELETE_FAMILY, DELETE_FAMILY_VERSION, PUT};
use crate::layout::proto::{BytesBytesPair, FileInfoProto};
use crate::options::View;

/// Statistics collected cell by cell.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) cells: u64,
    key_bytes: u64,
    value_bytes: u64,
    first_row: Vec<u8>,
    largest_cell: usize,
    largest_key: Vec<u8>,
    largest_sequence: i64,
    longest_tags: usize,
    earliest_put: i64,
    time_range: (i64, i64),
    family_deletes: u64,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            cells: 0,
            key_bytes: 0,
            value_bytes: 0,
            first_row: Vec::new(),
            largest_cell: 0,
            largest_key: Vec::new(),
            largest_sequence: 0,
            longest_tags: 0,
            earliest_put: i64::MAX,
            time_range: (i64::MAX, -1),
            family_deletes: 0,
        }
    }

    pub(super) fn push(&mut self, cell: &Cell<'_>, key: &Key) {
        if self.cells == 0 {
            self.first_row = cell.row.to_vec();
        }
        self.cells += 1;
        self.key_bytes += key.bytes().len() as u64;
        self.value_bytes += cell.value.len() as u64;
        // The size of a cell as HBase serialises it: two lengths, key, value and tags, preceded by the total
        // length.
        let tags = if cell.tags.is_empty() { 0 } else { 2 + cell.tags.len() };
        let size = 12 + key.bytes().len() + cell.value.len() + tags;
        if size > self.largest_cell {
            self.largest_cell = size;
            self.largest_key.clear();
            self.largest_key.extend_from_slice(key.bytes());
        }
        self.largest_sequence = self.largest_sequence.max(cell.sequence_id);
        self.longest_tags = self.longest_tags.max(cell.tags.len());
        let (mut least, most) = (cell.timestamp, cell.timestamp);
        match cell.kind {
            PUT => self.earliest_put = self.earliest_put.min(cell.timestamp),
            // These markers delete all older versions, back to timestamp 0.
            DELETE_COLUMN | DELETE_FAMILY => least = least.min(0),
            _ => {}
        }
        self.time_range = (self.time_range.0.min(least), self.time_range.1.max(most));
        self.family_deletes += u64::from(deletes_family(cell.kind));
    }

    /// The content of the file info block.
    pub(super) fn to_block(
        &self,
        last: Option<&Key>,
        options: &Settings,
        with_tags: bool,
        bloom: Option<&Bloom>,
    ) -> Result<Vec<u8>> {
        let mut info: BTreeMap<&[u8], Vec<u8>> = BTreeMap::new();
        let average =
            |sum: u64| i32::try_from(sum / self.cells.max(1)).unwrap_or(i32::MAX).to_be_bytes().to_vec();
        if let Some(last) = last {
            info.insert(LAST_KEY, last.bytes().to_vec());
            info.insert(b"hfile.KEY_OF_BIGGEST_CELL", self.largest_key.clone());
            info.insert(b"hfile.LEN_OF_BIGGEST_CELL", (self.largest_cell as u64).to_be_bytes().to_vec());
        }
        info.insert(AVG_KEY_LEN, average(self.key_bytes));
        info.insert(AVG_VALUE_LEN, average(self.value_bytes));
        info.insert(CREATE_TIME, options.create_time.to_be_bytes().to_vec());
        info.insert(KEY_VALUE_VERSION, 1i32.to_be_bytes().to_vec());
        info.insert(MAX_MEMSTORE_TS, self.largest_sequence.to_be_bytes().to_vec());
        if let Some(encoding) = options.encoding {
            info.insert(DATA_BLOCK_ENCODING, encoding.name().into());
        }
        if with_tags {
            let longest = u16::try_from(self.longest_tags).unwrap_or(u16::MAX);
            info.insert(MAX_TAGS_LEN, u32::from(longest).to_be_bytes().to_vec());
            info.insert(TAGS_COMPRESSED, vec![0]);
        }
        match (options.view, last) {
            (Some(View::KeyValue), Some(last)) => {
                info.insert(HUDI_MIN_KEY, self.first_row.clone());
                info.insert(b"maxRecordKey", last.row().to_vec());
            }
            (Some(View::KeyValue), None) => {}
            _ => self.put_store_keys(options, bloom, &mut info),
        }
        info.extend(options.metadata.iter().map(|(k, v)| (k.as_slice(), v.clone())));
        let map_entry =
            info.into_iter().map(|(k, v)| BytesBytesPair { first: k.to_vec(), second: v }).collect();
        let mut out = PROTOBUF_MAGIC.to_vec();
        FileInfoProto { map_entry }
            .encode_length_delimited(&mut out)
            .map_err(|e| Error::invalid(format!("file info: {e}")))?;
        Ok(out)
    }

    /// Adds the entries that are only in files of a table.
    fn put_store_keys(&self, options: &Settings, bloom: Option<&Bloom>, info: &mut BTreeMap<&[u8], Vec<u8>>) {
        let (least, most) = self.time_range;
        info.insert(b"TIMERANGE", [least.to_be_bytes(), most.to_be_bytes()].concat());
        info.insert(b"EARLIEST_PUT_TS", self.earliest_put.to_be_bytes().to_vec());
        info.insert(b"DELETE_FAMILY_COUNT", self.family_deletes.to_be_bytes().to_vec());
        if let Some(bloom) = bloom.filter(|b| !b.is_empty()) {
            let kind: &[u8] = if options.bloom == BloomKind::RowColumn { b"ROWCOL" } else { b"ROW" };
            info.insert(BLOOM_FILTER_TYPE, kind.to_vec());
            info.insert(b"LAST_BLOOM_KEY", bloom.last().to_vec());
        }
        if options.bulk_load {
            info.insert(b"BULKLOAD_TIMESTAMP", options.create_time.to_be_bytes().to_vec());
            info.insert(b"BULKLOAD_SOURCE_TASK", b"coldframe".to_vec());
            info.insert(b"EXCLUDE_FROM_MINOR_COMPACTION", vec![0]);
            info.insert(b"MAJOR_COMPACTION_KEY", vec![0xff]);
        }
    }
}

/// Whether a cell of this type deletes a family, or all cells of a family with one timestamp.
pub(super) fn deletes_family(kind: u8) -> bool {
    matches!(kind, DELETE_FAMILY | DELETE_FAMILY_VERSION)
}
