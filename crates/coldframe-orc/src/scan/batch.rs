//! The columns of a stripe, open at a row, from which batches are decoded.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType;
use coldframe_core::{Error, Result, arrow_error, threads};

use super::column::{ColumnReader, MalformedValue};
use super::readers::{SKIPPED, Stored, fewer_rows, nulls};
use super::rle::bytes::BitRle;
use super::statements::Tally;
use super::tallies::{Complete, compare};

/// Batches of fewer rows are decoded on one thread.
const PARALLEL_ROWS: usize = 4096;
/// Decoded bytes of a value that has no variable length, at most.
const VALUE: u64 = 16;

/// Open columns, all at the same row.
pub(super) struct Open {
    pub(super) row: u64,
    root: Option<BitRle>,
    /// Whether they were opened at a position of the index, which may be wrong.
    pub(super) believes: bool,
    pub(super) columns: Vec<Reading>,
}

/// A column that is being read.
#[derive(Default)]
pub(super) struct Reading {
    /// `None` for a column whose values are null.
    pub(super) reader: Option<Box<dyn ColumnReader>>,
    /// The row group that is being compared with its statistics, and where it begins.
    tally: Option<(usize, Tally)>,
    pub(super) failed: Option<Error>,
}

/// What decoded values are compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    Nothing,
    /// The statistics of each row group.
    Groups,
    /// The statistics of the stripe, which is read from its first row to its last.
    Stripe,
}

/// A decoded batch.
pub(super) struct Decoded {
    pub(super) batch: RecordBatch,
    pub(super) first: u64,
    pub(super) malformed: Vec<MalformedValue>,
}

/// What each column of the scan is compared with.
pub(super) type CompareOf<'a> = &'a (dyn Fn(usize) -> Compare + Sync);

impl Stored {
    /// The open columns at `row`: those that were open there or before, or new ones, opened where the row group of
    /// the row `from` begins.
    pub(super) fn opened(
        &self,
        open: Option<Open>,
        from: u64,
        row: u64,
        null: Option<&[bool]>,
    ) -> Result<Open> {
        let is_null = |place: usize| null.is_some_and(|null| null.get(place) == Some(&true));
        if let Some(mut open) = open
            && open.columns.iter().enumerate().all(|(at, column)| column.reader.is_none() == is_null(at))
        {
            self.pass(&mut open, row)?;
            return Ok(open);
        }
        let root = self.root_at(from, row)?;
        let mut columns = Vec::with_capacity(self.scan.columns.len());
        for place in 0..self.scan.columns.len() {
            let mut reading = Reading::default();
            if !is_null(place) {
                match self.open(place, from, row) {
                    Ok(reader) => reading.reader = Some(reader),
                    Err(e) => reading.failed = Some(e),
                }
            }
            columns.push(reading);
        }
        Ok(Open { row, root, believes: self.believes(from), columns })
    }

    /// Passes over rows of open columns, up to `row`.
    fn pass(&self, open: &mut Open, row: u64) -> Result<()> {
        while open.row < row {
            let rows = (row - open.row).min(SKIPPED).min(self.rows_at_once as u64);
            let count = usize::try_from(rows).unwrap_or(usize::MAX);
            self.batch_bytes.clear();
            let root = nulls(&mut open.root, count)?;
            self.each_column(open, count, |column, _| {
                let Some(reader) = column.reader.as_mut().filter(|_| column.failed.is_none()) else { return };
                if let Err(e) = reader.skip(count, root.as_ref()) {
                    column.failed = Some(e);
                }
            });
            open.row += rows;
        }
        Ok(())
    }

    /// The next `rows` rows as a batch, or those that `kept` selects. Columns that fail are noted. `None` if they take too much memory: then
    /// fewer rows are decoded at once, and the columns must be opened again.
    pub(super) fn decode(
        &mut self,
        open: &mut Open,
        rows: u64,
        with: CompareOf<'_>,
        kept: Option<&BooleanBuffer>,
    ) -> Result<Option<Decoded>> {
        let count = usize::try_from(rows).unwrap_or(usize::MAX);
        self.batch_bytes.clear();
        let root = nulls(&mut open.root, count)?;
        let first = open.row;
        let mut columns = self.columns(open, count, root.as_ref(), with, kept);
        let too_long = open.columns.iter().find_map(|column| {
            column.failed.as_ref().filter(|e| e.is_batch_too_long() && self.rows_at_once > 1)
        });
        if let Some(e) = too_long {
            let batch_bytes = self.scan.shape.options.limits.batch_bytes();
            self.rows_at_once = fewer_rows(e, self.rows_at_once.min(count), batch_bytes);
            return Ok(None);
        }
        // After the stored columns: the row numbers.
        let schema = &self.scan.schema;
        let unstored = schema.fields().len().saturating_sub(columns.len());
        if unstored > 0 {
            let first = self.job.stripe.first_row.saturating_add(first);
            let number = |row: usize| i64::try_from(first.saturating_add(row as u64)).unwrap_or(i64::MAX);
            let numbers: ArrayRef = Arc::new(match kept {
                Some(kept) => Int64Array::from_iter_values(kept.set_indices().map(number)),
                None => Int64Array::from_iter_values((0..count).map(number)),
            });
            columns.extend(std::iter::repeat_n(numbers, unstored));
        }
        open.row += rows;
        let failed = open.columns.iter().any(|column| column.failed.is_some());
        let options =
            RecordBatchOptions::new().with_row_count(Some(kept.map_or(count, BooleanBuffer::count_set_bits)));
        let batch = match failed {
            true => RecordBatch::new_empty(schema.clone()),
            false => {
                RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(arrow_error)?
            }
        };
        let mut malformed = Vec::new();
        let readers = open.columns.iter().filter_map(|column| column.reader.as_ref());
        readers.for_each(|reader| reader.malformed(&mut malformed));
        Ok(Some(Decoded { batch, first, malformed }))
    }

