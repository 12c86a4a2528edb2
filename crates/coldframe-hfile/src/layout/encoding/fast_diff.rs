//! The encoding FAST_DIFF.
//!
//! ```text
//! cell  | flags u8 | [key length] | [value length] | prefix: bytes shared with the previous key |
//!       | rest of the key without its family, timestamp and type | last bytes of the timestamp | [type u8] | [value] |
//! flags | bits 0..2: leading bytes shared with the previous timestamp | 3: same key length | 4: same value length |
//!       | 5: same type | 6: same value |
//! ```
//!
//! Only the block's first cell stores the family. HBase: `FastDiffDeltaEncoder`.

use coldframe_encoding::Cursor;
use coldframe_encoding::{Error, Result};

use super::Out;
use super::head::{Head, Lengths, TAIL};
use crate::layout::cell::{CellSink, Key};

const SAME_KEY_LEN: u8 = 1 << 3;
const SAME_VALUE_LEN: u8 = 1 << 4;
const SAME_TYPE: u8 = 1 << 5;
const SAME_VALUE: u8 = 1 << 6;

/// Decodes all cells; `key` is a buffer for the previous key.
pub(super) fn decode<S: CellSink>(
    src: &mut Cursor<'_>,
    key: &mut Vec<u8>,
    out: &mut Out<'_, S>,
) -> Result<()> {
    let mut head = Head::new(key);
    let mut lengths = Lengths::default();
    let (mut timestamp, mut kind) = (0, 0);
    let mut value: &[u8] = &[];
    while !src.is_empty() && !out.sink.is_done() {
        let flags = src.u8()?;
        let common = lengths.read(src, flags & SAME_KEY_LEN != 0, flags & SAME_VALUE_LEN != 0)?;
        out.begin(lengths.key, lengths.value)?;
        let len = lengths.key - TAIL;
        if head.is_empty() {
            head.set_whole(src, common, len)?;
        } else if head.keeps_row(common) {
            head.change_behind(src, common, len, (timestamp, kind))?;
        } else {
            head.change_row(src, common, len, None)?;
        }
        timestamp = change_timestamp(src, timestamp, flags & 7)?;
        if flags & SAME_TYPE == 0 {
            kind = src.u8()?;
        }
        if flags & SAME_VALUE == 0 {
            value = src.take(lengths.value)?;
        } else if value.len() != lengths.value {
            let actual = value.len();
            return Err(Error::corrupt(format!(
                "expected a previous value of {} bytes, found {actual}",
                lengths.value
            )));
        }
        let (row, family, qualifier) = head.parts();
        out.end(src, Key { row, family, qualifier, timestamp, kind }, value)?;
    }
    Ok(())
}

/// The timestamp whose first `shared` bytes (at most 7) equal the previous timestamp's; the others are stored.
#[inline]
fn change_timestamp(src: &mut Cursor<'_>, previous: i64, shared: u8) -> Result<i64> {
    let stored = match src.rest().first_chunk() {
        // Usually enough bytes follow for a single load; the bytes beyond the timestamp are shifted out.
        Some(window) => {
            src.skip(8 - usize::from(shared))?;
            u64::from_be_bytes(*window) >> (8 * shared)
        }
        None => src.take(8 - usize::from(shared))?.iter().fold(0, |t, b| t << 8 | u64::from(*b)),
    };
    let mask = u64::MAX >> (8 * shared);
    Ok((previous.cast_unsigned() & !mask | stored).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_keeps_the_shared_first_bytes() {
        let previous = 0x0102_0304_0506_0708_i64;
        for shared in 0..8u8 {
            let stored = [0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8];
            let n = 8 - usize::from(shared);
            let mut expected = previous.to_be_bytes();
            expected[usize::from(shared)..].copy_from_slice(&stored[..n]);
            // Tested with and without bytes after the timestamp.
            for bytes in [&stored[..n], &[&stored[..n], &[9; 8]].concat()] {
                let mut src = Cursor::new(bytes, 0);
                let timestamp = change_timestamp(&mut src, previous, shared).unwrap();
                assert_eq!((timestamp, src.remaining()), (i64::from_be_bytes(expected), bytes.len() - n));
            }
            assert!(change_timestamp(&mut Cursor::new(&stored[1..n], 0), previous, shared).is_err());
        }
    }
}
