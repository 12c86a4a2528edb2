//! Decodes a run of blocks into batches.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use arrow_buffer::bit_iterator::BitIndexIterator;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use coldframe_core::{BatchIter, Damage, DecodeUnit, Error, ErrorContext, OnError, PlanRequest, Result};

use crate::layout::block::Header;
use crate::layout::cell::{Cell, CellRef, CellSink, read_all};
use crate::layout::content::{BlockReader, OpenBlock};
use crate::layout::context::BlockContext;
use crate::layout::index::BlockRef;
use crate::scan::columns::{Checked, Columns};
use crate::scan::tally::Open;

/// A part of a run.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// A data block.
    Data(BlockRef, Range<u64>),
    /// The bytes between two data blocks: leaf index blocks, bloom chunks.
    Between(Range<u64>),
    /// Damaged bytes before the next piece, already recorded.
    Lost(Range<u64>),
}

/// A run of blocks to decode.
pub(crate) struct DecodeRun(pub(crate) Blocks);

impl DecodeUnit for DecodeRun {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let Self(mut blocks) = *self;
        blocks.set_bytes(bytes);
        Ok(Box::new(Batches::new(blocks, Blocks::next_into)?))
    }
}

/// The data blocks of a run, in order.
pub(crate) struct Blocks {
    reader: BlockReader,
    bytes: Bytes,
    start: u64,
    pieces: VecDeque<Piece>,
    skips: bool,
    request: PlanRequest,
    /// The cells of the current block.
    pub(crate) cells: Vec<CellRef>,
    /// The offset of the current block.
    pub(crate) offset: u64,
    /// Damaged bytes that no call of [`Self::take_lost`] has returned yet.
    lost: Option<Range<u64>>,
    /// Damage from this offset on is recorded by another split.
    foreign: u64,
    tally: Option<Open>,
}

