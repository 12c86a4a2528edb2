//! Walks the B-trees of a file.
//! The pointers of an index block are untrusted. A valid tree contains each block once, and the blocks of a level are in the
//! file in key order. So a pointer backwards, or a second pointer to a block, is damage. Therefore a walk
//! never loads more bytes of a level than the file has.

use std::ops::Range;

use coldframe_core::io::check_range;
use coldframe_core::{Error, ErrorContext, ReadAt, Result};
use coldframe_encoding::limits::Walk;

use crate::layout::block::{BlockFormat, BlockPointer};
use crate::layout::index::IndexBlock;

/// The length of the smallest index block that has an entry: the entry, its offset, the trailer and the
/// trailer's length.
const SMALLEST: u64 = 8;
/// After this many invalid entries, the walk leaves the block.
const MAX_BAD: u32 = 64;

/// Reads the index block at `pointer`. Every block that it points to must end at `end` or before.
fn load(source: &dyn ReadAt, format: &BlockFormat, pointer: BlockPointer, end: u64) -> Result<IndexBlock> {
    check_range(&pointer.range(), source.len())?;
    format.limits.metadata("index block", pointer.size.into())?;
    let stored = source.read(pointer.range())?;
    IndexBlock::parse(&stored, format, pointer, (end, source.len())).map_err(|e| e.at(pointer.offset))
}

/// A step of a walk.
#[derive(Clone, Debug)]
pub enum Step {
    /// An index block that was entered, if index blocks are requested.
    Index {
        /// The block's location.
        pointer: BlockPointer,
        /// Whether the block's entries point to data blocks.
        leaf: bool,
        /// The number of the block's entries.
        entries: usize,
    },
    /// A data block and its key.
    Block(Vec<u8>, BlockPointer),
    /// A part of the index that cannot be read.
    Lost {
        /// The first key of the part, if known.
        key: Option<Vec<u8>>,
        /// The range of the index block.
        bytes: Range<u64>,
        /// Why the part cannot be read.
        error: String,
    },
}

/// A level of a walk: its block, the next entry, and the number of invalid entries.
#[derive(Debug)]
struct Level {
    block: IndexBlock,
    next: usize,
    bad: u32,
}

/// Walks the entries of an index in order. One index block for each level of the tree is in memory.
#[derive(Debug)]
pub struct IndexWalk<'a> {
    source: &'a dyn ReadAt,
    format: BlockFormat,
    end: u64,
    levels: Vec<Level>,
    /// For each level below the root, the index blocks visited so far.
    visited: Vec<Walk>,
    /// The data blocks, which must follow each other in the file.
    data: Walk,
    lossy: bool,
    shows_index: bool,
    pending: Option<Step>,
}

impl<'a> IndexWalk<'a> {
    /// Starts at the root. `end`: the start of the footer.
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

    /// Makes the walk report parts that cannot be read as steps instead of errors.
    #[must_use]
    pub fn lossy(mut self) -> Self {
        self.lossy = true;
        self
    }

    /// Makes the walk report index blocks as steps, too.
    #[must_use]
    pub(crate) fn with_index_blocks(mut self) -> Self {
        self.shows_index = true;
        self.pending = self.levels.last().map(|level| index_step(&level.block));
        self
    }

    /// Moves to the last entry whose key is at most `key`, or to the first entry. This function must be
    /// called before the first step.
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
                    // It is then unknown which blocks this index block lists.
                    let (key, bytes) = (Some(key), pointer.range());
                    return Ok(Some(Step::Lost { key, bytes, error: e.to_string() }));
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Reports an invalid entry. Leaves the block after too many invalid entries.
    fn bad_entry(&mut self, key: Option<Vec<u8>>, block: BlockPointer, e: Error) -> Result<Option<Step>> {
        if !self.lossy || !e.is_damage() {
            return Err(e);
        }
        if let Some(level) = self.levels.last_mut() {
            level.bad += 1;
            if level.bad >= MAX_BAD {
                self.levels.pop();
            }
        }
        Ok(Some(Step::Lost { key, bytes: block.range(), error: e.to_string() }))
    }
}

fn index_step(block: &IndexBlock) -> Step {
    Step::Index { pointer: block.pointer, leaf: block.leaf, entries: block.len() }
}
