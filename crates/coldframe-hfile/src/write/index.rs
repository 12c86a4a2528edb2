//! The index of data blocks, built while they are written.
//!
//! ```text
//! root entry            | offset i64 | size i32 | key: VInt length, bytes |
//! after them            | offset of the middle leaf i64 | its size i32 | entry in it i32 |    if there are leaves
//! leaf, intermediate    | n i32 | offset of each entry i32 ... | their end i32 | offset i64, size i32, key | ...
//! ```
//!
//! Entries collect in a leaf. A leaf of at least `index_block_size` bytes is written between the data blocks
//! and becomes an entry of the root. If no leaf was written, its entries become the root's. At the end, a
//! root that is too large is split into intermediate blocks, level by level. HBase:
//! `HFileBlockIndex.BlockIndexWriter`.

use std::io::Write;

use coldframe_core::{Error, Result};
use coldframe_encoding::varint::put_hadoop_text;

use super::blocks::{BlockLocation, Blocks};
use crate::layout::block::BlockType;

/// Maximum number of levels, more than any file needs. This maximum ends the loop even if keys are large.
const MAX_LEVELS: u32 = 16;

struct IndexEntry {
    key: Vec<u8>,
    location: BlockLocation,
}

/// The entries of one level.
#[derive(Default)]
struct Entries {
    entries: Vec<IndexEntry>,
    root_bytes: usize,
    key_bytes: usize,
}

impl Entries {
    fn push(&mut self, key: Vec<u8>, location: BlockLocation) {
        // A VInt takes 1 byte up to 127; more precision is not needed for comparing a size with a threshold.
        let length = if key.len() < 128 { 1 } else { 3 };
        self.root_bytes += 12 + length + key.len();
        self.key_bytes += key.len();
        self.entries.push(IndexEntry { key, location });
    }

    fn leaf_bytes(&self) -> usize {
        4 + 4 * (self.entries.len() + 1) + 12 * self.entries.len() + self.key_bytes
    }

    fn put_leaf(&self, out: &mut Vec<u8>) -> Result<()> {
        let int = |n: usize| {
            let n = i32::try_from(n)
                .map_err(|_| Error::invalid(format!("an index block of {n} bytes: the maximum is 2 GiB")));
            n.map(i32::to_be_bytes)
        };
        out.extend_from_slice(&int(self.entries.len())?);
        let mut at = 0;
        for entry in &self.entries {
            out.extend_from_slice(&int(at)?);
            at += 12 + entry.key.len();
        }
        out.extend_from_slice(&int(at)?);
        for entry in &self.entries {
            put_location(entry.location, out);
            out.extend_from_slice(&entry.key);
        }
        Ok(())
    }

    fn put_root(&self, out: &mut Vec<u8>) {
        for entry in &self.entries {
            put_location(entry.location, out);
            put_hadoop_text(out, &entry.key);
        }
    }

    fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

fn put_location(location: BlockLocation, out: &mut Vec<u8>) {
    out.extend_from_slice(&location.offset.to_be_bytes());
    out.extend_from_slice(&location.size.to_be_bytes());
}

/// What the trailer states about an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    pub(super) root: u64,
    pub(super) root_entries: usize,
    pub(super) levels: u32,
    pub(super) raw_bytes: u64,
}

/// Collects the entries of an index.
pub(super) struct Index {
    leaf_size: usize,
    min_entries: usize,
    leaf: Entries,
    root: Entries,
    /// The number of data blocks up to and including each leaf of the root.
    blocks_up_to: Vec<u64>,
    blocks: u64,
    raw_bytes: u64,
}

impl Index {
    pub(super) fn new(leaf_size: usize, min_entries: usize) -> Self {
        Self {
            leaf_size,
            min_entries,
            leaf: Entries::default(),
            root: Entries::default(),
            blocks_up_to: Vec::new(),
            blocks: 0,
            raw_bytes: 0,
        }
    }

    /// Adds a block. The block's first key is `key` or comes after `key`.
    pub(super) fn push(&mut self, key: Vec<u8>, location: BlockLocation) {
        self.leaf.push(key, location);
        self.blocks += 1;
    }

