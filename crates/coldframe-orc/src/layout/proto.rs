//! Declares the messages of `orc_proto.proto`, by hand, so that a build needs no protobuf compiler.
//!
//! ORC specification v1, "File Tail", "Stripes", "Indexes", "Column Encryption"; fields that the page lacks
//! follow the Java and C++ writers: `PostScript` 6 and 7, `Footer` 11 (calendar) and 12 (software version),
//! `Type` 7 to 9, `ColumnEncoding` 3, `ColumnStatistics` 11 to 13, `TimestampStatistics` 3 to 6. Enumerations
//! are plain numbers, so that messages with unknown values stay readable. Optional numbers have a getter of
//! the same name that returns 0 for a missing number.

mod decode;

use prost::Message;
use prost::bytes::Bytes;

pub(crate) use decode::{decode, decode_small, statistics};

/// The bytes before the last byte of a file, never compressed.
#[derive(Clone, PartialEq, Message)]
pub struct PostScript {
    /// Stored bytes of the footer.
    #[prost(uint64, optional, tag = "1")]
    pub footer_length: Option<u64>,
    /// `CompressionKind`: none, zlib, snappy, lzo, lz4, zstd, brotli.
    #[prost(uint32, optional, tag = "2")]
    pub compression: Option<u32>,
    /// Maximum bytes of a chunk after decompression.
    #[prost(uint64, optional, tag = "3")]
    pub compression_block_size: Option<u64>,
    /// Major and minor version of the format.
    #[prost(uint32, repeated, tag = "4")]
    pub version: Vec<u32>,
    /// Stored bytes of the metadata.
    #[prost(uint64, optional, tag = "5")]
    pub metadata_length: Option<u64>,
    /// The writer's version: it shows which of its bugs are fixed.
    #[prost(uint32, optional, tag = "6")]
    pub writer_version: Option<u32>,
    /// Bytes of the encrypted stripe statistics before the metadata.
    #[prost(uint64, optional, tag = "7")]
    pub stripe_statistics_length: Option<u64>,
    /// `ORC`.
    #[prost(string, optional, tag = "8000")]
    pub magic: Option<String>,
}

/// Types, stripes, statistics and user metadata of the file.
#[derive(Clone, PartialEq, Message)]
pub struct Footer {
    /// Number of the magic bytes at the start.
    #[prost(uint64, optional, tag = "1")]
    pub header_length: Option<u64>,
    /// Bytes of header and stripes.
    #[prost(uint64, optional, tag = "2")]
    pub content_length: Option<u64>,
    /// The stripes.
    #[prost(message, repeated, tag = "3")]
    pub stripes: Vec<StripeInformation>,
    /// The tree of types in pre-order.
    #[prost(message, repeated, tag = "4")]
    pub types: Vec<Type>,
    /// User metadata.
    #[prost(message, repeated, tag = "5")]
    pub metadata: Vec<UserMetadataItem>,
    /// Rows of the file.
    #[prost(uint64, optional, tag = "6")]
    pub number_of_rows: Option<u64>,
    /// [`ColumnStatistics`] of each column, encoded: a file of many columns is opened without them.
    #[prost(bytes = "bytes", repeated, tag = "7")]
    pub statistics: Vec<Bytes>,
    /// Rows of a row group; 0 without indexes.
    #[prost(uint32, optional, tag = "8")]
    pub row_index_stride: Option<u32>,
    /// 0 Java, 1 C++, 2 Presto, 3 Go, 4 Trino, 5 CUDF.
    #[prost(uint32, optional, tag = "9")]
    pub writer: Option<u32>,
    /// Column encryption.
    #[prost(message, optional, tag = "10")]
    pub encryption: Option<Encryption>,
    /// 0 unknown, 1 hybrid Julian/Gregorian, 2 proleptic Gregorian.
    #[prost(uint32, optional, tag = "11")]
    pub calendar: Option<u32>,
    /// Version of the writer's software.
    #[prost(string, optional, tag = "12")]
    pub software_version: Option<String>,
}

