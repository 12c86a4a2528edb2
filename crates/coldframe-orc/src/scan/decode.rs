//! Decodes a stripe batch by batch: all columns for the rows of one batch, then for those of the next.
//!
//! Columns do not depend on each other, so they are decoded on as many threads as the scan allows and
//! [`threads`] finds idle. There are two ways to read:
//!
//! ```text
//! from the start    | batch |       | batch |    a batch is returned as soon as it is decoded; the streams must end
//!                                                with the last row
//! proved            | groups | groups | ..       several row groups are decoded at once, and returned if positions
//!                                                and statistics of the index agree with their values
//! ```
//!
//! A plain read goes from the start and does not use the index, so it needs no proof. If a filter matches only a few
//! row groups, they are read by the index and proved; if the index is wrong, the whole stripe is read again without
//! it, and the caller is warned. If a filter matches many row groups, the read goes from the start: decoding the
//! others and dropping them costs little more than a jump. A read that tolerates damage is always proved: a column
//! that fails is surveyed ([`super::survey`]), and before its first row is returned it is decided which of its values
//! are saved. So this depends neither on the size of batches nor on a limit or a filter.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use coldframe_core::io::read_coalesced;
use coldframe_core::salvage::{Fate, Salvage, Stretch};
use coldframe_core::{Error, Notice, OnError, Result};

use super::batch::{Compare, Decoded, Open};
use super::column::input::StoredStreams;
use super::fetched;
use super::groups;
use super::job::{Run, ScanShared, StripeJob};
use super::ranges;
use super::readers::{Chunks, PROVED_ROWS, Stored, too_long_for_all};
use super::statements::is_of_statistics;

/// Decoded rows wait for their proof in memory if they take at most the bytes of this many batches. Otherwise they
/// are decoded a second time.
const KEPT_BATCHES: u64 = 2;

/// The batches of a stripe.
pub(crate) struct StripeBatches {
    pub(super) stored: Stored,
    /// The remaining runs.
    tasks: VecDeque<Run>,
    current: Option<Current>,
    /// Columns that were read from the stripe's start to the end of a run.
    idle: Option<Open>,
    /// Whether unwanted rows are decoded and dropped: runs then have no positions.
    passes_over: bool,
    /// Proved rows that were not returned yet.
    ready: VecDeque<Ready>,
    pub(super) salvage: Salvage,
    /// For each column, whether it was surveyed: its losses are known.
    pub(super) surveyed: Vec<bool>,
    /// Whether all streams were read after a contradiction of the index.
    reads_in_full: bool,
    /// Whether the streams in memory were searched for superfluous values.
    is_decided: bool,
    failed: bool,
}

/// The run that is being read.
pub(super) struct Current {
    run: Run,
    /// Its next row.
    row: u64,
    pub(super) open: Option<Open>,
    /// Whether columns are read from the start of the stripe, without positions of the index.
    is_from_start: bool,
}

/// Rows that are proved.
pub(super) enum Ready {
    Batch(Decoded),
    /// Rows that take too many bytes to be kept, and are decoded again, with the columns that are null.
    Rows(Range<u64>, Option<Arc<[bool]>>),
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
            salvage: Salvage::new(scan.on_error, nullable, scan.damage.clone()),
            surveyed: vec![false; scan.columns.len()],
            stored: Stored::new(scan, job, streams),
            tasks: VecDeque::new(),
            current: None,
            idle: None,
            passes_over: false,
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
        self.idle = None;
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
    pub(crate) fn has_whole_streams(&self) -> bool {
        let job = &self.stored.job;
        self.reads_in_full || (job.deferred.is_none() && job.parts.iter().all(|part| part.whole))
    }

    /// From now on, passes over unwanted rows, since few row groups are unwanted. Reads whatever is missing of the
    /// streams, if the source makes that cheap. Returns whether it does so.
    pub(crate) fn pass_over(&mut self) -> Result<bool> {
        if !self.passes_over && !self.has_whole_streams() {
            if self.stored.job.deferred.is_none() {
                return Ok(false);
            }
            self.read_whole_streams()?;
        }
        self.passes_over = true;
        Ok(true)
    }

    /// Whether it is known where row groups begin. Reads the index where the plan left that to a scout.
    pub(crate) fn locate(&mut self) -> Result<bool> {
        let stored = &mut self.stored;
        if stored.job.groups.is_none() && !self.reads_in_full {
            let groups = groups::read(&stored.scan, &stored.job.stripe, &stored.job.layout)?;
            stored.set_groups(groups.map(Arc::new));
        }
        Ok(stored.job.groups.is_some() || self.reads_in_full)
    }

    /// Whether unwanted rows are passed over.
    pub(crate) fn passes_over(&self) -> bool {
        self.passes_over
    }

