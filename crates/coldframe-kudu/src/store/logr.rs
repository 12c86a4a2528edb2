//! The block records of the `logr` block manager, which keeps them in one RocksDB database per data
//! directory.
//!
//! ```text
//! data/rdb/..         the database
//! data/<uuid>.data    blocks, as in the log block manager
//! key:    container's uuid, 32 hexadecimal digits | "." | the block's id, 16 decimal digits or more
//! value:  the record that creates the block (as in a `.metadata` file, without its frame); deleting a block deletes its key
//! ```
//!
//! Source: `log_block_manager.cc` (`LogBlockContainerRdbMeta`). Of several records with the same key, the one
//! with the largest sequence number is current. If it is invalid, the block is lost, since an earlier record
//! may have been deleted. Ids of blocks are not reused and super blocks name live blocks only, so if a
//! deletion is lost, no reader asks for the block that reappears.

use std::collections::HashMap;
use std::ops::Range;

use coldframe_core::io::Folder;
use coldframe_core::{Damage, Error, Result};

use crate::layout::container::decode;
use crate::layout::proto::BlockRecord;
use crate::store::rocks::{Database, Reading, Record};
use crate::store::roots::{DATABASE, join};

/// The number of digits of a container's uuid.
const UUID: usize = 32;
/// Approximately how much memory a block and a container take.
const BLOCK_BYTES: u64 = 2 * size_of::<((u32, u64), Newest)>() as u64;
const CONTAINER_BYTES: u64 = 2 * size_of::<([u8; UUID], u32)>() as u64;

/// The newest record of a key.
#[derive(Debug)]
struct Newest {
    sequence: u64,
    /// The offset and length of the block; `None` if the block is deleted or lost.
    bytes: Option<(u64, u64)>,
}

/// The live blocks of one data directory.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    containers: HashMap<[u8; UUID], u32>,
    newest: HashMap<(u32, u64), Newest>,
    /// The parts of the database that cannot be read.
    pub(crate) damage: Vec<Damage>,
}

impl Blocks {
    /// Reads the database of the data directory at `path`.
    pub(crate) fn read(folder: &dyn Folder, path: &str, reading: Reading) -> Result<Self> {
        let mut blocks = Self::default();
        let path = join(path, DATABASE);
        let database = match Database::open(folder, &path, reading) {
            Ok(database) => database,
            Err(e) if e.is_not_found() => {
                let e = Error::corrupt("expected a folder with RocksDB's files, found none").within(path);
                blocks.damage.push(Damage::from_error(&e, 0..0, None));
                return Ok(blocks);
            }
            Err(e) => return Err(e),
        };
        let bytes = database.bytes();
        let mut each = |record: Record<'_>| {
            blocks.add(record)?;
            let memory =
                blocks.newest.len() as u64 * BLOCK_BYTES + blocks.containers.len() as u64 * CONTAINER_BYTES;
            reading.limits.decoded("records of blocks", memory, bytes)
        };
        let damage = database.each_record(&mut each)?;
        blocks.damage = damage;
        Ok(blocks)
    }

    fn add(&mut self, record: Record<'_>) -> Result<()> {
        let (container, id) = key(record.key)?;
        let (bytes, result) = match record.value.map(|value| extent(value, id)) {
            None => (None, Ok(())),
            Some(Ok(bytes)) => (Some(bytes), Ok(())),
            Some(Err(e)) => (None, Err(e)),
        };
        let count = u32::try_from(self.containers.len()).unwrap_or(u32::MAX);
        let container = *self.containers.entry(container).or_insert(count);
        let sequence = record.sequence;
        let newest = self.newest.entry((container, id)).or_insert(Newest { sequence, bytes });
        if newest.sequence <= sequence {
            *newest = Newest { sequence, bytes };
        }
        result
    }

    /// The paths of the containers; and for each live block its id, the index of its container, and its
    /// range.
    pub(crate) fn live(&self, path: &str) -> (Vec<String>, impl Iterator<Item = (u64, usize, Range<u64>)>) {
        let mut names: Vec<(&u32, &[u8; UUID])> = self.containers.iter().map(|(name, n)| (n, name)).collect();
        names.sort_unstable();
        let names = names.into_iter().map(|(_, name)| join(path, &String::from_utf8_lossy(name))).collect();
        let blocks = self.newest.iter().filter_map(|((container, id), newest)| {
            let (start, end) = newest.bytes?;
            Some((*id, usize::try_from(*container).unwrap_or(usize::MAX), start..end))
        });
        (names, blocks)
    }
}

