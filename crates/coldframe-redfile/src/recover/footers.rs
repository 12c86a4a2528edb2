//! The footers inside a file that was not finished.
//!
//! A writer may write the metadata of all row groups so far, its length and the magic after every few row groups: each
//! such footer is cumulative, so what stands before one is a whole file. A file cut off behind one loses only the row
//! groups behind it.

use coldframe_core::{Limits, ReadAt, Result};
use memchr::memmem;

use crate::layout::footer::{MAGIC, SYNC_KEY};
use crate::open::footer::{Footer, ending_at};

/// Length of the marker before a footer inside a file.
const SYNC_LEN: u64 = 16;
/// How much is searched at once.
const SEARCH: u64 = 1 << 20;

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
pub(crate) fn last_footer(source: &dyn ReadAt, limits: &Limits) -> Result<Option<Footer>> {
    let mut end = source.len();
    while end > 12 {
        let start = end.saturating_sub(SEARCH);
        let bytes = source.read(start..end)?;
        let mut left: &[u8] = &bytes;
        while let Some(at) = memmem::rfind(left, MAGIC) {
            let footer_end = start + at as u64 + 4;
            if footer_end >= 12
                && let Ok(footer) = ending_at(source, footer_end, limits)
                && is_marked(source, &footer)?
            {
                return Ok(Some(footer));
            }
            left = left.get(..at + 3).unwrap_or_default();
        }
        // A magic across the border is seen by the next search.
        end = if start == 0 { 0 } else { start + 3 };
    }
    Ok(None)
}
