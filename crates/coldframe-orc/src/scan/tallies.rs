//! The tallies of row groups, while batches of any length are decoded.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use coldframe_core::Result;

use super::column::MalformedValue;
use super::job::{Groups, ScanShared};
use super::statements::Tally;
use crate::layout::stripe::StripeLayout;

/// Tallies that are complete, with the first rows that they count.
pub(super) struct Complete(pub(super) Vec<(Tally, u64)>);

impl Complete {
    /// Fails for the first row group whose values contradict its statistics.
    pub(super) fn check(self, scan: &ScanShared, layout: &StripeLayout) -> Result<()> {
        self.0.iter().try_for_each(|(tally, row)| tally.check(scan, layout, *row).map(drop))
    }
}

/// Counts `rows` of a column in the tallies of their row groups, and returns the tallies that are complete.
pub(super) fn compare(
    tally: &mut Option<(usize, Tally)>,
    array: &ArrayRef,
    malformed: &[MalformedValue],
    rows: Range<u64>,
    groups: &Groups,
    new: impl Fn(usize) -> Option<Tally>,
) -> Complete {
    let mut complete = Vec::new();
    let mut at = rows.start;
    while at < rows.end {
        let group = groups.holding(at);
        let Some(of) = groups.runs.get(group).map(|run| run.rows.clone()) else { break };
        let end = of.end.min(rows.end).max(at + 1);
        if at == of.start {
            *tally = new(group).map(|tally| (group, tally));
        }
        if let Some((_, tally)) = tally.as_mut().filter(|(of, _)| *of == group) {
            let offset = |row: u64| usize::try_from(row - rows.start).unwrap_or(usize::MAX);
            let (from, to) = (offset(at), offset(end));
            let inside: Vec<MalformedValue> =
                malformed.iter().filter(|value| (from..to).contains(&value.row)).copied().collect();
            match from == 0 && to == array.len() {
                true => tally.add(array, &inside),
                false => tally.add(&array.slice(from, to - from), &inside),
            }
        }
        if end == of.end
            && let Some((_, tally)) = tally.take().filter(|(of, _)| *of == group)
        {
            complete.push((tally, of.start));
        }
        at = end;
    }
    Complete(complete)
}
