//! Decodes a stripe: reads all its columns for the rows of a batch, then those of the next batch.
//!
//! Columns do not depend on each other, so they are decoded on as many threads as the scan allows and
//! [`threads`] finds idle. Damage is confined in steps. The failed batch is read again by row groups, from
//! their positions in the index. In a row group that fails again, fewer and fewer rows are read at once, down
//! to the first damaged row. From there to the end of the row group the rows are lost, or with
//! [`OnError::Null`] the values of the columns that fail.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_schema::Field;
use coldframe_core::salvage::{MAX_BATCH_BYTES, without_rows};
use coldframe_core::{Change, Damage, Error, ErrorKind, OnError, Result, arrow_error, threads};

use super::column::dictionary::Dictionaries;
use super::column::input::{BatchBytes, Input, StoredStreams};
use super::column::{self, ColumnReader, MalformedValue};
use super::fetched;
use super::job::{Run, ScanShared, StripeJob, stored_bytes};
use super::rle::bytes::BitRle;
use super::stream::StreamPosition;
use crate::layout::compression::Compression;
use crate::layout::index::Positions;
use crate::layout::stripe::StreamKind;
use crate::layout::types::{Column, Kind};

/// Batches of fewer rows are decoded on one thread.
const PARALLEL_ROWS: usize = 4096;

/// A run of rows to decode, and how.
#[derive(Clone)]
pub(crate) struct Task {
    run: Run,
    /// Whether the values of columns that fail become null.
    lenient: bool,
    /// Maximum number of rows that are decoded at once; fewer near damage, to keep the rows before it.
    max_rows: usize,
    /// Indexes of columns that are null in the whole run.
    null: Vec<usize>,
}

impl Task {
    pub(crate) fn new(run: Run) -> Self {
        Self { run, lenient: false, max_rows: usize::MAX, null: Vec::new() }
    }

    /// The task for the rows from `done` on, which is at or after the first row to return.
    fn from(&self, done: u64) -> Self {
        Self { run: Run { skip: done - self.run.rows.start, ..self.run.clone() }, ..self.clone() }
    }

    /// The first row to return from `row` on.
    fn first_returned(&self, row: u64) -> u64 {
        row.max(self.run.rows.start + self.run.skip)
    }
}

/// The run that is being decoded.
struct Current {
    task: Task,
    /// The next row.
    row: u64,
    root: Option<BitRle>,
    /// The reader of each column; `None` for a column that failed, whose values are null.
    readers: Vec<Option<Box<dyn ColumnReader>>>,
}

impl Current {
    fn remaining(&self) -> u64 {
        self.task.run.rows.end - self.row
    }

    /// Keeps the columns that became null in the task, in case the run is read again: a lost column then does
    /// not affect the next, and each repetition reads less.
    fn keep_null_columns(&mut self) {
        let null = &mut self.task.null;
        let before = null.len();
        let failed = self.readers.iter().enumerate().filter(|(_, reader)| reader.is_none());
        let failed: Vec<usize> =
            failed.map(|(place, _)| place).filter(|place| !null.contains(place)).collect();
        null.extend(failed);
        if null.len() > before {
            self.task.max_rows = usize::MAX;
        }
    }

    /// Number of rows that are still to be skipped.
    fn skipping(&self) -> u64 {
        (self.task.run.rows.start + self.task.run.skip).saturating_sub(self.row)
    }
}

/// The batches of a stripe.
pub(crate) struct StripeBatches {
    scan: Arc<ScanShared>,
    job: StripeJob,
    streams: StoredStreams,
    dictionaries: Dictionaries,
    batch_bytes: BatchBytes,
    /// Number of stored bytes of each column to decode.
    pub(crate) stored: Vec<u64>,
    /// The remaining tasks.
    tasks: VecDeque<Task>,
    run: Option<Current>,
    batch_rows: usize,
    /// Whether a failure has limited each task to a single row group.
    careful: bool,
    failed: bool,
    /// The failure that started the reading of single row groups.
    unexplained: Option<Error>,
    /// The recorded losses: start of the run, and the column (`None` for whole rows). A run that is read
    /// again, with fewer rows at once, is not recorded twice.
    recorded: Mutex<BTreeSet<(u64, Option<usize>)>>,
}

