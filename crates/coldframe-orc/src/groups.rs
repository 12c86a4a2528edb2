//! Which stripes and row groups a filter leaves, by their statistics and bloom filters.
//!
//! ```text
//! Metadata.stripeStats[stripe]             leaves out a stripe without reading its footer
//! ROW_INDEX, BLOOM_FILTER of a column      leave out row groups of `rowIndexStride` rows
//! ```
//!
//! Only the indexes of the filter's columns are read for that. An index that is damaged or does not fit the stripe is
//! passed over: it only saves work.

use std::collections::HashMap;
use std::sync::Arc;

use coldframe_core::{Predicate, Result};
use coldframe_encoding::codec::Algorithm;

use crate::bloom::{Filter, Hashing, is_wrong_cpp_writer};
use crate::compression::{Compression, HEADER};
use crate::file::Shape;
use crate::index::{IndexReader, StreamPosition};
use crate::plan::Prune;
use crate::proto::{BloomFilterIndex, ColumnStatistics, Metadata, RowIndex};
use crate::prune::{Pruner, Writer};
use crate::statistics::Trust;
use crate::stripe::{StreamKind, StreamPlace, Stripe, StripeLayout};

/// `Footer.writer` of the C++ writer.
const CPP: u32 = 1;
/// More bytes than any run of integers has: 512 values of 8 bytes, a header, a base and patches.
const LONGEST_RUN: u64 = 4400;

/// Prunes one scan.
pub struct StripePruner {
    shape: Arc<Shape>,
    predicate: Predicate,
    pruner: Pruner,
    /// Read with the first stripe.
    metadata: Option<Metadata>,
}

impl StripePruner {
    /// For a scan that `predicate` filters.
    pub fn new(shape: Arc<Shape>, predicate: &Predicate) -> Self {
        let footer = &shape.tail.footer;
        let number = footer.writer();
        let writer = Writer {
            trust: Trust::new(number, shape.tail.postscript.writer_version()),
            blooms: number != CPP || !is_wrong_cpp_writer(footer.software_version.as_deref()),
            hybrid: shape.dialect.hybrid,
            short_decimals: shape.dialect.short_decimals,
        };
        let pruner = Pruner::new(predicate, &shape.schema, &shape.tree, writer);
        Self { shape, predicate: predicate.clone(), pruner, metadata: None }
    }

    /// The statistics of stripes, if there are as many as stripes.
    fn metadata(&mut self) -> Result<&Metadata> {
        if self.metadata.is_none() {
            let shape = &self.shape;
            let stripes = shape.tail.footer.stripes.len();
            let read = shape.tail.read_metadata(shape.source.as_ref(), &shape.options.limits);
            let found = match read {
                Ok(metadata) if metadata.stripe_stats.len() == stripes => metadata,
                Ok(_) => Metadata::default(),
                Err(e) if e.is_damage() => Metadata::default(),
                Err(e) => return Err(e),
            };
            self.metadata = Some(found);
        }
        Ok(self.metadata.get_or_insert_default())
    }
}

impl Prune for StripePruner {
    fn stripe(&mut self, stripe: &Stripe) -> Result<bool> {
        if !self.pruner.trusts_stripes() {
            return Ok(true);
        }
        self.metadata()?;
        let stated = self.metadata.as_ref().and_then(|m| m.stripe_stats.get(stripe.number));
        let Some(stated) = stated else { return Ok(true) };
        let encryption = &self.shape.encryption;
        // The plain statistics of an encrypted column are those of what its mask left.
        let statistics = |column: usize| -> Option<&ColumnStatistics> {
            let plain = encryption.variant_of(column).is_none() && encryption.missing_key(column).is_none();
            stated.col_stats.get(column).filter(|_| plain)
        };
        Ok(self.pruner.may_match(&self.predicate, &statistics, &|_| None))
    }

    fn row_groups(&mut self, stripe: &Stripe, layout: &StripeLayout) -> Result<Option<Vec<bool>>> {
        let shape = &self.shape;
        let Some(count) = shape.stride().and_then(|s| usize::try_from(stripe.rows.div_ceil(s)).ok()) else {
            return Ok(None);
        };
        let columns = self.pruner.columns();
        if columns.is_empty() {
            return Ok(None);
        }
        let reader = IndexReader {
            source: shape.source.as_ref(),
            compression: shape.tail.compression,
            encryption: &shape.encryption,
            limits: &shape.options.limits,
        };
        let blooms = self.pruner.bloom_columns(&self.predicate);
        let index = match StripeIndex::read(&reader, stripe, layout, &columns, &blooms, count) {
            Ok(index) => index,
            Err(e) if e.is_damage() => return Ok(None),
            Err(e) => return Err(e),
        };
        let matches = |group: usize| {
            let statistics = |column| index.statistics(column, group);
            self.pruner.may_match(&self.predicate, &statistics, &|column| index.bloom(column, group))
        };
        Ok(Some((0..count).map(matches).collect()))
    }
}

