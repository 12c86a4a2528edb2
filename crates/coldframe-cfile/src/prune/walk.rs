//! Walks over the B-trees of a file.
//!
//! What an index block points to is a claim. A tree has each of its blocks once, and those of one level stand in the file in the
//! order of their keys: a pointer back, or twice to one block, is damage, so that no walk loads more of a level than the file holds.

use std::ops::Range;

use coldframe_core::{Error, ErrorContext, ReadAt, Result};
use coldframe_encoding::limits::Walk;

use crate::layout::block::{BlockFormat, BlockPointer};
use crate::layout::index::IndexBlock;

/// An index block that holds an entry has at least so many bytes: the entry, its offset, the trailer and its length.
const SMALLEST: u64 = 8;
/// Entries of one block that say nothing sensible, after which the rest of it is given up.
const MOST_BAD: u32 = 64;

/// Reads the index block at `pointer`; what it points to must end at `end` or before.
fn load(source: &dyn ReadAt, format: &BlockFormat, pointer: BlockPointer, end: u64) -> Result<IndexBlock> {
    format.limits.metadata("index block", pointer.size.into())?;
    let stored = source.read(pointer.range())?;
    IndexBlock::parse(&stored, format, pointer, (end, source.len())).map_err(|e| e.at(pointer.offset))
}

/// What a walk comes by.
#[derive(Clone, Debug)]
pub enum Step {
    /// An index block that was entered, where those are asked for.
    Index {
        /// Where it stands.
        pointer: BlockPointer,
        /// Whether its entries point to data blocks.
        leaf: bool,
        /// How many.
        entries: usize,
    },
    /// A data block and its key.
    Block(Vec<u8>, BlockPointer),
    /// A part of the index that cannot be read.
    Lost {
        /// The key it begins with, where one is given.
        key: Option<Vec<u8>>,
        /// The index block.
        bytes: Range<u64>,
        /// Why.
        error: String,
    },
}

/// A level of a walk: its block, the next entry, and how many said nothing sensible.
#[derive(Debug)]
struct Level {
    block: IndexBlock,
    next: usize,
    bad: u32,
}

/// A walk over the entries of an index in order. Each level of the tree is one index block in memory.
#[derive(Debug)]
pub struct IndexWalk<'a> {
    source: &'a dyn ReadAt,
    format: BlockFormat,
    end: u64,
    levels: Vec<Level>,
    /// For each level below the root, what was visited of it.
    visited: Vec<Walk>,
    /// The data blocks: they follow each other in the file.
    data: Walk,
    lossy: bool,
    shows_index: bool,
    pending: Option<Step>,
}

impl<'a> IndexWalk<'a> {
    /// From the root on; `end` is where the footer begins.
    pub(crate) fn new(
        source: &'a dyn ReadAt,
        format: BlockFormat,
        root: BlockPointer,
        end: u64,
    ) -> Result<Self> {
        let block = load(source, &format, root, end).within(|| "root")?;
        let levels = vec![Level { block, next: 0, bad: 0 }];
        let data = Walk::of_file("data block", source.len(), 1);
        let (visited, pending) = (Vec::new(), None);
        Ok(Self { source, format, end, levels, visited, data, lossy: false, shows_index: false, pending })
    }

    /// Parts that cannot be read are steps, not errors.
    #[must_use]
    pub fn lossy(mut self) -> Self {
        self.lossy = true;
        self
    }

    /// Index blocks are steps as well.
    #[must_use]
    pub(crate) fn with_index_blocks(mut self) -> Self {
        self.shows_index = true;
        self.pending = self.levels.last().map(|level| index_step(&level.block));
        self
    }

    /// Moves to the last entry whose key is at most `key`, or to the first one. Call it before the first step.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        while let Some(level) = self.levels.last_mut() {
            level.next = level.block.floor(key)?.unwrap_or(0);
            if level.block.leaf || level.block.is_empty() {
                break;
            }
            let (_, child) = level.block.entry(level.next)?;
            level.next += 1;
            self.enter(child)?;
        }
        Ok(())
    }

    fn enter(&mut self, pointer: BlockPointer) -> Result<()> {
        let depth = self.levels.len();
        self.format.limits.depth("index", depth as u64 + 1)?;
        if self.visited.len() < depth {
            self.visited.push(Walk::of_file("index block", self.source.len(), SMALLEST));
        }
        if let Some(visited) = self.visited.get_mut(depth - 1) {
            visited.rising(pointer.offset, pointer.size.into())?;
        }
        let block = load(self.source, &self.format, pointer, self.end).within(|| "index block")?;
        if self.shows_index {
            self.pending = Some(index_step(&block));
        }
        self.levels.push(Level { block, next: 0, bad: 0 });
        Ok(())
    }

    /// The next step; `None` at the end.
    pub fn step(&mut self) -> Result<Option<Step>> {
        loop {
            if let Some(step) = self.pending.take() {
                return Ok(Some(step));
            }
            let Some(level) = self.levels.last_mut() else { return Ok(None) };
            if level.next >= level.block.len() {
                self.levels.pop();
                continue;
            }
            let (leaf, own) = (level.block.leaf, level.block.pointer);
            let entry = level.block.entry(level.next).map(|(key, to)| (key.to_vec(), to));
            level.next += 1;
            let (key, pointer) = match entry {
                Ok(entry) => entry,
                Err(e) => return self.bad_entry(None, own, e),
            };
            if leaf {
                return match self.data.rising(pointer.offset, pointer.size.into()) {
                    Ok(()) => Ok(Some(Step::Block(key, pointer))),
                    Err(e) => self.bad_entry(Some(key), own, e.at(own.offset)),
                };
            }
            match self.enter(pointer) {
                Ok(()) => {}
                Err(e) if self.lossy && e.is_damage() => {
                    // What it leads to is not known, nor where that ends.
                    let (key, bytes) = (Some(key), pointer.range());
                    return Ok(Some(Step::Lost { key, bytes, error: e.to_string() }));
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// An entry that leads nowhere; a block with many of them is left.
    fn bad_entry(&mut self, key: Option<Vec<u8>>, block: BlockPointer, e: Error) -> Result<Option<Step>> {
        if !self.lossy || !e.is_damage() {
            return Err(e);
        }
        if let Some(level) = self.levels.last_mut() {
            level.bad += 1;
            if level.bad >= MOST_BAD {
                self.levels.pop();
            }
        }
        Ok(Some(Step::Lost { key, bytes: block.range(), error: e.to_string() }))
    }
}

fn index_step(block: &IndexBlock) -> Step {
    Step::Index { pointer: block.pointer, leaf: block.leaf, entries: block.len() }
}
