//! Cells that damage surrounds, in a column without a codec.
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

use std::collections::VecDeque;
use std::ops::Range;

use coldframe_core::salvage::{Fate, Loss, Stretch};
use coldframe_core::{ErrorKind, Result};

use super::batches::{is_of_a_cell, part};
use super::{ColumnCells, DecodeGroup, take_cells};
use crate::serde::Cells;

/// The size of a disk's sector: contradictions that are this near belong to the same damage.
const NEAR: usize = 512;

/// Fewer zeros may be values.
const ZEROS: usize = 64;

/// A cell with its bytes in the column's buffer.
struct Cell {
    row: u64,
    bytes: Range<usize>,
}

impl DecodeGroup {
    /// The rows of a column whose cells are doubtful. Cells that contradict their type are not among them.
    pub(super) fn surrounded(&self, place: usize, cells: &ColumnCells) -> Result<Vec<Range<u64>>> {
        let mut cells = cells.clone();
        let (mut at, rows) = (0, self.group.key.rows);
        let (mut all, mut bad) = (Vec::new(), Vec::new());
        while at < rows {
            let taken = usize::try_from(rows - at).unwrap_or(usize::MAX).min(self.max_rows);
            let some = take_cells(&mut cells, taken, at)?;
            self.contradictions(place, &some, &mut bad)?;
            all.push(some);
            at += taken as u64;
        }
        let mut doubtful: Vec<Range<u64>> = Vec::new();
        for bytes in stretches(&bad, &cells.data) {
            for row in beside(&all, &bytes) {
                if bad.binary_search_by_key(&row, |cell| cell.row).is_ok() {
                    continue;
                }
                match doubtful.last_mut() {
                    Some(last) if last.end > row => {}
                    Some(last) if last.end == row => last.end += 1,
                    _ => doubtful.push(row..row + 1),
                }
            }
        }
        Ok(doubtful)
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
        let mut doubtful = Vec::new();
        for (place, cells) in cells.iter().enumerate() {
            if let Some(cells) = cells {
                doubtful.extend(self.surrounded(place, cells)?);
            }
        }
        doubtful.sort_by_key(|rows| rows.start);
        let (mut at, mut fates) = (0, VecDeque::new());
        for rows in doubtful {
            let start = rows.start.max(at);
            if start < rows.end {
                fates.push_back(Stretch { rows: at..start, fate: Fate::Dropped });
                fates.push_back(Stretch { rows: start..rows.end, fate: Fate::Kept });
                at = rows.end;
            }
        }
        fates.retain(|stretch| !stretch.rows.is_empty());
        Ok(fates)
    }

    /// Adds the cells that contradict their type: halves the range until they are isolated.
    fn contradictions(&self, place: usize, cells: &Cells, into: &mut Vec<Cell>) -> Result<()> {
        let rows = cells.offsets.len().saturating_sub(1);
        match self.check_cells(place, cells) {
            Err(e) if !is_of_a_cell(&e) => Err(e),
            Err(_) if rows > 1 => {
                let half = rows / 2;
                self.contradictions(place, &part(cells, 0, half), into)?;
                self.contradictions(place, &part(cells, half, rows - half), into)
            }
            // A value outside its Arrow type need not be damage.
            Err(e) if !matches!(e.kind(), ErrorKind::Corrupt(_)) => Ok(()),
            Err(_) => {
                let bytes = offset(cells, 0)..offset(cells, rows);
                into.push(Cell { row: cells.first_row, bytes });
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

fn offset(cells: &Cells, at: usize) -> usize {
    cells.offsets.get(at).and_then(|offset| usize::try_from(*offset).ok()).unwrap_or(0)
}

/// The stretches of damaged bytes that contradictions show.
fn stretches(bad: &[Cell], data: &[u8]) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    let mut begin = 0;
    for (at, cell) in bad.iter().enumerate() {
        let next = bad.get(at + 1);
        if next.is_some_and(|next| next.bytes.start <= cell.bytes.end + NEAR) {
            continue;
        }
        let first = bad.get(begin).map_or(cell.bytes.start, |first| first.bytes.start);
        let mut bytes = first..cell.bytes.end;
        if begin < at {
            // Of the cells beside them, the last or first byte.
            bytes = bytes.start.saturating_sub(1)..bytes.end.saturating_add(1).min(data.len());
        }
        let zeros = zeros_around(data, &bytes);
        all.push(bytes.start.min(zeros.start)..bytes.end.max(zeros.end));
        begin = at + 1;
    }
    all
}

/// The stretch with the zeros that begin or end in it, if these are many.
fn zeros_around(data: &[u8], bytes: &Range<usize>) -> Range<usize> {
    let is_zero = |byte: &&u8| **byte == 0;
    let many = |zeros: usize| if zeros >= ZEROS { zeros } else { 0 };
    // From the last byte of the stretch that is not zero on, and up to its first.
    let inside = data.get(bytes.clone()).unwrap_or_default();
    let last = bytes.end - inside.iter().rev().take_while(is_zero).count();
    let first = bytes.start + inside.iter().take_while(is_zero).count();
    let behind = many(data.get(last..).unwrap_or_default().iter().take_while(is_zero).count());
    let before = many(data.get(..first).unwrap_or_default().iter().rev().take_while(is_zero).count());
    first - before..last + behind
}

/// The rows whose cells have some of these bytes.
fn beside<'a>(all: &'a [Cells], bytes: &'a Range<usize>) -> impl Iterator<Item = u64> + 'a {
    all.iter().flat_map(move |cells| {
        let count = cells.offsets.len().saturating_sub(1);
        let first =
            cells.offsets.partition_point(|offset| usize::try_from(*offset).unwrap_or(0) <= bytes.start);
        let rows = first.saturating_sub(1)..count;
        let rows = rows.take_while(move |row| offset(cells, *row) < bytes.end);
        // An empty cell has no bytes that could be damaged.
        let has_bytes =
            move |row: &usize| offset(cells, *row).max(bytes.start) < offset(cells, row + 1).min(bytes.end);
        rows.filter(has_bytes).map(move |row| cells.first_row + row as u64)
    })
}
