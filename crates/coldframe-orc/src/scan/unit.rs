//! A stripe as its reader gets it: the bytes of its streams, where the plan says they lie, and who decodes them.

use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{BatchIter, DecodeUnit, Result};

use super::column::input::{StoredPart, StoredStreams};
use super::decode::{StripeBatches, Task};
use super::job::{ScanShared, StripeJob};
use super::scout::{Scout, ScoutShared};

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
            (of_filter <= all / 2).then(|| Box::new(Scout::new(shared, batches, unseen)))
        });
        let mut batches = StripeBatches::new(scan, job, streams);
        if scout.is_none() {
            batches.read_instead(runs.into_iter().map(Task::new));
        }
        batches.scout = scout;
        Ok(Box::new(batches))
    }
}

/// Stored bytes of each column to decode, with those inside it.
pub(crate) fn stored_bytes(scan: &ScanShared, job: &StripeJob) -> Vec<u64> {
    let tree = &scan.shape.tree;
    // Of all columns in front of each: a column's own are a difference.
    let mut sums = vec![0u64; tree.columns().len() + 1];
    for part in &job.parts {
        if let Some(sum) = sums.get_mut(part.column + 1) {
            *sum += part.bytes.end - part.bytes.start;
        }
    }
    let mut all = 0u64;
    for sum in &mut sums {
        all = all.saturating_add(*sum);
        *sum = all;
    }
    let before = |id: usize| sums.get(id).copied().unwrap_or(all);
    let end = |id: usize| tree.get(id).map_or(id, |column| column.end);
    scan.columns.iter().map(|(id, _)| before(end(*id)).saturating_sub(before(*id))).collect()
}
