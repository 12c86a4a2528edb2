//! Decides which cells of a row a reader of HBase sees: applies delete markers, and counts versions.
//!
//! ```text
//! order in a row      | family | qualifier | timestamp, newest first | type, deletes first | sequence id, newest first |
//! DeleteFamily        | hides its family's cells up to its time; has an empty qualifier, so it precedes them
//! DeleteFamilyVersion | hides its family's cells of exactly its time
//! DeleteColumn        | hides its column's cells up to its time
//! Delete              | hides its column's cell of exactly its time
//! ```
//!
//! A marker also hides cells that were put later with a timestamp that it covers, as in HBase until a major
//! compaction. The [`Policy`] of a family (how many versions are kept and for how long) comes from its table;
//! a single file has none. HBase: `ScanDeleteTracker`, `ExplicitColumnTracker`, `NormalUserScanQueryMatcher`.

use std::collections::BTreeSet;

use coldframe_core::{Error, Result};

use crate::layout::cell::{Cell, Coordinates};
use crate::layout::encoding::put;
use crate::layout::kinds::{DELETE, DELETE_COLUMN, DELETE_FAMILY, DELETE_FAMILY_VERSION, PUT};

/// The maximum number of deleted timestamps of a family in one row, which take about 24 MiB of memory.
const MAX_MARKERS: usize = 1 << 20;

/// Which cells of a family are visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The maximum number of versions of a column, newest first.
    pub versions: u32,
    /// How many versions of a column the table keeps: a reader of all versions sees this many.
    pub kept: u32,
    /// How many of the newest versions are visible even if they are older than `oldest`.
    pub min_versions: u32,
    /// The oldest timestamp that has not expired.
    pub oldest: i64,
    /// The range of timestamps, whose end is excluded. Cells with other timestamps are skipped before
    /// versions are counted.
    pub time_range: Option<(i64, i64)>,
    /// Whether markers at or after the end of the time range hide nothing (`KEEP_DELETED_CELLS`).
    pub sees_past_markers: bool,
}

impl Policy {
    /// The `versions` newest versions of each column, however old.
    pub const fn newest(versions: u32, time_range: Option<(i64, i64)>) -> Self {
        Self {
            versions,
            kept: u32::MAX,
            min_versions: 0,
            oldest: i64::MIN,
            time_range,
            sees_past_markers: false,
        }
    }

    /// Whether a marker with this timestamp hides cells.
    #[inline]
    pub fn applies_marker(&self, time: i64) -> bool {
        !self.sees_past_markers || self.time_range.is_none_or(|(_, end)| time < end)
    }

    /// Whether the time range includes this timestamp.
    #[inline]
    pub fn includes_time(&self, time: i64) -> bool {
        self.time_range.is_none_or(|(start, end)| (start..end).contains(&time))
    }
}

/// The first part of its coordinates in which a cell differs from the previous cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The row differs.
    Row,
    /// The family differs, in the same row.
    Family,
    /// The qualifier differs, in the same family.
    Column,
    /// No part differs: the cell is another version of the same column.
    Version,
}

impl Step {
    /// Compares a cell with the coordinates of the previous cell.
    #[inline(always)]
    pub fn between(before: &Coordinates<'_>, cell: &Cell<'_>) -> Self {
        if !is_same(before.row, cell.row) {
            Self::Row
        } else if !is_same(before.family, cell.family) {
            Self::Family
        } else if !is_same(before.qualifier, cell.qualifier) {
            Self::Column
        } else {
            Self::Version
        }
    }
}

/// Whether two rows, families or qualifiers are equal. Since they are short, two overlapping comparisons of
/// fixed length are faster than a call with a variable length.
#[inline(always)]
pub(crate) fn is_same(a: &[u8], b: &[u8]) -> bool {
    fn twice<const N: usize>(a: &[u8], b: &[u8]) -> bool {
        a.first_chunk::<N>() == b.first_chunk() && a.last_chunk::<N>() == b.last_chunk()
    }
    a.len() == b.len()
        && match a.len() {
            0 => true,
            1 => a.first() == b.first(),
            2..=3 => twice::<2>(a, b),
            4..=7 => twice::<4>(a, b),
            8..=15 => twice::<8>(a, b),
            16..=32 => twice::<16>(a, b),
            _ => a == b,
        }
}

/// Decides which cells are visible. It must see the cells of a file, or of a merge of files, in order.
#[derive(Debug, Default)]
pub struct Visibility {
    row: Vec<u8>,
    family: Vec<u8>,
    qualifier: Vec<u8>,
    started: bool,
    /// Whether any marker may hide a cell of the column.
    marked: bool,
    /// The newest timestamp up to which the family is deleted.
    family_deleted: Option<i64>,
    /// Timestamps at which single versions of the family are deleted.
    family_versions: BTreeSet<i64>,
    column_deleted: Option<i64>,
    /// The timestamp of the last single-version marker of the column; the cell that this marker hides comes
    /// next.
    column_version: Option<i64>,
    /// The number of versions of the column so far, and the timestamp and type of the last version.
    versions: u32,
    last: Option<(i64, u8)>,
    /// Visible cells that were skipped because they were not requested.
    passed: Passed,
}

