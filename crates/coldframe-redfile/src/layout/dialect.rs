//! The dialects: layouts that share one magic and one version.
//!
//! | | before each row group | children | repetition levels | numbers | lengths | booleans | compression |
//! |---|---|---|---|---|---|---|---|
//! | `redelm-a` | `RED1` | list | runs, u32 BE length | big endian | u32 BE | bytes | never |
//! | `redelm-b` | `RED1` | list | packed, padded | little endian | LEB128 | bytes | never |
//! | `redelm-c` | `RED1` | list | packed, padded | little endian | u32 LE | - | never |
//! | `redelm-d` | | number | packed, padded | little endian | u32 LE | - | never |
//! | `redelm-e` | | number | packed, padded | little endian | u32 LE | - | as stated |
//! | `redelm-f` | | number | packed | little endian | u32 LE | bits | as stated |
//! | `spec` | | | packed, behind the definition levels, which have no length | little endian | u32 LE | bits | as stated |
//!
//! A to F are what the one writer of the format wrote between 5 and 20 February 2013; `spec` is the order that the
//! README's text gives. Nothing names the dialect. It is told by whether the pages of a file make sense in it: levels
//! that end where their length says, in range, and values that end with the page.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use coldframe_core::{Error, Limits, Result};
use coldframe_encoding::Cursor;

use crate::layout::levels;
use crate::layout::metadata::Type;
use crate::layout::page::DataPage;
use crate::pages::plain::{PageValues, fixed_width};
use crate::schema::Leaf;

/// A layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// 5 and 6 February 2013.
    RedelmA,
    /// 8 February.
    RedelmB,
    /// 8 February.
    RedelmC,
    /// 8 February.
    RedelmD,
    /// 11 to 19 February.
    RedelmE,
    /// 19 and 20 February.
    #[default]
    RedelmF,
    /// The text's.
    Spec,
}

/// How the length of a byte array is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthCoding {
    /// Four bytes, high first.
    BigEndian,
    /// Four bytes, low first.
    LittleEndian,
    /// LEB128.
    Varint,
}

/// How repetition levels are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepetitionCoding {
    /// As definition levels.
    Runs,
    /// Packed, the last group filled up.
    Padded,
    /// Packed into as few bytes as it takes.
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

    /// Its name in options and metadata.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(d, _)| *d == self).map_or("", |(_, name)| name)
    }

    /// Whether numbers have their high byte first.
    pub fn big_endian(self) -> bool {
        self == Self::RedelmA
    }

    /// How lengths of byte arrays are coded.
    pub fn lengths(self) -> LengthCoding {
        match self {
            Self::RedelmA => LengthCoding::BigEndian,
            Self::RedelmB => LengthCoding::Varint,
            _ => LengthCoding::LittleEndian,
        }
    }

    /// Whether a boolean is a byte.
    pub fn byte_booleans(self) -> bool {
        matches!(self, Self::RedelmA | Self::RedelmB)
    }

    /// How repetition levels are coded.
    pub fn repetition(self) -> RepetitionCoding {
        match self {
            Self::RedelmA => RepetitionCoding::Runs,
            Self::RedelmF | Self::Spec => RepetitionCoding::Packed,
            _ => RepetitionCoding::Padded,
        }
    }

    /// Whether definition levels come first, and without a length.
    pub fn definition_first(self) -> bool {
        self == Self::Spec
    }

    /// Whether pages are as they are, whatever codec the metadata names.
    pub fn never_compresses(self) -> bool {
        matches!(self, Self::RedelmA | Self::RedelmB | Self::RedelmC | Self::RedelmD)
    }

    /// Fills the levels of a page's values (none where the highest is 0) and returns where the values begin.
    pub fn read_levels(
        self,
        leaf: &Leaf,
        page: &[u8],
        count: usize,
        limits: &Limits,
        levels: &mut Levels,
    ) -> Result<usize> {
        // Runs take no bytes: what has fewer bits than levels is bounded by the limit alone.
        if count / 8 > page.len() {
            limits.unit_rows("a page's values", count as u64)?;
        }
        let prepare = |buffer: &mut Vec<u8>, max: u8| {
            buffer.clear();
            buffer.resize(if max > 0 { count } else { 0 }, 0);
        };
        prepare(&mut levels.definition, leaf.max_definition);
        prepare(&mut levels.repetition, leaf.max_repetition);
        let mut c = Cursor::new(page, 0);
        if count == 0 && page.is_empty() {
            return Ok(0);
        }
        if self.definition_first() && leaf.max_definition > 0 {
            let read = levels::decode_runs(c.rest(), leaf.max_definition, &mut levels.definition)
                .map_err(|e| e.within("definition levels"))?;
            c.skip(read)?;
        }
        if leaf.max_repetition > 0 {
            self.read_repetition(leaf.max_repetition, &mut c, &mut levels.repetition)
                .map_err(|e| e.within("repetition levels"))?;
        }
        if !self.definition_first() && leaf.max_definition > 0 {
            read_runs(leaf.max_definition, &mut c, &mut levels.definition)
                .map_err(|e| e.within("definition levels"))?;
        }
        Ok(page.len() - c.remaining())
    }

    fn read_repetition(self, max: u8, c: &mut Cursor<'_>, out: &mut [u8]) -> Result<()> {
        let padded = match self.repetition() {
            RepetitionCoding::Runs => return read_runs(max, c, out),
            RepetitionCoding::Padded => true,
            RepetitionCoding::Packed => false,
        };
        levels::unpack(c.take(levels::packed_len(out.len(), max, padded))?, max, out)
    }

    /// What of the dialect shows in pages of `leaf`.
    fn traits(self, leaf: &Leaf) -> impl PartialEq + use<> {
        let leveled = leaf.max_definition > 0;
        let padding_matters = !matches!(levels::width(leaf.max_repetition), 0 | 1 | 2 | 4 | 8);
        let repetition = match self.repetition() {
            RepetitionCoding::Padded if !padding_matters => RepetitionCoding::Packed,
            other => other,
        };
        (
            (leaf.max_repetition > 0).then_some(repetition),
            leveled && self.definition_first(),
            (leaf.physical_type == Type::ByteArray).then(|| self.lengths()),
            leaf.physical_type == Type::Boolean && self.byte_booleans(),
        )
    }
}