impl Blocks {
    /// Creates the decoder of the run `pieces`, which begins at `start` in the file.
    pub(crate) fn new(
        context: Arc<BlockContext>,
        request: PlanRequest,
        start: u64,
        pieces: VecDeque<Piece>,
        foreign: u64,
        tally: Option<Open>,
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
            lost: None,
            foreign,
            tally,
        }
    }

    /// Empty columns for all fields to decode.
    fn all_columns(&self) -> Result<Columns> {
        self.columns(self.request.decode.clone())
    }

    /// Empty columns for the fields of `schema`.
    pub(crate) fn columns(&self, schema: SchemaRef) -> Result<Columns> {
        Columns::new(schema, self.request.scan.batch_rows)
    }

    /// Supplies the bytes that were fetched for the run.
    pub(crate) fn set_bytes(&mut self, bytes: Vec<Bytes>) {
        self.bytes = bytes.into_iter().next().unwrap_or_default();
    }

    /// Decodes the next data block: returns its content in plain form and puts its cells into `cells`.
    pub(crate) fn next_block(&mut self) -> Result<Option<Bytes>> {
        let mut cells = std::mem::take(&mut self.cells);
        cells.clear();
        let read = self.next_with(|reader, bytes, block| {
            let plain = reader.cells(bytes, block.offset, block.size)?.bytes;
            let layout = reader.context().layout;
            read_all(layout, &plain, &mut cells).at(block.offset).within(|| "data block")?;
            Ok((plain, block.offset))
        });
        let Some((plain, offset)) = read? else { return Ok(None) };
        (self.cells, self.offset) = (cells, offset);
        self.count(self.cells.len());
        Ok(Some(plain))
    }

    /// Appends the cells of the next data block that pass `test` to `columns`. `test` gets the columns `of_filter` of all cells.
    /// Returns the number of cells, and of cells that pass. A block counts as damaged in exactly the cases in
    /// which [`Self::next_into`] reports damage.
    pub(crate) fn next_passing(
        &mut self,
        of_filter: &mut Columns,
        columns: &mut Columns,
        mut test: impl FnMut(&RecordBatch) -> Result<BooleanBuffer>,
    ) -> Result<Option<(usize, usize)>> {
        let read = self.next_with(|reader, bytes, block| {
            of_filter.begin_block();
            columns.begin_block();
            let read = reader.with_block(bytes, block.offset, block.size, |open| {
                passing(open, block.offset, of_filter, columns, &mut test)
            });
            if read.is_err() {
                of_filter.drop_block();
                columns.drop_block();
            }
            read
        });
        let counts = read?;
        self.count(counts.map_or(0, |(cells, _)| cells));
        Ok(counts)
    }

    /// Appends the next data block to `columns`; `false` if there is none.
    pub(crate) fn next_into(&mut self, columns: &mut Columns) -> Result<bool> {
        let read = self.next_with(|reader, bytes, block| {
            let sink = columns.begin_block();
            let read = reader.each_cell(bytes, block.offset, block.size, sink);
            let read = read.and_then(|()| columns.end_block().at(block.offset).within(|| "data block"));
            if read.is_err() {
                columns.drop_block();
            }
            read
        });
        let appended = read?.is_some();
        if appended {
            self.count(columns.last_rows());
        }
        Ok(appended)
    }

    fn count(&mut self, cells: usize) {
        if let Some(tally) = &mut self.tally {
            tally.cells = tally.cells.saturating_add(cells as u64);
        }
    }

    /// The damaged bytes between the last call and the current block, or the end of the run.
    pub(crate) fn take_lost(&mut self) -> Option<Range<u64>> {
        self.lost.take()
    }

    fn lose(&mut self, range: Range<u64>) {
        if let Some(tally) = &mut self.tally {
            tally.lost = true;
        }
        let start = self.lost.as_ref().map_or(range.start, |lost| lost.start);
        self.lost = Some(start..range.end);
    }

    /// Applies `read` to the next data block. Blocks for which it fails are skipped; if `on_error` is
    /// `raise`, the error is returned.
    fn next_with<T>(
        &mut self,
        mut read: impl FnMut(&mut BlockReader, &Bytes, BlockRef) -> Result<T>,
    ) -> Result<Option<T>> {
        while let Some(piece) = self.pieces.pop_front() {
            let (range, result) = match piece {
                Piece::Lost(range) => {
                    self.lose(range);
                    continue;
                }
                Piece::Between(range) => {
                    let result = self.between(&range).map(|()| None);
                    (range, result)
                }
                Piece::Data(block, range) => {
                    let bytes = self.slice(&range);
                    (range, read(&mut self.reader, &bytes, block).map(Some))
                }
            };
            match result {
                Ok(Some(block)) => return Ok(Some(block)),
                Ok(None) => {}
                Err(e) if self.skips && e.is_damage() => {
                    if range.start < self.foreign {
                        self.request.damage.push(Damage::from_error(&e, range.clone(), None));
                    }
                    self.lose(range);
                }
                Err(e) => return Err(e),
            }
        }
        match self.tally.take().map_or(Ok(()), Open::close) {
            Err(e) if self.skips => {
                let at = e.offset().unwrap_or(0);
                self.request.damage.push(Damage::from_error(&e, at..at, Some(0)));
                Ok(None)
            }
            ended => ended.map(|()| None),
        }
    }

    /// The maximum size of a block in plain form.
    fn max_bytes(&self) -> usize {
        usize::try_from(self.reader.context().limits.max_block_bytes).unwrap_or(usize::MAX)
    }

    fn slice(&self, range: &Range<u64>) -> Bytes {
        let place = |n: u64| {
            usize::try_from(n.saturating_sub(self.start)).unwrap_or(usize::MAX).min(self.bytes.len())
        };
        self.bytes.slice(place(range.start)..place(range.end).max(place(range.start)))
    }

    /// Checks that bytes between data blocks are blocks of other types.
    fn between(&self, range: &Range<u64>) -> Result<()> {
        let context = self.reader.context();
        let mut at = range.start;
        while at < range.end {
            let header = Header::parse(&self.slice(&(at..range.end)), at, context.with_checksums)?;
            let end = at.saturating_add(header.block_len());
            if header.block_type.is_data() {
                let message = format!("expected a data block in the index, found one at {at} that is not");
                return Err(Error::corrupt(message).at(at).within("data index"));
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

/// Tests the cells of a block with the filter and, if some cells pass, decodes these cells in full.
fn passing(
    open: &mut OpenBlock<'_>,
    offset: u64,
    of_filter: &mut Columns,
    columns: &mut Columns,
    test: &mut impl FnMut(&RecordBatch) -> Result<BooleanBuffer>,
) -> Result<(usize, usize)> {
    let mut checked = Checked::new(of_filter, columns);
    open.each_cell(&mut checked)?;
    checked.end_block().and_then(|()| of_filter.end_block()).at(offset).within(|| "data block")?;
    let room = of_filter.room();
    let passes = test(&of_filter.finish()?)?;
    of_filter.reserve(&room);
    let passing = passes.count_set_bits();
    if passing > 0 {
        open.each_cell(&mut Chosen::new(&passes, columns.begin_block()))?;
        columns.end_block().at(offset).within(|| "data block")?;
    }
    Ok((passes.len(), passing))
}

/// Passes on the cells whose bit is set. They are few, so their values are copied instead of keeping the block in memory.
struct Chosen<'a, S> {
    places: BitIndexIterator<'a>,
    /// The index of the next cell to pass on.
    next: Option<usize>,
    /// The index of the current cell.
    at: usize,
    sink: &'a mut S,
}

impl<'a, S> Chosen<'a, S> {
    fn new(passes: &'a BooleanBuffer, sink: &'a mut S) -> Self {
        let mut places = passes.set_indices();
        Self { next: places.next(), places, at: 0, sink }
    }
}

impl<S: CellSink> CellSink for Chosen<'_, S> {
    #[inline(always)]
    fn cell(&mut self, cell: &Cell<'_>) -> Result<()> {
        let at = self.at;
        self.at += 1;
        if self.next != Some(at) {
            return Ok(());
        }
        self.next = self.places.next();
        self.sink.cell(cell)
    }

    fn is_done(&self) -> bool {
        self.next.is_none()
    }
}

/// The batches of a run. `fill` appends the next block, or a part of it, to the columns; it returns `false`
/// if there is no more.
pub(crate) struct Batches<F> {
    blocks: Blocks,
    columns: Columns,
    fill: F,
    /// Rows that are left for the next batch: a block may have more rows than a batch.
    ready: Option<RecordBatch>,
    done: bool,
}

impl<F: FnMut(&mut Blocks, &mut Columns) -> Result<bool>> Batches<F> {
    /// The batches of `blocks`.
    pub(crate) fn new(blocks: Blocks, fill: F) -> Result<Self> {
        Ok(Self { columns: blocks.all_columns()?, blocks, fill, ready: None, done: false })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(batch) = self.ready.take() {
            return Ok(Some(self.hand_out(batch)));
        }
        let most = self.blocks.max_bytes();
        let mut first = self.columns.is_empty();
        while !self.columns.is_full_for(most) {
            if !(self.fill)(&mut self.blocks, &mut self.columns)? {
                break;
            }
            if std::mem::take(&mut first) {
                self.columns.expect_blocks(self.blocks.pieces.len());
            }
        }
        if self.columns.is_empty() {
            return Ok(None);
        }
        let batch = self.columns.finish()?;
        Ok(Some(self.hand_out(batch)))
    }

    /// Returns the first rows of `batch`, up to a batch's maximum; keeps the others.
    fn hand_out(&mut self, batch: RecordBatch) -> RecordBatch {
        let (most, rows) = (self.columns.batch_rows(), batch.num_rows());
        if rows <= most {
            return batch;
        }
        self.ready = Some(batch.slice(most, rows - most));
        batch.slice(0, most)
    }
}

impl<F: FnMut(&mut Blocks, &mut Columns) -> Result<bool>> Iterator for Batches<F> {
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
