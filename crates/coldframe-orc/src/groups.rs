//! Which row groups of a stripe a filter leaves, and which bytes hold them.
//!
//! ```text
//! stored stream   | chunk | chunk | chunk | chunk | chunk |
//! row group 7             ^ position           ^ position of row group 8, in a run that begins here
//! bytes of it             |--------------------------|    to the end of that run, in whole chunks
//! ```
//!
//! A position names the run in which the row group's first value is, so the bytes of the row group before it end with that
//! run. An index that does not have the positions its columns' streams need is not used: then the stripe is read whole.

use std::collections::HashMap;
use std::ops::Range;

use coldframe_core::{Predicate, Result};
use coldframe_encoding::codec::Algorithm;

use crate::bloom::{Filter, Hashing};
use crate::compression::{Compression, HEADER};
use crate::index::{IndexReader, StreamPosition, positions};
use crate::proto::{BloomFilterIndex, ColumnStatistics, RowIndex};
use crate::prune::Pruner;
use crate::stripe::{StreamKind, StreamPlace, Stripe, StripeLayout};
use crate::types::TypeTree;

/// More bytes than any run of integers has: 512 values of 8 bytes, a header, a base and patches.
const LONGEST_RUN: u64 = 4400;
/// With more runs of row groups than this in a stripe, what is between them is read too.
const MOST_RUNS: usize = 16;

/// Index streams of some columns of a stripe.
#[derive(Clone, Debug, Default)]
pub struct StripeIndex {
    rows: HashMap<usize, RowIndex>,
    blooms: HashMap<usize, (Hashing, BloomFilterIndex)>,
}

impl StripeIndex {
    /// Reads the row indexes of `columns` and the bloom filters of `filtered`.
    pub fn read(
        reader: &IndexReader<'_>,
        stripe: &Stripe,
        layout: &StripeLayout,
        columns: &[usize],
        filtered: &[usize],
    ) -> Result<Self> {
        let rows = columns.iter().copied().zip(reader.row_indexes(stripe, layout, columns)?);
        let rows = rows.filter_map(|(column, index)| Some((column, index?))).collect();
        let places: Vec<(&StreamPlace, Hashing)> =
            filtered.iter().filter_map(|column| filters_of(layout, *column)).collect();
        let streams: Vec<&StreamPlace> = places.iter().map(|(place, _)| *place).collect();
        let read = reader.read(stripe, &streams)?;
        let blooms = places.into_iter().zip(read).map(|((place, h), filters)| (place.column, (h, filters)));
        Ok(Self { rows, blooms: blooms.collect() })
    }

    /// Adds the row indexes of further columns.
    pub fn extend(
        &mut self,
        reader: &IndexReader<'_>,
        stripe: &Stripe,
        layout: &StripeLayout,
        columns: &[usize],
    ) -> Result<()> {
        let missing: Vec<usize> = columns.iter().copied().filter(|c| !self.rows.contains_key(c)).collect();
        let read = reader.row_indexes(stripe, layout, &missing)?;
        self.rows.extend(missing.into_iter().zip(read).filter_map(|(column, index)| Some((column, index?))));
        Ok(())
    }

    /// The statistics of a column in a row group.
    pub fn statistics(&self, column: usize, group: usize) -> Option<&ColumnStatistics> {
        self.rows.get(&column)?.entry.get(group)?.statistics.as_ref()
    }

    fn bloom(&self, column: usize, group: usize) -> Option<(Filter<'_>, Hashing)> {
        let (hashing, filters) = self.blooms.get(&column)?;
        let filter = filters.bloom_filter.get(group)?;
        let hashes = filter.num_hash_functions();
        Some(match hashing {
            Hashing::Original => (Filter::original(&filter.bitset, hashes), *hashing),
            Hashing::Utf8 { .. } => (Filter::utf8(filter.utf8bitset.as_deref()?, hashes), *hashing),
        })
    }

    /// The runs of row groups, out of `groups`, that may hold rows that pass.
    pub fn select(&self, pruner: &Pruner, predicate: &Predicate, groups: usize) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for group in 0..groups {
            let matches = pruner.may_match(predicate, &|column| self.statistics(column, group), &|column| {
                self.bloom(column, group)
            });
            match runs.last_mut() {
                _ if !matches => {}
                Some(run) if run.end == group => run.end = group + 1,
                _ => runs.push(group..group + 1),
            }
        }
        if runs.len() > MOST_RUNS
            && let (Some(first), Some(last)) = (runs.first(), runs.last())
        {
            let all = first.start..last.end;
            return std::iter::once(all).collect();
        }
        runs
    }
}

/// The bloom filters of a column, of the better kind. A later encoding than the ones known hashes in a way that is not known.
fn filters_of(layout: &StripeLayout, column: usize) -> Option<(&StreamPlace, Hashing)> {
    if let Some(place) = layout.stream(column, StreamKind::BloomFilterUtf8) {
        let utc = match layout.encoding(column).bloom_encoding() {
            0 => false,
            1 => true,
            _ => return None,
        };
        return Some((place, Hashing::Utf8 { utc }));
    }
    layout.stream(column, StreamKind::BloomFilter).map(|place| (place, Hashing::Original))
}

/// Positions of all row groups in the streams of the columns that a scan reads.
#[derive(Clone, Debug, Default)]
pub struct GroupPositions {
    by_stream: HashMap<(usize, StreamKind), Vec<StreamPosition>>,
}

