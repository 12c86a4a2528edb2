//! Where the metadata stands: the frame of a file, and the footers inside one that was not finished.
//!
//! ```text
//! file | RED1 | row group ... | FileMetaData | length u32 LE | RED1 |
//! ```
//!
//! A writer may write the metadata of all row groups so far, its length and the magic after every few row groups: each
//! such footer is cumulative, so what stands before one is a whole file. A file cut off behind one loses only the row
//! groups behind it.

use coldframe_core::{Error, ErrorContext, Limits, ReadAt, Result};
use memchr::memmem;

use crate::layout::metadata::FileMetaData;
use crate::write::SYNC_KEY;

/// The magic.
pub const MAGIC: &[u8; 4] = b"RED1";
/// Length and magic.
pub const FRAME_LEN: u64 = 8;
/// What is read of the end at first.
const TAIL_GUESS: u64 = 64 << 10;
/// Length of the marker before a footer inside a file.
const SYNC_LEN: u64 = 16;
/// How much is searched at once.
const SEARCH: u64 = 1 << 20;

/// The metadata and its place.
#[derive(Clone, Debug)]
pub struct Footer {
    /// What it says.
    pub metadata: FileMetaData,
    /// Where it begins.
    pub start: u64,
    /// Where the magic behind it ends.
    pub end: u64,
}

/// The footer that a file ends with.
pub fn read(source: &dyn ReadAt, limits: &Limits) -> Result<Footer> {
    let len = source.len();
    let least = MAGIC.len() as u64 + FRAME_LEN;
    if len < least {
        return Err(Error::corrupt(format!("expected at least {least} bytes, found {len}")).at(0));
    }
    let head = source.read(0..4)?;
    if head.as_ref() != MAGIC {
        return Err(Error::corrupt(format!("expected \"RED1\", found \"{}\"", head.escape_ascii()))
            .at(0)
            .within("magic"));
    }
    ending_at(source, len, limits).within(|| "footer")
}

/// The footer that ends at `end`.
fn ending_at(source: &dyn ReadAt, end: u64, limits: &Limits) -> Result<Footer> {
    let tail_start = end.saturating_sub(TAIL_GUESS);
    let tail = source.read(tail_start..end)?;
    let frame = tail.last_chunk::<8>().copied().unwrap_or_default();
    let [a, b, c, d, magic @ ..] = frame;
    if &magic != MAGIC {
        return Err(Error::corrupt(format!("expected \"RED1\", found \"{}\"", magic.escape_ascii()))
            .at(end.saturating_sub(4)));
    }
    let len = u64::from(u32::from_le_bytes([a, b, c, d]));
    let frame_at = end.saturating_sub(FRAME_LEN);
    let start = frame_at.checked_sub(len).filter(|start| *start >= 4).ok_or_else(|| {
        let most = frame_at.saturating_sub(4);
        Error::corrupt(format!("expected metadata of at most {most} bytes, found {len}")).at(frame_at)
    })?;
    limits.metadata("the footer", len)?;
    let bytes = match start.checked_sub(tail_start) {
        Some(skip) => {
            let skip = usize::try_from(skip).unwrap_or(usize::MAX);
            tail.slice(skip.min(tail.len())..tail.len().saturating_sub(8))
        }
        None => source.read(start..frame_at)?,
    };
    let metadata = FileMetaData::parse(&bytes, start, limits)?;
    Ok(Footer { metadata, start, end })
}

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
pub fn find_last(source: &dyn ReadAt, limits: &Limits) -> Result<Option<Footer>> {
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
