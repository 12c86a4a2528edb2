//! Decodes the cells of one row group to batches: limits their length, and leaves out or replaces damaged
//! cells.

use std::collections::VecDeque;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::OffsetBuffer;
use arrow_select::concat::concat;
use coldframe_core::salvage::{Fate, Stretch, fitting};
use coldframe_core::{Error, ErrorContext, ErrorKind, OnError, Result, arrays, arrow_error};

use super::{ColumnCells, DecodeGroup, Places, ScanColumn};
use crate::serde::Cells;

/// The batches of one row group.
pub(super) struct Batches {
    unit: DecodeGroup,
    /// The readable columns, in the requested order.
    columns: Vec<Option<ColumnCells>>,
    /// For each stretch of the remaining rows, whether it is kept.
    stretches: VecDeque<Stretch>,
    /// The number of rows whose cells were taken.
    taken: u64,
    /// Cells that were taken but not decoded.
    pending: Option<Pending>,
    /// Rows decoded at once that are returned a batch at a time.
    ready: Option<RecordBatch>,
}

/// Cells of some rows; `None` for a column of nulls.
struct Pending {
    cells: Vec<Option<Cells>>,
    start: usize,
    left: usize,
}

impl Batches {
    pub(super) fn new(
        unit: DecodeGroup,
        columns: Vec<Option<ColumnCells>>,
        stretches: VecDeque<Stretch>,
    ) -> Self {
        Self { unit, columns, stretches, taken: 0, pending: None, ready: None }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(batch) = self.take_ready() {
            return Some(Ok(batch));
        }
        match self.decode() {
            Ok(Some(batch)) if batch.num_rows() > self.unit.batch_rows => {
                self.ready = Some(batch);
                self.take_ready().map(Ok)
            }
            Ok(batch) => batch.map(Ok),
            Err(e) => {
                (self.stretches, self.pending) = (VecDeque::new(), None);
                Some(Err(e))
            }
        }
    }
}

impl Batches {
    /// The next batch of the rows decoded at once.
    fn take_ready(&mut self) -> Option<RecordBatch> {
        let ready = self.ready.take()?;
        let rows = ready.num_rows().min(self.unit.batch_rows);
        if rows < ready.num_rows() {
            self.ready = Some(ready.slice(rows, ready.num_rows() - rows));
        }
        Some(ready.slice(0, rows))
    }

    /// Decodes the next rows, as many as fit one batch.
    fn decode(&mut self) -> Result<Option<RecordBatch>> {
        if self.pending.is_none() {
            self.pending = self.take()?;
        }
        let Some(Pending { cells, start, left }) = self.pending.take() else { return Ok(None) };
        let mut rows = left;
        let decoded = loop {
            match self.unit.decode_rows(&cells, start, rows) {
                Err(e) if rows > 1 && e.is_batch_too_long() => rows /= 2,
                Err(e) if self.unit.on_error != OnError::Raise && is_of_a_cell(&e) => {
                    break self.unit.salvage_rows(&cells, start, rows);
                }
                decoded => break decoded,
            }
        };
        if rows < left {
            self.pending = Some(Pending { cells, start: start + rows, left: left - rows });
        } else if self.stretches.is_empty() {
            drop(cells);
            self.unit.finish(&mut self.columns);
        }
        decoded.map(Some)
    }

