//! Passes the fetched bytes of a stripe's streams to the decoder.

use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{BatchIter, DecodeUnit, Result};

use super::column::input::StoredStreams;
use super::decode::StripeBatches;
use super::fetched;
use super::job::{ScanShared, StripeJob};
use super::scout::{Scout, ScoutShared, Scouted, rows_tested_together};

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
        let scout = scout.filter(|scout| job.deferred.is_some() || is_useful(scout));
        let scout = scout.and_then(|shared| {
            let keyed = shared.scan.keyed(&job.layout, rows_tested_together(&candidates));
            let tested = keyed.map_or_else(|| shared.scan.clone(), Arc::new);
            // All of its own streams are here.
            let own = StripeJob { deferred: None, ..job.clone() };
            let batches = StripeBatches::new(tested, own, streams.clone());
            let worth = job.deferred.is_some() || shared.saves_bytes(&scan, &job);
            worth.then(|| Scout::new(shared, batches, candidates))
        });
        let mut batches = StripeBatches::new(scan, job, streams);
        if let Some(scout) = scout {
            return Ok(Box::new(Scouted::new(scout, batches)));
        }
        batches.set_tasks(runs.into_iter());
        Ok(Box::new(batches))
    }
}
