//! What a filter says about a whole unit, from bounds the format knows.

use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef, BinaryArray, StringArray};
use arrow_ord::ord::make_comparator;
use arrow_schema::SortOptions;

use super::{Op, Predicate};

/// What a unit (stripe, row group, block) promises about one column. `None` promises nothing.
#[derive(Clone, Debug, Default)]
pub struct ColumnBounds {
    /// An array of one value, of the column's type: no value is smaller.
    pub min: Option<ArrayRef>,
    /// An array of one value, of the column's type: no value is larger.
    pub max: Option<ArrayRef>,
    /// Whether nulls occur.
    pub has_null: Option<bool>,
    /// Whether anything but nulls occurs.
    pub has_value: Option<bool>,
}

/// The part of a conjunction that a sorted file can seek by: `lower <= key < upper`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// Inclusive.
    pub lower: Option<Vec<u8>>,
    /// Exclusive.
    pub upper: Option<Vec<u8>>,
}

impl Predicate {
    /// `false` only if no row of a unit with these bounds can pass. Without bounds there is no pruning; it never fails.
    pub fn may_match(&self, bounds: &dyn Fn(&str) -> Option<ColumnBounds>) -> bool {
        match self {
            Self::And(all) => all.iter().all(|p| p.may_match(bounds)),
            Self::Or(any) => any.iter().any(|p| p.may_match(bounds)),
            Self::Null { column, negated } => {
                let b = bounds(column).unwrap_or_default();
                (if *negated { b.has_value } else { b.has_null }) != Some(false)
            }
            Self::Compare { column, op, value, negated } => {
                let Some(b) = bounds(column) else { return true };
                // A negated comparison only stays for floating point numbers, where it holds for NaN,
                // which no bounds count in.
                b.has_value != Some(false) && (*negated || compare_may_match(&b, *op, value, 0))
            }
            Self::In { column, values, negated } => {
                let Some(b) = bounds(column) else { return true };
                // Null rows are never let through, and with a null in the set nothing is known not to be in it.
                let could = if *negated {
                    values.null_count() == 0
                } else {
                    (0..values.len()).any(|i| compare_may_match(&b, Op::Eq, values, i))
                };
                b.has_value != Some(false) && could
            }
            Self::Like { column, .. } => bounds(column).is_none_or(|b| b.has_value != Some(false)),
        }
    }

    /// The range of byte keys a sorted file has to visit. Anything not understood widens it.
    pub fn key_range(&self, key: &str) -> KeyRange {
        match self {
            Self::And(all) => {
                all.iter().map(|p| p.key_range(key)).fold(KeyRange::default(), |a, b| KeyRange {
                    lower: a.lower.max(b.lower),
                    upper: match (a.upper, b.upper) {
                        (Some(x), Some(y)) => Some(x.min(y)),
                        (x, y) => x.or(y),
                    },
                })
            }
            Self::Compare { column, op, value, negated: false } if column == key => {
                bytes_of(value).map(|v| range_of(*op, v)).unwrap_or_default()
            }
            _ => KeyRange::default(),
        }
    }
}

fn compare_may_match(bounds: &ColumnBounds, op: Op, values: &ArrayRef, i: usize) -> bool {
    if values.is_null(i) {
        return false; // a comparison with null is null for every row
    }
    let order = |bound: &Option<ArrayRef>| -> Option<Ordering> {
        let b = bound
            .as_ref()
            .filter(|b| b.data_type() == values.data_type() && b.len() == 1 && b.is_valid(0))?;
        Some(make_comparator(b, values, SortOptions::default()).ok()?(0, i))
    };
    let (min, max) = (order(&bounds.min), order(&bounds.max));
    !match op {
        Op::Eq => min == Some(Ordering::Greater) || max == Some(Ordering::Less),
        Op::Ne => {
            min == Some(Ordering::Equal) && max == Some(Ordering::Equal) && !values.data_type().is_floating()
        }
        Op::Lt => matches!(min, Some(Ordering::Greater | Ordering::Equal)),
        Op::Le => min == Some(Ordering::Greater),
        Op::Gt => matches!(max, Some(Ordering::Less | Ordering::Equal)),
        Op::Ge => max == Some(Ordering::Less),
    }
}

fn bytes_of(value: &ArrayRef) -> Option<&[u8]> {
    if value.len() != 1 || value.is_null(0) {
        return None;
    }
    let any = value.as_any();
    any.downcast_ref::<BinaryArray>()
        .map(|a| a.value(0))
        .or_else(|| any.downcast_ref::<StringArray>().map(|a| a.value(0).as_bytes()))
}

fn range_of(op: Op, value: &[u8]) -> KeyRange {
    let at = || Some(value.to_vec());
    let behind = || Some([value, &[0]].concat());
    let (lower, upper) = match op {
        Op::Eq => (at(), behind()),
        Op::Ge => (at(), None),
        Op::Gt => (behind(), None),
        Op::Lt => (None, at()),
        Op::Le => (None, behind()),
        Op::Ne => (None, None),
    };
    KeyRange { lower, upper }
}
