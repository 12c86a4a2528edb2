//! Delta files: changes to the rows of a rowset after (REDO) or before (UNDO) the state in the rowset's base
//! data.
//!
//! ```text
//! entry of a block | row varint | hybrid time varint | kind u8 | (column id LEB128 | length + 1 LEB128, 0 = null | cell)* |
//! kind             1 UPDATE: the cells given        2 DELETE: none        3 REINSERT: every column but the key
//! varint           0..=240 one byte | 241..=248 two | 249 and 2 bytes | 250..=255 and 3..=8 bytes, highest first
//! ```
//!
//! The varint is the varint of SQLite 4. The bytes of the varint sort in the order of the numbers
//! (`delta_key.h`, `memcmpable_varint.cc`, `row_changelist.h`). A delta file is a CFile of such entries,
//! sorted by row, then by time: ascending in REDO files, descending in UNDO files. An UNDO entry leads from
//! the current row back to the row before the entry's time; a DELETE means that there was no row.

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::varint::put_uleb128;

use super::footer::Footer;
use crate::encoding::binary;

/// The key of the pair in a footer that has a delta file's statistics.
pub const STATISTICS: &str = "deltafilestats";

/// Whether this is the footer of a delta file.
pub fn is_delta(footer: &Footer) -> bool {
    footer.pair(STATISTICS).is_some() && footer.positional.is_none()
}

/// A column's id, and its value or null.
pub type Cell<'a> = (i32, Option<&'a [u8]>);

/// The kind of a change to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeType {
    /// Sets cells of a row.
    Update,
    /// Deletes a row.
    Delete,
    /// Reinserts a deleted row, with all its cells except the key.
    Reinsert,
}

/// An entry.
#[derive(Clone, Debug)]
pub struct Delta<'a> {
    /// The row's ordinal.
    pub row: u64,
    /// The time of the change, as a hybrid time.
    pub time: u64,
    /// The kind of change.
    pub kind: ChangeType,
    cells: &'a [u8],
    /// The offset of the entry's block, for errors.
    at: u64,
}

/// Appends a cell in the form that entries have. A column's id is never negative.
pub fn put_cell(column: i32, value: Option<&[u8]>, out: &mut Vec<u8>) {
    put_uleb128(out, u64::from(column.unsigned_abs()));
    put_uleb128(out, value.map_or(0, |v| (v.len() as u64).saturating_add(1)));
    out.extend_from_slice(value.unwrap_or_default());
}

/// Reads the sortable varint at the front of `bytes`; returns it, and the bytes after it.
#[inline(always)]
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let more = match first {
        0..=240 => return Some((u64::from(*first), rest)),
        241..=248 => {
            let (low, rest) = rest.split_first()?;
            return Some((240 + 256 * u64::from(first - 241) + u64::from(*low), rest));
        }
        249 => {
            let (low, rest) = rest.split_first_chunk()?;
            return Some((2288 + u64::from(u16::from_be_bytes(*low)), rest));
        }
        250..=255 => usize::from(first - 247),
    };
    let (stored, behind) = rest.split_at_checked(more)?;
    let number = match rest.first_chunk() {
        Some(eight) => u64::from_be_bytes(*eight) >> (64 - 8 * more),
        None => stored.iter().fold(0, |n, b| n << 8 | u64::from(*b)),
    };
    Some((number, behind))
}

/// Reads the sortable varint at the front of `cursor`.
pub fn sorted_varint(cursor: &mut Cursor<'_>) -> Result<u64> {
    let before = cursor.rest();
    let Some((number, behind)) = varint(before) else {
        let len = before.len();
        let e = Error::corrupt(format!("expected a sortable varint, found {len} bytes"));
        return Err(e.at(cursor.offset()));
    };
    cursor.skip(before.len() - behind.len())?;
    Ok(number)
}

impl<'a> Delta<'a> {
    /// An entry whose cells are given separately, in encoded form.
    pub fn new(row: u64, time: u64, kind: ChangeType, cells: &'a [u8]) -> Self {
        Self { row, time, kind, cells, at: 0 }
    }

    /// Parses an entry up to its cells.
    #[inline(always)]
    pub fn parse(entry: &'a [u8], at: u64) -> Result<Self> {
        let parts = || {
            let (row, rest) = varint(entry)?;
            let (time, rest) = varint(rest)?;
            let (kind, cells) = rest.split_first()?;
            Some((row, time, *kind, cells))
        };
        let Some((row, time, kind, cells)) = parts() else { return Err(truncated(entry, at)) };
        let kind = match kind {
            1 => ChangeType::Update,
            2 if cells.is_empty() => ChangeType::Delete,
            3 => ChangeType::Reinsert,
            other => return Err(no_such_kind(other, cells, at)),
        };
        Ok(Self { row, time, kind, cells, at })
    }

