//! Reads `string`, `char`, `varchar` and `binary`, whose cells are the bytes of the value.
//!
//! An array can share the column's bytes and offsets if all values are valid: the bytes are UTF-8 as a whole,
//! no cell begins inside a character (so no cell is the lone `bf` of an empty string), no cell is longer than
//! its type, and each `char` is padded. Otherwise the bytes are copied: in runs if only empty strings prevent
//! sharing, else cell by cell.
//!
//! Malformed UTF-8 is read as in Java, with U+FFFD for each malformed sequence.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use coldframe_core::{Change, Changes};
use coldframe_encoding::{Error, Result};

use super::cells::{CellError, Run, Values, at};
use super::framing::Framing;

/// The one byte of an empty `string` in a column; it is not valid UTF-8 on its own.
pub(super) const EMPTY_STRING: u8 = 0xbf;

pub(super) struct Binary;

impl Values for Binary {
    fn framing(&self) -> Framing {
        Framing::Length
    }

    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        let array = BinaryArray::try_new(run.offsets.clone(), run.data.clone(), run.nulls.clone());
        Ok(Arc::new(array.map_err(|e| CellError::new(0, Error::corrupt(e.to_string())))?))
    }
}

/// Strings as their bytes.
pub(super) struct StringBytes;

impl Values for StringBytes {
    fn framing(&self) -> Framing {
        Framing::Length
    }

    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        let is_mark = |cell: &[u8]| run.top_level && cell == [EMPTY_STRING];
        if !run.cells().any(is_mark) {
            return Binary.decode(run);
        }
        let mut data = Vec::with_capacity(run.bytes().len());
        let mut offsets = Vec::with_capacity(run.len() + 1);
        offsets.push(0i32);
        for (i, cell) in run.cells().enumerate() {
            if !is_mark(cell) {
                data.extend_from_slice(cell);
            }
            offsets.push(i32::try_from(data.len()).map_err(|_| CellError::new(i, too_long(data.len())))?);
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let array = BinaryArray::try_new(offsets, Buffer::from_vec(data), run.nulls.clone());
        Ok(Arc::new(array.map_err(|e| CellError::new(0, Error::corrupt(e.to_string())))?))
    }
}

/// The limit that a type sets on the code points of a value.
#[derive(Clone, Copy)]
pub(super) enum CharLimit {
    AsIs,
    /// At most this many.
    AtMost(u32),
    /// Exactly this many.
    Padded(u32),
}

pub(super) struct Text {
    shape: CharLimit,
    changes: Changes,
}

impl Text {
    pub(super) fn new(shape: CharLimit, changes: &Changes) -> Self {
        Self { shape, changes: changes.clone() }
    }
}

impl Values for Text {
    fn framing(&self) -> Framing {
        Framing::Length
    }

    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        let (bytes, offsets) = run.own();
        let as_stored = StringArray::try_new(offsets, bytes, run.nulls.clone());
        let array = match as_stored {
            Ok(array) => array,
            Err(_) if matches!(self.shape, CharLimit::AsIs) && run.top_level => match without_marks(run) {
                Some(array) => array,
                None => self.decode_each(run)?,
            },
            Err(_) => return Ok(Arc::new(self.decode_each(run)?)),
        };
        if self.fits(&array) {
            return Ok(Arc::new(array));
        }
        Ok(Arc::new(self.decode_each(run)?))
    }
}

impl Text {
    /// Whether every value has a length that the type allows.
    fn fits(&self, array: &StringArray) -> bool {
        let (limit, exactly) = match self.shape {
            CharLimit::AsIs => return true,
            CharLimit::AtMost(n) => (n, false),
            CharLimit::Padded(n) => (n, true),
        };
        let (Ok(limit), offsets) = (usize::try_from(limit), array.value_offsets()) else { return true };
        let lengths = || offsets.iter().zip(offsets.iter().skip(1)).map(|(start, end)| at(*end) - at(*start));
        if array.is_ascii() {
            let misfits =
                lengths().filter(|n| if exactly { *n != limit && *n != 0 } else { *n > limit }).count();
            // An empty value of a nested `char` is not null and must be padded.
            return misfits == 0 && !(exactly && limit > 0 && has_empty(array));
        }
        array.iter().flatten().all(|s| {
            let n = s.chars().count();
            if exactly { n == limit } else { n <= limit }
        })
    }

