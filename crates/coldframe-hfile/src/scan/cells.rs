//! Iterates over cells without copying and without Arrow: this is the input for merging many HFiles.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{ErrorContext, Result};

use crate::layout::cell::Cell;
use crate::layout::content::BlockReader;
use crate::layout::index::BlockRef;
use crate::layout::order::RowOrder;
use crate::open::RawFile;
use crate::prune::cursor::IndexCursor;

/// All cells of a file in order, with one block in memory at a time.
///
/// For Hudi's key-value pairs, the row is the content of the key.
#[derive(Debug)]
pub struct CellReader {
    file: Arc<RawFile>,
    cursor: IndexCursor,
    reader: BlockReader,
    cells: Bytes,
    at: usize,
    block: u64,
    /// The first row that the current block may hold and, if the index states it, the last such row.
    rows: (Vec<u8>, Option<Vec<u8>>),
    /// If set, blocks that cannot contain any of these rows are skipped.
    only: Option<Arc<BTreeSet<Vec<u8>>>>,
}

impl CellReader {
    /// Reads all blocks, even if the file has lost its trailer or index (see [`RawFile::check`]).
    pub fn new(file: Arc<RawFile>) -> Self {
        Self {
            cursor: IndexCursor::new(file.clone()),
            reader: file.block_reader(),
            cells: Bytes::new(),
            at: 0,
            block: 0,
            rows: (Vec::new(), None),
            only: None,
            file,
        }
    }

    /// Reads only the blocks that may have one of `rows` according to the index; all blocks if the index is damaged.
    pub fn near(file: Arc<RawFile>, rows: Arc<BTreeSet<Vec<u8>>>) -> Self {
        let searchable = file.damage.is_none() && file.order == RowOrder::Bytes;
        Self { only: searchable.then_some(rows), ..Self::new(file) }
    }

    /// Moves to the first cell whose row is `row` or comes after it.
    pub fn seek(&mut self, row: &[u8]) -> Result<()> {
        if self.file.damage.is_some() {
            self.cursor = IndexCursor::new(self.file.clone());
        } else {
            self.cursor.seek(row)?;
        }
        (self.cells, self.at) = (Bytes::new(), 0);
        let (layout, order) = (self.file.context.layout, self.file.order);
        while self.fill()? {
            let (cell, end) = layout.cell(&self.cells, self.at).at(self.block).within(|| "data block")?;
            if order.compare(cell.row, row).is_ge() {
                break;
            }
            self.at = end;
        }
        Ok(())
    }

    /// The next block to read.
    fn next_block(&mut self) -> Result<Option<BlockRef>> {
        while let Some(entry) = self.cursor.next_entry()? {
            let next = self.cursor.peek_row();
            if let Some(only) = &self.only {
                // The next block's first row is included, since the cells of a row may continue from block to
                // block.
                let end = next.map_or(Bound::Unbounded, Bound::Included);
                let bounds = (Bound::Included(entry.row()), end);
                let disordered = matches!(bounds, (Bound::Included(a), Bound::Included(b)) if a > b);
                if !disordered && only.range::<[u8], _>(bounds).next().is_none() {
                    continue;
                }
            }
            if self.file.damage.is_none() {
                self.rows = (entry.row().to_vec(), next.map(<[u8]>::to_vec));
            }
            return Ok(Some(entry.block));
        }
        Ok(None)
    }

    /// Reads blocks until one has a cell; `false` if there are no more.
    fn fill(&mut self) -> Result<bool> {
        while self.at >= self.cells.len() {
            self.rows = (Vec::new(), None);
            let Some(block) = self.next_block()? else { return Ok(false) };
            self.block = block.offset;
            (self.cells, self.at) = (Bytes::new(), 0);
            let bytes = self.file.read(block)?;
            self.cells = self.reader.cells(&bytes, self.block, block.size)?.bytes;
        }
        Ok(true)
    }

    /// The next cell. After an error, [`Self::skip_block`] allows the caller to continue.
    #[expect(clippy::should_implement_trait, reason = "the cell borrows from the block")]
    pub fn next(&mut self) -> Result<Option<Cell<'_>>> {
        if !self.fill()? {
            return Ok(None);
        }
        let read = self.file.context.layout.cell(&self.cells, self.at);
        let (cell, end) = read.at(self.block).within(|| "data block")?;
        self.at = end;
        Ok(Some(cell))
    }

    /// Continues after the current block, for example if it is damaged.
    pub fn skip_block(&mut self) {
        self.at = self.cells.len();
    }

    /// The first row that the current block may hold and, if known, the last such row. If the last error was
    /// in the index, this is the range of all rows.
    pub fn rows_of_block(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        self.rows.clone()
    }

    /// The offset of the current block in the file.
    pub fn block(&self) -> u64 {
        self.block
    }
}
