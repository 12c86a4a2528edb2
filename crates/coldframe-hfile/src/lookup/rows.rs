//! The cells of a range of rows, in either direction.
//!
//! In the backward direction, the last row comes first, but the cells of each row stay in file order. So a
//! row is returned only after the block with its first cells has been read.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use coldframe_core::io::read_coalesced;
use coldframe_core::{Error, ErrorContext, KeyRange, Result};

use crate::layout::cell::{Cell, CellRef, read_all};
use crate::layout::content::BlockReader;
use crate::layout::index::BlockRef;
use crate::layout::order::RowOrder;
use crate::open::RawFile;
use crate::options::View;
use crate::prune::cursor::IndexCursor;
use crate::prune::prove;
use crate::scan::columns::Columns;
use crate::scan::visible::{Policy, Visibility};

/// Maximum bytes of blocks that are read together. A scan begins with one block, and doubles the number each
/// time.
const MAX_RUN_BYTES: u64 = 4 << 20;

/// A request: the rows and cells to select.
#[derive(Clone, Debug, Default)]
pub struct RowQuery {
    /// The first row of the range.
    pub start: Option<Vec<u8>>,
    /// The end of the range of rows, excluded.
    pub stop: Option<Vec<u8>>,
    /// The prefix that rows must have.
    pub prefix: Option<Vec<u8>>,
    /// Whether rows are returned in reverse order.
    pub reverse: bool,
    /// `family` or `family:qualifier`; if empty, all columns.
    pub columns: Vec<String>,
    /// The range of timestamps, whose end is excluded.
    pub time_range: Option<(i64, i64)>,
    /// How many of the newest visible versions of each column to return. `None` returns all cells as stored.
    pub max_versions: Option<u32>,
    /// Maximum rows of a batch.
    pub batch_rows: usize,
}

/// A block in plain form, and its selected cells.
type BlockCells = (Bytes, Vec<CellRef>);

/// A scan of rows.
#[derive(Debug)]
pub struct RowScan {
    file: Arc<RawFile>,
    reader: BlockReader,
    columns: Columns,
    filter: Filter,
    direction: Direction,
    /// Blocks that were read but not parsed yet.
    read: VecDeque<(BlockRef, Bytes)>,
    /// The end of the block that was planned last or, for a backward scan, its start.
    at: Option<u64>,
    run: u64,
    /// Cells to return, in this order.
    ready: VecDeque<BlockCells>,
    /// Cells of a row whose first block has not been read yet.
    pending: VecDeque<BlockCells>,
    done: bool,
}

#[derive(Debug)]
enum Direction {
    Forward(IndexCursor),
    /// For a backward scan: the remaining blocks, in file order.
    Backward(Vec<BlockRef>),
}

#[derive(Debug)]
struct Filter {
    order: RowOrder,
    start: Option<Vec<u8>>,
    stop: Option<Vec<u8>>,
    prefix: Option<Vec<u8>>,
    columns: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    time_range: Option<(i64, i64)>,
    max_versions: Option<u32>,
    visible: Visibility,
}

/// The next block that may hold rows before the end of the filter's range. The first block is always
/// returned.
fn next_block(cursor: &mut IndexCursor, filter: &Filter, first: bool) -> Result<Option<BlockRef>> {
    let entry = cursor.next_entry()?;
    let behind =
        |row: &[u8]| filter.stop.as_ref().is_some_and(|stop| filter.order.compare(row, stop).is_ge());
    Ok(entry.filter(|entry| first || !behind(entry.row())).map(|entry| entry.block))
}

