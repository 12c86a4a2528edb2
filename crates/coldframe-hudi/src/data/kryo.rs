//! Deletes of Hudi 0.7 to 0.12: Java objects as the library Kryo (version 4) stores them.
//!
//! ```text
//! class    varint: 0 null | 1 by name: varint number of the name, at its first use the name itself | n + 2 of a fixed list
//! object   class | reference | fields in the order of their names
//! reference  varint: 0 null | 1 a new object | n + 2 the n-th object, once more
//! array    class | reference | varint length + 1 | objects
//! text     ASCII, 0x80 added to the last byte | varint length + 1 with 0x80 and 0x40 in its first byte, then UTF-8
//! ```
//!
//! An array of `HoodieKey` (partition path, record key) is a block of version 1, one of `DeleteRecord` (key, ordering value) of
//! version 2. Texts are objects with references too; numbers are not.

use coldframe_core::{Error, Limits, Result};
use coldframe_encoding::Cursor;

use crate::data::order::{Delete, Order};

const KEY: &str = "org.apache.hudi.common.model.HoodieKey";
const KEYS: &str = "[Lorg.apache.hudi.common.model.HoodieKey;";
const DELETE: &str = "org.apache.hudi.common.model.DeleteRecord";
const DELETES: &str = "[Lorg.apache.hudi.common.model.DeleteRecord;";

/// A class of the list that every Kryo has, or one by name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Class {
    Null,
    Number(u64),
    Named(String),
}

/// What a reference leads to.
enum Reference {
    Null,
    New,
    Known(usize),
}

/// The objects of one delete block.
struct Objects<'a> {
    cursor: Cursor<'a>,
    names: Vec<String>,
    /// The objects so far; texts can be referred to again.
    seen: Vec<Option<String>>,
}

/// The deletes in the content of a block.
pub(crate) fn deletes(content: &[u8], at: u64, limits: &Limits) -> Result<Vec<Delete>> {
    let mut objects = Objects { cursor: Cursor::new(content, at), names: Vec::new(), seen: Vec::new() };
    let whole = match objects.class()? {
        Class::Named(name) if name == KEYS => false,
        Class::Named(name) if name == DELETES => true,
        other => return Err(Error::unsupported(format!("deletes as Java objects of class {other:?}"))),
    };
    objects.new_object()?;
    let count = objects.cursor.uleb128()?.checked_sub(1);
    let count = count.ok_or_else(|| Error::corrupt("expected the length of an array, found none"))?;
    // An object takes several bytes.
    let room = objects.cursor.remaining() as u64;
    if count > room {
        return Err(Error::corrupt(format!("expected {count} deletes, found only {room} bytes")));
    }
    limits.metadata("deletes of a log block", count)?;
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(if whole { objects.delete()? } else { objects.key()?.map(Delete::of_key) });
    }
    objects.cursor.finish()?;
    Ok(all.into_iter().flatten().collect())
}

