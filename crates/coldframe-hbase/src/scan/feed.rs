//! The blocks of one store file that a scan needs, in row order.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{Error, ErrorContext, Result};
use coldframe_hfile::{BlockReader, BlockRef, CellLayout, Entry, IndexCursor, RowOrder};

use crate::regions::files::StoreFile;
use crate::wal::edits;

/// A block and the range of its rows.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The location of the block.
    pub(crate) block: BlockRef,
    /// A lower bound of the block's rows, which need not be a row of the block.
    pub(crate) first: Vec<u8>,
    /// An upper bound of the block's rows, inclusive; `None` for the last block.
    pub(crate) last: Option<Vec<u8>>,
}

/// Follows the index of a file from block to block.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) file: Arc<StoreFile>,
    cursor: IndexCursor,
    ahead: Option<Entry>,
    /// The blocks of the next unit.
    pub(crate) pieces: VecDeque<Piece>,
    /// The row from which the index cannot be read, and the reason.
    pub(crate) broken: Option<(Vec<u8>, Error)>,
    /// Blocks that exceed the limit for a block.
    pub(crate) too_long: Vec<(Piece, Error)>,
}

impl Feed {
    /// A feed that begins with the first block that may have `row` or a later row.
    pub(crate) fn new(file: Arc<StoreFile>, row: &[u8]) -> Self {
        let mut cursor = IndexCursor::new(file.raw().clone());
        let row = if file.lower.as_slice() > row { file.lower.clone() } else { row.to_vec() };
        let sought = if row.is_empty() { Ok(()) } else { cursor.seek(&row) };
        let mut feed =
            Self { file, cursor, ahead: None, pieces: VecDeque::new(), broken: None, too_long: Vec::new() };
        match sought {
            Ok(()) => feed.step(&row),
            Err(e) => feed.broken = Some((row, e)),
        }
        feed
    }

    /// A feed without blocks, because the index cannot be trusted from `row` on.
    pub(crate) fn broken(file: Arc<StoreFile>, row: Vec<u8>, e: Error) -> Self {
        let cursor = IndexCursor::new(file.raw().clone());
        let (pieces, too_long) = (VecDeque::new(), Vec::new());
        Self { file, cursor, ahead: None, pieces, broken: Some((row, e)), too_long }
    }

    /// The row with which the next block begins.
    pub(crate) fn next_row(&self) -> Option<&[u8]> {
        self.ahead.as_ref().map(Entry::row)
    }

    /// Adds the next block to the unit; returns its size on disk.
    pub(crate) fn take(&mut self) -> u64 {
        let Some(entry) = self.ahead.take() else { return 0 };
        let first = entry.row().to_vec();
        self.step(&first);
        let last = self.ahead.as_ref().map(|entry| entry.row().to_vec());
        // If the next index entry cannot be read, it is unknown at which row the block ends.
        let piece = Piece { block: entry.block, first, last };
        let range = self.file.raw().range_of(entry.block);
        let len = range.end.saturating_sub(range.start);
        match self.file.raw().limits().block("a block", len).at(range.start) {
            Ok(_) => self.pieces.push_back(piece),
            Err(e) => self.too_long.push((piece, e)),
        }
        len
    }

    /// Makes the feed take no more blocks.
    pub(crate) fn end(&mut self) {
        self.ahead = None;
    }

    fn step(&mut self, row: &[u8]) {
        match self.cursor.next_entry() {
            Ok(entry) => self.ahead = entry,
            Err(e) => self.broken = Some((row.to_vec(), e)),
        }
    }

    /// The blocks of a unit that ends before row `end`. Blocks that may have later rows also stay for the
    /// next unit.
    pub(crate) fn cut(&mut self, order: RowOrder, end: Option<&[u8]>) -> Vec<Piece> {
        let all: Vec<Piece> = self.pieces.drain(..).collect();
        if let Some(end) = end {
            let reaches = |p: &&Piece| p.last.as_deref().is_none_or(|last| order.compare(last, end).is_ge());
            self.pieces = all.iter().filter(reaches).cloned().collect();
        }
        all
    }
}

/// Properties that a source of cells, such as a file, gives to all of its cells.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) family: usize,
    /// The rank of the source: of cells with equal keys and sequence ids, the cell from the source with the
    /// greater rank is newer.
    pub(crate) rank: usize,
    /// A sequence id for all cells of the source, which replaces their own.
    pub(crate) id: Option<i64>,
    pub(crate) layout: CellLayout,
}

/// The cells of one source in a unit, block by block.
#[derive(Debug)]
pub(crate) enum Cells {
    /// The blocks of a store file.
    File(Box<Blocks>),
    /// The cells in memory, as one block; `None` once the block has been returned.
    Held(Origin, Option<Bytes>),
}

impl Cells {
    pub(crate) fn origin(&self) -> &Origin {
        match self {
            Self::File(blocks) => &blocks.origin,
            Self::Held(origin, _) => origin,
        }
    }

