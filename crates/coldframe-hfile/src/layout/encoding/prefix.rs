//! The encoding PREFIX.
//!
//! ```text
//! cell | key length less the prefix | value length | prefix: bytes shared with the previous key | rest of the key | value |
//! ```
//!
//! HBase: `PrefixKeyDeltaEncoder`.

use coldframe_encoding::Cursor;
use coldframe_encoding::{Error, Result};

use super::put;
use super::{Out, integer};
use crate::layout::cell::{CellSink, Key};

/// Decodes all cells; `key` holds the previous key.
pub(super) fn decode<S: CellSink>(
    src: &mut Cursor<'_>,
    key: &mut Vec<u8>,
    out: &mut Out<'_, S>,
) -> Result<()> {
    while !src.is_empty() && !out.sink.is_done() {
        let rest = integer(src)?;
        let value = integer(src)?;
        let common = integer(src)?;
        out.begin(rest.saturating_add(common), value)?;
        if common > key.len() {
            let known = key.len();
            return Err(Error::corrupt(format!(
                "expected a part of the previous key of {known} bytes, found 0..{common}"
            )));
        }
        key.truncate(common);
        put(key, src.take(rest)?);
        let parts = Key::parse(key).ok_or_else(|| {
            Error::corrupt(format!(
                "expected a key of row, family and qualifier, found \"{}\"",
                key.escape_ascii()
            ))
        })?;
        let value = src.take(value)?;
        out.end(src, parts, value)?;
    }
    Ok(())
}
