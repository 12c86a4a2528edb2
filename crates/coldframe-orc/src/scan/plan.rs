//! Plans the stripes of a split, and the streams to fetch for each stripe.
//!
//! ```text
//! stripe   -- statistics of the stripe --> excluded, or its footer is read
//! footer   -- statistics and bloom filters of row groups --> which row groups may match
//! streams of the requested columns: whole, or the parts for these row groups
//! ```
//!
//! A unit is a stripe.

use std::collections::VecDeque;
use std::sync::Arc;

use coldframe_core::format::Fetch;
use coldframe_core::{Damage, Error, ErrorContext, OnError, Plan, Result, Unit};

use super::job::{DeferredStreams, Run, ScanShared, StripeJob};
use super::ranges::{self, VALUES};
use super::scout::ScoutShared;
use super::unit::DecodeStripe;
use crate::layout::index::{self, Positions};
use crate::layout::proto::PositionIndex;
use crate::layout::stripe::{Stripe, StripeLayout};
use crate::layout::types::Column;
use crate::prune::stripes::StripePruner;

/// If gaps of more bytes than this are read to save a request, the requests of the source are expensive.
const CHEAP_GAP: u64 = 4096;

/// Plans the stripes of a split.
pub(crate) struct StripePlan {
    scan: Arc<ScanShared>,
    scout: Option<Arc<ScoutShared>>,
    stripes: VecDeque<Stripe>,
    prune: Option<StripePruner>,
    /// The number of rows that are still wanted, in a scan without a filter. If damage is tolerated, the
    /// number of rows that a stripe yields is unknown; then this stays the requested limit, and the consumer
    /// stops when it has enough.
    limit: Option<u64>,
    /// A stripe that was planned only up to a row group, for a limit; and the number of that row group.
    rest: Option<(Stripe, u64)>,
    /// Number of stripes that statistics, indexes and bloom filters exclude.
    pruned: u64,
    /// The error to return after all stripes, for lost rows outside them.
    lost: Option<Error>,
}

impl StripePlan {
    /// A plan over `stripes`. With a filter, `limit` must be `None`.
    pub(crate) fn new(
        scan: ScanShared,
        scout: Option<ScoutShared>,
        stripes: VecDeque<Stripe>,
        prune: Option<StripePruner>,
        limit: Option<u64>,
        lost: Option<Error>,
    ) -> Self {
        let (scan, scout) = (Arc::new(scan), scout.map(Arc::new));
        Self { scan, scout, stripes, prune, limit, rest: None, pruned: 0, lost }
    }

    /// The stripe's unit from row group `from` on; `None` if no row is wanted.
    fn unit(&mut self, stripe: &Stripe, from: u64) -> Result<Option<Unit>> {
        let shape = self.scan.shape.clone();
        let limits = &shape.options.limits;
        limits.unit_rows("a stripe", stripe.rows).at(stripe.bytes.start)?;
        if let Some(prune) = &mut self.prune
            && !prune.stripe(stripe)?
        {
            return Ok(None);
        }
        let layout = shape.layout(stripe)?;
        let wanted = match &mut self.prune {
            Some(prune) => prune.row_groups(stripe, &layout)?,
            None => self.first_rows(stripe, from),
        };
        if wanted.as_ref().is_some_and(|groups| groups.iter().all(|g| !g)) {
            return Ok(None);
        }
        let mut job = StripeJob {
            stripe: stripe.clone(),
            layout,
            runs: VecDeque::new(),
            candidates: VecDeque::new(),
            groups: Vec::new(),
            group_starts: Vec::new(),
            parts: Vec::new(),
            deferred: None,
        };
        let careful = self.scan.on_error != OnError::Raise;
        let scout = self.scout.as_ref().filter(|scout| scout.is_useful());
        let groups = if wanted.is_some() || careful || scout.is_some() { self.groups(&job)? } else { None };
        let wanted = wanted.filter(|w| groups.as_ref().is_some_and(|g| g.len() == w.len()));
        if wanted.is_none() {
            self.rest = None;
        }
        self.take_runs(&mut job, wanted.as_deref(), groups.as_deref());
        if let Some(scout) = scout {
            let mut keep = wanted.iter().flatten();
            let keep = groups.iter().flatten().filter(|_| keep.next().is_none_or(|wanted| *wanted));
            job.candidates = keep.cloned().collect();
            self.defer_others(scout, &mut job, groups.as_deref().unwrap_or_default());
        }
        if self.scan.nested {
            let begin = |group: &Run| Some((group.rows.start, group.positions.clone()?));
            job.group_starts = groups.iter().flatten().filter_map(begin).collect();
        }
        if careful {
            job.groups = groups.unwrap_or_default();
            if let Some(wanted) = wanted {
                let mut keep = wanted.into_iter();
                job.groups.retain(|_| keep.next().unwrap_or(true));
            }
        }
        Ok(Some(self.make(job)))
    }

    /// Sets the runs and parts of a stripe: for the wanted row groups, or for the whole stripe.
    fn take_runs(&self, job: &mut StripeJob, wanted: Option<&[bool]>, groups: Option<&[Run]>) {
        match (wanted, groups) {
            (Some(wanted), Some(groups)) if wanted.iter().any(|w| !w) => {
                job.runs = ranges::runs(groups, wanted).map(|(run, _)| run).collect();
                job.parts = ranges::of_runs(&self.scan, &self.scan.needed, &job.layout, groups, wanted);
            }
            _ => {
                job.runs.push_back(Run { rows: 0..job.stripe.rows, positions: None, skip: 0 });
                job.parts = ranges::whole(&self.scan, &job.layout);
            }
        }
    }

