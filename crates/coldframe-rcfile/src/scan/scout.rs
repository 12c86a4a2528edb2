//! Decodes the filter's columns of a row group first, and the other columns only for rows that pass.
//!
//! ```text
//! rows of the group   | batch 0 | batch 1 | batch 2 | batch 3 |
//! a row passes                      x                   x x
//! filter's columns    | v v v v | v v v v | v v v v | v v v v |
//! others              |         |   v     |         |     v v |    not decompressed before the first `x` of the group
//! ```
//!
//! Cells do not depend on each other: if few rows of a batch pass, only the cells of those rows are gathered
//! and decoded.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_select::filter::filter;
use bytes::Bytes;
use coldframe_core::salvage::fitting;
use coldframe_core::{BatchIter, DecodeUnit, Divided, Result, arrays, arrow_error};

use super::decode::{ColumnCells, DecodeGroup, take_cells};
use crate::serde::Cells;

/// Cells are gathered if at most one row in this many passes.
const FEW: usize = 8;

/// A row group whose other columns are decoded only if a row passes.
pub(super) struct ScoutGroup {
    /// The division of the columns, shared by all row groups.
    pub(super) columns: Arc<Divided>,
    pub(super) all: DecodeGroup,
}

impl DecodeUnit for ScoutGroup {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let Self { columns: divided, all: unit } = *self;
        let mut bytes = bytes.into_iter();
        let stored = unit.columns().iter().map(|column| column.in_file.and_then(|_| bytes.next())).collect();
        let columns = unit.columns().iter().map(|_| None).collect();
        let ready = VecDeque::new();
        let mut scouted = Scouted { unit, divided, stored, columns, filter_at: 0, others_at: 0, ready };
        scouted.open(true)?;
        Ok(Box::new(scouted))
    }
}

/// The batches of the rows of a row group that pass.
struct Scouted {
    unit: DecodeGroup,
    divided: Arc<Divided>,
    /// The columns' bytes, until their cells are needed.
    stored: Vec<Option<Bytes>>,
    /// The cells of the columns that are read.
    columns: Vec<Option<ColumnCells>>,
    /// How many rows were taken from the filter's columns, and from the other columns.
    filter_at: u64,
    others_at: u64,
    ready: VecDeque<RecordBatch>,
}

impl Scouted {
    /// Decompresses the filter's columns, or the other columns.
    fn open(&mut self, of_filter: bool) -> Result<()> {
        for (i, (stored, place)) in self.stored.iter_mut().zip(&mut self.columns).enumerate() {
            if self.divided.is_of_filter(i) == of_filter
                && let Some(disk) = stored.take()
            {
                *place = self.unit.column_cells(i, &disk)?;
            }
        }
        Ok(())
    }

    /// The next `rows` cells of the filter's columns, or of the other columns; `None` for the rest.
    fn take(&mut self, of_filter: bool, rows: usize, first_row: u64) -> Result<Vec<Option<Cells>>> {
        let mut taken = Vec::with_capacity(self.columns.len());
        for (i, column) in self.columns.iter_mut().enumerate() {
            let column = column.as_mut().filter(|_| self.divided.is_of_filter(i) == of_filter);
            taken.push(column.map(|c| self.unit.titled(i, take_cells(c, rows, first_row))).transpose()?);
        }
        Ok(taken)
    }

    /// Skips the other columns' cells of rows that were already evaluated.
    fn catch_up(&mut self, to: u64) -> Result<()> {
        while self.others_at < to {
            let rows = usize::try_from(to - self.others_at).unwrap_or(usize::MAX).min(self.unit.max_rows);
            self.take(false, rows, self.others_at)?;
            self.others_at += rows as u64;
        }
        Ok(())
    }

