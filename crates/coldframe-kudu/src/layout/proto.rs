//! The messages of a Kudu file system, with only the fields that this crate reads.
//!
//! Field numbers: `kudu/fs/fs.proto`, `kudu/common/common.proto`, `kudu/tablet/metadata.proto`,
//! `kudu/tablet/tablet.proto`, `kudu/consensus/metadata.proto`. A field that Kudu marks as required is an `Option` here
//! if a missing value must not be taken for zero.

use std::ops::Range;

use bytes::Bytes;
use coldframe_core::{Error, Result};
use prost::Message;

/// The message in the file `instance` of a root: who wrote it, and the keys of an encrypted file system.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Instance {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) uuid: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(crate) format_stamp: String,
    #[prost(string, optional, tag = "3")]
    pub(crate) server_key: Option<String>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) tenants: Vec<Tenant>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tenant {
    #[prost(string, optional, tag = "3")]
    pub(crate) key: Option<String>,
}

/// The message in the file `block_manager_instance` of a data directory.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DirInstance {
    #[prost(message, optional, tag = "1")]
    pub(crate) dir_set: Option<DirSet>,
    #[prost(string, tag = "2")]
    pub(crate) dir_type: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DirSet {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) uuid: Vec<u8>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(crate) all_uuids: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct BlockId {
    #[prost(fixed64, optional, tag = "1")]
    pub(crate) id: Option<u64>,
}

/// A record in the metadata of a log block container.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct BlockRecord {
    #[prost(message, optional, tag = "1")]
    pub(crate) block_id: Option<BlockId>,
    #[prost(int32, tag = "2")]
    pub(crate) op_type: i32,
    #[prost(int64, optional, tag = "4")]
    pub(crate) offset: Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub(crate) length: Option<i64>,
}

impl BlockRecord {
    pub(crate) const CREATE: i32 = 1;
    pub(crate) const DELETE: i32 = 2;

    /// The range of the container's bytes that the record describes.
    pub(crate) fn bytes(&self) -> Result<Range<u64>> {
        let unsigned = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
        let range = unsigned(self.offset).zip(unsigned(self.length)).and_then(|(offset, length)| {
            let end = offset.checked_add(length)?;
            Some(offset..end)
        });
        range.ok_or_else(|| {
            let (offset, length) = (self.offset, self.length);
            Error::corrupt(format!("expected a block's offset and length, found {offset:?} and {length:?}"))
        })
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TypeAttributes {
    #[prost(int32, optional, tag = "1")]
    pub(crate) precision: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) scale: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) length: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ColumnSchema {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) id: Option<u32>,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(int32, tag = "3")]
    pub(crate) data_type: i32,
    #[prost(bool, tag = "4")]
    pub(crate) is_key: bool,
    #[prost(bool, tag = "5")]
    pub(crate) is_nullable: bool,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub(crate) read_default: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "7")]
    pub(crate) write_default: Option<Vec<u8>>,
    #[prost(int32, tag = "8")]
    pub(crate) encoding: i32,
    #[prost(int32, tag = "9")]
    pub(crate) compression: i32,
    #[prost(message, optional, tag = "11")]
    pub(crate) attributes: Option<TypeAttributes>,
    #[prost(string, optional, tag = "12")]
    pub(crate) comment: Option<String>,
    #[prost(bool, tag = "13")]
    pub(crate) immutable: bool,
    #[prost(bool, tag = "14")]
    pub(crate) auto_incrementing: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Schema {
    #[prost(message, repeated, tag = "1")]
    pub(crate) columns: Vec<ColumnSchema>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ColumnIdentifier {
    #[prost(int32, optional, tag = "1")]
    pub(crate) id: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeSchema {
    #[prost(message, repeated, tag = "1")]
    pub(crate) columns: Vec<ColumnIdentifier>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HashSchema {
    #[prost(message, repeated, tag = "1")]
    pub(crate) columns: Vec<ColumnIdentifier>,
    #[prost(int32, tag = "2")]
    pub(crate) buckets: i32,
    #[prost(uint32, optional, tag = "3")]
    pub(crate) seed: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartitionSchema {
    #[prost(message, repeated, tag = "1")]
    pub(crate) hash: Vec<HashSchema>,
    #[prost(message, optional, tag = "2")]
    pub(crate) range: Option<RangeSchema>,
    /// Ranges with hash schemas of their own.
    #[prost(message, repeated, tag = "5")]
    pub(crate) custom: Vec<RangeWithHashes>,
}

/// Rows in the form in which clients send them.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RowOperations {
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) rows: Bytes,
    /// Values of variable length.
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) indirect: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeWithHashes {
    #[prost(message, optional, tag = "1")]
    pub(crate) bounds: Option<RowOperations>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) hash: Vec<HashSchema>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Partition {
    #[prost(int32, repeated, tag = "1")]
    pub(crate) hash_buckets: Vec<i32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) start: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(crate) end: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ColumnData {
    #[prost(message, optional, tag = "2")]
    pub(crate) block: Option<BlockId>,
    #[prost(int32, optional, tag = "4")]
    pub(crate) column_id: Option<i32>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct DeltaData {
    #[prost(message, optional, tag = "2")]
    pub(crate) block: Option<BlockId>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RowSetData {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) last_durable_dms_id: i64,
    #[prost(message, repeated, tag = "3")]
    pub(crate) columns: Vec<ColumnData>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) redo: Vec<DeltaData>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) undo: Vec<DeltaData>,
    #[prost(message, optional, tag = "6")]
    pub(crate) bloom: Option<BlockId>,
    #[prost(message, optional, tag = "7")]
    pub(crate) adhoc_index: Option<BlockId>,
    #[prost(bytes = "vec", optional, tag = "8")]
    pub(crate) min_key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "9")]
    pub(crate) max_key: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "10")]
    pub(crate) live_rows: Option<i64>,
}

