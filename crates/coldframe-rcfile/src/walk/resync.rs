//! Where reading goes on behind damage.
//!
//! A writer puts a sync marker before a group only every 2,000 bytes or so: small groups follow each other without.
//! Hive never looks for the next one. Here the bytes up to the next marker are searched for a group that agrees with
//! itself, which a record header makes cheap and sure:
//!
//! ```text
//! record length - key length = bytes of all columns, by the key
//! key length                 = length of the key, as parsed or decompressed
//! rows                       = cells of each column
//! ```

use std::ops::Range;

use coldframe_core::Result;

use super::{SEARCH, Walk};
use crate::layout::key::count_cells;
use crate::layout::row_group::{RecordHeader, RowGroup};

/// Length of a record header.
const HEADER_LEN: usize = 12;

/// How many bytes the searches of one walk may look at, beside four times those of the file: hostile bytes may look
/// like a group at every place.
const BUDGET: u64 = 64 << 20;

/// What is left of it.
pub(crate) struct Budget(u64);

impl Budget {
    pub(crate) fn new(file_len: u64) -> Self {
        Self(BUDGET.saturating_add(file_len.saturating_mul(4)))
    }

    fn spend(&mut self, bytes: u64) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

impl Walk {
    /// Where to go on behind damage at `at`, and whether a sync marker stands there; the end of the file if nothing
    /// readable follows.
    pub(crate) fn resume(&mut self, at: u64) -> Result<(u64, bool)> {
        let from = at.saturating_add(1);
        // A marker that the damaged group itself begins with is passed over.
        let marker = self.find_sync(from..self.file_len())?;
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
        if let Some(marker) = self.find_sync(columns.clone())? {
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
        let mut at = range.start;
        while at < range.end {
            let end = at.saturating_add(SEARCH).min(self.file_len());
            if !self.budget.spend(end.min(range.end).saturating_sub(at)) {
                return Ok(None);
            }
            let bytes = self.read_bytes(at..end)?;
            for (place, header) in (at..range.end).zip(bytes.windows(HEADER_LEN)) {
                if self.may_be_header(place, header) && self.is_group(place) {
                    return Ok(Some(place));
                }
            }
            if end == self.file_len() {
                break;
            }
            at = end - (HEADER_LEN as u64 - 1);
        }
        Ok(None)
    }

    /// Whether the three lengths at `place` can be true.
    fn may_be_header(&self, place: u64, bytes: &[u8]) -> bool {
        let Some(header) = RecordHeader::parse(bytes) else { return false };
        let (Ok(key_len), Ok(disk_len)) = (u64::try_from(header.key_len), u64::try_from(header.key_disk_len))
        else {
            return false;
        };
        let Ok(columns) = u64::try_from(i64::from(header.record_len) - i64::from(header.key_len)) else {
            return false;
        };
        let end = place + HEADER_LEN as u64 + disk_len + columns;
        let plain = self.shape().codec.is_none();
        end <= self.file_len() && key_len >= self.shape().least_key_len() && (!plain || key_len == disk_len)
    }

    /// Whether a group that agrees with itself starts at `at`.
    fn is_group(&mut self, at: u64) -> bool {
        let Ok(group) = self.read_group(at) else { return false };
        let cost = group.key.len as u64 + (group.key_bytes.end - group.key_bytes.start);
        self.budget.spend(cost) && agrees(&group)
    }
}

/// Whether a group's header and key say the same.
fn agrees(group: &RowGroup) -> bool {
    let (header, key) = (&group.header, &group.key);
    let key_len = u64::try_from(header.key_len).ok();
    let record_len = u64::try_from(header.record_len).ok();
    key.rows > 0
        && key_len == Some(key.len as u64)
        && record_len == (key.len as u64).checked_add(key.disk_len())
        && key.columns.iter().filter(|c| !c.lengths.is_empty()).all(|column| {
            count_cells(&column.lengths)
                .is_ok_and(|(cells, bytes)| cells == key.rows && bytes == column.data_len)
        })
}
