//! Where reading goes on behind damage.
//!
//! A writer puts a sync marker before a group only every 2,000 bytes or so: small groups follow each other without.
//! Hive never looks for the next one. Here the bytes up to the next marker are searched for a group that agrees with
//! itself ([`super::candidate`]).

use std::ops::Range;

use coldframe_core::Result;

use super::Walk;
use super::candidate::HEADER_LEN;
use crate::layout::row_group::RowGroup;

/// How much a search for a group reads at first, and at most at a time: the next one is mostly near.
const FIRST_READ: u64 = 4 << 10;
const READ: u64 = 1 << 20;

impl Walk {
    /// Where to go on behind damage at `at`, and whether a sync marker stands there; the end of the file if nothing
    /// readable follows.
    pub(crate) fn resume(&mut self, at: u64) -> Result<(u64, bool)> {
        let from = at.saturating_add(1);
        // A marker that the damaged group itself begins with is passed over.
        let marker = self.find_marker(from..self.file_len())?;
        let end = marker.unwrap_or_else(|| self.file_len());
        Ok(match self.find_group(from..end)? {
            Some(group) => (group, false),
            None => (end, marker.is_some()),
        })
    }

    /// Where within the columns of `group` another group or a sync marker starts, although a group ends there by its
    /// key: some bytes of it are missing. Only looked for where nothing readable follows it.
    pub(crate) fn starts_within(&mut self, group: &RowGroup) -> Result<Option<u64>> {
        if self.is_boundary(group.end()) {
            return Ok(None);
        }
        let columns = group.header_offset.saturating_add(1)..group.end().saturating_sub(1);
        if let Some(marker) = self.find_marker(columns.clone())? {
            return Ok(Some(marker));
        }
        self.find_group(columns)
    }

    /// Whether what stands at `at` can follow a row group: the end of the file, a sync marker, a group.
    fn is_boundary(&mut self, at: u64) -> bool {
        at == self.file_len() || self.is_marker(at) || self.is_group(at)
    }

    /// The first group that starts in `range`, without a marker, and agrees with itself.
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
