//! The protobuf messages of an HFile, with the field numbers of HBase's `HFile.proto` and `Encryption.proto`.

use coldframe_encoding::limits::message::{Shape, Shaped};

/// A key and its value.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BytesBytesPair {
    /// The key.
    #[prost(bytes = "vec", required, tag = "1")]
    pub first: Vec<u8>,
    /// The value.
    #[prost(bytes = "vec", required, tag = "2")]
    pub second: Vec<u8>,
}

/// The file info, in files with a protobuf trailer.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FileInfoProto {
    /// The entries, sorted by key, as writers store them.
    #[prost(message, repeated, tag = "1")]
    pub map_entry: Vec<BytesBytesPair>,
}

impl Shaped for FileInfoProto {
    const SHAPE: Shape = Shape::of::<Self>(&[(1, Shape::of::<BytesBytesPair>(&[]))]);
}

/// The trailer from version 2, minor 2 on.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FileTrailerProto {
    /// The offset of the file info block.
    #[prost(uint64, optional, tag = "1")]
    pub file_info_offset: Option<u64>,
    /// The offset of the blocks that are read on opening.
    #[prost(uint64, optional, tag = "2")]
    pub load_on_open_data_offset: Option<u64>,
    /// The uncompressed size of the data index; Hudi's own writer stores a different sum.
    #[prost(uint64, optional, tag = "3")]
    pub uncompressed_data_index_size: Option<u64>,
    /// The uncompressed size of all blocks; Hudi's own writer omits it.
    #[prost(uint64, optional, tag = "4")]
    pub total_uncompressed_bytes: Option<u64>,
    /// Number of entries of the root data index.
    #[prost(uint32, optional, tag = "5")]
    pub data_index_count: Option<u32>,
    /// Number of entries of the meta index.
    #[prost(uint32, optional, tag = "6")]
    pub meta_index_count: Option<u32>,
    /// Number of cells.
    #[prost(uint64, optional, tag = "7")]
    pub entry_count: Option<u64>,
    /// Number of levels of the data index.
    #[prost(uint32, optional, tag = "8")]
    pub num_data_index_levels: Option<u32>,
    /// The offset of the first data block; all ones in an empty file.
    #[prost(uint64, optional, tag = "9")]
    pub first_data_block_offset: Option<u64>,
    /// The offset of the last data block; all ones in an empty file.
    #[prost(uint64, optional, tag = "10")]
    pub last_data_block_offset: Option<u64>,
    /// The Java class that orders the keys.
    #[prost(string, optional, tag = "11")]
    pub comparator_class_name: Option<String>,
    /// The ordinal of the codec.
    #[prost(uint32, optional, tag = "12")]
    pub compression_codec: Option<u32>,
    /// The wrapped data key: a length-delimited [`WrappedKey`].
    #[prost(bytes = "vec", optional, tag = "13")]
    pub encryption_key: Option<Vec<u8>>,
}

/// A data key, encrypted with a master key.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WrappedKey {
    /// The cipher that uses the data key: `AES`.
    #[prost(string, required, tag = "1")]
    pub algorithm: String,
    /// The length of the data key.
    #[prost(uint32, required, tag = "2")]
    pub length: u32,
    /// The data key, encrypted.
    #[prost(bytes = "vec", required, tag = "3")]
    pub data: Vec<u8>,
    /// The initialisation vector of that encryption.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub iv: Option<Vec<u8>>,
    /// A digest of the data key.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub hash: Option<Vec<u8>>,
    /// The name of the digest.
    #[prost(string, optional, tag = "6")]
    pub hash_algorithm: Option<String>,
}
