//! The writer's options.

use coldframe_core::options::{Choice, Field, Kind};
use coldframe_core::{Error, Result, Value};

use crate::layout::types::{Compression, Encoding, KuduType};

coldframe_core::options! {
    /// The options of writing a CFile.
    pub struct Options for coldframe_core::WriteOptions {
        /// encoding of the values; default: Kudu's default for the type
        encoding: Option<Encoding>;
        /// compression of blocks
        codec: Compression = Compression::None, alias "compression";
        /// bytes of values, before encoding, after which a block ends
        block_size: usize = 256 << 10, as Kind::Size { least: 512, most: 64 << 20 };
        /// true writes a value index; the values must ascend and contain no nulls
        value_index: bool;
        /// false writes no CRC-32C for header, blocks and footer
        checksums: bool = true;
        /// Kudu's type, if the Arrow type does not determine it: VARCHAR, INT128, DECIMAL64 ..
        data_type: Option<KuduType>;
    }
}

/// Declares the names that options accept for an enum of Kudu.
macro_rules! named {
    ($name:ident: $($variant:ident = $text:literal $(| $alias:literal)*;)+) => {
        impl Field for $name {
            const KIND: Kind = Kind::Choice(&[$(Choice { name: $text, aliases: &[$($alias),*] }),+]);

            fn from_value(value: Value) -> Result<Self> {
                match &value {
                    $(Value::Str(name) if name == $text => Ok(Self::$variant),)+
                    other => Err(Error::invalid(format!("expected one of its names, found {other:?}"))),
                }
            }

            fn to_value(&self) -> Value {
                Value::from(match self {
                    $(Self::$variant => $text,)+
                })
            }
        }
    };
}

named! {
    Encoding:
    Plain = "plain" | "PLAIN_ENCODING";
    Rle = "rle";
    BitShuffle = "bit_shuffle";
    Dict = "dict" | "DICT_ENCODING";
    Prefix = "prefix" | "PREFIX_ENCODING";
    GroupVarint = "group_varint";
}

named! {
    Compression:
    None = "none" | "uncompressed" | "NO_COMPRESSION";
    Snappy = "snappy";
    Lz4 = "lz4";
    Zlib = "zlib";
}

impl Field for KuduType {
    const KIND: Kind = Kind::Choice(Self::NAMES);

    fn from_value(value: Value) -> Result<Self> {
        let data_type = match &value {
            Value::Str(name) => Self::from_name(name),
            _ => None,
        };
        data_type.ok_or_else(|| Error::invalid(format!("expected a type of Kudu, found {value:?}")))
    }

    fn to_value(&self) -> Value {
        Value::from(self.name())
    }
}
