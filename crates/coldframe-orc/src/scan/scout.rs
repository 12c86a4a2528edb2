//! Finds the row groups with rows that pass the filter by its columns alone, before the other columns are
//! decoded.
//!
//! ```text
//! row group      | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |     those that statistics and bloom filters keep
//! filter's       | v | v | v | v | v | v | v | v |     decoded by the scout, some row groups at a time
//! a row passes         x               x   x
//! all columns         |v|            |vvv|v|           decoded where rows pass; the consumer filters once more
//! ```
//!
//! In the other row groups, only the filter's columns are decompressed and decoded. If many row groups have rows
//! that pass, the other columns are read from the stripe's start, and the rows between are passed over. If half of the
//! rows pass, a scout saves nothing, and the scan continues without it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBufferBuilder;
use coldframe_core::{Error, PlanRequest, Projection, Result, Scouting};

use super::decode::StripeBatches;
use super::job::{Run, ScanShared, StripeJob, stored_bytes};
use super::ranges;
use crate::open::Shape;

/// Number of row groups that are examined together: few at first, since the scout may save nothing.
const FIRST: usize = 4;
const NEXT: usize = 16;
/// Up to this many unwanted rows are decoded and dropped: to open the columns again costs about as much.
const APART: u64 = 512;
/// Columns are read from the stripe's start where more than 1/`MANY` of the row groups have rows that pass.
const MANY: usize = 4;

/// State shared by all scouts of a scan.
pub(crate) struct ScoutShared {
    /// The filter's columns, as a scan of their own.
    pub(crate) scan: Arc<ScanShared>,
    scouting: Scouting,
    /// Whether a scout saved nothing.
    futile: AtomicBool,
}

impl ScoutShared {
    /// The state for a filtered scan; `None` if the filter uses all columns of the scan.
    pub(crate) fn new(shape: &Arc<Shape>, request: &PlanRequest) -> Result<Option<Self>> {
        let Some(scouting) = Scouting::new(request) else { return Ok(None) };
        let decode = Projection::resolve(&shape.schema, Some(&[]), &scouting.paths())?.decode;
        if decode.fields().is_empty() || decode == request.decode {
            return Ok(None);
        }
        let own = PlanRequest { decode, scan: request.scan.clone(), damage: request.damage.clone() };
        let scan = Arc::new(ScanShared::new(shape.clone(), &own)?);
        Ok(Some(Self { scan, scouting, futile: AtomicBool::new(false) }))
    }

    /// Whether scouts have saved work so far.
    pub(crate) fn is_useful(&self) -> bool {
        !self.futile.load(Ordering::Relaxed)
    }

