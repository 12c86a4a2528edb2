//! Holds the bytes of a stripe's streams: fetched with the unit, or read when a row group needs them.
//!
//! A scout decodes the filter's columns first. If requests are cheap, the streams of the other columns are
//! read only for row groups with a row that passes:
//!
//! ```text
//! row group           | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
//! with the unit       | f | f | f | f | f | f | f | f |     the filter's streams
//! later                     o               o   o           the other streams, for these row groups only
//! ```

use bytes::Bytes;
use coldframe_core::io::read_coalesced;
use coldframe_core::{Error, Result};

use super::column::input::{StoredPart, StoredStreams};
use super::job::{DeferredStreams, PartPlan, Run, ScanShared, StripeJob};
use super::ranges;

/// Decrypts the `bytes` of `parts` and adds them to `streams`.
pub(crate) fn add(
    scan: &ScanShared,
    job: &StripeJob,
    parts: &[PartPlan],
    bytes: Vec<Bytes>,
    streams: &mut StoredStreams,
) -> Result<()> {
    for (part, stored) in parts.iter().zip(bytes) {
        let Some(place) = job.layout.stream(part.column, part.kind) else { continue };
        let bytes = scan.shape.decrypted(stored, place, part.start, &job.stripe)?;
        let stored_part = StoredPart { start: part.start, offset: part.bytes.start, bytes };
        streams.entry((part.column, part.kind)).or_default().push(stored_part);
    }
    Ok(())
}

/// Reads the parts of the deferred streams that `runs` need, in place of the parts for earlier runs.
pub(crate) fn read_deferred(
    scan: &ScanShared,
    job: &StripeJob,
    deferred: &DeferredStreams,
    runs: &[Run],
    streams: &mut StoredStreams,
) -> Result<()> {
    if runs.is_empty() {
        return Ok(());
    }
    let Some(groups) = &job.groups else { return Err(Error::invalid("parts of streams without an index")) };
    let is_wanted = |group: &Run| runs.iter().any(|run| run.rows.contains(&group.rows.start));
    let wanted: Vec<bool> = groups.runs.iter().map(is_wanted).collect();
    let mut parts = ranges::of_runs(scan, &deferred.columns, &job.layout, &groups.runs, &wanted);
    // Dictionaries are read only once.
    parts.retain(|part| !part.whole || !streams.contains_key(&(part.column, part.kind)));
    for part in &parts {
        streams.remove(&(part.column, part.kind));
    }
    let bytes: Vec<_> = parts.iter().map(|part| part.bytes.clone()).collect();
    let bytes = read_coalesced(scan.shape.source.as_ref(), &bytes)?;
    add(scan, job, &parts, bytes, streams)
}