impl Iterator for StripeBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            match self.advance() {
                Ok(Step::Batch(batch)) => return Some(Ok(batch)),
                Ok(Step::Pending) => {}
                Ok(Step::Done) => {
                    self.log_unexplained();
                    return None;
                }
                Err(e) => {
                    self.failed = true;
                    return Some(Err(e));
                }
            }
        }
        None
    }
}

/// The result of a step.
enum Step {
    Batch(RecordBatch),
    /// The step gave no batch.
    Pending,
    Done,
}

impl StripeBatches {
    /// Decodes a stripe whose streams were fetched; [`Self::set_tasks`] sets what to read.
    pub(crate) fn new(scan: Arc<ScanShared>, job: StripeJob, streams: StoredStreams) -> Self {
        Self {
            stored: stored_bytes(&scan, &job),
            tasks: VecDeque::new(),
            batch_bytes: BatchBytes::default(),
            batch_rows: scan.batch_rows,
            scan,
            job,
            streams,
            dictionaries: Dictionaries::default(),
            run: None,
            careful: false,
            failed: false,
            unexplained: None,
            recorded: Mutex::default(),
        }
    }

    /// Sets the tasks to read next.
    pub(crate) fn set_tasks(&mut self, tasks: impl Iterator<Item = Task>) {
        self.tasks = tasks.collect();
    }

    /// Reads the parts of the deferred streams that `runs` need.
    pub(crate) fn read_deferred(&mut self, runs: &[Run]) -> Result<()> {
        match &self.job.deferred {
            Some(deferred) => {
                fetched::read_deferred(&self.scan, &self.job, deferred, runs, &mut self.streams)
            }
            None => Ok(()),
        }
    }

    /// Decodes a batch, or opens the next run. Each failure narrows the work: to single row groups, to fewer
    /// rows at once, to nulls for columns that fail, and finally to the other runs.
    fn advance(&mut self) -> Result<Step> {
        let mut current = match self.run.take() {
            Some(current) => current,
            None => {
                let Some(task) = self.tasks.pop_front() else { return Ok(Step::Done) };
                match self.start(task.clone()) {
                    Ok(current) => current,
                    Err(e) => {
                        let row = task.run.rows.start;
                        return self.confine(self.as_damage(e), row, 1, task).map(|()| Step::Pending);
                    }
                }
            }
        };
        let (row, rows) = (current.row, self.rows(&current));
        let most = if current.skipping() > 0 { 1 } else { rows };
        match self.batch(&mut current, rows) {
            Ok(batch) => {
                if let Err((column, e)) = self.check_end(&current) {
                    return self.confine_misplaced(e, column, row, &current.task).map(|()| Step::Pending);
                }
                let batch = batch.map(|batch| self.readable(batch, &current, row)).transpose()?;
                if current.remaining() > 0 {
                    self.run = Some(current);
                }
                Ok(batch.map_or(Step::Pending, Step::Batch))
            }
            Err(e) => self.confine(e, row, most, current.task).map(|()| Step::Pending),
        }
    }

    /// A batch that begins at row `first`, without the rows of values that are not UTF-8, or with nulls for
    /// these values.
    fn readable(&self, batch: RecordBatch, current: &Current, first: u64) -> Result<RecordBatch> {
        let mut malformed = Vec::new();
        current.readers.iter().flatten().for_each(|reader| reader.malformed(&mut malformed));
        malformed.sort_by_key(|value| value.row);
        self.scan.damage.changes().add(Change::Text, malformed.len() as u64);
        let mut left_out: Vec<usize> = Vec::new();
        for value in malformed {
            let e = self.not_utf8_error(value, first);
            if self.scan.on_error == OnError::Raise {
                return Err(e);
            }
            // A row is lost once, however many of its values are malformed.
            let lost = self.scan.on_error == OnError::Skip && left_out.last() != Some(&value.row);
            if lost {
                left_out.push(value.row);
            }
            self.log(e, Some(lost.into()));
        }
        without_rows(batch, &left_out)
    }

