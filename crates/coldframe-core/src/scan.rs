//! Scans a table of any format: plan, fetch, decode, filter, project, limit.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use coldframe_encoding::error::ErrorContext;
use coldframe_encoding::{Error, ErrorKind, Result};
use tracing::field::Empty;
use tracing::{Span, debug_span};

use crate::ahead::{PlannedUnit, ReadAhead};
use crate::filter::keep_rows;
use crate::options::Strings;
use crate::projection::convert;
use crate::types::views;
use crate::{
    BatchIter, Damage, DamageLog, OnError, PlanRequest, Predicate, Projection, Report, Scan, Split, TableFile,
};

/// The last number given to a scan of this process; traces show these numbers.
static SCANS: AtomicU64 = AtomicU64::new(0);

/// The rows of one split as Arrow, one unit in memory at a time.
pub struct ScanReader {
    /// The reader's number in traces.
    number: u64,
    units: ReadAhead,
    current: Option<Current>,
    request: PlanRequest,
    predicate: Option<Predicate>,
    projection: Projection,
    /// The schema of the returned batches: the columns of the projection, in the requested layout of strings.
    output: SchemaRef,
    left: u64,
    done: bool,
    decoded: u64,
    rows: u64,
}

/// The work that a scan has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Units (stripes, row groups, runs of blocks) decoded.
    pub units: u64,
    /// Units skipped because statistics, indexes or bloom filters exclude their rows.
    pub pruned: u64,
    /// Rows decoded, before the filter.
    pub rows: u64,
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, more: Self) {
        self.units = self.units.saturating_add(more.units);
        self.pruned = self.pruned.saturating_add(more.pruned);
        self.rows = self.rows.saturating_add(more.rows);
    }
}

/// The unit being decoded.
struct Current {
    batches: BatchIter,
    /// The rest of a batch that was too long.
    rest: Option<RecordBatch>,
    place: UnitPosition,
    rows_out: u64,
    trace: UnitTrace,
}

/// What a trace shows of a unit until it is dropped.
struct UnitTrace {
    /// The time from the request of the unit's bytes on.
    unit: Span,
    /// The time from the arrival of the unit's bytes on.
    decode: Span,
    /// Time spent decoding, without the pauses between batches; measured only if there is a trace.
    busy: Duration,
}

impl UnitTrace {
    fn new(scan: u64, number: u64, next: &PlannedUnit) -> Self {
        let unit = debug_span!(
            "unit",
            scan,
            number,
            structure = next.unit.structure.as_str(),
            start = next.unit.bytes.start,
            end = next.unit.bytes.end,
            ranges = next.unit.fetch.len(),
            bytes = next.bytes,
            rows = Empty,
            failed = Empty,
        );
        Self { unit, decode: Span::none(), busy: Duration::ZERO }
    }

    fn start_decoding(&mut self, scan: u64, unit: u64) {
        self.decode = debug_span!("decode", scan, unit, busy_us = Empty);
    }

    /// Runs a part of the decoding and adds its time to `busy`.
    fn decoding<T>(&mut self, work: impl FnOnce() -> T) -> T {
        if self.decode.is_disabled() {
            return work();
        }
        let begun = Instant::now();
        let done = work();
        self.busy += begun.elapsed();
        done
    }

    fn failed(&self) {
        self.unit.record("failed", true);
    }
}

impl Drop for UnitTrace {
    fn drop(&mut self) {
        if !self.decode.is_disabled() {
            self.decode.record("busy_us", u64::try_from(self.busy.as_micros()).unwrap_or(u64::MAX));
            // The span of the decoding must end before the span of the unit.
            self.decode = Span::none();
        }
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        self.trace.unit.record("rows", self.rows_out);
    }
}

impl Current {
    /// The next batch of at most `most` rows. A limit is needed because later stages allocate memory in
    /// proportion to the rows of a batch, and a file may state any number of rows if no column is requested.
    fn next(&mut self, most: usize) -> Option<Result<RecordBatch>> {
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => match self.trace.decoding(|| self.batches.next())? {
                Ok(batch) => batch,
                failed => return Some(failed),
            },
        };
        if batch.num_rows() <= most {
            return Some(Ok(batch));
        }
        self.rest = Some(batch.slice(most, batch.num_rows() - most));
        Some(Ok(batch.slice(0, most)))
    }
}

/// The position of a unit, for errors and damage records.
struct UnitPosition {
    bytes: Range<u64>,
    rows: Option<u64>,
    structure: String,
}

