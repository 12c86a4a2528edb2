//! Decodes a stripe: reads all its columns for the rows of a batch, then those of the next batch.
//!
//! Columns do not depend on each other, so they are decoded on as many threads as the scan allows and
//! [`threads`] finds idle. There are two ways to read:
//!
//! ```text
//! from the start    | batch | batch | batch |    each batch is handed out; the streams must end with the last row
//! proved            | groups | groups | ..       some row groups at once; handed out once positions and statistics
//!                                                of the index agree with what was decoded
//! ```
//!
//! A plain read goes from the start, and believes no index, unless a filter wants only some row groups. If the
//! index lies, the stripe is then read in full, and the caller is warned. A read that tolerates damage is
//! always proved: a column that fails is surveyed ([`super::survey`]), and what is saved of it is settled
//! before its first row is handed out. So neither the size of batches nor a limit nor a filter changes what is
//! saved.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use coldframe_core::io::read_coalesced;
use coldframe_core::salvage::{Fate, Salvage, Stretch};
use coldframe_core::{Error, Notice, OnError, Result, arrow_error, threads};

use super::column::{ColumnReader, MalformedValue, input::StoredStreams};
use super::fetched;
use super::job::{Run, ScanShared, StripeJob, stored_bytes};
use super::ranges;
use super::readers::{Chunks, PROVED_ROWS, Stored, fewer_rows, nulls, too_long_for_all};
use super::rle::bytes::BitRle;
use super::statements::{Tally, is_of_statistics};
use super::tallies::{Complete, compare};

/// Batches of fewer rows are decoded on one thread.
const PARALLEL_ROWS: usize = 4096;
/// So many batches' decoded bytes are kept until they are proved. What takes more is decoded once more afterwards.
const KEPT_BATCHES: u64 = 2;
/// Decoded bytes of a value that has no variable length, at most.
const VALUE: u64 = 16;

/// The batches of a stripe.
pub(crate) struct StripeBatches {
    pub(super) stored: Stored,
    /// Stored bytes of each column to decode.
    sizes: Vec<u64>,
    /// The remaining runs.
    tasks: VecDeque<Run>,
    current: Option<Current>,
    /// What is proved and not handed out yet.
    ready: VecDeque<Ready>,
    pub(super) salvage: Salvage,
    /// For each column, whether it was surveyed: its losses are known.
    pub(super) surveyed: Vec<bool>,
    /// Whether all streams were read after a contradiction of the index.
    reads_in_full: bool,
    /// Whether superfluous values were looked for, in the streams that are here.
    is_decided: bool,
    failed: bool,
}

/// The run that is being read.
pub(super) struct Current {
    run: Run,
    /// Its next row.
    row: u64,
    pub(super) open: Option<Open>,
}

/// Open columns, all at the same row.
pub(super) struct Open {
    row: u64,
    root: Option<BitRle>,
    columns: Vec<Reading>,
}

/// A column that is being read.
#[derive(Default)]
struct Reading {
    /// `None` for a column whose values are null.
    reader: Option<Box<dyn ColumnReader>>,
    /// The row group that is being compared with its statistics, and where it begins.
    tally: Option<(usize, Tally)>,
    failed: Option<Error>,
}

/// What decoded values are compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compare {
    Nothing,
    /// The statistics of each row group.
    Groups,
    /// The statistics of the stripe, which is read from its first row to its last.
    Stripe,
}

/// Rows that are proved.
pub(super) enum Ready {
    Batch(Decoded),
    /// Too many bytes to keep them: they are decoded again. With the columns that are null.
    Rows(Range<u64>, Option<Arc<[bool]>>),
}

/// A decoded batch.
pub(super) struct Decoded {
    pub(super) batch: RecordBatch,
    pub(super) first: u64,
    pub(super) malformed: Vec<MalformedValue>,
}

/// The result of a step.
enum Step {
    Batch(RecordBatch),
    /// The step gave no batch.
    Pending,
    Done,
}

impl Iterator for StripeBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            match self.advance() {
                Ok(Step::Batch(batch)) => return Some(Ok(batch)),
                Ok(Step::Pending) => {}
                Ok(Step::Done) => return None,
                Err(e) => {
                    self.failed = true;
                    return Some(Err(e));
                }
            }
        }
        None
    }
}

