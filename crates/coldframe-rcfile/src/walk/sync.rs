//! Searches for sync markers.
//!
//! A marker is the escape -1 and the file's hash. Hive searches for the hash alone, so a marker with a damaged escape
//! still begins a split, and the previous split must end there. Cells may hold the same bytes, so a split
//! begins only at a marker that a row group follows: a self-consistent row group or, if the escape is intact,
//! the remains of a row group.

use std::ops::Range;

use coldframe_core::Result;
use memchr::memmem;

use super::GroupWalk;
use crate::layout::header::SYNC_LEN;
use crate::layout::row_group::{SYNC_ESCAPE, SYNC_MARKER_LEN};

/// The number of bytes that a search reads first, and the maximum of one read. If markers are close together,
/// a single read covers several of them.
const FIRST_SEARCH: u64 = 4 << 10;
const SEARCH: u64 = 1 << 20;

/// The result of a search: `at` is the offset of the first marker at or after `from` (the end of the file if
/// there is none). The result is kept so that each byte of a file is searched once.
pub(super) struct KnownMarker {
    from: u64,
    at: u64,
}

impl GroupWalk {
    /// Where reading starts for a byte range that begins at `start`: the position of Hive's `RCFile.Reader.sync`.
    pub(crate) fn sync(&mut self, start: u64) -> Result<u64> {
        if start <= self.context.header_end {
            return Ok(self.context.header_end);
        }
        if start.saturating_add(SYNC_MARKER_LEN) >= self.file_len() {
            return Ok(self.file_len());
        }
        self.next_marker(start)
    }

    /// The first marker that starts in `range`.
    pub(super) fn find_marker(&mut self, range: Range<u64>) -> Result<Option<u64>> {
        Ok(Some(self.next_marker(range.start)?).filter(|at| *at < range.end && *at < self.file_len()))
    }

    /// The first marker that starts at or after `from`; the end of the file if there is none.
    fn next_marker(&mut self, from: u64) -> Result<u64> {
        if let Some(known) = self.marker.as_ref().filter(|known| (known.from..=known.at).contains(&from)) {
            return Ok(known.at);
        }
        let at = self.search(from)?.unwrap_or_else(|| self.file_len());
        self.marker = Some(KnownMarker { from, at });
        Ok(at)
    }

    fn search(&mut self, from: u64) -> Result<Option<u64>> {
        let finder = memmem::Finder::new(&self.context.sync).into_owned();
        let file_len = self.file_len();
        let (mut at, mut step) = (from, FIRST_SEARCH);
        while at.saturating_add(SYNC_MARKER_LEN) <= file_len {
            let end = at.saturating_add(step + SYNC_MARKER_LEN).min(file_len);
            let bytes = self.window.read(at..end)?;
            for hash in finder.find_iter(&bytes) {
                // The hash is at the very start, so its escape is before `from`.
                let Some(marker) = hash.checked_sub(4) else { continue };
                let escape = bytes.get(marker..hash).is_some_and(|bytes| bytes == SYNC_ESCAPE.to_be_bytes());
                let place = at + marker as u64;
                let announces =
                    if escape { self.announces_group(place) } else { self.is_group(place + SYNC_MARKER_LEN) };
                if announces {
                    return Ok(Some(place));
                }
            }
            if end == file_len {
                break;
            }
            // A marker may be divided between two reads.
            (at, step) = (end - (SYNC_MARKER_LEN - 1), SEARCH.min(step * 8));
        }
        Ok(None)
    }

    /// Whether a split begins at `at`, as [`Self::sync`] finds it.
    pub(crate) fn begins_split(&mut self, at: u64) -> bool {
        self.is_marker(at) && self.announces_group(at)
    }

    /// Whether a sync marker is at `at`.
    pub(super) fn is_marker(&mut self, at: u64) -> bool {
        let Ok(bytes) = self.window.read(at..at.saturating_add(SYNC_MARKER_LEN)) else { return false };
        let Some((escape, hash)) = bytes.split_first_chunk::<4>() else { return false };
        let is_hash = <&[u8; SYNC_LEN]>::try_from(hash).is_ok_and(|hash| *hash == self.context.sync);
        is_hash && (*escape == SYNC_ESCAPE.to_be_bytes() || self.is_group(at + SYNC_MARKER_LEN))
    }
}