    /// Notes whether a scout saved nothing.
    fn note_futile(&self, is: bool) {
        if is {
            self.futile.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the filter's columns are at most half of the bytes to read; otherwise decoding them twice
    /// costs too much.
    pub(crate) fn saves_bytes(&self, all: &ScanShared, job: &StripeJob) -> bool {
        let of = |scan| stored_bytes(scan, job).iter().sum::<u64>();
        of(&self.scan) <= of(all) / 2
    }
}

/// The scout of one stripe.
pub(crate) struct Scout {
    shared: Arc<ScoutShared>,
    batches: StripeBatches,
    /// The row groups that are not examined yet.
    left: VecDeque<Run>,
    most: usize,
}

impl Scout {
    /// Examines `groups`; `batches` have the filter's columns.
    pub(crate) fn new(shared: Arc<ScoutShared>, batches: StripeBatches, groups: VecDeque<Run>) -> Self {
        Self { shared, batches, left: groups, most: FIRST }
    }

    /// The next runs of rows that `batches`, which have all columns, decode; possibly an empty list. `None` after the
    /// last row group.
    fn next_runs(&mut self, batches: &mut StripeBatches) -> Result<Option<Vec<Run>>> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let most = if self.shared.is_useful() { self.most } else { usize::MAX };
        let groups: Vec<Run> = self.left.drain(..most.min(self.left.len())).collect();
        if most == usize::MAX {
            let wanted = vec![true; groups.len()];
            let passed =
                |run: Run| Run { positions: run.positions.filter(|_| !batches.passes_over()), ..run };
            return Ok(Some(ranges::runs(&groups, &wanted).map(|(run, _)| passed(run)).collect()));
        }
        let passing = self.examine(&groups)?;
        let in_group = |group: &Run| within(&passing, &group.rows).next().is_some();
        let wanted: Vec<bool> = groups.iter().map(in_group).collect();
        let stay = wanted.iter().filter(|wanted| **wanted).count();
        // Where statistics have excluded row groups, those that are left are few.
        let is_whole = self.batches.has_whole_streams();
        if is_whole && stay * MANY > groups.len() && batches.pass_over()? {
            let examined: u64 = groups.iter().map(|group| length(&group.rows)).sum();
            self.shared.note_futile(passing.iter().map(|part| part.count).sum::<u64>() > examined / 2);
            return Ok(Some(passing.into_iter().map(Passing::into_run).collect()));
        }
        self.shared.note_futile(stay * 4 > groups.len() * 3);
        let trimmed = |(run, _): (Run, Range<usize>)| {
            let mut passing = within(&passing, &run.rows);
            let Some(first) = passing.next() else { return run };
            let last = passing.last().map_or(first.rows.end, |last| last.rows.end);
            let wanted = first.rows.start.max(run.rows.start)..last.min(run.rows.end);
            Run { wanted, ..run }
        };
        Ok(Some(ranges::runs(&groups, &wanted).map(trimmed).collect()))
    }

    /// The rows that pass in `groups`, with the rows between those that are close to each other.
    fn examine(&mut self, groups: &[Run]) -> Result<Vec<Passing>> {
        self.most = NEXT;
        let all = vec![true; groups.len()];
        let runs: Vec<Run> = ranges::runs(groups, &all).map(|(run, _)| run).collect();
        self.batches.set_tasks(runs.iter().cloned());
        let mut passing: Vec<Passing> = Vec::new();
        let mut rows = runs.into_iter().map(|run| run.rows).filter(|rows| !rows.is_empty());
        let mut left = rows.next().unwrap_or_default();
        for batch in self.batches.by_ref() {
            let mask = self.shared.scouting.passing(&batch?)?;
            let mut at = 0;
            while at < mask.len() {
                let count = usize::try_from(left.end - left.start).unwrap_or(usize::MAX).min(mask.len() - at);
                if count == 0 {
                    return Err(Error::invalid("a scout received more rows than it requested"));
                }
                for (start, end) in mask.slice(at, count).set_slices() {
                    add(&mut passing, &(left.start + start as u64..left.start + end as u64));
                }
                at += count;
                left.start += count as u64;
                if left.is_empty() {
                    left = rows.next().unwrap_or_default();
                }
            }
        }
        Ok(passing)
    }
}

/// Rows that pass, with the rows between that are close.
struct Passing {
    rows: Range<u64>,
    /// Which of them pass, and how many.
    bits: BooleanBufferBuilder,
    count: u64,
}

impl Passing {
    fn add(&mut self, rows: &Range<u64>) {
        let size = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        self.bits.append_n(size(rows.start - self.rows.end), false);
        self.bits.append_n(size(length(rows)), true);
        self.rows.end = rows.end;
        self.count += length(rows);
    }

