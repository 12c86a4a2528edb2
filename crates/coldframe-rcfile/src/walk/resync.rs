//! Finds the offset at which reading continues after damage.
//!
//! A writer inserts a sync marker only every 2,000 bytes or so: small groups follow each other without a
//! marker. Hive never searches for the next group. This reader searches the bytes up to the next marker for a
//! self-consistent group ([`super::candidate`]).

use std::ops::Range;

use coldframe_core::Result;

use super::GroupWalk;
use super::candidate::HEADER_LEN;
use crate::layout::row_group::RowGroup;

/// The number of bytes that a search for a group reads first, and the maximum of one read: the next group is
/// usually near.
const FIRST_READ: u64 = 4 << 10;
const READ: u64 = 1 << 20;

impl GroupWalk {
    /// Where to continue after damage at `at`, and whether a sync marker is there; the end of the file if nothing
    /// readable follows.
    pub(crate) fn resume(&mut self, at: u64) -> Result<(u64, bool)> {
        let from = at.saturating_add(1);
        // A marker at the start of the damaged group itself is skipped.
        let marker = self.find_marker(from..self.file_len())?;
        let end = marker.unwrap_or_else(|| self.file_len());
        Ok(match self.find_group(from..end)? {
            Some(group) => (group, false),
            None => (end, marker.is_some()),
        })
    }

    /// Whether another group or a sync marker starts within the columns of `group`: some bytes of `group` are missing
    /// then.
    pub(super) fn holds_another(&mut self, group: &RowGroup) -> Result<bool> {
        let columns = group.header_offset.saturating_add(1)..group.end().saturating_sub(1);
        Ok(self.find_marker(columns.clone())?.is_some() || self.find_group(columns)?.is_some())
    }

    /// The first self-consistent group without a marker that starts in `range`.
    fn find_group(&mut self, range: Range<u64>) -> Result<Option<u64>> {
        let (mut at, mut step) = (range.start, FIRST_READ);
        while at < range.end {
            let end = at.saturating_add(step).min(self.file_len());
            let bytes = self.window.read(at..end)?;
            for (place, header) in (at..range.end).zip(bytes.windows(HEADER_LEN)) {
                if let Some(header) = self.likely_header(place, header)
                    && self.agrees(place, &header).is_some()
                {
                    return Ok(Some(place));
                }
            }
            let next = end.saturating_sub(HEADER_LEN as u64 - 1);
            if end == self.file_len() || !self.budget.spend(next.min(range.end).saturating_sub(at)) {
                break;
            }
            (at, step) = (next, READ.min(step * 2));
        }
        Ok(None)
    }
}