    /// The error of a value that is not UTF-8.
    fn not_utf8_error(&self, value: MalformedValue, first: u64) -> Error {
        let row = self.job.stripe.first_row.saturating_add(first).saturating_add(value.row as u64);
        let e = Error::corrupt(format!(
            "expected UTF-8, found other bytes in row {row}; declare the column as binary in `schema` to read \
             its bytes unchanged"
        ));
        let Some(column) = value.column.and_then(|id| self.scan.shape.tree.get(id)) else { return e };
        let stored = |kind| self.job.layout.stream(column.id, kind).filter(|s| !s.bytes.is_empty());
        let stream = stored(StreamKind::DictionaryData).or_else(|| stored(StreamKind::Data));
        match stream {
            Some(stream) => e.at(stream.bytes.start).within(column::name(column)),
            None => e.within(column::name(column)),
        }
    }

    /// How many rows to read next. If damage is skipped, batches end with row groups where possible: some
    /// damage is detected only at the end of a row group, and its rows must not be returned before that
    /// check.
    fn rows(&self, current: &Current) -> usize {
        let most = match current.skipping() {
            0 => current.remaining().min(current.task.max_rows as u64),
            skipping => skipping,
        };
        let rows = usize::try_from(most).unwrap_or(usize::MAX).min(self.batch_rows);
        if self.scan.on_error == OnError::Raise || current.skipping() > 0 {
            return rows;
        }
        let end = current.row + rows as u64;
        let before = self.job.group_starts.partition_point(|(begin, _)| *begin <= end);
        let begin = self.job.group_starts.get(before.wrapping_sub(1)).map(|(begin, _)| *begin);
        let aligned = begin.filter(|begin| *begin > current.row && end < current.task.run.rows.end);
        aligned.and_then(|begin| usize::try_from(begin - current.row).ok()).unwrap_or(rows)
    }

    /// Checks that the values read so far end with their rows: at the end of the stripe, or where the next
    /// row group begins by the index. Some writers store values of absent rows (C++: of a null struct inside
    /// one that is not null), which moves all later values to wrong rows. Returns the index of the column,
    /// and the error.
    fn check_end(&self, current: &Current) -> Result<(), (usize, Error)> {
        let row = current.row;
        if row == self.job.stripe.rows {
            return self
                .each_reader(current, |positions, _, _| Ok(positions.iter().position(|s| !s.is_at_end())));
        }
        let ends = self.scan.on_error != OnError::Raise || row == current.task.run.rows.end;
        let Ok(place) = self.job.group_starts.binary_search_by_key(&row, |(begin, _)| *begin) else {
            return Ok(());
        };
        let Some((_, begin)) = self.job.group_starts.get(place).filter(|_| ends) else { return Ok(()) };
        let input = self.input(Some(begin));
        self.each_reader(current, |positions, of, field| {
            if of.children.is_empty() {
                return Ok(None);
            }
            // If the column cannot be opened there, the error comes when that row group is read.
            let Ok(next) = column::reader(&input, of, field) else { return Ok(None) };
            let mut begins = Vec::with_capacity(positions.len());
            next.positions(&mut begins);
            Ok(positions.iter().zip(&begins).position(|(end, begin)| !end.matches(begin)))
        })
    }

