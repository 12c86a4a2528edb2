//! What a file states of its columns, as numbers: decoded values are held against it.

/// The smallest or the largest value that a file states.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// An integer.
    Whole(i64),
    /// A floating point number.
    Float(f64),
    /// Digits and how many of them stand behind the point. No value is beyond it, and there may be none that is equal.
    Decimal(i128, u8),
    /// Days since 1970.
    Days(i32),
}

/// What a file states of a column of its rows; `None` for what it does not state, or states in a way of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnSummary {
    /// Its name.
    pub name: String,
    /// Values that are not null.
    pub values: Option<u64>,
    /// Those that are true.
    pub trues: Option<u64>,
    /// Bytes of all texts or blobs together.
    pub bytes: Option<u64>,
    /// The sum of integers.
    pub sum: Option<i64>,
    /// The smallest value.
    pub smallest: Option<Bound>,
    /// The largest value.
    pub largest: Option<Bound>,
}
