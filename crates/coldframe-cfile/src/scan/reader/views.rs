//! Reads values as views; their bytes stay in their block or in the dictionary.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::NullBufferBuilder;
use bytes::Bytes;
use coldframe_core::arrays::blocks::{BlockViews, Blocks};
use coldframe_core::{Error, Result};

use super::{ColumnReader, Segment, Values, no_dictionary, places, wrong_encoding};

impl ColumnReader {
    /// The next `n` rows, or fewer as in [`Self::read_some`].
    pub(super) fn read_views(&mut self, n: usize, is_text: bool) -> Result<ArrayRef> {
        let (mut all, mut column) = (Blocks::default(), BlockViews::default());
        column.reserve((0, n));
        let mut nulls = NullBufferBuilder::new(n);
        let mut rows = 0;
        while rows < n && (column.size() as u64) < self.batch_bytes() {
            let segment = self.next_segment(n - rows, &mut nulls)?;
            rows += segment.rows;
            let dictionary = self.context.dictionary.clone();
            let contents = self.current.as_ref().and_then(|open| open.contents.clone());
            self.in_block(|values, bytes, memory| match values {
                Values::Codes(block) => {
                    let dictionary = dictionary.as_deref().ok_or_else(no_dictionary)?;
                    places(block, bytes, memory, &segment)?;
                    dictionary.views(&memory.places, &mut all, &mut column)
                }
                Values::Binary(next, from) => {
                    let values = if from.is_some() { bytes } else { &memory.data };
                    let ends = memory.offsets.get(*next..).unwrap_or_default();
                    *next += segment.dense;
                    let contents = contents.as_ref().filter(|_| from.is_some());
                    view(ends, from.unwrap_or(0), (values, contents), &segment, (&mut all, &mut column))
                }
                _ => Err(wrong_encoding()),
            })?;
        }
        all.weigh(column.long());
        let nulls = nulls.finish();
        Ok(match is_text {
            true => Arc::new(column.text(&all, nulls)?),
            false => Arc::new(column.binary(&all, nulls)?),
        })
    }
}

/// Appends views of contiguous values. `ends` begins with the first value's start, relative to `base` in `values`.
/// `contents`: the block with the values, if views may refer to it.
fn view(
    ends: &[u32],
    base: usize,
    (values, contents): (&[u8], Option<&Bytes>),
    segment: &Segment,
    (all, column): (&mut Blocks, &mut BlockViews),
) -> Result<()> {
    let Some(ends) = ends.get(..=segment.dense) else {
        return Err(Error::corrupt("expected more values, found the block's end"));
    };
    let (first, last) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
    let place = base + first as usize..base + last as usize;
    let Some(bytes) = values.get(place.clone()) else {
        return Err(Error::corrupt("expected values inside the block"));
    };
    match contents {
        Some(contents) => all.enter(&contents.slice(place)),
        None => all.leave(),
    }
    let mut stored = ends.windows(2).map(|pair| match pair {
        [from, to] => bytes.get((from - first) as usize..(to - first) as usize).unwrap_or_default(),
        _ => &[],
    });
    match &segment.validity {
        None => stored.for_each(|value| column.push(value, all)),
        Some(bits) => {
            for row in 0..segment.rows {
                let valid = bits.as_slice().get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1);
                column.push(if valid { stored.next().unwrap_or_default() } else { &[] }, all);
            }
        }
    }
    Ok(())
}