impl GroupPositions {
    /// From the index; `None` if it lacks positions of any of `columns`.
    pub fn new(
        index: &StripeIndex,
        tree: &TypeTree,
        layout: &StripeLayout,
        columns: &[usize],
        groups: usize,
        compression: Compression,
        short_decimals: bool,
    ) -> Option<Self> {
        let mut found = Self::default();
        for id in columns {
            let column = tree.get(*id)?;
            let entries = index.rows.get(id).map(|i| i.entry.as_slice()).unwrap_or_default();
            let needed = positions(column, layout, compression, short_decimals, &[0; 16]).ok()?;
            if needed.is_empty() {
                continue;
            }
            if entries.len() != groups {
                return None;
            }
            for entry in entries {
                let all = positions(column, layout, compression, short_decimals, &entry.positions).ok()?;
                for (kind, position) in all {
                    found.by_stream.entry((*id, kind)).or_default().push(position);
                }
            }
        }
        Some(found)
    }

    /// Where row group `group` begins in each stream that has positions.
    pub fn at(&self, group: usize) -> HashMap<(usize, StreamKind), StreamPosition> {
        let all = self.by_stream.iter();
        match group {
            0 => HashMap::new(),
            _ => all.filter_map(|(stream, groups)| Some((*stream, *groups.get(group)?))).collect(),
        }
    }

    /// The part of `stream`, from its start, that holds the row groups `run`: whole chunks. A stream without positions (a
    /// dictionary's) is needed whole.
    pub fn part(&self, stream: &StreamPlace, run: &Range<usize>, compression: Compression) -> Range<u64> {
        let length = stream.bytes.end - stream.bytes.start;
        let Some(kind) = StreamKind::from_number(stream.kind) else { return 0..length };
        let Some(groups) = self.by_stream.get(&(stream.column, kind)) else { return 0..length };
        let first = match run.start {
            0 => 0,
            group => groups.get(group).map_or(0, |at| at.chunk),
        };
        let end =
            groups.get(run.end).map_or(length, |next| end_before(*next, groups, compression).min(length));
        // What makes no sense is for the decoder to find out, in the bytes that there are.
        let start = first.min(length);
        start..end.max(start)
    }
}

/// Where in the stream the bytes of the row group in front of `next` end at the latest.
fn end_before(next: StreamPosition, groups: &[StreamPosition], compression: Compression) -> u64 {
    let in_run = next.run > 0 || next.bit > 0;
    if compression.algorithm == Algorithm::None {
        return next.chunk.saturating_add(if in_run { LONGEST_RUN } else { 0 });
    }
    if next.byte == 0 && !in_run {
        return next.chunk;
    }
    // A chunk ends at the latest where the next one begins that is known of, and is no longer than the block size.
    let block = compression.block_size as u64;
    let chunks = if in_run { 1 + LONGEST_RUN.div_ceil(block.max(1)) } else { 1 };
    let most = next.chunk.saturating_add(chunks.saturating_mul(HEADER as u64 + block));
    let mut known: Vec<u64> = groups.iter().map(|at| at.chunk).filter(|c| *c > next.chunk).collect();
    known.sort_unstable();
    known.dedup();
    let nth = usize::try_from(chunks - 1).ok().and_then(|n| known.get(n));
    nth.map_or(most, |end| most.min(*end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(kind: StreamKind, bytes: Range<u64>) -> StreamPlace {
        StreamPlace { column: 1, kind: kind.number(), bytes, variant: None }
    }

    fn positions(all: &[(u64, u64, u64)]) -> GroupPositions {
        let position = |(chunk, byte, run): &(u64, u64, u64)| StreamPosition {
            chunk: *chunk,
            byte: *byte,
            run: *run,
            bit: 0,
        };
        let all = all.iter().map(position).collect();
        GroupPositions { by_stream: HashMap::from([((1, StreamKind::Data), all)]) }
    }

    #[test]
    fn parts_of_compressed_streams_end_with_a_chunk() {
        let codec = Compression { algorithm: Algorithm::Deflate, block_size: 1 << 16 };
        let data = stream(StreamKind::Data, 1000..4000);
        let all = positions(&[
            (0, 0, 0),
            (0, 9000, 0),
            (700, 0, 0),
            (700, 80, 3),
            (1500, 7, 0),
            (1500, 9, 5),
            (2100, 0, 0),
        ]);
        let bytes = |run: Range<usize>| all.part(&data, &run, codec);
        assert_eq!([bytes(0..1), bytes(1..2)], [0..700, 0..700]);
        assert_eq!(bytes(3..4), 700..2100);
        assert_eq!(bytes(4..7), 1500..3000);
        // The group's last run begins in the chunk of the next group's first value, and may end in the one behind.
        assert_eq!(bytes(2..3), 700..2100);
        let place = all.at(3);
        assert_eq!(place[&(1, StreamKind::Data)], StreamPosition { chunk: 700, byte: 80, run: 3, bit: 0 });
        assert!(all.at(0).is_empty());
        // Without a next chunk that is known of, the block size is the limit.
        let long = stream(StreamKind::Data, 0..1 << 20);
        assert_eq!(positions(&[(0, 0, 0), (0, 10, 0)]).part(&long, &(0..1), codec), 0..(1 << 16) + 3);
    }

    #[test]
    fn parts_without_a_codec_are_bytes() {
        let codec = Compression { algorithm: Algorithm::None, block_size: 0 };
        let all = positions(&[(0, 0, 0), (5000, 0, 2), (9000, 0, 0), (9 << 40, 0, 0)]);
        let data = stream(StreamKind::Data, 100..20_100);
        let bytes = |run: Range<usize>| all.part(&data, &run, codec);
        assert_eq!([bytes(0..1), bytes(1..2)], [0..5000 + LONGEST_RUN, 5000..9000]);
        // Positions that lead out of the stream give no bytes.
        assert_eq!(bytes(3..4), 20_000..20_000);
        let words = stream(StreamKind::DictionaryData, 0..77);
        assert_eq!(all.part(&words, &(1..2), codec), 0..77);
    }
}