impl StripeBatches {
    /// Decodes a stripe whose streams were fetched; [`Self::set_tasks`] sets what to read.
    pub(crate) fn new(scan: Arc<ScanShared>, job: StripeJob, streams: StoredStreams) -> Self {
        let nullable = scan.columns.iter().map(|(_, field)| field.is_nullable());
        Self {
            sizes: stored_bytes(&scan, &job),
            salvage: Salvage::new(scan.on_error, nullable, scan.damage.clone()),
            surveyed: vec![false; scan.columns.len()],
            stored: Stored::new(scan, job, streams),
            tasks: VecDeque::new(),
            current: None,
            ready: VecDeque::new(),
            reads_in_full: false,
            is_decided: false,
            failed: false,
        }
    }

    /// Replaces the streams, by those of other columns.
    pub(crate) fn set_streams(&mut self, streams: StoredStreams) {
        self.stored.streams = streams;
        self.stored.forget_dictionaries();
    }

    /// Sets the runs to read next.
    pub(crate) fn set_tasks(&mut self, tasks: impl Iterator<Item = Run>) {
        self.tasks = tasks.collect();
    }

    /// Reads the parts of the deferred streams that `runs` need.
    pub(crate) fn read_deferred(&mut self, runs: &[Run]) -> Result<()> {
        let Stored { scan, job, streams, .. } = &mut self.stored;
        match &job.deferred {
            Some(deferred) if !self.reads_in_full => {
                fetched::read_deferred(scan, job, deferred, runs, streams)
            }
            _ => Ok(()),
        }
    }

    /// Whether all bytes of all streams are here.
    pub(super) fn has_whole_streams(&self) -> bool {
        self.reads_in_full || self.stored.job.parts.iter().all(|part| part.whole)
    }

    fn tolerates(&self) -> bool {
        self.stored.scan.on_error != OnError::Raise
    }

    fn advance(&mut self) -> Result<Step> {
        match self.ready.pop_front() {
            Some(Ready::Batch(decoded)) => return self.readable(decoded).map(Step::Batch),
            Some(Ready::Rows(rows, null)) => return self.decode_again(rows, null),
            None => {}
        }
        let Some(mut current) = self.current.take().or_else(|| self.next_run()) else {
            return Ok(Step::Done);
        };
        if current.row >= current.run.wanted.end {
            return Ok(Step::Pending);
        }
        if !std::mem::replace(&mut self.is_decided, true) {
            self.decide_superfluous()?;
        }
        let is_proved = self.tolerates() || (current.run.positions.is_some() && !self.reads_in_full);
        let step = if is_proved { self.prove(&mut current) } else { self.read_on(&mut current) };
        let step = match step {
            Err(e) => self.read_in_full(e, &current.run).map(|()| {
                current.open = None;
                Step::Pending
            }),
            step => step,
        }?;
        self.current = Some(current);
        Ok(step)
    }

    fn next_run(&mut self) -> Option<Current> {
        let run = self.tasks.pop_front()?;
        Some(Current { row: run.rows.start, run, open: None })
    }

    /// Decodes the next batch of a plain read.
    fn read_on(&mut self, current: &mut Current) -> Result<Step> {
        let run = &current.run;
        // The first rows of a row group are read only to prove it.
        current.row = current.row.max(run.wanted.start);
        let mut open = self.opened(current.open.take(), current.row, None)?;
        let rows = (run.wanted.end - current.row).min(self.stored.rows_at_once as u64);
        let all = 0..self.stored.job.stripe.rows;
        let is_whole = run.rows == all && run.wanted == all && !self.reads_in_full;
        let with = if is_whole { Compare::Stripe } else { Compare::Nothing };
        let Some(decoded) = self.decode(&mut open, rows, with)? else { return Ok(Step::Pending) };
        let mut failed = open.columns.iter_mut().enumerate();
        let failed = failed.find_map(|(place, column)| Some((place, column.failed.take()?)));
        if let Some((place, e)) = failed {
            // The statistics of the stripe are stated once more by its row groups.
            if with == Compare::Stripe && is_of_statistics(&e) && self.agrees_with_index(place)? {
                self.surveyed.iter_mut().skip(place).take(1).for_each(|surveyed| *surveyed = true);
                return Ok(Step::Pending);
            }
            return Err(e);
        }
        if open.row == self.stored.job.stripe.rows {
            for (place, column) in open.columns.iter().enumerate() {
                if let Some(reader) = &column.reader {
                    self.stored.check_position(place, reader.as_ref(), open.row, Chunks::Usual)?;
                }
            }
        }
        current.row = open.row;
        current.open = Some(open);
        self.readable(decoded).map(Step::Batch)
    }

