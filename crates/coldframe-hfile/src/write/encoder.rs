//! Encodes the content of data blocks: cells in plain form or in an encoding.
//!
//! The layouts are in [`crate::layout::cell`] and [`crate::layout::encoding`]. The content of an encoded
//! block begins with the id of the encoding and, except for ROW_INDEX_V1, with the size of its cells in plain
//! form, which is known only at the end.

use coldframe_core::{Error, Result};
use coldframe_encoding::varint::{put_hadoop_vlong, put_uleb128};

use super::key::Key;
use crate::layout::block::BlockType;
use crate::layout::cell::Cell;
use crate::layout::encoding::Encoding;

/// Encodes one block after another.
pub(super) struct Encoder {
    encoding: Option<Encoding>,
    with_tags: bool,
    content: Vec<u8>,
    /// The size of the cells in plain form.
    plain_bytes: usize,
    cells: usize,
    /// The previous value, for encodings that omit repeated values.
    value: Vec<u8>,
    /// The offset of the first cell of each row.
    rows: Vec<u32>,
}

impl Encoder {
    pub(super) fn new(encoding: Option<Encoding>, with_tags: bool) -> Self {
        let mut encoder = Self {
            encoding,
            with_tags,
            content: Vec::new(),
            plain_bytes: 0,
            cells: 0,
            value: Vec::new(),
            rows: Vec::new(),
        };
        encoder.begin();
        encoder
    }

    /// Starts a block.
    pub(super) fn begin(&mut self) {
        self.content.clear();
        self.rows.clear();
        (self.plain_bytes, self.cells) = (0, 0);
        if let Some(encoding) = self.encoding {
            self.content.extend_from_slice(&number(encoding).to_be_bytes());
            if encoding != Encoding::RowIndexV1 {
                self.content.extend_from_slice(&[0; 4]);
            }
        }
    }

    /// The type of the data blocks.
    pub(super) fn block_type(&self) -> BlockType {
        if self.encoding.is_some() { BlockType::EncodedData } else { BlockType::Data }
    }

    /// The size of the block's cells in plain form, which decides when a block is full.
    pub(super) fn plain_bytes(&self) -> usize {
        self.plain_bytes
    }

    /// Whether the block has no cells.
    pub(super) fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// Whether the encoding allows only one family.
    pub(super) fn single_family(&self) -> bool {
        matches!(self.encoding, Some(Encoding::FastDiff | Encoding::Diff))
    }

    /// Appends a cell; `last` is the key of the previous cell.
    pub(super) fn push(&mut self, cell: &Cell<'_>, key: &Key, last: &Key) -> Result<()> {
        let first = self.cells == 0;
        match self.encoding {
            None => self.put_plain(cell, key)?,
            Some(Encoding::RowIndexV1) => {
                if first || key.row() != last.row() {
                    self.rows.push(u32::try_from(self.plain_bytes).unwrap_or(u32::MAX)); // blocks are below 2 GiB
                }
                self.put_plain(cell, key)?;
            }
            Some(Encoding::Prefix) => self.put_prefix(cell, key, if first { &[] } else { last.bytes() }),
            Some(Encoding::Diff) => self.put_diff(cell, key, (!first).then_some(last)),
            Some(Encoding::FastDiff) => self.put_fast_diff(cell, key, (!first).then_some(last)),
        }
        if !matches!(self.encoding, None | Some(Encoding::RowIndexV1)) {
            self.put_encoded_tags(cell);
        }
        let sequence_at = self.content.len();
        put_hadoop_vlong(&mut self.content, cell.sequence_id);
        let tags = if self.with_tags { 2 + cell.tags.len() } else { 0 };
        let sequence = self.content.len() - sequence_at;
        self.plain_bytes += 8 + key.bytes().len() + cell.value.len() + tags + sequence;
        self.cells += 1;
        if matches!(self.encoding, Some(Encoding::FastDiff | Encoding::Diff)) {
            self.value.clear();
            self.value.extend_from_slice(cell.value);
        }
        Ok(())
    }