    /// Takes the cells of the next rows to keep.
    fn take(&mut self) -> Result<Option<Pending>> {
        self.pass_dropped()?;
        let Some(stretch) = self.stretches.front_mut() else { return Ok(None) };
        let null = match &stretch.fate {
            Fate::Null(columns) => Some(columns.clone()),
            _ => None,
        };
        let all = stretch.rows.end - stretch.rows.start;
        let rows = usize::try_from(all).unwrap_or(usize::MAX).min(self.unit.max_rows);
        stretch.rows.start += rows as u64;
        if stretch.rows.is_empty() {
            self.stretches.pop_front();
        }
        let first_row = self.taken;
        self.taken += rows as u64;
        let mut cells = Vec::with_capacity(self.columns.len());
        for (i, column) in self.columns.iter_mut().enumerate() {
            let is_null = null.as_ref().is_some_and(|null| null.get(i) == Some(&true));
            let taken = match column.as_mut() {
                Some(column) => Some(self.unit.titled(i, take_cells(column, rows, first_row))?),
                None => None,
            };
            cells.push(taken.filter(|_| !is_null));
        }
        Ok(Some(Pending { cells, start: 0, left: rows }))
    }

    /// Passes over dropped rows in front of the next rows to keep.
    fn pass_dropped(&mut self) -> Result<()> {
        while let Some(stretch) = self.stretches.front_mut().filter(|stretch| stretch.fate == Fate::Dropped) {
            let all = stretch.rows.end - stretch.rows.start;
            if self.stretches.len() == 1 {
                self.stretches.clear();
                return Ok(());
            }
            let rows = usize::try_from(all).unwrap_or(usize::MAX).min(self.unit.max_rows);
            if let Some(stretch) = self.stretches.front_mut() {
                stretch.rows.start += rows as u64;
            }
            for (i, column) in self.columns.iter_mut().enumerate() {
                if let Some(column) = column {
                    self.unit.titled(i, take_cells(column, rows, self.taken))?;
                }
            }
            self.taken += rows as u64;
            if rows as u64 == all {
                self.stretches.pop_front();
            }
        }
        Ok(())
    }
}

/// Takes the next `rows` cells of a column. The function that split the column into cells checked that they
/// lie within its bytes.
pub(in crate::scan) fn take_cells(column: &mut ColumnCells, rows: usize, first_row: u64) -> Result<Cells> {
    let offsets = match &mut column.places {
        Places::Nulled => OffsetBuffer::new_zeroed(rows),
        Places::All(offsets, done) => {
            *done += rows;
            offsets.slice(*done - rows, rows)
        }
        Places::Lengths(lengths) => {
            let mut ends = Vec::with_capacity(rows + 1);
            ends.push(lengths.end());
            lengths.read(rows, &mut ends)?;
            arrays::offsets(ends)?
        }
    };
    let nulled = matches!(column.places, Places::Nulled);
    Ok(Cells { data: column.data.clone(), offsets, nulled, first_row })
}

/// Whether the error concerns one cell, so that the row can be read without it: damage, or a value outside its Arrow
/// type (damaged digits give years that nanoseconds cannot represent).
pub(super) fn is_of_a_cell(e: &Error) -> bool {
    !matches!(e.kind(), ErrorKind::Io(_) | ErrorKind::Foreign(_) | ErrorKind::BatchTooLong { .. })
        && !e.is_limit()
}

/// Adds the cell to the error of a single row, if the error does not name it.
fn of_cell(e: Error, rows: usize, row: u64) -> Error {
    let is_named = rows != 1 || !e.structure().is_empty();
    if is_named { e } else { e.within("cell").within(format!("row {row}")) }
}

impl DecodeGroup {
    /// Rows `start..start + rows` of a batch's cells.
    fn decode_rows(&self, cells: &[Option<Cells>], start: usize, rows: usize) -> Result<RecordBatch> {
        self.batch(self.decode_columns(cells, start, rows, |_| true)?, rows)
    }

