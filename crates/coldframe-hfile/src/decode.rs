//! A run of blocks to batches.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use coldframe_core::{BatchIter, Damage, DecodeUnit, Error, ErrorContext, OnError, PlanRequest, Result};

use crate::block::Header;
use crate::cell::{CellRef, read_all};
use crate::columns::Columns;
use crate::content::{BlockContext, BlockReader};
use crate::index::BlockRef;

/// A part of a run.
#[derive(Clone, Debug)]
pub enum Piece {
    /// A data block.
    Data(BlockRef, Range<u64>),
    /// What is between two of them: leaf index blocks, bloom chunks.
    Between(Range<u64>),
}

/// A run of blocks, to be decoded.
pub(crate) struct DecodeRun(pub(crate) Blocks);

impl DecodeUnit for DecodeRun {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let Self(mut blocks) = *self;
        blocks.set_bytes(bytes);
        let columns = Columns::new(blocks.request.decode.clone(), blocks.request.scan.batch_rows)?;
        Ok(Box::new(Batches { blocks, columns, block: Bytes::new(), at: 0, done: false }))
    }
}

/// The data blocks of a run one after another.
pub(crate) struct Blocks {
    reader: BlockReader,
    bytes: Bytes,
    start: u64,
    pieces: VecDeque<Piece>,
    skips: bool,
    request: PlanRequest,
    /// The cells of the block read last.
    pub(crate) cells: Vec<CellRef>,
    /// Where that block is.
    pub(crate) offset: u64,
}

impl Blocks {
    /// The run `pieces`, which begins at `start` of the file.
    pub(crate) fn new(
        context: Arc<BlockContext>,
        request: PlanRequest,
        start: u64,
        pieces: VecDeque<Piece>,
    ) -> Self {
        Self {
            reader: BlockReader::new(context),
            bytes: Bytes::new(),
            start,
            pieces,
            skips: request.scan.on_error != OnError::Raise,
            request,
            cells: Vec::new(),
            offset: 0,
        }
    }

    /// Gives it what was fetched.
    pub(crate) fn set_bytes(&mut self, bytes: Vec<Bytes>) {
        self.bytes = bytes.into_iter().next().unwrap_or_default();
    }

    /// Reads the next data block: returns its plain form, and leaves its cells in `cells`. `check` may refuse it.
    pub(crate) fn next_block(
        &mut self,
        check: impl Fn(&[u8], &[CellRef]) -> Result<()>,
    ) -> Result<Option<Bytes>> {
        while let Some(piece) = self.pieces.pop_front() {
            let (range, read) = match piece {
                Piece::Between(range) => {
                    let read = self.between(&range).map(|()| None);
                    (range, read)
                }
                Piece::Data(block, range) => {
                    let read = self.data(block, &range, &check).map(Some);
                    (range, read)
                }
            };
            match read {
                Ok(Some(block)) => return Ok(Some(block)),
                Ok(None) => {}
                Err(e) if self.skips && e.is_damage() => {
                    self.cells.clear();
                    self.request.damage.push(Damage::from_error(&e, range, None));
                }
                Err(e) => return Err(e),
            }
        }
        self.cells.clear();
        Ok(None)
    }

    fn slice(&self, range: &Range<u64>) -> Bytes {
        let place = |n: u64| {
            usize::try_from(n.saturating_sub(self.start)).unwrap_or(usize::MAX).min(self.bytes.len())
        };
        self.bytes.slice(place(range.start)..place(range.end).max(place(range.start)))
    }

    fn data(
        &mut self,
        block: BlockRef,
        range: &Range<u64>,
        check: &impl Fn(&[u8], &[CellRef]) -> Result<()>,
    ) -> Result<Bytes> {
        let bytes = self.slice(range);
        let plain = self.reader.cells(&bytes, block.offset, block.size)?.bytes;
        read_all(self.reader.context().layout, &plain, &mut self.cells)
            .and_then(|()| check(&plain, &self.cells))
            .at(block.offset)
            .within(|| "data block")?;
        self.offset = block.offset;
        Ok(plain)
    }

    /// Bytes between data blocks must be blocks of other types.
    fn between(&self, range: &Range<u64>) -> Result<()> {
        let context = self.reader.context();
        let mut at = range.start;
        while at < range.end {
            let header =
                Header::parse(&self.slice(&(at..range.end)), at, context.with_checksums, &context.limits)?;
            let end = at.saturating_add(header.block_len());
            if header.block_type.is_data() {
                return Err(Error::corrupt(format!(
                    "expected a data block in the index, found one at {at} that is not"
                ))
                .at(at));
            }
            if end > range.end {
                let message = format!("expected a data block at {}, found a block up to {end}", range.end);
                return Err(Error::corrupt(message).at(at).within(header.block_type.name()));
            }
            at = end;
        }
        Ok(())
    }
}

struct Batches {
    blocks: Blocks,
    columns: Columns,
    /// The block whose cells are being handed out, from `at` on.
    block: Bytes,
    at: usize,
    done: bool,
}

impl Batches {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.columns.is_full() {
                return self.columns.finish().map(Some);
            }
            let rest = self.blocks.cells.get(self.at..).unwrap_or_default();
            if !rest.is_empty() {
                self.at += self.columns.append(&self.block, rest)?;
                continue;
            }
            self.at = 0;
            let columns = &self.columns;
            match self.blocks.next_block(|block, cells| columns.check(block, cells))? {
                Some(block) => self.block = block,
                None if self.columns.is_empty() => return Ok(None),
                None => return self.columns.finish().map(Some),
            }
        }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let batch = self.next_batch().transpose();
        self.done = !matches!(batch, Some(Ok(_)));
        batch
    }
}