impl Filter {
    fn new(query: &RowQuery, order: RowOrder) -> Self {
        let (mut start, mut stop) = (query.start.clone(), query.stop.clone());
        if let (Some(prefix), RowOrder::Bytes) = (&query.prefix, order) {
            start = start.max(Some(prefix.clone()));
            let end = successor(prefix);
            stop = match (stop, end) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        let column = |name: &String| match name.split_once(':') {
            Some((family, qualifier)) => (family.as_bytes().to_vec(), Some(qualifier.as_bytes().to_vec())),
            None => (name.as_bytes().to_vec(), None),
        };
        Self {
            order,
            start,
            stop,
            prefix: query.prefix.clone(),
            columns: query.columns.iter().map(column).collect(),
            time_range: query.time_range,
            max_versions: query.max_versions,
            visible: Visibility::default(),
        }
    }

    /// The cells of a block whose rows are in the range.
    fn in_range(&self, block: &[u8], cells: &[CellRef]) -> Range<usize> {
        let before = |bound: &Option<Vec<u8>>, open: usize| {
            bound
                .as_ref()
                .map_or(open, |b| cells.partition_point(|c| self.order.compare(c.row(block), b).is_lt()))
        };
        let start = before(&self.start, 0);
        start..before(&self.stop, cells.len()).max(start)
    }

    /// Drops the cells that are not selected.
    fn retain(&mut self, block: &[u8], cells: &mut Vec<CellRef>) -> Result<()> {
        if self.columns.is_empty()
            && self.time_range.is_none()
            && self.max_versions.is_none()
            && self.prefix.is_none()
        {
            return Ok(());
        }
        let mut failed = None;
        cells.retain(|cell| {
            let of_prefix = self.prefix.as_ref().is_none_or(|p| cell.row(block).starts_with(p));
            of_prefix && self.admits_cell(&cell.cell(block)).unwrap_or_else(|e| failed.replace(e).is_some())
        });
        failed.map_or(Ok(()), Err)
    }

    fn admits_cell(&mut self, cell: &Cell<'_>) -> Result<bool> {
        let visible = match (self.max_versions, self.time_range) {
            (Some(most), range) => self.visible.admits(cell, &Policy::newest(most, range))?,
            (None, Some((from, to))) => from <= cell.timestamp && cell.timestamp < to,
            (None, None) => true,
        };
        let named = |(family, qualifier): &(Vec<u8>, Option<Vec<u8>>)| {
            family == cell.family && qualifier.as_ref().is_none_or(|q| q == cell.qualifier)
        };
        Ok(visible && (self.columns.is_empty() || self.columns.iter().any(named)))
    }
}

/// The smallest string greater than all strings that begin with `prefix`, if there is one.
pub fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|b| *b < 0xff)?;
    let mut end = prefix.get(..=last)?.to_vec();
    if let Some(byte) = end.last_mut() {
        *byte += 1;
    }
    Some(end)
}

impl RowScan {
    /// The cells of `raw` that `query` selects.
    pub(crate) fn new(raw: &Arc<RawFile>, view: View, schema: &SchemaRef, query: &RowQuery) -> Result<Self> {
        raw.check()?;
        let of_cells =
            !query.columns.is_empty() || query.time_range.is_some() || query.max_versions.is_some();
        if view == View::KeyValue && of_cells {
            return Err(Error::invalid(
                "`columns`, `time_range` and `max_versions` are for cells; open the file with view=\"cells\"",
            ));
        }
        let filter = Filter::new(query, raw.order);
        let range = KeyRange { lower: filter.start.clone(), upper: filter.stop.clone() };
        if let Some(lie) = prove::contradiction(raw, &range)? {
            return Err(lie);
        }
        let mut cursor = IndexCursor::new(raw.clone());
        if let Some(start) = &filter.start {
            cursor.seek(start)?;
        }
        let direction = if query.reverse {
            let mut blocks = Vec::new();
            while let Some(block) = next_block(&mut cursor, &filter, blocks.is_empty())? {
                blocks.push(block);
            }
            Direction::Backward(blocks)
        } else {
            Direction::Forward(cursor)
        };
        Ok(Self {
            reader: raw.block_reader(),
            columns: Columns::new(schema.clone(), query.batch_rows)?.bounded(raw.limits()),
            filter,
            direction,
            read: VecDeque::new(),
            at: None,
            run: 0,
            ready: VecDeque::new(),
            pending: VecDeque::new(),
            done: false,
            file: raw.clone(),
        })
    }

    /// The columns of the batches.
    pub fn schema(&self) -> &SchemaRef {
        self.columns.schema()
    }

