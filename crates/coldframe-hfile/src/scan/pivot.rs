//! A wide table: one row per row key, with the newest visible value of each column, decoded as in
//! [`values`](super::values).
//!
//! A row may continue from block to block and beyond a split. Splits treat rows as splits of a text file
//! treat lines: a split leaves the first row of its first block to the previous split, and reads beyond its
//! own end to complete the first row of the next block.
//!
//! The newest cells of a row come first. The row before damaged bytes may continue in them, and the row after
//! them may begin in them. The cells that can still be read of these two rows may be outdated or deleted, so
//! both rows are dropped, each with a record.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use coldframe_core::salvage::without_rows;
use coldframe_core::{
    BatchIter, Damage, DecodeUnit, Error, KeyRange, Limits, OnError, Plan, PlanRequest, Result, Unit,
    arrow_error,
};

use crate::layout::cell::Cell;
use crate::open::RawFile;
use crate::scan::decode::Blocks;
use crate::scan::plan::BlockPlan;
use crate::scan::values::{BYTES_TYPES, Values, bytes_type};
use crate::scan::visible::{Policy, Visibility};

/// Which cells of a column are visible: only the newest.
const NEWEST: Policy = Policy::newest(1, None);

/// The row key and the columns of the option `pivot`.
pub(crate) fn schema_of(columns: &[(String, String)]) -> Result<SchemaRef> {
    let mut fields = vec![Field::new("row", DataType::Binary, true)];
    for (name, of) in columns {
        if !name.contains(':') {
            return Err(Error::invalid(format!(
                "option `pivot`: expected \"family:qualifier\", found {name:?}"
            )));
        }
        let of = bytes_type(of).ok_or_else(|| {
            Error::invalid(format!("option `pivot`: expected a type of {BYTES_TYPES}, found {of:?}"))
        })?;
        fields.push(Field::new(name, of, true));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// A requested column.
#[derive(Debug)]
struct PivotColumn {
    /// Family and qualifier; `None` for the row key.
    name: Option<(Vec<u8>, Vec<u8>)>,
    values: Values,
    /// Whether the current row has a value for the column.
    set: bool,
}

/// The state that one unit passes to the next, with the incomplete row.
#[derive(Debug)]
struct State {
    schema: SchemaRef,
    columns: Vec<PivotColumn>,
    visible: Visibility,
    row: Option<Vec<u8>>,
    /// Whether the current row has any visible cell.
    seen: bool,
    /// Whether the current row belongs to the previous split.
    foreign: bool,
    /// Whether no row has begun yet.
    first: bool,
    /// Whether a cell after the split's end was taken.
    behind: bool,
    /// The damaged bytes inside the current row or directly before the row.
    torn: Option<Range<u64>>,
    /// The damaged bytes since the last cell.
    lost: Option<Range<u64>>,
    rows: usize,
    /// The indexes of rows that are dropped.
    left_out: Vec<usize>,
    bytes: usize,
    /// Whether the first row after the split's end has been read.
    ended: bool,
    on_error: OnError,
    request: PlanRequest,
    split_end: u64,
    /// Bytes of values after which a batch is returned.
    batch_bytes: usize,
}

/// Bytes of values after which a batch is returned, if the memory of the read allows as many.
const BATCH_BYTES: usize = 32 << 20;

impl State {
    fn new(request: &PlanRequest, split: &Range<u64>, limits: &Limits) -> Result<Self> {
        let most = usize::try_from(limits.batch_bytes()).unwrap_or(usize::MAX);
        let column = |field: &Arc<Field>| {
            let name = field.name().split_once(':');
            let name =
                name.map(|(family, qualifier)| (family.as_bytes().to_vec(), qualifier.as_bytes().to_vec()));
            Ok(PivotColumn { name, values: Values::new(field.data_type())?, set: false })
        };
        Ok(Self {
            schema: request.decode.clone(),
            columns: request.decode.fields().iter().map(column).collect::<Result<_>>()?,
            visible: Visibility::default(),
            row: None,
            seen: false,
            foreign: split.start > 0,
            first: true,
            behind: false,
            torn: None,
            lost: None,
            rows: 0,
            left_out: Vec::new(),
            bytes: 0,
            ended: false,
            on_error: request.scan.on_error,
            request: request.clone(),
            split_end: split.end,
            batch_bytes: BATCH_BYTES.min(most),
        })
    }

    /// Takes a cell of the block at `offset`.
    fn take(&mut self, cell: &Cell<'_>, offset: u64) -> Result<()> {
        if self.row.as_deref() != Some(cell.row) {
            let foreign = self.foreign && self.first;
            self.end_row();
            // After the split's end, only the row that the next block begins with belongs to this split.
            if self.behind {
                self.ended = true;
                return Ok(());
            }
            (self.foreign, self.first) = (foreign, false);
            self.row = Some(cell.row.to_vec());
            self.torn = self.lost.take();
        } else if self.foreign && offset >= self.split_end {
            // This row belongs to the previous split, which reads it beyond this split's end.
            self.ended = true;
        }
        self.lost = None;
        self.behind |= offset >= self.split_end;
        if self.foreign || self.ended || !self.visible.admits(cell, &NEWEST)? {
            return Ok(());
        }
        self.seen = true;
        for column in &mut self.columns {
            let named = column.name.as_ref().is_some_and(|(f, q)| f == cell.family && q == cell.qualifier);
            if !named || column.set {
                continue;
            }
            self.bytes += cell.value.len();
            column.set = column.values.append(cell.value);
            if !column.set {
                let name = cell.qualifier.escape_ascii();
                let what = format!(
                    "row \"{}\", column \"{name}\": {} bytes are not of its type",
                    cell.row.escape_ascii(),
                    cell.value.len()
                );
                let e = Error::schema(what).at(offset);
                if self.on_error == OnError::Raise {
                    return Err(e);
                }
                column.values.append_null();
                column.set = true;
                self.request.damage.push(Damage::from_error(&e, offset..offset, Some(0)));
            }
        }
        Ok(())
    }

    /// Records damaged bytes after the last cell.
    fn lose(&mut self, range: Range<u64>) {
        if self.row.is_some() {
            self.torn.get_or_insert_with(|| range.clone());
        }
        self.lost = Some(range);
    }

    /// Drops the current row: its newest cells may be lost.
    fn leave_out(&mut self, row: &[u8], torn: Range<u64>) {
        let reason = "a lost block next to the row may have held newer cells of it";
        let structure = format!("row \"{}\"", row.escape_ascii());
        self.request.damage.push(Damage {
            bytes: torn,
            rows_lost: Some(1),
            structure,
            reason: reason.to_owned(),
        });
        self.left_out.push(self.rows);
    }

    /// Completes the current row. The row is returned only if it has a visible cell.
    fn end_row(&mut self) {
        let torn = self.torn.take();
        let Some(row) = self.row.take().filter(|_| self.seen) else {
            self.seen = false;
            return;
        };
        for column in &mut self.columns {
            match (&column.name, column.set) {
                (None, _) => drop(column.values.append(&row)),
                (Some(_), false) => column.values.append_null(),
                (Some(_), true) => {}
            }
            column.set = false;
        }
        if let Some(torn) = torn {
            self.leave_out(&row, torn);
        }
        self.bytes += row.len();
        self.rows += 1;
        self.seen = false;
    }

    fn is_full(&self) -> bool {
        self.rows >= self.request.scan.batch_rows || self.bytes >= self.batch_bytes
    }

    /// Returns the complete rows. The columns may hold values of the current row, so it must be complete.
    fn finish(&mut self) -> Result<RecordBatch> {
        let arrays = self.columns.iter_mut().map(|c| c.values.finish()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options);
        let left_out = std::mem::take(&mut self.left_out);
        (self.rows, self.bytes) = (0, 0);
        let batch = batch.map_err(arrow_error)?;
        without_rows(batch, &left_out)
    }
}

/// Plans runs of blocks, followed by a last unit without blocks that completes the last row.
pub(crate) struct PivotPlan {
    blocks: BlockPlan,
    state: Arc<Mutex<State>>,
    split: Range<u64>,
    begun: bool,
    flushed: bool,
}

impl PivotPlan {
    /// Plans the rows of `split`.
    pub(crate) fn new(
        file: Arc<RawFile>,
        request: PlanRequest,
        split: Range<u64>,
        keys: KeyRange,
    ) -> Result<Self> {
        let state = State::new(&request, &split, file.limits())?;
        // The first block of a split determines the split's first row, so this block cannot be pruned.
        let keys = if split.start == 0 { keys } else { KeyRange::default() };
        let mut blocks = BlockPlan::new(file, request, split.start..u64::MAX, keys)?;
        blocks.pause_at(split.end);
        Ok(Self { blocks, state: Arc::new(Mutex::new(state)), split, begun: false, flushed: false })
    }
}

impl Plan for PivotPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        if self.flushed {
            return Ok(None);
        }
        let ended = self.state.lock().unwrap_or_else(PoisonError::into_inner).ended;
        let run = if ended { None } else { self.blocks.next_run()? };
        let decode = |blocks: Option<Blocks>, lost: Option<Range<u64>>| -> Box<dyn DecodeUnit> {
            Box::new(DecodePivot { state: self.state.clone(), blocks, lost })
        };
        let Some((bytes, blocks)) = run else {
            self.flushed = true;
            let lost = self.blocks.take_lost();
            let (at, structure) = (self.split.start, "last row".to_owned());
            return Ok(Some(Unit {
                fetch: Vec::new(),
                bytes: at..at,
                rows: None,
                structure,
                decode: decode(None, lost),
            }));
        };
        // A split in which no block begins has no rows.
        if !self.begun && bytes.start >= self.split.end {
            return Ok(None);
        }
        self.begun = true;
        Ok(Some(self.blocks.unit(bytes, decode(Some(blocks), None))))
    }
}

