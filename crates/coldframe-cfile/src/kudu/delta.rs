//! Delta files: what happened to the rows of a rowset after (REDO) or before (UNDO) its base data was written.
//!
//! ```text
//! entry of a block | row varint | hybrid time varint | kind u8 | (column number LEB128 | length + 1 LEB128, 0 = null | cell)* |
//! kind             1 UPDATE: the cells given        2 DELETE: none        3 REINSERT: every column but the key
//! varint           0..=240 one byte | 241..=248 two | 249 and 2 bytes | 250..=255 and 3..=8 bytes, highest first
//! ```
//!
//! The varint is SQLite 4's, whose bytes sort as the numbers do (`delta_key.h`, `memcmpable_varint.cc`, `row_changelist.h`). A delta file is a
//! CFile of such entries, sorted by row, then by time: upwards in REDO files, downwards in UNDO files. An UNDO entry says
//! how to get from the row as it is to the row before the time it names; DELETE: there was none.

use coldframe_core::{Error, ErrorContext, Result};
use coldframe_encoding::Cursor;

/// A column's number, and its value or null.
pub(crate) type Cell<'a> = (i32, Option<&'a [u8]>);

/// What an entry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Update,
    Delete,
    Reinsert,
}

/// An entry.
#[derive(Clone, Debug)]
pub(crate) struct Delta<'a> {
    pub(crate) row: u64,
    pub(crate) time: u64,
    pub(crate) kind: Kind,
    cells: Cursor<'a>,
}

/// The integer in front of `cursor`, whose encoding sorts by bytes.
pub(crate) fn sorted_varint(cursor: &mut Cursor<'_>) -> Result<u64> {
    let first = cursor.u8()?;
    let more = match first {
        0..=240 => return Ok(first.into()),
        241..=248 => return Ok(240 + 256 * u64::from(first - 241) + u64::from(cursor.u8()?)),
        249 => return Ok(2288 + u64::from(cursor.u16_be()?)),
        255 => return cursor.u64_be(),
        250..=254 => usize::from(first - 247),
    };
    Ok(cursor.take(more)?.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
}

/// The row and the time that an entry, or the key of an index, begins with.
pub(crate) fn key(cursor: &mut Cursor<'_>) -> Result<(u64, u64)> {
    Ok((sorted_varint(cursor)?, sorted_varint(cursor)?))
}

impl<'a> Delta<'a> {
    /// Parses an entry up to its cells.
    #[inline]
    pub(crate) fn parse(entry: &'a [u8], at: u64) -> Result<Self> {
        let mut cells = Cursor::new(entry, at);
        let (row, time) = key(&mut cells)?;
        let kind = match cells.u8()? {
            1 => Kind::Update,
            2 => Kind::Delete,
            3 => Kind::Reinsert,
            n => {
                return Err(Error::corrupt(format!(
                    "expected UPDATE (1), DELETE (2) or REINSERT (3), found {n}"
                )));
            }
        };
        if kind == Kind::Delete {
            cells.finish().within(|| "DELETE")?;
        }
        Ok(Self { row, time, kind, cells })
    }

    /// The next cell: the column's number, and its bytes or null.
    #[inline]
    pub(crate) fn next_cell(&mut self) -> Result<Option<Cell<'a>>> {
        if self.cells.is_empty() {
            return Ok(None);
        }
        let id = self.cells.uleb128()?;
        let id = i32::try_from(id).map_err(|_| {
            Error::corrupt(format!("expected a column's number, found {id}")).at(self.cells.offset())
        })?;
        let length = self.cells.uleb128()?;
        let cell = match length.checked_sub(1) {
            None => None,
            Some(n) => Some(self.cells.take(usize::try_from(n).unwrap_or(usize::MAX))?),
        };
        Ok(Some((id, cell)))
    }
}

