//! The index of data blocks: a root that is read on opening, and the levels below it.
//!
//! ```text
//! root entry    | offset i64 | size on disk i32 | key: VInt length, bytes |         also the meta index; version 1: raw size
//! after them    | middle leaf's offset i64 | its size i32 | number in it i32 |      only if there are more levels
//! other block   | entries i32 | offset of each entry i32 ... | bytes of the entries i32 | entry ... |
//! other entry   | offset i64 | size on disk i32 | key |
//! ```
//!
//! A key is the key of the block's first cell, or a key between this cell and the previous cell. Hudi's own
//! writer stores only the length and the bytes of the row. Leaf blocks follow the data blocks that they list.
//! HBase: `HFileBlockIndex`.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use coldframe_encoding::Cursor;
use coldframe_encoding::{Error, Limits, Result};

use crate::layout::cell::row_of;
use crate::layout::key_prefixes::KeyPrefixes;
use crate::layout::order::RowOrder;

/// The length of the middle key, after the root entries of a multi-level index.
const MIDDLE_LEN: usize = 16;

/// The length of the smallest entry.
const SMALLEST: u64 = 12;

/// The location of a block, from an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRef {
    /// The offset of the block.
    pub offset: u64,
    /// The block's size on disk, including header and checksums; in version 1, its size after decompression.
    pub size: u32,
}

impl BlockRef {
    /// The end of the block.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.size.into())
    }
}

/// One block of an index.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexBlock {
    bytes: Bytes,
    entries: Vec<(BlockRef, Range<usize>)>,
    /// Prefixes of the rows, built at the first search.
    prefixes: OnceLock<Option<KeyPrefixes>>,
}

impl IndexBlock {
    /// Fails if the entries of an index of `raw` bytes could exceed the memory limit of a file of `file_len` bytes.
    pub(crate) fn check_size(raw: usize, limits: &Limits, file_len: u64) -> Result<()> {
        let entries = raw as u64 / SMALLEST * size_of::<(BlockRef, Range<usize>)>() as u64;
        limits.decoded("an index block, decoded", entries.saturating_add(raw as u64), file_len)
    }

    /// An index of the blocks that a walk located; it has no keys.
    pub(crate) fn without_keys(blocks: Vec<BlockRef>) -> Self {
        Self {
            bytes: Bytes::new(),
            entries: blocks.into_iter().map(|b| (b, 0..0)).collect(),
            ..Self::default()
        }
    }

    /// An index of blocks with their first keys.
    pub(crate) fn of_keys(blocks: Vec<(BlockRef, Vec<u8>)>) -> Self {
        let mut bytes = Vec::new();
        let mut entries = Vec::with_capacity(blocks.len());
        for (block, key) in blocks {
            let start = bytes.len();
            bytes.extend_from_slice(&key);
            entries.push((block, start..bytes.len()));
        }
        Self { bytes: Bytes::from(bytes), entries, prefixes: OnceLock::new() }
    }

    /// Parses `count` root entries; `deep`: whether there are levels below the root. `offset`: the offset of
    /// the block, for errors.
    pub(crate) fn parse_root(bytes: Bytes, count: u32, deep: bool, offset: u64) -> Result<Self> {
        let corrupt = |e: Error| Error::corrupt(e.reason()).at(offset);
        let mut c = Cursor::new(&bytes, 0);
        let mut entries = Vec::new();
        for _ in 0..count {
            let block = block_ref(&mut c).map_err(corrupt)?;
            let key = c.hadoop_text().map_err(corrupt)?;
            let end = bytes.len() - c.remaining();
            entries.push((block, end - key.len()..end));
        }
        if deep && !c.is_empty() {
            c.skip(MIDDLE_LEN).map_err(corrupt)?;
        }
        c.finish().map_err(corrupt)?;
        Ok(Self { bytes, entries, prefixes: OnceLock::new() })
    }

    /// Parses a block below the root.
    pub(crate) fn parse_child(bytes: Bytes, offset: u64) -> Result<Self> {
        Self::parse_entries(bytes).map_err(|e| Error::corrupt(e.reason()).at(offset))
    }