    /// The next batch; never empty.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while !self.columns.is_full() {
            if let Some((block, cells)) = self.ready.front_mut() {
                let taken = self.columns.append(block, cells)?;
                if taken < cells.len() {
                    cells.drain(..taken);
                } else {
                    self.ready.pop_front();
                }
                continue;
            }
            if self.done {
                break;
            }
            self.advance()?;
        }
        if self.columns.is_empty() { Ok(None) } else { self.columns.finish().map(Some) }
    }

    /// Reads the next block and selects its cells.
    fn advance(&mut self) -> Result<()> {
        let Some((block, bytes)) = self.next_read()? else {
            self.done = true;
            let pending = std::mem::take(&mut self.pending);
            return self.hand_out(pending);
        };
        let plain = self.reader.cells(&bytes, block.offset, block.size)?.bytes;
        let mut cells = Vec::new();
        read_all(self.file.context.layout, &plain, &mut cells)
            .and_then(|()| self.columns.check(&plain, &cells))
            .at(block.offset)
            .within(|| "data block")?;
        let range = self.filter.in_range(&plain, &cells);
        let behind = range.end < cells.len();
        cells.truncate(range.end);
        cells.drain(..range.start);
        if matches!(self.direction, Direction::Forward(_)) {
            self.done = behind && self.filter.stop.is_some();
            return self.hand_out(VecDeque::from([(plain, cells)]));
        }
        self.take_rows(&plain, cells)
    }

    /// Takes the rows of a block, the last row first. The block's first row may begin in an earlier block.
    fn take_rows(&mut self, plain: &Bytes, mut cells: Vec<CellRef>) -> Result<()> {
        while let Some(row) = cells.last().map(|c| c.row(plain)) {
            let first = cells.iter().rposition(|c| c.row(plain) != row).map_or(0, |i| i + 1);
            let pending_row = self.pending.front().and_then(|(block, cells)| Some(cells.first()?.row(block)));
            if pending_row.is_some_and(|pending| pending != row) {
                let whole = std::mem::take(&mut self.pending);
                self.hand_out(whole)?;
            }
            let row_cells = cells.split_off(first);
            self.pending.push_front((plain.clone(), row_cells));
        }
        Ok(())
    }

    /// Filters cells, which are in file order, and queues them to be returned.
    fn hand_out(&mut self, parts: VecDeque<BlockCells>) -> Result<()> {
        for (block, mut cells) in parts {
            self.filter.retain(&block, &mut cells)?;
            if !cells.is_empty() {
                self.ready.push_back((block, cells));
            }
        }
        Ok(())
    }

    /// Fails if there is a data block between a block and the one that was planned before it.
    fn check_between(&mut self, block: &Range<u64>) -> Result<()> {
        let (forward, at) = (matches!(self.direction, Direction::Forward(_)), self.at);
        let between = match (forward, at) {
            (_, None) => 0..0,
            (true, Some(end)) => end..block.start,
            (false, Some(start)) => block.end..start,
        };
        self.at = Some(if forward { block.end } else { block.start });
        match prove::data_block_in(&self.file, between)? {
            None => Ok(()),
            Some(at) => {
                let message = format!("expected a data block in the index, found one at {at} that is not");
                Err(Error::corrupt(message).at(at).within("data index"))
            }
        }
    }

    /// The next block with its bytes. Several blocks are read at once.
    fn next_read(&mut self) -> Result<Option<(BlockRef, Bytes)>> {
        if let Some(next) = self.read.pop_front() {
            return Ok(Some(next));
        }
        let mut blocks = Vec::new();
        let mut bytes = 0;
        while blocks.is_empty() || bytes < self.run {
            let next = match &mut self.direction {
                Direction::Forward(cursor) => {
                    next_block(cursor, &self.filter, blocks.is_empty() && self.run == 0)?
                }
                Direction::Backward(blocks) => blocks.pop(),
            };
            let Some(block) = next else { break };
            let range = self.file.range_of(block);
            self.check_between(&range)?;
            self.file.context.limits.block("a block", range.end - range.start).at(block.offset)?;
            bytes += range.end - range.start;
            blocks.push(block);
        }
        self.run = (bytes * 2).min(MAX_RUN_BYTES);
        let ranges: Vec<Range<u64>> = blocks.iter().map(|b| self.file.range_of(*b)).collect();
        self.read.extend(blocks.into_iter().zip(read_coalesced(self.file.source.as_ref(), &ranges)?));
        Ok(self.read.pop_front())
    }
}

impl Iterator for RowScan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_batch();
        if batch.is_err() {
            self.done = true;
            self.ready.clear();
        }
        batch.transpose()
    }
}
