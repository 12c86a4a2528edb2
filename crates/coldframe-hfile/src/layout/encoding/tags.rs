//! Tags stored through a dictionary. The reader builds the same dictionary as the writer did. In each block
//! the dictionary is empty at first.
//!
//! ```text
//! tag | 0xff | length LEB128 | type u8, bytes |      new: becomes the next entry
//!     | index u16, below 0x8000 |                     the entry with this index
//! ```
//!
//! The dictionary has up to 32,767 entries. After that, a new entry replaces the least recently used entry.
//! HBase: `TagCompressionContext`, `LRUDictionary`.

use std::ops::Range;

use coldframe_encoding::Cursor;
use coldframe_encoding::{Error, Result};

use super::integer;

const NEW: u8 = 0xff;
/// Java's `Short.MAX_VALUE`.
const CAPACITY: usize = 32_767;

/// The dictionary. Entries are linked from the most to the least recently used.
#[derive(Debug, Default)]
pub(super) struct TagDictionary {
    bytes: Vec<u8>,
    entries: Vec<TagEntry>,
    newest: usize,
    oldest: usize,
}

#[derive(Clone, Debug)]
struct TagEntry {
    bytes: Range<usize>,
    newer: usize,
    older: usize,
}

impl TagDictionary {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Appends tags whose plain form takes `len` bytes.
    pub(super) fn decode(&mut self, src: &mut Cursor<'_>, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let end = out.len().saturating_add(len);
        while out.len() < end {
            let at = src.offset();
            let status = src.u8()?;
            let index = if status == NEW {
                let n = integer(src)?;
                self.insert(src.take(n)?)
            } else {
                let index = usize::from(u16::from_be_bytes([status, src.u8()?]));
                self.touch(index);
                index
            };
            let Some(entry) = self.entries.get(index) else {
                let known = self.entries.len();
                return Err(Error::corrupt(format!(
                    "tag dictionary: expected one of {known} entries, found {index}"
                ))
                .at(at));
            };
            let tag = self.bytes.get(entry.bytes.clone()).unwrap_or_default();
            let size = u16::try_from(tag.len()).map_err(|_| {
                Error::corrupt("tag dictionary: expected a tag of at most 65535 bytes").at(at)
            })?;
            out.extend_from_slice(&size.to_be_bytes());
            out.extend_from_slice(tag);
        }
        if out.len() == end {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "tag dictionary: expected tags of {len} bytes, found {} more",
            out.len() - end
        )))
    }

    /// Adds an entry and returns its index.
    fn insert(&mut self, tag: &[u8]) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(tag);
        let bytes = start..self.bytes.len();
        if self.entries.len() < CAPACITY {
            let index = self.entries.len();
            self.entries.push(TagEntry { bytes, newer: index, older: self.newest });
            if let Some(previous) = self.entries.get_mut(self.newest) {
                previous.newer = index;
            }
            if index == 0 {
                self.oldest = 0;
            }
            self.newest = index;
            return index;
        }
        let index = self.oldest;
        if let Some(entry) = self.entries.get_mut(index) {
            entry.bytes = bytes;
        }
        self.touch(index);
        index
    }

    /// Makes an entry the most recently used.
    fn touch(&mut self, index: usize) {
        if index == self.newest {
            return;
        }
        let Some(TagEntry { newer, older, .. }) = self.entries.get(index).cloned() else { return };
        if let Some(entry) = self.entries.get_mut(newer) {
            entry.older = older;
        }
        if index == self.oldest {
            self.oldest = newer;
        } else if let Some(entry) = self.entries.get_mut(older) {
            entry.newer = newer;
        }
        if let Some(entry) = self.entries.get_mut(self.newest) {
            entry.newer = index;
        }
        if let Some(entry) = self.entries.get_mut(index) {
            entry.older = self.newest;
        }
        self.newest = index;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a new tag as a writer with an unlimited dictionary would.
    fn new(tag: &[u8]) -> Vec<u8> {
        [&[NEW, u8::try_from(tag.len()).unwrap()], tag].concat()
    }

    #[test]
    fn entries_are_reused_and_the_oldest_is_replaced() {
        let mut dictionary = TagDictionary::default();
        let mut out = vec![];
        for n in 0..CAPACITY {
            let tag = u16::try_from(n).unwrap().to_be_bytes();
            dictionary.decode(&mut Cursor::new(&new(&tag), 0), 4, &mut out).unwrap();
        }
        out.clear();
        // Using entry 0 makes entry 1 the oldest when the next tag is added.
        dictionary.decode(&mut Cursor::new(&[0, 0], 0), 4, &mut out).unwrap();
        dictionary.decode(&mut Cursor::new(&new(b"xyz"), 0), 5, &mut out).unwrap();
        dictionary.decode(&mut Cursor::new(&[0, 1, 0, 2], 0), 9, &mut out).unwrap();
        assert_eq!(out, b"\0\x02\0\0\0\x03xyz\0\x03xyz\0\x02\0\x02");
        let e = dictionary.decode(&mut Cursor::new(&[0x7f, 0xff], 0), 4, &mut out).unwrap_err();
        assert_eq!(e.to_string(), "byte 0: tag dictionary: expected one of 32767 entries, found 32767");
    }
}
