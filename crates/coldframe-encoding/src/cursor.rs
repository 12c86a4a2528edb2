//! A bounds-checked reader over a slice that knows its offset in the file.
//!
//! Every parser of the workspace reads through a [`Cursor`]. For a structure with a stated length, the parser
//! makes a sub-cursor ([`Cursor::sub`]); bytes that are not read from it are an error ([`Cursor::finish`]).
//! So truncation and garbage are detected where they occur.

use crate::{Error, Result};

/// Reads from the front of a slice.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    offset: u64,
}

macro_rules! integers {
    ($($name_be:ident $name_le:ident $type:ty;)*) => {$(
        #[doc = concat!("A big-endian `", stringify!($type), "`.")]
        pub fn $name_be(&mut self) -> Result<$type> {
            self.array().map(<$type>::from_be_bytes)
        }

        #[doc = concat!("A little-endian `", stringify!($type), "`.")]
        pub fn $name_le(&mut self) -> Result<$type> {
            self.array().map(<$type>::from_le_bytes)
        }
    )*};
}

impl<'a> Cursor<'a> {
    /// `offset` is the absolute offset of `bytes[0]` in the file; it is used in errors and by
    /// [`Self::offset`].
    pub fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self { rest: bytes, offset }
    }

    /// Absolute offset in the file of the next byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The number of bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether all bytes were read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The unread bytes; they stay unread.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let Some((head, rest)) = self.rest.split_at_checked(n) else { return Err(self.truncated(n)) };
        self.rest = rest;
        self.offset += n as u64;
        Ok(head)
    }

    /// The next `n` bytes, where `n` is a signed length from the file: a negative length is an error.
    pub fn take_signed(&mut self, n: i64) -> Result<&'a [u8]> {
        match usize::try_from(n) {
            Ok(n) => self.take(n),
            Err(_) => {
                Err(Error::corrupt(format!("expected a length of 0 or more, found {n}")).at(self.offset))
            }
        }
    }

    /// The next `n` bytes as a sub-cursor.
    pub fn sub(&mut self, n: usize) -> Result<Cursor<'a>> {
        let offset = self.offset;
        Ok(Cursor { rest: self.take(n)?, offset })
    }

    /// Skips `n` bytes.
    #[inline]
    pub fn skip(&mut self, n: usize) -> Result<()> {
        self.take(n).map(drop)
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else { return Err(self.truncated(N)) };
        self.rest = rest;
        self.offset += N as u64;
        Ok(*head)
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        self.array().map(|[b]| b)
    }

    integers! {
        u16_be u16_le u16;
        u32_be u32_le u32;
        u64_be u64_le u64;
        i16_be i16_le i16;
        i32_be i32_le i32;
        i64_be i64_le i64;
    }

    /// Reads bytes that must be equal to `expected`.
    pub fn expect(&mut self, what: &str, expected: &[u8]) -> Result<()> {
        let at = self.offset;
        let actual = self.take(expected.len())?;
        if actual == expected {
            return Ok(());
        }
        let (e, f) = (expected.escape_ascii(), actual.escape_ascii());
        Err(Error::corrupt(format!("{what}: expected \"{e}\", found \"{f}\"")).at(at))
    }

    /// An error if bytes are left.
    pub fn finish(&self) -> Result<()> {
        match self.rest.len() {
            0 => Ok(()),
            n => Err(Error::corrupt(format!("expected the end, found {n} more bytes")).at(self.offset)),
        }
    }

    #[cold]
    #[inline(never)]
    fn truncated(&self, needed: usize) -> Error {
        Error::corrupt(format!("expected {needed} more bytes, found {}", self.rest.len())).at(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_makes_a_sub_cursor_and_leftovers_are_errors() {
        let mut c = Cursor::new(&[0, 2, 7, 8, 9], 100);
        let n = c.u16_be().unwrap();
        let mut s = c.sub(n.into()).unwrap();
        assert_eq!(s.u8().unwrap(), 7);
        assert_eq!(s.finish().unwrap_err().to_string(), "byte 103: expected the end, found 1 more bytes");
        assert_eq!((c.offset(), c.remaining()), (104, 1));
        assert_eq!(c.u32_le().unwrap_err().to_string(), "byte 104: expected 4 more bytes, found 1");
        assert_eq!(
            c.take_signed(-1).unwrap_err().to_string(),
            "byte 104: expected a length of 0 or more, found -1"
        );
        assert_eq!(
            c.expect("magic", b"A").unwrap_err().to_string(),
            "byte 104: magic: expected \"A\", found \"\\t\""
        );
    }
}
