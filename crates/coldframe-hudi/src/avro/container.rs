//! Object container files (specification, "Object Container Files").
//!
//! ```text
//! "Obj" 01 | map<bytes>: avro.schema, avro.codec | sync[16] | blocks: long count, long size, size bytes, sync[16]
//! ```

use coldframe_core::{Error, Limits, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::codec::{Algorithm, Decompressor};

use super::datum::{self, Datum};
use super::schema::Schema;

/// The magic bytes of a container.
pub(crate) const MAGIC: &[u8] = b"Obj\x01";

/// Calls `each` with every datum of a container and the schema that it was written with.
pub(crate) fn read(bytes: &[u8], limits: &Limits, mut each: impl FnMut(&Schema, &Datum<'_>)) -> Result<()> {
    let mut cursor = Cursor::new(bytes, 0);
    cursor.expect("Avro magic", MAGIC)?;
    let (mut schema, mut codec) = (None, Algorithm::None);
    datum::read_blocks(&mut cursor, limits, 0, |c| {
        let key = datum::read_str(c)?;
        let value = datum::read_bytes(c)?;
        match key {
            "avro.schema" => schema = Some(Schema::parse(value, limits)?),
            "avro.codec" => {
                codec = match value {
                    b"null" => Algorithm::None,
                    b"deflate" => Algorithm::Deflate,
                    b"bzip2" => Algorithm::Bzip2,
                    b"zstandard" => Algorithm::Zstd,
                    // The other codecs of the specification are not supported.
                    b"snappy" | b"xz" => {
                        return Err(Error::unsupported(format!("Avro codec \"{}\"", value.escape_ascii())));
                    }
                    other => {
                        let name = other.escape_ascii();
                        return Err(Error::corrupt(format!("expected an Avro codec, found \"{name}\"")));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    let schema = schema.ok_or_else(|| Error::corrupt("expected `avro.schema`, found none").at(4))?;
    let sync: [u8; 16] = cursor.array()?;
    let (mut plain, mut unpacker) = (Vec::new(), Decompressor::new());
    while !cursor.is_empty() {
        let (count, size) = (cursor.zigzag()?, cursor.zigzag()?);
        let at = cursor.offset();
        let block = cursor.take_signed(size)?;
        cursor.expect("sync marker", &sync)?;
        plain.clear();
        let content = if codec == Algorithm::None {
            block
        } else {
            let most = limits.block("Avro block", limits.max_block_bytes)?;
            unpacker.decompress_bounded(codec, block, most, &mut plain).map_err(|e| e.at(at))?;
            &plain
        };
        let mut items = Cursor::new(content, at);
        for _ in 0..count {
            let empty = items.is_empty();
            each(&schema, &Datum::next(&schema, &mut items, limits)?);
            if empty {
                break; // datums without bytes are all equal, and the input does not limit their number
            }
        }
        items.finish()?;
    }
    Ok(())
}