    /// Fails for the first column with a stream at a wrong position; `wrong` returns the index of that
    /// stream.
    fn each_reader(
        &self,
        current: &Current,
        wrong: impl Fn(&[StreamPosition], &Column, &Field) -> Result<Option<usize>>,
    ) -> Result<(), (usize, Error)> {
        let mut positions = Vec::new();
        let columns = current.readers.iter().zip(&self.scan.columns).enumerate();
        for (place, (reader, (id, field))) in columns {
            let (Some(reader), Some(of)) = (reader, self.scan.shape.tree.get(*id)) else { continue };
            positions.clear();
            reader.positions(&mut positions);
            let misplaced = wrong(&positions, of, field).map_err(|e| (place, e))?;
            let Some(position) = misplaced.and_then(|at| positions.get(at)) else { continue };
            let inside = position.column.and_then(|id| self.scan.shape.tree.get(id)).unwrap_or(of);
            let message =
                format!("expected the stream's position at row {}, found another position", current.row);
            let bytes = self.job.layout.stream(inside.id, position.kind).map(|s| s.bytes.start);
            let e = Error::corrupt(message).within(position.kind.name()).within(column::name(inside));
            let e = e.at(bytes.unwrap_or(self.job.stripe.bytes.start));
            return Err((place, e));
        }
        Ok(())
    }

    /// Continues after values of a column at wrong rows, or returns the error. None of the column's values
    /// that were not returned yet can be trusted.
    fn confine_misplaced(&mut self, e: Error, column: usize, row: u64, task: &Task) -> Result<()> {
        if self.scan.on_error == OnError::Raise {
            return Err(e);
        }
        let done = task.first_returned(row);
        if !self.careful {
            self.careful = true;
            self.unexplained = Some(e);
            self.by_groups(done, task);
        } else if self.scan.on_error == OnError::Null && !task.null.contains(&column) {
            self.record(e, &task.run, Some(column), 0);
            let mut again = task.from(done);
            again.null.push(column);
            self.tasks.push_front(again);
        } else {
            self.record(e, &task.run, None, task.run.rows.end - done);
        }
        Ok(())
    }

    /// If damage is tolerated, an unknown encoding or time zone in a stripe's footer counts as damage: other
    /// stripes can still be read.
    fn as_damage(&self, e: Error) -> Error {
        match e.kind() {
            ErrorKind::Unsupported(_) if self.scan.on_error != OnError::Raise => e.as_damage(),
            _ => e,
        }
    }

    /// The input of column readers, at the stripe's start or where a row group begins.
    fn input<'a>(&'a self, positions: Option<&'a Positions>) -> Input<'a> {
        let shape = &self.scan.shape;
        Input {
            tree: &shape.tree,
            changes: self.scan.damage.changes(),
            layout: &self.job.layout,
            streams: &self.streams,
            positions,
            compression: Compression { strict: self.careful, ..shape.tail.compression },
            dictionaries: &self.dictionaries,
            timezone: self.job.layout.writer_timezone.as_deref(),
            quirks: shape.quirks,
            limits: shape.options.limits,
            rows: self.job.stripe.rows,
            file_len: shape.tail.file_len,
            single_row: self.batch_rows == 1,
            batch_bytes: &self.batch_bytes,
        }
    }

    /// Opens the streams at the start of a run.
    fn start(&self, task: Task) -> Result<Current> {
        let shape = &self.scan.shape;
        let input = self.input(task.run.positions.as_deref());
        let is_struct = shape.tree.root().is_some_and(|r| r.kind == Kind::Struct);
        let stored = is_struct && self.job.layout.stream(0, StreamKind::Present).is_some();
        let root = if stored { Some(input.bits(0, StreamKind::Present)?) } else { None };
        let mut readers = Vec::with_capacity(self.scan.columns.len());
        for (place, (id, field)) in self.scan.columns.iter().enumerate() {
            if task.null.contains(&place) {
                readers.push(None);
                continue;
            }
            let of = shape
                .tree
                .get(*id)
                .ok_or_else(|| Error::corrupt(format!("expected a type {id}, found none")))?;
            match column::reader(&input, of, field).map_err(|e| self.as_damage(e)) {
                Ok(reader) => readers.push(Some(reader)),
                Err(e) if task.lenient && e.is_damage() => {
                    self.record(e, &task.run, Some(place), 0);
                    readers.push(None);
                }
                Err(e) => return Err(e),
            }
        }
        let mut current = Current { row: task.run.rows.start, task, root, readers };
        current.keep_null_columns();
        Ok(current)
    }

