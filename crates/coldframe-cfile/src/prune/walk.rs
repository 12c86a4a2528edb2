//! Walks over the B-trees of a file.

use std::ops::Range;

use coldframe_core::{Error, ErrorContext, ReadAt, Result};

use crate::layout::block::{BlockFormat, BlockPointer};
use crate::layout::index::IndexBlock;

/// Reads the index block at `pointer`; what it points to must end at `end` or before.
pub(crate) fn load(
    source: &dyn ReadAt,
    format: &BlockFormat,
    pointer: BlockPointer,
    end: u64,
) -> Result<IndexBlock> {
    format.limits.metadata("index block", pointer.size.into())?;
    let stored = source.read(pointer.range())?;
    IndexBlock::parse(&stored, format, pointer, end).map_err(|e| e.at(pointer.offset))
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
        let root = load(source, &format, root, end).within(|| "root")?;
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
        load(self.source, &self.format, pointer, self.end).within(|| "index block")
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
