//! The messages of a root directory, with the field numbers of `HBase.proto`, `FS.proto`, `Snapshot.proto` and
//! `StoreFileTracker.proto`.

use coldframe_encoding::limits::message::{Shape, Shaped};

/// A pair of byte strings.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BytesPair {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) first: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) second: Vec<u8>,
}

/// A setting: name and value.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TextPair {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) name: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}

/// A table's name.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct TableName {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(crate) namespace: Vec<u8>,
    #[prost(bytes = "vec", required, tag = "2")]
    pub(crate) qualifier: Vec<u8>,
}

/// A family's descriptor. The values of its attributes are text.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ColumnFamilySchema {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(crate) name: Vec<u8>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) attributes: Vec<BytesPair>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) configuration: Vec<TextPair>,
}

/// A table's descriptor.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TableSchema {
    #[prost(message, optional, tag = "1")]
    pub(crate) table_name: Option<TableName>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) attributes: Vec<BytesPair>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) column_families: Vec<ColumnFamilySchema>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) configuration: Vec<TextPair>,
}

/// A region.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RegionInfo {
    /// The region's creation time in milliseconds.
    #[prost(uint64, required, tag = "1")]
    pub(crate) region_id: u64,
    #[prost(message, required, tag = "2")]
    pub(crate) table_name: TableName,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(crate) start_key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(crate) end_key: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "5")]
    pub(crate) offline: Option<bool>,
    #[prost(bool, optional, tag = "6")]
    pub(crate) split: Option<bool>,
    #[prost(int32, optional, tag = "7")]
    pub(crate) replica_id: Option<i32>,
}

/// A reference to half of another region's file.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Reference {
    /// The row that divides the file, as the first possible key of that row.
    #[prost(bytes = "vec", required, tag = "1")]
    pub(crate) split_key: Vec<u8>,
    /// 0: this half has the rows from the split key on. 1: this half has the rows before the split key.
    #[prost(int32, optional, tag = "2")]
    pub(crate) range: Option<i32>,
}

/// The message in `.snapshotinfo`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SnapshotDescription {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(crate) name: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) table: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) creation_time: Option<i64>,
    #[prost(int32, optional, tag = "4")]
    pub(crate) kind: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(crate) version: Option<i32>,
}

/// A file of a snapshot.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ManifestFile {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(crate) name: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub(crate) reference: Option<Reference>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) size: Option<u64>,
}

/// The files of a family in a region of a snapshot.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FamilyFiles {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(crate) name: Vec<u8>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) files: Vec<ManifestFile>,
}

/// A region of a snapshot.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ManifestRegion {
    #[prost(message, required, tag = "2")]
    pub(crate) region: RegionInfo,
    #[prost(message, repeated, tag = "3")]
    pub(crate) families: Vec<FamilyFiles>,
}

/// The message in `data.manifest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SnapshotManifest {
    #[prost(message, required, tag = "1")]
    pub(crate) schema: TableSchema,
    #[prost(message, repeated, tag = "2")]
    pub(crate) regions: Vec<ManifestRegion>,
}

/// A file in a tracker's list.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListedFile {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(crate) name: Vec<u8>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) size: Option<u64>,
}

/// `TIMERANGE` in the file info of a store file.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TimeRange {
    #[prost(uint64, optional, tag = "1")]
    pub from: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub to: Option<u64>,
}

/// `.filelist`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FileList {
    #[prost(uint64, required, tag = "1")]
    pub(crate) timestamp: u64,
    #[prost(message, repeated, tag = "2")]
    pub(crate) files: Vec<ListedFile>,
    /// The version of the format: 1, or absent.
    #[prost(uint64, optional, tag = "3")]
    pub(crate) version: Option<u64>,
}

/// The names of the files that a compaction replaced.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Compacted {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) names: Vec<Vec<u8>>,
}

/// The header of a write-ahead log.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LogHeader {
    #[prost(bool, optional, tag = "1")]
    pub(crate) has_compression: Option<bool>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) encryption_key: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "3")]
    pub(crate) has_tag_compression: Option<bool>,
    #[prost(string, optional, tag = "4")]
    pub(crate) writer_class: Option<String>,
    #[prost(string, optional, tag = "5")]
    pub(crate) codec_class: Option<String>,
    #[prost(bool, optional, tag = "6")]
    pub(crate) has_value_compression: Option<bool>,
    /// The codec of values, by its ordinal in `Compression.Algorithm`.
    #[prost(uint32, optional, tag = "7")]
    pub(crate) value_compression: Option<u32>,
}

/// The key of an edit, before its cells.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LogKey {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) region: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) table: Vec<u8>,
    #[prost(uint64, tag = "3")]
    pub(crate) sequence_id: u64,
    #[prost(message, repeated, tag = "6")]
    pub(crate) scopes: Vec<LogScope>,
    #[prost(uint32, optional, tag = "7")]
    pub(crate) cells: Option<u32>,
}

/// The replication scope of a family.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LogScope {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) family: Vec<u8>,
}

const PAIR: Shape = Shape::of::<BytesPair>(&[]);
const FAMILY: Shape = Shape::of::<ColumnFamilySchema>(&[(2, PAIR), (3, PAIR)]);
const SCHEMA: Shape = Shape::of::<TableSchema>(&[(2, PAIR), (3, FAMILY), (4, PAIR)]);
const FILE: Shape = Shape::of::<ManifestFile>(&[]);
const FILES: Shape = Shape::of::<FamilyFiles>(&[(2, FILE)]);
const REGION: Shape = Shape::of::<ManifestRegion>(&[(3, FILES)]);

macro_rules! shaped {
    ($($message:ty => $shape:expr;)*) => {
        $(impl Shaped for $message {
            const SHAPE: Shape = $shape;
        })*
    };
}

shaped! {
    TableSchema => SCHEMA;
    RegionInfo => Shape::of::<Self>(&[]);
    LogHeader => Shape::of::<Self>(&[]);
    LogKey => Shape::of::<Self>(&[(6, Shape::of::<LogScope>(&[]))]);
    Reference => Shape::of::<Self>(&[]);
    SnapshotDescription => Shape::of::<Self>(&[]);
    SnapshotManifest => Shape::of::<Self>(&[(1, SCHEMA), (2, REGION)]);
    FileList => Shape::of::<Self>(&[(2, Shape::of::<ListedFile>(&[]))]);
    Compacted => Shape::of::<Self>(&[]);
}
