//! Passes the fetched bytes of a stripe's streams to the decoder.

use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{BatchIter, DecodeUnit, Result};

use super::column::input::StoredStreams;
use super::decode::StripeBatches;
use super::fetched;
use super::handed::Handed;
use super::job::{ScanShared, StripeJob};
use super::scout::{Scout, ScoutShared, rows_tested_together};
use super::scouted::Scouted;

/// Decodes one stripe.
pub(crate) struct DecodeStripe {
    /// State shared by all stripes.
    pub(crate) scan: Arc<ScanShared>,
    /// The stripe.
    pub(crate) job: StripeJob,
    /// Decodes the filter's columns first.
    pub(crate) scout: Option<Arc<ScoutShared>>,
}

impl DecodeUnit for DecodeStripe {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let Self { scan, mut job, scout } = *self;
        let mut streams = StoredStreams::new();
        fetched::add(&scan, &job, &job.parts, bytes, &mut streams)?;
        let runs = std::mem::take(&mut job.runs);
        let candidates = std::mem::take(&mut job.candidates);
        // Deferred streams need the scout, even if it saves no work.
        let is_useful = |scout: &Arc<ScoutShared>| !candidates.is_empty() && scout.is_useful();
        if let Some(shared) = scout.filter(|scout| job.deferred.is_some() || is_useful(scout)) {
            let (handed, others) = Handed::divide(&scan, &shared.scan)?;
            let keyed = shared.scan.keyed(&job.layout, rows_tested_together(&candidates));
            let is_worth = match handed.is_all() {
                true => keyed.is_some(),
                false => !handed.reads_twice() || shared.saves_bytes(&scan, &job),
            };
            if job.deferred.is_some() || is_worth {
                let tested = keyed.map_or_else(|| shared.scan.clone(), Arc::new);
                // All of its own streams are here.
                let own = StripeJob { deferred: None, groups: job.of_scout.clone(), ..job.clone() };
                let own = StripeBatches::new(tested, own, streams.clone());
                let scout = Scout::new(shared, own, candidates, handed);
                let others = StripeBatches::new(Arc::new(others), job, streams);
                return Ok(Box::new(Scouted::new(scout, others)));
            }
        }
        let mut batches = StripeBatches::new(scan, job, streams);
        batches.set_tasks(runs.into_iter());
        Ok(Box::new(batches))
    }
}