    /// Decodes proved rows that could not be kept.
    fn decode_again(&mut self, mut rows: Range<u64>, null: Option<Arc<[bool]>>) -> Result<Step> {
        let open = self.current.as_mut().and_then(|current| current.open.take());
        let open = open.filter(|open| open.row == rows.start);
        let mut open = self.opened(open, rows.start, null.as_deref())?;
        let count = (rows.end - rows.start).min(self.stored.rows_at_once as u64);
        let decoded = self.decode(&mut open, count, Compare::Nothing)?;
        if let Some(e) = open.columns.iter_mut().find_map(|column| column.failed.take()) {
            return Err(e);
        }
        if decoded.is_some() {
            rows.start = open.row;
        }
        if !rows.is_empty() {
            self.ready.push_front(Ready::Rows(rows, null));
        }
        if let (Some(current), Some(_)) = (&mut self.current, &decoded) {
            current.open = Some(open);
        }
        decoded.map_or(Ok(Step::Pending), |decoded| self.readable(decoded).map(Step::Batch))
    }

    /// Decodes the next row groups, and puts what is proved of them into `ready`.
    fn prove(&mut self, current: &mut Current) -> Result<Step> {
        let rows = self.next_groups(current);
        self.survey_unlocated()?;
        let mut ready = VecDeque::new();
        loop {
            let mut failed = Vec::new();
            ready.clear();
            let stretches = match self.tolerates() {
                true => self.salvage.stretches(rows.clone()),
                false => [Stretch { rows: rows.clone(), fate: Fate::Kept }].into(),
            };
            if self.tolerates() && self.survey_partial(&stretches)? {
                continue;
            }
            for stretch in stretches {
                let null = match stretch.fate {
                    Fate::Dropped => continue,
                    Fate::Kept => None,
                    Fate::Null(columns) => Some(columns),
                };
                failed.extend(self.attempt(current, stretch.rows, null, &mut ready)?);
            }
            if failed.is_empty() {
                break;
            }
            current.open = None;
            self.settle(failed, rows.clone())?;
        }
        if self.stored.scan.doubtful {
            ready = self.doubtful(current, &rows)?;
        }
        for item in ready {
            self.ready.extend(wanted(item, &current.run.wanted));
        }
        current.row = rows.end;
        Ok(Step::Pending)
    }

    /// The rows to prove next.
    fn next_groups(&self, current: &Current) -> Range<u64> {
        let (row, end) = (current.row, current.run.rows.end);
        let Some(groups) = &self.stored.job.groups else { return row..end };
        let most = PROVED_ROWS.min(self.stored.scan.most_rows) as u64;
        let ends = groups.runs.iter().skip(groups.holding(row)).map(|group| group.rows.end);
        let mut step = row;
        for group_end in ends.take_while(|group_end| *group_end <= end) {
            if step > row && group_end - row > most {
                break;
            }
            step = group_end;
        }
        row..if step > row { step } else { end }
    }

    /// Decodes rows and compares them with what the file states. Adds them to `ready`, and returns the columns
    /// that fail.
    pub(super) fn attempt(
        &mut self,
        current: &mut Current,
        rows: Range<u64>,
        null: Option<Arc<[bool]>>,
        ready: &mut VecDeque<Ready>,
    ) -> Result<Vec<(Option<usize>, Error)>> {
        let mut open = current.open.take().filter(|open| open.row == rows.start);
        let most = KEPT_BATCHES * self.stored.scan.shape.options.limits.batch_bytes();
        loop {
            let mut now = match self.opened(open.take(), rows.start, null.as_deref()) {
                Err(e) if self.tolerates() && e.is_damage() => return Ok(vec![(None, e)]),
                opened => opened?,
            };
            let (mut kept, mut bytes) = (Vec::new(), Some(0u64));
            let whole = loop {
                let count = (rows.end - now.row).min(self.stored.rows_at_once as u64);
                if count == 0 {
                    break true;
                }
                match self.decode(&mut now, count, Compare::Groups) {
                    Ok(Some(decoded)) => {
                        let size = self.size(decoded.batch.num_rows());
                        bytes = bytes.map(|b| b.saturating_add(size)).filter(|b| *b <= most);
                        if bytes.is_some() { kept.push(decoded) } else { kept = Vec::new() }
                    }
                    Ok(None) => break false,
                    Err(e) if self.tolerates() && e.is_damage() => return Ok(vec![(None, e)]),
                    Err(e) => return Err(e),
                }
            };
            if !whole {
                continue;
            }
            let failed = self.failures(&mut now, rows.end);
            if failed.is_empty() {
                current.open = Some(now);
                match bytes {
                    Some(_) => ready.extend(kept.into_iter().map(Ready::Batch)),
                    None => ready.push_back(Ready::Rows(rows, null)),
                }
            }
            return Ok(failed);
        }
    }