    /// Writes the leaf if it is full, or if it is the last of several.
    pub(super) fn write_leaf<W: Write>(&mut self, blocks: &mut Blocks<W>, last: bool) -> Result<()> {
        let full =
            if last { !self.root.entries.is_empty() } else { self.leaf.leaf_bytes() >= self.leaf_size };
        if !full || self.leaf.entries.is_empty() {
            return Ok(());
        }
        let leaf = self.leaf.take();
        self.write_level(blocks, BlockType::LeafIndex, leaf).map(|(key, location)| {
            self.root.push(key, location);
            self.blocks_up_to.push(self.blocks);
        })
    }

    /// Writes a block of entries; returns the entry that points to it.
    fn write_level<W: Write>(
        &mut self,
        blocks: &mut Blocks<W>,
        block_type: BlockType,
        entries: Entries,
    ) -> Result<(Vec<u8>, BlockLocation)> {
        let mut content = Vec::with_capacity(entries.leaf_bytes());
        entries.put_leaf(&mut content)?;
        let location = blocks.write(block_type, &content)?;
        self.raw_bytes += content.len() as u64;
        let first = entries.entries.into_iter().next().map(|e| e.key).unwrap_or_default();
        Ok((first, location))
    }

    /// Writes the levels above the leaves.
    pub(super) fn finish<W: Write>(mut self, blocks: &mut Blocks<W>) -> Result<Summary> {
        let mut levels = 1;
        let mut behind = Vec::new();
        if self.root.entries.is_empty() {
            self.root = self.leaf.take();
        } else {
            levels = 2;
            self.put_middle(&mut behind)?;
            while self.root.root_bytes > self.leaf_size
                && self.root.entries.len() > self.min_entries
                && levels < MAX_LEVELS
            {
                self.root = self.write_intermediate(blocks)?;
                levels += 1;
            }
        }
        let mut content = Vec::with_capacity(self.root.root_bytes + behind.len());
        self.root.put_root(&mut content);
        content.append(&mut behind);
        let root = blocks.write(BlockType::RootIndex, &content)?.offset;
        let raw_bytes = self.raw_bytes + content.len() as u64;
        Ok(Summary { root, root_entries: self.root.entries.len(), levels, raw_bytes })
    }

    /// Splits the root into blocks; returns the entries that point to them.
    fn write_intermediate<W: Write>(&mut self, blocks: &mut Blocks<W>) -> Result<Entries> {
        let mut above = Entries::default();
        let mut level = Entries::default();
        for (i, entry) in self.root.take().entries.into_iter().enumerate() {
            level.push(entry.key, entry.location);
            if i >= self.min_entries && level.root_bytes >= self.leaf_size {
                let (key, location) = self.write_level(blocks, BlockType::IntermediateIndex, level.take())?;
                above.push(key, location);
            }
        }
        if !level.entries.is_empty() {
            let (key, location) = self.write_level(blocks, BlockType::IntermediateIndex, level)?;
            above.push(key, location);
        }
        Ok(above)
    }

    /// Writes the location of the leaf that lists the file's middle data block, and the number of the block's
    /// entry in that leaf.
    fn put_middle(&self, out: &mut Vec<u8>) -> Result<()> {
        let middle = self.blocks.saturating_sub(1) / 2;
        let leaf = self.blocks_up_to.partition_point(|n| *n <= middle);
        let before = leaf.checked_sub(1).and_then(|i| self.blocks_up_to.get(i)).copied().unwrap_or(0);
        let Some(entry) = self.root.entries.get(leaf) else {
            return Err(Error::invalid("the middle entry of the index is in none of its leaves"));
        };
        put_location(entry.location, out);
        let within = u32::try_from(middle.saturating_sub(before)).unwrap_or(u32::MAX);
        out.extend_from_slice(&within.to_be_bytes());
        Ok(())
    }
}

/// A single-level index in the form of a root, as used for meta blocks and bloom chunks.
#[derive(Default)]
pub(super) struct FlatIndex(Entries);

impl FlatIndex {
    pub(super) fn push(&mut self, key: Vec<u8>, location: BlockLocation) {
        self.0.push(key, location);
    }

    pub(super) fn len(&self) -> usize {
        self.0.entries.len()
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        self.0.put_root(out);
    }
}