    /// The run that reads these rows, and only those that pass unless they are many.
    fn into_run(mut self) -> Run {
        let kept = (self.count < length(&self.rows) / 2).then(|| self.bits.finish());
        Run { kept, ..Run::new(self.rows, None) }
    }
}

/// Adds rows that pass behind the last ones, or together with them if they are close.
fn add(passing: &mut Vec<Passing>, rows: &Range<u64>) {
    match passing.last_mut().filter(|last| rows.start < last.rows.end.saturating_add(APART)) {
        Some(last) => last.add(rows),
        None => {
            let mut first =
                Passing { rows: rows.start..rows.start, bits: BooleanBufferBuilder::new(1), count: 0 };
            first.add(rows);
            passing.push(first);
        }
    }
}

fn length(rows: &Range<u64>) -> u64 {
    rows.end.saturating_sub(rows.start)
}

/// Of some sorted parts, those with rows in `rows`.
fn within<'a>(parts: &'a [Passing], rows: &Range<u64>) -> impl Iterator<Item = &'a Passing> + use<'a> {
    let (start, end) = (rows.start, rows.end);
    let first = parts.partition_point(|part| part.rows.end <= start);
    parts.get(first..).unwrap_or_default().iter().take_while(move |part| part.rows.start < end)
}

/// How many rows of `groups` are tested together, on average: a batch ends with the groups examined together,
/// and where the next group is not adjacent.
pub(crate) fn rows_tested_together(groups: &VecDeque<Run>) -> usize {
    let rows = groups.iter().map(|group| group.rows.end.saturating_sub(group.rows.start));
    let rows = usize::try_from(rows.fold(0, u64::saturating_add)).unwrap_or(usize::MAX);
    let pairs = groups.iter().zip(groups.iter().skip(1));
    let gaps = pairs.filter(|(group, next)| group.rows.end != next.rows.start).count();
    rows / (groups.len().div_ceil(NEXT) + gaps).max(1)
}

/// The batches of the row groups that a stripe's scout keeps.
pub(crate) struct Scouted {
    scout: Scout,
    batches: StripeBatches,
    failed: bool,
}

impl Scouted {
    /// `batches` have all columns; the scout selects the runs to read.
    pub(crate) fn new(scout: Scout, batches: StripeBatches) -> Self {
        Self { scout, batches, failed: false }
    }
}

impl Iterator for Scouted {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            if let Some(batch) = self.batches.next() {
                self.failed = batch.is_err();
                return Some(batch);
            }
            match self.scout.next_runs(&mut self.batches) {
                Ok(Some(runs)) => {
                    if let Err(e) = self.batches.read_deferred(&runs) {
                        self.failed = true;
                        return Some(Err(e));
                    }
                    self.batches.set_tasks(runs.into_iter());
                }
                Ok(None) => return None,
                Err(e) => {
                    self.failed = true;
                    return Some(Err(e));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_close_are_decoded_together() {
        let mut passing = Vec::new();
        for rows in [3..4, 9..20, 531..532, 1044..1045, 1557..1558] {
            add(&mut passing, &rows);
        }
        let ranges: Vec<_> = passing.iter().map(|part| part.rows.clone()).collect();
        assert_eq!(ranges, [3..532, 1044..1045, 1557..1558]);
        let of = |rows: Range<u64>| within(&passing, &rows).count();
        assert_eq!([of(0..3), of(0..4), of(531..2000), of(532..1044), of(1557..1558)], [0, 1, 3, 0, 1]);
        let kept = passing.into_iter().map(|part| part.into_run().kept).collect::<Vec<_>>();
        let rows: Vec<usize> = kept[0].as_ref().unwrap().set_indices().map(|at| at + 3).collect();
        assert_eq!(rows, [vec![3], (9..20).collect(), vec![531]].concat());
        assert!(kept[1].is_none() && kept[2].is_none());
    }

    #[test]
    fn rows_of_groups_that_are_apart_are_not_tested_together() {
        let group = |start: u64| Run::new(start..start + 1000, None);
        let together = |starts: &[u64]| rows_tested_together(&starts.iter().copied().map(group).collect());
        assert_eq!(together(&[]), 0);
        assert_eq!(together(&[3000]), 1000);
        assert_eq!(together(&[0, 1000, 2000, 3000]), 4000);
        assert_eq!(together(&[0, 1000, 4000, 9000]), 1333);
        let all: Vec<u64> = (0..64).map(|n| n * 1000).collect();
        assert_eq!(together(&all), 16_000);
    }
}
