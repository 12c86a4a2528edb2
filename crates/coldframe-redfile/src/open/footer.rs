//! Finds the metadata in the frame of a file.
//!
//! ```text
//! file | RED1 | row group ... | FileMetaData | length u32 LE | RED1 |
//! ```
//!
//! A writer may add a cumulative footer after every few row groups: the metadata of all row groups so far, its length
//! and the magic bytes. The file up to such a footer is a complete file, so a file that is cut off loses only
//! the row groups after its last footer.

use coldframe_core::{Error, ErrorContext, Limits, ReadAt, Result};

use crate::layout::footer::{FRAME_LEN, MAGIC};
use crate::layout::metadata::FileMetaData;

/// How many bytes at the end of a file are read first.
const TAIL_GUESS: u64 = 64 << 10;

/// The metadata and its position.
#[derive(Clone, Debug)]
pub(crate) struct Footer {
    /// The metadata.
    pub(crate) metadata: FileMetaData,
    /// The offset at which the metadata begins.
    pub(crate) start: u64,
    /// The offset at which the magic bytes after the metadata end.
    pub(crate) end: u64,
}

/// The footer at the end of a file.
pub(crate) fn read(source: &dyn ReadAt, limits: &Limits) -> Result<Footer> {
    let len = source.len();
    let min = MAGIC.len() as u64 + FRAME_LEN;
    if len < min {
        return Err(Error::corrupt(format!("expected at least {min} bytes, found {len}")).at(0));
    }
    let head = source.read(0..4)?;
    if head.as_ref() != MAGIC {
        return Err(Error::corrupt(format!("expected \"RED1\", found \"{}\"", head.escape_ascii()))
            .at(0)
            .within("magic"));
    }
    ending_at(source, len, limits).within(|| "footer")
}

/// The footer that ends at the offset `end`.
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
        let max = frame_at.saturating_sub(4);
        Error::corrupt(format!("expected metadata of at most {max} bytes, found {len}")).at(frame_at)
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
