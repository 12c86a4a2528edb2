//! What a file states of its columns, held against what was decoded of it: so that the reader is checked, too.
//!
//! ```text
//! all types but unions                  how many values are not null
//! integers                              smallest, largest, sum
//! floating point numbers, dates         smallest, largest
//! decimals                              that none is beyond the smallest and the largest
//! truth values                          how many are true
//! text, bytes                           bytes of all together
//! ```
//!
//! A format gives what is certain ([`coldframe_core::ColumnSummary`]). Dates of before the Gregorian calendar are not compared: writers
//! differ in the calendar that they count by.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Display;

use coldframe_core::{Bound, ColumnSummary};

use crate::fingerprint::Extreme;
use crate::observed::{Observed, ObservedColumn};

/// The day 1582-10-15, counted from 1970.
const GREGORIAN: i128 = -141_427;

/// What a file states of the columns of a part, and what of that was decoded otherwise.
#[derive(Clone, Debug, Default)]
pub struct Witness(BTreeMap<String, Vec<ColumnSummary>>);

impl Witness {
    /// From what [`coldframe_core::TableFile::column_summaries`] gave.
    pub fn new(units: Vec<Vec<ColumnSummary>>) -> Self {
        let count = units.len();
        if units.iter().any(Vec::is_empty) {
            return Self::default();
        }
        let mut columns: BTreeMap<String, Vec<ColumnSummary>> = BTreeMap::new();
        for column in units.into_iter().flatten() {
            columns.entry(column.name.clone()).or_default().push(column);
        }
        // A column of which only some units say something is not compared.
        columns.retain(|_, said| said.len() == count);
        Self(columns)
    }

    /// The columns of which something is stated.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What was decoded otherwise than the file states, in words; empty where all agrees.
    pub fn differences(&self, observed: &Observed) -> Vec<String> {
        let mut found = Vec::new();
        for (name, seen) in observed.columns() {
            let Some(said) = self.0.get(name) else { continue };
            for (what, stated, decoded) in compared(said, seen) {
                found.push(format!("column {name}: {what} {stated} by the file, {decoded} decoded"));
            }
        }
        found
    }
}

type Difference = (&'static str, String, String);

fn compared(said: &[ColumnSummary], seen: &ObservedColumn) -> Vec<Difference> {
    let mut found = Vec::new();
    demand(&mut found, "values", total(said.iter().map(|unit| unit.values)), Some(seen.values));
    // Units without values have neither a sum nor ends.
    let with_values: Vec<&ColumnSummary> = said.iter().filter(|unit| unit.values != Some(0)).collect();
    let all = || with_values.iter().copied();
    demand(&mut found, "true", total(all().map(|unit| unit.trues)), seen.trues);
    demand(&mut found, "bytes of text", total(all().map(|unit| unit.bytes)), seen.bytes);
    let Some((smallest, largest)) = seen.ends.as_ref().filter(|_| !seen.has_nan) else { return found };
    let sums = all().map(|unit| unit.sum.map(i128::from)).sum::<Option<i128>>();
    demand(&mut found, "sum", sums, seen.sum);
    for (what, decoded, ends, outer) in [
        ("smallest", smallest, all().map(|unit| unit.smallest.as_ref()).collect(), Ordering::Less),
        ("largest", largest, all().map(|unit| unit.largest.as_ref()).collect(), Ordering::Greater),
    ] {
        found.extend(end_differs(what, decoded, outermost(ends, outer), outer, smallest));
    }
    found
}

fn total(counts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    counts.sum()
}

fn demand<T: PartialEq + Display>(
    found: &mut Vec<Difference>,
    what: &'static str,
    stated: Option<T>,
    decoded: Option<T>,
) {
    if let (Some(stated), Some(decoded)) = (stated, decoded)
        && stated != decoded
    {
        found.push((what, stated.to_string(), decoded.to_string()));
    }
}

/// The smallest or largest end of all units; none where one of them does not state it.
fn outermost(ends: Vec<Option<&Bound>>, outer: Ordering) -> Option<Bound> {
    let mut ends = ends.into_iter();
    let mut found = ends.next()??.clone();
    for end in ends {
        let end = end?;
        if order(end, &found)? == outer {
            found = end.clone();
        }
    }
    Some(found)
}

fn order(one: &Bound, other: &Bound) -> Option<Ordering> {
    match (one, other) {
        (Bound::Whole(a), Bound::Whole(b)) => Some(a.cmp(b)),
        (Bound::Float(a), Bound::Float(b)) => a.partial_cmp(b),
        (Bound::Decimal(a, s), Bound::Decimal(b, t)) => order_decimals((*a, *s), (*b, *t)),
        (Bound::Days(a), Bound::Days(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// `None` where they cannot be compared in 128 bits.
fn order_decimals((a, s): (i128, u8), (b, t): (i128, u8)) -> Option<Ordering> {
    let scaled = |digits: i128, by: u8| 10_i128.checked_pow(by.into())?.checked_mul(digits);
    let common = s.max(t);
    Some(scaled(a, common.checked_sub(s)?)?.cmp(&scaled(b, common.checked_sub(t)?)?))
}

fn end_differs(
    what: &'static str,
    decoded: &Extreme,
    stated: Option<Bound>,
    outer: Ordering,
    smallest: &Extreme,
) -> Option<Difference> {
    let stated = stated?;
    let (differs, shown) = match (&stated, decoded) {
        (Bound::Whole(stated), Extreme::Whole(decoded)) => {
            (i128::from(*stated) != *decoded, stated.to_string())
        }
        (Bound::Float(stated), Extreme::Float(decoded)) => (stated != decoded, format!("{stated:?}")),
        (Bound::Days(stated), Extreme::Whole(decoded)) => {
            let is_old = |day: i128| day < GREGORIAN;
            let old = is_old((*stated).into()) || matches!(smallest, Extreme::Whole(day) if is_old(*day));
            (!old && i128::from(*stated) != *decoded, stated.to_string())
        }
        (Bound::Decimal(digits, scale), Extreme::Decimal(value, places)) => {
            // Of decimals it is enough that none is beyond what is stated.
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
