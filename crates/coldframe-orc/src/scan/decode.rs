//! Decodes a stripe: its columns side by side, a batch at a time.
//!
//! Columns do not depend on each other, so they are decoded on as many threads as the scan allows and [`threads`] finds idle. Damage is confined in
//! steps: the batch that failed is read again row group by row group from where the index says they begin; of those that fail
//! again the rows are lost, or with [`OnError::Null`] the values of the columns that fail.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::NullBuffer;
use bytes::Bytes;
use coldframe_core::{
    BatchIter, Damage, DecodeUnit, Error, ErrorKind, OnError, Result, arrow_error, threads,
};

use super::column::dictionary::Dictionaries;
use super::column::input::{Input, StoredPart, StoredStreams};
use super::column::{self, ColumnReader};
use super::job::{Run, ScanShared, StripeJob};
use super::rle::bytes::BitRle;
use super::stream::Codec;
use super::zone::Zone;
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
        let zoned = |id: &usize| scan.shape.tree.get(*id).is_some_and(|c| c.kind == Kind::Timestamp);
        let zone = match scan.needed.iter().any(zoned) {
            true => Zone::named(job.layout.writer_timezone.as_deref())?,
            false => Zone::named(None)?,
        };
        let batch_rows = scan.batch_rows;
        let ends = scan.shape.tree.ends();
        let stored_in = |(id, _): &(usize, _)| {
            let inside = *id..ends.get(*id).copied().unwrap_or(*id);
            let parts = job.parts.iter().filter(|part| inside.contains(&part.column));
            parts.map(|part| part.bytes.end - part.bytes.start).sum()
        };
        Ok(Box::new(StripeBatches {
            stored: scan.columns.iter().map(stored_in).collect(),
            runs: std::mem::take(&mut job.runs),
            scan,
            job,
            streams,
            zone,
            dictionaries: Dictionaries::default(),
            codec: Codec::default(),
            run: None,
            batch_rows,
            careful: false,
            failed: false,
            unexplained: None,
            recorded: AtomicBool::new(false),
        }))
    }
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
    zone: Arc<Zone>,
    dictionaries: Dictionaries,
    codec: Codec,
    /// Stored bytes of each column to decode.
    stored: Vec<u64>,
    runs: VecDeque<Run>,
    run: Option<Current>,
    batch_rows: usize,
    /// Whether it goes by row groups, since something failed.
    careful: bool,
    failed: bool,
    /// The failure since which it goes by row groups.
    unexplained: Option<Error>,
    /// Whether anything was recorded as lost.
    recorded: AtomicBool,
}

impl Iterator for StripeBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.failed {
                return None;
            }
            let mut current = match self.run.take() {
                Some(current) => current,
                None => {
                    let Some(run) = self.runs.pop_front() else {
                        self.explain();
                        return None;
                    };
                    match self.start(run.clone(), false) {
                        Ok(current) => current,
                        Err(e) => {
                            if let Err(e) = self.confine(e, run.rows.start, run) {
                                self.failed = true;
                                return Some(Err(e));
                            }
                            continue;
                        }
                    }
                }
            };
            let result = self.batch(&mut current);
            let (row, run) = (current.row, current.run.clone());
            match result {
                Ok(batch) => {
                    if row < run.rows.end {
                        self.run = Some(current);
                    }
                    if let Some(batch) = batch {
                        return Some(Ok(batch));
                    }
                }
                Err(e) => {
                    if let Err(e) = self.confine(e, row, run) {
                        self.failed = true;
                        return Some(Err(e));
                    }
                }
            }
        }
    }
}

impl StripeBatches {
    /// Opens the streams where a run begins.
    fn start(&self, run: Run, lenient: bool) -> Result<Current> {
        let shape = &self.scan.shape;
        let input = Input {
            tree: &shape.tree,
            layout: &self.job.layout,
            streams: &self.streams,
            positions: run.positions.as_deref(),
            compression: Compression { strict: self.careful, ..shape.tail.compression },
            codec: self.codec.clone(),
            dictionaries: &self.dictionaries,
            zone: self.zone.clone(),
            quirks: shape.quirks,
            limits: shape.options.limits,
        };
        let is_struct = shape.tree.root().is_some_and(|r| r.kind == Kind::Struct);
        let stored = is_struct && self.job.layout.stream(0, StreamKind::Present).is_some();
        let root = if stored { Some(input.bits(0, StreamKind::Present)?) } else { None };
        let mut readers = Vec::with_capacity(self.scan.columns.len());
        for (id, field) in &self.scan.columns {
            let of = shape
                .tree
                .get(*id)
                .ok_or_else(|| Error::corrupt(format!("expected a type {id}, found none")))?;
            match column::reader(&input, of, field) {
                Ok(reader) => readers.push(Some(reader)),
                Err(e) if lenient && e.is_damage() => {
                    self.record(e, run.rows.end - run.rows.start - run.skip);
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
        let lost = current.run.rows.end - current.row;
        let read = |reader: &mut Option<Box<dyn ColumnReader>>, place: usize| -> Result<ArrayRef> {
            let null = || match self.scan.columns.get(place) {
                Some((_, field)) => new_null_array(field.data_type(), rows),
                None => new_null_array(&arrow_schema::DataType::Null, rows),
            };
            let Some(open) = reader else { return Ok(null()) };
            match open.read(rows, nulls) {
                Err(e) if lenient && e.is_damage() => {
                    self.record(e, lost);
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
    fn confine(&mut self, e: Error, row: u64, run: Run) -> Result<()> {
        // Values that are too long for one array fit in fewer rows.
        let too_long = matches!(e.kind(), ErrorKind::LimitExceeded { option: "batch_size", .. });
        if too_long && self.batch_rows > 1 {
            self.batch_rows = (self.batch_rows / 8).max(1);
            let skip = row - run.rows.start;
            self.runs.push_front(Run { skip: skip.max(run.skip), ..run });
            return Ok(());
        }
        if self.scan.on_error == OnError::Raise || !e.is_damage() {
            return Err(e);
        }
        if !self.careful {
            self.careful = true;
            self.unexplained = Some(e);
            self.by_groups(row, &run);
            return Ok(());
        }
        if self.scan.on_error == OnError::Null {
            let skip = (row - run.rows.start).max(run.skip);
            self.run = Some(self.start(Run { skip, ..run }, true)?);
            return Ok(());
        }
        let row = row.max(run.rows.start + run.skip);
        self.record(e, run.rows.end - row);
        Ok(())
    }

    /// Replaces what is left by single row groups.
    fn by_groups(&mut self, row: u64, run: &Run) {
        let done = row.max(run.rows.start + run.skip);
        if self.job.groups.is_empty() {
            self.runs.push_front(Run { skip: done - run.rows.start, ..run.clone() });
            return;
        }
        let groups = self.job.groups.iter().filter(|g| g.rows.end > done).map(|group| {
            let skip = done.saturating_sub(group.rows.start);
            Run { skip, ..group.clone() }
        });
        self.runs = groups.collect();
    }

    /// Row groups that decode one by one but not in a row: one of them is damaged in a way that does not show. Which rows
    /// that costs cannot be told, but that there is damage is.
    fn explain(&mut self) {
        if let Some(e) = self.unexplained.take().filter(|_| !self.recorded.load(Ordering::Relaxed)) {
            self.log(e, None);
        }
    }

    fn record(&self, e: Error, rows: u64) {
        self.recorded.store(true, Ordering::Relaxed);
        self.log(e, Some(rows));
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
