//! Collects cells into Arrow columns, for the views `cells` and `kv`.
//!
//! Each cell is appended to all columns before the next cell, so a block is loaded into the processor's
//! caches only once. A block with an error is removed as a whole.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use coldframe_core::arrays::blocks::MAX_KEPT;
use coldframe_core::{Error, Limits, Result, arrow_error};

use super::parts::{BATCH_BYTES, Checked, Parts, Room};
use crate::layout::cell::{Cell, CellLayout, CellRef, CellSink};
use crate::options::View;
use crate::scan::binary::Binary;
use crate::scan::names::names_type;
use crate::scan::strings::{MAX_BYTES, tag_fields};

/// Bytes of blocks after which a batch with views is returned, because strings from further blocks would have
/// to be copied.
const MAX_BLOCK_BYTES: usize = MAX_KEPT / 2;

/// The maximum number of cells that are appended together: few enough for the processor's smallest cache.
const MAX_WAITING: usize = 64;

/// The columns of a view, with families and qualifiers as dictionaries if asked for.
pub fn schema_of(view: View, type_names: bool, dictionary: bool) -> SchemaRef {
    let name = || if dictionary { names_type() } else { DataType::Binary };
    let fields = match view {
        View::KeyValue => {
            vec![Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Binary, true)]
        }
        View::Cells => vec![
            Field::new("row", DataType::Binary, true),
            Field::new("family", name(), true),
            Field::new("qualifier", name(), true),
            Field::new("timestamp", DataType::Int64, true),
            Field::new("type", if type_names { DataType::Utf8 } else { DataType::UInt8 }, true),
            Field::new("value", DataType::Binary, true),
            Field::new("tags", DataType::new_list(DataType::Struct(tag_fields()), true), true),
            Field::new("sequence_id", DataType::Int64, true),
        ],
    };
    Arc::new(Schema::new(fields))
}

/// Collects cells into batches that have some of the columns.
#[derive(Debug)]
pub struct Columns {
    schema: SchemaRef,
    parts: Parts,
    /// Since the last batch: bytes of the cells that were appended as [`CellRef`]s.
    taken: usize,
    /// The number of rows before the last block, and the number of rows of the last block.
    begun: usize,
    last: usize,
    batch_rows: usize,
    /// Bytes after which a batch is returned.
    batch_bytes: usize,
    /// Whether cells were pushed one by one, without reserving room for them.
    singly: bool,
    /// The number of cells that the caller still has to append.
    waiting: usize,
}

impl Columns {
    /// Collects the columns of `schema`, in batches of at most `batch_rows` rows.
    pub fn new(schema: SchemaRef, batch_rows: usize) -> Result<Self> {
        let parts = Parts::new(&schema)?;
        let batch_rows = batch_rows.max(1);
        let batch_bytes = BATCH_BYTES;
        Ok(Self {
            schema,
            parts,
            taken: 0,
            begun: 0,
            last: 0,
            batch_rows,
            batch_bytes,
            singly: false,
            waiting: 0,
        })
    }

    /// Limits batches to the memory of a read.
    #[must_use]
    pub fn bounded(mut self, limits: &Limits) -> Self {
        let most = usize::try_from(limits.batch_bytes()).unwrap_or(usize::MAX);
        self.batch_bytes = BATCH_BYTES.min(most);
        self.parts.limit(most);
        self
    }

    /// The columns, to check cells as appending them would.
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Begins a block: returns the sink for its cells.
    pub(crate) fn begin_block(&mut self) -> &mut Parts {
        self.begun = self.parts.rows;
        &mut self.parts
    }

    /// Ends a block. Fails if the columns cannot represent the cells of the block.
    pub(crate) fn end_block(&mut self) -> Result<()> {
        self.last = self.parts.rows - self.begun;
        self.parts.check(self.begun)
    }

    /// The number of rows of the block that ended last.
    pub(crate) fn last_rows(&self) -> usize {
        self.last
    }

    /// Removes the rows of the current block.
    pub(crate) fn drop_block(&mut self) {
        self.parts.truncate(self.begun);
        self.last = 0;
    }

    /// Reserves room for `blocks` more blocks of the size of the last block.
    pub(crate) fn expect_blocks(&mut self, blocks: usize) {
        self.parts.reserve_times(blocks);
    }

    /// Checks some cells of a block in the same way as appending them would.
    pub(crate) fn check(&self, block: &[u8], cells: &[CellRef]) -> Result<()> {
        let mut none = Parts::none();
        let mut checked = Checked::new(&mut none, &self.parts);
        cells.iter().try_for_each(|cell| checked.cell(&cell.cell(block)))?;
        checked.end_block()
    }

    /// Checks all cells of a block in plain form in the same way as appending them would.
    pub(crate) fn check_block(&self, layout: CellLayout, block: &[u8]) -> Result<()> {
        let mut none = Parts::none();
        let mut checked = Checked::new(&mut none, &self.parts);
        layout.each(block, &mut checked)?;
        checked.end_block()
    }

    /// Appends cells of a block in plain form from the offset `at` on, until the batch is full. Returns the offset
    /// behind them.
    pub(crate) fn append_part(&mut self, layout: CellLayout, block: &[u8], mut at: usize) -> Result<usize> {
        self.begun = self.parts.rows;
        while at < block.len() && !self.is_full() {
            let (cell, end) = layout.cell(block, at)?;
            self.push(&cell)?;
            at = end;
        }
        self.end_block()?;
        Ok(at)
    }

