//! Thrift's compact protocol, limited to what Redfile's structures need.
//!
//! ```text
//! struct | field ... | 00 |
//! field  | delta of the id << 4, type | value |      or | 00, type | id: zigzag | value |
//! list   | size << 4, type | element ... |           or | f0, type | size: LEB128 | element ... |
//! i16 .. i64: zigzag    binary: LEB128 length, bytes    bool: in the field's type (1 true, 2 false)
//! ```
//!
//! Source: the Thrift project's description of the compact protocol. Every size is compared with the remaining bytes
//! before it is used. Nesting is limited by [`Limits::max_depth`]. An element of one byte may decode to a
//! struct of two hundred bytes, so the memory of lists is limited by [`Limits::decoded`] before they are
//! built.

use coldframe_encoding::varint::{put_uleb128, put_zigzag};
use coldframe_encoding::{Cursor, Error, Limits, Result};

/// The type of a value, from the low half of a field's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ThriftType {
    /// A boolean field that is true; also the type of all booleans in a list.
    True = 1,
    /// A boolean field that is false.
    False = 2,
    /// One byte.
    Byte = 3,
    /// A zigzag integer of 16 bits.
    I16 = 4,
    /// A zigzag integer of 32 bits.
    I32 = 5,
    /// A zigzag integer of 64 bits.
    I64 = 6,
    /// Eight bytes, little endian.
    Double = 7,
    /// Bytes or text.
    Binary = 8,
    /// Values of one type.
    List = 9,
    /// A set, stored like a list.
    Set = 10,
    /// Pairs of keys and values.
    Map = 11,
    /// A struct of fields.
    Struct = 12,
}

impl ThriftType {
    fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::True,
            2 => Self::False,
            3 => Self::Byte,
            4 => Self::I16,
            5 => Self::I32,
            6 => Self::I64,
            7 => Self::Double,
            8 => Self::Binary,
            9 => Self::List,
            10 => Self::Set,
            11 => Self::Map,
            12 => Self::Struct,
            _ => return None,
        })
    }
}

/// A field's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// The field's id.
    pub(crate) id: i16,
    /// The type of the field's value.
    pub(crate) kind: ThriftType,
}

/// Reads structures from the front of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    cursor: Cursor<'a>,
    depth: u64,
    limits: Limits,
    /// A lower bound for the length of the file.
    file_len: u64,
    /// Memory of the lists built so far.
    built: u64,
}

impl<'a> Reader<'a> {
    /// `offset`: the offset of `bytes[0]` in the file.
    pub(crate) fn new(bytes: &'a [u8], offset: u64, limits: &Limits) -> Self {
        let file_len = offset.saturating_add(bytes.len() as u64);
        Self { cursor: Cursor::new(bytes, offset), depth: 0, limits: *limits, file_len, built: 0 }
    }