    /// The next `rows` rows of a run as a batch; `None` if they are skipped.
    fn batch(&self, current: &mut Current, rows: usize) -> Result<Option<RecordBatch>> {
        let skipping = current.skipping() > 0;
        self.batch_bytes.clear();
        let nulls = match &mut current.root {
            None => None,
            Some(bits) => {
                let bits = bits.read(rows)?;
                Some(NullBuffer::new(arrow_buffer::BooleanBuffer::new(bits.into(), 0, rows)))
            }
        };
        if skipping && self.scan.on_error == OnError::Raise {
            let mut readers = current.readers.iter_mut().flatten();
            readers.try_for_each(|reader| reader.skip(rows, nulls.as_ref()))?;
            current.row += rows as u64;
            return Ok(None);
        }
        let mut columns = self.columns(current, rows, nulls.as_ref())?;
        // The row numbers come after the stored columns.
        let unstored = self.scan.schema.fields().len().saturating_sub(columns.len());
        if unstored > 0 {
            let first = self.job.stripe.first_row.saturating_add(current.row);
            let numbers = (first..).take(rows).map(|n| i64::try_from(n).unwrap_or(i64::MAX));
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
            columns.extend(std::iter::repeat_n(numbers, unstored));
        }
        current.row += rows as u64;
        if skipping {
            return Ok(None);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.scan.schema.clone(), columns, &options);
        batch.map(Some).map_err(arrow_error)
    }

    fn columns(
        &self,
        current: &mut Current,
        rows: usize,
        nulls: Option<&NullBuffer>,
    ) -> Result<Vec<ArrayRef>> {
        let threads = self.scan.threads;
        // Nulls replace values only of single rows: for several rows, the values before the damage would be
        // lost.
        let lenient = current.task.lenient && (rows == 1 || current.skipping() > 0);
        let run = current.task.run.clone();
        let read = |reader: &mut Option<Box<dyn ColumnReader>>, place: usize| -> Result<ArrayRef> {
            let null = || match self.scan.columns.get(place) {
                Some((_, field)) => new_null_array(field.data_type(), rows),
                None => new_null_array(&arrow_schema::DataType::Null, rows),
            };
            let Some(open) = reader else { return Ok(null()) };
            // A value that its column's type cannot hold may count as damage, too: an instant outside the
            // range of nanoseconds, a map's null key.
            match open.read(rows, nulls).map_err(|e| self.scan.on_error.weigh(e)) {
                Err(e) if lenient && e.is_damage() => {
                    self.record(e, &run, Some(place), 0);
                    *reader = None;
                    Ok(null())
                }
                other => other,
            }
        };
        if threads.min(current.readers.len()) < 2 || rows < PARALLEL_ROWS {
            let columns = current.readers.iter_mut().enumerate().map(|(i, r)| read(r, i)).collect();
            current.keep_null_columns();
            return columns;
        }
        let count = current.readers.len();
        let mut decoded: Vec<Option<Result<ArrayRef>>> = (0..count).map(|_| None).collect();
        let mut all: Vec<_> = current.readers.iter_mut().enumerate().zip(&mut decoded).collect();
        // The largest column is decoded first: if it came last, only one thread would be busy at the end.
        all.sort_by_key(|((place, _), _)| std::cmp::Reverse(self.stored.get(*place).copied()));
        threads::share(all.into_iter(), threads, |((place, reader), slot)| *slot = Some(read(reader, place)));
        current.keep_null_columns();
        let missing = || Err(Error::invalid("a column was not decoded"));
        decoded.into_iter().map(|slot| slot.unwrap_or_else(missing)).collect()
    }

