//! A stripe as its reader gets it: the bytes of its streams, where the plan says they lie, and who decodes them.

use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{BatchIter, DecodeUnit, Result};

use super::column::input::{StoredPart, StoredStreams};
use super::decode::{StripeBatches, Task};
use super::job::{ScanShared, StripeJob, stored_bytes};
use super::scout::{Scout, ScoutShared, Scouted};

/// Decodes one stripe.
pub(crate) struct DecodeStripe {
    /// What all stripes share.
    pub(crate) scan: Arc<ScanShared>,
    /// The stripe.
    pub(crate) job: StripeJob,
    /// Who looks at the filter's columns first.
    pub(crate) scout: Option<Arc<ScoutShared>>,
}

impl DecodeUnit for DecodeStripe {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let Self { scan, mut job, scout } = *self;
        let mut streams = StoredStreams::new();
        for (part, stored) in job.parts.iter().zip(bytes) {
            let Some(place) = job.layout.stream(part.column, part.kind) else { continue };
            let bytes = scan.shape.decrypted(stored, place, part.start, &job.stripe)?;
            let part_of = StoredPart { start: part.start, offset: part.bytes.start, bytes };
            streams.entry((part.column, part.kind)).or_default().push(part_of);
        }
        let runs = std::mem::take(&mut job.runs);
        let unseen = std::mem::take(&mut job.unseen);
        let scout = scout.filter(|scout| !unseen.is_empty() && scout.is_useful());
        let scout = scout.and_then(|shared| {
            let batches = StripeBatches::new(shared.scan.clone(), job.clone(), streams.clone());
            // Where the filter's columns are most of what is read, they are read but once.
            let all: u64 = stored_bytes(&scan, &job).iter().sum();
            let of_filter: u64 = batches.stored.iter().sum();
            (of_filter <= all / 2).then(|| Scout::new(shared, batches, unseen))
        });
        let mut batches = StripeBatches::new(scan, job, streams);
        if let Some(scout) = scout {
            return Ok(Box::new(Scouted::new(scout, batches)));
        }
        batches.read_instead(runs.into_iter().map(Task::new));
        Ok(Box::new(batches))
    }
}
