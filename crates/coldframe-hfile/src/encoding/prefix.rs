//! PREFIX.
//!
//! ```text
//! cell | key length less the prefix | value length | prefix: bytes shared with the previous key | rest of the key | value |
//! ```
//!
//! HBase: `PrefixKeyDeltaEncoder`.

use coldframe_core::Result;
use coldframe_encoding::Cursor;

use super::{Plain, integer};

/// Decodes cells to the end.
pub(super) fn decode(src: &mut Cursor<'_>, plain: &mut Plain<'_>) -> Result<()> {
    while !src.is_empty() {
        let rest = integer(src)?;
        let value = integer(src)?;
        let common = integer(src)?;
        let len = rest.saturating_add(common);
        plain.begin(len, value)?;
        let start = plain.out.len();
        plain.copy_key(0..common)?;
        plain.out.extend_from_slice(src.take(rest)?);
        plain.end_key(start, len)?;
        plain.out.extend_from_slice(src.take(value)?);
        plain.end_cell(src)?;
    }
    Ok(())
}
