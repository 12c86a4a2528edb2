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
use coldframe_encoding::limits::UNBACKED_ROWS;

use super::groups;
use super::job::{DeferredStreams, Run, ScanShared, StripeJob};
use super::ranges;
use super::scout::ScoutShared;
use super::superfluous;
use super::unit::DecodeStripe;
use crate::layout::stripe::Stripe;
use crate::prune::stripes::StripePruner;

/// If gaps of more bytes than this are read to save a request, the requests of the source are expensive.
const CHEAP_GAP: u64 = 4096;

/// Plans the stripes of a split.
pub(crate) struct StripePlan {
    scan: Arc<ScanShared>,
    scout: Option<Arc<ScoutShared>>,
    stripes: VecDeque<Stripe>,
    prune: Option<StripePruner>,
    /// Rows still wanted, in a scan without a filter.
    limit: Option<u64>,
    /// Stripes that statistics, indexes and bloom filters exclude.
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
        Self { scan, scout, stripes, prune, limit, pruned: 0, lost }
    }

    /// The stripe's unit; `None` if no row is wanted.
    fn unit(&mut self, stripe: &Stripe) -> Result<Option<Unit>> {
        let shape = self.scan.shape.clone();
        shape.check_rows(stripe).at(stripe.bytes.start)?;
        if let Some(prune) = &mut self.prune
            && !prune.stripe(stripe)?
        {
            return Ok(None);
        }
        let layout = shape.layout(stripe)?;
        let wanted = match &mut self.prune {
            Some(prune) => prune.row_groups(stripe, &layout)?,
            None => self.first_rows(stripe),
        };
        if wanted.as_ref().is_some_and(|groups| groups.iter().all(|g| !g)) {
            return Ok(None);
        }
        let mut job = StripeJob {
            stripe: stripe.clone(),
            layout,
            runs: VecDeque::new(),
            candidates: VecDeque::new(),
            groups: None,
            of_scout: None,
            parts: Vec::new(),
            deferred: None,
        };
        let careful = self.scan.on_error != OnError::Raise;
        let scout = self.scout.clone().filter(|scout| scout.is_useful());
        let all: Vec<usize> = (0..self.scan.columns.len()).collect();
        let has_suspects = !superfluous::suspects(&self.scan, &job.layout, &all).is_empty();
        let is_whole = wanted.as_ref().is_none_or(|groups| groups.iter().all(|wanted| *wanted));
        // Where a scout finds rows in most row groups, the index of the other columns is not needed.
        let is_later = self.has_cheap_requests() && !careful && is_whole && !has_suspects;
        let own = scout.as_ref().filter(|_| is_later).map(|scout| &scout.scan);
        let groups = match wanted.is_some() || careful || scout.is_some() {
            true => groups::read(own.unwrap_or(&self.scan), stripe, &job.layout)?,
            false => None,
        };
        if careful {
            let groups = groups.unwrap_or_else(|| groups::single(&self.scan, stripe.rows));
            job.groups = Some(Arc::new(groups::with_stripe(groups, &self.scan, stripe)?));
            self.take_runs(&mut job, None);
            return Ok(Some(self.make(job)));
        }
        let is_indexed = groups.is_some();
        let is_plain = wanted.is_none() && !is_indexed && shape.options.compares_statistics;
        let groups = match is_plain || has_suspects {
            false => groups,
            true => {
                let groups = groups.unwrap_or_else(|| groups::single(&self.scan, stripe.rows));
                Some(groups::with_stripe(groups, &self.scan, stripe)?)
            }
        }
        .map(Arc::new);
        let is_of_all = own.is_none() || !is_indexed;
        (job.groups, job.of_scout) = if is_of_all { (groups.clone(), groups) } else { (None, groups) };
        let count = job.groups.as_ref().map(|groups| groups.runs.len());
        let wanted = wanted.filter(|wanted| Some(wanted.len()) == count);
        self.take_runs(&mut job, wanted.as_deref());
        if let (Some(scout), Some(groups)) = (&scout, job.of_scout.clone().filter(|_| is_indexed)) {
            let mut keep = wanted.iter().flatten();
            let keep = groups.runs.iter().filter(|_| keep.next().is_none_or(|wanted| *wanted));
            job.candidates = keep.cloned().collect();
            self.defer_others(scout, &mut job);
        }
        Ok(Some(self.make(job)))
    }

    fn has_cheap_requests(&self) -> bool {
        self.scan.shape.source.worthwhile_gap() <= CHEAP_GAP
    }

    /// Sets the runs and parts of a stripe: for the wanted row groups, or for the whole stripe.
    fn take_runs(&self, job: &mut StripeJob, wanted: Option<&[bool]>) {
        match (wanted, job.groups.clone()) {
            (Some(wanted), Some(groups)) if wanted.iter().any(|w| !w) => {
                let groups = &groups.runs;
                job.runs = ranges::runs(groups, wanted).map(|(run, _)| run).collect();
                job.parts = ranges::of_runs(&self.scan, &self.scan.needed, &job.layout, groups, wanted);
            }
            _ => {
                job.runs.push_back(Run::new(0..job.stripe.rows, None));
                job.parts = ranges::whole(&self.scan, &job.layout);
            }
        }
    }

    /// Defers the streams outside the filter until a row passes, if that is worth the additional requests.
    fn defer_others(&self, scout: &ScoutShared, job: &mut StripeJob) {
        if !self.has_cheap_requests() || job.candidates.is_empty() || !scout.saves_bytes(&self.scan, job) {
            return;
        }
        let of_filter = |id: &usize| scout.scan.needed.contains(id);
        let (now, later) =
            std::mem::take(&mut job.parts).into_iter().partition(|part| of_filter(&part.column));
        let columns = self.scan.needed.iter().copied().filter(|id| !of_filter(id)).collect();
        job.parts = now;
        job.deferred = Some(DeferredStreams { columns, parts: later });
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
            decode: Box::new(DecodeStripe {
                scan: self.scan_of(&job.stripe),
                job,
                scout: self.scout.clone(),
            }),
        }
    }

    /// How a stripe is decoded. In a very large stripe, the number of nulls in place of lost values would have no
    /// bound, so damage drops its rows.
    fn scan_of(&self, stripe: &Stripe) -> Arc<ScanShared> {
        if self.scan.on_error != OnError::Null || stripe.rows <= UNBACKED_ROWS {
            return self.scan.clone();
        }
        Arc::new(ScanShared { on_error: OnError::Skip, ..self.scan.as_ref().clone() })
    }

    /// The row groups that hold the next `limit` rows.
    fn first_rows(&mut self, stripe: &Stripe) -> Option<Vec<bool>> {
        // If damage is tolerated, the number of rows that a stripe yields is unknown, and the consumer stops
        // once it has enough.
        let limit = self.limit.as_mut().filter(|_| self.scan.on_error == OnError::Raise)?;
        let wanted = *limit;
        *limit = limit.saturating_sub(stripe.rows);
        let stride = self.scan.shape.stride().filter(|_| wanted < stripe.rows)?;
        let count = stripe.rows.div_ceil(stride);
        let end = wanted.div_ceil(stride).min(count);
        Some((0..count).map(|group| group < end).collect())
    }
}

impl Plan for StripePlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        while let Some(stripe) = self.stripes.pop_front() {
            if stripe.rows == 0 || self.limit == Some(0) {
                continue;
            }
            match self.unit(&stripe) {
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
