//! Types, encodings and codecs by their numbers (`common.proto`, `compression.proto`), and the two versions of the
//! layout.

use std::fmt;

use coldframe_core::{Error, Result};
use coldframe_encoding::codec::Algorithm;

/// The magic bytes up to Kudu 1.2.
pub const MAGIC_V1: &[u8; 8] = b"kuducfil";
/// The magic bytes since Kudu 1.3.
pub const MAGIC_V2: &[u8; 8] = b"kuducfl2";

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident, $what:literal: $($(#[$vdoc:meta])* $variant:ident = $number:literal $text:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
        }

        impl $name {
            /// The names of all variants in Kudu.
            pub const NAMES: &'static [coldframe_core::options::Choice] =
                &[$(coldframe_core::options::Choice { name: $text, aliases: &[] }),*];

            /// The variant with this number in the file.
            pub fn from_number(number: i32) -> Result<Self> {
                match number {
                    $($number => Ok(Self::$variant),)*
                    other => Err(unknown($what, other)),
                }
            }

            /// The variant's number in the file.
            pub fn number(self) -> i32 {
                match self { $(Self::$variant => $number,)* }
            }

            /// The variant's name in Kudu.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The variant with this name in Kudu; case is ignored.
            pub fn from_name(name: &str) -> Option<Self> {
                $(if name.eq_ignore_ascii_case($text) { return Some(Self::$variant); })*
                None
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

/// `NESTED` in Kudu's sources, which use it only for arrays. No release up to 1.18.1 supports this type.
const NESTED: i32 = 21;

fn unknown(what: &str, number: i32) -> Error {
    match (what, number) {
        ("data type", NESTED) => Error::unsupported("columns of arrays (later than Kudu 1.18.1)"),
        _ => Error::unsupported(format!("an unknown {what}: number {number}")),
    }
}

numbered! {
    /// A logical type.
    KuduType, "data type":
    /// Unsigned, 8 bits.
    UInt8 = 0 "UINT8";
    /// Signed, 8 bits.
    Int8 = 1 "INT8";
    /// Unsigned, 16 bits.
    UInt16 = 2 "UINT16";
    /// Signed, 16 bits.
    Int16 = 3 "INT16";
    /// Unsigned, 32 bits.
    UInt32 = 4 "UINT32";
    /// Signed, 32 bits.
    Int32 = 5 "INT32";
    /// Unsigned, 64 bits.
    UInt64 = 6 "UINT64";
    /// Signed, 64 bits.
    Int64 = 7 "INT64";
    /// UTF-8.
    String = 8 "STRING";
    /// A boolean.
    Bool = 9 "BOOL";
    /// 32-bit floating point.
    Float = 10 "FLOAT";
    /// 64-bit floating point.
    Double = 11 "DOUBLE";
    /// Bytes.
    Binary = 12 "BINARY";
    /// Microseconds since 1970 in UTC.
    UnixtimeMicros = 13 "UNIXTIME_MICROS";
    /// Signed, 128 bits.
    Int128 = 14 "INT128";
    /// A decimal of at most 9 digits.
    Decimal32 = 15 "DECIMAL32";
    /// A decimal of at most 18 digits.
    Decimal64 = 16 "DECIMAL64";
    /// A decimal of at most 38 digits.
    Decimal128 = 17 "DECIMAL128";
    /// A marker of deleted rows: a boolean.
    IsDeleted = 18 "IS_DELETED";
    /// UTF-8 of a bounded length.
    Varchar = 19 "VARCHAR";
    /// Days since 1970.
    Date = 20 "DATE";
}

numbered! {
    /// The encoding of values.
    Encoding, "encoding":
    /// Contiguous values.
    Plain = 1 "PLAIN_ENCODING";
    /// For each value, only the bytes after the prefix that it shares with the previous value.
    Prefix = 2 "PREFIX_ENCODING";
    /// Integers as differences from the block's smallest, in groups of four.
    GroupVarint = 3 "GROUP_VARINT";
    /// Runs and groups of literals.
    Rle = 4 "RLE";
    /// Code words of a dictionary.
    Dict = 5 "DICT_ENCODING";
    /// Transposed bits, compressed.
    BitShuffle = 6 "BIT_SHUFFLE";
}

numbered! {
    /// The compression of blocks.
    Compression, "compression":
    /// Uncompressed.
    None = 1 "NO_COMPRESSION";
    /// Raw snappy.
    Snappy = 2 "SNAPPY";
    /// A raw LZ4 block.
    Lz4 = 3 "LZ4";
    /// A zlib stream.
    Zlib = 4 "ZLIB";
}

impl Compression {
    /// The algorithm.
    pub fn algorithm(self) -> Algorithm {
        match self {
            Self::None => Algorithm::None,
            Self::Snappy => Algorithm::Snappy,
            Self::Lz4 => Algorithm::Lz4,
            Self::Zlib => Algorithm::Zlib,
        }
    }
}

/// The form that a value has in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Physical {
    /// One bit.
    Bool,
    /// This many bytes, little-endian.
    Fixed(usize),
    /// Any number of bytes.
    Binary,
}

impl KuduType {
    /// The form of the type's values in memory.
    pub fn physical(self) -> Physical {
        match self {
            Self::UInt8 | Self::Int8 => Physical::Fixed(1),
            Self::UInt16 | Self::Int16 => Physical::Fixed(2),
            Self::UInt32 | Self::Int32 | Self::Float | Self::Decimal32 | Self::Date => Physical::Fixed(4),
            Self::UInt64 | Self::Int64 | Self::Double | Self::UnixtimeMicros | Self::Decimal64 => {
                Physical::Fixed(8)
            }
            Self::Int128 | Self::Decimal128 => Physical::Fixed(16),
            Self::Bool | Self::IsDeleted => Physical::Bool,
            Self::String | Self::Binary | Self::Varchar => Physical::Binary,
        }
    }
}

/// The version of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Up to Kudu 1.2, with the magic bytes `kuducfil`.
    V1,
    /// Since Kudu 1.3, with the magic bytes `kuducfl2`.
    V2,
}

impl Version {
    /// The version with this magic.
    pub(crate) fn of(magic: &[u8]) -> Option<Self> {
        match magic {
            m if m == MAGIC_V1 => Some(Self::V1),
            m if m == MAGIC_V2 => Some(Self::V2),
            _ => None,
        }
    }

    /// The number of the version.
    pub fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_numbers_are_errors() {
        let refused = |number| KuduType::from_number(number).unwrap_err().to_string();
        assert!(refused(21).contains("columns of arrays"), "{}", refused(21));
        assert!(refused(99).contains("an unknown data type: number 99"));
        assert_eq!(KuduType::from_number(20).unwrap(), KuduType::Date);
    }
}