/// How many visible cells were skipped because they were not requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Versions that a reader of all versions would see.
    pub versions: u64,
    /// Cells outside the time range that no marker hides.
    pub times: u64,
}

impl Visibility {
    /// Whether a cell is visible to a reader with `policy`.
    #[inline]
    pub fn admits(&mut self, cell: &Cell<'_>, policy: &Policy) -> Result<bool> {
        self.enter(cell);
        self.judge(cell, policy)
    }

    /// Like [`Self::admits`], for a caller that knows how the cell differs from the previous cell. Does not
    /// copy the cell's names, so the caller must [`settle`](Self::settle) the last cell before it calls
    /// anything else.
    #[inline(always)]
    pub fn admits_next(&mut self, step: Step, cell: &Cell<'_>, policy: &Policy) -> Result<bool> {
        self.forget(step);
        self.judge(cell, policy)
    }

    /// How a cell differs from the [`settled`](Self::settle) cell or, if there is none, from the previous
    /// cell.
    pub fn step(&self, cell: &Cell<'_>) -> Step {
        if !self.started || !is_same(&self.row, cell.row) {
            Step::Row
        } else if !is_same(&self.family, cell.family) {
            Step::Family
        } else if !is_same(&self.qualifier, cell.qualifier) {
            Step::Column
        } else {
            Step::Version
        }
    }

    /// Copies the row and column of the last cell.
    pub fn settle(&mut self, cell: &Coordinates<'_>) {
        for (held, of) in [
            (&mut self.row, cell.row),
            (&mut self.family, cell.family),
            (&mut self.qualifier, cell.qualifier),
        ] {
            keep(held, of);
        }
        self.started = true;
    }

    #[inline(always)]
    fn judge(&mut self, cell: &Cell<'_>, policy: &Policy) -> Result<bool> {
        if cell.kind == PUT {
            return Ok(self.admits_put(cell.timestamp, policy));
        }
        if policy.applies_marker(cell.timestamp) {
            self.mark(cell.timestamp, cell.kind)?;
        }
        Ok(false)
    }

