//! DICT: values as code words (indexes) of a dictionary that all blocks of a file share.
//!
//! ```text
//! data block       | mode u32 LE | BIT_SHUFFLE of code words (mode 1), or PLAIN of bytes (mode 2) |
//! dictionary block | PLAIN of bytes: the value of code word 0, of code word 1 ... |
//! ```
//!
//! Once the dictionary is as long as the column's block size, the writer switches to mode 2, so a file may
//! contain both modes.

use arrow_array::{Array as _, ArrayRef};
use bytes::Bytes;
use coldframe_core::arrays::blocks::{BlockViews, Blocks};
use coldframe_core::arrays::{reserve, strings};
use coldframe_core::{Error, Result};

use crate::encoding::binary;
use crate::layout::types::KuduType;

/// The mode of a block with code words.
pub(crate) const CODE_WORDS: u32 = 1;
/// The mode of a block with values.
pub(crate) const VALUES: u32 = 2;
/// A short value is copied as this many bytes; the next value overwrites the excess.
const STEP: usize = 16;

/// The values of code words.
#[derive(Debug)]
pub struct Dictionary {
    /// The values, contiguous; shared with `values`.
    data: Bytes,
    /// The offset and length of each value. Position 0 is null and empty; code word `c` is at `c + 1`.
    entries: Vec<(u32, u32)>,
    /// The values as an array, for Arrow dictionary arrays.
    values: ArrayRef,
    longest: u32,
}

impl Dictionary {
    /// Parses a dictionary block. Strings must be UTF-8.
    pub fn parse(block: Bytes, at: u64, data_type: KuduType) -> Result<Self> {
        let mut places = Vec::new();
        binary::offsets(&block, &mut places).map_err(|e| e.at(at))?;
        let end = places.last().map_or(0, |p| *p as usize);
        let data = block.get(binary::HEADER_LEN..end).unwrap_or_default().to_vec();
        let base = 12u32;
        let starts: Vec<i32> = places.iter().map(|p| i32::try_from(p - base).unwrap_or(i32::MAX)).collect();
        let values = strings(starts, data, None, data_type != KuduType::Binary).map_err(|e| e.at(at))?;
        // Not copied: the values may take more than a batch.
        let data = Bytes::from_owner(values.to_data().buffers().get(1).cloned().unwrap_or_default());
        let lengths = places.iter().zip(places.iter().skip(1)).map(|(from, to)| (from - base, to - from));
        let entries: Vec<(u32, u32)> = std::iter::once((0, 0)).chain(lengths).collect();
        let longest = entries.iter().map(|(_, len)| *len).max().unwrap_or(0);
        Ok(Self { data, entries, values, longest })
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.entries.len() - 1
    }

    /// The length of the dictionary's longest value.
    pub fn longest(&self) -> u64 {
        self.longest.into()
    }

    /// Whether the dictionary has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All values as an array.
    pub fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// Appends values to `offsets` and `data`. A place is 0 for null, otherwise the value's code word plus 1. The
    /// first append reserves room for `left` values.
    pub fn gather(
        &self,
        places: &[u32],
        left: usize,
        offsets: &mut Vec<i32>,
        data: &mut Vec<u8>,
    ) -> Result<()> {
        // All positions are checked first, so that the loop below does not end early.
        self.check(places)?;
        let start = data.len();
        let first = offsets.len();
        let mut end = start;
        offsets.extend(places.iter().map(|place| {
            end += self.entries.get(*place as usize).map_or(0, |(_, len)| *len as usize);
            // An end beyond 2^31 bytes is an error below.
            i32::try_from(end & 0x7fff_ffff).unwrap_or(i32::MAX)
        }));
        if end > i32::MAX as usize {
            offsets.truncate(first);
            return Err(Error::batch_too_long("the values of a batch", end as u64));
        }
        reserve(data, end + STEP - start, places.len(), left);
        data.resize(end + STEP, 0);
        let mut at = start;
        for place in places {
            let (from, len) = self.entries.get(*place as usize).copied().unwrap_or_default();
            let (from, len) = (from as usize, len as usize);
            if len <= STEP
                && let Some(source) = self.data.get(from..).and_then(|d| d.first_chunk::<STEP>())
                && let Some(target) = data.get_mut(at..).and_then(|d| d.first_chunk_mut::<STEP>())
            {
                *target = *source;
            } else if let (Some(source), Some(target)) =
                (self.data.get(from..from + len), data.get_mut(at..at + len))
            {
                // Long values, and the last of the dictionary.
                target.copy_from_slice(source);
            }
            at += len;
        }
        data.truncate(end);
        Ok(())
    }

    /// Appends views of the values of `places` (code word + 1, or 0 for null).
    pub(crate) fn views(&self, places: &[u32], blocks: &mut Blocks, column: &mut BlockViews) -> Result<()> {
        self.check(places)?;
        blocks.enter(&self.data);
        for place in places {
            let (from, len) = self.entries.get(*place as usize).copied().unwrap_or_default();
            let (from, len) = (from as usize, len as usize);
            column.push(self.data.get(from..from + len).unwrap_or_default(), blocks);
        }
        Ok(())
    }

    /// Fails if one of `places` is neither null nor the position of a value.
    pub fn check(&self, places: &[u32]) -> Result<()> {
        let last = places.iter().copied().max().unwrap_or(0);
        if (last as usize) < self.entries.len() { Ok(()) } else { Err(self.no_such_code_word(last)) }
    }

    #[cold]
    #[inline(never)]
    fn no_such_code_word(&self, place: u32) -> Error {
        let code_word = place.wrapping_sub(1);
        Error::corrupt(format!("expected a code word below {}, found {code_word}", self.len()))
    }
}
