//! What may follow a row group. A group is anchored if its key leads to such a place.
//!
//! ```text
//! group | end of the file
//! group | sync marker
//! group | group whose lengths agree
//! group | damaged group, of which either the header or the key still leads to one of these
//! group | group that the end of the file cuts off
//! ```

use coldframe_core::Result;

use super::GroupWalk;
use super::candidate::HEADER_LEN;
use crate::layout::row_group::{RecordHeader, RowGroup, SYNC_ESCAPE, SYNC_MARKER_LEN};

impl GroupWalk {
    /// Whether the end of a row group is proved: by the bytes after it, or by the checksums of its key and
    /// columns.
    pub(super) fn is_anchored(&mut self, group: &RowGroup) -> Result<bool> {
        if self.is_boundary(group.end()) {
            return Ok(true);
        }
        let summed = self.context.codec.is_some_and(|codec| codec.is_summed());
        Ok(summed && !self.holds_another(group)?)
    }

    /// Whether the bytes at `at` can follow a row group.
    fn is_boundary(&mut self, at: u64) -> bool {
        let budget = self.budget;
        if self.is_sound_boundary(at) {
            // The walk reads the group at `at` next in any case.
            self.budget = budget;
            return true;
        }
        self.is_cut_off(at) || self.leads_on(at)
    }

    /// Whether a sync marker at `at` announces a group, even a damaged group. Cells may hold a marker's
    /// bytes, too.
    pub(super) fn announces_group(&mut self, at: u64) -> bool {
        let group = at.saturating_add(SYNC_MARKER_LEN);
        self.is_group(group) || self.is_cut_off(group) || self.leads_on(group)
    }

    /// Whether the bytes at `at` can begin something other than this group.
    fn is_sound_boundary(&mut self, at: u64) -> bool {
        at == self.file_len() || self.is_marker(at) || self.is_group(at) || self.is_damaged_marker(at)
    }

    /// Whether a marker with a damaged hash is at `at`: its escape is there, and a group follows the hash.
    fn is_damaged_marker(&mut self, at: u64) -> bool {
        let escape = self.window.read(at..at.saturating_add(4));
        escape.is_ok_and(|bytes| bytes.as_ref() == SYNC_ESCAPE.to_be_bytes())
            && self.is_group(at.saturating_add(SYNC_MARKER_LEN))
    }

    /// Whether the file ends within the marker or group at `at`.
    fn is_cut_off(&mut self, at: u64) -> bool {
        let left = self.file_len().saturating_sub(at);
        if left < HEADER_LEN as u64 {
            return left > 0;
        }
        let Ok(bytes) = self.window.read(at..at.saturating_add(left.min(SYNC_MARKER_LEN))) else {
            return false;
        };
        let is_marker = bytes.strip_prefix(&SYNC_ESCAPE.to_be_bytes()).is_some_and(|hash| {
            (bytes.len() as u64) < SYNC_MARKER_LEN && self.context.sync.starts_with(hash)
        });
        let end = RecordHeader::parse(&bytes)
            .and_then(|header| self.stated_end(at.saturating_add(HEADER_LEN as u64), &header));
        is_marker || end.is_some_and(|end| end > self.file_len())
    }

    /// Whether the header or the key of a damaged group at `at` leads to a boundary, with a damaged marker or without.
    fn leads_on(&mut self, at: u64) -> bool {
        [at, at.saturating_add(SYNC_MARKER_LEN)].into_iter().any(|header_offset| {
            let end = header_offset.saturating_add(HEADER_LEN as u64);
            let bytes = self.window.read(header_offset..end).ok();
            let Some(header) = bytes.and_then(|bytes| RecordHeader::parse(&bytes)) else { return false };
            if let Some(end) = self.stated_end(end, &header).filter(|end| *end <= self.file_len())
                && self.is_sound_boundary(end)
            {
                return true;
            }
            let by_key = self.read_behind_header(None, header_offset, header);
            by_key.is_ok_and(|group| group.key.rows > 0 && self.is_sound_boundary(group.end()))
        })
    }
}
