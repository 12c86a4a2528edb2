//! The encoding DIFF.
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

use coldframe_encoding::Cursor;
use coldframe_encoding::Result;

use super::Out;
use super::head::{Head, Lengths, TAIL};
use crate::layout::cell::{CellSink, Key};

const SAME_KEY_LEN: u8 = 1;
const SAME_VALUE_LEN: u8 = 1 << 1;
const SAME_TYPE: u8 = 1 << 2;
const IS_DIFFERENCE: u8 = 1 << 3;
const NEGATIVE: u8 = 1 << 7;

/// Decodes all cells; `key` is a buffer for the previous key.
pub(super) fn decode<S: CellSink>(
    src: &mut Cursor<'_>,
    key: &mut Vec<u8>,
    out: &mut Out<'_, S>,
) -> Result<()> {
    if src.is_empty() {
        return Ok(());
    }
    let family_start = src.rest();
    let family_len = src.u8()?;
    src.skip(family_len.into())?;
    let family = family_start.get(..usize::from(family_len) + 1).unwrap_or_default();
    let mut head = Head::new(key);
    let mut lengths = Lengths::default();
    let (mut timestamp, mut kind) = (0i64, 0);
    while !src.is_empty() && !out.sink.is_done() {
        let flags = src.u8()?;
        let common = lengths.read(src, flags & SAME_KEY_LEN != 0, flags & SAME_VALUE_LEN != 0)?;
        out.begin(lengths.key, lengths.value)?;
        let len = lengths.key - TAIL;
        if head.keeps_row(common) {
            head.change_behind(src, common, len, (timestamp, kind))?;
        } else {
            head.change_row(src, common, len, Some(family))?;
        }
        let stored = src.take(1 + usize::from(flags >> 4 & 7))?;
        let stored = stored.iter().rev().fold(0i64, |t, b| t << 8 | i64::from(*b));
        let stored = if flags & NEGATIVE == 0 { stored } else { stored.wrapping_neg() };
        timestamp = if flags & IS_DIFFERENCE == 0 { stored } else { timestamp.wrapping_sub(stored) };
        if flags & SAME_TYPE == 0 {
            kind = src.u8()?;
        }
        let value = src.take(lengths.value)?;
        let (row, family, qualifier) = head.parts();
        out.end(src, Key { row, family, qualifier, timestamp, kind }, value)?;
    }
    Ok(())
}
