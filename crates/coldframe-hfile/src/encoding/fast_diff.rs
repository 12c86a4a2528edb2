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

use super::head::Head;
use super::{Out, integer};
use crate::cell::{CellSink, Key};

const SAME_KEY_LEN: u8 = 1 << 3;
const SAME_VALUE_LEN: u8 = 1 << 4;
const SAME_TYPE: u8 = 1 << 5;
const SAME_VALUE: u8 = 1 << 6;
/// Timestamp and type.
const TAIL: usize = 9;

/// Decodes cells to the end; `key` is memory for the previous one.
pub(super) fn decode<S: CellSink>(
    src: &mut Cursor<'_>,
    key: &mut Vec<u8>,
    out: &mut Out<'_, S>,
) -> Result<()> {
    let mut head = Head::new(key);
    let (mut key_len, mut value_len) = (0, 0);
    let (mut timestamp, mut kind) = ([0; 8], 0);
    let mut value: &[u8] = &[];
    while !src.is_empty() {
        let flags = src.u8()?;
        if flags & SAME_KEY_LEN == 0 {
            key_len = integer(src)?;
        }
        if flags & SAME_VALUE_LEN == 0 {
            value_len = integer(src)?;
        }
        let common = integer(src)?;
        out.begin(key_len, value_len)?;
        let len = key_len - TAIL;
        if head.is_empty() {
            head.set_whole(src, common, len)?;
        } else if head.keeps_row(common) {
            head.change_behind(src, common, len, (i64::from_be_bytes(timestamp), kind))?;
        } else {
            head.change_row(src, common, len, None)?;
        }
        let shared = usize::from(flags & 7);
        let stored = src.take(timestamp.len() - shared)?;
        for (byte, stored) in timestamp.iter_mut().skip(shared).zip(stored) {
            *byte = *stored;
        }
        if flags & SAME_TYPE == 0 {
            kind = src.u8()?;
        }
        if flags & SAME_VALUE == 0 {
            value = src.take(value_len)?;
        } else if value.len() != value_len {
            let found = value.len();
            return Err(Error::corrupt(format!(
                "expected a previous value of {value_len} bytes, found {found}"
            )));
        }
        let (row, family, qualifier) = head.parts();
        let timestamp = i64::from_be_bytes(timestamp);
        out.end(src, Key { row, family, qualifier, timestamp, kind }, value)?;
    }
    Ok(())
}
