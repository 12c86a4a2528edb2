//! Compares decoded values with the bloom filters and bounds that pruning uses to skip row groups. A scan
//! itself compares sums and counts ([`crate::scan`]).

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use coldframe_core::{Error, Result, arrow_error};

use super::Stored;
use super::bounds::bounds;
use super::filter::stored;
use super::stripes::StripeIndex;
use crate::layout::quirks::Quirks;
use crate::layout::stripe::{Stripe, StripeLayout};
use crate::layout::types::Column;
use crate::open::Shape;
use crate::scan::statements::are_outside;

/// The indexes of a stripe for one column.
pub(crate) struct Checks {
    index: StripeIndex,
    column: usize,
    data_type: DataType,
    stored: Stored,
    quirks: Quirks,
    /// Whether the writer's bloom filters contain all values.
    trusts_blooms: bool,
}

impl Checks {
    /// Reads them for a column with `count` row groups; `None` if there are no trusted indexes.
    pub(crate) fn read(
        shape: &Shape,
        stripe: &Stripe,
        layout: &StripeLayout,
        (column, field): (&Column, &Field),
        count: usize,
    ) -> Result<Option<Self>> {
        let quirks = shape.quirks;
        let is_masked = shape.encryption.missing_key(column.id).is_some();
        let Some(stored) =
            stored(column, field.data_type(), quirks).filter(|_| column.children.is_empty() && !is_masked)
        else {
            return Ok(None);
        };
        let data_type = match field.data_type() {
            DataType::Dictionary(_, values) => values.as_ref().clone(),
            other => other.clone(),
        };
        let trusts_blooms = quirks.blooms && (quirks.byte_blooms || data_type != DataType::Int8);
        let read = StripeIndex::read(shape, stripe, layout, &[column.id], &[column.id], count);
        let index = match read {
            Err(e) if e.is_confined() => return Ok(None),
            index => index?,
        };
        Ok(Some(Self { index, column: column.id, data_type, stored, quirks, trusts_blooms }))
    }

    /// Fails for a value that the indexes exclude from a row group.
    pub(crate) fn check(&self, group: usize, values: &ArrayRef) -> Result<()> {
        let values = match values.data_type() == &self.data_type {
            true => values.clone(),
            false => arrow_cast::cast(values, &self.data_type).map_err(arrow_error)?,
        };
        let statistics = self.index.statistics(self.column, group);
        let ends = statistics.map(|stats| bounds(stats, &self.data_type, self.stored, self.quirks));
        if ends.is_some_and(|ends| are_outside(&ends, &values)) {
            return Err(Error::corrupt(format!(
                "expected values between the stated minimum and maximum of row group {group}, found others"
            )));
        }
        let bloom = self.index.bloom(self.column, group).filter(|_| self.trusts_blooms);
        let Some((filter, hashing)) = bloom else { return Ok(()) };
        let held = |i: usize| values.is_null(i) || filter.may_hold(&values, i, hashing, self.stored);
        match (0..values.len()).find(|i| !held(*i)) {
            Some(i) => Err(Error::corrupt(format!(
                "expected a bloom filter that has all values of row group {group}, found one without that of its row {i}"
            ))),
            None => Ok(()),
        }
    }
}
