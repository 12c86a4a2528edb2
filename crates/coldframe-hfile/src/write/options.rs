//! The writer's options by name.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use coldframe_core::options::{boolean, integer, pairs, text, text_or_bytes, unexpected};
use coldframe_core::{Error, OptionDoc, Result, Value};
use coldframe_encoding::codec::Algorithm;
use coldframe_encoding::codec::hadoop::HadoopCodec;

use crate::layout::encoding::Encoding;
use crate::options::View;

/// What the writer takes.
pub(crate) const WRITE_OPTIONS: &[OptionDoc] = &[
    OptionDoc {
        name: "view",
        help: "\"cells\" (HBase) or \"kv\" (Hudi); default \"kv\" where the columns are key and value",
    },
    OptionDoc { name: "family", help: "the column family of all cells where there is no column `family`" },
    OptionDoc {
        name: "timestamp",
        help: "milliseconds, the timestamp of all cells where there is no column `timestamp` or it is null",
    },
    OptionDoc { name: "tags", help: "whether cells have tags; default whether there is a column `tags`" },
    OptionDoc {
        name: "codec",
        help: "none (default), gz, snappy, lz4, lzo, zstd, brotli or bzip2; none or gz for Hudi",
    },
    OptionDoc { name: "compression_level", help: "level of gz, zstd, brotli or bzip2" },
    OptionDoc {
        name: "encoding",
        help: "none (default), prefix, diff, fast_diff or row_index_v1; none for Hudi",
    },
    OptionDoc { name: "block_size", help: "bytes of cells with which a data block ends; default 65536" },
    OptionDoc {
        name: "index_block_size",
        help: "bytes with which a block of the index ends; default 131072",
    },
    OptionDoc {
        name: "index_min_entries",
        help: "entries below which the root of the index is not cut, whatever its size; default 16",
    },
    OptionDoc { name: "bloom", help: "none, row (default; none for Hudi) or rowcol" },
    OptionDoc { name: "bloom_block_size", help: "bytes of a chunk of the bloom filter; default 131072" },
    OptionDoc { name: "bloom_error_rate", help: "false positives of the bloom filter; default 0.01" },
    OptionDoc { name: "checksum", help: "crc32c (default), crc32 or null" },
    OptionDoc { name: "bytes_per_checksum", help: "bytes that a checksum covers; default 16384" },
    OptionDoc { name: "metadata", help: "further entries of the file info: text or bytes by name" },
    OptionDoc { name: "meta_blocks", help: "meta blocks: text or bytes by name, such as Hudi's bloomFilter" },
    OptionDoc { name: "create_time", help: "milliseconds, when the file was made; default now" },
    OptionDoc {
        name: "bulk_load",
        help: "whether the file info says that the file is to be loaded into a table; default True",
    },
];

/// What checks the bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Checksum {
    /// Nothing; zeros stand in its place.
    Null,
    /// CRC-32.
    Crc32,
    /// CRC-32C.
    #[default]
    Crc32c,
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

/// What a bloom filter knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BloomKind {
    /// There is none.
    None,
    /// Rows.
    Row,
    /// Rows with qualifiers.
    RowColumn,
}

/// How to write a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WriteOptions {
    /// What the columns are; found by their names where absent.
    pub view: Option<View>,
    /// The family of all cells.
    pub family: Option<Vec<u8>>,
    /// The timestamp of cells without one.
    pub timestamp: Option<i64>,
    /// Whether cells have tags.
    pub tags: Option<bool>,
    /// Compression of blocks, and its ordinal in the trailer.
    pub codec: Option<HadoopCodec>,
    /// The codec's level, its default where absent.
    pub compression_level: Option<i32>,
    /// The encoding of cells.
    pub encoding: Option<Encoding>,
    /// Bytes with which a data block ends.
    pub block_size: usize,
    /// Bytes with which a block of the index ends.
    pub index_block_size: usize,
    /// Entries of the root below which it is not cut.
    pub index_min_entries: usize,
    /// What the bloom filter knows.
    pub bloom: BloomKind,
    /// Bytes of its chunks.
    pub bloom_block_size: usize,
    /// Its false positives.
    pub bloom_error_rate: f64,
    /// What checks blocks.
    pub checksum: Checksum,
    /// Bytes that one checksum covers.
    pub bytes_per_checksum: usize,
    /// Further entries of the file info.
    pub metadata: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Meta blocks by name.
    pub meta_blocks: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Milliseconds.
    pub create_time: i64,
    /// Whether the file may be loaded into a table.
    pub bulk_load: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            view: None,
            family: None,
            timestamp: None,
            tags: None,
            codec: None,
            compression_level: None,
            encoding: None,
            block_size: 64 << 10,
            index_block_size: 128 << 10,
            index_min_entries: 16,
            bloom: BloomKind::Row,
            bloom_block_size: 128 << 10,
            bloom_error_rate: 0.01,
            checksum: Checksum::default(),
            bytes_per_checksum: 16 << 10,
            metadata: BTreeMap::new(),
            meta_blocks: BTreeMap::new(),
            create_time: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
            bulk_load: true,
        }
    }
}

