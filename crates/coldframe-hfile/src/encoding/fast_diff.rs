//! FAST_DIFF.
//!
//! ```text
//! cell  | flags u8 | [key length] | [value length] | prefix: bytes shared with the previous key |
//!       | rest of the key without its family, timestamp and type | last bytes of the timestamp | [type u8] | [value] |
//! flags | bits 0..2: leading bytes shared with the previous timestamp | 3: same key length | 4: same value length |
//!       | 5: same type | 6: same value |
//! ```
//!
//! The family is that of the block's first cell, which stores its own. HBase: `FastDiffDeltaEncoder`.

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;

use super::{Plain, integer};

const SAME_KEY_LEN: u8 = 1 << 3;
const SAME_VALUE_LEN: u8 = 1 << 4;
const SAME_TYPE: u8 = 1 << 5;
const SAME_VALUE: u8 = 1 << 6;
/// Timestamp and type.
const TAIL: usize = 9;

/// Decodes cells to the end.
pub(super) fn decode(src: &mut Cursor<'_>, plain: &mut Plain<'_>) -> Result<()> {
    let (mut key_len, mut value_len) = (0, 0);
    // Where the previous value stands in the output.
    let mut value = 0..0;
    let mut first = true;
    while !src.is_empty() {
        let flags = src.u8()?;
        if flags & SAME_KEY_LEN == 0 {
            key_len = integer(src)?;
        }
        if flags & SAME_VALUE_LEN == 0 {
            value_len = integer(src)?;
        }
        let common = integer(src)?;
        plain.begin(key_len, value_len)?;
        let start = plain.out.len();
        copy_head(src, plain, key_len - TAIL, common, first)?;
        let mut tail = *plain.previous().last_chunk::<TAIL>().unwrap_or(&[0; TAIL]);
        let (shared, stored) = tail.split_at_mut(usize::from(flags & 7));
        let (timestamp, _) = stored.split_at_mut(8 - shared.len());
        timestamp.copy_from_slice(src.take(timestamp.len())?);
        if flags & SAME_TYPE == 0 {
            let [.., kind] = &mut tail;
            *kind = src.u8()?;
        }
        plain.out.extend_from_slice(&tail);
        plain.end_key(start, key_len)?;
        let at = plain.out.len();
        if flags & SAME_VALUE == 0 {
            plain.out.extend_from_slice(src.take(value_len)?);
        } else if value.len() == value_len {
            plain.out.extend_from_within(value);
        } else {
            let found = value.len();
            return Err(Error::corrupt(format!(
                "expected a previous value of {value_len} bytes, found {found}"
            )));
        }
        value = at..plain.out.len();
        plain.end_cell(src)?;
        first = false;
    }
    Ok(())
}

/// The key up to its timestamp, `len` bytes; the first `common` are the previous key's.
#[inline]
fn copy_head(
    src: &mut Cursor<'_>,
    plain: &mut Plain<'_>,
    len: usize,
    common: usize,
    first: bool,
) -> Result<()> {
    let stored = |common: usize| {
        len.checked_sub(common).ok_or_else(|| {
            Error::corrupt(format!("expected a prefix of at most {len} bytes, found {common}"))
        })
    };
    if first {
        plain.out.extend_from_slice(src.take(stored(common)?)?);
        return Ok(());
    }
    let previous = plain.previous();
    let row = previous.first_chunk().map_or(0, |n| usize::from(u16::from_be_bytes(*n)) + 2);
    if common >= row {
        plain.copy_key(0..common)?;
        plain.out.extend_from_slice(src.take(stored(common)?)?);
        return Ok(());
    }
    let family = row..row + 1 + previous.get(row).map_or(0, |n| usize::from(*n));
    let start = plain.out.len();
    super::diff::copy_row(src, plain, common, row)?;
    plain.copy_key(family)?;
    let qualifier = stored(plain.out.len() - start)?;
    plain.out.extend_from_slice(src.take(qualifier)?);
    Ok(())
}
