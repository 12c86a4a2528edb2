//! A table: records in key order, in blocks that an index lists.
//!
//! ```text
//! | data block .. | filter | properties | names of such blocks ("metaindex") | index | footer, 53 bytes |
//! footer:  | checksum u8 | handle of the names | handle of the index | zeros up to 41 bytes | version u32 | magic u64 |
//! key:     | the key | type + 256 * sequence u64 |       type: 0 and 7 delete, 1 puts
//! ```
//!
//! Integers are little-endian (`table/format.cc`, `table/block_based`, `db/dbformat.h`); supported are
//! versions 2 to 5 of the format. The properties say how the index is stored. Filters are ignored, since all
//! records are read.

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::codec::Decompressor;
use coldframe_encoding::limits::Walk;

use super::batch::unknown;
use super::block::{Blocks, Checksum, Entries, Handle, TRAILER};
use super::{Each, Losses, Reading, Record, defer};

const FOOTER: usize = 53;
const LATER: &[u8] = &[0x3e, 0, 0x7a, 0];
const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
/// The magic numbers of other table formats: plain, its older form, cuckoo, and block-based of format 0.
const OTHER_MAGICS: [u64; 4] =
    [0x8242_2296_63bf_9564, 0x4f34_18eb_7a8f_13b8, 0x9267_89d0_c5f1_7873, 0xdb47_7524_8b80_fb57];

struct Footer {
    checksum: Checksum,
    names: Handle,
    index: Handle,
}

/// The properties of a table.
#[derive(Debug, Default)]
struct Properties {
    differences: bool,
    records: Option<u64>,
}

/// Passes each record of a table to `each`. A block that cannot be read is added to `losses`. After an error,
/// the rest of the table is not read.
pub(super) fn each_record(
    file: &[u8],
    reading: Reading,
    losses: &mut Losses,
    each: &mut Each<'_>,
) -> Result<()> {
    let footer = footer(file).map_err(|e| e.within("footer"))?;
    let checksum = footer.checksum;
    let mut blocks = Blocks { file, checksum, reading, decompressor: Decompressor::new() };
    let properties = properties(&mut blocks, footer.names)?;
    let index = blocks.read(footer.index).map_err(|e| e.within("index"))?;
    let mut index = Entries::open(&index)?;
    let mut walk = Walk::of_file("data block", file.len() as u64, TRAILER);
    let (mut before, mut count, places) = (None, 0u64, losses.places);
    while let Some(handle) = next(&mut index, before, &properties).map_err(|e| e.within("index"))? {
        walk.rising(handle.offset, handle.len)?;
        let block = blocks.read(handle);
        match block.and_then(|block| records(&block, each)) {
            Ok(n) => count = count.saturating_add(n),
            Err(e) => losses.note(e.within("data block"), handle.offset..handle.end().unwrap_or(u64::MAX))?,
        }
        before = Some(handle);
    }
    match properties.records {
        Some(expected) if expected != count && places == losses.places => {
            Err(Error::corrupt(format!("expected {expected} records in a table, found {count}")))
        }
        _ => Ok(()),
    }
}

fn next(index: &mut Entries<'_>, before: Option<Handle>, properties: &Properties) -> Result<Option<Handle>> {
    if properties.differences {
        return index.next_handle(before);
    }
    index.next()?.map(|value| Handle::read(&mut Cursor::new(value, 0))).transpose()
}

/// Passes the records of a data block to `each`; returns their number.
fn records(block: &[u8], each: &mut Each<'_>) -> Result<u64> {
    let mut entries = Entries::open(block)?;
    let mut count = 0;
    let mut first = None;
    while let Some(value) = entries.next()? {
        count += 1;
        let Some((key, trailer)) = entries.key.split_last_chunk::<8>() else {
            return Err(Error::corrupt(format!(
                "expected a key with its sequence, found {} bytes",
                entries.key.len()
            )));
        };
        let trailer = u64::from_le_bytes(*trailer);
        let [kind, ..] = trailer.to_le_bytes();
        let value = match kind {
            1 => Some(value),
            0 | 7 => None,
            n => return Err(unknown(n)),
        };
        defer(&mut first, each(Record { key, sequence: trailer >> 8, value }))?;
    }
    first.map_or(Ok(count), Err)
}

