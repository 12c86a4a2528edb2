//! DIFF.
//!
//! ```text
//! block | family length u8 | family | cell ... |
//! cell  | flags u8 | [key length] | [value length] | prefix: bytes shared with the previous key |
//!       | rest of the key without its family, timestamp and type | timestamp LE, 1 to 8 bytes | [type u8] | value |
//! flags | bit 0: same key length | 1: same value length | 2: same type | 3: timestamp is previous less this |
//!       | 4..6: bytes of the timestamp, less one | 7: it is negative |
//! ```
//!
//! HBase: `DiffKeyDeltaEncoder`.

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;

use super::{Plain, integer};

const SAME_KEY_LEN: u8 = 1;
const SAME_VALUE_LEN: u8 = 1 << 1;
const SAME_TYPE: u8 = 1 << 2;
const IS_DIFFERENCE: u8 = 1 << 3;
const NEGATIVE: u8 = 1 << 7;
/// Timestamp and type.
const TAIL: usize = 9;

/// Decodes cells to the end.
pub(super) fn decode(src: &mut Cursor<'_>, plain: &mut Plain<'_>) -> Result<()> {
    if src.is_empty() {
        return Ok(());
    }
    let family_start = src.rest();
    let family_len = src.u8()?;
    src.skip(family_len.into())?;
    let family = family_start.get(..usize::from(family_len) + 1).unwrap_or_default();
    let (mut key_len, mut value_len) = (0, 0);
    let (mut timestamp, mut kind) = (0i64, 0);
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
        copy_head(src, plain, key_len - TAIL, common, family)?;
        let stored = src.take(1 + usize::from(flags >> 4 & 7))?;
        let stored = stored.iter().rev().fold(0i64, |t, b| t << 8 | i64::from(*b));
        let stored = if flags & NEGATIVE == 0 { stored } else { stored.wrapping_neg() };
        timestamp = if flags & IS_DIFFERENCE == 0 { stored } else { timestamp.wrapping_sub(stored) };
        if flags & SAME_TYPE == 0 {
            kind = src.u8()?;
        }
        plain.out.extend_from_slice(&timestamp.to_be_bytes());
        plain.out.push(kind);
        plain.end_key(start, key_len)?;
        plain.out.extend_from_slice(src.take(value_len)?);
        plain.end_cell(src)?;
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
    family: &[u8],
) -> Result<()> {
    let stored = |common: usize| {
        len.checked_sub(common).ok_or_else(|| {
            Error::corrupt(format!("expected a prefix of at most {len} bytes, found {common}"))
        })
    };
    // Before the first cell the key is empty, so that its row is taken whole.
    let row = plain.previous().first_chunk().map_or(2, |n| usize::from(u16::from_be_bytes(*n)) + 2);
    if common >= row && !plain.key.is_empty() {
        plain.copy_key(0..common)?;
        plain.out.extend_from_slice(src.take(stored(common)?)?);
        return Ok(());
    }
    let start = plain.out.len();
    copy_row(src, plain, common, row)?;
    plain.out.extend_from_slice(family);
    let qualifier = stored(plain.out.len() - start)?;
    plain.out.extend_from_slice(src.take(qualifier)?);
    Ok(())
}

/// The length of the row and the row: the previous key's up to `common`, which is less than its `row` bytes.
#[inline]
pub(super) fn copy_row(src: &mut Cursor<'_>, plain: &mut Plain<'_>, common: usize, row: usize) -> Result<()> {
    let start = plain.out.len();
    plain.copy_key(0..common)?;
    if common >= 2 {
        plain.out.extend_from_slice(src.take(row.saturating_sub(common))?);
        return Ok(());
    }
    plain.out.extend_from_slice(src.take(2 - common)?);
    let len = plain.out.get(start..).and_then(|k| k.first_chunk()).map_or(0, |n| u16::from_be_bytes(*n));
    plain.out.extend_from_slice(src.take(len.into())?);
    Ok(())
}