    /// Continues after a failure of `rows` rows from row `row` on, or returns the error.
    fn confine(&mut self, e: Error, row: u64, rows: usize, task: Task) -> Result<()> {
        let done = task.first_returned(row);
        // Values that are too long for one batch fit in fewer rows.
        if e.is_batch_too_long() && self.batch_rows > 1 {
            self.batch_rows = fewer_rows(&e, self.batch_rows);
            self.tasks.push_front(task.from(done));
            return Ok(());
        }
        let e = too_long_for_all(e);
        if self.scan.on_error == OnError::Raise || !e.is_damage() {
            return Err(e);
        }
        if !self.careful {
            self.careful = true;
            self.unexplained = Some(e);
            self.by_groups(done, &task);
        } else if rows > 1 {
            // Each repetition reads the run from its start, so the number of rows falls quickly.
            self.tasks.push_front(Task { max_rows: rows.div_ceil(16), ..task.from(done) });
        } else if self.scan.on_error == OnError::Null && !task.lenient {
            self.tasks.push_front(Task { lenient: true, max_rows: usize::MAX, ..task.from(done) });
        } else {
            // All later rows are lost. The same is true if the nulls of the root are damaged, which is not a
            // column.
            self.record(e, &task.run, None, task.run.rows.end - done);
        }
        Ok(())
    }

    /// Replaces the remaining tasks with single row groups, from row `done` of a task on.
    fn by_groups(&mut self, done: u64, task: &Task) {
        if self.job.groups.is_empty() {
            self.tasks.push_front(task.from(done));
            return;
        }
        let groups = self.job.groups.iter().filter(|g| g.rows.end > done).map(|group| {
            let skip = done.saturating_sub(group.rows.start);
            Task::new(Run { skip, ..group.clone() })
        });
        self.tasks = groups.collect();
    }

    /// Records the first failure if every row group decodes alone, but not all together. One of them has
    /// hidden damage; which rows are wrong is unknown, so the record names none.
    fn log_unexplained(&mut self) {
        let recorded = !self.recorded.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if let Some(e) = self.unexplained.take().filter(|_| !recorded) {
            self.log(e, None);
        }
    }

    /// Records the loss of `rows` rows of a run, or of values of a column.
    fn record(&self, e: Error, run: &Run, column: Option<usize>, rows: u64) {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.insert((run.rows.start, column)) {
            self.log(e, Some(rows));
        }
    }

    fn log(&self, e: Error, rows: Option<u64>) {
        let at = e.offset();
        let e = e.within(self.job.stripe.name());
        // The stream that failed, if known.
        let stream = at.and_then(|at| self.job.layout.streams.iter().find(|s| s.bytes.contains(&at)));
        let bytes = stream.map_or_else(|| self.job.stripe.bytes.clone(), |s| s.bytes.clone());
        self.scan.damage.push(Damage::from_error(&e, bytes, rows));
    }
}

/// How many rows to read at once after `rows` took too much memory: as many as should fit, and at most half.
fn fewer_rows(e: &Error, rows: usize) -> usize {
    let ErrorKind::BatchTooLong { asked, .. } = e.kind() else { return (rows / 2).max(1) };
    let fit = (rows as u64).saturating_mul(MAX_BATCH_BYTES) / (*asked).max(1);
    usize::try_from(fit).unwrap_or(usize::MAX).min(rows / 2).max(1)
}

/// The error for a single row whose values no array can hold.
fn too_long_for_all(e: Error) -> Error {
    let ErrorKind::BatchTooLong { what, asked } = *e.kind() else { return e };
    let limit = i32::MAX.unsigned_abs().into();
    let limited = Error::new(ErrorKind::LimitExceeded { what, asked, limit, option: "max_block_bytes" });
    limited.within(e.structure())
}
