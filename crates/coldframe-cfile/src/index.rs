//! The B-trees that lead to data blocks: the positional index by ordinal, the value index by key.
//!
//! ```text
//! index block | entry ... | offset of each entry u32 LE ... | IndexBlockTrailerPB | its length u32 LE |
//! entry       | key length varint | key | block offset varint | block size varint |
//! ```
//!
//! A key of the positional index is the ordinal of the block's first value, four bytes, highest first. A key of the value
//! index separates: it is more than all values before its block, at most the first in it, and as short as can be. An inner
//! block's entry carries the first key of the block below.

use std::ops::Range;

use bytes::Bytes;
use coldframe_core::{Error, ErrorContext, ReadAt, Result};
use coldframe_encoding::Cursor;
use prost::Message;

use crate::block::{BlockFormat, BlockPointer};
use crate::proto::IndexBlockTrailer;

/// A block of an index.
#[derive(Clone, Debug)]
pub struct IndexBlock {
    /// Where it stands.
    pub pointer: BlockPointer,
    /// Whether its entries point to data blocks.
    pub leaf: bool,
    bytes: Bytes,
    entries: usize,
    /// Where the offsets begin; entries end here.
    offsets: usize,
    /// Where everything that it points to must end.
    end: u64,
}

/// An entry: a key and the block that begins with it.
pub type Entry<'a> = (&'a [u8], BlockPointer);

impl IndexBlock {
    /// Reads the block at `pointer`; what it points to must end at `end` or before.
    pub fn load(source: &dyn ReadAt, format: &BlockFormat, pointer: BlockPointer, end: u64) -> Result<Self> {
        format.limits.metadata("index block", pointer.size.into())?;
        let stored = source.read(pointer.range())?;
        Self::parse(&stored, format, pointer, end).map_err(|e| e.at(pointer.offset))
    }

    /// Parses its stored bytes.
    pub fn parse(stored: &Bytes, format: &BlockFormat, pointer: BlockPointer, end: u64) -> Result<Self> {
        let bytes = format.open_owned(stored, pointer.offset)?;
        let short = || Error::corrupt(format!("expected a trailer, found {} bytes", bytes.len()));
        let (body, trailer_len) = bytes.split_last_chunk::<4>().ok_or_else(short)?;
        let trailer_len = usize::try_from(u32::from_le_bytes(*trailer_len)).unwrap_or(usize::MAX);
        let trailer_at = body.len().checked_sub(trailer_len).ok_or_else(short)?;
        let (before, trailer) = body.split_at(trailer_at);
        let trailer = IndexBlockTrailer::decode(trailer)
            .map_err(|e| Error::corrupt(format!("expected a trailer, found another thing ({e})")))?;
        let found = trailer.num_entries.unwrap_or(-1);
        let entries = usize::try_from(found).ok().filter(|n| *n <= before.len() / 4);
        let entries = entries.ok_or_else(|| {
            Error::corrupt(format!("expected at most {} entries, found {found}", before.len() / 4))
        })?;
        let leaf = match trailer.block_type {
            Some(0) => true,
            Some(1) => false,
            other => return Err(Error::corrupt(format!("expected a type of 0 or 1, found {other:?}"))),
        };
        let offsets = before.len() - 4 * entries;
        Ok(Self { pointer, leaf, bytes, entries, offsets, end })
    }

