//! A batch: the operations of one write, which are one record of a write-ahead log.
//!
//! ```text
//! | sequence u64 | count u32 | operation .. |
//! operation:  | 1 | key | value |   put          | 0 | key |   delete        | 7 | key |   delete a key put once
//!             | 5, 4, 8 | column family | ..     the same with the number of a column family
//!             | 3 | blob |   not an operation    | 13 |   nothing
//! key, value, blob:  | length | bytes |          lengths and numbers are LEB128
//! ```
//!
//! The first operation has the batch's sequence number, each further operation the next number
//! (`db/write_batch.cc`).

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;

use super::{Each, Record, defer};

/// Passes each operation of a batch to `each`.
pub(super) fn each_record(bytes: &[u8], each: &mut Each<'_>) -> Result<()> {
    let mut cursor = Cursor::new(bytes, 0);
    let mut sequence = cursor.u64_le()?;
    let count = cursor.u32_le()?;
    let (mut operations, mut first) = (0u32, None);
    while !cursor.is_empty() {
        let kind = cursor.u8()?;
        if matches!(kind, 4 | 5 | 8) {
            match cursor.uleb128()? {
                0 => {}
                n => return Err(Error::unsupported(format!("column family {n} of RocksDB"))),
            }
        }
        let (key, value) = match kind {
            1 | 5 => (cursor.uleb128_bytes()?, Some(cursor.uleb128_bytes()?)),
            0 | 4 | 7 | 8 => (cursor.uleb128_bytes()?, None),
            3 => {
                cursor.uleb128_bytes()?;
                continue;
            }
            13 => continue,
            n => return Err(unknown(n)),
        };
        defer(&mut first, each(Record { key, sequence, value }))?;
        sequence = sequence.saturating_add(1);
        operations = operations.saturating_add(1);
    }
    if operations != count {
        return Err(Error::corrupt(format!("expected {count} operations in a batch, found {operations}")));
    }
    first.map_or(Ok(()), Err)
}

/// The error for a kind of operation that is not supported.
pub(super) fn unknown(kind: u8) -> Error {
    let name = match kind {
        2 | 6 => "merges",
        14 | 15 => "deletions of ranges",
        9..=12 | 18 | 19 | 21 => "transactions",
        16 | 17 => "blobs",
        20 => "user-defined timestamps",
        22 | 23 => "wide columns",
        _ => return Error::unsupported(format!("operations of type {kind} in RocksDB")),
    };
    Error::unsupported(format!("{name} in RocksDB (operations of type {kind})"))
}
