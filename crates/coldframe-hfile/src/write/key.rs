//! Keys in stored form, their order, and short keys that separate two of them.
//!
//! ```text
//! key | row length u16 | row | family length u8 | family | qualifier | timestamp i64 | type u8 |
//! ```
//!
//! Keys are ordered by row, family and qualifier, then the newest timestamp first, then the highest type
//! first. HBase: `CellComparatorImpl`, `HFileWriterImpl.getMidpoint`.

use std::cmp::Ordering;

use coldframe_core::{Error, Result};

use crate::layout::cell::Cell;
use crate::layout::kinds::type_name;

/// The type of separator keys: separators sort before all cells of their column.
const MAXIMUM: u8 = 0xff;

/// A key in stored form.
#[derive(Clone, Debug, Default)]
pub(super) struct Key {
    bytes: Vec<u8>,
    row_end: usize,
    family_end: usize,
    timestamp: i64,
    kind: u8,
}

impl Key {
    /// Sets this key to the key of a cell, reusing the buffer.
    pub(super) fn set(&mut self, cell: &Cell<'_>) -> Result<()> {
        self.put(cell.row, cell.family, cell.qualifier, cell.timestamp, cell.kind)
    }

    fn put(&mut self, row: &[u8], family: &[u8], qualifier: &[u8], timestamp: i64, kind: u8) -> Result<()> {
        let row_len = i16::try_from(row.len())
            .map_err(|_| Error::invalid(format!("a row of {} bytes: HBase's maximum is 32767", row.len())))?;
        let family_len = i8::try_from(family.len()).map_err(|_| {
            Error::invalid(format!("a family of {} bytes: HBase's maximum is 127", family.len()))
        })?;
        self.bytes.clear();
        self.bytes.extend_from_slice(&row_len.to_be_bytes());
        self.bytes.extend_from_slice(row);
        self.row_end = self.bytes.len();
        self.bytes.push(family_len.cast_unsigned());
        self.bytes.extend_from_slice(family);
        self.family_end = self.bytes.len();
        self.bytes.extend_from_slice(qualifier);
        self.bytes.extend_from_slice(&timestamp.to_be_bytes());
        self.bytes.push(kind);
        (self.timestamp, self.kind) = (timestamp, kind);
        Ok(())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn row(&self) -> &[u8] {
        self.bytes.get(2..self.row_end).unwrap_or_default()
    }

    /// The offset at which the row ends and the family begins.
    pub(super) fn row_end(&self) -> usize {
        self.row_end
    }

    pub(super) fn family(&self) -> &[u8] {
        self.bytes.get(self.row_end.saturating_add(1)..self.family_end).unwrap_or_default()
    }

    /// The family, preceded by its length.
    pub(super) fn sized_family(&self) -> &[u8] {
        self.bytes.get(self.row_end..self.family_end).unwrap_or_default()
    }

    /// The offset at which the family ends and the qualifier begins.
    pub(super) fn family_end(&self) -> usize {
        self.family_end
    }

    pub(super) fn qualifier(&self) -> &[u8] {
        self.bytes.get(self.family_end..self.qualifier_end()).unwrap_or_default()
    }

    pub(super) fn qualifier_end(&self) -> usize {
        self.bytes.len().saturating_sub(9)
    }

    pub(super) fn timestamp(&self) -> i64 {
        self.timestamp
    }

    pub(super) fn kind(&self) -> u8 {
        self.kind
    }

    pub(super) fn order(&self, other: &Self) -> Ordering {
        let columns =
            || self.family().cmp(other.family()).then_with(|| self.qualifier().cmp(other.qualifier()));
        let versions = || other.timestamp.cmp(&self.timestamp).then_with(|| other.kind.cmp(&self.kind));
        self.row().cmp(other.row()).then_with(columns).then_with(versions)
    }

    /// The key in readable form.
    pub(super) fn describe(&self) -> String {
        let (row, family) = (self.row().escape_ascii(), self.family().escape_ascii());
        let kind = type_name(self.kind).unwrap_or("?");
        format!("{row}/{family}:{}/{}/{kind}", self.qualifier().escape_ascii(), self.timestamp)
    }
}

/// A short key `k` with `left` < `k` <= `right`: enough for an index to separate two blocks.
pub(super) fn between(left: &Key, right: &Key) -> Result<Vec<u8>> {
    let mut key = Key::default();
    if left.row() != right.row() {
        key.put(&middle(left.row(), right.row()), &[], &[], i64::MAX, MAXIMUM)?;
    } else if left.family() != right.family() || left.qualifier() == right.qualifier() {
        return Ok(right.bytes.clone());
    } else {
        let qualifier = middle(left.qualifier(), right.qualifier());
        key.put(right.row(), right.family(), &qualifier, i64::MAX, MAXIMUM)?;
    }
    Ok(key.bytes)
}

/// Writes the key that sorts before all cells of a column, without the family. Bloom filters of columns use
/// this key.
pub(super) fn put_column_key(row: &[u8], qualifier: &[u8], out: &mut Vec<u8>) {
    let row_len = u16::try_from(row.len()).unwrap_or(u16::MAX); // rows are at most 32767 bytes long
    out.extend_from_slice(&row_len.to_be_bytes());
    out.extend_from_slice(row);
    out.push(0);
    out.extend_from_slice(qualifier);
    out.extend_from_slice(&i64::MAX.to_be_bytes());
    out.push(MAXIMUM);
}

/// A short string `s` with `left` < `s` <= `right`.
fn middle(left: &[u8], right: &[u8]) -> Vec<u8> {
    let shared = left.iter().zip(right).take_while(|(l, r)| l == r).count();
    let mut middle = right.get(..shared.saturating_add(1)).unwrap_or(right).to_vec();
    if let (Some(l), Some(last)) = (left.get(shared), middle.last_mut())
        && l.saturating_add(1) < *last
    {
        *last = l + 1;
    }
    middle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(row: &[u8], family: &[u8], qualifier: &[u8], timestamp: i64, kind: u8) -> Key {
        let mut key = Key::default();
        key.put(row, family, qualifier, timestamp, kind).unwrap();
        key
    }

    #[test]
    fn newer_and_deleted_cells_come_first() {
        let sorted = [
            key(b"", b"f", b"", 0, 4),
            key(b"a", b"f", b"", 9, 14),
            key(b"a", b"f", b"", 9, 4),
            key(b"a", b"f", b"", -1, 4),
            key(b"a", b"f", b"q", 5, 12),
            key(b"a", b"f", b"q", 5, 8),
            key(b"a", b"g", b"", 5, 8),
            key(b"a\0", b"f", b"", 5, 8),
            key(b"\xff", b"f", b"", 5, 8),
        ];
        for (i, left) in sorted.iter().enumerate() {
            for (j, right) in sorted.iter().enumerate() {
                assert_eq!(left.order(right), i.cmp(&j), "{} {}", left.describe(), right.describe());
            }
        }
    }

    #[test]
    fn separators_are_short() {
        assert_eq!(middle(b"abc", b"abf"), b"abd");
        assert_eq!(middle(b"abc", b"abd"), b"abd");
        assert_eq!(middle(b"abc", b"abdefgh"), b"abd");
        assert_eq!(middle(b"ab", b"abdefgh"), b"abd");
        assert_eq!(middle(b"a\xff", b"b"), b"b");
        let (left, right) = (key(b"row 1", b"f", b"q", 5, 4), key(b"row 5 and more", b"f", b"q", 5, 4));
        assert_eq!(between(&left, &right).unwrap(), key(b"row 2", b"", b"", i64::MAX, 255).bytes);
        let right = key(b"row 1", b"f", b"rest", 5, 4);
        assert_eq!(between(&left, &right).unwrap(), key(b"row 1", b"f", b"r", i64::MAX, 255).bytes);
        let right = key(b"row 1", b"f", b"q", 4, 4);
        assert_eq!(between(&left, &right).unwrap(), right.bytes);
    }
}