/// The super block of a tablet: the only message of a file in `tablet-meta`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SuperBlock {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) table_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) tablet_id: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) last_durable_mrs_id: i64,
    #[prost(message, repeated, tag = "6")]
    pub(crate) rowsets: Vec<RowSetData>,
    #[prost(string, tag = "7")]
    pub(crate) table_name: String,
    #[prost(message, optional, tag = "8")]
    pub(crate) schema: Option<Schema>,
    #[prost(uint32, tag = "9")]
    pub(crate) schema_version: u32,
    #[prost(int32, optional, tag = "10")]
    pub(crate) state: Option<i32>,
    #[prost(message, optional, tag = "13")]
    pub(crate) partition: Option<Partition>,
    #[prost(message, optional, tag = "14")]
    pub(crate) partition_schema: Option<PartitionSchema>,
    #[prost(bool, tag = "16")]
    pub(crate) counts_live_rows: bool,
    #[prost(int32, optional, tag = "19")]
    pub(crate) table_type: Option<i32>,
    #[prost(message, repeated, tag = "20")]
    pub(crate) transactions: Vec<TransactionEntry>,
}

/// A map entry: a transaction that the tablet took part in.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct TransactionEntry {
    #[prost(int64, tag = "1")]
    pub(crate) id: i64,
    #[prost(message, optional, tag = "2")]
    pub(crate) state: Option<TransactionState>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct TransactionState {
    #[prost(bool, tag = "1")]
    pub(crate) aborted: bool,
    #[prost(bool, tag = "4")]
    pub(crate) flushed: bool,
}

/// The only message of a file in `consensus-meta`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Consensus {
    #[prost(message, optional, tag = "1")]
    pub(crate) committed: Option<RaftConfig>,
    #[prost(int64, tag = "2")]
    pub(crate) term: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RaftConfig {
    #[prost(int64, optional, tag = "1")]
    pub(crate) opid_index: Option<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) peers: Vec<RaftPeer>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RaftPeer {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) uuid: Option<Vec<u8>>,
    /// The kind of member: NON_VOTER 0, VOTER 1.
    #[prost(int32, optional, tag = "2")]
    pub(crate) member_type: Option<i32>,
}

/// The statistics in a delta file's footer, under the key `deltafilestats`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct DeltaStats {
    #[prost(int64, tag = "1")]
    pub(crate) deletes: i64,
    #[prost(int64, tag = "6")]
    pub(crate) reinserts: i64,
    #[prost(fixed64, optional, tag = "3")]
    pub(crate) min_timestamp: Option<u64>,
    #[prost(fixed64, optional, tag = "4")]
    pub(crate) max_timestamp: Option<u64>,
}