    /// How many entries.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// An entry.
    pub fn entry(&self, i: usize) -> Result<Entry<'_>> {
        let place = self.bytes.get(self.offsets + 4 * i..).and_then(|b| b.first_chunk());
        let at = place.map_or(usize::MAX, |b| usize::try_from(u32::from_le_bytes(*b)).unwrap_or(usize::MAX));
        let entry = || -> Result<Entry<'_>> {
            let bytes = self.bytes.get(at..self.offsets).ok_or_else(|| {
                Error::corrupt(format!("expected an offset of at most {}, found {at}", self.offsets))
            })?;
            let mut cursor = Cursor::new(bytes, self.pointer.offset);
            let key_len = cursor.uleb128()?;
            let key = cursor.take(usize::try_from(key_len).unwrap_or(usize::MAX))?;
            let offset = cursor.uleb128()?;
            let size = cursor.uleb128()?;
            let size = u32::try_from(size)
                .map_err(|_| Error::corrupt(format!("expected a size of 32 bits, found {size}")))?;
            Ok((key, BlockPointer { offset, size }.check(self.end)?))
        };
        entry().within(|| format!("entry {i}")).map_err(|e| e.at(self.pointer.offset))
    }

    /// The last entry whose key is at most `key`; `None` if all are more.
    pub fn floor(&self, key: &[u8]) -> Result<Option<usize>> {
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle)?.0 <= key { low = middle + 1 } else { high = middle }
        }
        Ok(low.checked_sub(1))
    }
}

/// What a walk comes by.
#[derive(Clone, Debug)]
pub enum Step {
    /// A data block and its key.
    Block(Vec<u8>, BlockPointer),
    /// A part of the index that cannot be read, and the key it begins with.
    Lost {
        /// Its key, where an inner block gives one.
        key: Vec<u8>,
        /// The index block.
        bytes: Range<u64>,
        /// Why.
        error: String,
    },
}

/// A walk over the entries of an index in order. Each level of the tree is one index block in memory.
#[derive(Debug)]
pub struct IndexWalk<'a> {
    source: &'a dyn ReadAt,
    format: BlockFormat,
    end: u64,
    levels: Vec<(IndexBlock, usize)>,
    /// Where the last data block ended: blocks follow each other in the file, so no part of a tree is visited twice.
    reached: u64,
    lossy: bool,
}

impl<'a> IndexWalk<'a> {
    /// From the root on; `end` is where the footer begins.
    pub fn new(source: &'a dyn ReadAt, format: BlockFormat, root: BlockPointer, end: u64) -> Result<Self> {
        let root = IndexBlock::load(source, &format, root, end).within(|| "root")?;
        Ok(Self { source, format, end, levels: vec![(root, 0)], reached: 0, lossy: false })
    }

    /// Parts that cannot be read are steps, not errors.
    #[must_use]
    pub fn lossy(mut self) -> Self {
        self.lossy = true;
        self
    }

    /// Moves to the last entry whose key is at most `key`, or to the first one. Call it before the first step.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        while let Some((block, next)) = self.levels.last_mut() {
            *next = block.floor(key)?.unwrap_or(0);
            if block.leaf || block.is_empty() {
                break;
            }
            let (_, child) = block.entry(*next)?;
            *next += 1;
            let child = self.child(child)?;
            self.levels.push((child, 0));
        }
        Ok(())
    }

    fn child(&self, pointer: BlockPointer) -> Result<IndexBlock> {
        self.format.limits.depth("index", self.levels.len() as u64 + 1)?;
        IndexBlock::load(self.source, &self.format, pointer, self.end).within(|| "index block")
    }

    /// The next step; `None` at the end.
    pub fn step(&mut self) -> Result<Option<Step>> {
        loop {
            let Some((block, next)) = self.levels.last_mut() else { return Ok(None) };
            if *next >= block.len() {
                self.levels.pop();
                continue;
            }
            let (key, pointer) = block.entry(*next)?;
            *next += 1;
            let key = key.to_vec();
            if block.leaf {
                if pointer.offset < self.reached {
                    let (reached, at) = (self.reached, block.pointer.offset);
                    let found = pointer.offset;
                    return Err(Error::corrupt(format!(
                        "expected a block at {reached} or behind, found one at {found}"
                    ))
                    .at(at));
                }
                self.reached = pointer.range().end;
                return Ok(Some(Step::Block(key, pointer)));
            }
            match self.child(pointer) {
                Ok(child) => self.levels.push((child, 0)),
                Err(e) if self.lossy && e.is_damage() => {
                    // What it leads to is not known, nor where that ends.
                    return Ok(Some(Step::Lost { key, bytes: pointer.range(), error: e.to_string() }));
                }
                Err(e) => return Err(e),
            }
        }
    }
}
