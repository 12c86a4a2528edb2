//! The messages of a CFile (`cfile.proto` of Kudu), written by hand for `prost`.
//!
//! ```text
//! CFileHeaderPB       | 1 major_version | 2 minor_version | 3 metadata pair ... |      empty in every file since 1.3
//! CFileFooterPB       | 1 data_type | 2 encoding | 3 num_values | 4 posidx_info | 5 validx_info | 6 compression
//!                     | 7 metadata pair ... | 8 is_type_nullable | 9 dict_block_ptr | 10 incompatible_features
//!                     | 11 compatible_features | 12 is_type_array |
//! IndexBlockTrailerPB | 1 num_entries | 2 type |
//! BloomBlockHeaderPB  | 1 num_hash_functions |
//! ```
//! Fields that are required in `cfile.proto` are optional here, so that an error can name a missing field.

use coldframe_encoding::limits::message::{Shape, Shaped};

/// A key-value pair that the writer added.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetadataPair {
    /// The key: `min_key`, `max_key`, `deltafilestats`.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The value; its meaning depends on the key.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// The message after the first magic.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CFileHeader {
    /// The major version; only in files of Kudu before 1.3.
    #[prost(int32, optional, tag = "1")]
    pub major_version: Option<i32>,
    /// The minor version; only in files of Kudu before 1.3.
    #[prost(int32, optional, tag = "2")]
    pub minor_version: Option<i32>,
    /// Key-value pairs.
    #[prost(message, repeated, tag = "3")]
    pub metadata: Vec<MetadataPair>,
}

impl Shaped for CFileHeader {
    const SHAPE: Shape = Shape::of::<Self>(&[(3, Shape::of::<MetadataPair>(&[]))]);
}

/// The location of a block.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct BlockPointer {
    /// The offset of the block, from the start of the file.
    #[prost(int64, optional, tag = "1")]
    pub offset: Option<i64>,
    /// The length of the block, including its checksum.
    #[prost(int32, optional, tag = "2")]
    pub size: Option<i32>,
}

/// An index.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct BTreeInfo {
    /// The location of the root block.
    #[prost(message, optional, tag = "1")]
    pub root_block: Option<BlockPointer>,
}

/// The message before the last magic.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CFileFooter {
    /// The type of the values: a number of `DataType`.
    #[prost(int32, optional, tag = "1")]
    pub data_type: Option<i32>,
    /// The encoding of the values: a number of `EncodingType`.
    #[prost(int32, optional, tag = "2")]
    pub encoding: Option<i32>,
    /// The number of values, including nulls.
    #[prost(int64, optional, tag = "3")]
    pub num_values: Option<i64>,
    /// The positional index.
    #[prost(message, optional, tag = "4")]
    pub posidx_info: Option<BTreeInfo>,
    /// The value index.
    #[prost(message, optional, tag = "5")]
    pub validx_info: Option<BTreeInfo>,
    /// The codec of the blocks: a number of `CompressionType`.
    #[prost(int32, optional, tag = "6")]
    pub compression: Option<i32>,
    /// Key-value pairs.
    #[prost(message, repeated, tag = "7")]
    pub metadata: Vec<MetadataPair>,
    /// Whether blocks begin with a bitmap of the rows that are not null.
    #[prost(bool, optional, tag = "8")]
    pub is_type_nullable: Option<bool>,
    /// The location of the dictionary block.
    #[prost(message, optional, tag = "9")]
    pub dict_block_ptr: Option<BlockPointer>,
    /// Features that a reader must know; each has one bit.
    #[prost(uint32, optional, tag = "10")]
    pub incompatible_features: Option<u32>,
    /// Features that a reader may ignore.
    #[prost(uint32, optional, tag = "11")]
    pub compatible_features: Option<u32>,
    /// Whether values are arrays.
    #[prost(bool, optional, tag = "12")]
    pub is_type_array: Option<bool>,
}

impl Shaped for CFileFooter {
    const SHAPE: Shape = Shape::of::<Self>(&[(7, Shape::of::<MetadataPair>(&[]))]);
}

/// The message at the end of an index block.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct IndexBlockTrailer {
    /// The number of entries.
    #[prost(int32, optional, tag = "1")]
    pub num_entries: Option<i32>,
    /// 0 for a leaf, 1 for a block that points to index blocks.
    #[prost(int32, optional, tag = "2")]
    pub block_type: Option<i32>,
}

/// The message at the start of a block of a bloom file.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct BloomBlockHeader {
    /// The number of bits that a key sets.
    #[prost(int32, optional, tag = "1")]
    pub num_hash_functions: Option<i32>,
}

/// The statistics of a delta file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeltaStats {
    /// The number of deletions.
    #[prost(int64, optional, tag = "1")]
    pub delete_count: Option<i64>,
    /// The smallest hybrid time.
    #[prost(fixed64, optional, tag = "3")]
    pub min_timestamp: Option<u64>,
    /// The largest hybrid time.
    #[prost(fixed64, optional, tag = "4")]
    pub max_timestamp: Option<u64>,
    /// The number of changes for each changed column.
    #[prost(message, repeated, tag = "5")]
    pub columns: Vec<ColumnUpdates>,
    /// The number of reinsertions of deleted rows.
    #[prost(int64, optional, tag = "6")]
    pub reinsert_count: Option<i64>,
}

/// How often one column was changed.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ColumnUpdates {
    /// The id of the column.
    #[prost(int32, optional, tag = "1")]
    pub col_id: Option<i32>,
    /// The number of changes.
    #[prost(int64, optional, tag = "2")]
    pub update_count: Option<i64>,
}