    /// Decodes these rows of the columns whose indexes `wanted` accepts.
    pub(in crate::scan) fn decode_columns(
        &self,
        cells: &[Option<Cells>],
        start: usize,
        rows: usize,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Vec<ArrayRef>> {
        let columns = cells.iter().zip(self.columns()).enumerate().filter(|(i, _)| wanted(*i));
        columns
            .map(|(_, (cells, column))| match cells {
                None => Ok(new_null_array(&column.data_type, rows)),
                Some(cells) => {
                    let part = part(cells, start, rows);
                    self.check_size(column, &part, rows)
                        .and_then(|()| column.decoder.decode(&part))
                        .map_err(|e| of_cell(e, rows, part.first_row))
                        .within(|| column.title())
                }
            })
            .collect()
    }

    /// Decodes cells of a column, as many at a time as fit a batch, and discards the values.
    pub(super) fn check_cells(&self, place: usize, cells: &Cells) -> Result<()> {
        let Some(column) = self.columns().get(place) else { return Ok(()) };
        let (mut start, rows) = (0, cells.offsets.len().saturating_sub(1));
        while start < rows {
            let ((), taken) = fitting(rows - start, |n| {
                let part = part(cells, start, n);
                self.check_size(column, &part, n)?;
                column.decoder.decode(&part).map(drop).within(|| column.title())
            })?;
            start += taken;
        }
        Ok(())
    }

    /// Refuses cells that are too long for one batch, or whose elements take more memory than a block may.
    fn check_size(&self, column: &ScanColumn, cells: &Cells, rows: usize) -> Result<()> {
        let bytes = u64::from((cells.offsets.last() - cells.offsets.first()).unsigned_abs());
        let elements = column.decoder.element_bytes(cells);
        if rows > 1 {
            return self.decoders.limits.check_batch(
                "cells of a column",
                rows,
                bytes.saturating_add(elements),
            );
        }
        self.decoders.limits.block("the elements of a value", elements)?;
        self.decoders.limits.check_batch("cells of a column", rows, bytes)
    }

    pub(in crate::scan) fn batch(&self, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.decoders.schema.clone(), arrays, &options).map_err(arrow_error)
    }

    /// The rows that decode. Halves the range until the bad rows are isolated: cells are independent, so a bad cell
    /// costs one row.
    fn salvage_rows(&self, cells: &[Option<Cells>], start: usize, rows: usize) -> Result<RecordBatch> {
        match self.decode_rows(cells, start, rows) {
            Ok(batch) => Ok(batch),
            Err(e) if !(is_of_a_cell(&e) || rows > 1 && e.is_batch_too_long()) => Err(e),
            Err(e) if rows == 1 && self.on_error == OnError::Null => self.null_cells(cells, start, e),
            Err(e) if rows == 1 => {
                self.record(e, Some(1));
                Ok(RecordBatch::new_empty(self.decoders.schema.clone()))
            }
            Err(_) => {
                let first = self.salvage_rows(cells, start, rows / 2)?;
                let second = self.salvage_rows(cells, start + rows / 2, rows - rows / 2)?;
                let arrays = first
                    .columns()
                    .iter()
                    .zip(second.columns())
                    .map(|(a, b)| concat(&[a.as_ref() as &dyn Array, b.as_ref()]).map_err(arrow_error))
                    .collect::<Result<Vec<_>>>()?;
                self.batch(arrays, first.num_rows() + second.num_rows())
            }
        }
    }

    /// One row with null for the cells that do not decode.
    fn null_cells(&self, cells: &[Option<Cells>], row: usize, e: Error) -> Result<RecordBatch> {
        self.record(e, Some(0));
        let arrays = cells
            .iter()
            .zip(self.columns())
            .map(|(cells, column)| {
                let decoded = cells.as_ref().map(|cells| column.decoder.decode(&part(cells, row, 1)));
                match decoded {
                    Some(Ok(array)) => array,
                    _ => new_null_array(&column.data_type, 1),
                }
            })
            .collect();
        self.batch(arrays, 1)
    }
}

/// Rows `start..start + rows` of these cells.
pub(super) fn part(cells: &Cells, start: usize, rows: usize) -> Cells {
    let offsets = cells.offsets.slice(start, rows);
    let first_row = cells.first_row + start as u64;
    Cells { data: cells.data.clone(), offsets, nulled: cells.nulled, first_row }
}
