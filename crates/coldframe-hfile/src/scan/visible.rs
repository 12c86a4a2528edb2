//! Which cells of a row a reader of HBase sees: delete markers honoured, the newest versions only.
//!
//! ```text
//! order in a row      | family | qualifier | timestamp, newest first | type, deletes first | sequence id, newest first |
//! DeleteFamily        | hides its family's cells of its time and before; stands under the empty qualifier, so before them
//! DeleteFamilyVersion | hides those of exactly its time
//! DeleteColumn        | hides its column's cells of its time and before
//! Delete              | hides its column's cell of exactly its time
//! ```
//!
//! A marker hides what was put later, too, if its time says so: HBase does the same until a major compaction.
//! What a table says of a family (how many versions it keeps and for how long) is its [`Policy`]; a single file has none.
//! HBase: `ScanDeleteTracker`, `ExplicitColumnTracker`, `NormalUserScanQueryMatcher`.

use std::collections::BTreeSet;

use coldframe_core::{Error, Result};

use crate::layout::cell::Cell;
use crate::layout::encoding::put;

const PUT: u8 = 4;
const DELETE: u8 = 8;
const DELETE_FAMILY_VERSION: u8 = 10;
const DELETE_COLUMN: u8 = 12;
const DELETE_FAMILY: u8 = 14;

/// Most times of deleted versions that are kept for a family in one row: some 24 MiB.
const MOST_MARKERS: usize = 1 << 20;

/// What a reader sees of the cells of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// So many of the newest versions of a column.
    pub versions: u32,
    /// So many of them even if they are older than `oldest`.
    pub min_versions: u32,
    /// Cells of earlier times have expired.
    pub oldest: i64,
    /// Times from, and up to but not at; cells of others are passed over before anything is counted.
    pub time_range: Option<(i64, i64)>,
    /// Whether markers from the end of the time range on hide nothing (`KEEP_DELETED_CELLS`).
    pub sees_past_markers: bool,
}

impl Policy {
    /// The `versions` newest versions of each column, however old.
    pub const fn newest(versions: u32, time_range: Option<(i64, i64)>) -> Self {
        Self { versions, min_versions: 0, oldest: i64::MIN, time_range, sees_past_markers: false }
    }

    /// Whether a marker of a time counts.
    fn heeds(&self, time: i64) -> bool {
        !self.sees_past_markers || self.time_range.is_none_or(|(_, end)| time < end)
    }
}

/// Follows the cells of a file or of a merge in their order.
#[derive(Debug, Default)]
pub struct Visibility {
    row: Vec<u8>,
    family: Vec<u8>,
    qualifier: Vec<u8>,
    started: bool,
    /// Whether any marker is known that may hide a cell of the column.
    marked: bool,
    /// The newest time that the family is deleted at.
    family_deleted: Option<i64>,
    /// Times at which versions of the family are deleted.
    family_versions: BTreeSet<i64>,
    column_deleted: Option<i64>,
    /// The time of the last version of the column that is deleted: what it hides follows it.
    column_version: Option<i64>,
    /// Versions of the column seen so far, and the time and type of the last one.
    versions: u32,
    last: Option<(i64, u8)>,
}

impl Visibility {
    /// Whether a reader with `policy` sees a cell.
    #[inline]
    pub fn admits(&mut self, cell: &Cell<'_>, policy: &Policy) -> Result<bool> {
        self.enter(cell);
        if cell.kind == PUT {
            return Ok(self.admits_put(cell.timestamp, policy));
        }
        if policy.heeds(cell.timestamp) {
            self.mark(cell.timestamp, cell.kind)?;
        }
        Ok(false)
    }

    /// Whether a cell, be it a marker, is the first of its key: what is put twice at one time is one cell, the later putting first.
    #[inline]
    pub fn is_new(&mut self, cell: &Cell<'_>) -> bool {
        self.enter(cell);
        let last = self.last.replace((cell.timestamp, cell.kind));
        last != self.last
    }

    /// Whether the cell before was of this row and family.
    pub fn is_within(&self, row: &[u8], family: &[u8]) -> bool {
        self.started && self.row == row && self.family == family
    }

    fn mark(&mut self, time: i64, kind: u8) -> Result<()> {
        match kind {
            DELETE_FAMILY => self.family_deleted = self.family_deleted.max(Some(time)),
            DELETE_FAMILY_VERSION => self.delete_family_version(time)?,
            DELETE_COLUMN => self.column_deleted = self.column_deleted.max(Some(time)),
            DELETE => self.column_version = Some(time),
            _ => return Ok(()),
        }
        self.marked = true;
        Ok(())
    }

    /// Notes a time at which a version of the family is deleted.
    fn delete_family_version(&mut self, time: i64) -> Result<()> {
        if self.family_versions.len() >= MOST_MARKERS && !self.family_versions.contains(&time) {
            let message = format!("more than {MOST_MARKERS} deleted versions of a family in one row");
            return Err(Error::unsupported(message));
        }
        self.family_versions.insert(time);
        Ok(())
    }