/// The position of a stripe.
#[derive(Clone, PartialEq, Message)]
pub struct StripeInformation {
    /// The offset of the first byte.
    #[prost(uint64, optional, tag = "1")]
    pub offset: Option<u64>,
    /// Number of bytes of the index streams.
    #[prost(uint64, optional, tag = "2")]
    pub index_length: Option<u64>,
    /// Number of bytes of the data streams.
    #[prost(uint64, optional, tag = "3")]
    pub data_length: Option<u64>,
    /// Number of bytes of the footer.
    #[prost(uint64, optional, tag = "4")]
    pub footer_length: Option<u64>,
    /// Number of rows.
    #[prost(uint64, optional, tag = "5")]
    pub number_of_rows: Option<u64>,
    /// The stripe's number for encryption, where it was merged from another file.
    #[prost(uint64, optional, tag = "6")]
    pub encrypt_stripe_id: Option<u64>,
    /// A key for each variant; if absent, the keys of the previous stripe apply.
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub encrypted_local_keys: Vec<Vec<u8>>,
}

/// One type of the tree.
#[derive(Clone, PartialEq, Message)]
pub struct Type {
    /// See [`crate::layout::types::Kind`].
    #[prost(uint32, optional, tag = "1")]
    pub kind: Option<u32>,
    /// Numbers of the children.
    #[prost(uint32, repeated, tag = "2")]
    pub subtypes: Vec<u32>,
    /// Names of a struct's children.
    #[prost(string, repeated, tag = "3")]
    pub field_names: Vec<String>,
    /// The length of char and varchar, in characters.
    #[prost(uint32, optional, tag = "4")]
    pub maximum_length: Option<u32>,
    /// The precision of decimals.
    #[prost(uint32, optional, tag = "5")]
    pub precision: Option<u32>,
    /// The scale of decimals.
    #[prost(uint32, optional, tag = "6")]
    pub scale: Option<u32>,
    /// The user's attributes.
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<StringPair>,
    /// Coordinate system of geometry and geography.
    #[prost(string, optional, tag = "8")]
    pub crs: Option<String>,
    /// The algorithm that interpolates the edges of a geography.
    #[prost(uint32, optional, tag = "9")]
    pub algorithm: Option<u32>,
}

/// A key and a value.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct StringPair {
    /// The key.
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    /// The value.
    #[prost(string, optional, tag = "2")]
    pub value: Option<String>,
}

/// An item of user metadata.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct UserMetadataItem {
    /// The key.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// The value.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub value: Option<Vec<u8>>,
}

/// Statistics of stripes.
#[derive(Clone, PartialEq, Message)]
pub struct Metadata {
    /// One for each stripe.
    #[prost(message, repeated, tag = "1")]
    pub stripe_stats: Vec<StripeStatistics>,
}

/// Statistics of a stripe.
#[derive(Clone, PartialEq, Message)]
pub struct StripeStatistics {
    /// [`ColumnStatistics`] of each column, encoded.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub col_stats: Vec<Bytes>,
}

/// Statistics of an encrypted column, one entry for each stripe.
#[derive(Clone, PartialEq, Message)]
pub struct ColumnarStripeStatistics {
    /// [`ColumnStatistics`] of each stripe, encoded.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub col_stats: Vec<Bytes>,
}

/// Statistics of the file for the columns of an encryption variant.
#[derive(Clone, PartialEq, Message)]
pub struct FileStatistics {
    /// [`ColumnStatistics`] of each column from the variant's root on, encoded.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub column: Vec<Bytes>,
}

