//! Key/value pairs one after another, without Arrow.

use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{ErrorContext, Result};

use crate::content::BlockReader;
use crate::cursor::IndexCursor;
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
}

impl Pairs {
    pub(crate) fn new(file: Arc<RawFile>) -> Self {
        Self {
            cursor: file.cursor(),
            reader: file.block_reader(),
            cells: Bytes::new(),
            at: 0,
            block: 0,
            file,
        }
    }

    /// The next key and value.
    #[expect(clippy::should_implement_trait, reason = "what it returns borrows from the block")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        while self.at >= self.cells.len() {
            let Some(entry) = self.cursor.next_entry()? else { return Ok(None) };
            let bytes = self.file.read(entry.block)?;
            self.block = entry.block.offset;
            self.cells = self.reader.cells(&bytes, self.block, entry.block.size)?.bytes;
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
