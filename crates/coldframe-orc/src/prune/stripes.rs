//! Finds the stripes and row groups that a filter must read, by their statistics and bloom filters.
//!
//! ```text
//! Metadata.stripeStats[stripe]             excludes a stripe without a read of its footer
//! ROW_INDEX, BLOOM_FILTER of a column      exclude row groups of `rowIndexStride` rows
//! ```
//!
//! Pruning reads only the indexes of the filter's columns. An index that is damaged or does not fit the
//! stripe is ignored, because it only saves work.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{Predicate, Result};

use super::bloom::{Filter, Hashing};
use super::filter::Pruner;
use crate::layout::proto::{self, BloomFilterIndex, ColumnStatistics, Metadata, RowIndex};
use crate::layout::stripe::{StreamKind, StreamPlace, Stripe, StripeLayout};
use crate::layout::types::Kind;
use crate::open::Shape;

/// Decides what one scan reads.
pub(crate) struct StripePruner {
    shape: Arc<Shape>,
    predicate: Predicate,
    pruner: Pruner,
    /// The file's metadata, which is read with the first stripe.
    metadata: Option<Metadata>,
}

impl StripePruner {
    /// Prepares a scan with the filter `predicate`.
    pub(crate) fn new(shape: Arc<Shape>, predicate: &Predicate) -> Self {
        let mut pruner = Pruner::new(predicate, &shape.schema, &shape.tree, shape.quirks);
        if pruner.trusts_stripes() {
            let of_file = of_columns(&shape, &pruner, &shape.tail.footer.statistics);
            pruner.distrust_impossible(&|column| of_file.get(&column));
        }
        Self { shape, predicate: predicate.clone(), pruner, metadata: None }
    }

    /// The statistics of stripes; empty if their number differs from the number of stripes.
    fn metadata(&mut self) -> Result<&Metadata> {
        if self.metadata.is_none() {
            let shape = &self.shape;
            let stripes = shape.tail.footer.stripes.len();
            let read = shape.metadata();
            let metadata = match read {
                Ok(read) if read.stripe_stats.len() == stripes => read,
                Ok(_) => Metadata::default(),
                Err(e) if e.is_confined() => Metadata::default(),
                Err(e) => return Err(e),
            };
            if self.pruner.trusts_stripes() {
                for stripe in &metadata.stripe_stats {
                    let of_stripe = of_columns(&self.shape, &self.pruner, &stripe.col_stats);
                    self.pruner.distrust_impossible(&|column| of_stripe.get(&column));
                }
            }
            self.metadata = Some(metadata);
        }
        Ok(self.metadata.get_or_insert_default())
    }
}

impl StripePruner {
    /// Whether a stripe may hold matching rows.
    pub(crate) fn stripe(&mut self, stripe: &Stripe) -> Result<bool> {
        if !self.pruner.trusts_stripes() {
            return Ok(true);
        }
        self.metadata()?;
        let of_stripe = self.metadata.as_ref().and_then(|m| m.stripe_stats.get(stripe.number));
        let Some(of_stripe) = of_stripe else { return Ok(true) };
        let columns = of_columns(&self.shape, &self.pruner, &of_stripe.col_stats);
        let statistics = |column: usize| columns.get(&column);
        Ok(self.pruner.may_match(&self.predicate, &statistics, &|_| None))
    }

    /// Which row groups of a stripe may hold matching rows; `None` if unknown.
    pub(crate) fn row_groups(&mut self, stripe: &Stripe, layout: &StripeLayout) -> Result<Option<Vec<bool>>> {
        let shape = &self.shape;
        let Some(count) = shape.row_groups(stripe) else { return Ok(None) };
        let columns = self.pruner.columns();
        if columns.is_empty() {
            return Ok(None);
        }
        let blooms = self.pruner.bloom_columns(&self.predicate);
        let index = match StripeIndex::read(shape, stripe, layout, &columns, &blooms, count) {
            Ok(index) => index,
            Err(e) if e.is_confined() => return Ok(None),
            Err(e) => return Err(e),
        };
        for group in 0..count {
            self.pruner.distrust_impossible(&|column| index.statistics(column, group));
        }
        let matches = |group: usize| {
            let statistics = |column| index.statistics(column, group);
            self.pruner.may_match(&self.predicate, &statistics, &|column| index.bloom(column, group))
        };
        Ok(Some((0..count).map(matches).collect()))
    }
}