    /// Defers the streams outside the filter until a row passes, if that is worth the additional requests.
    fn defer_others(&self, scout: &ScoutShared, job: &mut StripeJob, groups: &[Run]) {
        let cheap = self.scan.shape.source.worthwhile_gap() <= CHEAP_GAP;
        if !cheap || job.candidates.is_empty() || !scout.saves_bytes(&self.scan, job) {
            return;
        }
        let of_filter = |id: &usize| scout.scan.needed.contains(id);
        let (now, later) =
            std::mem::take(&mut job.parts).into_iter().partition(|part| of_filter(&part.column));
        let columns = self.scan.needed.iter().copied().filter(|id| !of_filter(id)).collect();
        job.parts = now;
        job.deferred = Some(DeferredStreams { columns, groups: groups.to_vec(), parts: later });
    }

    fn make(&self, job: StripeJob) -> Unit {
        let source = &self.scan.shape.source;
        let fetch =
            job.parts.iter().map(|p| Fetch { source: source.clone(), range: p.bytes.clone() }).collect();
        let rows = job.runs.iter().map(|r| r.rows.end - r.rows.start).sum();
        Unit {
            fetch,
            bytes: job.stripe.bytes.clone(),
            rows: Some(rows),
            structure: job.stripe.name(),
            decode: Box::new(DecodeStripe { scan: self.scan.clone(), job, scout: self.scout.clone() }),
        }
    }

    /// The row groups from `from` on that hold the next `limit` rows.
    fn first_rows(&mut self, stripe: &Stripe, from: u64) -> Option<Vec<bool>> {
        let limit = self.limit.as_mut()?;
        let wanted = *limit;
        let careful = self.scan.on_error != OnError::Raise;
        if !careful {
            *limit = limit.saturating_sub(stripe.rows);
        }
        let stride = self.scan.shape.stride()?;
        if from == 0 && wanted >= stripe.rows {
            return None;
        }
        let count = stripe.rows.div_ceil(stride);
        let end = from.saturating_add(wanted.div_ceil(stride)).min(count);
        if careful && end < count {
            self.rest = Some((stripe.clone(), end));
        }
        let count = usize::try_from(count).ok()?;
        Some((0..count as u64).map(|group| (from..end).contains(&group)).collect())
    }

    /// The row groups with their positions; `None` if the indexes of the needed columns lack them.
    fn groups(&self, job: &StripeJob) -> Result<Option<Vec<Run>>> {
        let shape = &self.scan.shape;
        let Some(stride) = shape.stride() else { return Ok(None) };
        let indexes = match shape.row_indexes(&job.stripe, &job.layout, &self.scan.needed) {
            Ok(indexes) => indexes,
            // An index only saves work, so a damaged one is ignored.
            Err(e) if e.is_damage() => return Ok(None),
            Err(e) => return Err(e),
        };
        Ok(self.groups_of_indexes(job, &indexes, stride))
    }

    fn groups_of_indexes(
        &self,
        job: &StripeJob,
        indexes: &[Option<PositionIndex>],
        stride: u64,
    ) -> Option<Vec<Run>> {
        let shape = &self.scan.shape;
        let count = usize::try_from(job.stripe.rows.div_ceil(stride)).ok()?;
        // Only an index with as many entries confirms the number of row groups; the stride in the footer may
        // be wrong.
        if !indexes.iter().flatten().any(|index| index.entry.len() >= count) {
            return None;
        }
        let mut groups = Vec::with_capacity(count);
        for group in 0..count {
            let mut all = Vec::new();
            for (id, index) in self.scan.needed.iter().zip(indexes).filter(|_| group > 0) {
                let column = shape.tree.get(*id)?;
                if has_no_streams(column, &job.layout) {
                    continue;
                }
                let numbers = &index.as_ref()?.entry.get(group)?.positions;
                let short = shape.quirks.short_decimals;
                let positions =
                    index::positions(column, &job.layout, shape.tail.compression, short, numbers).ok()?;
                all.extend(positions.into_iter().map(|(kind, position)| ((*id, kind), position)));
            }
            let start = group as u64 * stride;
            let rows = start..(start + stride).min(job.stripe.rows);
            groups.push(Run { rows, positions: (group > 0).then(|| Arc::new(Positions::new(all))), skip: 0 });
        }
        Some(groups)
    }
}

/// Whether a column has no stored values in a stripe, and so needs no positions.
fn has_no_streams(column: &Column, layout: &StripeLayout) -> bool {
    VALUES.iter().all(|kind| layout.stream(column.id, *kind).is_none_or(|p| p.bytes.is_empty()))
}

impl Plan for StripePlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        while let Some((stripe, from)) =
            self.rest.take().or_else(|| self.stripes.pop_front().map(|stripe| (stripe, 0)))
        {
            if stripe.rows == 0 || self.limit == Some(0) {
                continue;
            }
            match self.unit(&stripe, from) {
                Ok(Some(unit)) => return Ok(Some(unit)),
                Ok(None) => self.pruned += u64::from(self.prune.is_some()),
                Err(e) if self.scan.on_error != OnError::Raise && e.is_damage() => {
                    let e = e.within(stripe.name());
                    self.scan.damage.push(Damage::from_error(&e, stripe.bytes.clone(), Some(stripe.rows)));
                }
                Err(e) => return Err(e.within(stripe.name()).at(stripe.bytes.start)),
            }
        }
        self.lost.take().map_or(Ok(None), Err)
    }

    fn pruned(&self) -> u64 {
        self.pruned
    }
}