    /// The columns that failed, or do not end at `row` as the file states.
    fn failures(&self, open: &mut Open, row: u64) -> Vec<(Option<usize>, Error)> {
        let mut failed = Vec::new();
        for (place, column) in open.columns.iter_mut().enumerate() {
            if let Some(e) = column.failed.take() {
                failed.push((Some(place), e));
                continue;
            }
            let Some(reader) = column.reader.as_ref().filter(|_| !self.is_surveyed(place)) else { continue };
            if let Err(e) = self.stored.check_position(place, reader.as_ref(), row, Chunks::Usual) {
                failed.push((Some(place), e));
            }
        }
        failed
    }

    pub(super) fn is_surveyed(&self, place: usize) -> bool {
        self.surveyed.get(place).copied().unwrap_or(true)
    }

    /// Settles what is saved of columns that failed in `rows`, or returns the error.
    pub(super) fn settle(&mut self, failed: Vec<(Option<usize>, Error)>, rows: Range<u64>) -> Result<()> {
        for (place, e) in failed {
            let e = too_long_for_all(e);
            if !self.tolerates() || !e.is_damage() {
                return Err(e);
            }
            match place.filter(|place| !self.is_surveyed(*place)) {
                Some(place) => self.survey(place)?,
                // Damage in the nulls of the root, or in values that the survey could read: no column is to
                // blame, and nothing proves these rows.
                None => self.lose_rows(&e, rows.clone()),
            }
        }
        Ok(())
    }

    /// The open columns at `row`: those that were open, or new ones.
    fn opened(&self, open: Option<Open>, row: u64, null: Option<&[bool]>) -> Result<Open> {
        let is_null = |place: usize| null.is_some_and(|null| null.get(place) == Some(&true));
        if let Some(open) = open
            && open.columns.iter().enumerate().all(|(at, column)| column.reader.is_none() == is_null(at))
        {
            return Ok(open);
        }
        let root = self.stored.root_at(row)?;
        let mut columns = Vec::with_capacity(self.stored.scan.columns.len());
        for place in 0..self.stored.scan.columns.len() {
            let mut reading = Reading::default();
            if !is_null(place) {
                match self.stored.open(place, row) {
                    Ok(reader) => reading.reader = Some(reader),
                    Err(e) => reading.failed = Some(e),
                }
            }
            columns.push(reading);
        }
        Ok(Open { row, root, columns })
    }

    /// The next `rows` rows as a batch. Columns that fail are noted. `None` if they take too much memory: then
    /// fewer rows are decoded at once, and the columns must be opened again.
    fn decode(&mut self, open: &mut Open, rows: u64, with: Compare) -> Result<Option<Decoded>> {
        let count = usize::try_from(rows).unwrap_or(usize::MAX);
        self.stored.batch_bytes.clear();
        let root = nulls(&mut open.root, count)?;
        let first = open.row;
        let mut columns = self.columns(open, count, root.as_ref(), with);
        let too_long = open.columns.iter().find_map(|column| {
            column.failed.as_ref().filter(|e| e.is_batch_too_long() && self.stored.rows_at_once > 1)
        });
        if let Some(e) = too_long {
            let batch_bytes = self.stored.scan.shape.options.limits.batch_bytes();
            self.stored.rows_at_once = fewer_rows(e, self.stored.rows_at_once.min(count), batch_bytes);
            return Ok(None);
        }
        // After the stored columns: the row numbers.
        let schema = &self.stored.scan.schema;
        let unstored = schema.fields().len().saturating_sub(columns.len());
        if unstored > 0 {
            let first = self.stored.job.stripe.first_row.saturating_add(first);
            let numbers = (first..).take(count).map(|n| i64::try_from(n).unwrap_or(i64::MAX));
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
            columns.extend(std::iter::repeat_n(numbers, unstored));
        }
        open.row += rows;
        let failed = open.columns.iter().any(|column| column.failed.is_some());
        let options = RecordBatchOptions::new().with_row_count(Some(count));
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
        with: Compare,
    ) -> Vec<ArrayRef> {
        let scan = &self.stored.scan;
        let (first, threads) = (open.row, scan.threads);
        let read = |column: &mut Reading, place: usize| -> ArrayRef {
            let with = if self.is_surveyed(place) { Compare::Nothing } else { with };
            match self.read_column(column, place, first..first + rows as u64, root, with) {
                Ok(Some(array)) => return array,
                Ok(None) => {}
                Err(e) => column.failed = Some(e),
            }
            let data_type = scan.columns.get(place).map_or(&DataType::Null, |(_, field)| field.data_type());
            // A column that failed is not handed out.
            new_null_array(data_type, if column.failed.is_some() { 0 } else { rows })
        };
        if threads.min(open.columns.len()) < 2 || rows < PARALLEL_ROWS {
            return open.columns.iter_mut().enumerate().map(|(place, column)| read(column, place)).collect();
        }
        let count = open.columns.len();
        let mut decoded: Vec<Option<ArrayRef>> = (0..count).map(|_| None).collect();
        let mut all: Vec<_> = open.columns.iter_mut().enumerate().zip(&mut decoded).collect();
        // Start with the largest column: at the end, it would keep a single thread busy.
        all.sort_by_key(|((place, _), _)| std::cmp::Reverse(self.sizes.get(*place).copied()));
        threads::share(all.into_iter(), threads, |((place, column), slot)| *slot = Some(read(column, place)));
        decoded.into_iter().flatten().collect()
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
        let array = reader.read(count, root).map_err(|e| self.stored.scan.on_error.weigh(e))?;
        if with == Compare::Nothing {
            return Ok(Some(array));
        }
        let mut malformed = Vec::new();
        reader.malformed(&mut malformed);
        let complete = match &self.stored.job.groups {
            Some(groups) if with == Compare::Groups => {
                let new = |group| self.stored.tally(place, Some(group));
                compare(&mut column.tally, &array, &malformed, rows, groups, new)
            }
            _ => {
                if rows.start == 0 {
                    column.tally = self.stored.tally(place, None).map(|tally| (0, tally));
                }
                column.tally.iter_mut().for_each(|(_, tally)| tally.add(&array, &malformed));
                let is_last = rows.end == self.stored.job.stripe.rows;
                let tally = if is_last { column.tally.take() } else { None };
                Complete(tally.into_iter().map(|(_, tally)| (tally, 0)).collect())
            }
        };
        complete.check(&self.stored.scan, &self.stored.job.layout)?;
        Ok(Some(array))
    }

