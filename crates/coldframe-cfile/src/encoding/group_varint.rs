//! GROUP_VARINT: unsigned 32-bit values, as differences from the block's smallest, in groups of four.
//!
//! ```text
//! block | group: count, smallest, first ordinal, 0 | group of four values less the smallest ... |
//! ```
//!
//! The last group is padded. No released writer chooses this encoding, but Kudu's own readers support it (`gvint_block.cc`).

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;

use crate::encoding::BlockHead;

/// Decodes all values of a block.
pub(crate) fn decode(block: &[u8]) -> Result<(BlockHead, Vec<u32>)> {
    let mut cursor = Cursor::new(block, 0);
    let [count, smallest, ordinal, _] = cursor.group_varint()?;
    let n = count as usize;
    // A group of four takes at least five bytes.
    if n.div_ceil(4).saturating_mul(5) > cursor.remaining() {
        let left = cursor.remaining();
        return Err(Error::corrupt(format!("expected {count} values, found {left} bytes")));
    }
    let mut values = Vec::with_capacity(n.next_multiple_of(4));
    while values.len() < n {
        values.extend(cursor.group_varint()?.map(|v| v.wrapping_add(smallest)));
    }
    values.truncate(n);
    Ok((BlockHead { count, ordinal }, values))
}
