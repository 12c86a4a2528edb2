//! Cells that damage surrounds, in columns without a codec.
//!
//! ```text
//! cells of days     | 4 | 1 | 4 | 4 | 1 | 4 |
//! bytes             | .. |0 |0 0|0 0|0 | ...     a lost sector reads as zeros
//! contradiction               x   x              four bytes that are not one number
//! ```
//!
//! Damage comes in stretches of bytes, and not each cell that it changes contradicts its type: in place of a short
//! number there is another one. Two contradictions within [`NEAR`] bytes show a stretch. Everything between them is
//! doubtful, with the cell on each side, and so are the cells of a stretch of zeros that touches a contradiction.
//!
//! Columns without a codec lie next to each other in the file, so a stretch of zeros continues in the next column, whose
//! cells may be numbers that zeros do not contradict. So do two stretches of which one ends, and the other begins, near
//! the boundary of their columns.

use std::collections::VecDeque;
use std::ops::Range;

use arrow_buffer::Buffer;
use coldframe_core::salvage::{Fate, Loss, Ranges, Stretch};
use coldframe_core::{ErrorKind, Result};

use super::batches::{is_of_a_cell, part};
use super::{ColumnCells, DecodeGroup, take_cells};
use crate::serde::Cells;

/// The size of a disk's sector: contradictions that are this near belong to the same damage.
const NEAR: u64 = 512;

/// Fewer zeros may be values.
const ZEROS: u64 = 64;

/// A column as it lies in the file.
struct StoredColumn {
    /// The index among the requested columns.
    place: usize,
    /// The range of the column in the file.
    range: Range<u64>,
    data: Buffer,
    /// All cells.
    cells: Vec<Cells>,
    /// The cells that contradict their type, in order.
    bad: Vec<BadCell>,
}

/// A cell that contradicts its type.
struct BadCell {
    row: u64,
    /// The range of the cell in the file.
    bytes: Range<u64>,
}

/// Damaged bytes that contradictions show.
struct DamagedBytes {
    range: Range<u64>,
    /// Whether more than one contradiction shows them.
    several: bool,
}

impl DecodeGroup {
    /// The rows of each column whose cells are doubtful. Cells that contradict their type are not among them.
    pub(super) fn surrounded(&self, cells: &[Option<ColumnCells>]) -> Result<Vec<(usize, Range<u64>)>> {
        let columns = self.stored_columns(cells)?;
        let mut doubtful = Vec::new();
        for damaged in &damaged_bytes(&columns) {
            for column in columns.iter().filter(|column| overlap(&column.range, damaged)) {
                let of_column = rows_of(column, damaged).filter(|row| !column.is_bad(*row));
                doubtful.extend(of_column.map(|row| (column.place, row)));
            }
        }
        doubtful.sort_unstable();
        let mut joined: Vec<(usize, Range<u64>)> = Vec::new();
        for (place, row) in doubtful {
            match joined.last_mut() {
                Some((last, rows)) if *last == place && rows.end >= row => rows.end = row + 1,
                _ => joined.push((place, row..row + 1)),
            }
        }
        Ok(joined)
    }

    /// The readable columns in the order of the file, with all of their contradictions.
    fn stored_columns(&self, cells: &[Option<ColumnCells>]) -> Result<Vec<StoredColumn>> {
        let ranges: Vec<Range<u64>> = self.group.column_ranges().collect();
        let rows = self.group.key.rows;
        let mut columns = Vec::new();
        for (place, (cells, column)) in cells.iter().zip(self.columns()).enumerate() {
            let range = column.in_file.and_then(|i| ranges.get(i));
            let (Some(cells), Some(range)) = (cells, range) else { continue };
            let mut cells = cells.clone();
            let (mut at, mut all, mut bad) = (0, Vec::new(), Vec::new());
            while at < rows {
                let taken = usize::try_from(rows - at).unwrap_or(usize::MAX).min(self.max_rows);
                let some = take_cells(&mut cells, taken, at)?;
                self.contradictions(place, &some, range.start, &mut bad)?;
                all.push(some);
                at += taken as u64;
            }
            columns.push(StoredColumn { place, range: range.clone(), data: cells.data, cells: all, bad });
        }
        columns.sort_by_key(|column| column.range.start);
        Ok(columns)
    }

    /// The loss of doubtful rows.
    pub(super) fn doubtful_cells(&self, place: usize, rows: Range<u64>) -> Loss {
        let column = self.columns().get(place).map_or_else(String::new, super::ScanColumn::title);
        let structure = format!("{}: {column}: rows {} to {}: cell", self.title(), rows.start, rows.end - 1);
        let reason =
            "expected cells apart from damage, found cells between others that contradict their type";
        Loss { rows, bytes: self.bytes(), structure, reason: reason.to_owned() }
    }

    /// The fates of the rows of a group of which only the doubtful cells are read.
    pub(super) fn doubtful_only(&self, cells: &[Option<ColumnCells>]) -> Result<VecDeque<Stretch>> {
        let mut doubtful = Ranges::default();
        for (_, rows) in self.surrounded(cells)? {
            doubtful.add(rows);
        }
        let (mut at, mut fates) = (0, VecDeque::new());
        for rows in doubtful.iter() {
            fates.push_back(Stretch { rows: at..rows.start, fate: Fate::Dropped });
            at = rows.end;
            fates.push_back(Stretch { rows, fate: Fate::Kept });
        }
        fates.retain(|stretch| !stretch.rows.is_empty());
        Ok(fates)
    }

