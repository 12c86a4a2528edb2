//! The cells of a compressed log, in memory, as those of a plain log: they cannot be read from the middle of the log.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bytes::Bytes;
use coldframe_core::{Error, Limits, ReadAt, Result};

use crate::layout::log::{Edit, LogReader};
use crate::root::Root;

/// Cells of edits, by the offset of the edit ([`Edit::at`]).
#[derive(Debug)]
pub(crate) struct PlainCells {
    cells: BTreeMap<u64, Bytes>,
    held: u64,
    file_len: u64,
    limits: Limits,
}

impl PlainCells {
    pub(crate) fn new(limits: Limits, file_len: u64) -> Self {
        Self { cells: BTreeMap::new(), held: 0, file_len, limits }
    }

    /// Reads the wanted edits of a log.
    pub(crate) fn of_log(root: &Root, limits: Limits, path: &str, wanted: &BTreeSet<u64>) -> Result<Self> {
        let source = root.open(path)?;
        let mut kept = Self::new(limits, source.len());
        let mut log = LogReader::open(source, limits, path)?;
        while kept.cells.len() < wanted.len() {
            let Some((_, edit)) = log.next_edit()? else {
                let what = "expected the edits of the plan, found fewer: the log has changed";
                return Err(Error::corrupt(what).in_file(path));
            };
            if edit.len > 0 && wanted.contains(&edit.at) {
                kept.add(&edit, log.take_cells())?;
            }
        }
        Ok(kept)
    }

    pub(crate) fn add(&mut self, edit: &Edit, cells: Bytes) -> Result<()> {
        self.held = self.held.saturating_add(edit.len);
        self.limits.block("edits of a compressed write-ahead log", self.held)?;
        self.cells.insert(edit.at, cells);
        Ok(())
    }
}

impl ReadAt for PlainCells {
    fn len(&self) -> u64 {
        self.file_len
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let read = |range: &Range<u64>| {
            let cells =
                self.cells.get(&range.start).filter(|cells| cells.len() as u64 == range.end - range.start);
            cells
                .cloned()
                .ok_or_else(|| Error::invalid(format!("expected the cells of an edit at {}", range.start)))
        };
        ranges.iter().map(read).collect()
    }
}