    fn put_plain(&mut self, cell: &Cell<'_>, key: &Key) -> Result<()> {
        let key_len = u32::try_from(key.bytes().len()).map_err(|_| too_long("key", key.bytes()))?;
        let value_len = u32::try_from(cell.value.len()).map_err(|_| too_long("value", cell.value))?;
        self.content.reserve(key.bytes().len() + cell.value.len() + 32);
        self.content.extend_from_slice(&key_len.to_be_bytes());
        self.content.extend_from_slice(&value_len.to_be_bytes());
        self.content.extend_from_slice(key.bytes());
        self.content.extend_from_slice(cell.value);
        if self.with_tags {
            let tags_len = u16::try_from(cell.tags.len()).map_err(|_| too_long("tag list", cell.tags))?;
            self.content.extend_from_slice(&tags_len.to_be_bytes());
            self.content.extend_from_slice(cell.tags);
        }
        Ok(())
    }

    fn put_encoded_tags(&mut self, cell: &Cell<'_>) {
        if self.with_tags {
            self.put_length(cell.tags.len());
            self.content.extend_from_slice(cell.tags);
        }
    }

    fn put_length(&mut self, n: usize) {
        put_uleb128(&mut self.content, n as u64);
    }

    fn put_prefix(&mut self, cell: &Cell<'_>, key: &Key, last: &[u8]) {
        let shared = shared(key.bytes(), last);
        self.put_length(key.bytes().len() - shared);
        self.put_length(cell.value.len());
        self.put_length(shared);
        self.content.extend_from_slice(key.bytes().get(shared..).unwrap_or_default());
        self.content.extend_from_slice(cell.value);
    }

    fn put_fast_diff(&mut self, cell: &Cell<'_>, key: &Key, last: Option<&Key>) {
        let Some(last) = last else {
            self.content.push(0);
            self.put_length(key.bytes().len());
            self.put_length(cell.value.len());
            self.put_length(0);
            self.content.extend_from_slice(key.bytes());
            self.content.extend_from_slice(cell.value);
            return;
        };
        let same_key_len = key.bytes().len() == last.bytes().len();
        let same_value_len = cell.value.len() == self.value.len();
        let same_type = key.kind() == last.kind();
        let same_value = same_value_len && cell.value == self.value;
        let timestamp = key.timestamp().to_be_bytes();
        let shared_time = shared(&timestamp, &last.timestamp().to_be_bytes()).min(7);
        let flags = [same_key_len, same_value_len, same_type, same_value];
        let flags = flags.into_iter().zip(3..).fold(0, |f, (bit, at)| f | u8::from(bit) << at);
        self.content.push(flags | u8::try_from(shared_time).unwrap_or(7));
        self.put_key_head(cell, key, last, same_key_len, same_value_len);
        self.content.extend_from_slice(timestamp.get(shared_time..).unwrap_or_default());
        if !same_type {
            self.content.push(key.kind());
        }
        if !same_value {
            self.content.extend_from_slice(cell.value);
        }
    }

    fn put_diff(&mut self, cell: &Cell<'_>, key: &Key, last: Option<&Key>) {
        const SAME_TYPE: u8 = 1 << 2;
        const IS_DIFFERENCE: u8 = 1 << 3;
        const NEGATIVE: u8 = 1 << 7;
        let timestamp = key.timestamp();
        let (mut flags, mut stored) = (0, timestamp);
        if let Some(last) = last {
            let difference = last.timestamp().wrapping_sub(timestamp);
            if bytes_of(difference) < bytes_of(timestamp) {
                (flags, stored) = (IS_DIFFERENCE, difference);
            }
            flags |= if key.kind() == last.kind() { SAME_TYPE } else { 0 };
        } else {
            self.content.extend_from_slice(key.sized_family());
        }
        flags |= if stored < 0 { NEGATIVE } else { 0 };
        let width = bytes_of(stored);
        flags |= u8::try_from(width - 1).unwrap_or(7) << 4;
        let same_key_len = last.is_some_and(|last| key.bytes().len() == last.bytes().len());
        let same_value_len = last.is_some() && cell.value.len() == self.value.len();
        self.content.push(flags | u8::from(same_key_len) | u8::from(same_value_len) << 1);
        match last {
            Some(last) => self.put_key_head(cell, key, last, same_key_len, same_value_len),
            None => {
                self.put_length(key.bytes().len());
                self.put_length(cell.value.len());
                self.put_length(0);
                self.content.extend_from_slice(key.bytes().get(..key.row_end()).unwrap_or_default());
                self.content.extend_from_slice(key.qualifier());
            }
        }
        // This is the only little-endian integer of the format.
        let stored = stored.unsigned_abs().to_le_bytes();
        self.content.extend_from_slice(stored.get(..width).unwrap_or_default());
        if flags & SAME_TYPE == 0 {
            self.content.push(key.kind());
        }
        self.content.extend_from_slice(cell.value);
    }

