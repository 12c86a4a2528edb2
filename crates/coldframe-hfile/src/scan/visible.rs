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
//! HBase: `ScanDeleteTracker`, `ExplicitColumnTracker`.

use std::collections::BTreeSet;

use coldframe_core::{Error, Result};

use crate::layout::cell::Cell;

const PUT: u8 = 4;
const DELETE: u8 = 8;
const DELETE_FAMILY_VERSION: u8 = 10;
const DELETE_COLUMN: u8 = 12;
const DELETE_FAMILY: u8 = 14;

/// Most times of deleted versions that are kept for a family in one row: some 24 MiB.
const MOST_MARKERS: usize = 1 << 20;

/// Follows the cells of a file in its order.
#[derive(Debug, Default)]
pub struct Visibility {
    row: Vec<u8>,
    family: Vec<u8>,
    qualifier: Vec<u8>,
    started: bool,
    /// The newest time that the family is deleted at.
    family_deleted: Option<i64>,
    /// Times at which versions of the family are deleted.
    family_versions: BTreeSet<i64>,
    column_deleted: Option<i64>,
    /// The time of the last version of the column that is deleted: what it hides follows it.
    column_version: Option<i64>,
    /// Versions of the column seen so far, and the time of the last one.
    versions: u32,
    last: Option<i64>,
}

impl Visibility {
    /// Whether a cell is one of the `most` newest visible versions of its column. Cells outside `time_range` (start
    /// inclusive, end exclusive) are none.
    pub fn admits(&mut self, cell: &Cell<'_>, most: u32, time_range: Option<(i64, i64)>) -> Result<bool> {
        self.enter(cell);
        let time = cell.timestamp;
        match cell.kind {
            DELETE_FAMILY => self.family_deleted = self.family_deleted.max(Some(time)),
            DELETE_FAMILY_VERSION => self.delete_family_version(time)?,
            DELETE_COLUMN => self.column_deleted = self.column_deleted.max(Some(time)),
            DELETE => self.column_version = Some(time),
            PUT => return Ok(self.admits_put(time, most, time_range)),
            _ => {}
        }
        Ok(false)
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

    fn admits_put(&mut self, time: i64, most: u32, time_range: Option<(i64, i64)>) -> bool {
        let deleted = self.family_deleted.is_some_and(|t| time <= t)
            || self.column_deleted.is_some_and(|t| time <= t)
            || self.family_versions.contains(&time)
            || self.column_version == Some(time)
            || time_range.is_some_and(|(start, end)| time < start || time >= end);
        // The same cell written twice is one version: the later writing comes first.
        if deleted || self.versions >= most || self.last == Some(time) {
            return false;
        }
        self.versions += 1;
        self.last = Some(time);
        true
    }

    /// Forgets what does not reach beyond a row, a family, a column.
    fn enter(&mut self, cell: &Cell<'_>) {
        let same_row = self.started && self.row == cell.row;
        let same_family = same_row && self.family == cell.family;
        if same_family && self.qualifier == cell.qualifier {
            return;
        }
        if !same_row {
            self.row.clear();
            self.row.extend_from_slice(cell.row);
        }
        if !same_family {
            self.family.clear();
            self.family.extend_from_slice(cell.family);
            self.family_deleted = None;
            self.family_versions.clear();
        }
        self.qualifier.clear();
        self.qualifier.extend_from_slice(cell.qualifier);
        self.column_deleted = None;
        self.column_version = None;
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
            assert_eq!(visible.admits(cell, 2, None).unwrap(), *expected, "cell {i}");
        }
        let mut visible = Visibility::default();
        assert!(!visible.admits(&cell("a", "p", 90, PUT), 1, Some((0, 90))).unwrap());
        assert!(visible.admits(&cell("a", "p", 80, PUT), 1, Some((0, 90))).unwrap());
    }
}