    /// The bytes of the batch that was decoded last, approximately.
    fn size(&self, rows: usize) -> u64 {
        let fixed = (rows as u64).saturating_mul(self.stored.scan.columns.len() as u64).saturating_mul(VALUE);
        self.stored.batch_bytes.so_far().saturating_add(fixed)
    }

    /// Reads the whole stripe from its start after an error of a read by position: the index may lie. Returns
    /// the error if the stripe is already read so.
    fn read_in_full(&mut self, e: Error, run: &Run) -> Result<()> {
        let is_whole = run.positions.is_none() && self.has_whole_streams();
        let stored = &mut self.stored;
        if stored.scan.on_error != OnError::Raise || self.reads_in_full || is_whole || !e.is_damage() {
            return Err(e);
        }
        let parts = ranges::whole(&stored.scan, &stored.job.layout);
        let bytes: Vec<_> = parts.iter().map(|part| part.bytes.clone()).collect();
        let bytes = read_coalesced(stored.scan.shape.source.as_ref(), &bytes)?;
        stored.streams.clear();
        fetched::add(&stored.scan, &stored.job, &parts, bytes, &mut stored.streams)?;
        stored.forget_dictionaries();
        stored.in_full.fill(true);
        self.reads_in_full = true;
        self.is_decided = false;
        let text = format!("{}: {}: {}", stored.job.stripe.name(), e.structure(), e.reason());
        stored.scan.damage.notify(Notice::WrongIndex(text));
        Ok(())
    }
}

/// The part of proved rows that is wanted.
fn wanted(item: Ready, wanted: &Range<u64>) -> Option<Ready> {
    match item {
        Ready::Rows(rows, null) => {
            let rows = rows.start.max(wanted.start)..rows.end.min(wanted.end);
            (!rows.is_empty()).then_some(Ready::Rows(rows, null))
        }
        Ready::Batch(Decoded { batch, first, mut malformed }) => {
            let end = first + batch.num_rows() as u64;
            let (from, to) = (wanted.start.clamp(first, end), wanted.end.clamp(first, end));
            let cut = |row: u64| usize::try_from(row - first).unwrap_or(usize::MAX);
            let (start, stop) = (cut(from), cut(to));
            if start >= stop {
                return None;
            }
            malformed.retain(|value| (start..stop).contains(&value.row));
            malformed.iter_mut().for_each(|value| value.row -= start);
            Some(Ready::Batch(Decoded { batch: batch.slice(start, stop - start), first: from, malformed }))
        }
    }
}
