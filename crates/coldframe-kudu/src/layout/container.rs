//! Protobuf container files: `instance`, super blocks, consensus metadata, and the metadata of log block containers.
//!
//! ```text
//! | "kuducntr" | version u32 = 2 | crc of both | record: the types of what follows | record | record ..
//! record, version 2:  | length u32 | crc of the length | message | crc of the message |
//! record, version 1:  | length u32 | message | crc of length and message |            (and no crc in the header)
//! ```
//!
//! Integers are little-endian, checksums CRC-32C (`pb_util.h`). A file that ends in zeros or in part of a record was cut off
//! during a write; everything before that point is intact.

use coldframe_core::{Error, Limits, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::checksum::{check_crc32c, crc32c};
use prost::Message;

/// The magic bytes of every container.
pub(crate) const MAGIC: &[u8] = b"kuducntr";

/// Reads the records that follow the type description.
pub(crate) struct Records<'a> {
    cursor: Cursor<'a>,
    version: u32,
    checked: bool,
}

impl<'a> Records<'a> {
    /// Reads the header and skips the type description.
    pub(crate) fn open(bytes: &'a [u8], checked: bool) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, 0);
        cursor.expect("protobuf container magic", MAGIC)?;
        let version = cursor.u32_le()?;
        match version {
            1 => {}
            2 => {
                let stored = cursor.u32_le()?;
                if checked {
                    check_crc32c(stored, bytes.get(..12).unwrap_or_default()).map_err(|e| e.at(12))?;
                }
            }
            // Like version 2, a later version would have a checksum here. If the checksum does not match, the
            // version number is damaged.
            _ => {
                let stored = cursor.u32_le()?;
                return Err(match check_crc32c(stored, bytes.get(..12).unwrap_or_default()) {
                    Ok(()) => Error::unsupported(format!("version {version} of protobuf containers")),
                    Err(_) => Error::corrupt(format!("expected version 1 or 2, found {version}")).at(8),
                });
            }
        }
        let mut records = Self { cursor, version, checked };
        if records.next_bytes()?.is_none() {
            let at = records.cursor.offset();
            return Err(
                Error::corrupt("expected the description of the records' types, found the end").at(at)
            );
        }
        Ok(records)
    }

    /// The next message; `None` at the end, or if the rest is an incomplete write.
    pub(crate) fn next_bytes(&mut self) -> Result<Option<&'a [u8]>> {
        let start = self.cursor.offset();
        if self.cursor.rest().iter().all(|b| *b == 0) {
            return Ok(None);
        }
        let mut cursor = self.cursor.clone();
        match self.record(&mut cursor) {
            Ok(Some(message)) => {
                self.cursor = cursor;
                Ok(Some(message))
            }
            Ok(None) => Ok(None),
            Err(e) => Err(e.at(start).within("protobuf container record")),
        }
    }

    fn record(&self, cursor: &mut Cursor<'a>) -> Result<Option<&'a [u8]>> {
        let whole = cursor.rest();
        let prefix = if self.version == 1 { 4 } else { 8 };
        if cursor.remaining() < prefix {
            return Ok(None);
        }
        let length = cursor.array::<4>()?;
        if self.version != 1 {
            let stored = cursor.u32_le()?;
            if self.checked {
                check_crc32c(stored, &length)?;
            }
        }
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if cursor.remaining() < length.saturating_add(4) {
            return Ok(None);
        }
        let message = cursor.take(length)?;
        let stored = cursor.u32_le()?;
        if self.checked {
            let covered =
                if self.version == 1 { whole.get(..4 + length).unwrap_or_default() } else { message };
            // An incomplete record that is followed by nothing but zeros ends the file, like a record that is
            // cut off by the end of the file.
            if crc32c(covered) != stored && cursor.rest().iter().all(|b| *b == 0) && stored == 0 {
                return Ok(None);
            }
            check_crc32c(stored, covered)?;
        }
        Ok(Some(message))
    }
}

/// Decodes the first message of a container that holds exactly one message.
pub(crate) fn only_message<M: Message + Default>(bytes: &[u8], checked: bool) -> Result<M> {
    decode(only_bytes(bytes, checked)?)
}

/// Returns the bytes of the first message of a container that holds exactly one message.
pub(crate) fn only_bytes(bytes: &[u8], checked: bool) -> Result<&[u8]> {
    let mut records = Records::open(bytes, checked)?;
    let message = records.next_bytes()?;
    message.ok_or_else(|| Error::corrupt("expected a message in the protobuf container, found none"))
}

/// Decodes one message.
pub(crate) fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M> {
    M::decode(bytes).map_err(|e| Error::corrupt(format!("expected a protobuf message, found: {e}")))
}

/// Reads a whole metadata file, if its length is within the limits.
pub(crate) fn whole_file(source: &dyn coldframe_core::ReadAt, limits: &Limits) -> Result<bytes::Bytes> {
    limits.metadata("a metadata file", source.len())?;
    source.read(0..source.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::proto::BlockId;

    fn container(version: u32, messages: &[&[u8]]) -> Vec<u8> {
        let mut out = [MAGIC, &version.to_le_bytes()].concat();
        if version >= 2 {
            out.extend(crc32c(&out).to_le_bytes());
        }
        for message in messages {
            let start = out.len();
            let length = u32::try_from(message.len()).unwrap().to_le_bytes();
            out.extend(length);
            if version == 2 {
                out.extend(crc32c(&length).to_le_bytes());
            }
            out.extend(*message);
            let covered = if version == 2 { message.to_vec() } else { out[start..].to_vec() };
            out.extend(crc32c(&covered).to_le_bytes());
        }
        out
    }

    fn ids(bytes: &[u8]) -> Result<Vec<u64>> {
        let mut records = Records::open(bytes, true)?;
        let mut ids = Vec::new();
        while let Some(message) = records.next_bytes()? {
            ids.push(decode::<BlockId>(message)?.id.unwrap_or_default());
        }
        Ok(ids)
    }

    #[test]
    fn records_before_an_incomplete_write_are_read() {
        let messages: Vec<Vec<u8>> = (1..4).map(|id| BlockId { id: Some(id) }.encode_to_vec()).collect();
        let mut all: Vec<&[u8]> = vec![b"types"];
        all.extend(messages.iter().map(Vec::as_slice));
        for version in [1, 2] {
            let whole = container(version, &all);
            assert_eq!(ids(&whole).unwrap(), [1, 2, 3]);
            let without = container(version, &all[..3]).len();
            for cut in without..whole.len() {
                assert_eq!(ids(&whole[..cut]).unwrap(), [1, 2], "{cut}");
            }
            let padded = [&whole[..], &[0; 30]].concat();
            assert_eq!(ids(&padded).unwrap(), [1, 2, 3]);
            let mut hurt = whole.clone();
            hurt[without - 6] ^= 4;
            assert!(ids(&hurt).unwrap_err().is_damage());
        }
        let mut hurt = container(2, &all);
        hurt[8] = 130;
        assert!(ids(&hurt).unwrap_err().is_damage());
        assert!(matches!(
            ids(&container(3, &all)).unwrap_err().kind(),
            coldframe_core::ErrorKind::Unsupported(_)
        ));
    }
}
