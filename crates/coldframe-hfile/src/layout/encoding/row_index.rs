//! ROW_INDEX_V1: cells in plain form, followed by the offset of each row, which allow a binary search in the
//! block.
//!
//! ```text
//! block | plain cell ... | rows i32 | offset of the first cell of a row i32 ... | bytes of the cells i32 |
//! ```
//!
//! HBase: `RowIndexCodecV1`.

use coldframe_encoding::Cursor;
use coldframe_encoding::{Error, Result};

/// The cells in plain form.
pub(super) fn cells(src: Cursor<'_>) -> Result<&[u8]> {
    let all = src.rest();
    let size = all.last_chunk().map(|n| u32::from_be_bytes(*n));
    let size = size.and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= all.len().saturating_sub(8));
    let Some((cells, behind)) = size.and_then(|n| all.split_at_checked(n)) else {
        return Err(Error::corrupt("row index: expected the size of the cells at the end"));
    };
    let mut index = Cursor::new(behind, src.offset() + cells.len() as u64);
    let rows = index.i32_be()?;
    index.take_signed(i64::from(rows).saturating_mul(4))?;
    index.skip(4)?;
    index.finish()?;
    Ok(cells)
}
