//! The manifest: which tables are live, and which logs still have records that are in no table.
//!
//! ```text
//! each record of the log is an edit:  | tag | content | tag | ..
//!   1 | name |         comparator            2 | number |           logs before it are in tables
//!   6 | level | number |   remove a table
//! 103 | level | number | length | smallest key | largest key | smallest, largest sequence | field .. | 1 |   add a table
//!      field:  | tag | length | bytes |
//! ```
//!
//! Numbers are LEB128; names and keys are preceded by their lengths (`db/version_edit.h`, `version_edit.cc`). Readers may skip unknown
//! tags from 8192 on, and unknown fields without bit 6.

use std::collections::BTreeMap;

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;

use super::log;
use super::{Losses, Reading};

const COMPARATOR: &[u8] = b"leveldb.BytewiseComparator";

/// The state of the database after all edits.
#[derive(Debug, Default)]
pub(super) struct Version {
    /// The lengths of the live tables, by number.
    pub(super) tables: BTreeMap<u64, u64>,
    /// Logs from this number on have records that are in no table.
    pub(super) first_log: u64,
}

/// Reads a manifest. Any damage is an error: a missing edit invalidates all later edits.
pub(super) fn read(bytes: &[u8], reading: Reading) -> Result<Version> {
    let mut version = Version::default();
    let (mut losses, mut edits) = (Losses::default(), 0u64);
    let mut edit = |bytes: &[u8]| {
        edits += 1;
        version.apply(bytes)
    };
    log::each_record(bytes, None, reading.checked, &mut losses, &mut edit)?;
    match losses.first {
        Some(e) => Err(e),
        None if edits == 0 => Err(Error::corrupt("expected edits in a manifest, found none")),
        None => Ok(version),
    }
}

impl Version {
    /// Removals are applied first, because an edit that moves a table to another level removes and adds it.
    fn apply(&mut self, edit: &[u8]) -> Result<()> {
        let mut cursor = Cursor::new(edit, 0);
        let mut added = Vec::new();
        while !cursor.is_empty() {
            match cursor.uleb128()? {
                1 => comparator(cursor.uleb128_bytes()?)?,
                2 => self.first_log = cursor.uleb128()?,
                // The numbers of the next files; logs of other column families; the last sequence number.
                3 | 4 | 9 | 10 | 203 => drop(cursor.uleb128()?),
                // The place at which a compaction continues.
                5 => {
                    cursor.uleb128()?;
                    cursor.uleb128_bytes()?;
                }
                6 => {
                    cursor.uleb128()?;
                    let number = cursor.uleb128()?;
                    if self.tables.remove(&number).is_none() {
                        return Err(Error::corrupt(format!(
                            "expected table {number}, which an edit removes"
                        )));
                    }
                }
                tag @ (7 | 100 | 102 | 103) => added.push(table(tag, &mut cursor)?),
                200 => match cursor.uleb128()? {
                    0 => {}
                    n => return Err(Error::unsupported(format!("column family {n} of RocksDB"))),
                },
                201 | 202 => return Err(Error::unsupported("column families of RocksDB")),
                300 => return Err(Error::unsupported("edits of RocksDB in groups")),
                400 | 401 | 8194 | 8195 => return Err(Error::unsupported("blob files of RocksDB")),
                8196 | 8197 => return Err(Error::unsupported("a manifest of RocksDB 6 that lists logs")),
                n if n & 0x2000 != 0 => drop(cursor.uleb128_bytes()?),
                n => return Err(Error::unsupported(format!("edits with tag {n} in RocksDB's manifest"))),
            }
        }
        self.tables.extend(added);
        Ok(())
    }
}

fn comparator(name: &[u8]) -> Result<()> {
    if name == COMPARATOR {
        return Ok(());
    }
    let name = name.get(..name.len().min(80)).unwrap_or_default().escape_ascii();
    Err(Error::unsupported(format!("RocksDB's comparator \"{name}\"")))
}

/// Reads the number and the length of a table.
fn table(tag: u64, cursor: &mut Cursor<'_>) -> Result<(u64, u64)> {
    cursor.uleb128()?;
    let number = cursor.uleb128()?;
    if tag == 102 {
        in_this_folder(cursor.uleb128()?)?;
    }
    let len = cursor.uleb128()?;
    cursor.uleb128_bytes()?;
    cursor.uleb128_bytes()?;
    if tag != 7 {
        cursor.uleb128()?;
        cursor.uleb128()?;
    }
    if tag == 103 {
        fields(cursor)?;
    }
    Ok((number, len))
}

/// Skips the other fields of a table.
fn fields(cursor: &mut Cursor<'_>) -> Result<()> {
    loop {
        let field = cursor.uleb128()?;
        if field == 1 {
            return Ok(());
        }
        let bytes = cursor.uleb128_bytes()?;
        match field {
            65 => in_this_folder(bytes.first().copied().unwrap_or_default().into())?,
            n if n & 0x40 != 0 => {
                return Err(Error::unsupported(format!("field {n} of a table in RocksDB's manifest")));
            }
            _ => {}
        }
    }
}

fn in_this_folder(path: u64) -> Result<()> {
    if path == 0 { Ok(()) } else { Err(Error::unsupported("tables of RocksDB in a folder of their own")) }
}