/// Statistics of a column in a file, stripe or row group.
#[derive(Clone, PartialEq, Message)]
pub struct ColumnStatistics {
    /// Values that are not null.
    #[prost(uint64, optional, tag = "1")]
    pub number_of_values: Option<u64>,
    /// Of integers.
    #[prost(message, optional, tag = "2")]
    pub int_statistics: Option<IntegerStatistics>,
    /// Statistics of float and double columns.
    #[prost(message, optional, tag = "3")]
    pub double_statistics: Option<DoubleStatistics>,
    /// Of strings.
    #[prost(message, optional, tag = "4")]
    pub string_statistics: Option<StringStatistics>,
    /// Of booleans.
    #[prost(message, optional, tag = "5")]
    pub bucket_statistics: Option<BucketStatistics>,
    /// Of decimals.
    #[prost(message, optional, tag = "6")]
    pub decimal_statistics: Option<DecimalStatistics>,
    /// Of dates.
    #[prost(message, optional, tag = "7")]
    pub date_statistics: Option<DateStatistics>,
    /// Of binary.
    #[prost(message, optional, tag = "8")]
    pub binary_statistics: Option<BinaryStatistics>,
    /// Of timestamps.
    #[prost(message, optional, tag = "9")]
    pub timestamp_statistics: Option<TimestampStatistics>,
    /// Whether there are nulls.
    #[prost(bool, optional, tag = "10")]
    pub has_null: Option<bool>,
    /// Bytes of the column as stored.
    #[prost(uint64, optional, tag = "11")]
    pub bytes_on_disk: Option<u64>,
    /// Of lists and maps.
    #[prost(message, optional, tag = "12")]
    pub collection_statistics: Option<CollectionStatistics>,
    /// Statistics of geometry and geography.
    #[prost(message, optional, tag = "13")]
    pub geospatial_statistics: Option<GeospatialStatistics>,
}

/// Of integers.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct IntegerStatistics {
    /// Least value.
    #[prost(sint64, optional, tag = "1")]
    pub minimum: Option<i64>,
    /// Greatest value.
    #[prost(sint64, optional, tag = "2")]
    pub maximum: Option<i64>,
    /// Sum, absent where it overflows.
    #[prost(sint64, optional, tag = "3")]
    pub sum: Option<i64>,
}

/// Of float and double.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct DoubleStatistics {
    /// Least value.
    #[prost(double, optional, tag = "1")]
    pub minimum: Option<f64>,
    /// Greatest value.
    #[prost(double, optional, tag = "2")]
    pub maximum: Option<f64>,
    /// Sum.
    #[prost(double, optional, tag = "3")]
    pub sum: Option<f64>,
}

/// Of strings. Some writers truncate them, or use other character sets, so they stay bytes until used.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct StringStatistics {
    /// Least value.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub minimum: Option<Vec<u8>>,
    /// Greatest value.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub maximum: Option<Vec<u8>>,
    /// Total length in bytes.
    #[prost(sint64, optional, tag = "3")]
    pub sum: Option<i64>,
    /// A lower bound, if the least value is too long to store.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub lower_bound: Option<Vec<u8>>,
    /// An upper bound, if the greatest value is too long to store.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub upper_bound: Option<Vec<u8>>,
}

/// Of booleans.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct BucketStatistics {
    /// How many values are true.
    #[prost(uint64, repeated, tag = "1")]
    pub count: Vec<u64>,
}

/// Of decimals, as text.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct DecimalStatistics {
    /// Least value.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub minimum: Option<Vec<u8>>,
    /// Greatest value.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub maximum: Option<Vec<u8>>,
    /// Sum.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub sum: Option<Vec<u8>>,
}

/// Of dates, in days.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct DateStatistics {
    /// Least value.
    #[prost(sint32, optional, tag = "1")]
    pub minimum: Option<i32>,
    /// Greatest value.
    #[prost(sint32, optional, tag = "2")]
    pub maximum: Option<i32>,
}

/// Of timestamps, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct TimestampStatistics {
    /// Least value in the writer's zone.
    #[prost(sint64, optional, tag = "1")]
    pub minimum: Option<i64>,
    /// Greatest value in the writer's zone.
    #[prost(sint64, optional, tag = "2")]
    pub maximum: Option<i64>,
    /// Least value in UTC.
    #[prost(sint64, optional, tag = "3")]
    pub minimum_utc: Option<i64>,
    /// Greatest value in UTC.
    #[prost(sint64, optional, tag = "4")]
    pub maximum_utc: Option<i64>,
    /// The last six digits of the least value's nanoseconds, plus 1.
    #[prost(int32, optional, tag = "5")]
    pub minimum_nanos: Option<i32>,
    /// The last six digits of the greatest value's nanoseconds, plus 1.
    #[prost(int32, optional, tag = "6")]
    pub maximum_nanos: Option<i32>,
}

/// Of binary.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct BinaryStatistics {
    /// Total length in bytes.
    #[prost(sint64, optional, tag = "1")]
    pub sum: Option<i64>,
}