    /// The cells of edits, which are newer than the cells of all files.
    pub(crate) fn edits(family: usize, cells: Bytes) -> Self {
        Self::Held(Origin { family, rank: usize::MAX, id: None, layout: edits::LAYOUT }, Some(cells))
    }

    /// Cells of a store file from a look-up.
    pub(crate) fn from_look_up(file: &StoreFile, cells: Bytes) -> Self {
        let (family, rank, id) = (file.family, file.rank, file.of_cells);
        Self::Held(Origin { family, rank, id, layout: edits::LAYOUT }, Some(cells))
    }

    /// The cells of the next block that has cells in the unit's range, in plain form, and what the index
    /// states about the block.
    pub(crate) fn next(&mut self) -> std::result::Result<Option<(Bytes, Option<Piece>)>, Box<BadBlock>> {
        match self {
            Self::File(blocks) => Ok(blocks.next()?.map(|(cells, piece)| (cells, Some(piece)))),
            Self::Held(_, cells) => Ok(cells.take().map(|cells| (cells, None))),
        }
    }

    /// The store file, if the source is a store file.
    pub(crate) fn file(&self) -> Option<&Arc<StoreFile>> {
        match self {
            Self::File(blocks) => Some(&blocks.file),
            Self::Held(..) => None,
        }
    }
}

/// Decodes the blocks of one store file in a unit.
#[derive(Debug)]
pub(crate) struct Blocks {
    file: Arc<StoreFile>,
    origin: Origin,
    reader: BlockReader,
    /// The remaining blocks and their bytes.
    pieces: VecDeque<(Piece, Bytes)>,
    /// The rows of the unit, limited to the rows that the region has of the file.
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
}

/// A block that could not be read.
#[derive(Debug)]
pub(crate) struct BadBlock {
    pub(crate) piece: Piece,
    pub(crate) error: Error,
}

impl Blocks {
    /// Decodes the blocks `pieces` of `file`. Returns only rows from `lower` up to (not including) `upper`.
    pub(crate) fn new(
        file: Arc<StoreFile>,
        pieces: VecDeque<(Piece, Bytes)>,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Self {
        let lower = lower.max(file.lower.as_slice()).to_vec();
        let upper = match (upper, file.upper.as_deref()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let upper = upper.map(<[u8]>::to_vec);
        let reader = file.raw().block_reader();
        let origin =
            Origin { family: file.family, rank: file.rank, id: file.of_cells, layout: file.raw().layout() };
        Self { origin, reader, pieces, lower, upper, file }
    }

    fn next(&mut self) -> std::result::Result<Option<(Bytes, Piece)>, Box<BadBlock>> {
        while let Some((piece, bytes)) = self.pieces.pop_front() {
            match self.decode(&piece, &bytes) {
                Ok(cells) if cells.is_empty() => {}
                Ok(cells) => return Ok(Some((cells, piece))),
                Err(error) => return Err(Box::new(BadBlock { piece, error })),
            }
        }
        Ok(None)
    }

    fn decode(&mut self, piece: &Piece, bytes: &Bytes) -> Result<Bytes> {
        let order = self.file.raw().order();
        let cells = self.reader.cells(bytes, piece.block.offset, piece.block.size)?.bytes;
        let within = |e: Error| e.at(piece.block.offset).within("data block");
        if !self.file.raw().context().are_checked() {
            self.check(&cells).map_err(within)?;
        }
        if !cells.is_empty() {
            let (first, _) = self.origin.layout.cell(&cells, 0).map_err(within)?;
            if order.compare(first.row, &piece.first).is_lt() {
                let (least, actual) = (piece.first.escape_ascii(), first.row.escape_ascii());
                let message =
                    format!("expected rows from \"{least}\", as the index states, found \"{actual}\"");
                return Err(within(Error::corrupt(message)).within("data index"));
            }
        }
        let mut start = 0;
        // Blocks that the index shows to be entirely in the range are not searched.
        if order.compare(&piece.first, &self.lower).is_lt() {
            start = self.find(&cells, 0, &self.lower, order).map_err(within)?;
        }
        let mut end = cells.len();
        if let Some(upper) = &self.upper
            && piece.last.as_deref().is_none_or(|last| order.compare(last, upper).is_ge())
        {
            end = self.find(&cells, start, upper, order).map_err(within)?;
        }
        Ok(cells.slice(start..end))
    }

    /// Whether all cells can be read, so that no cell of a lost block is handed out.
    fn check(&self, cells: &[u8]) -> Result<()> {
        let mut at = 0;
        while at < cells.len() {
            (_, at) = self.origin.layout.cell(cells, at)?;
        }
        Ok(())
    }

    /// The offset of the first cell, from `at` on, whose row is not before `row`.
    fn find(&self, cells: &[u8], mut at: usize, row: &[u8], order: RowOrder) -> Result<usize> {
        while at < cells.len() {
            let (cell, end) = self.origin.layout.cell(cells, at)?;
            if order.compare(cell.row, row).is_ge() {
                break;
            }
            at = end;
        }
        Ok(at)
    }
}
