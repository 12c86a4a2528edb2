//! The head of a key: everything before the timestamp. DIFF and FAST_DIFF derive the head from the head of
//! the previous cell's key.
//!
//! ```text
//! row length u16 | row | family length u8 | family | qualifier |
//!                      ^ row                       ^ family
//! ```

use coldframe_encoding::Cursor;
use coldframe_encoding::{Error, Result};

use super::integer;
use super::put;

/// The length of a key after its head: timestamp and type.
pub(super) const TAIL: usize = 9;

/// The lengths of a cell's key and value, each stored only if it differs from the previous cell's.
#[derive(Default)]
pub(super) struct Lengths {
    pub(super) key: usize,
    pub(super) value: usize,
}

impl Lengths {
    /// Reads the lengths that differ, then the number of bytes shared with the previous key; returns this
    /// number.
    #[inline(always)]
    pub(super) fn read(&mut self, src: &mut Cursor<'_>, same_key: bool, same_value: bool) -> Result<usize> {
        if !same_key {
            self.key = integer(src)?;
        }
        if !same_value {
            self.value = integer(src)?;
        }
        integer(src)
    }
}

/// The head of the current key, updated in place from cell to cell.
pub(super) struct Head<'k> {
    bytes: &'k mut Vec<u8>,
    /// A buffer for building a head whose row has another length.
    spare: Vec<u8>,
    /// The end of the row, as an offset in `bytes`.
    row: usize,
    /// The end of the family, as an offset in `bytes`.
    family: usize,
}

impl<'k> Head<'k> {
    /// The state before the first cell; `bytes` is empty.
    pub(super) fn new(bytes: &'k mut Vec<u8>) -> Self {
        Self { bytes, spare: Vec::new(), row: 0, family: 0 }
    }

    /// Whether no cell has been read yet.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Row, family and qualifier.
    #[inline]
    pub(super) fn parts(&self) -> (&[u8], &[u8], &[u8]) {
        let row = self.bytes.get(2..self.row).unwrap_or_default();
        let family = self.bytes.get(self.row + 1..self.family).unwrap_or_default();
        (row, family, self.bytes.get(self.family..).unwrap_or_default())
    }

    /// Whether the first `common` bytes, which are kept, include the whole row.
    #[inline]
    pub(super) fn keeps_row(&self, common: usize) -> bool {
        common >= self.row && !self.bytes.is_empty()
    }

    /// Keeps the first `common` bytes, which include the row, and reads the rest of the `len` bytes. `tail`:
    /// the timestamp and type of the previous key.
    #[inline]
    pub(super) fn change_behind(
        &mut self,
        src: &mut Cursor<'_>,
        common: usize,
        len: usize,
        tail: (i64, u8),
    ) -> Result<()> {
        if common > self.bytes.len() {
            // The shared bytes may extend into the timestamp of the previous key, where this key still has
            // its qualifier.
            self.bytes.extend_from_slice(&tail.0.to_be_bytes());
            self.bytes.push(tail.1);
            if common > self.bytes.len() {
                return Err(no_part(self.bytes.len(), common));
            }
        }
        let rest = src.take(less(len, common)?)?;
        self.bytes.truncate(common);
        put(self.bytes, rest);
        if common < self.family || common < self.row {
            self.find_parts()?;
        }
        Ok(())
    }

    /// Builds a head of `len` bytes for a new row: the first `common` bytes, which end inside the row, come
    /// from the previous key; the rest of the row is read; the family and its length come from `family`, or
    /// from the previous key; the qualifier is read.
    #[inline(always)]
    pub(super) fn change_row(
        &mut self,
        src: &mut Cursor<'_>,
        common: usize,
        len: usize,
        family: Option<&[u8]>,
    ) -> Result<()> {
        let previous = self.bytes.get(self.row..self.family);
        if common >= 2 && family.is_none_or(|family| previous == Some(family)) {
            // The row keeps its length: only its end is overwritten.
            let rest = src.take(self.row.saturating_sub(common))?;
            if let Some(end) = self.bytes.get_mut(common..self.row) {
                set(end, rest);
            }
        } else {
            self.replace_row(src, common, family)?;
        }
        let qualifier = src.take(less(len, self.family)?)?;
        self.bytes.truncate(self.family);
        put(self.bytes, qualifier);
        Ok(())
    }