impl WriteOptions {
    /// The trailer's number of the codec.
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

/// The options with the names of [`WRITE_OPTIONS`].
pub(crate) fn write_options(options: &coldframe_core::WriteOptions) -> Result<WriteOptions> {
    let extra = &options.extra;
    let mut to = WriteOptions {
        view: choice(extra, "view", &[("cells", View::Cells), ("kv", View::KeyValue)])?,
        family: bytes(extra, "family")?,
        timestamp: integer(extra, "timestamp")?,
        tags: boolean(extra, "tags")?,
        compression_level: integer(extra, "compression_level")?,
        ..WriteOptions::default()
    };
    if let Some(codec) = text(extra, "codec")? {
        to.codec = codec_of(codec)?;
    }
    let encodings = [
        ("none", None),
        ("prefix", Some(Encoding::Prefix)),
        ("diff", Some(Encoding::Diff)),
        ("fast_diff", Some(Encoding::FastDiff)),
        ("row_index_v1", Some(Encoding::RowIndexV1)),
    ];
    to.encoding = choice(extra, "encoding", &encodings)?.flatten();
    to.block_size = size(extra, "block_size", 1)?.unwrap_or(to.block_size);
    to.index_block_size = size(extra, "index_block_size", 1)?.unwrap_or(to.index_block_size);
    to.index_min_entries = size(extra, "index_min_entries", 2)?.unwrap_or(to.index_min_entries);
    let blooms = [("none", BloomKind::None), ("row", BloomKind::Row), ("rowcol", BloomKind::RowColumn)];
    to.bloom = choice(extra, "bloom", &blooms)?.unwrap_or(to.bloom);
    to.bloom_block_size = size(extra, "bloom_block_size", 1)?.unwrap_or(to.bloom_block_size);
    to.bloom_error_rate = match extra.get("bloom_error_rate") {
        None | Some(Value::Null) => to.bloom_error_rate,
        Some(Value::Float(rate)) if *rate > 0.0 && *rate < 1.0 => *rate,
        Some(other) => return Err(unexpected("bloom_error_rate", "a number between 0 and 1", other)),
    };
    let checksums = [("crc32c", Checksum::Crc32c), ("crc32", Checksum::Crc32), ("null", Checksum::Null)];
    to.checksum = choice(extra, "checksum", &checksums)?.unwrap_or_default();
    to.bytes_per_checksum = size(extra, "bytes_per_checksum", 1)?.unwrap_or(to.bytes_per_checksum);
    to.metadata = entries(extra, "metadata")?;
    to.meta_blocks = entries(extra, "meta_blocks")?;
    to.create_time = integer(extra, "create_time")?.unwrap_or(to.create_time);
    to.bulk_load = boolean(extra, "bulk_load")?.unwrap_or(to.bulk_load);
    Ok(to)
}

fn codec_of(name: &str) -> Result<Option<HadoopCodec>> {
    let algorithm = match name.to_ascii_lowercase().as_str() {
        "none" => return Ok(None),
        "gz" | "gzip" => Algorithm::Gzip,
        "snappy" => Algorithm::Snappy,
        "lz4" => Algorithm::Lz4,
        "lzo" => Algorithm::Lzo,
        "zstd" => Algorithm::Zstd,
        "brotli" => Algorithm::Brotli,
        "bzip2" => Algorithm::Bzip2,
        _ => {
            let message =
                "option `codec`: expected none, gz, snappy, lz4, lzo, zstd, brotli or bzip2, found ";
            return Err(Error::invalid(format!("{message}{name:?}")));
        }
    };
    Ok(Some(match algorithm {
        Algorithm::Gzip | Algorithm::Bzip2 => HadoopCodec::from_algorithm(algorithm)?,
        framed => HadoopCodec::framed(framed),
    }))
}

/// A number of bytes or entries, `least` or more.
fn size(extra: &BTreeMap<String, Value>, name: &str, least: i32) -> Result<Option<usize>> {
    let Some(n) = integer::<i32>(extra, name)? else { return Ok(None) };
    match usize::try_from(n) {
        Ok(size) if n >= least => Ok(Some(size)),
        _ => Err(Error::invalid(format!("option `{name}`: expected {least} or more, found {n}"))),
    }
}

fn bytes(extra: &BTreeMap<String, Value>, name: &str) -> Result<Option<Vec<u8>>> {
    match extra.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => text_or_bytes(value).map(Some).map_err(|e| e.within(format!("option `{name}`"))),
    }
}

fn entries(extra: &BTreeMap<String, Value>, name: &str) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let entries = pairs(extra, name, |value| match value {
        Value::Null => Ok(Vec::new()),
        value => text_or_bytes(value),
    })?;
    Ok(entries.into_iter().map(|(key, value)| (key.into_bytes(), value)).collect())
}

fn choice<T: Clone>(extra: &BTreeMap<String, Value>, name: &str, of: &[(&str, T)]) -> Result<Option<T>> {
    let Some(chosen) = text(extra, name)? else { return Ok(None) };
    if let Some((_, found)) = of.iter().find(|(name, _)| name.eq_ignore_ascii_case(chosen)) {
        return Ok(Some(found.clone()));
    }
    let names: Vec<&str> = of.iter().map(|(name, _)| *name).collect();
    Err(Error::invalid(format!("option `{name}`: expected {}, found {chosen:?}", names.join(" or "))))
}
