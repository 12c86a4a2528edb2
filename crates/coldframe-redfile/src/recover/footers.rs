//! The footers inside a file that was not finished.
//!
//! A writer may write the metadata of all row groups so far, its length and the magic after every few row groups: each
//! such footer is cumulative, so what stands before one is a whole file. A file cut off behind one loses only the row
//! groups behind it.

use std::ops::Range;

use coldframe_core::{Limits, ReadAt, Result};
use memchr::memmem;

use crate::layout::footer::{FRAME_LEN, MAGIC, SYNC_KEY};
use crate::layout::metadata::FileMetaData;
use crate::open::footer::Footer;

/// Length of the marker before a footer inside a file.
const SYNC_LEN: u64 = 16;
/// How much is searched at once.
const SEARCH: u64 = 1 << 20;
/// The shortest file that ends with a footer.
const LEAST: u64 = 12;
/// How all metadata begins: field 1, an `i32`, is 1.
const METADATA_HEAD: &[u8] = &[0x15, 0x02];
/// What a look at where metadata may begin counts for, in bytes.
const LOOK: u64 = 64;

/// Whether the sync marker that a footer names stands before it; one that names none needs none.
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

/// The last footer that is whole, wherever it ends.
///
/// What ends in `RED1` is read only if the length before it leads to bytes that begin as metadata does, and all such together
/// may be four times the file: in a file made of what looks like footers the search ends.
pub(crate) fn last_footer(source: &dyn ReadAt, limits: &Limits) -> Result<Option<Footer>> {
    let mut budget = source.len().saturating_mul(4).saturating_add(1 << 20);
    let mut end = source.len();
    while end >= LEAST {
        let start = end.saturating_sub(SEARCH);
        let bytes = source.read(start..end)?;
        let mut left: &[u8] = &bytes;
        while let Some(at) = memmem::rfind(left, MAGIC) {
            left = left.get(..at + MAGIC.len() - 1).unwrap_or_default();
            let footer_end = start + (at + MAGIC.len()) as u64;
            let Some(metadata) = metadata_before(&bytes, at, start, limits) else { continue };
            let head = metadata.start..metadata.start + METADATA_HEAD.len() as u64;
            budget = budget.saturating_sub(LOOK);
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
        // A magic whose length stands across the border is seen by the next search.
        end = if start == 0 { 0 } else { start + FRAME_LEN };
    }
    Ok(None)
}

/// The bytes of metadata whose length stands before the magic at `at` of `bytes`, which begin at `start` of the file; `None` if the
/// length stands before `bytes`, or leads to before the file's first byte of metadata.
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

    /// Each `RED1` was once 64 KiB of reading.
    #[test]
    fn a_file_of_magics_is_read_once() {
        assert!(bytes_read(b"RED1".repeat(1 << 20)) < 5 << 20);
    }

    /// Footers that end behind one another and all begin at one place: as many bytes of metadata as pairs of them.
    #[test]
    fn what_looks_like_footers_is_read_so_many_times_as_the_file_is_long() {
        let many = |footers: usize| {
            let mut bytes = b"RED1".to_vec();
            bytes.extend_from_slice(METADATA_HEAD);
            // Fields that are passed over, 16 bytes each: a binary of 14 bytes with the length and the magic of a footer in it.
            for _ in 0..footers {
                bytes.extend_from_slice(&[0x18, 14, 0, 0, 0, 0, 0, 0]);
                let len = u32::try_from(bytes.len() - 4).unwrap();
                bytes.extend_from_slice(&len.to_le_bytes());
                bytes.extend_from_slice(MAGIC);
            }
            bytes
        };
        let (one, two) = (bytes_read(many(2000)), bytes_read(many(4000)));
        assert!(one > 64_000 && two < 6 * (4000 * 16) + (3 << 20), "{one} {two}");
    }
}