/// The entries of a block: ordinal, count and the place of the offsets, values, offsets in groups of four.
///
/// ```text
/// | ordinal u32 | count u32 | place u32 | value .. | offset of each value from the block's start, group varint |
/// ```
pub(crate) fn entries(block: &[u8], at: u64) -> Result<Vec<&[u8]>> {
    let mut cursor = Cursor::new(block, at);
    let _ordinal = cursor.u32_le()?;
    let count = cursor.u32_le()?;
    let place = usize::try_from(cursor.u32_le()?).unwrap_or(usize::MAX);
    let offsets = block.get(place..).filter(|_| place >= 12).ok_or_else(|| {
        Error::corrupt(format!("expected the offsets at 12..={}, found {place}", block.len())).at(at)
    })?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    // Four offsets take five bytes at least.
    if count.div_ceil(4) > offsets.len() / 5 {
        return Err(Error::corrupt(format!("expected {count} offsets, found {} bytes", offsets.len())).at(at));
    }
    let mut cursor = Cursor::new(offsets, at + place as u64);
    let mut starts = Vec::with_capacity(count.next_multiple_of(4));
    for _ in 0..count.div_ceil(4) {
        starts.extend(cursor.group_varint()?);
    }
    starts.truncate(count);
    let ends = starts.iter().skip(1).copied().map(widen).chain([place]);
    starts
        .iter()
        .copied()
        .map(widen)
        .zip(ends)
        .map(|(start, end)| {
            block.get(start..end).filter(|_| start >= 12 && end <= place).ok_or_else(|| {
                Error::corrupt(format!("expected a value within 12..{place}, found {start}..{end}")).at(at)
            })
        })
        .collect()
}

fn widen(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_sort_by_their_bytes() {
        let cases: [(u64, &[u8]); 10] = [
            (0, &[0]),
            (240, &[240]),
            (241, &[241, 1]),
            (2287, &[248, 255]),
            (2288, &[249, 0, 0]),
            (67823, &[249, 255, 255]),
            (67824, &[250, 1, 8, 240]),
            (1 << 24, &[251, 1, 0, 0, 0]),
            (1 << 40, &[253, 1, 0, 0, 0, 0, 0]),
            (u64::MAX, &[255; 9]),
        ];
        for (value, bytes) in cases {
            let mut cursor = Cursor::new(bytes, 0);
            assert_eq!(sorted_varint(&mut cursor).unwrap(), value);
            cursor.finish().unwrap();
            for cut in 0..bytes.len() {
                assert!(sorted_varint(&mut Cursor::new(&bytes[..cut], 0)).is_err());
            }
        }
    }

    #[test]
    fn an_update_of_two_columns() {
        let entry = [5, 241, 2, 1, 9, 3, b'a', b'b', 12, 0];
        let mut delta = Delta::parse(&entry, 0).unwrap();
        assert_eq!((delta.row, delta.time, delta.kind), (5, 242, Kind::Update));
        assert_eq!(delta.next_cell().unwrap(), Some((9, Some(&b"ab"[..]))));
        assert_eq!(delta.next_cell().unwrap(), Some((12, None)));
        assert_eq!(delta.next_cell().unwrap(), None);
        assert!(Delta::parse(&[5, 5, 2, 0], 0).is_err());
        assert!(Delta::parse(&[5, 5, 4], 0).is_err());
    }

    #[test]
    fn offsets_outside_of_the_values_are_errors() {
        let mut block = Vec::new();
        for word in [0u32, 2, 15] {
            block.extend(word.to_le_bytes());
        }
        block.extend(b"abc");
        block.extend([0, 12, 13, 0, 0]);
        assert_eq!(entries(&block, 0).unwrap(), [&b"a"[..], &b"bc"[..]]);
        for (at, value) in [(16, 11), (17, 16), (16, 14), (8, 11), (8, 60), (4, 9)] {
            let mut hurt = block.clone();
            hurt[at] = value;
            assert!(entries(&hurt, 0).is_err(), "{at} {value}");
        }
        for cut in 0..block.len() {
            assert!(entries(&block[..cut], 0).is_err(), "{cut}");
        }
    }
}
