//! The writer's options.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use coldframe_core::options::{Bytes, Kind};
use coldframe_core::{Error, Result};
use coldframe_encoding::codec::Algorithm;
use coldframe_encoding::codec::hadoop::HadoopCodec;

use crate::layout::encoding::Encoding;
use crate::options::View;

coldframe_core::choices! {
    /// Compression of blocks.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum Codec {
        /// No compression.
        #[default]
        None = "none" | "uncompressed",
        /// Gzip.
        Gz = "gz" | "gzip",
        /// Snappy.
        Snappy = "snappy",
        /// LZ4.
        Lz4 = "lz4",
        /// LZO.
        Lzo = "lzo",
        /// Zstandard.
        Zstd = "zstd",
        /// Brotli.
        Brotli = "brotli",
        /// Bzip2.
        Bzip2 = "bzip2",
    }
}

impl Codec {
    fn hadoop(self) -> Result<Option<HadoopCodec>> {
        Ok(Some(match self {
            Self::None => return Ok(None),
            Self::Gz => HadoopCodec::from_algorithm(Algorithm::Gzip)?,
            Self::Bzip2 => HadoopCodec::from_algorithm(Algorithm::Bzip2)?,
            Self::Snappy => HadoopCodec::framed(Algorithm::Snappy),
            Self::Lz4 => HadoopCodec::framed(Algorithm::Lz4),
            Self::Lzo => HadoopCodec::framed(Algorithm::Lzo),
            Self::Zstd => HadoopCodec::framed(Algorithm::Zstd),
            Self::Brotli => HadoopCodec::framed(Algorithm::Brotli),
        }))
    }
}

coldframe_core::choices! {
    /// How the cells of a block are encoded.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum CellEncoding {
        /// Not encoded.
        #[default]
        None = "none",
        /// Prefixes of keys are omitted.
        Prefix = "prefix",
        /// Parts of a key that equal the same parts of the previous key are omitted; timestamps are
        /// differences.
        Diff = "diff",
        /// Like DIFF, but timestamps share leading bytes, and a value that equals the previous value is
        /// omitted.
        FastDiff = "fast_diff",
        /// Plain cells followed by an index of rows.
        RowIndexV1 = "row_index_v1",
    }
}

impl CellEncoding {
    fn encoding(self) -> Option<Encoding> {
        match self {
            Self::None => None,
            Self::Prefix => Some(Encoding::Prefix),
            Self::Diff => Some(Encoding::Diff),
            Self::FastDiff => Some(Encoding::FastDiff),
            Self::RowIndexV1 => Some(Encoding::RowIndexV1),
        }
    }
}

coldframe_core::choices! {
    /// The kind of checksum of blocks.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum Checksum {
        /// CRC-32C.
        #[default]
        Crc32c = "crc32c",
        /// CRC-32.
        Crc32 = "crc32",
        /// No checksum: zeros are stored.
        Null = "null",
    }
}

impl Checksum {
    pub(super) fn id(self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Crc32 => 1,
            Self::Crc32c => 2,
        }
    }
}

coldframe_core::choices! {
    /// What the keys of the bloom filter are.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum BloomKind {
        /// No filter.
        None = "none",
        /// The keys of the filter are rows.
        #[default]
        Row = "row",
        /// The keys of the filter are rows with qualifiers.
        RowColumn = "rowcol",
    }
}

coldframe_core::options! {
    /// How an HFile is written.
    pub struct WriteOptions for coldframe_core::WriteOptions {
        /// "cells" (HBase) or "kv" (Hudi); default: "kv" if the columns are `key` and `value`
        view: Option<View>;
        /// the column family of all cells, if there is no column `family`
        family: Option<Bytes>;
        /// timestamp in milliseconds of cells that have none: there is no column `timestamp`, or it is null
        timestamp: Option<i64>;
        /// whether cells are written with tags; default: whether there is a column `tags`
        tags: Option<bool>;
        /// compression of blocks; must be none or gz for Hudi
        codec: Codec, alias "compression";
        /// compression level of gz, zstd, brotli or bzip2
        compression_level: Option<i32>;
        /// encoding of the cells in a block; must be none for Hudi
        encoding: CellEncoding;
        /// bytes of cells after which a data block ends
        block_size: usize = 64 << 10, as SIZE;
        /// bytes after which an index block ends
        index_block_size: usize = 128 << 10, as SIZE;
        /// fewest entries of an index block: a block with fewer is not split, whatever its size
        index_min_entries: usize = 16, as Kind::Int { least: 2, most: i32::MAX as u64 };
        /// what the bloom filter is built from; Hudi files have none
        bloom: BloomKind;
        /// bytes of one chunk of the bloom filter
        bloom_block_size: usize = 128 << 10, as SIZE;
        /// false positive rate of the bloom filter
        bloom_error_rate: f64 = 0.01, as Kind::SHARE;
        /// checksum algorithm for blocks
        checksum: Checksum;
        /// bytes covered by each checksum
        bytes_per_checksum: usize = 16 << 10, as SIZE;
        /// more entries of the file info by name, as text or bytes
        metadata: Vec<(String, Option<Vec<u8>>)>;
        /// meta blocks by name, as text or bytes, such as Hudi's `bloomFilter`
        meta_blocks: Vec<(String, Option<Vec<u8>>)>;
        /// creation time in milliseconds; default: now
        create_time: Option<i64>;
        /// whether the file info marks the file for bulk load
        bulk_load: bool = true;
    }
}