    /// Whether a raw scan, which also returns markers, sees a cell; otherwise like
    /// [`admits_next`](Self::admits_next). If a value is put twice with the same timestamp, the two count as
    /// one cell, and the later put comes first. Only puts count as versions, markers do not. After the last
    /// version, no cell of the column is visible, not even a marker.
    #[inline]
    pub fn admits_raw(&mut self, step: Step, cell: &Cell<'_>, policy: &Policy) -> bool {
        self.forget(step);
        if !policy.includes_time(cell.timestamp) {
            self.passed.times += 1;
            return false;
        }
        let last = self.last.replace((cell.timestamp, cell.kind));
        if last == self.last {
            return false;
        }
        let is_marker = (DELETE..=DELETE_FAMILY).contains(&cell.kind);
        self.versions = self.versions.saturating_add(u32::from(!is_marker));
        let is_seen = self.versions <= policy.versions;
        self.passed.versions += u64::from(!is_seen);
        is_seen
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

    /// Records a timestamp at which a version of the family is deleted.
    fn delete_family_version(&mut self, time: i64) -> Result<()> {
        if self.family_versions.len() >= MAX_MARKERS && !self.family_versions.contains(&time) {
            let message = format!("more than {MAX_MARKERS} deleted versions of a family in one row");
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
        if !policy.includes_time(time) {
            self.passed.times += 1;
            return false;
        }
        // The same cell written twice counts as one version; the later write comes first.
        let version = Some((time, PUT));
        if self.last == version {
            return false;
        }
        self.last = version;
        self.versions = self.versions.saturating_add(1);
        let is_old = time < policy.oldest && self.versions > policy.min_versions;
        if self.versions > policy.versions {
            self.passed.versions += u64::from(!is_old && self.versions <= policy.kept);
            return false;
        }
        !is_old
    }

    /// Returns the number of skipped cells since the last call.
    pub fn take_passed(&mut self) -> Passed {
        std::mem::take(&mut self.passed)
    }

    /// Moves to a cell.
    #[inline]
    fn enter(&mut self, cell: &Cell<'_>) {
        let step = self.step(cell);
        if step == Step::Version {
            return;
        }
        if step == Step::Row {
            keep(&mut self.row, cell.row);
        }
        if step != Step::Column {
            keep(&mut self.family, cell.family);
        }
        keep(&mut self.qualifier, cell.qualifier);
        self.started = true;
        self.forget(step);
    }

    /// Forgets what applies only to the row, family or column that has ended.
    #[inline(always)]
    fn forget(&mut self, step: Step) {
        if step == Step::Version {
            return;
        }
        (self.versions, self.last) = (0, None);
        if self.marked {
            self.forget_markers(step);
        }
    }

    fn forget_markers(&mut self, step: Step) {
        if step != Step::Column {
            self.family_deleted = None;
            self.family_versions.clear();
        }
        self.column_deleted = None;
        self.column_version = None;
        self.marked = self.family_deleted.is_some() || !self.family_versions.is_empty();
    }
}

/// Replaces the kept row, family or qualifier by a copy of this value.
#[inline(always)]
fn keep(held: &mut Vec<u8>, of: &[u8]) {
    held.clear();
    put(held, of);
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
    fn expired_versions_are_hidden_except_the_newest() {
        let policy = Policy { versions: 3, min_versions: 1, oldest: 50, ..Policy::newest(3, None) };
        let mut visible = Visibility::default();
        for (column, time, expected) in
            [("p", 60, true), ("p", 50, true), ("p", 49, false), ("q", 40, true), ("q", 39, false)]
        {
            assert_eq!(visible.admits(&cell("a", column, time, PUT), &policy).unwrap(), expected, "{time}");
        }
    }

    #[test]
    fn cells_in_an_older_time_range_are_seen_despite_later_markers() {
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
    fn repeated_keys_are_one_cell() {
        let mut visible = Visibility::default();
        let cells = [("p", 9, DELETE), ("p", 9, DELETE), ("p", 9, PUT), ("p", 9, PUT), ("q", 9, PUT)];
        let new = cells.map(|(column, time, kind)| {
            let cell = cell("a", column, time, kind);
            let new = visible.admits_raw(visible.step(&cell), &cell, &Policy::newest(u32::MAX, None));
            visible.settle(&cell.coordinates());
            new
        });
        assert_eq!(new, [true, false, true, false, true]);
    }

    #[test]
    fn in_raw_scans_only_puts_are_versions() {
        let mut visible = Visibility::default();
        let policy = Policy::newest(1, None);
        let cells = [
            ("p", 9, DELETE),
            ("p", 9, PUT),
            ("p", 8, DELETE),
            ("p", 7, PUT),
            ("p", 6, DELETE),
            ("q", 9, PUT),
        ];
        let seen = cells.map(|(column, time, kind)| {
            let cell = cell("a", column, time, kind);
            let seen = visible.admits_raw(visible.step(&cell), &cell, &policy);
            visible.settle(&cell.coordinates());
            seen
        });
        assert_eq!(seen, [true, true, true, false, false, true]);
        assert_eq!(visible.take_passed(), Passed { versions: 2, times: 0 });
    }

    #[test]
    fn skipped_visible_cells_are_counted() {
        let mut visible = Visibility::default();
        // Two of three versions are kept; the version at 50 has expired.
        let policy = Policy { kept: 2, oldest: 60, ..Policy::newest(1, Some((0, 95))) };
        let times = [99, 90, 90, 80, 70, 50];
        let seen = times.map(|time| visible.admits(&cell("a", "p", time, PUT), &policy).unwrap());
        assert_eq!(seen, [false, true, false, false, false, false]);
        assert_eq!(visible.take_passed(), Passed { versions: 1, times: 1 });
        let deleted = [cell("b", "p", 80, DELETE_COLUMN), cell("b", "p", 80, PUT), cell("b", "p", 70, PUT)];
        assert!(deleted.iter().all(|cell| !visible.admits(cell, &policy).unwrap()));
        assert_eq!(visible.take_passed(), Passed::default());
    }

    #[test]
    fn names_of_all_lengths_are_compared() {
        for len in 0..70_usize {
            let name = vec![7; len];
            assert!(is_same(&name, &name.clone()));
            for at in 0..len {
                let mut other = name.clone();
                other[at] = 8;
                assert!(!is_same(&name, &other), "{len} {at}");
            }
            assert!(!is_same(&name, &[&name[..], &[7]].concat()), "{len}");
        }
        let steps =
            [("a", "p"), ("b", "p"), ("b", "q"), ("b", "q")].map(|(row, column)| cell(row, column, 1, PUT));
        let between = |i: usize| Step::between(&steps[i - 1].coordinates(), &steps[i]);
        assert_eq!([between(1), between(2), between(3)], [Step::Row, Step::Column, Step::Version]);
    }

    /// `admits_next`, which gets the difference to the previous cell, agrees with `admits`, which keeps the cell's names.
    #[test]
    fn steps_and_kept_names_give_the_same_result() {
        let mut cells = Vec::new();
        for row in ["a", "ab", "b"] {
            for (column, kinds) in
                [("", [DELETE_FAMILY_VERSION, PUT]), ("p", [DELETE_COLUMN, PUT]), ("q", [PUT, PUT])]
            {
                for time in [9, 8, 8, 7] {
                    cells.extend(kinds.map(|kind| cell(row, column, time, kind)));
                }
            }
        }
        let policy = Policy::newest(2, None);
        for skip in 0..4 {
            let (mut kept, mut stepped) = (Visibility::default(), Visibility::default());
            let mut before: Option<Coordinates<'_>> = None;
            for (i, cell) in cells.iter().enumerate() {
                let step = before.map_or_else(|| stepped.step(cell), |before| Step::between(&before, cell));
                let seen = stepped.admits_next(step, cell, &policy).unwrap();
                assert_eq!(kept.admits(cell, &policy).unwrap(), seen, "{i}");
                before = Some(cell.coordinates());
                if i % 4 == skip {
                    stepped.settle(&cell.coordinates());
                    before = None;
                }
            }
        }
    }
}