/// Divides a key into container and block. Since the container becomes part of a path, only digits are
/// accepted.
fn key(key: &[u8]) -> Result<([u8; UUID], u64)> {
    let parts = key.split_first_chunk::<UUID>().filter(|(uuid, _)| uuid.iter().all(u8::is_ascii_hexdigit));
    let id = |rest: &[u8]| {
        let digits = rest.strip_prefix(b".").filter(|d| (16..=20).contains(&d.len()))?;
        digits
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| std::str::from_utf8(digits).ok()?.parse().ok())
            .flatten()
    };
    parts.and_then(|(uuid, rest)| Some((*uuid, id(rest)?))).ok_or_else(|| {
        let start = key.get(..key.len().min(60)).unwrap_or_default().escape_ascii();
        Error::corrupt(format!("expected a key of a container and a block, found \"{start}\""))
    })
}

/// Offset and length of block `id`, from the record that creates it.
fn extent(value: &[u8], id: u64) -> Result<(u64, u64)> {
    let record: BlockRecord = decode(value)?;
    let actual = record.block_id.and_then(|b| b.id);
    if actual != Some(id) || record.op_type != BlockRecord::CREATE {
        let op = record.op_type;
        let message =
            format!("expected a record that creates block {id}, found operation {op} of {actual:?}");
        return Err(Error::corrupt(message));
    }
    record.bytes().map(|range| (range.start, range.end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::proto::BlockId;
    use prost::Message;

    const A: &str = "00112233445566778899aabbccddeeff.0000000000000007";

    fn created(id: u64, offset: i64) -> Vec<u8> {
        let block_id = Some(BlockId { id: Some(id) });
        BlockRecord { block_id, op_type: BlockRecord::CREATE, offset: Some(offset), length: Some(10) }
            .encode_to_vec()
    }

    fn live(records: &[(u64, Option<&[u8]>)]) -> Vec<u64> {
        let mut blocks = Blocks::default();
        for (sequence, value) in records {
            let record = Record { key: A.as_bytes(), sequence: *sequence, value: *value };
            drop(blocks.add(record));
        }
        let (names, live) = blocks.live("data");
        assert_eq!(names, ["data/00112233445566778899aabbccddeeff"]);
        live.map(|(_, _, bytes)| bytes.start).collect()
    }

    #[test]
    fn the_newest_record_is_current_in_any_order() {
        let (old, new) = (created(7, 4096), created(7, 8192));
        assert_eq!(live(&[(1, Some(&old)), (3, Some(&new)), (2, None)]), [8192]);
        assert_eq!(live(&[(3, None), (1, Some(&old))]), [0; 0]);
        assert_eq!(live(&[(2, Some(&old)), (1, None)]), [4096]);
        // The newest record is for another block, or empty. The record before it must not be used, since it
        // may have been deleted.
        assert_eq!(live(&[(1, Some(&old)), (2, Some(&created(8, 0)))]), [0; 0]);
        assert_eq!(live(&[(2, Some(b"\xff")), (1, Some(&old))]), [0; 0]);
    }

    #[test]
    fn invalid_keys_are_damage() {
        assert_eq!(key(A.as_bytes()).unwrap().1, 7);
        let long = A.replace("0000000000000007", "18446744073709551615");
        assert_eq!(key(long.as_bytes()).unwrap().1, u64::MAX);
        let outside = A.replace("00112233", "../../..");
        for wrong in
            [&outside, &A[..40], "", &A.replace('.', "-"), &A.replace("07", "0x"), &format!("{long}1")]
        {
            assert!(key(wrong.as_bytes()).unwrap_err().is_damage(), "{wrong}");
        }
    }
}