impl Objects<'_> {
    fn class(&mut self) -> Result<Class> {
        match self.cursor.uleb128()? {
            0 => Ok(Class::Null),
            1 => {
                let number = self.cursor.uleb128()?;
                let number = usize::try_from(number).unwrap_or(usize::MAX);
                if let Some(name) = self.names.get(number) {
                    return Ok(Class::Named(name.clone()));
                }
                if number != self.names.len() {
                    let known = self.names.len();
                    return Err(Error::corrupt(format!("expected a class below {known}, found {number}")));
                }
                let name = self.text()?.unwrap_or_default();
                self.names.push(name.clone());
                Ok(Class::Named(name))
            }
            number => Ok(Class::Number(number - 2)),
        }
    }

    fn reference(&mut self) -> Result<Reference> {
        match self.cursor.uleb128()? {
            0 => Ok(Reference::Null),
            1 => Ok(Reference::New),
            known => Ok(Reference::Known(usize::try_from(known - 2).unwrap_or(usize::MAX))),
        }
    }

    fn new_object(&mut self) -> Result<()> {
        match self.reference()? {
            Reference::New => {
                self.seen.push(None);
                Ok(())
            }
            _ => Err(Error::unsupported("deletes as Java objects that occur several times")),
        }
    }

    /// A delete with its key and ordering value.
    fn delete(&mut self) -> Result<Option<Delete>> {
        match self.class()? {
            Class::Null => return Ok(None),
            Class::Named(name) if name == DELETE => self.new_object()?,
            other => return Err(unexpected(DELETE, &other)),
        }
        let key = self.key()?;
        let order = self.order()?;
        Ok(key.map(|key| Delete { key, order }))
    }

    /// The record key of a key.
    fn key(&mut self) -> Result<Option<Vec<u8>>> {
        match self.class()? {
            Class::Null => return Ok(None),
            Class::Named(name) if name == KEY => self.new_object()?,
            other => return Err(unexpected(KEY, &other)),
        }
        let _partition = self.field()?;
        Ok(self.field()?.map(String::into_bytes))
    }

    /// A text that is a field.
    fn field(&mut self) -> Result<Option<String>> {
        match self.reference()? {
            Reference::Null => Ok(None),
            Reference::New => {
                let place = self.seen.len();
                self.seen.push(None);
                let text = self.text()?;
                if let Some(known) = self.seen.get_mut(place) {
                    known.clone_from(&text);
                }
                Ok(text)
            }
            Reference::Known(number) => match self.seen.get(number) {
                Some(Some(text)) => Ok(Some(text.clone())),
                _ => Err(Error::corrupt(format!("expected the number of a text, found {number}"))),
            },
        }
    }

    /// An ordering value.
    fn order(&mut self) -> Result<Order> {
        Ok(match self.class()? {
            Class::Null => Order::Natural,
            // The default of a delete without an ordering value.
            Class::Number(0) => match self.cursor.zigzag()? {
                0 => Order::Natural,
                value => Order::Int(value),
            },
            Class::Number(1) => self.field()?.map_or(Order::Natural, |text| Order::Text(text.into())),
            Class::Number(2) => Order::Float(f32::from_be_bytes(self.cursor.array()?).into()),
            Class::Number(3) => Order::Int((self.cursor.u8()? != 0).into()),
            Class::Number(7) => Order::Int(self.cursor.zigzag()?),
            Class::Number(8) => Order::Float(f64::from_be_bytes(self.cursor.array()?)),
            other => {
                return Err(Error::unsupported(format!(
                    "ordering values of deletes of Java's class {other:?}"
                )));
            }
        })
    }

    fn text(&mut self) -> Result<Option<String>> {
        let first = self.cursor.u8()?;
        let bytes = if first & 0x80 == 0 {
            let mut bytes = vec![first];
            loop {
                let byte = self.cursor.u8()?;
                bytes.push(byte & 0x7f);
                if byte & 0x80 != 0 {
                    break bytes;
                }
            }
        } else {
            let mut length = u64::from(first & 0x3f);
            let (mut more, mut shift) = (first & 0x40 != 0, 6);
            while more && shift < 34 {
                let byte = self.cursor.u8()?;
                length |= u64::from(byte & 0x7f) << shift;
                (more, shift) = (byte & 0x80 != 0, shift + 7);
            }
            let Some(chars) = length.checked_sub(1) else { return Ok(None) };
            return self.characters(chars).map(Some);
        };
        String::from_utf8(bytes).map(Some).map_err(|_| Error::corrupt("expected text, found other bytes"))
    }

    /// Text of so many UTF-16 units, each stored like a character of UTF-8.
    fn characters(&mut self, count: u64) -> Result<String> {
        let room = self.cursor.remaining() as u64;
        if count > room {
            return Err(Error::corrupt(format!("expected a text of {count} characters, found {room} bytes")));
        }
        let mut units = Vec::new();
        for _ in 0..count {
            let first = u16::from(self.cursor.u8()?);
            let mut next = || -> Result<u16> { Ok(u16::from(self.cursor.u8()?) & 0x3f) };
            units.push(match first >> 4 {
                0..=7 => first,
                12 | 13 => (first & 0x1f) << 6 | next()?,
                14 => (first & 0xf) << 12 | next()? << 6 | next()?,
                _ => return Err(Error::corrupt("expected text, found other bytes")),
            });
        }
        Ok(String::from_utf16_lossy(&units))
    }
}

fn unexpected(class: &str, actual: &Class) -> Error {
    Error::corrupt(format!("expected a Java object of class {class}, found {actual:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(out: &mut Vec<u8>, text: &str) {
        let (last, front) = text.as_bytes().split_last().unwrap();
        out.extend(front);
        out.push(last | 0x80);
    }

    #[test]
    fn keys_and_records_are_read() {
        let limits = Limits::default();
        let mut keys = vec![1, 0];
        text(&mut keys, KEYS);
        keys.extend([1, 4, 1, 1]);
        text(&mut keys, KEY);
        keys.extend([1, 1]);
        text(&mut keys, "eu");
        keys.push(1);
        text(&mut keys, "id-1");
        // The partition once more, and a key of one character, which is no ASCII text.
        keys.extend([1, 1, 1, 4, 1, 0x82, b'x']);
        keys.extend([0]);
        let all = deletes(&keys, 0, &limits).unwrap();
        assert_eq!(all, [Delete::of_key(b"id-1".to_vec()), Delete::of_key(b"x".to_vec())]);
        for cut in 0..keys.len() {
            assert!(deletes(&keys[..cut], 0, &limits).is_err(), "cut at {cut}");
        }
        let mut records = vec![1, 0];
        text(&mut records, DELETES);
        records.extend([1, 3, 1, 1]);
        text(&mut records, DELETE);
        records.extend([1, 1, 2]);
        text(&mut records, KEY);
        records.extend([1, 0, 1, 0x83, 0xc3, 0xa9, b'a', 9, 14]);
        records.extend([1, 1, 1, 1, 2, 1, 0, 1]);
        text(&mut records, "b2");
        records.extend([2, 0]);
        let all = deletes(&records, 0, &limits).unwrap();
        assert_eq!(all.first(), Some(&Delete { key: "éa".as_bytes().to_vec(), order: Order::Int(7) }));
        assert_eq!(all.get(1), Some(&Delete { key: b"b2".to_vec(), order: Order::Natural }));
    }
}
