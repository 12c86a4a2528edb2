//! Decides from the bounds of a unit whether it may have rows that pass a filter.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, StringArray};
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, SortOptions, TimeUnit};

use super::{Members, Op, Predicate, trimmed};

/// The bounds of a column in a unit (stripe, row group, block). `None` means that the bound is unknown.
#[derive(Clone, Debug, Default)]
pub struct ColumnBounds {
    /// An array of one value, of the column's type: no value is smaller.
    pub min: Option<ArrayRef>,
    /// An array of one value, of the column's type: no value is larger.
    pub max: Option<ArrayRef>,
    /// Whether the column contains nulls.
    pub has_null: Option<bool>,
    /// Whether the column contains values other than null.
    pub has_value: Option<bool>,
}

/// The types as which a bound may be read, the bound's own type first. Metadata without the table's types
/// store dates and timestamps as integers: days and microseconds since 1970.
pub(super) fn readings(bound: DataType) -> Vec<DataType> {
    match bound {
        DataType::Int32 => vec![bound, DataType::Date32],
        DataType::Int64 => {
            let instant = |zone: Option<Arc<str>>| DataType::Timestamp(TimeUnit::Microsecond, zone);
            vec![bound, instant(None), instant(Some("UTC".into()))]
        }
        other => vec![other],
    }
}

impl ColumnBounds {
    /// The bounds cast to another type, without the bounds that this type cannot represent.
    pub(super) fn read_as(&self, data_type: &DataType) -> Self {
        let read = |bound: &Option<ArrayRef>| arrow_cast::cast(bound.as_ref()?, data_type).ok();
        Self { min: read(&self.min), max: read(&self.max), ..self.clone() }
    }
}

/// The part of a conjunction that a sorted file can use for seeking: `lower <= key < upper`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// The smallest key, inclusive.
    pub lower: Option<Vec<u8>>,
    /// The end of the keys, exclusive.
    pub upper: Option<Vec<u8>>,
}

impl Predicate {
    /// `false` only if no row of a unit with these bounds can pass. Never fails: a unit without bounds
    /// may match.
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
                // A negated comparison remains only for floating point numbers, where it is true for NaN,
                // which bounds do not cover.
                b.has_value != Some(false) && (*negated || compare_may_match(&b, *op, value, 0))
            }
            Self::In { column, values, negated } => {
                let Some(b) = bounds(column) else { return true };
                // Null rows never pass. If the set contains null, `not in` is never true, since no value is
                // known to be outside the set.
                let could = if *negated { values.null_count() == 0 } else { may_hold_member(&b, values) };
                b.has_value != Some(false) && could
            }
            Self::Trimmed(test) => test.may_match(&|column| bounds(column).map(trimmed::bounds_of)),
            Self::Like { column, .. } => bounds(column).is_none_or(|b| b.has_value != Some(false)),
        }
    }

    /// The range of byte keys that a sorted file must visit. Conditions on other columns do not narrow the
    /// range.
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

fn compare_may_match(bounds: &ColumnBounds, op: Op, value: &ArrayRef, i: usize) -> bool {
    if value.is_null(i) {
        return false; // a comparison with null is null for every row
    }
    let order = |bound: &Option<ArrayRef>| bound_of(bound.as_ref(), value)?(i);
    let (min, max) = (order(&bounds.min), order(&bounds.max));
    !match op {
        Op::Eq => min == Some(Ordering::Greater) || max == Some(Ordering::Less),
        Op::Ne => {
            min == Some(Ordering::Equal) && max == Some(Ordering::Equal) && !value.data_type().is_floating()
        }
        Op::Lt => matches!(min, Some(Ordering::Greater | Ordering::Equal)),
        Op::Le => min == Some(Ordering::Greater),
        Op::Gt => matches!(max, Some(Ordering::Less | Ordering::Equal)),
        Op::Ge => max == Some(Ordering::Less),
    }
}

/// Whether a value of a set may lie between the bounds. NaN may occur anywhere: bounds do not cover it.
fn may_hold_member(bounds: &ColumnBounds, values: &Members) -> bool {
    let (min, max) = (bound_of(bounds.min.as_ref(), values), bound_of(bounds.max.as_ref(), values));
    let below = |i: usize| min.as_ref().is_some_and(|min| min(i) == Some(Ordering::Greater));
    let above = |i: usize| max.as_ref().is_some_and(|max| max(i) == Some(Ordering::Less));
    let valid = values.len() - values.null_count();
    if !values.is_sorted() || values.data_type().is_floating() {
        return (0..values.len()).any(|i| values.is_valid(i) && !below(i) && !above(i));
    }
    let (mut first, mut end) = (0, valid);
    while first < end {
        let middle = first + (end - first) / 2;
        if below(middle) { first = middle + 1 } else { end = middle }
    }
    first < valid && !above(first)
}

type OrderOf<'a> = Box<dyn Fn(usize) -> Option<Ordering> + 'a>;

/// Whether a bound is greater or less than the value at an index; `None` if they cannot be compared. The
/// zeros 0.0 and -0.0 are equal, and NaN cannot be compared.
fn bound_of<'a>(bound: Option<&ArrayRef>, values: &'a ArrayRef) -> Option<OrderOf<'a>> {
    let b = bound.filter(|b| b.data_type() == values.data_type() && b.len() == 1 && b.is_valid(0))?;
    match values.data_type() {
        DataType::Float64 => {
            let (bound, values) =
                (b.as_primitive::<Float64Type>().value(0), values.as_primitive::<Float64Type>());
            Some(Box::new(move |i| bound.partial_cmp(&values.value(i))))
        }
        DataType::Float32 => {
            let (bound, values) =
                (b.as_primitive::<Float32Type>().value(0), values.as_primitive::<Float32Type>());
            Some(Box::new(move |i| bound.partial_cmp(&values.value(i))))
        }
        _ => {
            let order = make_comparator(b, values, SortOptions::default()).ok()?;
            Some(Box::new(move |i| Some(order(0, i))))
        }
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