    /// The general case: decodes value by value.
    fn decode_each(&self, run: &Run<'_>) -> Result<StringArray, CellError> {
        let mut text = String::with_capacity(run.bytes().len());
        let mut offsets = Vec::with_capacity(run.len() + 1);
        offsets.push(0i32);
        for (i, cell) in run.cells().enumerate() {
            if !run.is_null(i) {
                self.append(&mut text, cell, run.top_level);
            }
            offsets.push(i32::try_from(text.len()).map_err(|_| CellError::new(i, too_long(text.len())))?);
        }
        build(text.into_bytes(), offsets, run).map_err(|e| CellError::new(0, e))
    }

    fn append(&self, text: &mut String, cell: &[u8], top_level: bool) {
        match self.shape {
            CharLimit::AsIs if top_level && cell == [EMPTY_STRING] => {}
            CharLimit::AsIs => text.push_str(&self.java_text(cell)),
            CharLimit::AtMost(n) => {
                text.extend(self.java_text(cell).chars().take(usize::try_from(n).unwrap_or(usize::MAX)))
            }
            CharLimit::Padded(n) => {
                let n = usize::try_from(n).unwrap_or(usize::MAX);
                let cell = self.java_text(cell);
                text.extend(cell.chars().take(n));
                // The maximum number of blanks that a `char` needs.
                let missing = n.saturating_sub(cell.chars().count());
                text.extend(std::iter::repeat_n(' ', missing.min(MAX_CHAR)));
            }
        }
    }

    /// Calls [`java_text`] and counts the values that it changes.
    fn java_text<'a>(&self, cell: &'a [u8]) -> Cow<'a, str> {
        let text = java_text(cell);
        self.changes.add(Change::Text, u64::from(matches!(text, Cow::Owned(_))));
        text
    }
}

/// Hive's `HiveChar.MAX_CHAR_LENGTH`.
const MAX_CHAR: usize = 255;

fn has_empty(array: &StringArray) -> bool {
    array.iter().flatten().any(str::is_empty)
}

/// The strings of a column whose only invalid UTF-8 is the marks of empty strings: the bytes between the marks
/// are copied in runs.
fn without_marks(run: &Run<'_>) -> Option<StringArray> {
    let data = run.data.as_slice();
    let mut bytes = Vec::with_capacity(run.bytes().len());
    let mut offsets = Vec::with_capacity(run.len() + 1);
    offsets.push(0i32);
    let base = at(run.offsets.first());
    let (mut copied, mut marks) = (base, 0);
    for (start, end) in run.places() {
        if end - start == 1 && data.get(start) == Some(&EMPTY_STRING) {
            bytes.extend_from_slice(data.get(copied..start)?);
            copied = end;
            marks += 1;
        }
        offsets.push(i32::try_from(end - base - marks).ok()?);
    }
    if marks == 0 {
        return None;
    }
    let end = at(run.offsets.last());
    bytes.extend_from_slice(data.get(copied..end)?);
    build(bytes, offsets, run).ok()
}

fn build(bytes: Vec<u8>, offsets: Vec<i32>, run: &Run<'_>) -> Result<StringArray> {
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    StringArray::try_new(offsets, Buffer::from_vec(bytes), run.nulls.clone())
        .map_err(|e| Error::corrupt(e.to_string()))
}

#[cold]
fn too_long(bytes: usize) -> Error {
    Error::batch_too_long("values of a text column", bytes as u64)
}

/// Bytes as `java.lang.String` reads them: like [`String::from_utf8_lossy`], but a surrogate in three bytes is one
/// malformed sequence instead of three.
fn java_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        let (valid, error_length) = match std::str::from_utf8(rest) {
            Ok(valid) => (valid, None),
            Err(e) => {
                let (valid, wrong) = rest.split_at_checked(e.valid_up_to()).unwrap_or_default();
                (std::str::from_utf8(valid).unwrap_or_default(), Some(malformed(wrong, e.error_len())))
            }
        };
        text.push_str(valid);
        if error_length.is_some() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        rest = rest.get(valid.len() + error_length.unwrap_or(0)..).unwrap_or_default();
    }
    Cow::Owned(text)
}

/// The length of the malformed sequence at the start of `wrong`.
fn malformed(wrong: &[u8], by_unicode: Option<usize>) -> usize {
    match wrong {
        [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => 3,
        [0xed, 0xa0..=0xbf, ..] => 2,
        _ => by_unicode.unwrap_or(wrong.len()).max(1),
    }
}
