//! Rows of a server's memory, recovered from the write-ahead log. As a part of the table, they come after its
//! rowsets.
//!
//! ```text
//! rows a..b in the order of their keys: blank values ──▶ entries before the snapshot ──▶ rows that exist ──▶ Arrow
//! ```

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use coldframe_cfile::layout::delta::{ChangeType, Delta};
use coldframe_cfile::prune::key::{KeyBounds, KeyColumn};
use coldframe_core::format::DecodeUnit;
use coldframe_core::{BatchIter, Error, Limits, OnError, Plan, PlanRequest, Result, Unit, arrow_error};

use super::decode::{in_batches, nullable};
use super::patch::Changes;
use crate::schema::Column;
use crate::wal::{LogLoss, Replayed, TabletLog};

/// Maximum number of rows of a unit.
const UNIT_ROWS: u64 = 1 << 14;

/// The units of a split.
pub(crate) struct MemoryPlan {
    pub(crate) log: Arc<TabletLog>,
    /// The name of the tablet in errors.
    pub(crate) name: String,
    pub(crate) columns: Vec<Arc<Column>>,
    /// The columns of the primary key, with the names that filters use.
    pub(crate) key: Vec<Arc<Column>>,
    pub(crate) request: PlanRequest,
    pub(crate) snapshot: Option<u64>,
    /// The rows of the split.
    pub(crate) rows: Range<u64>,
    pub(crate) replayed: Option<Arc<Replayed>>,
    pub(crate) limits: Limits,
}

impl MemoryPlan {
    fn start(&mut self) -> Result<Arc<Replayed>> {
        let log = self.log.replayed()?;
        let counts = |loss: &&LogLoss| self.snapshot.is_none_or(|snapshot| loss.since < snapshot);
        let first = self.rows.start == 0;
        let inserts = log.lost_inserts.iter().filter(|_| first);
        let mut losses = inserts.chain(&log.lost_rows).filter(counts);
        if self.request.scan.on_error == OnError::Raise {
            if let Some(loss) = losses.find(|loss| loss.rows.is_empty() || overlap(&loss.rows, &self.rows)) {
                return Err(loss.to_error(&self.name));
            }
        } else {
            for loss in losses.filter(|loss| loss.rows.is_empty()) {
                self.request.damage.push(loss.record(&self.name));
            }
        }
        self.rows.end = self.rows.end.min(log.keys.len() as u64);
        if let Some(predicate) = &self.request.scan.predicate {
            let key = self.key.iter();
            let key = key.map(|c| KeyColumn { name: &c.name, data_type: c.data_type, arrow: &c.arrow });
            let bounds = KeyBounds::new(predicate, &key.collect::<Vec<_>>());
            let before = |limit: &Vec<u8>| log.keys.partition_point(|key| key < limit) as u64;
            self.rows.start = self.rows.start.max(bounds.lower.as_ref().map_or(0, before));
            self.rows.end = self.rows.end.min(bounds.upper.as_ref().map_or(u64::MAX, before));
        }
        self.replayed = Some(log.clone());
        Ok(log)
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Plan for MemoryPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        let replayed = match self.replayed.clone() {
            Some(replayed) => replayed,
            None => self.start().map_err(|e| e.within(self.name.clone()))?,
        };
        if self.rows.start >= self.rows.end {
            return Ok(None);
        }
        let rows = self.rows.start..self.rows.end.min(self.rows.start.saturating_add(UNIT_ROWS));
        self.rows.start = rows.end;
        let structure = format!("{}: rows {}..{} of the write-ahead log", self.name, rows.start, rows.end);
        let decode = DecodeMemory {
            replayed,
            columns: self.columns.clone(),
            request: self.request.clone(),
            snapshot: self.snapshot,
            rows: rows.clone(),
            structure: structure.clone(),
            limits: self.limits,
        };
        let count = Some(rows.end - rows.start);
        Ok(Some(Unit { fetch: Vec::new(), bytes: 0..0, rows: count, structure, decode: Box::new(decode) }))
    }
}

