//! The levels of a page.
//!
//! ```text
//! A to F | repetition levels | length u32 BE, definition levels |     A: repetition levels as definition levels
//! spec   | definition levels | repetition levels |
//! ```
//!
//! A section whose highest level is 0 is not there, nor is its length.

use coldframe_encoding::{Cursor, Error, Limits, Result};

use crate::layout::dialect::{Dialect, RepetitionCoding};
use crate::layout::levels;
use crate::schema::Leaf;

/// The levels of a page's values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    /// Of each value; empty where the highest is 0.
    pub(crate) definition: Vec<u8>,
    /// Of each value; empty where the highest is 0.
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

/// How often `level` occurs.
pub(crate) fn count_level(levels: &[u8], level: u8) -> usize {
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

impl Dialect {
    /// Fills the levels of a page's values (none where the highest is 0) and returns where the values begin.
    pub(crate) fn read_levels(
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
}
