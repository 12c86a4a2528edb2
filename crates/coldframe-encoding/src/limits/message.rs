//! The decoded size of a protobuf message, computed before it is decoded.
//!
//! ```text
//! field | tag << 3 | kind, varint | 0 varint | 1 eight bytes | 2 length varint, bytes | 5 four bytes |
//! ```
//!
//! An empty message in a list takes two bytes in a file and a struct of two hundred bytes in memory, so the
//! length of a metadata message does not bound its decoded size. A format declares the struct of each
//! message, and which fields are messages ([`Shaped`]); [`check`] adds up the sizes.

use crate::{Cursor, Error, Limits, Result};

/// The decoded size of a message or of a packed list.
#[derive(Debug)]
pub struct Shape {
    size: usize,
    fields: Fields,
}

#[derive(Debug)]
enum Fields {
    /// A message: its fields that are messages or packed lists, by their tags.
    Message(&'static [(u64, Shape)]),
    /// A packed list, in which each byte may be a number.
    Packed,
}

impl Shape {
    /// A message that decodes to `M`; `fields` are the tags and shapes of its fields that are messages or
    /// packed lists.
    pub const fn of<M>(fields: &'static [(u64, Self)]) -> Self {
        Self { size: size_of::<M>(), fields: Fields::Message(fields) }
    }

    /// A packed list of numbers of the type `N`.
    pub const fn packed<N>() -> Self {
        Self { size: size_of::<N>(), fields: Fields::Packed }
    }
}

/// The size of a list item that is not a message: a number, or a string without its bytes.
const NUMBER: u64 = size_of::<u64>() as u64;
const STRING: u64 = size_of::<String>() as u64;

/// A message that occurs in files.
pub trait Shaped {
    /// The structure of the message.
    const SHAPE: Shape;
}

/// An error if decoding a message of a file of `file_len` bytes would exceed [`Limits::decoded`].
pub fn check<M: Shaped>(message: &[u8], limits: &Limits, file_len: u64) -> Result<()> {
    let size = decoded_size(message, &M::SHAPE, limits, 0).map_err(|e| e.within("protobuf message"))?;
    limits.decoded("metadata, decoded", size, file_len)
}

/// Approximate decoded size of `message`: the size of its structs, plus its own length for the bytes that
/// they hold.
fn decoded_size(message: &[u8], shape: &Shape, limits: &Limits, depth: u64) -> Result<u64> {
    let len = message.len() as u64;
    let Fields::Message(fields) = shape.fields else { return Ok(len.saturating_mul(shape.size as u64)) };
    limits.depth("a message", depth)?;
    let mut cursor = Cursor::new(message, 0);
    let mut size = len.saturating_add(shape.size as u64);
    while !cursor.is_empty() {
        let key = cursor.uleb128()?;
        let more = match key & 7 {
            0 => cursor.uleb128().map(|_| NUMBER)?,
            1 => cursor.skip(8).map(|()| NUMBER)?,
            2 => {
                let bytes = cursor.uleb128_bytes()?;
                match fields.iter().find(|(tag, _)| *tag == key >> 3) {
                    Some((_, inner)) => decoded_size(bytes, inner, limits, depth + 1)?,
                    None => STRING,
                }
            }
            5 => cursor.skip(4).map(|()| NUMBER)?,
            kind => return Err(Error::corrupt(format!("expected a field, found wire type {kind}"))),
        };
        size = size.saturating_add(more);
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Inner {
        _fields: [u64; 20],
    }

    struct Outer {
        _inner: Vec<Inner>,
    }

    impl Shaped for Outer {
        const SHAPE: Shape = Shape::of::<Self>(&[(3, Shape::of::<Inner>(&[]))]);
    }

    #[test]
    fn empty_messages_cost_the_memory_of_their_structs() {
        let bytes: Vec<u8> = [0x1a, 0].repeat(100_000);
        let limits = Limits { max_metadata_bytes: 8 << 20, ..Limits::default() };
        let e = check::<Outer>(&bytes, &limits, bytes.len() as u64).unwrap_err();
        assert!(e.to_string().contains("max_metadata_bytes"), "{e}");
        // If the file is long enough, the size is allowed.
        check::<Outer>(&bytes, &limits, 16 << 20).unwrap();
    }

    #[test]
    fn a_packed_list_has_at_most_a_number_per_byte() {
        const LISTS: Shape = Shape::of::<Outer>(&[(1, Shape::packed::<u32>())]);
        let message: Vec<u8> = [&[0x0a, 100][..], &[0; 100]].concat();
        let size = decoded_size(&message, &LISTS, &Limits::default(), 0).unwrap();
        assert_eq!(size, (size_of::<Outer>() + message.len() + 400) as u64);
    }

    #[test]
    fn fields_of_every_kind_are_skipped() {
        let message = [0x08, 0x96, 1, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0x1a, 2, 8, 7, 0x25, 0, 0, 0, 0];
        let limits = Limits::default();
        let size = decoded_size(&message, &Outer::SHAPE, &limits, 0).unwrap();
        let structs = (size_of::<Outer>() + size_of::<Inner>()) as u64;
        // The outer message has three numbers, the inner message has one number; the bytes of the inner
        // message count twice.
        assert_eq!(size, structs + message.len() as u64 + 2 + 4 * NUMBER);
        for cut in [1, 2, 6, 13, 15, 19] {
            assert!(decoded_size(&message[..cut], &Outer::SHAPE, &limits, 0).is_err(), "{cut}");
        }
        assert!(decoded_size(&[0x0b], &Outer::SHAPE, &limits, 0).is_err());
    }
}