    /// Adds the cells that contradict their type: halves the range until they are isolated. `start`: where the column
    /// begins in the file.
    fn contradictions(&self, place: usize, cells: &Cells, start: u64, into: &mut Vec<BadCell>) -> Result<()> {
        let rows = cells.offsets.len().saturating_sub(1);
        match self.check_cells(place, cells) {
            Err(e) if !is_of_a_cell(&e) => Err(e),
            Err(_) if rows > 1 => {
                let half = rows / 2;
                self.contradictions(place, &part(cells, 0, half), start, into)?;
                self.contradictions(place, &part(cells, half, rows - half), start, into)
            }
            // A value outside its Arrow type need not be damage.
            Err(e) if !matches!(e.kind(), ErrorKind::Corrupt(_)) => Ok(()),
            Err(_) => {
                let bytes = start + offset(cells, 0)..start + offset(cells, rows);
                into.push(BadCell { row: cells.first_row, bytes });
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

impl StoredColumn {
    fn is_bad(&self, row: u64) -> bool {
        self.bad.binary_search_by_key(&row, |cell| cell.row).is_ok()
    }
}

fn offset(cells: &Cells, at: usize) -> u64 {
    cells.offsets.get(at).and_then(|offset| u64::try_from(*offset).ok()).unwrap_or(0)
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The damaged bytes that the contradictions of all columns show.
fn damaged_bytes(columns: &[StoredColumn]) -> Vec<Range<u64>> {
    let mut all: Vec<DamagedBytes> = Vec::new();
    let mut last_column: Option<&Range<u64>> = None;
    for column in columns {
        let mut shown = of_column(column);
        // Damage of two columns is one if it reaches their common boundary from both sides.
        let touches = last_column.is_some_and(|last| last.end == column.range.start);
        if let (true, Some(last), Some(first)) = (touches, all.last_mut(), shown.first_mut())
            && last.several
            && first.several
            && first.range.start.saturating_sub(last.range.end) <= NEAR
        {
            last.range.end = first.range.start;
        }
        all.append(&mut shown);
        last_column = Some(&column.range);
    }
    all.into_iter().map(|damaged| zeros_around(columns, damaged.range)).collect()
}

/// The damaged bytes that the contradictions of one column show.
fn of_column(column: &StoredColumn) -> Vec<DamagedBytes> {
    let mut all = Vec::new();
    let mut begin = 0;
    for (at, cell) in column.bad.iter().enumerate() {
        let next = column.bad.get(at + 1);
        if next.is_some_and(|next| next.bytes.start <= cell.bytes.end + NEAR) {
            continue;
        }
        let first = column.bad.get(begin).map_or(cell.bytes.start, |first| first.bytes.start);
        let mut range = first..cell.bytes.end;
        let several = begin < at;
        if several {
            // Of the cells beside them, the last or first byte.
            range = range.start.saturating_sub(1).max(column.range.start)
                ..range.end.saturating_add(1).min(column.range.end);
        }
        all.push(DamagedBytes { range, several });
        begin = at + 1;
    }
    all
}

/// The damaged bytes with the stretch of zeros that begins or ends in them, if it is long.
fn zeros_around(columns: &[StoredColumn], damaged: Range<u64>) -> Range<u64> {
    // From the last damaged byte that is not zero on, and up to the first.
    let last = damaged.end - zeros_before(columns, damaged.end).min(damaged.end - damaged.start);
    let first = damaged.start + zeros_behind(columns, damaged.start).min(damaged.end - damaged.start);
    let many = |zeros: u64| if zeros >= ZEROS { zeros } else { 0 };
    let behind = many(zeros_behind(columns, last));
    let before = many(zeros_before(columns, first));
    damaged.start.min(first - before)..damaged.end.max(last + behind)
}

/// How many zeros there are from the file's offset `at` on, in columns that follow each other.
fn zeros_behind(columns: &[StoredColumn], at: u64) -> u64 {
    let mut end = at;
    for column in columns.iter().filter(|column| column.range.end > at) {
        let from = end.checked_sub(column.range.start).and_then(|from| usize::try_from(from).ok());
        let bytes = from.and_then(|from| column.data.get(from..)).unwrap_or_default();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        end += zeros as u64;
        if end != column.range.end {
            break;
        }
    }
    end - at
}

/// How many zeros there are in front of the file's offset `at`, in columns that follow each other.
fn zeros_before(columns: &[StoredColumn], at: u64) -> u64 {
    let mut start = at;
    for column in columns.iter().rev().filter(|column| column.range.start < at) {
        let to = start.checked_sub(column.range.start).and_then(|to| usize::try_from(to).ok());
        let bytes = to.and_then(|to| column.data.get(..to)).unwrap_or_default();
        let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
        start -= zeros as u64;
        if start != column.range.start {
            break;
        }
    }
    at - start
}

/// The rows of a column whose cells have some of these bytes.
fn rows_of<'a>(column: &'a StoredColumn, bytes: &'a Range<u64>) -> impl Iterator<Item = u64> + 'a {
    let from = bytes.start.saturating_sub(column.range.start);
    let to = bytes.end.saturating_sub(column.range.start);
    column.cells.iter().flat_map(move |cells| {
        let count = cells.offsets.len().saturating_sub(1);
        let first = cells.offsets.partition_point(|offset| u64::try_from(*offset).unwrap_or(0) <= from);
        let rows = (first.saturating_sub(1)..count).take_while(move |row| offset(cells, *row) < to);
        // An empty cell has no bytes that could be damaged.
        let has_bytes = move |row: &usize| offset(cells, *row).max(from) < offset(cells, row + 1).min(to);
        rows.filter(has_bytes).map(move |row| cells.first_row + row as u64)
    })
}
