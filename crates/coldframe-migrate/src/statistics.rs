//! Compares a file's own statistics of its columns with the decoded values. Differences are errors of the
//! reader.
//!
//! ```text
//! all types but unions                  number of non-null values
//! integers                              smallest, largest, sum
//! floating point numbers, dates         smallest, largest
//! decimals                              no value is beyond the smallest and the largest
//! booleans                              number of true values
//! text, bytes                           total length in bytes
//! ```
//!
//! A format passes on only statistics that are certain ([`coldframe_core::ColumnSummary`]). Dates before the Gregorian calendar are not
//! compared: writers use different calendars for them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Display;

use coldframe_core::{Bound, ColumnSummary};

use crate::fingerprint::Extreme;
use crate::observed::{Observed, ObservedColumn};

/// The day 1582-10-15, counted from 1970.
const GREGORIAN: i128 = -141_427;

/// A file's own statistics of the columns of a part.
#[derive(Clone, Debug, Default)]
pub struct FileStatistics(BTreeMap<String, Vec<ColumnSummary>>);

impl FileStatistics {
    /// Takes the result of [`coldframe_core::TableFile::column_summaries`].
    pub fn new(units: Vec<Vec<ColumnSummary>>) -> Self {
        let count = units.len();
        if units.iter().any(Vec::is_empty) {
            return Self::default();
        }
        let mut columns: BTreeMap<String, Vec<ColumnSummary>> = BTreeMap::new();
        for column in units.into_iter().flatten() {
            columns.entry(column.name.clone()).or_default().push(column);
        }
        // A column that lacks statistics in some units is not compared.
        columns.retain(|_, units| units.len() == count);
        Self(columns)
    }

    /// The columns with statistics.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Describes the differences to the decoded columns; empty if all agree.
    pub fn differences(&self, observed: &Observed) -> Vec<String> {
        let mut differences = Vec::new();
        for (name, decoded) in observed.columns() {
            let Some(units) = self.0.get(name) else { continue };
            for (what, stored, decoded) in compare_column(units, decoded) {
                differences.push(format!("column {name}: {what} {stored} by the file, {decoded} decoded"));
            }
        }
        differences
    }
}

type Difference = (&'static str, String, String);

fn compare_column(units: &[ColumnSummary], decoded: &ObservedColumn) -> Vec<Difference> {
    let mut differences = Vec::new();
    compare(&mut differences, "values", total(units.iter().map(|unit| unit.values)), Some(decoded.values));
    // Units without values have neither a sum nor extremes.
    let with_values: Vec<&ColumnSummary> = units.iter().filter(|unit| unit.values != Some(0)).collect();
    let all = || with_values.iter().copied();
    compare(&mut differences, "true", total(all().map(|unit| unit.trues)), decoded.trues);
    compare(&mut differences, "bytes of text", total(all().map(|unit| unit.bytes)), decoded.bytes);
    let Some((smallest, largest)) = decoded.ends.as_ref().filter(|_| !decoded.has_nan) else {
        return differences;
    };
    let sums = all().map(|unit| unit.sum.map(i128::from)).sum::<Option<i128>>();
    compare(&mut differences, "sum", sums, decoded.sum);
    for (what, decoded, ends, outer) in [
        ("smallest", smallest, all().map(|unit| unit.smallest.as_ref()).collect(), Ordering::Less),
        ("largest", largest, all().map(|unit| unit.largest.as_ref()).collect(), Ordering::Greater),
    ] {
        differences.extend(compare_extreme(what, decoded, outermost(ends, outer), outer, smallest));
    }
    differences
}

fn total(counts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    counts.sum()
}

fn compare<T: PartialEq + Display>(
    differences: &mut Vec<Difference>,
    what: &'static str,
    stored: Option<T>,
    decoded: Option<T>,
) {
    if let (Some(stored), Some(decoded)) = (stored, decoded)
        && stored != decoded
    {
        differences.push((what, stored.to_string(), decoded.to_string()));
    }
}

/// The smallest or the largest of the bounds of all units; `None` if a unit lacks it.
fn outermost(ends: Vec<Option<&Bound>>, outer: Ordering) -> Option<Bound> {
    let mut ends = ends.into_iter();
    let mut outermost = ends.next()??.clone();
    for end in ends {
        let end = end?;
        if order(end, &outermost)? == outer {
            outermost = end.clone();
        }
    }
    Some(outermost)
}

fn order(left: &Bound, right: &Bound) -> Option<Ordering> {
    match (left, right) {
        (Bound::Whole(a), Bound::Whole(b)) => Some(a.cmp(b)),
        (Bound::Float(a), Bound::Float(b)) => a.partial_cmp(b),
        (Bound::Decimal(a, s), Bound::Decimal(b, t)) => order_decimals((*a, *s), (*b, *t)),
        (Bound::Days(a), Bound::Days(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// Compares decimals with different scales; `None` if that needs more than 128 bits.
fn order_decimals((a, s): (i128, u8), (b, t): (i128, u8)) -> Option<Ordering> {
    let scaled = |digits: i128, by: u8| 10_i128.checked_pow(by.into())?.checked_mul(digits);
    let common = s.max(t);
    Some(scaled(a, common.checked_sub(s)?)?.cmp(&scaled(b, common.checked_sub(t)?)?))
}

fn compare_extreme(
    what: &'static str,
    decoded: &Extreme,
    stored: Option<Bound>,
    outer: Ordering,
    smallest: &Extreme,
) -> Option<Difference> {
    let stored = stored?;
    let (differs, shown) = match (&stored, decoded) {
        (Bound::Whole(stored), Extreme::Whole(decoded)) => {
            (i128::from(*stored) != *decoded, stored.to_string())
        }
        (Bound::Float(stored), Extreme::Float(decoded)) => (stored != decoded, format!("{stored:?}")),
        (Bound::Days(stored), Extreme::Whole(decoded)) => {
            let is_old = |day: i128| day < GREGORIAN;
            let old = is_old((*stored).into()) || matches!(smallest, Extreme::Whole(day) if is_old(*day));
            (!old && i128::from(*stored) != *decoded, stored.to_string())
        }
        (Bound::Decimal(digits, scale), Extreme::Decimal(value, places)) => {
            // Decimals must lie within the file's bounds, but need not be equal to them.
            let places = u8::try_from(*places).ok()?;
            let beyond = order_decimals((*value, places), (*digits, *scale))? == outer;
            (beyond, Extreme::Decimal(*digits, i8::try_from(*scale).ok()?).to_string())
        }
        _ => return None,
    };
    let decoded = match decoded {
        Extreme::Float(value) => format!("{value:?}"),
        other => other.to_string(),
    };
    differs.then_some((what, shown, decoded))
}