    fn is_deleted(&self, time: i64) -> bool {
        self.family_deleted.is_some_and(|t| time <= t)
            || self.column_deleted.is_some_and(|t| time <= t)
            || self.family_versions.contains(&time)
            || self.column_version == Some(time)
    }

    #[inline]
    fn admits_put(&mut self, time: i64, policy: &Policy) -> bool {
        if self.marked && self.is_deleted(time) {
            return false;
        }
        if policy.time_range.is_some_and(|(start, end)| time < start || time >= end) {
            return false;
        }
        // The same cell written twice is one version: the later writing comes first.
        let version = Some((time, PUT));
        if self.versions >= policy.versions || self.last == version {
            return false;
        }
        self.versions += 1;
        self.last = version;
        time >= policy.oldest || self.versions <= policy.min_versions
    }

    /// Forgets what does not reach beyond a row, a family, a column.
    #[inline]
    fn enter(&mut self, cell: &Cell<'_>) {
        let same_row = self.started && self.row == cell.row;
        let same_family = same_row && self.family == cell.family;
        if same_family && self.qualifier == cell.qualifier {
            return;
        }
        if !same_row {
            self.row.clear();
            put(&mut self.row, cell.row);
        }
        if !same_family {
            self.family.clear();
            put(&mut self.family, cell.family);
            self.family_deleted = None;
            self.family_versions.clear();
        }
        self.qualifier.clear();
        put(&mut self.qualifier, cell.qualifier);
        self.column_deleted = None;
        self.column_version = None;
        self.marked = self.family_deleted.is_some() || !self.family_versions.is_empty();
        (self.versions, self.last, self.started) = (0, None, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell<'a>(row: &'a str, qualifier: &'a str, timestamp: i64, kind: u8) -> Cell<'a> {
        let (row, qualifier) = (row.as_bytes(), qualifier.as_bytes());
        Cell { row, family: b"f", qualifier, timestamp, kind, value: &[], tags: &[], sequence_id: 0 }
    }

    #[test]
    fn markers_hide_what_hbase_hides() {
        let cells = [
            (cell("a", "", 50, DELETE_FAMILY), false),
            (cell("a", "", 40, DELETE_FAMILY_VERSION), false),
            (cell("a", "", 70, DELETE_FAMILY_VERSION), false),
            (cell("a", "p", 90, PUT), true),
            (cell("a", "p", 90, PUT), false),
            (cell("a", "p", 80, PUT), true),
            (cell("a", "p", 75, PUT), false), // the third version
            (cell("a", "q", 70, PUT), false),
            (cell("a", "q", 60, DELETE), false),
            (cell("a", "q", 60, PUT), false),
            (cell("a", "q", 55, PUT), true),
            (cell("a", "q", 50, PUT), false),
            (cell("a", "r", 90, DELETE_COLUMN), false),
            (cell("a", "r", 90, PUT), false),
            (cell("a", "r", 60, PUT), false),
            (cell("b", "r", 60, PUT), true),
        ];
        let mut visible = Visibility::default();
        for (i, (cell, expected)) in cells.iter().enumerate() {
            assert_eq!(visible.admits(cell, &Policy::newest(2, None)).unwrap(), *expected, "cell {i}");
        }
        let mut visible = Visibility::default();
        let policy = Policy::newest(1, Some((0, 90)));
        assert!(!visible.admits(&cell("a", "p", 90, PUT), &policy).unwrap());
        assert!(visible.admits(&cell("a", "p", 80, PUT), &policy).unwrap());
    }

    #[test]
    fn what_has_expired_goes_but_for_the_newest() {
        let policy = Policy { versions: 3, min_versions: 1, oldest: 50, ..Policy::newest(3, None) };
        let mut visible = Visibility::default();
        for (column, time, expected) in
            [("p", 60, true), ("p", 50, true), ("p", 49, false), ("q", 40, true), ("q", 39, false)]
        {
            assert_eq!(visible.admits(&cell("a", column, time, PUT), &policy).unwrap(), expected, "{time}");
        }
    }

    #[test]
    fn older_times_are_seen_past_later_markers() {
        let past = Policy { sees_past_markers: true, ..Policy::newest(9, Some((0, 80))) };
        let cells = [
            (cell("a", "", 85, DELETE_FAMILY), false),
            (cell("a", "p", 80, DELETE_COLUMN), false),
            (cell("a", "p", 70, PUT), true),
            (cell("a", "p", 60, DELETE_COLUMN), false),
            (cell("a", "p", 60, PUT), false),
        ];
        let mut visible = Visibility::default();
        for (cell, expected) in &cells {
            assert_eq!(visible.admits(cell, &past).unwrap(), *expected);
        }
    }

    #[test]
    fn one_key_is_one_cell() {
        let mut visible = Visibility::default();
        let cells = [("p", 9, DELETE), ("p", 9, DELETE), ("p", 9, PUT), ("p", 9, PUT), ("q", 9, PUT)];
        let new = cells.map(|(column, time, kind)| visible.is_new(&cell("a", column, time, kind)));
        assert_eq!(new, [true, false, true, false, true]);
    }
}