    #[inline(never)]
    fn replace_row(&mut self, src: &mut Cursor<'_>, common: usize, family: Option<&[u8]>) -> Result<()> {
        let kept = self.bytes.get(..common).ok_or_else(|| no_part(self.bytes.len(), common))?;
        let row = &mut self.spare;
        row.clear();
        row.extend_from_slice(kept);
        if common >= 2 {
            row.extend_from_slice(src.take(self.row.saturating_sub(common))?);
        } else {
            row.extend_from_slice(src.take(2 - common)?);
            let len = row.first_chunk().map_or(0, |n| u16::from_be_bytes(*n));
            row.extend_from_slice(src.take(len.into())?);
        }
        let end = row.len();
        let previous = self.bytes.get(self.row..self.family).unwrap_or_default();
        row.extend_from_slice(family.unwrap_or(previous));
        (self.row, self.family) = (end, row.len());
        std::mem::swap(self.bytes, row);
        Ok(())
    }

    /// The first head of a block: all `len` bytes are read, since there is no previous key to share bytes
    /// with.
    pub(super) fn set_whole(&mut self, src: &mut Cursor<'_>, common: usize, len: usize) -> Result<()> {
        if common > 0 {
            return Err(no_part(0, common));
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(src.take(len)?);
        self.find_parts()
    }

    fn find_parts(&mut self) -> Result<()> {
        let row = self.bytes.first_chunk().map_or(2, |n| usize::from(u16::from_be_bytes(*n)) + 2);
        let family = self.bytes.get(row).map(|n| row + 1 + usize::from(*n));
        match family.filter(|end| *end <= self.bytes.len()) {
            Some(family) => {
                (self.row, self.family) = (row, family);
                Ok(())
            }
            None => Err(Error::corrupt(format!(
                "expected a key of row, family and qualifier, found \"{}\"",
                self.bytes.escape_ascii()
            ))),
        }
    }
}

/// Copies bytes, usually one or two, since consecutive rows usually differ only at their ends.
#[inline]
fn set(to: &mut [u8], from: &[u8]) {
    if let ([a, b], [c, d]) = (&mut *to, from) {
        (*a, *b) = (*c, *d);
    } else if let ([a], [b]) = (&mut *to, from) {
        *a = *b;
    } else if to.len() == from.len() {
        to.copy_from_slice(from);
    }
}

#[inline]
fn less(len: usize, common: usize) -> Result<usize> {
    len.checked_sub(common)
        .ok_or_else(|| Error::corrupt(format!("expected a prefix of at most {len} bytes, found {common}")))
}

#[cold]
fn no_part(known: usize, common: usize) -> Error {
    Error::corrupt(format!("expected a part of the previous key of {known} bytes, found 0..{common}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qualifier_may_share_bytes_with_the_previous_timestamp() {
        // Row "r", family "f", no qualifier; the next qualifier consists of the first bytes of the timestamp and one
        // more.
        let mut bytes = Vec::new();
        let mut head = Head::new(&mut bytes);
        head.set_whole(&mut Cursor::new(b"\0\x01r\x01f", 0), 0, 5).unwrap();
        let tail = (0x6162_0000_0000_0000, 4);
        head.change_behind(&mut Cursor::new(b"c", 0), 7, 8, tail).unwrap();
        assert_eq!(head.parts(), (&b"r"[..], &b"f"[..], &b"abc"[..]));
        let e = head.change_behind(&mut Cursor::new(b"", 0), 18, 18, tail).unwrap_err();
        assert_eq!(e.to_string(), "expected a part of the previous key of 17 bytes, found 0..18");
    }

    #[test]
    fn a_row_changes_in_length_or_at_its_end() {
        let mut bytes = Vec::new();
        let mut head = Head::new(&mut bytes);
        head.set_whole(&mut Cursor::new(b"\0\x03row\x01fqual", 0), 0, 11).unwrap();
        head.change_row(&mut Cursor::new(b"x1", 0), 4, 8, None).unwrap();
        assert_eq!(head.parts(), (&b"rox"[..], &b"f"[..], &b"1"[..]));
        head.change_row(&mut Cursor::new(b"\x04rows2", 0), 1, 9, None).unwrap();
        assert_eq!(head.parts(), (&b"rows"[..], &b"f"[..], &b"2"[..]));
        head.change_row(&mut Cursor::new(b"ts3", 0), 4, 10, Some(b"\x02gh")).unwrap();
        assert_eq!(head.parts(), (&b"rots"[..], &b"gh"[..], &b"3"[..]));
        assert!(head.change_row(&mut Cursor::new(b"x", 0), 5, 3, None).is_err());
    }
}
