//! What metadata say exactly of the values in a part of a file, so that `count`, `min` and `max` need no decoding.

use arrow_array::ArrayRef;

/// A unit of a file: a stripe, or all of it.
#[derive(Clone, Debug)]
pub struct Extremes {
    /// Its rows.
    pub rows: u64,
    /// The columns that were asked for, in that order.
    pub columns: Vec<ColumnExtremes>,
}

/// A column of it.
#[derive(Clone, Debug)]
pub struct ColumnExtremes {
    /// Values that are not null.
    pub values: u64,
    /// The smallest and the largest of these: an array of two, null where there is no value. `None` where they are not known
    /// exactly.
    pub ends: Option<ArrayRef>,
}
