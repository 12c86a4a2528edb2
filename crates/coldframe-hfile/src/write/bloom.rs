//! Bloom filters in chunks, written between the data blocks.
//!
//! ```text
//! chunk   | bits, the lowest of a byte first |
//! meta    | version i32 = 3 | bytes of all chunks i64 | hashes i32 | hash type i32 | keys i64 | most keys i64 |
//!         | chunks i32 | comparator: VInt length, name | offset i64, size i32, first key: VInt length, bytes | ... |
//! ```
//!
//! The size of a chunk and the error rate determine its maximum number of keys. The last chunk is folded in
//! half as long as it is less than half full. Bit `i` of a key is `|h1 + i * h2| mod bits`, where h1 is the
//! key's hash with seed 0 and h2 its hash with seed h1. HBase: `CompoundBloomFilterWriter`,
//! `BloomFilterChunk`, `BloomFilterUtil`.

use std::io::Write;

use coldframe_core::{Error, Result};
use coldframe_encoding::hash::murmur2_32;
use coldframe_encoding::varint::put_hadoop_text;

use super::blocks::Blocks;
use super::index::FlatIndex;
use crate::layout::block::BlockType;

/// The only version of the meta block.
const VERSION: i32 = 3;
/// HBase's number for Murmur, its default.
const MURMUR: i32 = 1;
/// How often a chunk can be halved.
const FOLDS: u32 = 7;
/// The comparator of column keys.
const COLUMN_COMPARATOR: &[u8] = b"org.apache.hadoop.hbase.CellComparatorImpl";

/// The size of chunks, and the maximum number of keys in a chunk.
#[derive(Clone, Copy, Debug)]
struct ChunkShape {
    bytes: usize,
    hashes: i32,
    max_keys: u64,
}

impl ChunkShape {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "sizes are below 2^31 and rates between 0 and 1; HBase computes in the same floating point"
    )]
    fn new(size: usize, error_rate: f64) -> Result<Self> {
        let bytes = size.max(1).next_multiple_of(1 << FOLDS);
        let bits = (bytes * 8) as f64;
        let log2 = std::f64::consts::LN_2;
        let ideal = (bits * (log2 * log2 / -error_rate.ln())) as u64;
        let hashes = (log2 * (bytes as u64 * 8 / ideal.max(1)) as f64).ceil().max(1.0);
        let max_keys = (-bits / hashes * (1.0 - (error_rate.ln() / hashes).exp()).ln()) as u64;
        if max_keys == 0 || i32::try_from(bytes).is_err() {
            return Err(Error::invalid(format!(
                "a bloom filter of {size} bytes and error rate {error_rate}"
            )));
        }
        Ok(Self { bytes, hashes: hashes as i32, max_keys })
    }
}

struct Chunk {
    bits: Vec<u8>,
    keys: u64,
    max_keys: u64,
    first: Vec<u8>,
}

/// A bloom filter to which keys are added.
pub(super) struct Bloom {
    /// The type of the filter's meta block.
    meta: BlockType,
    of_columns: bool,
    shape: ChunkShape,
    chunk: Option<Chunk>,
    /// Full chunks that are not written yet.
    full: Vec<Chunk>,
    index: FlatIndex,
    last: Vec<u8>,
    bytes: u64,
    keys: u64,
    max_keys: u64,
}

impl Bloom {
    /// A filter of rows, or of rows and qualifiers. The filter's meta block has the type `meta`.
    pub(super) fn new(meta: BlockType, of_columns: bool, size: usize, error_rate: f64) -> Result<Self> {
        // A look-up of a column uses two filters, the filter of columns and the filter of deleted families,
        // so each filter may have only about half the error rate.
        let error_rate = if of_columns { 1.0 - (1.0 - error_rate).sqrt() } else { error_rate };
        Ok(Self {
            meta,
            of_columns,
            shape: ChunkShape::new(size, error_rate)?,
            chunk: None,
            full: Vec::new(),
            index: FlatIndex::default(),
            last: Vec::new(),
            bytes: 0,
            keys: 0,
            max_keys: 0,
        })
    }