/// Builds arrays from rows.
struct DecodeMemory {
    replayed: Arc<Replayed>,
    columns: Vec<Arc<Column>>,
    request: PlanRequest,
    snapshot: Option<u64>,
    rows: Range<u64>,
    structure: String,
    limits: Limits,
}

impl DecodeUnit for DecodeMemory {
    fn decode(self: Box<Self>, _: Vec<Bytes>) -> Result<BatchIter> {
        let max_rows = self.request.scan.batch_rows;
        let (mut batches, mut open) = (Vec::new(), vec![self.rows.clone()]);
        while let Some(rows) = open.pop() {
            match self.batch(&rows) {
                Err(e) if e.is_batch_too_long() && rows.end - rows.start > 1 => {
                    let middle = rows.start + (rows.end - rows.start) / 2;
                    open.extend([middle..rows.end, rows.start..middle]);
                }
                other => batches.push(other.map_err(|e| self.request.scan.on_error.weigh(e))?),
            }
        }
        Ok(Box::new(batches.into_iter().flat_map(move |batch| in_batches(batch, max_rows))))
    }
}

impl DecodeMemory {
    fn batch(&self, rows: &Range<u64>) -> Result<RecordBatch> {
        let count = usize::try_from(rows.end - rows.start)
            .map_err(|_| Error::invalid("the unit is larger than the address space"))?;
        let mut changes = Changes::new(rows.start, count, &self.columns)?;
        // A row does not exist before its insertion.
        for row in rows.clone() {
            changes.apply(Delta::new(row, 0, ChangeType::Delete, &[]))?;
        }
        let entries = self.replayed.rows.of(rows);
        changes.expect(entries.len());
        for delta in entries.filter(|d| self.snapshot.is_none_or(|snapshot| d.time < snapshot)) {
            changes.apply(delta)?;
        }
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for (place, column) in self.columns.iter().enumerate() {
            arrays.push(changes.patch(place, column, self.base(column, count)?, &self.limits)?);
        }
        let present = changes.take_present();
        let exists = |i: usize| present.as_ref().is_none_or(|p| p.value(i));
        let kept = self.kept(rows, count, &exists);
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let decode = &self.request.decode;
        let whole =
            RecordBatch::try_new_with_options(nullable(decode), arrays, &options).map_err(arrow_error)?;
        let batch = filter_record_batch(&whole, &kept).map_err(arrow_error)?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(decode.clone(), batch.columns().to_vec(), &options)
            .map_err(arrow_error)
    }

    /// The values of a column for rows whose entries do not mention it, because the column is newer than the
    /// row.
    fn base(&self, column: &Column, count: usize) -> Result<ArrayRef> {
        let limits = &self.limits;
        if column.read_default.is_some() {
            column.defaults(count, limits)
        } else {
            column.blank(count, limits)
        }
    }

    /// The mask of rows that exist and whose state is known. Unknown rows are recorded as lost.
    fn kept(&self, rows: &Range<u64>, count: usize, exists: &dyn Fn(usize) -> bool) -> BooleanArray {
        let mut kept: Vec<bool> = (0..count).map(exists).collect();
        for loss in &self.replayed.lost_rows {
            let counts = self.snapshot.is_none_or(|snapshot| loss.since < snapshot);
            if !counts || !overlap(&loss.rows, rows) {
                continue;
            }
            let mut lost = 0;
            for row in loss.rows.start.max(rows.start)..loss.rows.end.min(rows.end) {
                let slot = usize::try_from(row - rows.start).ok().and_then(|i| kept.get_mut(i));
                if let Some(slot) = slot.filter(|slot| **slot) {
                    *slot = false;
                    lost += 1;
                }
            }
            if lost > 0 {
                let mut record = loss.record(&self.structure);
                record.rows_lost = Some(lost);
                self.request.damage.push(record);
            }
        }
        BooleanArray::from(kept)
    }
}
