//! The messages of a write-ahead log, with only the fields that this crate reads.
//!
//! Field numbers: `kudu/consensus/log.proto`, `kudu/consensus/consensus.proto`, `kudu/consensus/opid.proto`,
//! `kudu/tablet/tablet.proto`, `kudu/tserver/tserver.proto`, `kudu/tserver/tserver_admin.proto`,
//! `kudu/common/row_operations.proto`. Rows are not copied out of their record.

use bytes::Bytes;
use coldframe_encoding::limits::message::{Shape, Shaped};
use prost::Message;

use super::proto::{ColumnSchema, RowOperations, Schema};

/// The header of a segment.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SegmentHeader {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) old_version: Option<u32>,
    #[prost(uint64, tag = "6")]
    pub(crate) sequence: u64,
    #[prost(message, optional, tag = "7")]
    pub(crate) schema: Option<Schema>,
    #[prost(uint32, tag = "8")]
    pub(crate) schema_version: u32,
    #[prost(int32, optional, tag = "9")]
    pub(crate) codec: Option<i32>,
    #[prost(int32, repeated, packed = "false", tag = "10")]
    pub(crate) incompatible: Vec<i32>,
}

/// The footer of a closed segment.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct SegmentFooter {
    #[prost(int64, optional, tag = "1")]
    pub(crate) entries: Option<i64>,
}

/// The message of one record.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EntryBatch {
    #[prost(message, repeated, tag = "1")]
    pub(crate) entries: Vec<LogEntry>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LogEntry {
    #[prost(message, optional, tag = "2")]
    pub(crate) replicate: Option<Replicate>,
    #[prost(message, optional, tag = "3")]
    pub(crate) commit: Option<Commit>,
}

/// The Raft id of an operation: term and index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Message)]
pub(crate) struct OpId {
    #[prost(int64, tag = "1")]
    pub(crate) term: i64,
    #[prost(int64, tag = "2")]
    pub(crate) index: i64,
}

/// The kinds of operations: `NO_OP`, `WRITE_OP`, `ALTER_SCHEMA_OP`, `CHANGE_CONFIG_OP`, `PARTICIPANT_OP`.
pub(crate) mod kind {
    pub(crate) const WRITE: i32 = 3;
    pub(crate) const ALTER_SCHEMA: i32 = 4;
    pub(crate) const PARTICIPANT: i32 = 6;
}

/// An operation as the leader proposed it to the Raft group.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Replicate {
    #[prost(message, optional, tag = "1")]
    pub(crate) id: Option<OpId>,
    /// The time of the operation, a hybrid time.
    #[prost(fixed64, tag = "2")]
    pub(crate) time: u64,
    #[prost(int32, tag = "4")]
    pub(crate) op_type: i32,
    #[prost(message, optional, tag = "5")]
    pub(crate) write: Option<Write>,
    #[prost(message, optional, tag = "6")]
    pub(crate) alter_schema: Option<AlterSchema>,
    #[prost(message, optional, tag = "9")]
    pub(crate) participant: Option<Participant>,
}

/// Rows to write.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Write {
    /// The columns that the client knew. These columns have names but no ids.
    #[prost(message, optional, tag = "2")]
    pub(crate) schema: Option<Schema>,
    #[prost(message, optional, tag = "3")]
    pub(crate) operations: Option<RowOperations>,
    #[prost(int64, optional, tag = "7")]
    pub(crate) transaction: Option<i64>,
    #[prost(message, optional, tag = "8")]
    pub(crate) auto_incrementing: Option<AutoIncrementing>,
}

/// The value of the counter before the first value that the server generates for an auto-incrementing column.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct AutoIncrementing {
    #[prost(int64, optional, tag = "1")]
    pub(crate) counter: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AlterSchema {
    #[prost(message, optional, tag = "2")]
    pub(crate) schema: Option<Schema>,
    #[prost(uint32, tag = "3")]
    pub(crate) schema_version: u32,
}

/// A step of a transaction over several tablets.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Participant {
    #[prost(message, optional, tag = "2")]
    pub(crate) op: Option<ParticipantOp>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ParticipantOp {
    /// The step: BEGIN_TXN 1, BEGIN_COMMIT 2, FINALIZE_COMMIT 3, ABORT_TXN 4.
    #[prost(int32, optional, tag = "1")]
    pub(crate) step: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) transaction: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) commit_time: Option<i64>,
}

impl ParticipantOp {
    pub(crate) const BEGIN: i32 = 1;
    pub(crate) const FINALIZE_COMMIT: i32 = 3;
    pub(crate) const ABORT: i32 = 4;
}

/// The commit message of an operation.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Commit {
    #[prost(int32, tag = "1")]
    pub(crate) op_type: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) id: Option<OpId>,
    #[prost(message, optional, tag = "3")]
    pub(crate) result: Option<Applied>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Applied {
    /// The results, one for each row of the operation.
    #[prost(message, repeated, tag = "1")]
    pub(crate) rows: Vec<RowResult>,
}

/// The outcome of one row.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RowResult {
    /// Whether the server found, at a restart, that the row had already been flushed or had failed.
    #[prost(bool, tag = "1")]
    pub(crate) skip: bool,
    /// The error, if the row was not written.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) failed: Option<Bytes>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) stores: Vec<Store>,
}

/// The store in memory into which a row was written: the MemRowSet (for new rows), or the DeltaMemStore (for
/// changes) of a rowset.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Store {
    #[prost(int64, optional, tag = "1")]
    pub(crate) memrowset: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) rowset: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) changes: Option<i64>,
    /// The transaction, if the store is a MemRowSet that belongs to a transaction.
    #[prost(int64, optional, tag = "4")]
    pub(crate) transaction: Option<i64>,
}

const SCHEMA: Shape = Shape::of::<Schema>(&[(1, Shape::of::<ColumnSchema>(&[]))]);

impl Shaped for SegmentHeader {
    const SHAPE: Shape = Shape::of::<Self>(&[(7, SCHEMA)]);
}

impl Shaped for EntryBatch {
    const SHAPE: Shape = Shape::of::<Self>(&[(
        1,
        Shape::of::<LogEntry>(&[
            (
                2,
                Shape::of::<Replicate>(&[
                    (5, Shape::of::<Write>(&[(2, SCHEMA)])),
                    (6, Shape::of::<AlterSchema>(&[(2, SCHEMA)])),
                ]),
            ),
            (
                3,
                Shape::of::<Commit>(&[(
                    3,
                    Shape::of::<Applied>(&[(1, Shape::of::<RowResult>(&[(3, Shape::of::<Store>(&[]))]))]),
                )]),
            ),
        ]),
    )]);
}