/// The levels of a page's values.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    /// Of each value; empty where the highest is 0.
    pub definition: Vec<u8>,
    /// Of each value; empty where the highest is 0.
    pub repetition: Vec<u8>,
}

impl Levels {
    /// How many of `count` entries have a value.
    pub fn present(&self, leaf: &Leaf, count: usize) -> usize {
        if leaf.max_definition == 0 {
            return count;
        }
        count_level(&self.definition, leaf.max_definition)
    }
}

/// How often `level` occurs.
pub fn count_level(levels: &[u8], level: u8) -> usize {
    // Sums of a byte each do not overflow over 255 levels, and so are added many at a time.
    levels.chunks(255).map(|c| usize::from(c.iter().fold(0u8, |n, l| n + u8::from(*l == level)))).sum()
}

fn read_runs(max: u8, c: &mut Cursor<'_>, out: &mut [u8]) -> Result<()> {
    let len = usize::try_from(c.u32_be()?).unwrap_or(usize::MAX);
    let stream = c.take(len)?;
    let read = levels::decode_runs(stream, max, out)?;
    if read == len {
        return Ok(());
    }
    Err(Error::corrupt(format!("expected levels of {len} bytes, found them in {read}")))
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Dialect {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::NAMES.iter().find(|(_, n)| n.eq_ignore_ascii_case(name));
        found.map(|(d, _)| *d).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(_, n)| *n).collect();
            Error::invalid(format!("expected a dialect of auto, {}, found {name:?}", names.join(", ")))
        })
    }
}

/// Tells the dialect of a file by its pages.
#[derive(Debug)]
pub struct Detector {
    candidates: Vec<Dialect>,
    limits: Limits,
    levels: Levels,
}

impl Detector {
    /// For a file whose schema lists children by place, or counts them; whose pages are compressed, or as they are.
    pub fn new(children_listed: bool, raw: bool, limits: Limits) -> Self {
        let candidates = match (children_listed, raw) {
            // The first is taken where nothing tells; the text's layout may have either form of children.
            (true, _) => {
                vec![Dialect::RedelmC, Dialect::RedelmA, Dialect::RedelmB, Dialect::Spec, Dialect::RedelmF]
            }
            (false, true) => vec![Dialect::RedelmD, Dialect::RedelmF, Dialect::Spec],
            (false, false) => vec![Dialect::RedelmF, Dialect::RedelmE, Dialect::Spec],
        };
        Self { candidates, limits, levels: Levels::default() }
    }