/// Of lists and maps.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct CollectionStatistics {
    /// Number of elements of the shortest list or map.
    #[prost(uint64, optional, tag = "1")]
    pub min_children: Option<u64>,
    /// Number of elements of the longest list or map.
    #[prost(uint64, optional, tag = "2")]
    pub max_children: Option<u64>,
    /// Number of elements of all lists and maps.
    #[prost(uint64, optional, tag = "3")]
    pub total_children: Option<u64>,
}

/// Of geometry and geography.
#[derive(Clone, PartialEq, Message)]
pub struct GeospatialStatistics {
    /// The bounding box of all values.
    #[prost(message, optional, tag = "1")]
    pub bbox: Option<BoundingBox>,
    /// Codes of the geometry types that occur.
    #[prost(int32, repeated, tag = "2")]
    pub geospatial_types: Vec<i32>,
}

/// The bounding box of all geometries.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct BoundingBox {
    /// The west end.
    #[prost(double, optional, tag = "1")]
    pub xmin: Option<f64>,
    /// The east end.
    #[prost(double, optional, tag = "2")]
    pub xmax: Option<f64>,
    /// The south end.
    #[prost(double, optional, tag = "3")]
    pub ymin: Option<f64>,
    /// The north end.
    #[prost(double, optional, tag = "4")]
    pub ymax: Option<f64>,
    /// Lowest.
    #[prost(double, optional, tag = "5")]
    pub zmin: Option<f64>,
    /// Highest.
    #[prost(double, optional, tag = "6")]
    pub zmax: Option<f64>,
    /// Least measure.
    #[prost(double, optional, tag = "7")]
    pub mmin: Option<f64>,
    /// Greatest measure.
    #[prost(double, optional, tag = "8")]
    pub mmax: Option<f64>,
}

/// The streams and encodings of a stripe.
#[derive(Clone, PartialEq, Message)]
pub struct StripeFooter {
    /// The streams, in file order.
    #[prost(message, repeated, tag = "1")]
    pub streams: Vec<Stream>,
    /// The encoding of each column.
    #[prost(message, repeated, tag = "2")]
    pub columns: Vec<ColumnEncoding>,
    /// Java's name of the zone that timestamps were written in.
    #[prost(string, optional, tag = "3")]
    pub writer_timezone: Option<String>,
    /// One for each encryption variant.
    #[prost(message, repeated, tag = "4")]
    pub encryption: Vec<StripeEncryptionVariant>,
}

/// The streams and encodings of a stripe under one key.
#[derive(Clone, PartialEq, Message)]
pub struct StripeEncryptionVariant {
    /// The streams, in file order.
    #[prost(message, repeated, tag = "1")]
    pub streams: Vec<Stream>,
    /// The encoding of each column from the variant's root on.
    #[prost(message, repeated, tag = "2")]
    pub encoding: Vec<ColumnEncoding>,
}

/// One stream.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Stream {
    /// See `crate::layout::stripe::StreamKind`.
    #[prost(uint32, optional, tag = "1")]
    pub kind: Option<u32>,
    /// The column of the stream.
    #[prost(uint32, optional, tag = "2")]
    pub column: Option<u32>,
    /// Number of stored bytes.
    #[prost(uint64, optional, tag = "3")]
    pub length: Option<u64>,
}

/// How a column is encoded in a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct ColumnEncoding {
    /// 0 direct, 1 dictionary, 2 direct v2, 3 dictionary v2.
    #[prost(uint32, optional, tag = "1")]
    pub kind: Option<u32>,
    /// Number of entries of the dictionary.
    #[prost(uint32, optional, tag = "2")]
    pub dictionary_size: Option<u32>,
    /// The form of the bloom filters: 0 as first written, 1 since timestamps are in UTC.
    #[prost(uint32, optional, tag = "3")]
    pub bloom_encoding: Option<u32>,
}

/// Where row groups begin in the streams of a column, and their statistics.
#[derive(Clone, PartialEq, Message)]
pub struct RowIndex {
    /// The entry of each row group.
    #[prost(message, repeated, tag = "1")]
    pub entry: Vec<RowIndexEntry>,
}

