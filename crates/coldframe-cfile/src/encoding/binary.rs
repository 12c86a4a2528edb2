//! PLAIN encoding of bytes: the values, followed by their offsets.
//!
//! ```text
//! block   | first ordinal u32 LE | count u32 LE | position of the offsets u32 LE | value ... | offsets |
//! offsets | group varint of four offsets from the block's start ... |           the last group is padded with zeros
//! ```
//!
//! The first value begins at byte 12, and the last ends where the offsets begin. Values are contiguous, as in
//! Arrow.

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;

use crate::encoding::BlockHead;

/// The header's length.
pub(crate) const HEADER_LEN: usize = 12;

/// Parses the header of `block`, and all offsets into `offsets`: one for each value, and the end of the last
/// value.
pub(crate) fn offsets(block: &[u8], offsets: &mut Vec<u32>) -> Result<BlockHead> {
    offsets.clear();
    let mut cursor = Cursor::new(block, 0);
    let (ordinal, count, end) = (cursor.u32_le()?, cursor.u32_le()?, cursor.u32_le()?);
    let place = usize::try_from(end).ok().filter(|p| *p >= HEADER_LEN);
    let Some(stored) = place.and_then(|p| block.get(p..)) else {
        return Err(Error::corrupt(format!("expected offsets inside the block, found them at {end}")));
    };
    let n = count as usize;
    if n.div_ceil(4).saturating_mul(5) > stored.len() {
        let len = stored.len();
        return Err(Error::corrupt(format!("expected {count} offsets, found {len} bytes")));
    }
    offsets.reserve(n.next_multiple_of(4) + 1);
    offsets.resize(n.next_multiple_of(4), 0);
    groups(stored, end.into(), offsets)?;
    offsets.truncate(n);
    offsets.push(end);
    // The loop does not end early, so that it has no branch.
    let (mut last, mut ordered) = (12, true);
    for offset in offsets.iter() {
        ordered &= *offset >= last;
        last = *offset;
    }
    if !ordered {
        return Err(Error::corrupt("expected ascending offsets, found one below the previous one"));
    }
    Ok(BlockHead { count, ordinal })
}

/// For each selector of a group: the positions of values 1 to 3 after it, and of the next group.
static STARTS: [[u8; 4]; 256] = {
    let mut all = [[0; 4]; 256];
    let (mut rest, mut selector): (&mut [[u8; 4]], u16) = (&mut all, 0);
    while let [[first, second, third, end], behind @ ..] = rest {
        let [a, b, c, d] = [selector >> 6, selector >> 4 & 3, selector >> 2 & 3, selector & 3];
        [*first, *second, *third, *end] =
            [low(a + 1), low(a + b + 2), low(a + b + c + 3), low(a + b + c + d + 4)];
        (rest, selector) = (behind, selector + 1);
    }
    all
};

const fn low(n: u16) -> u8 {
    let [low, _] = n.to_le_bytes();
    low
}

/// Fills `out`, whose length is a multiple of 4, with groups of integers; `at`: their offset, for errors. The
/// result is the result of [`Cursor::group_varint`], but lengths are not checked as long as enough bytes
/// remain for the largest possible group.
fn groups(stored: &[u8], at: u64, out: &mut [u32]) -> Result<()> {
    let mut rest = stored;
    let (groups, _) = out.as_chunks_mut::<4>();
    let mut groups = groups.iter_mut();
    while let [selector, behind @ ..] = rest
        && let Some(window) = behind.first_chunk::<16>()
        && let Some(group) = groups.next()
    {
        let [first, second, third, end] = STARTS.get(usize::from(*selector)).copied().unwrap_or_default();
        let value = |from: u8, to: u8| {
            // A value begins at most 12 bytes after the first value of its group.
            let bytes = window.get(from.into()..).and_then(|w| w.first_chunk()).copied().unwrap_or_default();
            u32::from_le_bytes(bytes) & (u32::MAX >> (32 - 8 * u32::from(to - from)))
        };
        *group = [value(0, first), value(first, second), value(second, third), value(third, end)];
        rest = behind.get(end.into()..).unwrap_or_default();
    }
    let mut cursor = Cursor::new(rest, at + (stored.len() - rest.len()) as u64);
    for group in groups {
        *group = cursor.group_varint()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_encoding::varint::put_group_varint;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn groups_equal_the_groups_that_the_cursor_reads(
            values in proptest::collection::vec((any::<[u32; 4]>(), any::<[u8; 4]>()), 0..40),
            behind in 0usize..20,
            cut in 0usize..30,
        ) {
            let values: Vec<[u32; 4]> =
                values.iter().map(|(v, shift)| std::array::from_fn(|i| v[i] >> (shift[i] % 32))).collect();
            let mut stored = Vec::new();
            values.iter().for_each(|group| put_group_varint(&mut stored, *group));
            let whole = stored.len();
            stored.resize(whole + behind, 0xee);
            let mut out = vec![0; values.len() * 4];
            groups(&stored, 0, &mut out).unwrap();
            prop_assert_eq!(&out, values.as_flattened());
            let short = whole.saturating_sub(cut.max(1));
            prop_assert!(values.is_empty() || groups(&stored[..short], 0, &mut out).is_err());
        }
    }
}