    /// Appends as many cells of a block as still fit in the batch, and returns their number. If none fit, the
    /// batch is full.
    pub(crate) fn append(&mut self, block: &[u8], cells: &[CellRef]) -> Result<usize> {
        let most = self.batch_rows.saturating_sub(self.parts.rows).min(cells.len());
        for (taken, cell) in cells.iter().take(most).enumerate() {
            let size = cell.key_len as usize + cell.value_len as usize + usize::from(cell.tags_len);
            // The values of a huge block are split over several batches, so that 32-bit offsets suffice.
            if self.parts.rows > 0 && self.taken.saturating_add(size) > self.batch_bytes.max(block.len()) {
                self.taken = self.taken.max(self.batch_bytes);
                return Ok(taken);
            }
            self.parts.cell(&cell.cell(block))?;
            self.taken = self.taken.saturating_add(size);
        }
        Ok(most)
    }

    /// The size of the rows appended since the last batch.
    pub fn room(&self) -> Room {
        self.parts.room()
    }

    /// Reserves room for a batch of this size. Growing step by step would copy the columns at each step.
    pub fn reserve(&mut self, room: &Room) {
        self.parts.reserve(room);
    }

    /// Appends one cell. If the batch [is full](Self::is_full), it must be finished first.
    pub fn push(&mut self, cell: &Cell<'_>) -> Result<()> {
        self.count_bytes(cell)?;
        self.singly = true;
        self.parts.cell(cell)
    }

    /// Puts a cell into `waiting`, a buffer of the caller, so that several cells are appended together later.
    /// The caller must [append](Self::append_waiting) the buffer before it appends anything else, and before
    /// it finishes the batch.
    #[inline(always)]
    pub fn push_later<'a>(&mut self, cell: &Cell<'a>, waiting: &mut Vec<Cell<'a>>) -> Result<()> {
        self.count_bytes(cell)?;
        waiting.push(*cell);
        self.waiting = waiting.len();
        if self.waiting < MAX_WAITING { Ok(()) } else { self.append_waiting(waiting) }
    }

    /// Appends and clears the cells in `waiting`.
    pub fn append_waiting(&mut self, waiting: &mut Vec<Cell<'_>>) -> Result<()> {
        if waiting.is_empty() {
            return Ok(());
        }
        self.singly = true;
        self.waiting = 0;
        let appended = self.parts.append(waiting);
        waiting.clear();
        appended
    }

    /// Whether values refer to blocks, in which case `waiting` must not mix cells of two blocks.
    pub fn has_views(&self) -> bool {
        self.parts.has_views
    }

    #[inline(always)]
    fn count_bytes(&mut self, cell: &Cell<'_>) -> Result<()> {
        let key = cell.row.len() + cell.family.len() + cell.qualifier.len();
        let size = key.saturating_add(cell.value.len()).saturating_add(cell.tags.len());
        if size > MAX_BYTES - 2 * BATCH_BYTES {
            return Err(Error::unsupported("a cell of 2 GiB"));
        }
        self.taken = self.taken.saturating_add(size);
        Ok(())
    }

    /// Announces that the next cells lie in `block`, so that views can refer to it. Values outside the block
    /// are copied.
    #[inline]
    pub fn enter(&mut self, block: &Bytes) {
        if self.parts.has_views {
            self.parts.blocks.enter(block);
        }
    }

    /// The columns of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether the batch must be finished before more is appended.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.parts.rows + self.waiting >= self.batch_rows || self.taken >= self.batch_bytes
    }

    /// Whether the batch must be finished before a block of at most `bytes` in plain form is appended.
    pub(crate) fn is_full_for(&self, bytes: usize) -> bool {
        let rows = self.parts.rows;
        if rows == 0 {
            return false;
        }
        let widest = self.parts.widest();
        rows.saturating_add(self.last) > self.batch_rows
            || widest >= self.batch_bytes
            || self.parts.blocks.bytes() >= MAX_BLOCK_BYTES
            || widest.saturating_add(bytes) > MAX_BYTES
    }

    /// Whether nothing was appended since the last batch.
    pub fn is_empty(&self) -> bool {
        self.parts.rows + self.waiting == 0
    }

    /// The maximum rows of a batch.
    pub(crate) fn batch_rows(&self) -> usize {
        self.batch_rows
    }

    /// Returns the cells since the last batch, if no more cells will follow.
    pub fn finish_last(&mut self) -> Result<RecordBatch> {
        self.singly = false;
        self.finish()
    }

    /// Returns the cells since the last batch.
    pub fn finish(&mut self) -> Result<RecordBatch> {
        let fields = self.schema.fields();
        // The next batch is usually as large as this one, so room for it is reserved; growing step by step
        // would copy the columns at each step.
        let room = self.singly.then(|| self.parts.room());
        let long = self.parts.binaries().map(Binary::long).fold(0, usize::saturating_add);
        self.parts.blocks.weigh(long);
        let arrays = fields.iter().map(|f| self.parts.finish(f)).collect::<Result<Vec<_>>>()?;
        self.parts.blocks.clear();
        if let Some(room) = &room {
            self.parts.reserve(room);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.parts.rows));
        (self.parts.rows, self.taken) = (0, 0);
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options).map_err(arrow_error)
    }
}