    /// Adds a key; a key that equals the previous key is ignored.
    pub(super) fn push(&mut self, key: &[u8]) {
        if self.keys > 0 && self.last == key {
            return;
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        self.keys += 1;
        if self.chunk.as_ref().is_some_and(|c| c.keys >= c.max_keys) {
            self.end_chunk();
        }
        let shape = self.shape;
        let chunk = self.chunk.get_or_insert_with(|| Chunk {
            bits: vec![0; shape.bytes],
            keys: 0,
            max_keys: shape.max_keys,
            first: key.to_vec(),
        });
        chunk.add(key, shape.hashes);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// The last key that was added.
    pub(super) fn last(&self) -> &[u8] {
        &self.last
    }

    fn end_chunk(&mut self) {
        let Some(mut chunk) = self.chunk.take() else { return };
        chunk.fold();
        self.bytes += chunk.bits.len() as u64;
        self.max_keys += chunk.max_keys;
        self.full.push(chunk);
    }

    /// Writes the full chunks, and, if `last`, the current chunk.
    pub(super) fn write_chunks<W: Write>(&mut self, blocks: &mut Blocks<W>, last: bool) -> Result<()> {
        if last || self.chunk.as_ref().is_some_and(|c| c.keys >= c.max_keys) {
            self.end_chunk();
        }
        for chunk in std::mem::take(&mut self.full) {
            let location = blocks.write(BlockType::BloomChunk, &chunk.bits)?;
            self.index.push(chunk.first, location);
        }
        Ok(())
    }

    /// Writes the meta block, which contains the index of the chunks.
    pub(super) fn write_meta<W: Write>(&self, blocks: &mut Blocks<W>) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut out = Vec::new();
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&self.bytes.to_be_bytes());
        out.extend_from_slice(&self.shape.hashes.to_be_bytes());
        out.extend_from_slice(&MURMUR.to_be_bytes());
        out.extend_from_slice(&self.keys.to_be_bytes());
        out.extend_from_slice(&self.max_keys.to_be_bytes());
        out.extend_from_slice(&u32::try_from(self.index.len()).unwrap_or(u32::MAX).to_be_bytes());
        put_hadoop_text(&mut out, if self.of_columns { COLUMN_COMPARATOR } else { &[] });
        self.index.put(&mut out);
        blocks.write(self.meta, &out).map(drop)
    }
}

impl Chunk {
    fn add(&mut self, key: &[u8], hashes: i32) {
        let first = murmur2_32(key, 0);
        let step = murmur2_32(key, first).cast_signed();
        let mut hash = first.cast_signed();
        let bits = (self.bits.len() as u64 * 8).cast_signed();
        for _ in 0..hashes {
            let bit = (i64::from(hash) % bits).unsigned_abs();
            if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|at| self.bits.get_mut(at)) {
                *byte |= 1 << (bit % 8);
            }
            hash = hash.wrapping_add(step);
        }
        self.keys += 1;
    }

    /// Halves the chunk repeatedly, until it is more than half full. A key's bits are numbered modulo the
    /// size, so the two halves can be combined with OR.
    fn fold(&mut self) {
        while self.bits.len().is_multiple_of(2) && self.max_keys > self.keys * 2 {
            let half = self.bits.len() / 2;
            let (front, back) = self.bits.split_at_mut(half);
            front.iter_mut().zip(back).for_each(|(f, b)| *f |= *b);
            self.bits.truncate(half);
            self.max_keys /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with the result of HBase's `BloomFilterUtil.createBySize(131072, 0.01, 1, 7, ROW)`.
    #[test]
    fn a_chunk_of_the_default_size_has_the_shape_that_hbase_gives_it() {
        let shape = ChunkShape::new(128 << 10, 0.01).unwrap();
        assert_eq!((shape.bytes, shape.hashes, shape.max_keys), (131072, 7, 109306));
    }

    #[test]
    fn keys_are_still_matched_after_folding() {
        let mut bloom = Bloom::new(BlockType::BloomMeta, false, 4096, 0.01).unwrap();
        let keys: Vec<String> = (0..100).map(|i| format!("row {i}")).collect();
        keys.iter().for_each(|k| bloom.push(k.as_bytes()));
        bloom.push(b"row 99");
        bloom.end_chunk();
        assert_eq!(bloom.keys, 100);
        let chunk = &bloom.full[0];
        assert_eq!(chunk.bits.len(), 128);
        let mut again = Chunk { bits: vec![0; 128], keys: 0, max_keys: 0, first: vec![] };
        keys.iter().for_each(|k| again.add(k.as_bytes(), bloom.shape.hashes));
        assert_eq!(again.bits, chunk.bits);
    }
}