impl ScanReader {
    /// Checks names and types, derives the columns to decode, and asks the file for a plan of `split`.
    pub fn try_new(file: &dyn TableFile, scan: &Scan, split: &Split, damage: DamageLog) -> Result<Self> {
        if scan.batch_rows == 0 {
            return Err(Error::invalid("`batch_size` must be at least 1"));
        }
        if scan.doubtful && !file.has_doubtful_rows() {
            return Err(Error::unsupported(
                "doubtful rows: what can be read of this source is proved, or lost whole",
            ));
        }
        if scan.doubtful && (scan.on_error != OnError::Skip || scan.predicate.is_some()) {
            return Err(Error::invalid("doubtful rows are those that `skip` leaves out, without a filter"));
        }
        let mut scan = scan.clone();
        scan.predicate = scan.predicate.map(|p| p.bind(file.schema())).transpose()?;
        let mut filtered = Vec::new();
        if let Some(p) = &scan.predicate {
            p.columns(&mut filtered);
        }
        let mut projection = Projection::resolve(file.schema(), scan.columns.as_deref(), &filtered)?;
        let output = match scan.strings {
            Some(strings) => views::laid_out(&projection.output, strings),
            None => projection.output.clone(),
        };
        if scan.strings == Some(Strings::View) && file.decodes_views() {
            projection = projection.with_views(&filtered)?;
        }
        let left = scan.limit.unwrap_or(u64::MAX);
        let ahead = scan.limit.is_none();
        let predicate = scan.predicate.clone();
        if !scan.prune && predicate.is_some() {
            // A plan that does not know the filter cannot count the rows that pass.
            (scan.predicate, scan.limit) = (None, None);
        }
        let request = PlanRequest { decode: projection.decode.clone(), scan, damage };
        let number = SCANS.fetch_add(1, Ordering::Relaxed);
        let span = debug_span!(
            "plan",
            scan = number,
            start = split.range.start,
            end = split.range.end,
            columns = projection.output.fields().len(),
            failed = Empty,
        );
        let plan = file.plan(&request, split).inspect_err(|_| {
            span.record("failed", true);
        })?;
        drop(span);
        // With a limit, units are not requested ahead: the scan may end before them.
        let units = ReadAhead::new(plan, ahead);
        Ok(Self {
            number,
            units,
            current: None,
            request,
            predicate,
            projection,
            output,
            left,
            done: false,
            decoded: 0,
            rows: 0,
        })
    }

    /// If the source is slow enough to be read ahead, requests the bytes of the first units without waiting
    /// for them.
    pub fn prime(&mut self) {
        if !self.done && self.left > 0 {
            self.units.top_up();
        }
    }

    /// Whether later units are requested while a unit is decoded. This is known only after the first unit has
    /// been requested.
    pub fn reads_ahead(&self) -> bool {
        self.units.reads_ahead()
    }

    /// The schema of the returned batches.
    pub fn output_schema(&self) -> &SchemaRef {
        &self.output
    }

    /// Units (stripes, row groups, runs of blocks) decoded so far.
    pub fn units(&self) -> u64 {
        self.decoded
    }

    /// The work done so far.
    pub fn work(&self) -> Work {
        Work { units: self.decoded, pruned: self.units.pruned(), rows: self.rows }
    }

    /// The next batch that has rows.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while !self.done && self.left > 0 {
            match self.advance() {
                Ok(Some(batch)) if batch.num_rows() == 0 => {}
                Ok(Some(batch)) => return Ok(Some(batch)),
                Ok(None) => self.done = true,
                Err(e) => {
                    self.done = true;
                    return Err(e);
                }
            }
        }
        Ok(None)
    }

    /// The next batch, possibly without rows; `None` at the end.
    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        let Some(current) = &mut self.current else {
            let Some(unit) = self.units.next_unit()? else { return Ok(None) };
            self.decoded += 1;
            return self.start(unit).map(Some);
        };
        let Some(batch) = current.next(self.request.scan.batch_rows) else {
            self.current = None;
            return Ok(Some(self.empty()));
        };
        match batch {
            Ok(batch) => {
                current.rows_out += batch.num_rows() as u64;
                self.rows += batch.num_rows() as u64;
                self.finish_batch(batch).map(Some)
            }
            Err(e) => {
                let rows_out = current.rows_out;
                current.trace.failed();
                match self.current.take() {
                    Some(c) => self.lose(e, &c.place, rows_out),
                    None => Err(e),
                }
                .map(Some)
            }
        }
    }

    fn start(&mut self, next: PlannedUnit) -> Result<RecordBatch> {
        let number = self.decoded - 1;
        let mut trace = UnitTrace::new(self.number, number, &next);
        let (unit, bytes) = next.fetch();
        let place = UnitPosition { bytes: unit.bytes, rows: unit.rows, structure: unit.structure };
        let decode = unit.decode;
        let batches = bytes.and_then(|bytes| {
            trace.start_decoding(self.number, number);
            trace.decoding(|| decode.decode(bytes))
        });
        match batches {
            Ok(batches) => {
                self.current = Some(Current { batches, rest: None, place, rows_out: 0, trace });
                Ok(self.empty())
            }
            Err(e) => {
                trace.failed();
                self.lose(e, &place, 0)
            }
        }
    }

    /// Records the rest of a unit as lost, or returns the error if it is no damage or the scan should raise
    /// damage.
    fn lose(&self, e: Error, place: &UnitPosition, rows_out: u64) -> Result<RecordBatch> {
        let e = e.within(place.structure.clone()).at(place.bytes.start);
        if self.request.scan.on_error == OnError::Raise || !e.is_damage() {
            return Err(e);
        }
        let rows_lost = place.rows.map(|n| n.saturating_sub(rows_out));
        self.request.damage.push(Damage::from_error(&e, place.bytes.clone(), rows_lost));
        Ok(self.empty())
    }

    fn finish_batch(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let passes = self.predicate.as_ref().map(|p| p.passing(&batch)).transpose()?;
        let mut batch = self.projection.project(&batch)?;
        if let Some(passes) = passes {
            batch = keep_rows(&batch, passes)?;
        }
        let mut batch = convert(&batch, &self.output)?;
        let rows = usize::try_from(self.left).unwrap_or(usize::MAX).min(batch.num_rows());
        self.left -= rows as u64;
        if rows < batch.num_rows() {
            batch = batch.slice(0, rows);
        }
        Ok(batch)
    }

    fn empty(&self) -> RecordBatch {
        RecordBatch::new_empty(self.output.clone())
    }
}

