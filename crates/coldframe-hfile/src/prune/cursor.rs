//! Walks the index from data block to data block, reading levels below the root on demand.
//!
//! Writers store the blocks of each level in key order, just like data blocks. So a block that does not
//! follow the previous block of its level is an error; this also ends the walk if the index has a cycle.

use std::sync::Arc;

use coldframe_core::{Error, ErrorContext, Result};

use coldframe_encoding::limits::walk::Walk;

use crate::layout::block::HEADER_LEN;
use crate::layout::index::{BlockRef, IndexBlock};
use crate::open::RawFile;

/// A position in the index.
#[derive(Debug)]
pub struct IndexCursor {
    file: Arc<RawFile>,
    /// The index blocks from the root down, each with its next entry.
    path: Vec<(Arc<IndexBlock>, usize)>,
    /// The offset of the last data block returned.
    last: Option<u64>,
    /// For each level below the root, the index blocks read so far.
    read: Vec<Walk>,
    /// Leaf blocks before this offset are skipped. The last leaf block before this offset is read, since a
    /// leaf follows the data blocks that it lists.
    from: u64,
}

/// A data block and the position of its index entry.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The block.
    pub block: BlockRef,
    index: Arc<IndexBlock>,
    at: usize,
}

impl Entry {
    /// The row of the entry's key.
    pub fn row(&self) -> &[u8] {
        self.index.row(self.at)
    }
}

impl IndexCursor {
    /// A cursor before the first block.
    pub fn new(file: Arc<RawFile>) -> Self {
        let path = vec![(file.root.clone(), 0)];
        Self { file, path, last: None, read: Vec::new(), from: 0 }
    }

    /// Skips leaf blocks whose data blocks all begin before `offset`, except the last such leaf.
    pub(crate) fn skip_before(&mut self, offset: u64) {
        self.from = offset;
    }

    /// Moves to the last block whose row is before `row`, or to the first block.
    pub fn seek(&mut self, row: &[u8]) -> Result<()> {
        self.last = None;
        self.read.clear();
        let (root, order) = (self.file.root.clone(), self.file.order);
        let first = root.last_before_row(order, row);
        self.path.clear();
        self.path.push((root, first));
        while self.path.len() < self.levels() {
            let Some(child) = self.child()? else { return Ok(()) };
            let first = child.last_before_row(order, row);
            self.path.push((child, first));
        }
        Ok(())
    }

    fn levels(&self) -> usize {
        usize::try_from(self.file.trailer.index_levels).unwrap_or(usize::MAX).max(1)
    }

    /// Reads the index block of the next entry of the lowest open block, and moves past that entry.
    fn child(&mut self) -> Result<Option<Arc<IndexBlock>>> {
        let level = self.path.len();
        let Some((block, at)) = self.path.last_mut() else { return Ok(None) };
        let Some(child) = block.block(*at) else { return Ok(None) };
        *at += 1;
        if self.read.len() < level {
            self.read.push(Walk::of_file("index block", self.file.source.len(), HEADER_LEN as u64));
        }
        if let Some(walk) = self.read.get_mut(level - 1) {
            walk.rising(child.offset, child.size.into()).within(|| "data index")?;
        }
        self.file.index_block(child).map(Some).within(|| "data index")
    }

    /// The next data block. Fails if the blocks are not in file order, so the walk ends even if the index has
    /// a cycle.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        let levels = self.levels();
        loop {
            let depth = self.path.len();
            let Some((index, at)) = self.path.last_mut() else { return Ok(None) };
            let Some(block) = index.block(*at) else {
                if depth == 1 {
                    return Ok(None);
                }
                self.path.pop();
                continue;
            };
            if depth < levels {
                // The last leaf before `from` must not be skipped: it lists the last block before `from`, and
                // the bytes after that block must be checked.
                let is_before = |block: BlockRef| block.offset < self.from;
                let passed = is_before(block) && index.block(*at + 1).is_some_and(is_before);
                if depth + 1 == levels && passed {
                    *at += 1;
                    continue;
                }
                if let Some(child) = self.child()? {
                    self.path.push((child, 0));
                }
                continue;
            }
            let entry = Entry { block, index: index.clone(), at: *at };
            *at += 1;
            if self.last.is_some_and(|last| last >= block.offset) {
                let last = self.last.unwrap_or(0);
                let message =
                    format!("expected a data block after byte {last}, found one at {}", block.offset);
                return Err(Error::corrupt(message).within("data index"));
            }
            self.last = Some(block.offset);
            return Ok(Some(entry));
        }
    }

    /// The row of the entry that `next_entry` returns next, if that entry is in memory.
    pub(crate) fn peek_row(&self) -> Option<&[u8]> {
        if self.path.len() < self.levels() {
            return None;
        }
        let (index, at) = self.path.last()?;
        (*at < index.len()).then(|| index.row(*at))
    }
}
