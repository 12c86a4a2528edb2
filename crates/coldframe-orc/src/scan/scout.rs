//! Finds the row groups with rows that pass the filter by its columns alone, before the other columns are
//! decoded.
//!
//! ```text
//! row group      | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |     those that statistics and bloom filters keep
//! filter's       | v | v | v | v | v | v | v | v |     decoded by the scout, some row groups at a time
//! a row passes         x               x   x
//! all columns         |v|            |vvv|v|           decoded from the first row that passes to the last;
//!                                                      the consumer filters once more
//! ```
//!
//! In the other row groups, only the filter's columns are decompressed and decoded. If most row groups have
//! rows that pass, a scout saves nothing, and the scan continues without it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use coldframe_core::{Error, PlanRequest, Projection, Result, Scouting};

use super::decode::StripeBatches;
use super::job::{Run, ScanShared, StripeJob, stored_bytes};
use super::ranges;
use crate::open::Shape;

/// Number of row groups that are examined together: few at first, since the scout may save nothing.
const FIRST: usize = 4;
const NEXT: usize = 16;

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

    /// The next runs of row groups to decode, possibly an empty list; `None` after the last row group.
    fn next_runs(&mut self) -> Result<Option<Vec<Run>>> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let most = if self.shared.is_useful() { self.most } else { usize::MAX };
        let groups: Vec<Run> = self.left.drain(..most.min(self.left.len())).collect();
        if most == usize::MAX {
            let wanted = vec![true; groups.len()];
            return Ok(Some(ranges::runs(&groups, &wanted).map(|(run, _)| run).collect()));
        }
        let passing = self.examine(&groups)?;
        let wanted: Vec<bool> = passing.iter().map(Option::is_some).collect();
        let rows = |at: usize| passing.get(at).cloned().flatten();
        let trimmed = |(run, of): (Run, Range<usize>)| match (rows(of.start), rows(of.end.saturating_sub(1)))
        {
            (Some(first), Some(last)) => Run { wanted: first.start..last.end, ..run },
            _ => run,
        };
        Ok(Some(ranges::runs(&groups, &wanted).map(trimmed).collect()))
    }

    /// For each row group, the range from the first row that passes to the last; `None` if no row passes.
    fn examine(&mut self, groups: &[Run]) -> Result<Vec<Option<Range<u64>>>> {
        self.most = NEXT;
        let all = vec![true; groups.len()];
        self.batches.set_tasks(ranges::runs(groups, &all).map(|(run, _)| run));
        let mut passing: Vec<Option<Range<u64>>> = vec![None; groups.len()];
        let (mut group, mut row) = (0, groups.first().map_or(0, |g| g.rows.start));
        for batch in self.batches.by_ref() {
            let batch = batch?;
            let mask = self.shared.scouting.passing(&batch)?;
            let mut at = 0;
            while at < mask.len() {
                let Some(rows) = groups.get(group).map(|g| g.rows.clone()) else {
                    return Err(Error::invalid("a scout received more rows than it requested"));
                };
                row = row.max(rows.start);
                let count = usize::try_from(rows.end - row).unwrap_or(usize::MAX).min(mask.len() - at);
                if let (Some(passes), Some(range)) = (passing.get_mut(group), extent(&mask.slice(at, count)))
                {
                    let start = passes.as_ref().map_or(row + range.start as u64, |before| before.start);
                    *passes = Some(start..row + range.end as u64);
                }
                at += count;
                row += count as u64;
                group += usize::from(row == rows.end);
            }
        }
        let stay = passing.iter().flatten().count();
        if stay * 4 > passing.len() * 3 {
            self.shared.futile.store(true, Ordering::Relaxed);
        }
        Ok(passing)
    }
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

/// The range from the first set bit to the last.
fn extent(bits: &BooleanBuffer) -> Option<Range<usize>> {
    let mut slices = bits.set_slices();
    let (start, end) = slices.next()?;
    Some(start..slices.last().map_or(end, |(_, end)| end))
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
            match self.scout.next_runs() {
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