    /// The next cell: the column's id, and its bytes or null.
    #[inline(always)]
    pub fn next_cell(&mut self) -> Result<Option<Cell<'a>>> {
        match self.cells {
            [] => Ok(None),
            [id @ 0..0x80, 0, rest @ ..] => {
                self.cells = rest;
                Ok(Some(((*id).into(), None)))
            }
            [id @ 0..0x80, length @ 1..0x80, rest @ ..] if rest.len() >= usize::from(length - 1) => {
                let (cell, behind) = rest.split_at_checked(usize::from(length - 1)).unwrap_or_default();
                self.cells = behind;
                Ok(Some(((*id).into(), Some(cell))))
            }
            _ => self.long_cell().map(Some),
        }
    }

    /// Reads a cell whose id or length takes more than a byte. Fails for a truncated cell.
    #[inline(never)]
    fn long_cell(&mut self) -> Result<Cell<'a>> {
        let mut cells = Cursor::new(self.cells, self.at);
        let id = cells.uleb128()?;
        let id = i32::try_from(id)
            .map_err(|_| Error::corrupt(format!("expected a column's number, found {id}")).at(self.at))?;
        let length = cells.uleb128()?;
        let cell = match length.checked_sub(1) {
            None => None,
            Some(n) => Some(cells.take(usize::try_from(n).unwrap_or(usize::MAX))?),
        };
        self.cells = cells.rest();
        Ok((id, cell))
    }
}

#[cold]
#[inline(never)]
fn truncated(entry: &[u8], at: u64) -> Error {
    let len = entry.len();
    Error::corrupt(format!("expected a row, a time and a kind, found {len} bytes")).at(at)
}

#[cold]
#[inline(never)]
fn no_such_kind(kind: u8, cells: &[u8], at: u64) -> Error {
    Error::corrupt(match kind {
        2 => format!("expected a DELETE without cells, found {} more bytes", cells.len()),
        _ => format!("expected UPDATE (1), DELETE (2) or REINSERT (3), found {kind}"),
    })
    .at(at)
}

/// The entries of a block of PLAIN bytes. Writes the positions of the entries to `offsets`.
pub fn entries<'a, 'o>(
    block: &'a [u8],
    at: u64,
    offsets: &'o mut Vec<u32>,
) -> Result<impl ExactSizeIterator<Item = &'a [u8]> + use<'a, 'o>> {
    binary::offsets(block, offsets).map_err(|e| e.at(at))?;
    let ends = offsets.iter().skip(1);
    // The offsets were checked to be in ascending order and inside the block.
    let entry = |(start, end): (&u32, &u32)| block.get(widen(*start)..widen(*end)).unwrap_or_default();
    Ok(offsets.iter().zip(ends).map(entry))
}

fn widen(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sortable_varints_parse() {
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
    fn an_update_of_two_columns_is_parsed() {
        let entry = [5, 241, 2, 1, 9, 3, b'a', b'b', 12, 0];
        let mut delta = Delta::parse(&entry, 0).unwrap();
        assert_eq!((delta.row, delta.time, delta.kind), (5, 242, ChangeType::Update));
        assert_eq!(delta.next_cell().unwrap(), Some((9, Some(&b"ab"[..]))));
        assert_eq!(delta.next_cell().unwrap(), Some((12, None)));
        assert_eq!(delta.next_cell().unwrap(), None);
        assert!(Delta::parse(&[5, 5, 2, 0], 0).is_err());
        assert!(Delta::parse(&[5, 5, 4], 0).is_err());
        for cut in 0..4 {
            assert!(Delta::parse(&entry[..cut], 0).is_err());
        }
        for cut in [5, 7] {
            let mut delta = Delta::parse(&entry[..cut], 0).unwrap();
            assert!(delta.next_cell().is_err(), "{cut}");
        }
    }

    #[test]
    fn cells_with_long_numbers_and_lengths_are_parsed() {
        let mut entry = vec![0, 0, 3, 0x85, 1, 0x83, 1];
        entry.extend([b'x'; 130]);
        entry.extend([7, 1, 0x80, 0x80, 0x80, 0x80, 0x10, 0]);
        let mut delta = Delta::parse(&entry, 0).unwrap();
        assert_eq!(delta.next_cell().unwrap(), Some((133, Some(&[b'x'; 130][..]))));
        assert_eq!(delta.next_cell().unwrap(), Some((7, Some(&[][..]))));
        let e = delta.next_cell().unwrap_err();
        assert_eq!(e.reason(), "expected a column's number, found 4294967296");
    }

    #[test]
    fn offsets_outside_of_the_values_are_errors() {
        let mut block = Vec::new();
        for number in [0u32, 2, 15] {
            block.extend(number.to_le_bytes());
        }
        block.extend(b"abc");
        block.extend([0, 12, 13, 0, 0]);
        let read = |block: &[u8]| -> Result<Vec<Vec<u8>>> {
            Ok(entries(block, 0, &mut vec![])?.map(<[u8]>::to_vec).collect())
        };
        assert_eq!(read(&block).unwrap(), [&b"a"[..], &b"bc"[..]]);
        for (at, value) in [(16, 11), (17, 16), (16, 14), (8, 11), (8, 60), (4, 9)] {
            let mut hurt = block.clone();
            hurt[at] = value;
            assert!(read(&hurt).is_err(), "{at} {value}");
        }
        for cut in 0..block.len() {
            assert!(read(&block[..cut]).is_err(), "{cut}");
        }
    }
}