fn footer(file: &[u8]) -> Result<Footer> {
    let at = file.len().saturating_sub(FOOTER);
    let mut cursor = Cursor::new(file.get(at..).unwrap_or_default(), at as u64);
    let checksum = cursor.u8()?;
    let mut handles = cursor.sub(40)?;
    let version = cursor.u32_le()?;
    match cursor.u64_le()? {
        MAGIC => {}
        n if OTHER_MAGICS.contains(&n) => {
            return Err(Error::unsupported(format!("a table of RocksDB with the magic {n:#x}")));
        }
        n => {
            return Err(
                Error::corrupt(format!("expected the magic {MAGIC:#x}, found {n:#x}")).at(at as u64 + 45)
            );
        }
    }
    match version {
        2..=5 => {}
        // Later versions have another footer, with a marker in place of the handles.
        n @ 6.. if handles.rest().starts_with(LATER) => {
            return Err(Error::unsupported(format!("version {n} of RocksDB's tables")));
        }
        n => return Err(Error::corrupt(format!("expected version 2 to 5, found {n}")).at(at as u64 + 41)),
    }
    let checksum = match checksum {
        0 => Checksum::None,
        1 => Checksum::Crc32c,
        4 => Checksum::Xxh3,
        n @ (2 | 3) => return Err(Error::unsupported(format!("checksums of kind {n} in RocksDB"))),
        n => {
            return Err(
                Error::corrupt(format!("expected a kind of checksum from 0 to 4, found {n}")).at(at as u64)
            );
        }
    };
    Ok(Footer { checksum, names: Handle::read(&mut handles)?, index: Handle::read(&mut handles)? })
}

/// Finds and reads the properties. Fails for tables with kinds of blocks that would change the result.
fn properties(blocks: &mut Blocks<'_>, names: Handle) -> Result<Properties> {
    let names = blocks.read(names).map_err(|e| e.within("metaindex"))?;
    let mut names = Entries::open(&names)?;
    let mut place = None;
    while let Some(value) = names.next().map_err(|e| e.within("metaindex"))? {
        match names.key.as_slice() {
            b"rocksdb.properties" => place = Some(Handle::read(&mut Cursor::new(value, 0))?),
            b"rocksdb.range_del" => return Err(unknown(15)),
            b"rocksdb.compression_dict" => {
                return Err(Error::unsupported("dictionaries of RocksDB's compression"));
            }
            _ => {}
        }
    }
    let place = place.ok_or_else(|| Error::corrupt("expected a table's properties, found none"))?;
    let content = blocks.read(place).map_err(|e| e.within("properties"))?;
    let mut entries = Entries::open(&content)?;
    let mut properties = Properties::default();
    while let Some(value) = entries.next().map_err(|e| e.within("properties"))? {
        properties.take(&entries.key, value).map_err(|e| e.within("properties"))?;
    }
    Ok(properties)
}

impl Properties {
    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<()> {
        let number = || Cursor::new(value, 0).uleb128();
        match name {
            b"rocksdb.index.value.is.delta.encoded" => self.differences = number()? != 0,
            b"rocksdb.num.entries" => self.records = Some(number()?),
            b"rocksdb.num.range-deletions" if number()? != 0 => return Err(unknown(15)),
            b"rocksdb.block.based.table.index.type" => match Cursor::new(value, 0).u32_le()? {
                0 => {}
                n => return Err(Error::unsupported(format!("an index of kind {n} in a table of RocksDB"))),
            },
            b"rocksdb.external_sst_file.global_seqno" => {
                return Err(Error::unsupported("an imported table of RocksDB"));
            }
            _ => {}
        }
        Ok(())
    }
}
