//! Filters: parsing them, binding them to a schema, pruning by them, and evaluating them.
//!
//! ```text
//! SQL text ─ parse ─┐
//! lists ──── dnf ───┼─▶ Condition ─ bind(schema): resolve names, coerce literals ─▶ Predicate
//! parts ────────────┘                            pyarrow expression ─ expression ─────▲
//! ```
//!
//! A [`Condition`] is the filter as the caller gave it; a [`Predicate`] is the same filter bound to a schema.
//! A predicate is a tree of `and`/`or` over comparisons, set membership and null tests; `not` is pushed to
//! the leaves when it is built. A format uses it to skip units ([`Predicate::may_match`]) or to seek keys
//! ([`Predicate::key_range`]); both only save work and never decide which rows pass. [`Predicate::evaluate`]
//! decides for each row, in the same way for all formats, with SQL's three-valued logic: a row whose result
//! is null does not pass.

mod bind;
mod bounds;
mod coerce;
mod condition;
pub mod dnf;
mod evaluate;
pub mod expression;
mod given;
mod instant;
mod like;
mod literal;
mod members;
mod number;
pub mod parse;
mod passing;
mod trimmed;

use arrow_array::ArrayRef;
use coldframe_encoding::Error;

pub use bounds::{ColumnBounds, KeyRange};
pub use condition::{Condition, resolve};
pub use like::Pattern;
pub use literal::Literal;
pub use members::Members;
pub use number::Number;

/// How deeply `and` and `or` of a filter may be nested. An `and` directly within an `and` is merged with it
/// and adds no level; so is an `or` within an `or`.
pub const MAX_DEPTH: usize = 600;

fn too_deep() -> Error {
    Error::invalid(format!("a filter whose `and`, `or` and `not` are nested deeper than {MAX_DEPTH}"))
}

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
    /// The comparison for an operator's symbol.
    #[must_use]
    pub fn parse(sign: &str) -> Option<Self> {
        Some(match sign {
            "=" | "==" => Op::Eq,
            "!=" | "<>" => Op::Ne,
            "<" => Op::Lt,
            "<=" => Op::Le,
            ">" => Op::Gt,
            ">=" => Op::Ge,
            _ => return None,
        })
    }

    /// The comparison that is true exactly if this one is false, provided that neither side is null or NaN.
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

impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Op::Eq => "=",
            Op::Ne => "!=",
            Op::Lt => "<",
            Op::Le => "<=",
            Op::Gt => ">",
            Op::Ge => ">=",
        })
    }
}

/// A filter.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// `column op value`, or its negation. The negation differs from the opposite comparison: for NaN, `not
    /// (x < 1)` is true and `x >= 1` is false.
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
    /// `column in (values)`, or its negation. The result is null for a null row, as in SQL. Floating point
    /// numbers are compared as pyarrow's `is_in` does: NaN is equal to itself, and 0.0 is not -0.0.
    In {
        /// A column or a dotted path to a struct's child.
        column: String,
        /// The set of values.
        values: Members,
        /// Whether the result is negated.
        negated: bool,
    },
    /// `column is null`, or its negation. This is the only test that takes nested columns.
    Null {
        /// A column or a dotted path to a struct's child.
        column: String,
        /// Whether the result is negated.
        negated: bool,
    },
    /// `column like 'pattern'`, or its negation.
    Like {
        /// A column of text or a dotted path to a struct's child.
        column: String,
        /// The pattern.
        pattern: Pattern,
        /// Whether the result is negated.
        negated: bool,
    },
    /// One of the tests above on a column of Hive's type `char`: it ignores the trailing blanks of texts.
    Trimmed(Box<Predicate>),
    /// True if all parts are true.
    And(Vec<Predicate>),
    /// True if any part is true.
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
            Predicate::Like { column, pattern, negated } => {
                Predicate::Like { column, pattern, negated: !negated }
            }
            Predicate::Trimmed(test) => Predicate::Trimmed(Box::new(!*test)),
            Predicate::And(all) => Predicate::Or(all.into_iter().map(std::ops::Not::not).collect()),
            Predicate::Or(any) => Predicate::And(any.into_iter().map(std::ops::Not::not).collect()),
        }
    }
}

impl Predicate {
    /// A comparison that is not negated.
    pub fn compare(column: impl Into<String>, op: Op, value: ArrayRef) -> Self {
        Self::Compare { column: column.into(), op, value, negated: false }
    }

    /// The same filter with other column names.
    #[must_use]
    pub fn rename(self, name: &dyn Fn(String) -> String) -> Self {
        match self {
            Self::Compare { column, op, value, negated } => {
                Self::Compare { column: name(column), op, value, negated }
            }
            Self::In { column, values, negated } => Self::In { column: name(column), values, negated },
            Self::Null { column, negated } => Self::Null { column: name(column), negated },
            Self::Like { column, pattern, negated } => Self::Like { column: name(column), pattern, negated },
            Self::Trimmed(test) => Self::Trimmed(Box::new(test.rename(name))),
            Self::And(all) => Self::And(all.into_iter().map(|p| p.rename(name)).collect()),
            Self::Or(any) => Self::Or(any.into_iter().map(|p| p.rename(name)).collect()),
        }
    }

    /// The columns needed to evaluate the predicate.
    pub fn columns<'a>(&'a self, into: &mut Vec<&'a str>) {
        match self {
            Self::Compare { column, .. }
            | Self::In { column, .. }
            | Self::Null { column, .. }
            | Self::Like { column, .. } => into.push(column),
            Self::Trimmed(test) => test.columns(into),
            Self::And(all) | Self::Or(all) => all.iter().for_each(|p| p.columns(into)),
        }
    }
}

#[cfg(test)]
mod tests;
