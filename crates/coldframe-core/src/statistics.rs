//! Typed statistics of columns from a file, with which decoded values can be compared.

/// The smallest or the largest value of a column, according to its file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Bound {
    /// An integer.
    Whole(i64),
    /// A floating point number.
    Float(f64),
    /// A decimal: its digits, and the number of digits after the point. No value lies beyond it, but perhaps
    /// no value is equal to it.
    Decimal(i128, u8),
    /// Days since 1970.
    Days(i32),
}

/// Statistics of a column. A field is `None` if the file lacks the statistic, or stores it in a form that
/// cannot be compared.
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
