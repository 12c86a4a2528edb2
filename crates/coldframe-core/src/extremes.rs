//! Exact counts, minima and maxima from metadata, so that `count`, `min` and `max` need no decoding.

use arrow_array::ArrayRef;

/// The extremes of a unit of a file, or of the whole file.
#[derive(Clone, Debug)]
pub struct Extremes {
    /// The number of rows.
    pub rows: u64,
    /// The extremes of each requested column, in the order of the request.
    pub columns: Vec<ColumnExtremes>,
}

/// The extremes of a column.
#[derive(Clone, Debug)]
pub struct ColumnExtremes {
    /// Number of values that are not null.
    pub values: u64,
    /// The smallest and the largest value: an array of two values, both null if the column has no values.
    /// `None` if they are not known exactly.
    pub ends: Option<ArrayRef>,
}
