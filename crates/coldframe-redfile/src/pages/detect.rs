//! Detects the dialect of a file by trying to parse its pages.

use bytes::Bytes;
use coldframe_encoding::{Limits, Result};

use super::levels::Levels;
use super::plain::{PageValues, fixed_width};
use crate::layout::dialect::{Dialect, RepetitionCoding};
use crate::layout::levels;
use crate::layout::metadata::Type;
use crate::layout::page::DataPage;
use crate::schema::Leaf;

/// How many more pages must parse in one dialect than in another to exclude the other, because a damaged page
/// may happen to parse only in a wrong dialect.
const LEAD: u64 = 2;

/// Detects the dialect of a file from its pages.
#[derive(Debug)]
pub(crate) struct Detector {
    /// Each candidate with the number of pages that parse in it. The first one is the default.
    candidates: Vec<(Dialect, u64)>,
    limits: Limits,
    levels: Levels,
}

impl Detector {
    /// `children_listed`: whether the schema lists children by index. `raw`: whether all pages are uncompressed.
    pub(crate) fn new(children_listed: bool, raw: bool, limits: Limits) -> Self {
        // A file of the dialect `spec` may have either form of children.
        let candidates: &[Dialect] = match (children_listed, raw) {
            (true, _) => {
                &[Dialect::RedelmC, Dialect::RedelmA, Dialect::RedelmB, Dialect::Spec, Dialect::RedelmF]
            }
            (false, true) => &[Dialect::RedelmD, Dialect::RedelmF, Dialect::Spec],
            (false, false) => &[Dialect::RedelmF, Dialect::RedelmE, Dialect::Spec],
        };
        let candidates = candidates.iter().map(|dialect| (*dialect, 0)).collect();
        Self { candidates, limits, levels: Levels::default() }
    }

    /// The candidates within `lead` pages of the best.
    fn within(&self, lead: u64) -> impl Iterator<Item = Dialect> {
        let best = self.candidates.iter().map(|(_, pages)| *pages).max().unwrap_or_default();
        self.candidates.iter().filter(move |(_, pages)| best - pages < lead).map(|(dialect, _)| *dialect)
    }

    /// Whether pages of `leaf` can distinguish the remaining candidates.
    pub(crate) fn needs(&self, leaf: &Leaf) -> bool {
        let mut traits = self.within(LEAD).map(|d| d.traits(leaf));
        let first = traits.next();
        traits.any(|t| Some(t) != first)
    }

    /// Tries a page. A page that parses in all candidates, or in none, is ignored.
    pub(crate) fn observe(&mut self, leaf: &Leaf, header: DataPage, page: &Bytes) {
        let Self { candidates, limits, levels } = self;
        for (dialect, pages) in candidates {
            *pages += u64::from(check_page(*dialect, leaf, header, page, limits, levels).is_ok());
        }
    }

    /// The dialect, and whether the bytes do not show the byte order of numbers.
    pub(crate) fn decide(&self, leaves: &[Leaf]) -> (Dialect, bool) {
        let first = self.within(1).next().unwrap_or_default();
        let orders = self.within(1).any(|d| d.big_endian() != first.big_endian());
        let numbers = leaves.iter().any(|l| fixed_width(l.physical_type).is_some());
        (first, orders && numbers)
    }
}

/// Checks that a page parses in a dialect. Writes the page's levels to `levels`.
pub(crate) fn check_page(
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

impl Dialect {
    /// Those properties of the dialect that can be seen from pages of `leaf`.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(physical_type: Type, max_repetition: u8, max_definition: u8) -> Leaf {
        Leaf { path: vec!["x".to_owned()], physical_type, max_definition, max_repetition }
    }

    fn decide(listed: bool, leaf: &Leaf, n: usize, page: &'static [u8]) -> (Dialect, bool) {
        let mut detector = Detector::new(listed, false, Limits::default());
        let header = DataPage { num_values: n, encoding: 0 };
        if detector.needs(leaf) {
            detector.observe(leaf, header, &Bytes::from_static(page));
        }
        detector.decide(std::slice::from_ref(leaf))
    }

    #[test]
    fn pages_determine_their_dialect() {
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
    fn numbers_without_lists_do_not_show_the_dialect() {
        assert_eq!(decide(true, &leaf(Type::Int32, 0, 0), 1, b"\0\0\0\x01"), (Dialect::RedelmC, true));
        assert_eq!(decide(false, &leaf(Type::Int32, 0, 0), 1, b"\0\0\0\x01"), (Dialect::RedelmF, false));
    }

    /// A damaged length makes a page of big-endian lengths look like one of varints, but the following pages
    /// show the right dialect.
    #[test]
    fn one_page_does_not_eliminate_the_right_dialect() {
        let text = leaf(Type::ByteArray, 0, 0);
        let mut detector = Detector::new(true, false, Limits::default());
        let damaged = Bytes::from_static(b"\x05\0\0\x02ab");
        detector.observe(&text, DataPage { num_values: 1, encoding: 0 }, &damaged);
        assert!(detector.needs(&text));
        assert_eq!(detector.decide(std::slice::from_ref(&text)).0, Dialect::RedelmB);
        for _ in 0..3 {
            let page = Bytes::from_static(b"\0\0\0\x02ab");
            detector.observe(&text, DataPage { num_values: 1, encoding: 0 }, &page);
        }
        assert_eq!(detector.decide(std::slice::from_ref(&text)), (Dialect::RedelmA, false));
        assert!(!detector.needs(&text));
    }
}