    fn columns(
        &self,
        open: &mut Open,
        rows: usize,
        root: Option<&NullBuffer>,
        with: CompareOf<'_>,
        kept: Option<&BooleanBuffer>,
    ) -> Vec<ArrayRef> {
        let scan = &self.scan;
        let first = open.row;
        let returned = kept.map_or(rows, BooleanBuffer::count_set_bits);
        let read = |column: &mut Reading, place: usize| -> ArrayRef {
            let now = first..first + rows as u64;
            let read = match kept {
                Some(kept) => self.read_kept(column, rows, root, kept),
                None => self.read_column(column, place, now, root, with(place)),
            };
            match read {
                Ok(Some(array)) => return array,
                Ok(None) => {}
                Err(e) => column.failed = Some(e),
            }
            let data_type = scan.columns.get(place).map_or(&DataType::Null, |(_, field)| field.data_type());
            // A column that failed is not returned.
            new_null_array(data_type, if column.failed.is_some() { 0 } else { returned })
        };
        self.each_column(open, rows, read)
    }

    /// The results of `task` for all columns, on as many threads as are worth it for these rows.
    fn each_column<T: Send>(
        &self,
        open: &mut Open,
        rows: usize,
        task: impl Fn(&mut Reading, usize) -> T + Sync,
    ) -> Vec<T> {
        let threads = self.scan.threads;
        if threads.min(open.columns.len()) < 2 || rows < PARALLEL_ROWS {
            return open.columns.iter_mut().enumerate().map(|(place, column)| task(column, place)).collect();
        }
        let count = open.columns.len();
        let mut results: Vec<Option<T>> = (0..count).map(|_| None).collect();
        let mut all: Vec<_> = open.columns.iter_mut().enumerate().zip(&mut results).collect();
        // Start with the largest column: at the end, it would keep a single thread busy.
        all.sort_by_key(|((place, _), _)| std::cmp::Reverse(self.sizes.get(*place).copied()));
        threads::share(all.into_iter(), threads, |((place, column), slot)| *slot = Some(task(column, place)));
        results.into_iter().flatten().collect()
    }

    /// The values of a column in the rows that `kept` selects; `None` for null, or if it has failed.
    fn read_kept(
        &self,
        column: &mut Reading,
        rows: usize,
        root: Option<&NullBuffer>,
        kept: &BooleanBuffer,
    ) -> Result<Option<ArrayRef>> {
        let Some(reader) = column.reader.as_mut().filter(|_| column.failed.is_none()) else {
            return Ok(None);
        };
        reader.read_kept(rows, root, kept).map(Some).map_err(|e| self.scan.on_error.weigh(e))
    }

    /// The values of a column; `None` for null, or if it has failed.
    fn read_column(
        &self,
        column: &mut Reading,
        place: usize,
        rows: Range<u64>,
        root: Option<&NullBuffer>,
        with: Compare,
    ) -> Result<Option<ArrayRef>> {
        let Some(reader) = column.reader.as_mut().filter(|_| column.failed.is_none()) else {
            return Ok(None);
        };
        let count = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
        // A value that its column's type cannot hold may count as damage, too: an instant outside the range of
        // nanoseconds, a map's null key.
        let array = reader.read(count, root).map_err(|e| self.scan.on_error.weigh(e))?;
        if with == Compare::Nothing {
            return Ok(Some(array));
        }
        let mut malformed = Vec::new();
        reader.malformed(&mut malformed);
        let complete = match &self.job.groups {
            Some(groups) if with == Compare::Groups => {
                let new = |group| self.tally(place, Some(group));
                compare(&mut column.tally, &array, &malformed, rows, groups, new)
            }
            _ => {
                if rows.start == 0 {
                    column.tally = self.tally(place, None).map(|tally| (0, tally));
                }
                column.tally.iter_mut().for_each(|(_, tally)| tally.add(&array, &malformed));
                let is_last = rows.end == self.job.stripe.rows;
                let tally = if is_last { column.tally.take() } else { None };
                Complete(tally.into_iter().map(|(_, tally)| (tally, 0)).collect())
            }
        };
        complete.check(&self.scan, &self.job.layout)?;
        Ok(Some(array))
    }

    /// The bytes of the batch that was decoded last, approximately.
    pub(super) fn size(&self, rows: usize) -> u64 {
        let fixed = (rows as u64).saturating_mul(self.scan.columns.len() as u64).saturating_mul(VALUE);
        self.batch_bytes.so_far().saturating_add(fixed)
    }
}