    /// Offset in the file of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.cursor.offset()
    }

    /// The unread bytes.
    pub(crate) fn cursor(&self) -> &Cursor<'a> {
        &self.cursor
    }

    /// The unread bytes, for reading in another way.
    pub(crate) fn cursor_mut(&mut self) -> &mut Cursor<'a> {
        &mut self.cursor
    }

    /// Reads a struct: `each` is called with every field and must read or [`Self::skip`] its value.
    pub(crate) fn structure(&mut self, mut each: impl FnMut(&mut Self, Field) -> Result<()>) -> Result<()> {
        self.nested(|reader| {
            let mut last = 0;
            while let Some(field) = reader.field(last)? {
                last = field.id;
                each(reader, field)?;
            }
            Ok(())
        })
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.depth += 1;
        self.limits.depth("a thrift structure", self.depth)?;
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    /// The next field's header; `None` at the end of the struct.
    fn field(&mut self, last: i16) -> Result<Option<Field>> {
        let at = self.offset();
        let header = self.cursor.u8()?;
        if header == 0 {
            return Ok(None);
        }
        let kind = ThriftType::from_code(header & 0x0f).ok_or_else(|| {
            Error::corrupt(format!("expected a thrift type of 1 to 12, found {}", header & 0x0f)).at(at)
        })?;
        let id = match header >> 4 {
            0 => i16::try_from(self.cursor.zigzag()?).ok(),
            delta => last.checked_add(i16::from(delta)),
        };
        let id =
            id.ok_or_else(|| Error::corrupt("expected a field id of 16 bits, found a larger one").at(at))?;
        Ok(Some(Field { id, kind }))
    }

    fn expect(&self, field: Field, kind: ThriftType) -> Result<()> {
        if field.kind == kind {
            return Ok(());
        }
        Err(Error::corrupt(format!("field {}: expected {kind:?}, found {:?}", field.id, field.kind))
            .at(self.offset()))
    }

    fn integer<T: TryFrom<i64>>(&mut self, field: Field) -> Result<T> {
        let at = self.offset();
        let value = self.cursor.zigzag()?;
        T::try_from(value).map_err(|_| {
            Error::corrupt(format!("field {}: expected {:?}, found {value}", field.id, field.kind)).at(at)
        })
    }

    /// The value of an `i32` field.
    pub(crate) fn i32(&mut self, field: Field) -> Result<i32> {
        self.expect(field, ThriftType::I32)?;
        self.integer(field)
    }

    /// The value of an `i64` field.
    pub(crate) fn i64(&mut self, field: Field) -> Result<i64> {
        self.expect(field, ThriftType::I64)?;
        self.integer(field)
    }

    /// The value of a binary field.
    pub(crate) fn binary(&mut self, field: Field) -> Result<&'a [u8]> {
        self.expect(field, ThriftType::Binary)?;
        self.cursor.uleb128_bytes()
    }

    /// The value of a text field.
    pub(crate) fn text(&mut self, field: Field) -> Result<String> {
        let at = self.offset();
        let bytes = self.binary(field)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| {
            Error::corrupt(format!("field {}: expected UTF-8 text, found other bytes", field.id)).at(at)
        })
    }

    /// The value of a struct field.
    pub(crate) fn struct_field(
        &mut self,
        field: Field,
        each: impl FnMut(&mut Self, Field) -> Result<()>,
    ) -> Result<()> {
        self.expect(field, ThriftType::Struct)?;
        self.structure(each)
    }

    /// The value of a list field: `each` reads one element of type `kind`.
    pub(crate) fn list<T>(
        &mut self,
        field: Field,
        kind: ThriftType,
        mut each: impl FnMut(&mut Self, Field) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.expect(field, ThriftType::List)?;
        let (actual, size) = self.list_header()?;
        // An empty list may state any type.
        if size > 0 && actual != Some(kind) {
            return Err(Error::corrupt(format!(
                "field {}: expected a list of {kind:?}, found one of {actual:?}",
                field.id
            ))
            .at(self.offset()));
        }
        let element = Field { id: field.id, kind };
        self.charge(size, size_of::<T>())?;
        let mut values = Vec::with_capacity(size);
        for _ in 0..size {
            values.push(each(self, element)?);
        }
        Ok(values)
    }

    /// Counts the memory of `count` elements of `each` bytes; an error if all lists together are too large
    /// for a file of this length.
    fn charge(&mut self, count: usize, each: usize) -> Result<()> {
        self.built = self.built.saturating_add((count as u64).saturating_mul(each as u64));
        self.limits.decoded("the lists of a footer", self.built, self.file_len)
    }

    /// Reads the type and the number of a list's elements; an element takes at least one byte.
    fn list_header(&mut self) -> Result<(Option<ThriftType>, usize)> {
        let at = self.offset();
        let header = self.cursor.u8()?;
        let size = match header >> 4 {
            15 => self.cursor.uleb128()?,
            size => size.into(),
        };
        let size = self.fits(size, at)?;
        Ok((ThriftType::from_code(header & 0x0f), size))
    }

    fn fits(&self, size: u64, at: u64) -> Result<usize> {
        let left = self.cursor.remaining();
        usize::try_from(size)
            .ok()
            .filter(|n| *n <= left)
            .ok_or_else(|| Error::corrupt(format!("expected at most {left} elements, found {size}")).at(at))
    }

    /// Skips a value.
    pub(crate) fn skip(&mut self, field: Field) -> Result<()> {
        match field.kind {
            ThriftType::True | ThriftType::False => Ok(()),
            other => self.skip_value(other),
        }
    }

    fn skip_value(&mut self, kind: ThriftType) -> Result<()> {
        match kind {
            // Unlike in a field, a boolean in a list takes a byte.
            ThriftType::True | ThriftType::False | ThriftType::Byte => self.cursor.skip(1),
            ThriftType::I16 | ThriftType::I32 | ThriftType::I64 => self.cursor.uleb128().map(drop),
            ThriftType::Double => self.cursor.skip(8),
            ThriftType::Binary => self.binary(Field { id: 0, kind }).map(drop),
            ThriftType::Struct => self.structure(|reader, field| reader.skip(field)),
            ThriftType::List | ThriftType::Set => self.nested(|reader| {
                let at = reader.offset();
                let (element, size) = reader.list_header()?;
                for _ in 0..size {
                    reader.skip_value(known(element, at)?)?;
                }
                Ok(())
            }),
            ThriftType::Map => self.nested(|reader| {
                let at = reader.offset();
                let size = reader.cursor.uleb128()?;
                if size == 0 {
                    return Ok(());
                }
                let size = reader.fits(size, at)?;
                let types = reader.cursor.u8()?;
                let (key, value) = (ThriftType::from_code(types >> 4), ThriftType::from_code(types & 0x0f));
                for _ in 0..size {
                    reader.skip_value(known(key, at)?)?;
                    reader.skip_value(known(value, at)?)?;
                }
                Ok(())
            }),
        }
    }
}