    /// Whether pages of `leaf` can tell those apart that are left.
    pub fn asks_for(&self, leaf: &Leaf) -> bool {
        let mut traits = self.candidates.iter().map(|d| d.traits(leaf));
        let first = traits.next();
        traits.any(|t| Some(t) != first)
    }

    /// Looks at a page. One that makes sense in no dialect that is left is damaged: it tells nothing.
    pub fn observe(&mut self, leaf: &Leaf, header: DataPage, page: &Bytes) {
        let Self { candidates, limits, levels } = self;
        let mut fits = |d: &Dialect| reads(*d, leaf, header, page, limits, levels).is_ok();
        let left: Vec<Dialect> = candidates.iter().copied().filter(|d| fits(d)).collect();
        if !left.is_empty() {
            *candidates = left;
        }
    }

    /// The dialect, and whether the bytes leave open which byte order numbers have.
    pub fn decide(&self, leaves: &[Leaf]) -> (Dialect, bool) {
        let first = self.candidates.first().copied().unwrap_or_default();
        let orders = self.candidates.iter().any(|d| d.big_endian() != first.big_endian());
        let numbers = leaves.iter().any(|l| fixed_width(l.physical_type).is_some());
        (first, orders && numbers)
    }
}

/// Whether a page makes sense in a dialect. Leaves its levels in `levels`.
pub(crate) fn reads(
    dialect: Dialect,
    leaf: &Leaf,
    header: DataPage,
    page: &Bytes,
    limits: &Limits,
    levels: &mut Levels,
) -> Result<()> {
    let count = header.num_values;
    let at = dialect.read_levels(leaf, page, count, limits, levels)?;
    let present = levels.present(leaf, count);
    let bytes = page.slice(at.min(page.len())..);
    let mut values = PageValues::new(dialect, leaf.physical_type, header.encoding, bytes, present)?;
    values.skip(present)?;
    values.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(physical_type: Type, max_repetition: u8, max_definition: u8) -> Leaf {
        Leaf { path: vec!["x".to_owned()], physical_type, max_definition, max_repetition }
    }

    fn decide(listed: bool, leaf: &Leaf, n: usize, page: &'static [u8]) -> (Dialect, bool) {
        let mut detector = Detector::new(listed, false, Limits::default());
        let header = DataPage { num_values: n, encoding: 0 };
        if detector.asks_for(leaf) {
            detector.observe(leaf, header, &Bytes::from_static(page));
        }
        detector.decide(std::slice::from_ref(leaf))
    }

    #[test]
    fn pages_tell_their_dialect() {
        let text = leaf(Type::ByteArray, 0, 0);
        assert_eq!(decide(true, &text, 1, b"\0\0\0\x02ab"), (Dialect::RedelmA, false));
        assert_eq!(decide(true, &text, 1, b"\x02ab"), (Dialect::RedelmB, false));
        assert_eq!(decide(true, &text, 1, b"\x02\0\0\0ab"), (Dialect::RedelmC, false));
        assert_eq!(decide(false, &text, 1, b"\x02\0\0\0ab"), (Dialect::RedelmF, false));
        let list = leaf(Type::Int32, 1, 1);
        assert_eq!(decide(false, &list, 1, b"\0\0\0\0\x01\x02\x07\0\0\0"), (Dialect::RedelmF, false));
        assert_eq!(decide(false, &list, 1, b"\x02\0\x07\0\0\0"), (Dialect::Spec, false));
    }

    #[test]
    fn numbers_without_lists_tell_nothing() {
        assert_eq!(decide(true, &leaf(Type::Int32, 0, 0), 1, b"\0\0\0\x01"), (Dialect::RedelmC, true));
        assert_eq!(decide(false, &leaf(Type::Int32, 0, 0), 1, b"\0\0\0\x01"), (Dialect::RedelmF, false));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for (dialect, name) in Dialect::NAMES {
            assert_eq!(name.parse::<Dialect>().unwrap(), dialect);
        }
        assert!("redelm-g".parse::<Dialect>().is_err());
    }
}
