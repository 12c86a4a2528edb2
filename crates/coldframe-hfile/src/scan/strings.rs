//! Collects byte strings and tags for Arrow columns.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, BinaryArray, ListArray, StringArray, StructArray, UInt8Array};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields};
use coldframe_core::{Error, Result, arrow_error};

use crate::layout::cell::Tags;
use crate::layout::encoding::put;

/// The maximum number of bytes that 32-bit offsets can address.
pub(crate) const MAX_BYTES: usize = 0x7fff_ffff;

/// Collects byte strings.
#[derive(Debug)]
pub(crate) struct Strings {
    /// The end offset of each string, after a leading 0. [`Self::check_size`] detects offsets that need more
    /// than 31 bits.
    ends: Vec<i32>,
    bytes: Vec<u8>,
}

impl Strings {
    pub(crate) fn new() -> Self {
        Self { ends: vec![0], bytes: Vec::new() }
    }

    /// Reserves room for `times` the current content, and a little more.
    pub(crate) fn reserve_times(&mut self, times: usize, most: usize) {
        let more = |len: usize| (len.saturating_mul(times) + len / 4).min(most);
        self.bytes.reserve(more(self.bytes.len()));
        self.ends.reserve(more(self.ends.len()));
    }

    /// The number of stored bytes and of strings.
    pub(crate) fn room(&self) -> (usize, usize) {
        (self.bytes.len(), self.ends.len())
    }

    /// Reserves room for this many bytes and strings.
    pub(crate) fn reserve(&mut self, (bytes, strings): (usize, usize)) {
        self.bytes.reserve(bytes);
        self.ends.reserve(strings);
    }

    /// Appends one string.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: &[u8]) {
        put(&mut self.bytes, value);
        self.ends.push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
    }

    /// Appends strings.
    #[inline]
    pub(crate) fn extend<'a>(&mut self, values: impl ExactSizeIterator<Item = &'a [u8]> + Clone) {
        let mut end = self.bytes.len();
        self.ends.extend(values.clone().map(|value| {
            end += value.len();
            i32::try_from(end).unwrap_or(i32::MAX)
        }));
        self.bytes.reserve(end - self.bytes.len());
        values.for_each(|value| put(&mut self.bytes, value));
    }

    /// Keeps the first `rows` strings.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows.saturating_add(1));
        self.bytes.truncate(self.start(rows));
    }

    /// The start of string `row`.
    fn start(&self, row: usize) -> usize {
        let end = self.ends.get(row).or(self.ends.last());
        end.and_then(|n| usize::try_from(*n).ok()).unwrap_or(0)
    }

    /// The total size of the strings.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Fails if a string from `row` on is not UTF-8.
    pub(crate) fn check_text(&self, row: usize, what: &str) -> Result<()> {
        let bytes = self.bytes.get(self.start(row)..).unwrap_or_default();
        if bytes.is_ascii() {
            return Ok(());
        }
        let first = self.start(row);
        let ends = self.ends.get(row..).unwrap_or_default();
        let whole = simdutf8::basic::from_utf8(bytes).is_ok_and(|text| {
            let inside = |end: &i32| usize::try_from(*end).ok().and_then(|end| end.checked_sub(first));
            ends.iter().all(|end| inside(end).is_some_and(|at| text.is_char_boundary(at)))
        });
        if whole { Ok(()) } else { Err(not_text(what)) }
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, arrow_buffer::Buffer) {
        let full = std::mem::replace(self, Self::new());
        (OffsetBuffer::new(ScalarBuffer::from(full.ends)), full.bytes.into())
    }

    pub(crate) fn binary(&mut self) -> Result<BinaryArray> {
        let (offsets, bytes) = self.take();
        BinaryArray::try_new(offsets, bytes, None).map_err(arrow_error)
    }

    pub(crate) fn text(&mut self, what: &str) -> Result<StringArray> {
        let (offsets, bytes) = self.take();
        StringArray::try_new(offsets, bytes, None).map_err(|_| not_text(what))
    }
}