impl Iterator for ScanReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(|e| ArrowError::ExternalError(Box::new(e))).transpose()
    }
}

impl RecordBatchReader for ScanReader {
    fn schema(&self) -> SchemaRef {
        self.output.clone()
    }
}

/// The number of rows of the whole table that pass `predicate`. Decodes only the filter's columns.
pub fn count(file: &dyn TableFile, predicate: Option<Predicate>) -> Result<u64> {
    if let (None, Some(rows), false) = (&predicate, file.row_count(), file.counts_by_reading()) {
        return Ok(rows);
    }
    let scan = Scan { columns: Some(Vec::new()), predicate, ..Scan::default() };
    let mut rows = 0;
    for split in file.splits(u64::MAX)? {
        let mut reader = ScanReader::try_new(file, &scan, &split, DamageLog::default())?;
        while let Some(batch) = reader.next_batch()? {
            rows += batch.num_rows() as u64;
        }
    }
    Ok(rows)
}

/// The description of a unit that a scan would read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnitPlace {
    /// The unit's name: `stripe 3`.
    pub structure: String,
    /// The unit's position in the file.
    pub bytes: Range<u64>,
    /// Rows that would be decoded, if known before decoding.
    pub rows: Option<u64>,
    /// Bytes that would be read for the requested columns and rows.
    pub fetched: u64,
}

/// Lists the units of the table that `scan` would read: all units except the units that statistics, indexes
/// and bloom filters exclude. Decodes no row. Calls `each` for each unit; an error from it stops the listing.
pub fn units(file: &dyn TableFile, scan: &Scan, mut each: impl FnMut(UnitPlace) -> Result<()>) -> Result<()> {
    for split in file.splits(u64::MAX)? {
        let mut reader = ScanReader::try_new(file, scan, &split, DamageLog::default())?;
        while let Some(unit) = reader.units.plan_unit()? {
            let lengths = unit.fetch.iter().map(|f| f.range.end.saturating_sub(f.range.start));
            let fetched = lengths.fold(0, u64::saturating_add);
            each(UnitPlace { structure: unit.structure, bytes: unit.bytes, rows: unit.rows, fetched })?;
        }
    }
    Ok(())
}

/// Decodes everything and checks the structure; damage is in the report. `tick` is called after each batch
/// with the number of rows so far, and may stop the run by an error.
pub fn verify(file: &dyn TableFile, mut tick: impl FnMut(u64) -> Result<()>) -> Result<Report> {
    let scan = Scan { on_error: OnError::Skip, ..Scan::default() };
    let damage = DamageLog::default();
    let mut report = Report::default();
    // An error that ends a scan is damage too: it is recorded, and the next split is tried.
    let lost = |e: Error, split: &Split, rows: Option<u64>| {
        damage.push(Damage::from_error(&e, split.range.clone(), rows));
    };
    let splits = match file.splits(u64::MAX) {
        Err(e) if is_reported(&e) => {
            damage.push(Damage::from_error(&e, 0..0, file.row_count()));
            Vec::new()
        }
        splits => splits?,
    };
    for split in splits {
        let mut reader = match ScanReader::try_new(file, &scan, &split, damage.clone()) {
            Err(e) if is_reported(&e) => {
                lost(e, &split, split.rows);
                continue;
            }
            reader => reader?,
        };
        loop {
            match reader.next_batch() {
                Ok(Some(batch)) => report.rows += batch.num_rows() as u64,
                Ok(None) => break,
                Err(e) if is_reported(&e) => {
                    lost(e, &split, None);
                    break;
                }
                Err(e) => return Err(e),
            }
            tick(report.rows)?;
        }
        report.units += reader.units();
    }
    report.damage = damage.records();
    report.damage.extend(file.verify_structure().within(|| "structure")?);
    report.damage.sort_by_key(|d| d.bytes.start);
    report.damage.dedup();
    // A block may say for itself that it has no checksum.
    report.proof = file.proof();
    Ok(report)
}

/// Whether [`verify`] reports an error as damage. That includes values that do not fit the requested types,
/// which may be correct.
fn is_reported(e: &Error) -> bool {
    e.is_damage() || matches!(e.kind(), ErrorKind::Schema(_))
}
