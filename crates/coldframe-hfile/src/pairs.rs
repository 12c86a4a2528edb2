//! Key/value pairs one after another, without Arrow.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{ErrorContext, Result};

use crate::content::BlockReader;
use crate::cursor::IndexCursor;
use crate::index::BlockRef;
use crate::order::RowOrder;
use crate::reader::RawFile;

/// All pairs of a file in its order; one block in memory at a time.
#[derive(Debug)]
pub struct Pairs {
    file: Arc<RawFile>,
    cursor: IndexCursor,
    reader: BlockReader,
    cells: Bytes,
    at: usize,
    block: u64,
    /// Blocks that cannot have one of these keys are passed over.
    only: Option<Arc<BTreeSet<Vec<u8>>>>,
}

impl Pairs {
    pub(crate) fn new(file: Arc<RawFile>) -> Self {
        Self {
            cursor: file.cursor(),
            reader: file.block_reader(),
            cells: Bytes::new(),
            at: 0,
            block: 0,
            only: None,
            file,
        }
    }

    /// The pairs of the blocks that may have one of `keys`, by the index; of all blocks where that is damaged.
    pub fn near(file: Arc<RawFile>, keys: Arc<BTreeSet<Vec<u8>>>) -> Self {
        let searchable = file.damage.is_none() && file.order == RowOrder::Bytes;
        Self { only: searchable.then_some(keys), ..Self::new(file) }
    }

    /// The next block to read.
    fn next_block(&mut self) -> Result<Option<BlockRef>> {
        while let Some(entry) = self.cursor.next_entry()? {
            let Some(only) = &self.only else { return Ok(Some(entry.block)) };
            // Cells of one key may go on in the next block.
            let end = self.cursor.peek_row().map_or(Bound::Unbounded, Bound::Included);
            let bounds = (Bound::Included(entry.row()), end);
            let disordered = matches!(bounds, (Bound::Included(a), Bound::Included(b)) if a > b);
            if disordered || only.range::<[u8], _>(bounds).next().is_some() {
                return Ok(Some(entry.block));
            }
        }
        Ok(None)
    }

    /// The next key and value.
    #[expect(clippy::should_implement_trait, reason = "what it returns borrows from the block")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        while self.at >= self.cells.len() {
            let Some(block) = self.next_block()? else { return Ok(None) };
            let bytes = self.file.read(block)?;
            self.block = block.offset;
            self.cells = self.reader.cells(&bytes, self.block, block.size)?.bytes;
            self.at = 0;
        }
        let (cell, end) =
            self.file.context.layout.read(&self.cells, self.at).at(self.block).within(|| "data block")?;
        self.at = end;
        Ok(Some((cell.row(&self.cells), cell.value(&self.cells))))
    }

    /// Goes on behind the block being read, such as one that is damaged.
    pub fn skip_block(&mut self) {
        self.at = self.cells.len();
    }

    /// Where the block being read stands in the file.
    pub fn block(&self) -> u64 {
        self.block
    }
}
