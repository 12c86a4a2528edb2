//! Replaces many small requests by few large ones.

use std::ops::Range;

use bytes::Bytes;
use coldframe_encoding::{Error, Result};
use tracing::field::Empty;
use tracing::{Span, debug_span};

use super::{Pending, ReadAt, memory::slice};

/// A request longer than this is not extended further. For larger blocks an allocator asks the kernel each
/// time, which clears them; smaller blocks it keeps for reuse.
pub const LONG: u64 = 8 << 20;

/// Gaps up to this many bytes are always read, because that costs less than any request.
const SMALL_GAP: u64 = 4096;

/// The unrequested bytes that are read to save requests are at most 1/`EXTRA_SHARE` of the requested bytes.
const EXTRA_SHARE: u64 = 4;

/// Merges `ranges` across gaps of up to `gap` bytes, but does not extend a range beyond [`LONG`] that way.
/// It fills gaps larger than [`SMALL_GAP`] from the smallest up, until their total would exceed a fixed share
/// of the requested bytes. The result is sorted and without overlap.
fn coalesce(ranges: &[Range<u64>], gap: u64) -> Vec<Range<u64>> {
    let mut sorted: Vec<_> = ranges.iter().filter(|r| r.start < r.end).cloned().collect();
    sorted.sort_unstable_by_key(|r| (r.start, r.end));
    let gap = worthwhile(&sorted, gap);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match merged.last_mut() {
            Some(last)
                if range.start < last.end
                    || (range.start - last.end <= gap && range.end.max(last.end) - last.start <= LONG) =>
            {
                last.end = last.end.max(range.end);
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// The largest gap, up to `most`, that fits the allowed share.
fn worthwhile(sorted: &[Range<u64>], most: u64) -> u64 {
    if most <= SMALL_GAP {
        return most;
    }
    let requested = sorted.iter().fold(0u64, |sum, r| sum.saturating_add(r.end - r.start));
    let mut end = 0;
    let mut gaps = Vec::with_capacity(sorted.len());
    for (i, range) in sorted.iter().enumerate() {
        if i > 0 && range.start > end {
            gaps.push(range.start - end);
        }
        end = end.max(range.end);
    }
    gaps.sort_unstable();
    let mut left = requested / EXTRA_SHARE;
    let mut worthwhile = SMALL_GAP;
    for gap in gaps.into_iter().filter(|gap| *gap > SMALL_GAP && *gap <= most) {
        let Some(rest) = left.checked_sub(gap) else { break };
        (left, worthwhile) = (rest, gap);
    }
    worthwhile
}

/// Reads `ranges` from `source` with as few requests as `coalesce` allows.
pub fn read_coalesced(source: &dyn ReadAt, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    let merged = coalesce(ranges, source.worthwhile_gap());
    let span = fetch_span(&merged, false);
    let blocks = source.read_ranges(&merged).inspect_err(|_| failed(&span))?;
    drop(span);
    divided(ranges, &merged, &blocks)
}

/// Like [`read_coalesced`], without waiting; `None` if the source should not be read ahead.
pub(crate) fn begin_coalesced(source: &dyn ReadAt, ranges: &[Range<u64>]) -> Option<Pending> {
    let merged = coalesce(ranges, source.worthwhile_gap());
    let pending = source.begin(&merged)?;
    let ranges = ranges.to_vec();
    Some(Box::new(move || {
        let span = fetch_span(&merged, true);
        let blocks = pending().inspect_err(|_| failed(&span))?;
        drop(span);
        divided(&ranges, &merged, &blocks)
    }))
}

/// Traces a read until it is dropped. `begun`: the requests were sent before, and the read waits for their answers.
fn fetch_span(requests: &[Range<u64>], begun: bool) -> Span {
    debug_span!(
        "fetch",
        requests = requests.len(),
        offset = requests.first().map(|r| r.start),
        bytes = requests.iter().fold(0u64, |sum, r| sum.saturating_add(r.end.saturating_sub(r.start))),
        begun,
        failed = Empty,
    )
}

fn failed(span: &Span) {
    span.record("failed", true);
}

/// Cuts `ranges` out of the blocks that were read.
fn divided(ranges: &[Range<u64>], merged: &[Range<u64>], blocks: &[Bytes]) -> Result<Vec<Bytes>> {
    ranges
        .iter()
        .map(|r| {
            if r.start >= r.end {
                return Ok(Bytes::new());
            }
            let i = merged.partition_point(|m| m.end < r.end);
            match (merged.get(i), blocks.get(i)) {
                (Some(m), Some(block)) if m.start <= r.start => {
                    slice(block, &(r.start - m.start..r.end - m.start))
                }
                _ => Err(Error::invalid("a source returned fewer ranges than requested")),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_requests_are_not_extended() {
        let mib = |range: Range<u64>| range.start << 20..range.end << 20;
        let near = [mib(0..6), mib(6..12), mib(12..13)];
        assert_eq!(coalesce(&near, 1 << 20), [mib(0..6), mib(6..13)]);
        // Overlapping ranges always become one request, and a single long range is not divided.
        assert_eq!(coalesce(&[mib(0..6), mib(5..12), mib(20..40)], 0), [mib(0..12), mib(20..40)]);
    }

    #[test]
    fn unneeded_bytes_are_bounded() {
        let kib = |range: Range<u64>| range.start << 10..range.end << 10;
        // The two gaps of 10 KiB are a quarter of the requested 80 KiB; with the third gap it would be more.
        let near = [kib(0..40), kib(50..70), kib(80..100), kib(200..201)];
        assert_eq!(coalesce(&near, 1 << 20), [kib(0..100), kib(200..201)]);
        // The streams of one small column among many: nothing between them is read.
        assert_eq!(coalesce(&[kib(0..1), kib(100..110), kib(300..310)], 1 << 20).len(), 3);
    }

    proptest! {
        #[test]
        fn coalesced_reads_equal_plain_reads(
            starts in proptest::collection::vec((0u64..1000, 0u64..50), 0..20),
            gap in 0u64..40,
        ) {
            let bytes = Bytes::from((0..1050u32).map(|i| i.to_le_bytes()[0]).collect::<Vec<u8>>());
            let ranges: Vec<_> = starts.iter().map(|(s, n)| *s..*s + *n).collect();
            prop_assert_eq!(read_coalesced(&bytes, &ranges).unwrap(), bytes.read_ranges(&ranges).unwrap());
            let merged = coalesce(&ranges, gap);
            prop_assert!(merged.windows(2).all(|w| w[0].end + gap < w[1].start));
        }
    }
}
