//! Families with `NEW_VERSION_BEHAVIOR`: the later write wins, whatever its timestamp.
//!
//! ```text
//! sequence ids    1 put   2 put   3 DeleteColumn   4 put          the marker hides 1 and 2, not 4
//!                 └─ segment up to 3 ────────────┘ └─ segment up to the end
//! ```
//!
//! A marker hides only cells with smaller sequence ids. A put is also hidden if the column already had as
//! many newer puts as the family keeps when a later marker was written. Markers divide the puts of a column
//! into segments by sequence id, and for each segment the puts that existed before its end are counted.
//! HBase: `NewVersionBehaviorTracker`.

use std::collections::{BTreeMap, BTreeSet};

use coldframe_core::{Error, Result};
use coldframe_hfile::kinds::{DELETE, DELETE_COLUMN, DELETE_FAMILY, DELETE_FAMILY_VERSION, PUT};
use coldframe_hfile::{Cell, Passed, Policy};

/// Maximum number of markers that are tracked for a row and family. Each column starts with a copy of these
/// markers.
const MAX_MARKERS: usize = 1 << 12;

/// A marker of a whole column or family, together with the deletes and puts before it. The last node of the
/// list is no marker: it has what comes after the last marker.
#[derive(Clone, Debug)]
struct Node {
    /// The marker hides timestamps up to and including this timestamp.
    time: i64,
    /// For each timestamp that a marker of its own deletes, the sequence ids of such markers.
    versions: BTreeMap<i64, BTreeSet<i64>>,
    /// For each segment, by its last sequence id: the sequence ids of the puts in the segment and before it.
    segments: BTreeMap<i64, BTreeSet<i64>>,
}

impl Node {
    fn new(time: i64) -> Self {
        Self { time, versions: BTreeMap::new(), segments: [(i64::MAX, BTreeSet::new())].into() }
    }

    fn delete_version(&mut self, cell: &Cell<'_>) {
        let id = cell.sequence_id;
        self.versions.entry(cell.timestamp).or_default().insert(id);
        let later = self.segments.range(id..).next().map(|(_, puts)| puts.range(..id).copied().collect());
        self.segments.insert(id, later.unwrap_or_default());
    }
}

type Nodes = BTreeMap<i64, Node>;

/// Tracks the cells of a row.
#[derive(Debug, Default)]
pub(crate) struct NewVersions {
    row: Vec<u8>,
    family: Vec<u8>,
    qualifier: Vec<u8>,
    started: bool,
    of_family: Nodes,
    of_column: Nodes,
    markers: usize,
    /// Timestamp, type and sequence id of the previous cell of the column.
    last: Option<(i64, u8, i64)>,
    /// The number of visible puts of the column so far.
    seen: u32,
    passed: Passed,
}

impl NewVersions {
    /// Whether a cell is visible to a reader with `policy`, in a family that keeps `kept` versions.
    pub(crate) fn admits(&mut self, cell: &Cell<'_>, kept: u32, policy: &Policy) -> Result<bool> {
        self.enter(cell);
        if cell.kind != PUT {
            if policy.applies_marker(cell.timestamp) {
                self.mark(cell)?;
                self.last = Some((cell.timestamp, cell.kind, cell.sequence_id));
            }
            return Ok(false);
        }
        if self.is_hidden(cell, kept) {
            return Ok(false);
        }
        if !policy.includes_time(cell.timestamp) {
            self.passed.times += 1;
            return Ok(false);
        }
        self.seen = self.seen.saturating_add(1);
        let young = cell.timestamp >= policy.oldest || self.seen <= policy.min_versions;
        // This is the limit of the request; the limit of the family has been applied above.
        let requested = self.seen <= policy.versions;
        self.passed.versions += u64::from(young && !requested);
        Ok(young && requested)
    }

    /// The number of skipped cells since the last call.
    pub(super) fn take_passed(&mut self) -> Passed {
        std::mem::take(&mut self.passed)
    }

    fn mark(&mut self, cell: &Cell<'_>) -> Result<()> {
        self.markers += 1;
        if self.markers > MAX_MARKERS {
            let message = format!(
                "more than {MAX_MARKERS} delete markers in a row of a family with NEW_VERSION_BEHAVIOR"
            );
            return Err(Error::unsupported(message));
        }
        let id = cell.sequence_id;
        let end = |nodes: &mut Nodes| {
            nodes.entry(i64::MAX).or_insert_with(|| Node::new(i64::MIN));
        };
        match cell.kind {
            DELETE_FAMILY => {
                self.of_family.insert(id, Node::new(cell.timestamp));
                self.of_column.insert(id, Node::new(cell.timestamp));
            }
            DELETE_COLUMN => drop(self.of_column.insert(id, Node::new(cell.timestamp))),
            DELETE_FAMILY_VERSION => {
                for nodes in [&mut self.of_family, &mut self.of_column] {
                    end(nodes);
                    if let Some((_, node)) = nodes.range_mut(id..).next() {
                        node.delete_version(cell);
                    }
                }
            }
            DELETE => {
                end(&mut self.of_column);
                if let Some((_, node)) = self.of_column.range_mut(id..).next() {
                    node.delete_version(cell);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a put is hidden. Counts the put as one that existed, hidden or not.
    fn is_hidden(&mut self, cell: &Cell<'_>, kept: u32) -> bool {
        let id = cell.sequence_id;
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        // Whether the same cell was put before: the later put came first.
        let again = match self.last {
            Some((time, PUT, later)) if time == cell.timestamp => Some(later),
            _ => None,
        };
        if again.is_none() {
            self.last = Some((cell.timestamp, cell.kind, id));
        }
        self.of_column.entry(i64::MAX).or_insert_with(|| Node::new(i64::MIN));
        for (_, node) in self.of_column.range_mut(id..) {
            let deleted = node.versions.get(&cell.timestamp).and_then(|ids| ids.range(id..).next().copied());
            let until = again.unwrap_or(i64::MAX).min(deleted.unwrap_or(i64::MAX));
            if until >= id {
                for (_, puts) in node.segments.range_mut(id..=until) {
                    if puts.len() >= kept {
                        return true;
                    }
                    puts.insert(id);
                }
            }
            if deleted.is_some() || cell.timestamp <= node.time {
                return true;
            }
        }
        again.is_some()
    }

    /// Forgets what applies only to the row, family or column that has ended.
    fn enter(&mut self, cell: &Cell<'_>) {
        let same_row = self.started && self.row == cell.row && self.family == cell.family;
        if same_row && self.qualifier == cell.qualifier {
            return;
        }
        if !same_row {
            cell.row.clone_into(&mut self.row);
            cell.family.clone_into(&mut self.family);
            self.of_family.clear();
            self.markers = 0;
        }
        cell.qualifier.clone_into(&mut self.qualifier);
        self.of_column.clone_from(&self.of_family);
        (self.last, self.seen, self.started) = (None, 0, true);
    }
}
