//! Decodes a stripe: its columns side by side, a batch at a time.
//!
//! Columns do not depend on each other, so they are decoded on as many threads as the scan allows and [`threads`] finds idle. Damage is confined in
//! steps: the batch that failed is read again row group by row group from where the index says they begin; of those that fail
//! again the rows are lost, or with [`OnError::Null`] the values of the columns that fail.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::NullBuffer;
use bytes::Bytes;
use coldframe_core::salvage::MOST_BATCH_BYTES;
use coldframe_core::{
    BatchIter, Damage, DecodeUnit, Error, ErrorKind, OnError, Result, arrow_error, threads,
};

use super::column::dictionary::Dictionaries;
use super::column::input::{Input, StoredPart, StoredStreams};
use super::column::{self, ColumnReader};
use super::job::{Run, ScanShared, StripeJob};
use super::rle::bytes::BitRle;
use super::stream::Codec;
use crate::layout::compression::Compression;
use crate::layout::stripe::StreamKind;
use crate::layout::types::Kind;

/// Batches of fewer rows are not worth a thread.
const PARALLEL_ROWS: usize = 4096;

/// Decodes one stripe.
pub(crate) struct DecodeStripe {
    /// What all stripes share.
    pub(crate) scan: Arc<ScanShared>,
    /// The stripe.
    pub(crate) job: StripeJob,
}

impl DecodeUnit for DecodeStripe {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let Self { scan, mut job } = *self;
        let mut streams = StoredStreams::new();
        for (part, stored) in job.parts.iter().zip(bytes) {
            let Some(place) = job.layout.stream(part.column, part.kind) else { continue };
            let bytes = scan.shape.decrypted(stored, place, part.start, &job.stripe)?;
            let part_of = StoredPart { start: part.start, offset: part.bytes.start, bytes };
            streams.entry((part.column, part.kind)).or_default().push(part_of);
        }
        let batch_rows = scan.batch_rows;
        Ok(Box::new(StripeBatches {
            stored: stored_bytes(&scan, &job),
            runs: std::mem::take(&mut job.runs).into_iter().map(|run| (run, false)).collect(),
            scan,
            job,
            streams,
            dictionaries: Dictionaries::default(),
            codec: Codec::default(),
            run: None,
            batch_rows,
            careful: false,
            failed: false,
            unexplained: None,
            recorded: Mutex::default(),
        }))
    }
}

/// Stored bytes of each column to decode, with those inside it.
fn stored_bytes(scan: &ScanShared, job: &StripeJob) -> Vec<u64> {
    let tree = &scan.shape.tree;
    // Of all columns in front of each: a column's own are a difference.
    let mut sums = vec![0u64; tree.columns().len() + 1];
    for part in &job.parts {
        if let Some(sum) = sums.get_mut(part.column + 1) {
            *sum += part.bytes.end - part.bytes.start;
        }
    }
    let mut all = 0u64;
    for sum in &mut sums {
        all = all.saturating_add(*sum);
        *sum = all;
    }
    let before = |id: usize| sums.get(id).copied().unwrap_or(all);
    let end = |id: usize| tree.get(id).map_or(id, |column| column.end);
    scan.columns.iter().map(|(id, _)| before(end(*id)).saturating_sub(before(*id))).collect()
}

/// The run that is being decoded.
struct Current {
    run: Run,
    /// Its next row.
    row: u64,
    root: Option<BitRle>,
    /// A reader for each column; nothing where one has failed and its values are null.
    readers: Vec<Option<Box<dyn ColumnReader>>>,
    /// Whether columns that fail become null.
    lenient: bool,
}

/// The batches of a stripe.
struct StripeBatches {
    scan: Arc<ScanShared>,
    job: StripeJob,
    streams: StoredStreams,
    dictionaries: Dictionaries,
    codec: Codec,
    /// Stored bytes of each column to decode.
    stored: Vec<u64>,
    /// What is left to do; whether columns that fail become null there.
    runs: VecDeque<(Run, bool)>,
    run: Option<Current>,
    batch_rows: usize,
    /// Whether it goes by row groups, since something failed.
    careful: bool,
    failed: bool,
    /// The failure since which it goes by row groups.
    unexplained: Option<Error>,
    /// What was recorded as lost: where a run begins, and the column; nothing for whole rows. A run that is read again, in
    /// fewer rows at once, is not recorded twice.
    recorded: Mutex<BTreeSet<(u64, Option<usize>)>>,
}

