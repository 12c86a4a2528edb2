//! Decodes the filter's columns of a row group first; of the other columns, decodes only the stretches of
//! rows in which a row passes.
//!
//! ```text
//! rows of a batch     . . . . . . . x . . . x . . . . . . . . . . . . . . x . . . . . . .
//! filter's columns    v v v v v v v v v v v v v v v v v v v v v v v v v v v v v v v v v v
//! others                            v v v v v                             v
//! pages of others     |           |           |           |           |           |       those without a `v` are not opened
//! ```
//!
//! Rows that pass are read together with the few rows between them: starting a stretch takes as much time as
//! reading several hundred rows.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use coldframe_core::salvage::Fate;
use coldframe_core::{BatchIter, DecodeUnit, Divided, Result, arrow_error};

use super::decode::{Batches, DecodeGroup, Failed};

/// Maximum number of rows between two passing rows that are read together with them.
const BETWEEN: usize = 512;
/// Batches are read in stretches if at most one row in `FEW` passes.
const FEW: usize = 8;

/// A row group whose other columns are decoded only if a row passes.
pub(super) struct ScoutGroup {
    /// Shared by the scouts of all row groups.
    pub(super) columns: Arc<Divided>,
    pub(super) all: DecodeGroup,
}

impl DecodeUnit for ScoutGroup {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let (columns, batches) = (self.columns, self.all.batches(bytes)?);
        Ok(Box::new(Scouted { columns, batches, at: 0, behind: 0, ready: VecDeque::new() }))
    }
}

/// The batches of the rows of a row group that pass.
struct Scouted {
    columns: Arc<Divided>,
    batches: Batches,
    /// How many rows of the group have been evaluated.
    at: u64,
    /// How many of these rows must still be skipped in the other columns. They are skipped together, so that
    /// more pages need not be opened.
    behind: usize,
    ready: VecDeque<RecordBatch>,
}

impl Scouted {
    /// Evaluates the filter on the next rows and queues the batches of the rows that pass. Returns whether
    /// there were any rows.
    fn evaluate_next(&mut self) -> Result<bool> {
        let columns = self.columns.clone();
        let left = usize::try_from(self.batches.group.rows - self.at).unwrap_or(usize::MAX);
        let of_filter = |column: usize| columns.is_of_filter(column);
        let others = |column: usize| !of_filter(column);
        if left == 0 {
            self.batches.skip_rows(std::mem::take(&mut self.behind), &others)?;
            self.batches.finish()?;
            return Ok(false);
        }
        let max = left.min(self.batches.batch_rows);
        let (known, rows) = self.read(max, &of_filter)?;
        self.at += rows as u64;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let known = RecordBatch::try_new_with_options(columns.schema().clone(), known, &options)
            .map_err(arrow_error)?;
        let passing = columns.passing(&known)?;
        let few = passing.count_set_bits() <= rows / FEW;
        let mut parts = Vec::new();
        let mut at = 0;
        for stretch in stretches(&passing, if few { BETWEEN } else { rows }) {
            self.batches.skip_rows(std::mem::take(&mut self.behind) + stretch.start - at, &others)?;
            at = stretch.start;
            while at < stretch.end {
                let (decoded, taken) = self.read(stretch.end - at, &others)?;
                let batch = self.joined(&known.slice(at, taken), decoded)?;
                parts.push(if few { of_rows(&batch, &passing.slice(at, taken))? } else { batch });
                at += taken;
            }
        }
        self.behind += rows - at;
        self.ready.extend(together(parts, self.batches.batch_bytes())?);
        Ok(true)
    }

    fn read(&mut self, rows: usize, wanted: &dyn Fn(usize) -> bool) -> Result<(Vec<ArrayRef>, usize)> {
        let all = Fate::Kept;
        self.batches.read_fitting(rows, &all, wanted).map_err(|Failed(_, e)| e)
    }

    /// Joins the filter's columns and the others, in their order.
    fn joined(&self, known: &RecordBatch, decoded: Vec<ArrayRef>) -> Result<RecordBatch> {
        let columns = self.columns.joined(known.columns().to_vec(), decoded);
        let options = RecordBatchOptions::new().with_row_count(Some(known.num_rows()));
        let schema = self.batches.scan.schema.clone();
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(arrow_error)
    }
}

/// The stretches of rows from one passing row to the next, which is at most `between` rows later.
fn stretches(passing: &BooleanBuffer, between: usize) -> Vec<Range<usize>> {
    let mut stretches: Vec<Range<usize>> = Vec::new();
    for (from, to) in passing.set_slices() {
        match stretches.last_mut() {
            Some(last) if from - last.end <= between => last.end = to,
            _ => stretches.push(from..to),
        }
    }
    stretches
}

fn of_rows(batch: &RecordBatch, passing: &BooleanBuffer) -> Result<RecordBatch> {
    filter_record_batch(batch, &BooleanArray::new(passing.clone(), None)).map_err(arrow_error)
}

/// Combines short batches to a longer one of at most `most` bytes.
fn together(parts: Vec<RecordBatch>, most: u64) -> Result<Vec<RecordBatch>> {
    let bytes: usize = parts.iter().map(RecordBatch::get_array_memory_size).sum();
    match parts.first() {
        Some(first) if parts.len() > 1 && bytes as u64 <= most => {
            Ok(vec![concat_batches(&first.schema(), &parts).map_err(arrow_error)?])
        }
        _ => Ok(parts),
    }
}

impl Iterator for Scouted {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Some(Ok(batch));
            }
            match self.evaluate_next() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(e) => {
                    self.batches.stop();
                    self.at = self.batches.group.rows;
                    return Some(Err(e.at(self.batches.group.start)));
                }
            }
        }
    }
}