    /// Writes the lengths that differ, the number of bytes shared with the previous key, and the rest of the
    /// row and the qualifier.
    fn put_key_head(
        &mut self,
        cell: &Cell<'_>,
        key: &Key,
        last: &Key,
        same_key_len: bool,
        same_value_len: bool,
    ) {
        if !same_key_len {
            self.put_length(key.bytes().len());
        }
        if !same_value_len {
            self.put_length(cell.value.len());
        }
        let row = key.bytes().get(..key.row_end()).unwrap_or_default();
        let last_row = last.bytes().get(..last.row_end()).unwrap_or_default();
        if row == last_row {
            let common = shared(key.qualifier(), last.qualifier());
            self.put_length(key.family_end() + common);
            self.content.extend_from_slice(key.qualifier().get(common..).unwrap_or_default());
        } else {
            // Keys of rows of different lengths already differ in their first two bytes, which hold the
            // length.
            let common = shared(row, last_row);
            self.put_length(common);
            self.content.extend_from_slice(row.get(common..).unwrap_or_default());
            self.content.extend_from_slice(key.qualifier());
        }
    }

    /// Ends the block and returns its content.
    pub(super) fn end(&mut self) -> Result<&[u8]> {
        let int = |n: usize| {
            let n = i32::try_from(n);
            n.map(i32::to_be_bytes).map_err(|_| Error::invalid("a block of more than 2 GiB in plain form"))
        };
        let plain = int(self.plain_bytes)?;
        match self.encoding {
            None => {}
            Some(Encoding::RowIndexV1) => {
                self.content.extend_from_slice(&int(self.rows.len())?);
                self.content.extend(self.rows.iter().flat_map(|at| at.to_be_bytes()));
                self.content.extend_from_slice(&plain);
            }
            Some(_) => {
                if let Some(size) = self.content.get_mut(2..).and_then(|c| c.first_chunk_mut()) {
                    *size = plain;
                }
            }
        }
        Ok(&self.content)
    }
}

/// The id of an encoding, at the start of its blocks.
fn number(encoding: Encoding) -> u16 {
    match encoding {
        Encoding::Prefix => 2,
        Encoding::Diff => 3,
        Encoding::FastDiff => 4,
        Encoding::RowIndexV1 => 7,
    }
}

fn too_long(what: &str, bytes: &[u8]) -> Error {
    Error::invalid(format!("a {what} of {} bytes is longer than the format allows", bytes.len()))
}

/// The length of the common prefix of two byte strings.
#[inline]
fn shared(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(a, b)| a == b).count()
}

/// The number of bytes that a number takes without its sign.
fn bytes_of(n: i64) -> usize {
    (71 - (n.unsigned_abs() | 1).leading_zeros() as usize) / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_the_bytes_they_need() {
        for (n, bytes) in [(0, 1), (255, 1), (256, 2), (-255, 1), (i64::MAX, 8), (i64::MIN, 8), (1 << 55, 7)]
        {
            assert_eq!(bytes_of(n), bytes, "{n}");
        }
    }
}