/// The error for bytes that are not text, in a text column.
pub(crate) fn not_text(what: &str) -> Error {
    Error::corrupt(format!("{what}: expected UTF-8; `view=\"cells\"` shows the bytes"))
}

/// The type of a tag in Arrow.
pub(crate) fn tag_fields() -> Fields {
    Fields::from(vec![Field::new("type", DataType::UInt8, true), Field::new("value", DataType::Binary, true)])
}

/// Collects the tags of cells.
#[derive(Debug)]
pub(crate) struct TagLists {
    /// The end of each cell's tags among all tags, after a leading 0.
    ends: Vec<i32>,
    kinds: Vec<u8>,
    values: Strings,
    /// The number of tags so far.
    end: i32,
}

impl TagLists {
    pub(crate) fn new() -> Self {
        Self { ends: vec![0], kinds: Vec::new(), values: Strings::new(), end: 0 }
    }

    /// Appends the tags of a cell, given as stored.
    #[inline(always)]
    pub(crate) fn push(&mut self, tags: &[u8]) -> Result<()> {
        if !tags.is_empty() {
            self.push_all(tags)?;
        }
        self.ends.push(self.end);
        Ok(())
    }

    fn push_all(&mut self, tags: &[u8]) -> Result<()> {
        let mut tags = Tags::new(tags);
        while let Some((kind, value)) = tags.next_tag()? {
            self.kinds.push(kind);
            self.values.push(value);
        }
        self.end = i32::try_from(self.kinds.len()).unwrap_or(i32::MAX);
        Ok(())
    }

    /// Reserves room for this many more cells, assuming that they have no tags.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.ends.reserve(rows);
    }

    /// Keeps the tags of the first `rows` cells.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows.saturating_add(1));
        self.end = self.ends.last().copied().unwrap_or(0);
        let tags = usize::try_from(self.end).unwrap_or(0);
        self.kinds.truncate(tags);
        self.values.truncate(tags);
    }

    /// The total size of the tags.
    pub(crate) fn size(&self) -> usize {
        self.values.size()
    }

    pub(crate) fn finish(&mut self) -> Result<ListArray> {
        let Self { ends, kinds, mut values, .. } = std::mem::replace(self, Self::new());
        let columns: Vec<ArrayRef> = vec![Arc::new(UInt8Array::from(kinds)), Arc::new(values.binary()?)];
        let tags = StructArray::try_new(tag_fields(), columns, None).map_err(arrow_error)?;
        let item = Arc::new(Field::new_list_field(tags.data_type().clone(), true));
        let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
        ListArray::try_new(item, ends, Arc::new(tags), None).map_err(arrow_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_all_lengths_are_appended_intact() {
        let all: Vec<u8> = (0..200).collect();
        let mut strings = Strings::new();
        for n in 0..all.len() {
            strings.push(&all[..n]);
        }
        let array = strings.binary().unwrap();
        assert!((0..all.len()).all(|n| array.value(n) == &all[..n]));
    }

    #[test]
    fn text_is_checked_string_by_string() {
        let mut strings = Strings::new();
        strings.push(b"\xc3");
        strings.push(b"\xa9");
        assert!(strings.check_text(0, "key").is_err() && strings.check_text(1, "key").is_err());
        strings.truncate(0);
        strings.push("é".as_bytes());
        strings.push(b"plain");
        assert!(strings.check_text(0, "key").is_ok() && strings.check_text(1, "key").is_ok());
        strings.truncate(1);
        assert_eq!(strings.text("key").unwrap(), StringArray::from(vec!["é"]));
    }

    #[test]
    fn truncating_removes_tags() {
        let mut lists = TagLists::new();
        lists.push(b"\0\x02\x01x\0\x01\x02").unwrap();
        lists.push(b"").unwrap();
        assert!(lists.push(b"\0\x02\x01y\0").is_err());
        lists.truncate(1);
        lists.push(b"\0\x02\x03z").unwrap();
        let array = lists.finish().unwrap();
        assert_eq!(array.value_offsets(), [0, 2, 3]);
        assert_eq!(array.values().len(), 3);
    }
}
