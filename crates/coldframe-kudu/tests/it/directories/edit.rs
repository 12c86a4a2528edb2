//! Edits the messages of a directory's container files.

use bytes::Bytes;
use coldframe_encoding::checksum::crc32c;
use coldframe_encoding::varint::put_uleb128;

/// A field of a message: number, wire type, and the stored value (for messages and bytes, without the length).
pub(crate) type Field = (u64, u8, Vec<u8>);

fn uleb(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        shift += 7;
        if first & 0x80 == 0 {
            return value;
        }
    }
}

pub(crate) fn fields(mut message: &[u8]) -> Vec<Field> {
    let mut all = Vec::new();
    while !message.is_empty() {
        let key = uleb(&mut message);
        let kind = u8::try_from(key & 7).unwrap();
        let len = match kind {
            0 => message.iter().position(|b| b & 0x80 == 0).unwrap() + 1,
            1 => 8,
            2 => usize::try_from(uleb(&mut message)).unwrap(),
            _ => 4,
        };
        let (value, rest) = message.split_at(len);
        all.push((key >> 3, kind, value.to_vec()));
        message = rest;
    }
    all
}

pub(crate) fn message(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, kind, value) in fields {
        put_uleb128(&mut out, number << 3 | u64::from(*kind));
        if *kind == 2 {
            put_uleb128(&mut out, value.len() as u64);
        }
        out.extend_from_slice(value);
    }
    out
}

/// A number as a field.
pub(crate) fn number(field: u64, value: u64) -> Field {
    let mut out = Vec::new();
    put_uleb128(&mut out, value);
    (field, 0, out)
}

/// Changes the only message of a container.
pub(crate) fn changed(container: &[u8], change: impl FnOnce(Vec<Field>) -> Vec<Field>) -> Bytes {
    let record = |at: usize| {
        let len = u32::from_le_bytes(container[at..at + 4].try_into().unwrap());
        (at + 8, at + 8 + usize::try_from(len).unwrap())
    };
    let (_, types_end) = record(16);
    let (start, end) = record(types_end + 4);
    let new = message(&change(fields(&container[start..end])));
    let mut out = container[..types_end + 4].to_vec();
    let len = u32::try_from(new.len()).unwrap().to_le_bytes();
    out.extend(len);
    out.extend(crc32c(&len).to_le_bytes());
    out.extend_from_slice(&new);
    out.extend(crc32c(&new).to_le_bytes());
    out.into()
}

/// Renames columns in a super block's schema.
pub(crate) fn renamed(fields_of_block: &mut [Field], names: &[(&str, &str)]) {
    for (_, _, schema) in fields_of_block.iter_mut().filter(|(number, ..)| *number == 8) {
        let mut columns = fields(schema);
        for (_, _, column) in columns.iter_mut().filter(|(number, ..)| *number == 1) {
            let mut parts = fields(column);
            for (_, _, name) in parts.iter_mut().filter(|(number, ..)| *number == 2) {
                if let Some((_, new)) = names.iter().find(|(old, _)| old.as_bytes() == name.as_slice()) {
                    *name = new.as_bytes().to_vec();
                }
            }
            *column = message(&parts);
        }
        *schema = message(&columns);
    }
}