fn known(kind: Option<ThriftType>, at: u64) -> Result<ThriftType> {
    kind.ok_or_else(|| Error::corrupt("expected a thrift type of 1 to 12, found another one").at(at))
}

/// Writes structures to a buffer. Fields are written in ascending order of their ids.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
    last: Vec<i16>,
}

impl Writer {
    /// An empty writer.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The written bytes.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }

    /// Appends a struct, whose fields are written by `write`.
    pub(crate) fn structure(&mut self, write: impl FnOnce(&mut Self)) {
        self.last.push(0);
        write(self);
        self.last.pop();
        self.out.push(0);
    }

    fn header(&mut self, id: i16, kind: ThriftType) {
        let last = self.last.last().copied().unwrap_or_default();
        match u8::try_from(i32::from(id) - i32::from(last)) {
            Ok(delta @ 1..=15) => self.out.push(delta << 4 | kind as u8),
            _ => {
                self.out.push(kind as u8);
                put_zigzag(&mut self.out, id.into());
            }
        }
        if let Some(last) = self.last.last_mut() {
            *last = id;
        }
    }

    /// An `i32` field.
    pub(crate) fn i32(&mut self, id: i16, value: i32) {
        self.header(id, ThriftType::I32);
        put_zigzag(&mut self.out, value.into());
    }

    /// An `i64` field.
    pub(crate) fn i64(&mut self, id: i16, value: i64) {
        self.header(id, ThriftType::I64);
        put_zigzag(&mut self.out, value);
    }

    /// A binary or text field.
    pub(crate) fn binary(&mut self, id: i16, value: &[u8]) {
        self.header(id, ThriftType::Binary);
        self.element_binary(value);
    }

    /// A struct field.
    pub(crate) fn struct_field(&mut self, id: i16, write: impl FnOnce(&mut Self)) {
        self.header(id, ThriftType::Struct);
        self.structure(write);
    }

    /// A list field: `each` writes one element with an `element_` method or with [`Self::structure`].
    pub(crate) fn list<T>(
        &mut self,
        id: i16,
        kind: ThriftType,
        values: &[T],
        mut each: impl FnMut(&mut Self, &T),
    ) {
        self.header(id, ThriftType::List);
        match u8::try_from(values.len()) {
            Ok(size @ 0..=14) => self.out.push(size << 4 | kind as u8),
            _ => {
                self.out.push(0xf0 | kind as u8);
                put_uleb128(&mut self.out, values.len() as u64);
            }
        }
        for value in values {
            each(self, value);
        }
    }

    /// An `i32` element of a list.
    pub(crate) fn element_i32(&mut self, value: i32) {
        put_zigzag(&mut self.out, value.into());
    }

    /// A binary or text element of a list.
    pub(crate) fn element_binary(&mut self, value: &[u8]) {
        put_uleb128(&mut self.out, value.len() as u64);
        self.out.extend_from_slice(value);
    }
}

#[cfg(test)]
mod tests;
