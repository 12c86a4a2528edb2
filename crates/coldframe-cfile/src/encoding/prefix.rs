//! PREFIX: each value stores only the bytes after the prefix that it shares with the previous value.
//!
//! ```text
//! block | group varint: count, first ordinal, restart interval, 0 | entry ... | restarts | number of restarts u32 LE |
//! entry | shared varint | rest's length varint | rest |
//! restarts | offset from the block's start u32 LE of values 16, 32 .. (the interval) |
//! ```
//!
//! A restart is a value that shares no bytes with the previous value, so a search can begin there. Value 0 is
//! always a restart and not listed.

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;

use crate::encoding::BlockHead;

/// Decodes all values of a block into `data`, which is cleared first, and their positions in it.
pub(crate) fn decode(
    block: &[u8],
    max_bytes: usize,
    data: &mut Vec<u8>,
    offsets: &mut Vec<u32>,
) -> Result<BlockHead> {
    data.clear();
    offsets.clear();
    let mut cursor = Cursor::new(block, 0);
    let [count, ordinal, _, _] = cursor.group_varint()?;
    let (entries, restarts) = block.split_last_chunk::<4>().unwrap_or((&[], &[0; 4]));
    let restarts = (u32::from_le_bytes(*restarts) as usize).saturating_mul(4);
    let header = block.len() - cursor.remaining();
    let end = entries.len().checked_sub(restarts).filter(|end| *end >= header);
    let Some(mut rest) = end.and_then(|end| block.get(header..end)) else {
        return Err(Error::corrupt(format!("expected {} restarts, found fewer bytes", restarts / 4)));
    };
    let n = count as usize;
    if n.saturating_mul(2) > rest.len() {
        return Err(Error::corrupt(format!("expected {count} values, found {} bytes", rest.len())));
    }
    offsets.reserve(n + 1);
    offsets.push(0);
    let mut last = 0usize;
    for _ in 0..n {
        let (shared, own, tail) = lengths(rest)?;
        let start = data.len();
        if shared > start - last {
            let len = start - last;
            return Err(Error::corrupt(format!(
                "expected a previous value of {shared} bytes, found {len} bytes"
            )));
        }
        let Some((value, behind)) = tail.split_at_checked(own) else {
            return Err(Error::corrupt(format!("expected {own} bytes of a value, found {}", tail.len())));
        };
        if start + shared + own > max_bytes {
            return Err(Error::corrupt(format!("expected values of at most {max_bytes} bytes, found more")));
        }
        data.extend_from_within(last..last + shared);
        data.extend_from_slice(value);
        last = start;
        rest = behind;
        offsets.push(u32::try_from(data.len()).unwrap_or(u32::MAX));
    }
    if !rest.is_empty() {
        return Err(Error::corrupt(format!("expected the restarts, found {} more bytes", rest.len())));
    }
    Ok(BlockHead { count, ordinal })
}

/// The two lengths of an entry, and the bytes after them.
#[inline]
fn lengths(bytes: &[u8]) -> Result<(usize, usize, &[u8])> {
    if let [shared @ 0..0x80, own @ 0..0x80, rest @ ..] = bytes {
        return Ok((usize::from(*shared), usize::from(*own), rest));
    }
    let mut cursor = Cursor::new(bytes, 0);
    let (shared, own) = (cursor.uleb128()?, cursor.uleb128()?);
    let narrow = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    Ok((narrow(shared), narrow(own), cursor.rest()))
}
