//! Parses files that contain a single message.
//!
//! ```text
//! .tableinfo.N[.LENGTH]   | "PBUF" | TableSchema |               the highest N counts; LENGTH since HBase 2.6
//! .regioninfo             | "PBUF" | length varint | RegionInfo |   also a value of hbase:meta, without the length
//! HFILE.PARENT            | "PBUF" | Reference |
//! .filelist/fN.TIME       | length i32 | StoreFileList | crc32 of it u32 |
//! .snapshotinfo           | SnapshotDescription |
//! data.manifest           | SnapshotDataManifest |
//! COMPACTION_EVENT_KEY    | "PBUF" | names |                     in the file info of a compacted HFile
//! ```
//!
//! HBase: `ProtobufUtil`, `FSTableDescriptors`, `RegionInfo`, `Reference`, `StoreFileListFile`, `SnapshotManifest`.

use coldframe_core::{Error, ErrorContext, Limits, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::checksum::check_crc32;
use coldframe_encoding::limits::message::{self, Shaped};
use coldframe_hfile::row_of;
use prost::Message;

use super::proto::{
    Compacted, FileList, Reference, RegionInfo, SnapshotDescription, SnapshotManifest, TableSchema,
};

/// The magic bytes before a message. Files of older versions, which have another format, lack them.
const MAGIC: &[u8] = b"PBUF";
/// The version of store file lists.
const LIST_VERSION: u64 = 1;

/// The bytes of the message. Files in older formats, which lack the magic bytes, are an error.
fn message_of(bytes: &[u8]) -> Result<&[u8]> {
    bytes.strip_prefix(MAGIC).ok_or_else(|| {
        let start = bytes.get(..bytes.len().min(8)).unwrap_or_default().escape_ascii();
        Error::corrupt(format!("expected \"PBUF\", found \"{start}\"")).at(0)
    })
}

/// Decodes `bytes`, a whole file, as a message.
fn decode<M: Message + Default + Shaped>(bytes: &[u8], limits: &Limits) -> Result<M> {
    limits.metadata("a message", bytes.len() as u64)?;
    message::check::<M>(bytes, limits, bytes.len() as u64)?;
    M::decode(bytes).map_err(|e| Error::corrupt(format!("protobuf: {e}")))
}

/// Parses a table's descriptor; `expected` is the length in the file's name, if the name states a length.
pub(crate) fn table_schema(bytes: &[u8], expected: Option<u64>, limits: &Limits) -> Result<TableSchema> {
    if let Some(expected) = expected.filter(|n| *n != bytes.len() as u64) {
        let actual = bytes.len();
        return Err(Error::corrupt(format!("expected {expected} bytes by the file's name, found {actual}")));
    }
    decode(message_of(bytes)?, limits)
}

/// Parses a region's description.
pub(crate) fn region_info(bytes: &[u8], limits: &Limits) -> Result<RegionInfo> {
    let message = message_of(bytes)?;
    let mut cursor = Cursor::new(message, MAGIC.len() as u64);
    // Some versions append the same information as readable text, which is ignored.
    decode(cursor.uleb128_bytes()?, limits)
}

/// Parses a region's description in hbase:meta.
pub(crate) fn region_info_of_meta(bytes: &[u8], limits: &Limits) -> Result<RegionInfo> {
    decode(message_of(bytes)?, limits)
}

/// Parses a reference, which states a half of a file.
pub(crate) fn reference(bytes: &[u8], limits: &Limits) -> Result<Reference> {
    decode(message_of(bytes)?, limits)
}

/// Parses the list of a family's current files.
pub(crate) fn file_list(bytes: &[u8], limits: &Limits) -> Result<FileList> {
    let mut cursor = Cursor::new(bytes, 0);
    let length = cursor.i32_be()?;
    // The checksum of no bytes is 0, so that zeros would pass as an empty list.
    if length < 1 {
        return Err(Error::corrupt(format!("expected a length of 1 or more, found {length}")).at(0));
    }
    let message = cursor.take_signed(length.into())?;
    let stored = cursor.u32_be()?;
    check_crc32(stored, message).at(0)?;
    let list: FileList = decode(message, limits)?;
    match list.version.unwrap_or(LIST_VERSION) {
        0..=LIST_VERSION => Ok(list),
        other => Err(Error::unsupported(format!("lists of store files of version {other}"))),
    }
}

/// Parses the description of a snapshot.
pub(crate) fn snapshot_description(bytes: &[u8], limits: &Limits) -> Result<SnapshotDescription> {
    decode(bytes, limits)
}

/// Parses the manifest of a snapshot: its regions and their files.
pub(crate) fn snapshot_manifest(bytes: &[u8], limits: &Limits) -> Result<SnapshotManifest> {
    decode(bytes, limits)
}

/// Parses the names of the files that a compacted file replaced.
pub(crate) fn compacted(bytes: &[u8], limits: &Limits) -> Result<Compacted> {
    decode(message_of(bytes)?, limits)
}

impl Reference {
    /// The row at which the file is split, and which half this is: true if it has the rows from the split on.
    pub(crate) fn half(&self) -> Result<(&[u8], bool)> {
        match (row_of(&self.split_key), self.range) {
            (Some(row), Some(0)) => Ok((row, true)),
            (Some(row), Some(1)) => Ok((row, false)),
            (Some(_), range) => Err(Error::corrupt(format!("expected a half, 0 or 1, found {range:?}"))),
            (None, _) => Err(Error::corrupt("expected a key with a row, found other bytes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_references_are_errors() {
        let key = [&[0, 2][..], b"ab", &[0], &[0x7f; 8], &[255]].concat();
        let message = Reference { split_key: key, range: Some(1) };
        let bytes = [MAGIC, &message.encode_to_vec()].concat();
        let limits = Limits::default();
        assert_eq!(reference(&bytes, &limits).unwrap().half().unwrap(), (&b"ab"[..], false));
        for cut in 0..bytes.len() {
            assert!(reference(&bytes[..cut], &limits).and_then(|r| r.half().map(drop)).is_err(), "{cut}");
        }
        let odd = Reference { split_key: vec![0, 9, 1], range: Some(0) };
        assert!(odd.half().is_err());
    }

    #[test]
    fn a_list_of_files_has_a_checksum() {
        let message = FileList { timestamp: 7, ..FileList::default() }.encode_to_vec();
        let crc = coldframe_encoding::checksum::crc32(&message);
        let length = i32::try_from(message.len()).unwrap().to_be_bytes();
        let mut bytes = [&length[..], &message, &crc.to_be_bytes()].concat();
        let limits = Limits::default();
        assert_eq!(file_list(&bytes, &limits).unwrap().timestamp, 7);
        assert!(file_list(&vec![0; bytes.len()], &limits).unwrap_err().to_string().contains("1 or more"));
        bytes[5] ^= 1;
        assert!(file_list(&bytes, &limits).is_err());
        let message = FileList { version: Some(2), ..FileList::default() }.encode_to_vec();
        let crc = coldframe_encoding::checksum::crc32(&message);
        let length = i32::try_from(message.len()).unwrap().to_be_bytes();
        let newer = [&length[..], &message, &crc.to_be_bytes()].concat();
        assert!(file_list(&newer, &limits).unwrap_err().to_string().contains("version 2"));
    }

    #[test]
    fn the_name_of_a_descriptor_may_contain_its_length() {
        let limits = Limits::default();
        assert!(table_schema(b"PBUF", Some(4), &limits).is_ok());
        assert!(table_schema(b"PBUF", Some(5), &limits).is_err());
        assert!(table_schema(b"PBU", None, &limits).is_err());
    }
}