/// Sizes are stored as integers of 32 bits that must not be negative.
const SIZE: Kind = Kind::Size { least: 1, most: i32::MAX as u64 };

/// The parsed options of the writer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// The view; `None` means that the names of the columns decide.
    pub view: Option<View>,
    /// The family of all cells, if the data has no column for it.
    pub family: Option<Vec<u8>>,
    /// The timestamp of cells without a timestamp in the data.
    pub timestamp: Option<i64>,
    /// Whether cells have tags.
    pub tags: Option<bool>,
    /// The codec of blocks; `None` for no compression.
    pub codec: Option<HadoopCodec>,
    /// The codec's level; `None` means the codec's default.
    pub compression_level: Option<i32>,
    /// The encoding of cells.
    pub encoding: Option<Encoding>,
    /// Bytes of cells after which a data block ends.
    pub block_size: usize,
    /// Bytes after which an index block ends.
    pub index_block_size: usize,
    /// A root with fewer entries is not split.
    pub index_min_entries: usize,
    /// The keys of the bloom filter.
    pub bloom: BloomKind,
    /// Bytes of a chunk of the filter.
    pub bloom_block_size: usize,
    /// The filter's false positive rate.
    pub bloom_error_rate: f64,
    /// The checksum of blocks.
    pub checksum: Checksum,
    /// Bytes covered by each checksum.
    pub bytes_per_checksum: usize,
    /// Further entries of the file info.
    pub metadata: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Meta blocks by name.
    pub meta_blocks: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The creation time in milliseconds.
    pub create_time: i64,
    /// Whether the file info marks the file for bulk load.
    pub bulk_load: bool,
}

impl Settings {
    /// The codec's ordinal, for the trailer.
    pub(super) fn codec_ordinal(&self) -> u32 {
        match self.codec.map(|c| c.algorithm) {
            Some(Algorithm::Lzo) => 0,
            Some(Algorithm::Gzip) => 1,
            Some(Algorithm::Snappy) => 3,
            Some(Algorithm::Lz4) => 4,
            Some(Algorithm::Bzip2) => 5,
            Some(Algorithm::Zstd) => 6,
            Some(Algorithm::Brotli) => 8,
            _ => 2,
        }
    }
}

impl TryFrom<WriteOptions> for Settings {
    type Error = Error;

    fn try_from(given: WriteOptions) -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            view: given.view,
            family: given.family.map(|family| family.0),
            timestamp: given.timestamp,
            tags: given.tags,
            codec: given.codec.hadoop()?,
            compression_level: given.compression_level,
            encoding: given.encoding.encoding(),
            block_size: given.block_size,
            index_block_size: given.index_block_size,
            index_min_entries: given.index_min_entries,
            bloom: given.bloom,
            bloom_block_size: given.bloom_block_size,
            bloom_error_rate: given.bloom_error_rate,
            checksum: given.checksum,
            bytes_per_checksum: given.bytes_per_checksum,
            metadata: entries(given.metadata),
            meta_blocks: entries(given.meta_blocks),
            create_time: given
                .create_time
                .unwrap_or_else(|| i64::try_from(now.as_millis()).unwrap_or(i64::MAX)),
            bulk_load: given.bulk_load,
        })
    }
}

fn entries(given: Vec<(String, Option<Vec<u8>>)>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    given.into_iter().map(|(key, value)| (key.into_bytes(), value.unwrap_or_default())).collect()
}