/// Statistics of the pruner's columns, from a list with an entry for each column of the file. Encrypted
/// columns are left out: their plain statistics describe masked values.
fn of_columns(shape: &Shape, pruner: &Pruner, encoded: &[Bytes]) -> HashMap<usize, ColumnStatistics> {
    let encryption = &shape.encryption;
    let plain = |column: &usize| {
        encryption.variant_of(*column).is_none() && encryption.missing_key(*column).is_none()
    };
    let columns = pruner.columns().into_iter().filter(plain);
    let statistics = |column: usize| proto::statistics(encoded.get(column)?);
    columns.filter_map(|column| Some((column, shape.quirks.believed(statistics(column)?)))).collect()
}

/// Index streams of some columns of a stripe.
#[derive(Clone, Debug, Default)]
pub(crate) struct StripeIndex {
    rows: HashMap<usize, RowIndex>,
    blooms: HashMap<usize, (Hashing, BloomFilterIndex)>,
}

impl StripeIndex {
    /// Reads the row indexes of `columns` and the bloom filters of `filtered`. An index without `count`
    /// entries is ignored.
    pub(crate) fn read(
        shape: &Shape,
        stripe: &Stripe,
        layout: &StripeLayout,
        columns: &[usize],
        filtered: &[usize],
        count: usize,
    ) -> Result<Self> {
        let rows = columns.iter().copied().zip(shape.row_indexes::<RowIndex>(stripe, layout, columns)?);
        let rows = rows.filter_map(|(column, index)| {
            let mut index = index.filter(|index| index.entry.len() == count)?;
            for entry in &mut index.entry {
                entry.statistics = entry.statistics.take().map(|stats| shape.quirks.believed(stats));
            }
            Some((column, index))
        });
        // Text that is declared as binary was hashed as text: a char without its padding, or in another
        // charset in an old filter.
        let declared = shape.options.declared.is_some();
        let is_bytes = |id: usize| shape.tree.get(id).is_some_and(|column| column.kind == Kind::Binary);
        let is_hashed = |column: &&usize| !declared || !is_bytes(**column);
        let places: Vec<(&StreamPlace, Hashing)> =
            filtered.iter().filter(is_hashed).filter_map(|column| filters_of(layout, *column)).collect();
        let streams: Vec<&StreamPlace> = places.iter().map(|(place, _)| *place).collect();
        let read: Vec<BloomFilterIndex> = shape.index_streams(stripe, &streams)?;
        let blooms = places.into_iter().zip(read).filter(|(_, filters)| filters.bloom_filter.len() == count);
        let blooms = blooms.map(|((place, hashing), filters)| (place.column, (hashing, filters)));
        Ok(Self { rows: rows.collect(), blooms: blooms.collect() })
    }

    pub(crate) fn statistics(&self, column: usize, group: usize) -> Option<&ColumnStatistics> {
        self.rows.get(&column)?.entry.get(group)?.statistics.as_ref()
    }

    pub(crate) fn bloom(&self, column: usize, group: usize) -> Option<(Filter<'_>, Hashing)> {
        let (hashing, filters) = self.blooms.get(&column)?;
        let filter = filters.bloom_filter.get(group)?;
        let hashes = filter.num_hash_functions();
        Some(match hashing {
            Hashing::Original => (Filter::original(&filter.bitset, hashes), *hashing),
            Hashing::Utf8 { .. } => (Filter::utf8(filter.utf8bitset.as_deref()?, hashes), *hashing),
        })
    }
}

/// The bloom filters of a column, UTF-8 filters if there are any. `None` if the encoding is newer than the
/// known encodings, because its hashes are unknown.
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