/// One row group of a column.
#[derive(Clone, PartialEq, Message)]
pub struct RowIndexEntry {
    /// For each stream of the column: the chunk, the byte in the chunk, the value in the run, the bit.
    #[prost(uint64, repeated, tag = "1")]
    pub positions: Vec<u64>,
    /// Its statistics.
    #[prost(message, optional, tag = "2")]
    pub statistics: Option<ColumnStatistics>,
}

/// [`RowIndex`] with the statistics as stored: they take most of the index, and only the statistics of the
/// row groups that are read are needed.
#[derive(Clone, PartialEq, Message)]
pub struct PositionIndex {
    /// One for each row group.
    #[prost(message, repeated, tag = "1")]
    pub entry: Vec<PositionEntry>,
}

/// See [`RowIndexEntry`].
#[derive(Clone, PartialEq, Message)]
pub struct PositionEntry {
    /// See [`RowIndexEntry::positions`].
    #[prost(uint64, repeated, tag = "1")]
    pub positions: Vec<u64>,
    /// [`RowIndexEntry::statistics`] as stored.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub statistics: Option<Bytes>,
}

/// The bloom filters of a column.
#[derive(Clone, PartialEq, Message)]
pub struct BloomFilterIndex {
    /// The bloom filter of each row group.
    #[prost(message, repeated, tag = "1")]
    pub bloom_filter: Vec<BloomFilter>,
}

/// A bloom filter.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct BloomFilter {
    /// How many bits a value sets.
    #[prost(uint32, optional, tag = "1")]
    pub num_hash_functions: Option<u32>,
    /// The words of a filter of the first kind.
    #[prost(fixed64, repeated, packed = "false", tag = "2")]
    pub bitset: Vec<u64>,
    /// The words of a filter of the second kind.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub utf8bitset: Option<Vec<u8>>,
}

/// Column encryption.
#[derive(Clone, PartialEq, Message)]
pub struct Encryption {
    /// The masks, which produce the values that readers without a key see.
    #[prost(message, repeated, tag = "1")]
    pub mask: Vec<DataMask>,
    /// Names of keys.
    #[prost(message, repeated, tag = "2")]
    pub key: Vec<EncryptionKey>,
    /// The encrypted columns by key.
    #[prost(message, repeated, tag = "3")]
    pub variants: Vec<EncryptionVariant>,
    /// 0 unknown, 1 Hadoop, 2 AWS, 3 GCP, 4 Azure.
    #[prost(uint32, optional, tag = "4")]
    pub key_provider: Option<u32>,
}

/// A mask and the columns to which it applies.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct DataMask {
    /// `nullify`, `redact`, `sha256` or the writer's own.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// Its parameters.
    #[prost(string, repeated, tag = "2")]
    pub mask_parameters: Vec<String>,
    /// The roots of the trees to which the mask applies.
    #[prost(uint32, repeated, tag = "3")]
    pub columns: Vec<u32>,
}

/// A key by name.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct EncryptionKey {
    /// Its name.
    #[prost(string, optional, tag = "1")]
    pub key_name: Option<String>,
    /// Its version.
    #[prost(uint32, optional, tag = "2")]
    pub key_version: Option<u32>,
    /// 1 AES-CTR-128, 2 AES-CTR-256.
    #[prost(uint32, optional, tag = "3")]
    pub algorithm: Option<u32>,
}

/// A tree of columns under one key.
#[derive(Clone, PartialEq, Message)]
pub struct EncryptionVariant {
    /// The first column of the tree.
    #[prost(uint32, optional, tag = "1")]
    pub root: Option<u32>,
    /// The number of the key.
    #[prost(uint32, optional, tag = "2")]
    pub key: Option<u32>,
    /// The key of the footer's statistics, encrypted with the named key.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub encrypted_key: Option<Vec<u8>>,
    /// Where the stripes' statistics of each column are.
    #[prost(message, repeated, tag = "4")]
    pub stripe_statistics: Vec<Stream>,
    /// Encrypted [`FileStatistics`].
    #[prost(bytes = "vec", optional, tag = "5")]
    pub file_statistics: Option<Vec<u8>>,
}

/// The bytes of a message.
pub fn encode<M: Message>(message: &M) -> Vec<u8> {
    message.encode_to_vec()
}
