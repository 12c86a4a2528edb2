//! Filters: one normal form, three uses.
//!
//! A filter is a tree of `and`/`or` over comparisons, set membership and null tests; `not` is pushed to the leaves when
//! it is built. A format asks it which units cannot match ([`Predicate::may_match`]) or which keys to visit
//! ([`Predicate::key_range`]); both only save work. [`Predicate::evaluate`] decides about each row, once for all
//! formats, in three-valued logic: a row whose result is null does not pass.

mod bind;
mod bounds;
mod evaluate;
pub mod substrait;

use arrow_array::ArrayRef;

pub use bounds::{ColumnBounds, KeyRange};

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl Op {
    /// The comparison that holds where this one does not (where neither side is null or NaN).
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Op::Eq => Op::Ne,
            Op::Ne => Op::Eq,
            Op::Lt => Op::Ge,
            Op::Ge => Op::Lt,
            Op::Gt => Op::Le,
            Op::Le => Op::Gt,
        }
    }

    /// The comparison with its sides exchanged.
    #[must_use]
    pub fn swapped(self) -> Self {
        match self {
            Op::Lt => Op::Gt,
            Op::Gt => Op::Lt,
            Op::Le => Op::Ge,
            Op::Ge => Op::Le,
            same => same,
        }
    }
}

/// A filter.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// `column op value`, or its negation: for NaN, `not (x < 1)` holds and `x >= 1` does not.
    Compare {
        /// A column or a dotted path to a struct's child.
        column: String,
        /// The comparison.
        op: Op,
        /// An array of one value.
        value: ArrayRef,
        /// Whether the result is negated.
        negated: bool,
    },
    /// `column in (values)`, or its negation.
    In {
        /// A column or a dotted path to a struct's child.
        column: String,
        /// The set.
        values: ArrayRef,
        /// Whether the result is negated.
        negated: bool,
    },
    /// `column is null`, or its negation.
    Null {
        /// A column or a dotted path to a struct's child.
        column: String,
        /// Whether the result is negated.
        negated: bool,
    },
    /// All hold.
    And(Vec<Predicate>),
    /// Any holds.
    Or(Vec<Predicate>),
}

impl std::ops::Not for Predicate {
    type Output = Predicate;

    fn not(self) -> Predicate {
        match self {
            Predicate::Compare { column, op, value, negated } => {
                Predicate::Compare { column, op, value, negated: !negated }
            }
            Predicate::In { column, values, negated } => Predicate::In { column, values, negated: !negated },
            Predicate::Null { column, negated } => Predicate::Null { column, negated: !negated },
            Predicate::And(all) => Predicate::Or(all.into_iter().map(std::ops::Not::not).collect()),
            Predicate::Or(any) => Predicate::And(any.into_iter().map(std::ops::Not::not).collect()),
        }
    }
}

impl Predicate {
    /// A plain comparison.
    pub fn compare(column: impl Into<String>, op: Op, value: ArrayRef) -> Self {
        Self::Compare { column: column.into(), op, value, negated: false }
    }

    /// Columns read to evaluate it.
    pub fn columns<'a>(&'a self, into: &mut Vec<&'a str>) {
        match self {
            Self::Compare { column, .. } | Self::In { column, .. } | Self::Null { column, .. } => {
                into.push(column)
            }
            Self::And(all) | Self::Or(all) => all.iter().for_each(|p| p.columns(into)),
        }
    }
}

#[cfg(test)]
mod tests;