    /// Evaluates the filter on the next rows and queues the batches of the rows that pass. Returns whether
    /// there were any rows.
    fn evaluate_next(&mut self) -> Result<bool> {
        let left = self.unit.group.key.rows - self.filter_at;
        let rows = usize::try_from(left).unwrap_or(usize::MAX).min(self.unit.max_rows);
        if rows == 0 {
            self.unit.finish(&mut self.columns);
            return Ok(false);
        }
        let first_row = self.filter_at;
        let cells = self.take(true, rows, first_row)?;
        self.filter_at += rows as u64;
        let mut others = None;
        let mut start = 0;
        while start < rows {
            let (arrays, taken) = fitting(rows - start, |n| {
                self.unit.decode_columns(&cells, start, n, |i| self.divided.is_of_filter(i))
            })?;
            let options = RecordBatchOptions::new().with_row_count(Some(taken));
            let batch = RecordBatch::try_new_with_options(self.divided.schema().clone(), arrays, &options);
            let batch = batch.map_err(arrow_error)?;
            let passing = self.divided.passing(&batch)?;
            if passing.count_set_bits() > 0 {
                if others.is_none() {
                    self.open(false)?;
                    self.catch_up(first_row)?;
                    others = Some(self.take(false, rows, first_row)?);
                    self.others_at = self.filter_at;
                }
                let others = others.as_deref().unwrap_or_default();
                self.complete(batch.columns(), others, start, &passing)?;
            }
            start += taken;
        }
        Ok(true)
    }

    /// Decodes the other columns of the `passing.len()` rows at `start`: all these rows, or only the passing
    /// rows.
    fn complete(
        &mut self,
        known: &[ArrayRef],
        others: &[Option<Cells>],
        start: usize,
        passing: &BooleanBuffer,
    ) -> Result<()> {
        let rows = passing.len();
        let stay = passing.count_set_bits();
        if stay <= rows / FEW
            && let Some(few) = gather(others, start, passing)?
            && let Ok(decoded) = self.unit.decode_columns(&few, 0, stay, |i| !self.divided.is_of_filter(i))
        {
            let mask = BooleanArray::new(passing.clone(), None);
            let known = known.iter().map(|array| filter(array, &mask).map_err(arrow_error));
            let known = known.collect::<Result<Vec<_>>>()?;
            return self.queue(known, decoded, stay);
        }
        // All rows are decoded; this is also done if a cell cannot be decoded, so that the error names its
        // row.
        let mut at = 0;
        while at < rows {
            let (decoded, taken) = fitting(rows - at, |n| {
                self.unit.decode_columns(others, start + at, n, |i| !self.divided.is_of_filter(i))
            })?;
            let known = known.iter().map(|array| array.slice(at, taken)).collect();
            self.queue(known, decoded, taken)?;
            at += taken;
        }
        Ok(())
    }

    /// Puts the columns in order and queues the batch.
    fn queue(&mut self, known: Vec<ArrayRef>, decoded: Vec<ArrayRef>, rows: usize) -> Result<()> {
        let batch = self.unit.batch(self.divided.joined(known, decoded), rows)?;
        let max = self.unit.batch_rows;
        self.ready.extend((0..rows).step_by(max).map(|at| batch.slice(at, max.min(rows - at))));
        Ok(())
    }
}

/// The cells of the passing rows from `start` on, packed densely; `None` if their offsets exceed 32 bits.
fn gather(
    cells: &[Option<Cells>],
    start: usize,
    passing: &BooleanBuffer,
) -> Result<Option<Vec<Option<Cells>>>> {
    let mut gathered = Vec::with_capacity(cells.len());
    for cells in cells {
        let Some(cells) = cells else {
            gathered.push(None);
            continue;
        };
        let (mut data, mut ends) = (Vec::new(), Vec::with_capacity(passing.count_set_bits() + 1));
        ends.push(0);
        for (from, to) in passing.set_slices() {
            let Some(offsets) = cells.offsets.get(start + from..=start + to) else { return Ok(None) };
            let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return Ok(None) };
            let Ok(base) = i32::try_from(data.len()) else { return Ok(None) };
            let Some(shift) = base.checked_sub(*first) else { return Ok(None) };
            if last.checked_add(shift).is_none() {
                return Ok(None);
            }
            ends.extend(offsets.iter().skip(1).map(|offset| offset.wrapping_add(shift)));
            let place = usize::try_from(*first).unwrap_or(0)..usize::try_from(*last).unwrap_or(0);
            data.extend_from_slice(cells.data.get(place).unwrap_or_default());
        }
        let (offsets, nulled, first_row) = (arrays::offsets(ends)?, cells.nulled, cells.first_row);
        gathered.push(Some(Cells { data: Buffer::from_vec(data), offsets, nulled, first_row }));
    }
    Ok(Some(gathered))
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
                    // Nothing is read after an error.
                    self.filter_at = self.unit.group.key.rows;
                    return Some(Err(e));
                }
            }
        }
    }
}