    fn parse_entries(bytes: Bytes) -> Result<Self> {
        let mut c = Cursor::new(&bytes, 0);
        let count = c.i32_be()?;
        let count = usize::try_from(count).ok().filter(|n| *n > 0);
        let count = count.ok_or_else(|| Error::corrupt("expected at least one entry"))?;
        let places = c.take(count.saturating_add(1).saturating_mul(4))?;
        let base = bytes.len() - c.remaining();
        let mut entries = Vec::with_capacity(count);
        let places = places.as_chunks::<4>().0;
        let place = |bytes: Option<&[u8; 4]>| bytes.map(|p| u32::from_be_bytes(*p) as usize);
        let (first, last) = (place(places.first()), place(places.last()));
        if first != Some(0) || last != Some(c.remaining()) {
            let expected = c.remaining();
            let message = format!("expected offsets from 0 to {expected}, found {first:?} to {last:?}");
            return Err(Error::corrupt(message));
        }
        for pair in places.windows(2) {
            let (Some(start), Some(end)) = (place(pair.first()), place(pair.last())) else { continue };
            let entry = bytes.get(base.saturating_add(start)..base.saturating_add(end));
            let entry = entry.ok_or_else(|| {
                Error::corrupt(format!("expected consecutive entries, found one from {start} to {end}"))
            })?;
            let mut c = Cursor::new(entry, 0);
            let block = block_ref(&mut c)?;
            entries.push((block, base + end - c.remaining()..base + end));
        }
        Ok(Self { bytes, entries, prefixes: OnceLock::new() })
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the index block has no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of bytes that the index block takes in memory.
    pub(crate) fn size(&self) -> u64 {
        (self.bytes.len() as u64).saturating_add(self.entries.len() as u64 * 40)
    }

    /// The block of entry `i`.
    pub(crate) fn block(&self, i: usize) -> Option<BlockRef> {
        self.entries.get(i).map(|(block, _)| *block)
    }

    /// All blocks.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockRef> {
        self.entries.iter().map(|(block, _)| *block)
    }

    /// The key of entry `i`.
    pub(crate) fn key(&self, i: usize) -> &[u8] {
        self.entries.get(i).and_then(|(_, key)| self.bytes.get(key.clone())).unwrap_or_default()
    }

    /// The row in the key of entry `i`. If the key does not have the form of a cell's key, the whole key is
    /// the row.
    pub(crate) fn row(&self, i: usize) -> &[u8] {
        let key = self.key(i);
        row_of(key).unwrap_or(key)
    }

    /// The last entry whose row is before `row`, or else the first entry.
    pub(crate) fn last_before_row(&self, order: RowOrder, row: &[u8]) -> usize {
        let prefixes = self.prefixes.get_or_init(|| KeyPrefixes::new((0..self.len()).map(|i| self.row(i))));
        match prefixes {
            Some(prefixes) if order == RowOrder::Bytes => prefixes.lower_bound(0, row, |i| self.row(i)),
            _ => {
                let row_of_key = |range: &Range<usize>| {
                    let key = self.bytes.get(range.clone()).unwrap_or_default();
                    row_of(key).unwrap_or(key)
                };
                self.entries.partition_point(|(_, key)| order.compare(row_of_key(key), row).is_lt())
            }
        }
        .saturating_sub(1)
    }

    /// The last entry for whose key `before` is true, or else the first entry.
    pub(crate) fn last_before(&self, mut before: impl FnMut(&[u8]) -> bool) -> usize {
        let key = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        self.entries.partition_point(|(_, range)| before(key(range))).saturating_sub(1)
    }
}

fn block_ref(c: &mut Cursor<'_>) -> Result<BlockRef> {
    let (offset, size) = (c.i64_be()?, c.i32_be()?);
    match (u64::try_from(offset), u32::try_from(size)) {
        (Ok(offset), Ok(size)) => Ok(BlockRef { offset, size }),
        _ => Err(Error::corrupt(format!(
            "expected an offset and a size of 0 or more, found {offset} and {size}"
        ))),
    }
}
