//! PLAIN of bytes: the values, then where each begins.
//!
//! ```text
//! block   | first ordinal u32 LE | count u32 LE | place of the offsets u32 LE | value ... | offsets |
//! offsets | group varint of four places from the block's start ... |           the last group is padded with zeros
//! ```
//!
//! The first value begins at 12, the last ends where the offsets begin: values lie as Arrow wants them, without gaps.

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;

use crate::encoding::BlockHead;

/// The header's length.
pub const HEADER_LEN: usize = 12;

/// Reads the header of `block` and all places into `offsets`: one for each value and the end of the last.
pub fn offsets(block: &[u8], offsets: &mut Vec<u32>) -> Result<BlockHead> {
    offsets.clear();
    let mut cursor = Cursor::new(block, 0);
    let (ordinal, count, end) = (cursor.u32_le()?, cursor.u32_le()?, cursor.u32_le()?);
    let place = usize::try_from(end).ok().filter(|p| *p >= HEADER_LEN);
    let Some(stored) = place.and_then(|p| block.get(p..)) else {
        return Err(Error::corrupt(format!("expected offsets inside the block, found them at {end}")));
    };
    let n = count as usize;
    if n.div_ceil(4).saturating_mul(5) > stored.len() {
        let found = stored.len();
        return Err(Error::corrupt(format!("expected {count} offsets, found {found} bytes")));
    }
    offsets.reserve(n.next_multiple_of(4) + 1);
    let mut cursor = Cursor::new(stored, end.into());
    while offsets.len() < n {
        offsets.extend(cursor.group_varint()?);
    }
    offsets.truncate(n);
    offsets.push(end);
    // `fold` and not a search: it runs through without a branch.
    let (mut last, mut ordered) = (12, true);
    for offset in offsets.iter() {
        ordered &= *offset >= last;
        last = *offset;
    }
    if !ordered {
        return Err(Error::corrupt("expected offsets that do not fall, found one below the one before"));
    }
    Ok(BlockHead { count, ordinal })
}
