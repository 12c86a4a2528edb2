//! Typed column statistics of a file, to compare decoded values with.

/// The smallest or the largest value of a column, according to its file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Bound {
    /// An integer.
    Whole(i64),
    /// A floating point number.
    Float(f64),
    /// A decimal: its digits, and the number of digits after the point. Inclusive, but perhaps no value is
    /// equal.
    Decimal(i128, u8),
    /// Days since 1970.
    Days(i32),
}

/// Statistics of a column. `None` for those that the file lacks, or stores in a form that cannot be compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnSummary {
    /// The column's name.
    pub name: String,
    /// The number of values that are not null.
    pub values: Option<u64>,
    /// The number of values that are true.
    pub trues: Option<u64>,
    /// The total bytes of texts or binary values.
    pub bytes: Option<u64>,
    /// The sum of integers.
    pub sum: Option<i64>,
    /// The smallest value.
    pub smallest: Option<Bound>,
    /// The largest value.
    pub largest: Option<Bound>,
}
