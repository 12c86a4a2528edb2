//! Writes the header.
//!
//! ```text
//! RCF1  | 'R' 'C' 'F' 1 | compressed: 0 or 1 | [Text codec] | metadata | sync: 16 bytes |
//! SEQ6  | 'S' 'E' 'Q' 6 | Text key class | Text value class | compressed | block-compressed: 0 | [Text codec] |
//!       | metadata | sync: 16 bytes |
//!
//! metadata  | count i32 | Text key | Text value | ..   by key
//! Text      | VInt length | UTF-8 |
//! ```

use std::collections::BTreeMap;

use coldframe_encoding::varint::put_hadoop_text;
use coldframe_encoding::{Error, Result};

use super::Settings;
use crate::layout::header::{COLUMN_NUMBER, Magic, SYNC_LEN};

const KEY_CLASS: &str = "org.apache.hadoop.hive.ql.io.RCFile$KeyBuffer";
const VALUE_CLASS: &str = "org.apache.hadoop.hive.ql.io.RCFile$ValueBuffer";

pub(super) fn header(options: &Settings, columns: usize, sync: [u8; SYNC_LEN]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let compressed = u8::from(options.codec.is_some());
    match options.header {
        Magic::Rcf1 => {
            out.extend_from_slice(b"RCF\x01");
            out.push(compressed);
        }
        Magic::Seq6 => {
            out.extend_from_slice(b"SEQ\x06");
            put_hadoop_text(&mut out, KEY_CLASS.as_bytes());
            put_hadoop_text(&mut out, VALUE_CLASS.as_bytes());
            out.extend_from_slice(&[compressed, 0]);
        }
    }
    if let Some(codec) = options.codec {
        put_hadoop_text(&mut out, codec.class_name.as_bytes());
    }
    put_metadata(&options.metadata, columns, &mut out)?;
    out.extend_from_slice(&sync);
    Ok(out)
}

fn put_metadata(given: &BTreeMap<String, String>, columns: usize, out: &mut Vec<u8>) -> Result<()> {
    let mut metadata = given.clone();
    metadata.insert(COLUMN_NUMBER.to_owned(), columns.to_string());
    let count =
        i32::try_from(metadata.len()).map_err(|_| Error::invalid("2^31 pairs of metadata or more"))?;
    out.extend_from_slice(&count.to_be_bytes());
    for (key, value) in &metadata {
        put_hadoop_text(out, key.as_bytes());
        put_hadoop_text(out, value.as_bytes());
    }
    Ok(())
}