/// Index streams of some columns of a stripe.
#[derive(Clone, Debug, Default)]
struct StripeIndex {
    rows: HashMap<usize, RowIndex>,
    blooms: HashMap<usize, (Hashing, BloomFilterIndex)>,
}

impl StripeIndex {
    /// Reads the row indexes of `columns` and the bloom filters of `filtered`; those that have not `count` entries are left out.
    fn read(
        reader: &IndexReader<'_>,
        stripe: &Stripe,
        layout: &StripeLayout,
        columns: &[usize],
        filtered: &[usize],
        count: usize,
    ) -> Result<Self> {
        let rows = columns.iter().copied().zip(reader.row_indexes::<RowIndex>(stripe, layout, columns)?);
        let rows =
            rows.filter_map(|(column, index)| Some((column, index.filter(|i| i.entry.len() == count)?)));
        let places: Vec<(&StreamPlace, Hashing)> =
            filtered.iter().filter_map(|column| filters_of(layout, *column)).collect();
        let streams: Vec<&StreamPlace> = places.iter().map(|(place, _)| *place).collect();
        let read: Vec<BloomFilterIndex> = reader.read(stripe, &streams)?;
        let blooms = places.into_iter().zip(read).filter(|(_, filters)| filters.bloom_filter.len() == count);
        let blooms = blooms.map(|((place, hashing), filters)| (place.column, (hashing, filters)));
        Ok(Self { rows: rows.collect(), blooms: blooms.collect() })
    }

    fn statistics(&self, column: usize, group: usize) -> Option<&ColumnStatistics> {
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

/// Where in its stream the bytes of a row group end at the latest, if the next one begins at `next`: behind the run of values that
/// `next` is in, which may reach from its chunk into later ones. `chunks` are the places of chunks that the index knows.
///
/// ```text
/// stored stream   | chunk | chunk | chunk | chunk | chunk |
/// row group 7             ^ position           ^ position of row group 8, in a run that begins here
/// bytes of it             |--------------------------|    to the end of that run, in whole chunks
/// ```
pub fn end_before(next: StreamPosition, chunks: impl Iterator<Item = u64>, compression: Compression) -> u64 {
    let in_run = next.run > 0 || next.bit > 0;
    if compression.algorithm == Algorithm::None {
        return next.chunk.saturating_add(if in_run { LONGEST_RUN } else { 0 });
    }
    if next.byte == 0 && !in_run {
        return next.chunk;
    }
    // A chunk ends at the latest where the next one begins that is known of, and is no longer than the block size.
    let block = compression.block_size as u64;
    let needed = if in_run { 1 + LONGEST_RUN.div_ceil(block.max(1)) } else { 1 };
    let most = next.chunk.saturating_add(needed.saturating_mul(HEADER as u64 + block));
    let mut known: Vec<u64> = chunks.filter(|c| *c > next.chunk).collect();
    known.sort_unstable();
    known.dedup();
    let nth = usize::try_from(needed - 1).ok().and_then(|n| known.get(n));
    nth.map_or(most, |end| most.min(*end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends of the row groups in front of the `next`-th of positions (chunk, byte, value in the run).
    fn ends<const N: usize>(all: &[(u64, u64, u64)], next: [usize; N], compression: Compression) -> [u64; N] {
        let position = |(chunk, byte, run): &(u64, u64, u64)| StreamPosition {
            chunk: *chunk,
            byte: *byte,
            run: *run,
            bit: 0,
        };
        next.map(|n| end_before(position(&all[n]), all.iter().map(|p| p.0), compression))
    }

    #[test]
    fn compressed_row_groups_end_with_a_chunk() {
        let codec = |block_size| Compression { algorithm: Algorithm::Deflate, block_size, strict: false };
        let all =
            [(0, 0, 0), (0, 900, 0), (700, 0, 0), (700, 80, 3), (1500, 7, 0), (1500, 9, 5), (2100, 0, 0)];
        assert_eq!(ends(&all, [1, 2, 4], codec(1 << 16)), [700, 700, 2100]);
        // The group's last run begins in the chunk of the next group's first value, and may end in the one behind.
        assert_eq!(ends(&all, [3], codec(1 << 16)), [2100]);
        // Without a next chunk that is known of, the block size is the limit; short blocks may hold a part of a run only.
        assert_eq!(ends(&[(10, 10, 0)], [0], codec(1 << 16)), [10 + (1 << 16) + 3]);
        assert_eq!(ends(&[(10, 10, 1)], [0], codec(1024)), [10 + 6 * 1027]);
    }

    #[test]
    fn row_groups_without_a_codec_end_with_a_run() {
        let codec = Compression { algorithm: Algorithm::None, block_size: 0, strict: false };
        assert_eq!(ends(&[(5000, 0, 2), (9000, 0, 0)], [0, 1], codec), [5000 + LONGEST_RUN, 9000]);
    }
}
