//! Bloom filters: a meta block that is read on opening, and the bits in chunks between the data blocks.
//!
//! ```text
//! meta block  | version i32 = 3 | bytes of all chunks i64 | hashes i32 | hash function i32 | keys i64 | maximum of keys i64 |
//!             | chunks i32 | comparator class: VInt length, text | root entry for each chunk |
//! chunk       | bits, low first in each byte |
//! bit i       | abs((h1 + i * h2) % bits), h1 = hash(key, 0), h2 = hash(key, h1), in 32 signed bits |
//! key         | ROW: row | ROWPREFIX_FIXED_LENGTH: its first bytes | ROWCOL: the cell key of row and qualifier, without
//!             | family, timestamp Long.MAX, type 255 | delete family: row |
//!
//! version 1 of the file: two meta blocks
//! BLOOM_FILTER_META | version i32 = 1 | bytes i32 | hashes i32 | hash function i32 | keys i32 |
//! BLOOM_FILTER_DATA | bits |            key for ROWCOL: row, qualifier
//! ```
//!
//! HBase: `CompoundBloomFilter`, `BloomFilterUtil`, `RowColBloomHashKey`; `ByteBloomFilter` of 0.90 to 0.94.

use bytes::Bytes;
use coldframe_core::{Error, ErrorContext, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::hash::{jenkins, murmur2_32, murmur3_32};

use crate::cache::Cached;
use crate::layout::block::BlockType;
use crate::layout::cell::row_of;
use crate::layout::content::BlockReader;
use crate::layout::file_info;
use crate::layout::index::IndexBlock;
use crate::open::RawFile;

/// What the keys of a bloom filter are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Row,
    RowPrefix(usize),
    RowCol,
}

/// A bloom filter without its bits.
#[derive(Debug)]
pub(crate) struct Bloom {
    keys: Keys,
    hashes: u32,
    hash: Hash,
    bits: Bits,
}

type Hash = fn(&[u8], u32) -> u32;

/// The location of a filter's bits.
#[derive(Debug)]
enum Bits {
    /// In chunks, with an index of the first key of each chunk.
    Chunks(IndexBlock),
    /// In one piece, in files of version 1.
    Whole(Bytes),
}

/// The meta blocks of version 1.
const META_V1: &[u8] = b"BLOOM_FILTER_META";
const DATA_V1: &[u8] = b"BLOOM_FILTER_DATA";

/// Selects one of a file's filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The filter of all rows, or of all rows and columns.
    General,
    /// The filter of rows in which a whole family is deleted.
    DeleteFamily,
}

impl Bloom {
    /// Reads the filter's meta block; `None` if the file has no such filter.
    pub(crate) fn open(file: &RawFile, which: Which) -> Result<Option<Self>> {
        let wanted = match which {
            Which::General => BlockType::BloomMeta,
            Which::DeleteFamily => BlockType::DeleteFamilyBloomMeta,
        };
        let block = file.load_on_open.iter().find(|(block_type, _)| *block_type == wanted);
        let v1 = match (which, file.context.major) {
            (Which::General, 1) => file.meta_block(META_V1)?,
            _ => None,
        };
        if block.is_none() && v1.is_none() {
            return Ok(None);
        }
        let keys = match (which, file.info.text(file_info::BLOOM_FILTER_TYPE)) {
            (Which::DeleteFamily, _) | (_, Some("ROW")) => Keys::Row,
            (_, Some("ROWCOL")) => Keys::RowCol,
            (_, Some("ROWPREFIX_FIXED_LENGTH")) => {
                let prefix = file.info.integer(file_info::BLOOM_FILTER_PARAM);
                let prefix = prefix.and_then(|n| usize::try_from(n).ok());
                Keys::RowPrefix(prefix.ok_or_else(|| {
                    Error::corrupt(
                        "file info: expected the prefix length of the bloom filter in BLOOM_FILTER_PARAM",
                    )
                })?)
            }
            (_, Some(other)) => return Err(Error::unsupported(format!("bloom filter {other}"))),
            (_, None) => return Ok(None),
        };
        if let Some(meta) = v1 {
            let bits = file.meta_block(DATA_V1)?;
            return Self::parse_v1(&meta, bits, keys).map(Some).within(|| "bloom filter");
        }
        let Some((_, block)) = block else { return Ok(None) };
        let bytes = file.read(*block)?;
        let (_, content) = file.block_reader().content(&bytes, block.offset, block.size)?;
        Self::parse(&content, block.offset, keys).map(Some).within(|| wanted.name())
    }

    fn parse(content: &Bytes, offset: u64, keys: Keys) -> Result<Self> {
        let corrupt = |e: Error| Error::corrupt(e.reason()).at(offset);
        let mut c = Cursor::new(content, 0);
        let version = c.i32_be().map_err(corrupt)?;
        if version != 3 {
            return Err(Error::unsupported(format!("bloom filter version {version}")).at(offset));
        }
        c.skip(8).map_err(corrupt)?;
        let hashes = c.u32_be().map_err(corrupt)?;
        let hash = hash_of(hashes, c.i32_be().map_err(corrupt)?).map_err(|e| e.at(offset))?;
        c.skip(16).map_err(corrupt)?;
        let count = c.u32_be().map_err(corrupt)?;
        c.hadoop_text().map_err(corrupt)?;
        let rest = content.slice(content.len() - c.remaining()..);
        let chunks = IndexBlock::parse_root(rest, count, false, offset)?;
        Ok(Self { keys, hashes, hash, bits: Bits::Chunks(chunks) })
    }