impl Iterator for StripeBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            match self.advance() {
                Ok(Step::Batch(batch)) => return Some(Ok(batch)),
                Ok(Step::Again) => {}
                Ok(Step::Done) => {
                    self.explain();
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

/// What came of a step.
enum Step {
    Batch(RecordBatch),
    /// Nothing yet.
    Again,
    Done,
}

impl StripeBatches {
    /// Decodes a batch, or opens the next run. Each failure leaves less to do: fewer rows at once, single row groups, nulls
    /// for columns that fail, at last a run less.
    fn advance(&mut self) -> Result<Step> {
        let mut current = match self.run.take() {
            Some(current) => current,
            None => {
                let Some((run, lenient)) = self.runs.pop_front() else { return Ok(Step::Done) };
                match self.start(run.clone(), lenient) {
                    Ok(current) => current,
                    Err(e) => {
                        let row = run.rows.start;
                        return self.confine(self.as_loss(e), row, run, lenient).map(|()| Step::Again);
                    }
                }
            }
        };
        match self.batch(&mut current) {
            Ok(batch) => {
                if current.row < current.run.rows.end {
                    self.run = Some(current);
                }
                Ok(batch.map_or(Step::Again, Step::Batch))
            }
            Err(e) => {
                let Current { row, run, lenient, .. } = current;
                self.confine(e, row, run, lenient).map(|()| Step::Again)
            }
        }
    }

    /// A number or name in the stripe's footer that nobody knows, an encoding or a time zone, is damage where damage is passed
    /// over: a reader of other stripes need not end for it.
    fn as_loss(&self, e: Error) -> Error {
        match e.kind() {
            ErrorKind::Unsupported(_) if self.scan.on_error != OnError::Raise => e.as_damage(),
            _ => e,
        }
    }

    /// Opens the streams where a run begins.
    fn start(&self, run: Run, lenient: bool) -> Result<Current> {
        let shape = &self.scan.shape;
        let input = Input {
            tree: &shape.tree,
            changes: self.scan.damage.changes(),
            layout: &self.job.layout,
            streams: &self.streams,
            positions: run.positions.as_deref(),
            compression: Compression { strict: self.careful, ..shape.tail.compression },
            codec: self.codec.clone(),
            dictionaries: &self.dictionaries,
            timezone: self.job.layout.writer_timezone.as_deref(),
            quirks: shape.quirks,
            limits: shape.options.limits,
            rows: self.job.stripe.rows,
            file_len: shape.tail.file_len,
            one_row: self.batch_rows == 1,
        };
        let is_struct = shape.tree.root().is_some_and(|r| r.kind == Kind::Struct);
        let stored = is_struct && self.job.layout.stream(0, StreamKind::Present).is_some();
        let root = if stored { Some(input.bits(0, StreamKind::Present)?) } else { None };
        let mut readers = Vec::with_capacity(self.scan.columns.len());
        for (place, (id, field)) in self.scan.columns.iter().enumerate() {
            let of = shape
                .tree
                .get(*id)
                .ok_or_else(|| Error::corrupt(format!("expected a type {id}, found none")))?;
            match column::reader(&input, of, field).map_err(|e| self.as_loss(e)) {
                Ok(reader) => readers.push(Some(reader)),
                Err(e) if lenient && e.is_damage() => {
                    self.record(e, &run, Some(place), 0);
                    readers.push(None);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(Current { row: run.rows.start, run, root, readers, lenient })
    }

    /// The next batch of a run; nothing for rows that are passed over.
    fn batch(&self, current: &mut Current) -> Result<Option<RecordBatch>> {
        let left = current.run.rows.end - current.row;
        let skipping = current.run.rows.start + current.run.skip > current.row;
        let most = if skipping { current.run.rows.start + current.run.skip - current.row } else { left };
        let rows = usize::try_from(most).unwrap_or(usize::MAX).min(self.batch_rows);
        let nulls = match &mut current.root {
            None => None,
            Some(bits) => {
                let bits = bits.read(rows)?;
                Some(NullBuffer::new(arrow_buffer::BooleanBuffer::new(bits.into(), 0, rows)))
            }
        };
        let mut columns = self.columns(current, rows, nulls.as_ref())?;
        if self.scan.columns.is_empty() && !self.scan.schema.fields().is_empty() {
            // The only column that is not stored: the numbers of the rows of a file without columns.
            let first = self.job.stripe.first_row.saturating_add(current.row);
            let numbers = (first..).take(rows).map(|n| i64::try_from(n).unwrap_or(i64::MAX));
            columns.push(Arc::new(Int64Array::from_iter_values(numbers)));
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
        let lenient = current.lenient;
        let run = current.run.clone();
        let read = |reader: &mut Option<Box<dyn ColumnReader>>, place: usize| -> Result<ArrayRef> {
            let null = || match self.scan.columns.get(place) {
                Some((_, field)) => new_null_array(field.data_type(), rows),
                None => new_null_array(&arrow_schema::DataType::Null, rows),
            };
            let Some(open) = reader else { return Ok(null()) };
            // So is a value that the type of its column cannot hold: an instant that nanoseconds do not reach, a map's null key.
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
            return current.readers.iter_mut().enumerate().map(|(i, r)| read(r, i)).collect();
        }
        let count = current.readers.len();
        let mut found: Vec<Option<Result<ArrayRef>>> = (0..count).map(|_| None).collect();
        let mut all: Vec<_> = current.readers.iter_mut().enumerate().zip(&mut found).collect();
        // The one that takes longest must not be left for the end, when the others have nothing to do.
        all.sort_by_key(|((place, _), _)| std::cmp::Reverse(self.stored.get(*place).copied()));
        threads::share(all.into_iter(), threads, |((place, reader), slot)| *slot = Some(read(reader, place)));
        let missing = || Err(Error::invalid("a column was not decoded"));
        found.into_iter().map(|slot| slot.unwrap_or_else(missing)).collect()
    }

    /// Goes on behind a failure at row `row` of `run`, or hands the error on.
    fn confine(&mut self, e: Error, row: u64, run: Run, lenient: bool) -> Result<()> {
        let done = row.max(run.rows.start + run.skip);
        let again = Run { skip: done - run.rows.start, ..run.clone() };
        // Values that are too long for one batch fit in fewer rows.
        if e.is_batch_too_long() && self.batch_rows > 1 {
            self.batch_rows = fewer_rows(&e, self.batch_rows);
            self.runs.push_front((again, lenient));
            return Ok(());
        }
        let e = too_long_for_all(e);
        if self.scan.on_error == OnError::Raise || !e.is_damage() {
            return Err(e);
        }
        if !self.careful {
            self.careful = true;
            self.unexplained = Some(e);
            self.by_groups(done, run);
        } else if self.scan.on_error == OnError::Null && !lenient {
            self.runs.push_front((again, true));
        } else {
            // Of what is nobody's column, the nulls of the root, all rows behind are lost.
            self.record(e, &run, None, run.rows.end - done);
        }
        Ok(())
    }

    /// Replaces what is left, from row `done` of `run` on, by single row groups.
    fn by_groups(&mut self, done: u64, run: Run) {
        if self.job.groups.is_empty() {
            self.runs.push_front((Run { skip: done - run.rows.start, ..run }, false));
            return;
        }
        let groups = self.job.groups.iter().filter(|g| g.rows.end > done).map(|group| {
            let skip = done.saturating_sub(group.rows.start);
            (Run { skip, ..group.clone() }, false)
        });
        self.runs = groups.collect();
    }

    /// Row groups that decode one by one but not in a row: one of them is damaged in a way that does not show. Which rows
    /// that costs cannot be told, but that there is damage is.
    fn explain(&mut self) {
        let recorded = !self.recorded.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if let Some(e) = self.unexplained.take().filter(|_| !recorded) {
            self.log(e, None);
        }
    }

    /// Records that `rows` rows of a run are lost, or that values of a column are.
    fn record(&self, e: Error, run: &Run, column: Option<usize>, rows: u64) {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.insert((run.rows.start, column)) {
            self.log(e, Some(rows));
        }
    }

    fn log(&self, e: Error, rows: Option<u64>) {
        let at = e.offset();
        let e = e.within(self.job.stripe.name());
        // Where the stream that failed is, if that is known.
        let stream = at.and_then(|at| self.job.layout.streams.iter().find(|s| s.bytes.contains(&at)));
        let bytes = stream.map_or_else(|| self.job.stripe.bytes.clone(), |s| s.bytes.clone());
        self.scan.damage.push(Damage::from_error(&e, bytes, rows));
    }
}

/// How many rows to read at once where `rows` took too much: as many as should fit, and no more than half.
fn fewer_rows(e: &Error, rows: usize) -> usize {
    let ErrorKind::BatchTooLong { asked, .. } = e.kind() else { return (rows / 2).max(1) };
    let fit = (rows as u64).saturating_mul(MOST_BATCH_BYTES) / (*asked).max(1);
    usize::try_from(fit).unwrap_or(usize::MAX).min(rows / 2).max(1)
}

/// What one row holds that no array can.
fn too_long_for_all(e: Error) -> Error {
    let ErrorKind::BatchTooLong { what, asked } = *e.kind() else { return e };
    let limit = i32::MAX.unsigned_abs().into();
    let limited = Error::new(ErrorKind::LimitExceeded { what, asked, limit, option: "max_block_bytes" });
    limited.within(e.structure())
}
