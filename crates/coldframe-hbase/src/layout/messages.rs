//! Files that hold one message each.
//!
//! ```text
//! .tableinfo.N[.LENGTH]   | "PBUF" | TableSchema |               the highest N counts; LENGTH since HBase 2.6
//! .regioninfo             | "PBUF" | length varint | RegionInfo |   also a value of hbase:meta, there without the length
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

/// What messages begin with that could be mistaken for what was written before there were any.
const MAGIC: &[u8] = b"PBUF";
/// The version of lists of store files.
const LIST_VERSION: u64 = 1;

/// Whether these are the bytes of a region that HBase wrote before it wrote messages.
fn message_of(bytes: &[u8]) -> Result<&[u8]> {
    bytes.strip_prefix(MAGIC).ok_or_else(|| {
        let found = bytes.get(..bytes.len().min(8)).unwrap_or_default().escape_ascii();
        Error::corrupt(format!("expected \"PBUF\", found \"{found}\"")).at(0)
    })
}

/// A message that is all of `bytes`, which are a file.
fn decode<M: Message + Default + Shaped>(bytes: &[u8], limits: &Limits) -> Result<M> {
    limits.metadata("a message", bytes.len() as u64)?;
    message::check::<M>(bytes, limits, bytes.len() as u64)?;
    M::decode(bytes).map_err(|e| Error::corrupt(format!("protobuf: {e}")))
}

/// A table's descriptor; `expected` bytes of them, where the file's name says so.
pub(crate) fn table_schema(bytes: &[u8], expected: Option<u64>, limits: &Limits) -> Result<TableSchema> {
    if let Some(expected) = expected.filter(|n| *n != bytes.len() as u64) {
        let found = bytes.len();
        return Err(Error::corrupt(format!("expected {expected} bytes by the file's name, found {found}")));
    }
    decode(message_of(bytes)?, limits)
}

/// A region's own description of itself.
pub(crate) fn region_info(bytes: &[u8], limits: &Limits) -> Result<RegionInfo> {
    let message = message_of(bytes)?;
    let mut cursor = Cursor::new(message, MAGIC.len() as u64);
    // Behind it, some versions repeat it as text for people.
    decode(cursor.uleb128_bytes()?, limits)
}

/// What hbase:meta says of a region.
pub(crate) fn region_info_of_meta(bytes: &[u8], limits: &Limits) -> Result<RegionInfo> {
    decode(message_of(bytes)?, limits)
}

/// Which half of which file.
pub(crate) fn reference(bytes: &[u8], limits: &Limits) -> Result<Reference> {
    decode(message_of(bytes)?, limits)
}

/// Which files of a family count.
pub(crate) fn file_list(bytes: &[u8], limits: &Limits) -> Result<FileList> {
    let mut cursor = Cursor::new(bytes, 0);
    let length = cursor.i32_be()?;
    let message = cursor.take_signed(length.into())?;
    let stored = cursor.u32_be()?;
    check_crc32(stored, message).at(0)?;
    let list: FileList = decode(message, limits)?;
    match list.version.unwrap_or(LIST_VERSION) {
        0..=LIST_VERSION => Ok(list),
        other => Err(Error::unsupported(format!("lists of store files of version {other}"))),
    }
}

/// What a snapshot is of.
pub(crate) fn snapshot_description(bytes: &[u8], limits: &Limits) -> Result<SnapshotDescription> {
    decode(bytes, limits)
}

/// The regions of a snapshot and their files.
pub(crate) fn snapshot_manifest(bytes: &[u8], limits: &Limits) -> Result<SnapshotManifest> {
    decode(bytes, limits)
}

/// The files that a compacted file replaced.
pub(crate) fn compacted(bytes: &[u8], limits: &Limits) -> Result<Compacted> {
    decode(message_of(bytes)?, limits)
}

impl Reference {
    /// The row at which the file is cut, and whether the half is that of the rows from it on.
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
    fn a_reference_is_cut_nowhere() {
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
        bytes[5] ^= 1;
        assert!(file_list(&bytes, &limits).is_err());
        let message = FileList { version: Some(2), ..FileList::default() }.encode_to_vec();
        let crc = coldframe_encoding::checksum::crc32(&message);
        let length = i32::try_from(message.len()).unwrap().to_be_bytes();
        let newer = [&length[..], &message, &crc.to_be_bytes()].concat();
        assert!(file_list(&newer, &limits).unwrap_err().to_string().contains("version 2"));
    }

    #[test]
    fn the_name_of_a_descriptor_may_say_its_length() {
        let limits = Limits::default();
        assert!(table_schema(b"PBUF", Some(4), &limits).is_ok());
        assert!(table_schema(b"PBUF", Some(5), &limits).is_err());
        assert!(table_schema(b"PBU", None, &limits).is_err());
    }
}