    /// Parses the bloom filter of a file of version 1; `bits` is the content of another meta block.
    fn parse_v1(meta: &[u8], bits: Option<Bytes>, keys: Keys) -> Result<Self> {
        let mut c = Cursor::new(meta, 0);
        let corrupt = |e: Error| Error::corrupt(e.reason());
        let version = c.i32_be().map_err(corrupt)?;
        if version != 1 {
            return Err(Error::unsupported(format!("bloom filter version {version}")));
        }
        let size = c.u32_be().map_err(corrupt)?;
        let hashes = c.u32_be().map_err(corrupt)?;
        let hash = hash_of(hashes, c.i32_be().map_err(corrupt)?)?;
        match bits.filter(|bits| bits.len() as u64 == u64::from(size)) {
            Some(bits) => Ok(Self { keys, hashes, hash, bits: Bits::Whole(bits) }),
            None => Err(Error::corrupt(format!("expected {size} bytes of bits in their meta block"))),
        }
    }

    /// Whether the filter can rule out a whole row.
    pub(crate) fn filters_rows(&self) -> bool {
        self.keys != Keys::RowCol
    }

    /// The chunk with the bits of a key, if there is such a chunk.
    fn chunk(
        &self,
        chunks: &IndexBlock,
        row: &[u8],
        qualifier: &[u8],
        key: &[u8],
    ) -> Option<crate::layout::index::BlockRef> {
        let behind = |first: &[u8]| match self.keys {
            Keys::RowCol => (row_of(first).unwrap_or_default(), qualifier_of(first)) <= (row, qualifier),
            _ => first <= key,
        };
        let first = chunks.block(0).is_some() && behind(chunks.key(0));
        first.then(|| chunks.block(chunks.last_before(behind))).flatten()
    }

    /// `false` only if the file certainly lacks the row or, if the filter is one of rows and columns, this
    /// column of the row.
    pub(crate) fn might_contain(
        &self,
        file: &RawFile,
        reader: &mut BlockReader,
        row: &[u8],
        qualifier: Option<&[u8]>,
    ) -> Result<bool> {
        let key = match (self.keys, qualifier) {
            (Keys::RowCol, None) => return Ok(true),
            (Keys::RowCol, Some(qualifier)) if matches!(self.bits, Bits::Whole(_)) => {
                [row, qualifier].concat()
            }
            (Keys::RowCol, Some(qualifier)) => row_col_key(row, qualifier),
            (Keys::RowPrefix(n), _) => row.get(..n).unwrap_or(row).to_vec(),
            (Keys::Row, _) => row.to_vec(),
        };
        let chunks = match &self.bits {
            Bits::Whole(bits) => return Ok(self.is_set(&key, bits)),
            Bits::Chunks(chunks) => chunks,
        };
        let chunk = self.chunk(chunks, row, qualifier.unwrap_or_default(), &key);
        let Some(chunk) = chunk else { return Ok(false) };
        let bits = match file.cache.get(chunk.offset) {
            Some(Cached::Bloom(bits)) => bits,
            _ => {
                let bytes = file.read(chunk)?;
                let (block_type, bits) = reader.content(&bytes, chunk.offset, chunk.size)?;
                if block_type != BlockType::BloomChunk {
                    return Err(Error::corrupt(format!("expected a bloom chunk, found a {block_type}"))
                        .at(chunk.offset));
                }
                file.cache.insert(chunk.offset, Cached::Bloom(bits.clone()));
                bits
            }
        };
        Ok(self.is_set(&key, &bits))
    }

    fn is_set(&self, key: &[u8], bits: &[u8]) -> bool {
        let Some(size) = i32::try_from(bits.len()).ok().and_then(|n| n.checked_mul(8)).filter(|n| *n > 0)
        else {
            return true;
        };
        let first = (self.hash)(key, 0);
        let step = (self.hash)(key, first).cast_signed();
        let mut composite = first.cast_signed();
        (0..self.hashes).all(|_| {
            let bit = (composite % size).unsigned_abs() as usize;
            composite = composite.wrapping_add(step);
            bits.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
        })
    }
}

/// The hash function that a filter names by its number. `hashes`: the number of hashes for a key.
fn hash_of(hashes: u32, function: i32) -> Result<Hash> {
    if hashes > 1024 {
        return Err(Error::corrupt(format!("expected at most 1024 hashes, found {hashes}")));
    }
    match function {
        0 => Ok(jenkins),
        1 => Ok(murmur2_32),
        2 => Ok(murmur3_32),
        other => Err(Error::corrupt(format!("expected hash function 0, 1 or 2, found {other}"))),
    }
}

/// The qualifier of a cell key.
fn qualifier_of(key: &[u8]) -> &[u8] {
    let mut c = Cursor::new(key, 0);
    let parts = (|| -> Result<&[u8]> {
        let row = c.u16_be()?;
        c.skip(row.into())?;
        let family = c.u8()?;
        c.skip(family.into())?;
        c.take(c.remaining().saturating_sub(9))
    })();
    parts.unwrap_or_default()
}

fn row_col_key(row: &[u8], qualifier: &[u8]) -> Vec<u8> {
    let len = u16::try_from(row.len()).unwrap_or(u16::MAX);
    let mut key = Vec::with_capacity(row.len() + qualifier.len() + 12);
    key.extend_from_slice(&len.to_be_bytes());
    key.extend_from_slice(row);
    key.push(0);
    key.extend_from_slice(qualifier);
    key.extend_from_slice(&i64::MAX.to_be_bytes());
    key.push(255);
    key
}
