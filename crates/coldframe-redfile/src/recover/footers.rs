//! The footers inside an unfinished file.
//!
//! A writer may add a cumulative footer after every few row groups: the metadata of all row groups so far, its length
//! and the magic bytes. The file up to such a footer is a complete file, so a file that is cut off loses only
//! the row groups after its last footer.

use std::ops::Range;

use coldframe_core::{Limits, ReadAt, Result};
use memchr::memmem;

use crate::layout::footer::{FRAME_LEN, MAGIC, SYNC_KEY};
use crate::layout::metadata::FileMetaData;
use crate::open::footer::Footer;

/// Length of the marker before a footer inside a file.
const SYNC_LEN: u64 = 16;
/// How many bytes are searched at a time.
const SEARCH: u64 = 1 << 20;
/// The shortest file that can end with a footer.
const MIN_FILE_LEN: u64 = 12;
/// The bytes with which all metadata begins: field 1, an `i32`, has the value 1.
const METADATA_HEAD: &[u8] = &[0x15, 0x02];
/// The number of bytes that a check whether metadata begins at an offset counts as.
const CHECK_COST: u64 = 64;

/// Whether the sync marker that a footer states precedes the footer; true if the footer states no marker.
fn is_marked(source: &dyn ReadAt, footer: &Footer) -> Result<bool> {
    let pairs = &footer.metadata.key_value_metadata;
    let Some(named) = pairs.iter().find(|p| p.key == SYNC_KEY.as_bytes()).and_then(|p| p.value.as_ref())
    else {
        return Ok(true);
    };
    let Some(start) = footer.start.checked_sub(SYNC_LEN) else { return Ok(false) };
    let marker = source.read(start..footer.start)?;
    let digits: String = marker.iter().map(|b| format!("{b:02x}")).collect();
    Ok(digits.as_bytes() == named.as_slice())
}

/// The last intact footer, wherever it ends.
///
/// The bytes before a `RED1` are read only if metadata may begin where the length before it says. All such
/// reads together may have at most four times the length of the file, so the search ends even in a file full
/// of bytes that look like footers.
pub(crate) fn last_footer(source: &dyn ReadAt, limits: &Limits) -> Result<Option<Footer>> {
    let mut budget = source.len().saturating_mul(4).saturating_add(1 << 20);
    let mut end = source.len();
    while end >= MIN_FILE_LEN {
        let start = end.saturating_sub(SEARCH);
        let bytes = source.read(start..end)?;
        let mut left: &[u8] = &bytes;
        while let Some(at) = memmem::rfind(left, MAGIC) {
            left = left.get(..at + MAGIC.len() - 1).unwrap_or_default();
            let footer_end = start + (at + MAGIC.len()) as u64;
            let Some(metadata) = metadata_before(&bytes, at, start, limits) else { continue };
            let head = metadata.start..metadata.start + METADATA_HEAD.len() as u64;
            budget = budget.saturating_sub(CHECK_COST);
            if budget == 0 {
                return Ok(None);
            }
            let begins = match bytes.get(place(head.start, start)..place(head.end, start)) {
                Some(bytes) if head.start >= start => bytes == METADATA_HEAD,
                _ => source.read(head)?.as_ref() == METADATA_HEAD,
            };
            if !begins {
                continue;
            }
            budget = budget.saturating_sub(metadata.end - metadata.start);
            let stored = source.read(metadata.clone())?;
            let Ok(parsed) = FileMetaData::parse(&stored, metadata.start, limits) else { continue };
            let footer = Footer { metadata: parsed, start: metadata.start, end: footer_end };
            if is_marked(source, &footer)? {
                return Ok(Some(footer));
            }
        }
        // Magic bytes whose length lies across the border are detected by the next search.
        end = if start == 0 { 0 } else { start + FRAME_LEN };
    }
    Ok(None)
}

/// The range of the metadata whose length precedes the magic at `at` in `bytes`; `bytes` begin at `start` in
/// the file. `None` if the length lies before `bytes`, or if the metadata would begin before its first
/// possible offset.
fn metadata_before(bytes: &[u8], at: usize, start: u64, limits: &Limits) -> Option<Range<u64>> {
    let length = bytes.get(at.checked_sub(4)?..at)?.first_chunk::<4>()?;
    let len = u64::from(u32::from_le_bytes(*length));
    let end = (start + at as u64).checked_sub(4)?;
    let begin = end.checked_sub(len).filter(|begin| *begin >= MAGIC.len() as u64)?;
    let fits = len >= METADATA_HEAD.len() as u64 && len <= limits.max_metadata_bytes;
    fits.then_some(begin..end)
}

fn place(at: u64, start: u64) -> usize {
    usize::try_from(at.saturating_sub(start)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use coldframe_testing::Logged;

    use super::*;

    fn bytes_read(bytes: Vec<u8>) -> u64 {
        let log = Logged::new(bytes);
        assert!(last_footer(&log, &Limits::default()).unwrap().is_none());
        log.take().into_iter().flatten().map(|r| r.end - r.start).sum()
    }

    /// Not every `RED1` causes a read of the bytes before it.
    #[test]
    fn a_file_of_magic_bytes_is_read_once() {
        assert!(bytes_read(b"RED1".repeat(1 << 20)) < 5 << 20);
    }

    /// Footers that end one after another and all begin at the same offset: the total size of the metadata is
    /// quadratic in their number.
    #[test]
    fn lookalike_footers_are_read_in_proportion_to_the_file() {
        let many = |footers: usize| {
            let mut bytes = b"RED1".to_vec();
            bytes.extend_from_slice(METADATA_HEAD);
            // These are fields of 16 bytes that readers skip: each field is a binary of 14 bytes that
            // contains the length and the magic bytes of a footer.
            for _ in 0..footers {
                bytes.extend_from_slice(&[0x18, 14, 0, 0, 0, 0, 0, 0]);
                let len = u32::try_from(bytes.len() - 4).unwrap();
                bytes.extend_from_slice(&len.to_le_bytes());
                bytes.extend_from_slice(MAGIC);
            }
            bytes
        };
        let (half, whole) = (bytes_read(many(2000)), bytes_read(many(4000)));
        assert!(half > 64_000 && whole < 6 * (4000 * 16) + (3 << 20), "{half} {whole}");
    }
}