    /// Reads all streams, in place of parts of them.
    fn read_whole_streams(&mut self) -> Result<()> {
        let stored = &mut self.stored;
        let parts = ranges::whole(&stored.scan, &stored.job.layout);
        let bytes: Vec<_> = parts.iter().map(|part| part.bytes.clone()).collect();
        let bytes = read_coalesced(stored.scan.shape.source.as_ref(), &bytes)?;
        stored.streams.clear();
        fetched::add(&stored.scan, &stored.job, &parts, bytes, &mut stored.streams)?;
        stored.forget_dictionaries();
        stored.job.parts = parts;
        stored.job.deferred = None;
        self.idle = None;
        self.is_decided = false;
        Ok(())
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
            self.idle = current.open.filter(|open| !open.believes);
            return Ok(Step::Pending);
        }
        if !std::mem::replace(&mut self.is_decided, true) {
            self.decide_superfluous()?;
        }
        let is_proved = self.tolerates() || !(current.is_from_start || self.reads_in_full);
        let step = if is_proved { self.prove(&mut current) } else { self.read_on(&mut current) };
        let step = match step {
            Err(e) => self.read_in_full(e, &current).map(|()| {
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
        let (row, whole, idle) = (run.rows.start, self.has_whole_streams(), self.idle.take());
        let passes = whole && (run.positions.is_none() || self.reads_in_full);
        // Parts of streams reach from one wanted row group to the next.
        let is_adjacent = |open: &Open| open.row == row && self.stored.job.deferred.is_none();
        let reaches = |open: &Open| is_adjacent(open) || (passes && open.row <= run.wanted.start);
        let open = idle.filter(|open| !self.tolerates() && reaches(open));
        let is_from_start = run.positions.is_none() || open.is_some();
        Some(Current { row, run, open, is_from_start })
    }

    /// Decodes the next batch of a plain read.
    fn read_on(&mut self, current: &mut Current) -> Result<Step> {
        let run = &current.run;
        // The first rows of a row group are read only to prove it.
        current.row = current.row.max(run.wanted.start);
        let mut open = self.stored.opened(current.open.take(), 0, current.row, None)?;
        let rows = (run.wanted.end - current.row).min(self.stored.rows_at_once as u64);
        let all = 0..self.stored.job.stripe.rows;
        let is_whole = run.rows == all && run.wanted == all && !self.reads_in_full;
        let with = if is_whole { Compare::Stripe } else { Compare::Nothing };
        let kept = run.kept.as_ref().map(|kept| {
            let place = |row: u64| usize::try_from(row).unwrap_or(usize::MAX);
            kept.slice(place(current.row - run.wanted.start), place(rows))
        });
        let decoded = self.decode(&mut open, rows, with, kept.as_ref())?;
        let Some(decoded) = decoded else { return Ok(Step::Pending) };
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
        let mut open = self.stored.opened(open, rows.start, rows.start, null.as_deref())?;
        let count = (rows.end - rows.start).min(self.stored.rows_at_once as u64);
        let decoded = self.decode(&mut open, count, Compare::Nothing, None)?;
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

    /// Decodes the next row groups, and puts their proved rows into `ready`.
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

    /// Decodes rows and compares them with the positions and statistics of the file. Adds them to `ready`, and returns
    /// the columns that fail.
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
            let mut now = match self.stored.opened(open.take(), rows.start, rows.start, null.as_deref()) {
                Err(e) if self.tolerates() && e.is_damage() => return Ok(vec![(None, e)]),
                opened => opened?,
            };
            let (mut kept, mut bytes) = (Vec::new(), Some(0u64));
            let whole = loop {
                let count = (rows.end - now.row).min(self.stored.rows_at_once as u64);
                if count == 0 {
                    break true;
                }
                match self.decode(&mut now, count, Compare::Groups, None) {
                    Ok(Some(decoded)) => {
                        let size = self.stored.size(decoded.batch.num_rows());
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

    fn decode(
        &mut self,
        open: &mut Open,
        rows: u64,
        with: Compare,
        kept: Option<&BooleanBuffer>,
    ) -> Result<Option<Decoded>> {
        let surveyed = &self.surveyed;
        let of = |place: usize| match surveyed.get(place) {
            Some(false) => with,
            _ => Compare::Nothing,
        };
        self.stored.decode(open, rows, &of, kept)
    }

    pub(super) fn is_surveyed(&self, place: usize) -> bool {
        self.surveyed.get(place).copied().unwrap_or(true)
    }

    /// Decides which values of the columns that failed in `rows` are saved, or returns the error.
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

    /// Reads the whole stripe from its start after an error of a read by position, since the index may be wrong.
    /// Returns the error if the stripe was already read from its start.
    fn read_in_full(&mut self, e: Error, current: &Current) -> Result<()> {
        let is_whole = current.is_from_start && self.has_whole_streams();
        if self.stored.scan.on_error != OnError::Raise || self.reads_in_full || is_whole || !e.is_damage() {
            return Err(e);
        }
        self.read_whole_streams()?;
        self.reads_in_full = true;
        let stored = &mut self.stored;
        stored.in_full.fill(true);
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
