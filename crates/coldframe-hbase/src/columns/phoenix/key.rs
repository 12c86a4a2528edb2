//! Splits row keys into their parts.
//!
//! ```text
//! 02 | 44 45 | 7f ff fe 88 04 5f 05 e7 | be 91 91 9e ff | 80 00 00 00 00 00 00 11 | 66 69 72 73 74
//! salt CHAR(2) DATE DESC                 VARCHAR DESC     BIGINT                    VARCHAR, the last
//! ```
//!
//! Nulls at the end of a key are not stored, and their separators are not stored either. Phoenix:
//! `RowKeySchema.next`.

use coldframe_core::{Error, Result};

use super::{KeyPart, Phoenix};

/// Splits a row key into its parts; a null part is empty.
///
/// # Errors
///
/// If the key is too short for its parts, or bytes remain after them.
pub(crate) fn parts<'k>(
    of: &Phoenix,
    row: &'k [u8],
    mut with: impl FnMut(&'k [u8]) -> Result<()>,
) -> Result<()> {
    let mut rest = match (of.salted, row) {
        (false, row) => row,
        (true, [_, rest @ ..]) => rest,
        (true, []) => return Err(mismatch(row, "a salt byte")),
    };
    for (place, part) in of.key.iter().enumerate() {
        let (value, remaining) = match part.of.width() {
            // Trailing nulls of a key are not stored.
            Some(_) if rest.is_empty() => (rest, rest),
            Some(width) => rest
                .split_at_checked(width)
                .ok_or_else(|| mismatch(row, &format!("{width} bytes of {}", part.name)))?,
            None if place + 1 == of.key.len() => (last(part, rest), &[][..]),
            None => until_separator(part, rest),
        };
        with(value)?;
        rest = remaining;
    }
    if rest.is_empty() { Ok(()) } else { Err(mismatch(row, "the end of the key after its last column")) }
}

fn mismatch(row: &[u8], expected: &str) -> Error {
    Error::schema(format!("row key \"{}\": expected {expected}", row.escape_ascii()))
}

/// The value of variable length at the end of a key. In descending order the value still has a separator.
fn last<'k>(part: &KeyPart, rest: &'k [u8]) -> &'k [u8] {
    match (part.descending, rest) {
        (true, [value @ .., 0xff]) => value,
        _ => rest,
    }
}

/// A value of variable length, and the bytes after its separator. A null always has the
/// separator of ascending order.
fn until_separator<'k>(part: &KeyPart, rest: &'k [u8]) -> (&'k [u8], &'k [u8]) {
    let separator = if part.descending { 0xff } else { 0 };
    let end = match rest.split_first() {
        None | Some((0, _)) => 0,
        Some((_, others)) => {
            others.iter().position(|b| *b == separator).map_or(rest.len(), |place| place + 1)
        }
    };
    let (value, remaining) = rest.split_at_checked(end).unwrap_or((rest, &[]));
    (value, remaining.get(1..).unwrap_or_default())
}
