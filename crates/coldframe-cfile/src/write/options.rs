//! The writer's options by name.

use std::collections::BTreeMap;

use coldframe_core::options::{flag, integer, text, unexpected};
use coldframe_core::{OptionDoc, Result, Value};

use crate::layout::types::{Compression, Encoding, KuduType};

/// What the writer takes.
pub const WRITE_OPTIONS: &[OptionDoc] = &[
    OptionDoc {
        name: "encoding",
        help: "plain, rle, bit_shuffle, dict, prefix or group_varint; default Kudu's own for the type",
    },
    OptionDoc { name: "codec", help: "none (default), snappy, lz4 or zlib" },
    OptionDoc { name: "block_size", help: "bytes before encoding with which a block ends; default 262144" },
    OptionDoc { name: "value_index", help: "true writes a value index; values must ascend, without nulls" },
    OptionDoc { name: "checksums", help: "false leaves out the CRC-32C of header, blocks and footer" },
    OptionDoc {
        name: "data_type",
        help: "Kudu's name of the type where Arrow's leaves it open: VARCHAR, INT128, DECIMAL64 ..",
    },
];

/// How to write a file.
#[derive(Clone, Debug)]
pub struct Options {
    /// The encoding; `None` is the type's own.
    pub encoding: Option<Encoding>,
    /// How blocks are compressed.
    pub codec: Compression,
    /// Bytes with which a block ends.
    pub block_size: usize,
    /// Whether a value index is written.
    pub value_index: bool,
    /// Whether checksums are.
    pub checksums: bool,
    /// The type; `None` is the one of the Arrow type.
    pub data_type: Option<KuduType>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            encoding: None,
            codec: Compression::None,
            block_size: 256 << 10,
            value_index: false,
            checksums: true,
            data_type: None,
        }
    }
}

impl Options {
    /// The options with the names of [`WRITE_OPTIONS`].
    pub fn new(extra: &BTreeMap<String, Value>) -> Result<Self> {
        let mut to = Self::default();
        if let Some(name) = text(extra, "encoding")? {
            let short = |e: &Encoding| e.name().trim_end_matches("_ENCODING");
            let all = [
                Encoding::Plain,
                Encoding::Rle,
                Encoding::BitShuffle,
                Encoding::Dict,
                Encoding::Prefix,
                Encoding::GroupVarint,
            ];
            let found = all.into_iter().find(|e| name.eq_ignore_ascii_case(short(e)));
            let found = found.or_else(|| Encoding::from_name(name));
            let expected = "plain, rle, bit_shuffle, dict, prefix or group_varint";
            to.encoding = Some(found.ok_or_else(|| unexpected("encoding", expected, name))?);
        }
        if let Some(name) = text(extra, "codec")? {
            let none = name.eq_ignore_ascii_case("none").then_some(Compression::None);
            let found = none.or_else(|| Compression::from_name(name));
            to.codec = found.ok_or_else(|| unexpected("codec", "none, snappy, lz4 or zlib", name))?;
        }
        if let Some(bytes) = integer::<u32>(extra, "block_size")? {
            if !(512..=64 << 20).contains(&bytes) {
                return Err(unexpected("block_size", "512 to 67108864", bytes));
            }
            to.block_size = bytes as usize;
        }
        to.value_index = flag(extra, "value_index")?;
        if extra.contains_key("checksums") {
            to.checksums = flag(extra, "checksums")?;
        }
        if let Some(name) = text(extra, "data_type")? {
            let found = KuduType::from_name(name);
            to.data_type = Some(found.ok_or_else(|| unexpected("data_type", "a type of Kudu", name))?);
        }
        Ok(to)
    }
}
