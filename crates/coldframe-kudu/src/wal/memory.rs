//! The contents of a server's memory: new rows by key, and changes to rows of rowsets.
//!
//! Both are entries in the form of delta files. A new row is stored as a reinsertion with all its cells.

use std::ops::Range;

use coldframe_cfile::layout::delta::{ChangeType, Delta};

/// Entries ordered by row, and within a row in the order in which they apply.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    all: Vec<StoredEntry>,
    cells: Vec<u8>,
}

#[derive(Clone, Debug)]
struct StoredEntry {
    row: u64,
    time: u64,
    kind: ChangeType,
    cells: Range<usize>,
}

impl Entries {
    /// Adds an entry after the other entries of its row.
    pub(crate) fn push(&mut self, row: u64, time: u64, kind: ChangeType, cells: &[u8]) {
        let start = self.cells.len();
        self.cells.extend_from_slice(cells);
        self.all.push(StoredEntry { row, time, kind, cells: start..self.cells.len() });
    }

    /// Renumbers rows and sorts by the new numbers; rows without a new number are dropped. Must be called
    /// once, after the last entry.
    pub(crate) fn number(&mut self, number: impl Fn(u64) -> Option<u64>) {
        self.all.retain_mut(|entry| match number(entry.row) {
            Some(row) => {
                entry.row = row;
                true
            }
            None => false,
        });
        self.all.sort_by_key(|entry| entry.row);
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Approximately how much memory the entries take.
    pub(crate) fn memory(&self) -> u64 {
        self.bytes().saturating_add((self.all.len() as u64).saturating_mul(size_of::<StoredEntry>() as u64))
    }

    /// The bytes of all cells.
    pub(crate) fn bytes(&self) -> u64 {
        self.cells.len() as u64
    }

    /// The entries of a range of rows.
    pub(crate) fn of(&self, rows: &Range<u64>) -> impl ExactSizeIterator<Item = Delta<'_>> {
        let from = self.all.partition_point(|e| e.row < rows.start);
        let to = self.all.partition_point(|e| e.row < rows.end).max(from);
        self.all
            .get(from..to)
            .unwrap_or_default()
            .iter()
            .map(|e| Delta::new(e.row, e.time, e.kind, self.cells.get(e.cells.clone()).unwrap_or_default()))
    }
}
