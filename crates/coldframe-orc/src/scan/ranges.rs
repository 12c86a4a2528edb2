//! Computes the bytes of row groups in a stream.
//!
//! The bytes of adjacent row groups begin at the position in the index and end where the next group begins,
//! plus the chunks that a run of values may extend into.

use std::ops::Range;

use coldframe_encoding::codec::Algorithm;

use super::job::{PartPlan, Run, ScanShared};
use crate::layout::compression::{Compression, HEADER};
use crate::layout::index::{IndexPosition, is_dictionary};
use crate::layout::stripe::{StreamKind, StripeLayout};

/// The streams that hold values.
pub(crate) const VALUES: [StreamKind; 5] = [
    StreamKind::Present,
    StreamKind::Data,
    StreamKind::Length,
    StreamKind::Secondary,
    StreamKind::DictionaryData,
];

/// Maximum number of bytes of a run of integers: 512 values of 8 bytes, a header, a base and patches.
const LONGEST_RUN: u64 = 4400;

/// All streams of the needed columns.
pub(crate) fn whole(scan: &ScanShared, layout: &StripeLayout) -> Vec<PartPlan> {
    let mut parts = Vec::new();
    for id in &scan.needed {
        for kind in VALUES {
            if let Some(place) = layout.stream(*id, kind) {
                parts.push(PartPlan { column: *id, kind, start: 0, whole: true, bytes: place.bytes.clone() });
            }
        }
    }
    parts
}

/// The parts of the streams of `columns` that the wanted row groups need.
pub(crate) fn of_runs(
    scan: &ScanShared,
    columns: &[usize],
    layout: &StripeLayout,
    groups: &[Run],
    wanted: &[bool],
) -> Vec<PartPlan> {
    let compression = scan.shape.tail.compression;
    let mut parts = Vec::new();
    for id in columns {
        let dictionary = is_dictionary(&layout.encoding(*id));
        for kind in VALUES {
            let Some(place) = layout.stream(*id, kind) else { continue };
            let whole = kind == StreamKind::DictionaryData || (dictionary && kind == StreamKind::Length);
            if whole {
                parts.push(PartPlan { column: *id, kind, start: 0, whole, bytes: place.bytes.clone() });
                continue;
            }
            let length = place.bytes.end - place.bytes.start;
            let at = |group: &Run| group.positions.as_ref().map(|p| p.of(*id, kind)).unwrap_or_default();
            let chunks = chunks_of(groups.iter().map(|group| at(group).chunk));
            for (_, range) in runs(groups, wanted) {
                let start = groups.get(range.start).map_or(0, |first| at(first).chunk).min(length);
                let end = groups
                    .get(range.end)
                    .map_or(length, |next| end_before(at(next), &chunks, compression).min(length));
                let end = end.clamp(start, length);
                let bytes = place.bytes.start + start..place.bytes.start + end;
                parts.push(PartPlan { column: *id, kind, start, whole, bytes });
            }
        }
    }
    parts
}

/// The distinct offsets of chunks, sorted.
fn chunks_of(places: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut chunks: Vec<u64> = places.collect();
    chunks.sort_unstable();
    chunks.dedup();
    chunks
}

/// The runs of adjacent wanted groups, with the range of their group numbers.
pub(crate) fn runs<'a>(
    groups: &'a [Run],
    wanted: &'a [bool],
) -> impl Iterator<Item = (Run, Range<usize>)> + 'a {
    let mut at = 0;
    std::iter::from_fn(move || {
        let is = |i: usize| wanted.get(i).copied().unwrap_or(false);
        while at < groups.len() && !is(at) {
            at += 1;
        }
        let first = groups.get(at)?;
        let start = at;
        let mut last = first;
        while let Some(group) =
            groups.get(at).filter(|group| is(at) && (at == start || group.rows.start == last.rows.end))
        {
            last = group;
            at += 1;
        }
        let run = Run::new(first.rows.start..last.rows.end, first.positions.clone());
        Some((run, start..at))
    })
}

/// The offset at which a row group ends at the latest in its stream, if the next row group begins at `next`:
/// the end of the run of values at `next`, which may extend into later chunks. `chunks` are the sorted
/// offsets of chunks in the index.
///
/// ```text
/// stored stream   | chunk | chunk | chunk | chunk | chunk |
/// row group 7             ^ position           ^ position of row group 8, in a run that begins here
/// bytes of it             |--------------------------|    to the end of that run, in whole chunks
/// ```
fn end_before(next: IndexPosition, chunks: &[u64], compression: Compression) -> u64 {
    let in_run = next.run > 0 || next.bit > 0;
    if compression.algorithm == Algorithm::None {
        return next.chunk.saturating_add(if in_run { LONGEST_RUN } else { 0 });
    }
    if next.byte == 0 && !in_run {
        return next.chunk;
    }
    // A chunk ends at the next known chunk at the latest, and is no longer than the block size.
    let block = compression.block_size as u64;
    let needed = if in_run { 1 + LONGEST_RUN.div_ceil(block.max(1)) } else { 1 };
    let most = next.chunk.saturating_add(needed.saturating_mul(HEADER as u64 + block));
    let behind = chunks.partition_point(|chunk| *chunk <= next.chunk);
    let nth = usize::try_from(needed - 1).ok().and_then(|n| chunks.get(behind.saturating_add(n)));
    nth.map_or(most, |end| most.min(*end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends of the row groups before each position in `next`; positions are (chunk, byte, value in the
    /// run).
    fn ends<const N: usize>(all: &[(u64, u64, u64)], next: [usize; N], compression: Compression) -> [u64; N] {
        let position = |(chunk, byte, run): &(u64, u64, u64)| IndexPosition {
            chunk: *chunk,
            byte: *byte,
            run: *run,
            bit: 0,
        };
        let chunks = chunks_of(all.iter().map(|p| p.0));
        next.map(|n| end_before(position(&all[n]), &chunks, compression))
    }

    #[test]
    fn compressed_row_groups_end_with_a_chunk() {
        let codec = |block_size| Compression { algorithm: Algorithm::Deflate, block_size, strict: false };
        let all =
            [(0, 0, 0), (0, 900, 0), (700, 0, 0), (700, 80, 3), (1500, 7, 0), (1500, 9, 5), (2100, 0, 0)];
        assert_eq!(ends(&all, [1, 2, 4], codec(1 << 16)), [700, 700, 2100]);
        // The group's last run begins in the chunk of the next group's first value, and may end in the chunk
        // after it.
        assert_eq!(ends(&all, [3], codec(1 << 16)), [2100]);
        // If the next chunk is unknown, the block size is the limit; short blocks may hold only part of a
        // run.
        assert_eq!(ends(&[(10, 10, 0)], [0], codec(1 << 16)), [10 + (1 << 16) + 3]);
        assert_eq!(ends(&[(10, 10, 1)], [0], codec(1024)), [10 + 6 * 1027]);
    }

    #[test]
    fn row_groups_without_a_codec_end_with_a_run() {
        let codec = Compression { algorithm: Algorithm::None, block_size: 0, strict: false };
        assert_eq!(ends(&[(5000, 0, 2), (9000, 0, 0)], [0, 1], codec), [5000 + LONGEST_RUN, 9000]);
    }
}
