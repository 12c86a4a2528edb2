//! The levels of a page.
//!
//! ```text
//! A to F | repetition levels | length u32 BE, definition levels |     A: repetition levels as definition levels
//! spec   | definition levels | repetition levels |
//! ```
//!
//! A section whose maximum level is 0 is absent, together with its length.

use std::ops::Range;

use coldframe_encoding::{Cursor, Error, Limits, Result};

use crate::layout::dialect::{Dialect, RepetitionCoding};
use crate::layout::levels;
use crate::schema::Leaf;

/// The levels of a page's values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    /// The definition level of each value; empty if the maximum is 0.
    pub(crate) definition: Vec<u8>,
    /// The repetition level of each value; empty if the maximum is 0.
    pub(crate) repetition: Vec<u8>,
}

impl Levels {
    /// How many of `count` entries have a value.
    pub(crate) fn present(&self, leaf: &Leaf, count: usize) -> usize {
        if leaf.max_definition == 0 {
            return count;
        }
        count_level(&self.definition, leaf.max_definition)
    }
}

/// Definition levels as runs, for pages in which the number of levels is not limited by the length of the
/// file: a column of nothing but nulls takes a few bytes, and many such columns of a table may be open at the
/// same time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs(Vec<(usize, u8)>);

impl Runs {
    /// The runs of some levels; `None` if they would take more memory than the levels themselves.
    pub(crate) fn of(levels: &[u8]) -> Option<Self> {
        let max = levels.len() / size_of::<(usize, u8)>() + 1;
        let (mut runs, mut rest, mut end) = (Vec::new(), levels, 0);
        while let Some(level) = rest.first() {
            // Whole blocks of levels are counted first, since runs are long here.
            let bulk =
                rest.as_chunks::<16>().0.iter().take_while(|block| **block == [*level; 16]).count() * 16;
            let tail = rest.get(bulk..).unwrap_or_default().iter().take_while(|l| *l == level).count();
            end += bulk + tail;
            if runs.len() == max {
                return None;
            }
            runs.push((end, *level));
            rest = rest.get(bulk + tail..).unwrap_or_default();
        }
        Some(Self(runs))
    }

    /// The runs of a range: the length and the level of each run.
    fn within(&self, range: Range<usize>) -> impl Iterator<Item = (usize, u8)> {
        let mut at = range.start;
        let first = self.0.partition_point(|(end, _)| *end <= range.start);
        let runs = self.0.get(first..).unwrap_or_default().iter();
        runs.take_while(move |_| at < range.end).map(move |(end, level)| {
            let len = (*end).min(range.end).saturating_sub(at);
            at += len;
            (len, *level)
        })
    }

    /// Appends the levels of a range.
    pub(crate) fn expand(&self, range: Range<usize>, out: &mut Vec<u8>) {
        self.within(range).for_each(|(len, level)| out.resize(out.len() + len, level));
    }

    /// How often `level` occurs in a range.
    pub(crate) fn count(&self, range: Range<usize>, level: u8) -> usize {
        self.within(range).filter(|(_, l)| *l == level).map(|(len, _)| len).sum()
    }
}

/// How often `level` occurs.
pub(crate) fn count_level(levels: &[u8], level: u8) -> usize {
    // A sum of one byte does not overflow for 255 levels, so a large number of levels is added at a time.
    levels.chunks(255).map(|c| usize::from(c.iter().fold(0u8, |n, l| n + u8::from(*l == level)))).sum()
}

fn read_runs(max: u8, c: &mut Cursor<'_>, out: &mut [u8]) -> Result<()> {
    let len = usize::try_from(c.u32_be()?).unwrap_or(usize::MAX);
    let stream = c.take(len)?;
    let read = levels::decode_runs(stream, max, out)?;
    if read == len {
        return Ok(());
    }
    Err(Error::corrupt(format!("expected levels of {len} bytes, found {read} bytes of them")))
}

impl Dialect {
    /// Fills the levels of a page's values (no levels if the maximum is 0) and returns where the values
    /// begin.
    pub(crate) fn read_levels(
        self,
        leaf: &Leaf,
        page: &[u8],
        count: usize,
        limits: &Limits,
        levels: &mut Levels,
    ) -> Result<usize> {
        // Runs take almost no bytes. If there are fewer bits than levels, the number of levels is limited
        // only by the option.
        if count / 8 > page.len() {
            limits.block("the levels of a page", count as u64)?;
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
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_expand_to_the_levels(
            runs in proptest::collection::vec((0u8..3, 1usize..90), 0..20),
            start in 0usize..300,
            len in 0usize..300,
        ) {
            let levels: Vec<u8> = runs.iter().flat_map(|(level, n)| vec![*level; *n]).collect();
            let start = start.min(levels.len());
            let range = start..(start + len).min(levels.len());
            let packed = Runs::of(&levels);
            prop_assert!(packed.is_some() || runs.len() > levels.len() / 16);
            let (Some(packed), mut expanded) = (packed, Vec::new()) else { return Ok(()) };
            packed.expand(range.clone(), &mut expanded);
            prop_assert_eq!(&expanded, &levels[range.clone()]);
            let naive = expanded.iter().filter(|l| **l == 1).count();
            prop_assert_eq!(packed.count(range, 1), naive);
        }
    }
}