struct DecodePivot {
    state: Arc<Mutex<State>>,
    /// The run to decode; `None` if there are no more blocks and this unit only completes the last row.
    blocks: Option<Blocks>,
    /// Damaged bytes after the last data block.
    lost: Option<Range<u64>>,
}

impl DecodeUnit for DecodePivot {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let mut blocks = self.blocks;
        if let Some(blocks) = &mut blocks {
            blocks.set_bytes(bytes);
        }
        if let Some(lost) = self.lost {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).lose(lost);
        }
        Ok(Box::new(Batches { state: self.state, blocks, block: Bytes::new(), at: 0, done: false }))
    }
}

struct Batches {
    state: Arc<Mutex<State>>,
    blocks: Option<Blocks>,
    block: Bytes,
    at: usize,
    done: bool,
}

impl Batches {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(blocks) = &mut self.blocks else {
            self.done = true;
            state.end_row();
            let batch = if state.rows == 0 { None } else { Some(state.finish()?) };
            return Ok(batch.filter(|batch| batch.num_rows() > 0));
        };
        loop {
            if let Some(cell) = blocks.cells.get(self.at).filter(|_| !state.ended) {
                let cell = cell.cell(&self.block);
                if state.row.as_deref().is_some_and(|row| row != cell.row) {
                    state.end_row();
                }
                // Between two rows, all values belong to complete rows.
                if state.row.is_none() && state.is_full() {
                    let batch = state.finish()?;
                    if batch.num_rows() > 0 {
                        return Ok(Some(batch));
                    }
                }
                state.take(&cell, blocks.offset)?;
                self.at += 1;
                continue;
            }
            self.at = 0;
            let next = blocks.next_block()?;
            if let Some(lost) = blocks.take_lost() {
                state.lose(lost);
            }
            match next {
                Some(block) if !state.ended => self.block = block,
                _ => {
                    self.done = true;
                    return Ok(None);
                }
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
        self.done |= !matches!(batch, Some(Ok(_)));
        batch
    }
}
