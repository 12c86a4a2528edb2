//! The messages of a Kudu file system, cut down to the fields that are read.
//!
//! Field numbers: `kudu/fs/fs.proto`, `kudu/common/common.proto`, `kudu/tablet/metadata.proto`, `kudu/tablet/tablet.proto`,
//! `kudu/consensus/metadata.proto`. What Kudu marks as required is an `Option` here wherever a missing value must not
//! pass for zero.

use prost::Message;

/// The file `instance` of a root: who wrote it, and the keys of an encrypted file system.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Instance {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) uuid: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(super) format_stamp: String,
    #[prost(string, optional, tag = "3")]
    pub(super) server_key: Option<String>,
    #[prost(message, repeated, tag = "6")]
    pub(super) tenants: Vec<Tenant>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Tenant {
    #[prost(string, optional, tag = "3")]
    pub(super) key: Option<String>,
}

/// The file `block_manager_instance` of a data directory.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DirInstance {
    #[prost(message, optional, tag = "1")]
    pub(super) dir_set: Option<DirSet>,
    #[prost(string, tag = "2")]
    pub(super) dir_type: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DirSet {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) uuid: Vec<u8>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(super) all_uuids: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct BlockId {
    #[prost(fixed64, optional, tag = "1")]
    pub(super) id: Option<u64>,
}

/// A record of a log block container's metadata.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BlockRecord {
    #[prost(message, optional, tag = "1")]
    pub(super) block_id: Option<BlockId>,
    #[prost(int32, tag = "2")]
    pub(super) op_type: i32,
    #[prost(int64, optional, tag = "4")]
    pub(super) offset: Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub(super) length: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeAttributes {
    #[prost(int32, optional, tag = "1")]
    pub(super) precision: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(super) scale: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) length: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ColumnSchema {
    #[prost(uint32, optional, tag = "1")]
    pub(super) id: Option<u32>,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(int32, tag = "3")]
    pub(super) data_type: i32,
    #[prost(bool, tag = "4")]
    pub(super) is_key: bool,
    #[prost(bool, tag = "5")]
    pub(super) is_nullable: bool,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub(super) read_default: Option<Vec<u8>>,
    #[prost(int32, tag = "8")]
    pub(super) encoding: i32,
    #[prost(int32, tag = "9")]
    pub(super) compression: i32,
    #[prost(message, optional, tag = "11")]
    pub(super) attributes: Option<TypeAttributes>,
    #[prost(string, optional, tag = "12")]
    pub(super) comment: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Schema {
    #[prost(message, repeated, tag = "1")]
    pub(super) columns: Vec<ColumnSchema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ColumnIdentifier {
    #[prost(int32, optional, tag = "1")]
    pub(super) id: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeSchema {
    #[prost(message, repeated, tag = "1")]
    pub(super) columns: Vec<ColumnIdentifier>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HashSchema {
    #[prost(message, repeated, tag = "1")]
    pub(super) columns: Vec<ColumnIdentifier>,
    #[prost(int32, tag = "2")]
    pub(super) buckets: i32,
    #[prost(uint32, optional, tag = "3")]
    pub(super) seed: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PartitionSchema {
    #[prost(message, repeated, tag = "1")]
    pub(super) hash: Vec<HashSchema>,
    #[prost(message, optional, tag = "2")]
    pub(super) range: Option<RangeSchema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Partition {
    #[prost(int32, repeated, tag = "1")]
    pub(super) hash_buckets: Vec<i32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) start: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(super) end: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ColumnData {
    #[prost(message, optional, tag = "2")]
    pub(super) block: Option<BlockId>,
    #[prost(int32, optional, tag = "4")]
    pub(super) column_id: Option<i32>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct DeltaData {
    #[prost(message, optional, tag = "2")]
    pub(super) block: Option<BlockId>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RowSetData {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) last_durable_dms_id: i64,
    #[prost(message, repeated, tag = "3")]
    pub(super) columns: Vec<ColumnData>,
    #[prost(message, repeated, tag = "4")]
    pub(super) redo: Vec<DeltaData>,
    #[prost(message, repeated, tag = "5")]
    pub(super) undo: Vec<DeltaData>,
    #[prost(message, optional, tag = "6")]
    pub(super) bloom: Option<BlockId>,
    #[prost(message, optional, tag = "7")]
    pub(super) adhoc_index: Option<BlockId>,
    #[prost(bytes = "vec", optional, tag = "8")]
    pub(super) min_key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "9")]
    pub(super) max_key: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "10")]
    pub(super) live_rows: Option<i64>,
}

/// The super block of a tablet: the one message of a file in `tablet-meta`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SuperBlock {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) table_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) tablet_id: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) last_durable_mrs_id: i64,
    #[prost(message, repeated, tag = "6")]
    pub(super) rowsets: Vec<RowSetData>,
    #[prost(string, tag = "7")]
    pub(super) table_name: String,
    #[prost(message, optional, tag = "8")]
    pub(super) schema: Option<Schema>,
    #[prost(uint32, tag = "9")]
    pub(super) schema_version: u32,
    #[prost(int32, optional, tag = "10")]
    pub(super) state: Option<i32>,
    #[prost(message, optional, tag = "13")]
    pub(super) partition: Option<Partition>,
    #[prost(message, optional, tag = "14")]
    pub(super) partition_schema: Option<PartitionSchema>,
    #[prost(bool, tag = "16")]
    pub(super) counts_live_rows: bool,
    #[prost(int32, optional, tag = "19")]
    pub(super) table_type: Option<i32>,
}

/// The one message of a file in `consensus-meta`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Consensus {
    #[prost(message, optional, tag = "1")]
    pub(super) committed: Option<RaftConfig>,
    #[prost(int64, tag = "2")]
    pub(super) term: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RaftConfig {
    #[prost(int64, optional, tag = "1")]
    pub(super) opid_index: Option<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) peers: Vec<RaftPeer>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RaftPeer {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(super) uuid: Option<Vec<u8>>,
}

/// What a delta file's footer says of it under `deltafilestats`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct DeltaStats {
    #[prost(int64, tag = "1")]
    pub(super) deletes: i64,
    #[prost(int64, tag = "6")]
    pub(super) reinserts: i64,
    #[prost(fixed64, optional, tag = "3")]
    pub(super) min_timestamp: Option<u64>,
    #[prost(fixed64, optional, tag = "4")]
    pub(super) max_timestamp: Option<u64>,
}
