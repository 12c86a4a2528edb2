//! The dialects: layouts that have the same magic bytes and version.
//!
//! | | before each row group | children | repetition levels | numbers | lengths | booleans | compression |
//! |---|---|---|---|---|---|---|---|
//! | `redelm-a` | `RED1` | list | runs, u32 BE length | big endian | u32 BE | bytes | never |
//! | `redelm-b` | `RED1` | list | packed, padded | little endian | LEB128 | bytes | never |
//! | `redelm-c` | `RED1` | list | packed, padded | little endian | u32 LE | - | never |
//! | `redelm-d` | | number | packed, padded | little endian | u32 LE | - | never |
//! | `redelm-e` | | number | packed, padded | little endian | u32 LE | - | as stated |
//! | `redelm-f` | | number | packed | little endian | u32 LE | bits | as stated |
//! | `spec` | | | packed, after the definition levels, which have no length | little endian | u32 LE | bits | as stated |
//!
//! The one writer of the format wrote A to F between 5 and 20 February 2013; `spec` is the order in the README's
//! text. Nothing in a file names its dialect. It is detected by parsing the file's pages: levels must end where their
//! length states and must be in range, and values must end with the page.

use std::fmt;
use std::str::FromStr;

use coldframe_encoding::{Error, Result};

/// A dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// Written on 5 and 6 February 2013.
    RedelmA,
    /// Written on 8 February 2013.
    RedelmB,
    /// Written on 8 February 2013.
    RedelmC,
    /// Written on 8 February 2013.
    RedelmD,
    /// Written from 11 to 19 February 2013.
    RedelmE,
    /// Written on 19 and 20 February 2013.
    #[default]
    RedelmF,
    /// As the README describes it.
    Spec,
}

/// How the length of a byte array is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LengthCoding {
    /// Four bytes, big endian.
    BigEndian,
    /// Four bytes, little endian.
    LittleEndian,
    /// LEB128.
    Varint,
}

/// How repetition levels are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepetitionCoding {
    /// As runs, like definition levels.
    Runs,
    /// Packed, with the last group padded.
    Padded,
    /// Packed into as few bytes as possible.
    Packed,
}

impl Dialect {
    const NAMES: [(Self, &str); 7] = [
        (Self::RedelmA, "redelm-a"),
        (Self::RedelmB, "redelm-b"),
        (Self::RedelmC, "redelm-c"),
        (Self::RedelmD, "redelm-d"),
        (Self::RedelmE, "redelm-e"),
        (Self::RedelmF, "redelm-f"),
        (Self::Spec, "spec"),
    ];

    /// The dialect's name in options and metadata.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(d, _)| *d == self).map_or("", |(_, name)| name)
    }

    /// Whether numbers are big endian.
    pub(crate) fn big_endian(self) -> bool {
        self == Self::RedelmA
    }

    /// How lengths of byte arrays are coded.
    pub(crate) fn lengths(self) -> LengthCoding {
        match self {
            Self::RedelmA => LengthCoding::BigEndian,
            Self::RedelmB => LengthCoding::Varint,
            _ => LengthCoding::LittleEndian,
        }
    }

    /// Whether a boolean takes a byte.
    pub(crate) fn byte_booleans(self) -> bool {
        matches!(self, Self::RedelmA | Self::RedelmB)
    }

    /// How repetition levels are coded.
    pub(crate) fn repetition(self) -> RepetitionCoding {
        match self {
            Self::RedelmA => RepetitionCoding::Runs,
            Self::RedelmF | Self::Spec => RepetitionCoding::Packed,
            _ => RepetitionCoding::Padded,
        }
    }

    /// Whether definition levels come first, and without a length.
    pub(crate) fn definition_first(self) -> bool {
        self == Self::Spec
    }

    /// Whether pages are stored uncompressed, even if the metadata names a codec.
    pub(crate) fn never_compresses(self) -> bool {
        matches!(self, Self::RedelmA | Self::RedelmB | Self::RedelmC | Self::RedelmD)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Dialect {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let entry = Self::NAMES.iter().find(|(_, n)| n.eq_ignore_ascii_case(name));
        entry.map(|(d, _)| *d).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(_, n)| *n).collect();
            Error::invalid(format!("expected a dialect of auto, {}, found {name:?}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_dialects_are_parsed() {
        for (dialect, name) in Dialect::NAMES {
            assert_eq!(name.parse::<Dialect>().unwrap(), dialect);
        }
        assert!("redelm-g".parse::<Dialect>().is_err());
    }
}
