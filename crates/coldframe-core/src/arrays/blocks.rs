//! Views of values that lie anywhere in blocks, with other bytes between them.
//!
//! ```text
//! block 0   | .. row .. value .. |      views | 3 | a b c | 16 | pref | 1 | at | 20 | pref | 2 | at |
//! block 1   | .. row .. value .. |
//! own       | value value ..     |      copies of values in no block, whose memory a decoder reuses
//! ```
//!
//! The columns of a batch share its blocks. The size of these blocks is bounded: once they take [`MAX_KEPT`],
//! values of further blocks are copied. If the columns need only a small part of the blocks, they copy that
//! part when they are finished.

use arrow_array::{BinaryViewArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use bytes::Bytes;
use coldframe_encoding::{Error, Result, values};

use super::views::{SHORT, view, word};
use crate::arrow_error;

/// Maximum bytes of blocks that a batch keeps in memory.
pub const MAX_KEPT: usize = 16 << 20;
/// How many of the most recent blocks `enter` searches for the block that it gets.
const RECENT: usize = 16;
/// If the values fill less than 1/`FEW` of the blocks that they keep in memory, they are copied.
const FEW: usize = 4;
/// The largest offset in a view.
const MAX_BYTES: usize = 0x7fff_ffff;

/// The highest bit of each byte of a short value: set if the byte is not ASCII.
const HIGH: u128 = 0x8080_8080_8080_8080_8080_8080;

/// The blocks that the views of a batch lie in.
#[derive(Debug, Default)]
pub struct Blocks {
    kept: Vec<Bytes>,
    /// The index of the block that holds the next values; out of range if that block is not kept.
    current: usize,
    bytes: usize,
    /// Whether columns copy their values when they are finished.
    copied: bool,
}

impl Blocks {
    /// Records that the next values are from `block`.
    #[inline]
    pub fn enter(&mut self, block: &Bytes) {
        if !self.kept.get(self.current).is_some_and(|current| is_same(current, block)) {
            self.find(block);
        }
    }

    fn find(&mut self, block: &Bytes) {
        let recent = self.kept.iter().enumerate().rev().take(RECENT);
        let known = recent.filter(|(_, kept)| is_same(kept, block)).map(|(number, _)| number).next();
        self.current = known.unwrap_or(self.kept.len());
        let bytes = self.bytes.saturating_add(block.len());
        if known.is_none() && (self.kept.is_empty() || bytes <= MAX_KEPT) {
            self.bytes = bytes;
            self.kept.push(block.clone());
        }
    }

    /// Records that the next values are in no block.
    pub fn leave(&mut self) {
        self.current = usize::MAX;
    }

    /// Given the total bytes of [long](BlockViews::long) values in all columns about to be finished, decides
    /// whether the columns copy them: if they are few, a copy avoids keeping whole blocks in memory.
    pub fn weigh(&mut self, long: usize) {
        self.copied = long < self.bytes / FEW;
    }

    /// Bytes of blocks that are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Removes all blocks except the current block.
    pub fn clear(&mut self) {
        let current = self.kept.get(self.current).cloned();
        (self.bytes, self.current) = (current.as_ref().map_or(0, Bytes::len), 0);
        self.kept.clear();
        self.kept.extend(current);
    }
}

fn is_same(a: &Bytes, b: &Bytes) -> bool {
    a.as_ptr() == b.as_ptr() && a.len() == b.len()
}

/// Collects one column.
#[derive(Debug, Default)]
pub struct BlockViews {
    views: Vec<u128>,
    /// Values that are in no block.
    own: Vec<u8>,
}

impl BlockViews {
    /// Appends a value. A value that is not in the current block is copied.
    #[inline(always)]
    pub fn push(&mut self, value: &[u8], blocks: &Blocks) {
        let block = blocks.kept.get(blocks.current).map_or(&[][..], |block| block);
        let at = value.as_ptr().addr().wrapping_sub(block.as_ptr().addr());
        let is_inside = at <= block.len() && value.len() <= block.len() - at && block.len() <= MAX_BYTES;
        let number = u32::try_from(blocks.current.saturating_add(1));
        match (u32::try_from(value.len()), u32::try_from(at), number) {
            (Ok(length), Ok(at), Ok(number)) if is_inside => {
                self.views.push(view(word(block, at as usize), length, number, at));
            }
            _ => self.copy(value),
        }
    }

    #[inline(never)]
    fn copy(&mut self, value: &[u8]) {
        // If an offset or a length does not fit, `size` is too large, and `binary` fails.
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        let at = u32::try_from(self.own.len()).unwrap_or(u32::MAX);
        self.views.push(view(word(value, 0), length, 0, at));
        if length > SHORT {
            self.own.extend_from_slice(value);
        }
    }

    /// Bytes of the copied values. An array can hold at most 2 GiB of them.
    pub fn size(&self) -> usize {
        self.own.len()
    }

    /// The number of copied bytes, and the number of values.
    pub fn room(&self) -> (usize, usize) {
        (self.own.len(), self.views.len())
    }

    /// Reserves room for this many copied bytes and values.
    pub fn reserve(&mut self, (bytes, values): (usize, usize)) {
        self.own.reserve(bytes);
        self.views.reserve(values);
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// Moves the values to the rows, of `rows` in total, whose bit in `validity` is set; the other rows get
    /// empty values.
    pub fn spread(&mut self, validity: &[u8], rows: usize) -> Result<()> {
        self.views.resize(rows, 0);
        values::spread(&mut self.views, validity).map(drop)
    }

    /// Keeps the first `rows` values.
    pub fn truncate(&mut self, rows: usize) {
        self.views.truncate(rows);
    }

    /// Total bytes of the values that are too long to be stored in their views.
    pub fn long(&self) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "the length is in the lowest bits")]
        let lengths = self.views.iter().map(|view| *view as u32);
        lengths.filter(|length| *length > SHORT).map(|length| length as usize).fold(0, usize::saturating_add)
    }

    /// Takes the values as text. Fails if a value is not UTF-8, even under a null.
    pub fn text(&mut self, blocks: &Blocks, nulls: Option<NullBuffer>) -> Result<StringViewArray> {
        let is_ascii: Vec<bool> = blocks.kept.iter().map(|block| block.is_ascii()).collect();
        let binary = self.binary(blocks, nulls)?;
        let of_buffer = |number: u128| {
            let block = usize::try_from(number & 0xffff_ffff).unwrap_or(0).checked_sub(1);
            !blocks.copied && block.is_some_and(|block| is_ascii.get(block) == Some(&true))
        };
        for (row, view) in binary.views().iter().enumerate() {
            let is_short = *view & 0xffff_ffff <= u128::from(SHORT);
            let known = if is_short { view >> 32 & HIGH == 0 } else { of_buffer(view >> 64) };
            if !known && simdutf8::basic::from_utf8(binary.value(row)).is_err() {
                return Err(Error::corrupt(format!("expected UTF-8, found other bytes in value {row}")));
            }
        }
        // SAFETY: each value is UTF-8. It was checked alone, or is short and ASCII, or lies in an ASCII
        // block. Unless the values were copied, buffer `n` of the array is block `n - 1`.
        #[expect(unsafe_code, reason = "the safe conversion would check each value again")]
        Ok(unsafe { binary.to_string_view_unchecked() })
    }

    /// Takes the values as binary. `blocks` must be the ones that `push` got, and not cleared since.
    pub fn binary(&mut self, blocks: &Blocks, nulls: Option<NullBuffer>) -> Result<BinaryViewArray> {
        let has_long = self.long() > 0;
        let (views, own) = (std::mem::take(&mut self.views), std::mem::take(&mut self.own));
        if own.len() > MAX_BYTES {
            return Err(Error::unsupported("values of more than 2 GiB in one column of a batch"));
        }
        let mut buffers = Vec::new();
        if has_long {
            buffers.push(Buffer::from_vec(own));
            buffers.extend(blocks.kept.iter().map(|block| Buffer::from(block.clone())));
        }
        let rows = views.len();
        let views = ScalarBuffer::new(Buffer::from_vec(views), 0, rows);
        let array = BinaryViewArray::try_new(views, buffers, nulls).map_err(arrow_error)?;
        Ok(if has_long && blocks.copied { array.gc() } else { array })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Array, BinaryArray};
    use proptest::prelude::*;

    /// A copy of the value in other memory.
    fn elsewhere(value: &[u8]) -> Vec<u8> {
        value.to_vec()
    }

    proptest! {
        #[test]
        fn views_equal_plain_values(
            blocks in proptest::collection::vec("[a-z]{0,60}", 1..6),
            picks in proptest::collection::vec((any::<usize>(), any::<usize>(), any::<usize>(), any::<bool>()), 0..40),
            batch in 1usize..12,
        ) {
            let blocks: Vec<Bytes> = blocks.into_iter().map(Bytes::from).collect();
            let (mut all, mut column) = (Blocks::default(), BlockViews::default());
            let mut expected: Vec<Vec<u8>> = Vec::new();
            for (number, (block, from, length, inside)) in picks.into_iter().enumerate() {
                let block = &blocks[block % blocks.len()];
                let from = from % (block.len() + 1);
                let value = &block[from..from + length % (block.len() - from + 1)];
                match inside {
                    true => { all.enter(block); column.push(value, &all); }
                    false => column.push(&elsewhere(value), &all),
                }
                expected.push(value.to_vec());
                if number % batch == 0 {
                    all.weigh(column.long());
                    let array = column.binary(&all, None).unwrap();
                    all.clear();
                    array.to_data().validate_full().unwrap();
                    let plain = BinaryArray::from_iter_values(expected.drain(..));
                    prop_assert_eq!(array, BinaryViewArray::from(&plain));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn text_is_checked_as_strictly_as_by_std(
            block in proptest::collection::vec(prop_oneof![9 => 0x20u8..0x7f, 1 => any::<u8>()], 0..60),
            picks in proptest::collection::vec((any::<usize>(), any::<usize>(), any::<bool>()), 0..8),
        ) {
            let block = Bytes::from(block);
            let (mut all, mut column) = (Blocks::default(), BlockViews::default());
            all.enter(&block);
            let mut expected = Vec::new();
            for (from, length, inside) in picks {
                let from = from % (block.len() + 1);
                let value = &block[from..from + length % (block.len() - from + 1)];
                if inside { column.push(value, &all) } else { column.push(&elsewhere(value), &all) }
                expected.push(value.to_vec());
            }
            all.weigh(column.long());
            let array = column.text(&all, None);
            let texts: std::result::Result<Vec<&str>, _> = expected.iter().map(|v| std::str::from_utf8(v)).collect();
            prop_assert_eq!(array.is_ok(), texts.is_ok());
            if let (Ok(array), Ok(texts)) = (array, texts) {
                array.to_data().validate_full().unwrap();
                prop_assert_eq!(array.iter().flatten().collect::<Vec<_>>(), texts);
            }
        }
    }

    #[test]
    fn blocks_beyond_the_bound_are_not_kept() {
        let (mut all, mut column) = (Blocks::default(), BlockViews::default());
        for _ in 0..5 {
            let block = Bytes::from(vec![7u8; MAX_KEPT / 3]);
            all.enter(&block);
            column.push(&block[5..5 + MAX_KEPT / 4], &all);
        }
        assert!(all.bytes() <= MAX_KEPT && column.size() == 2 * (MAX_KEPT / 4));
        let array = column.binary(&all, None).unwrap();
        assert!(
            array.iter().flatten().all(|value| value.len() == MAX_KEPT / 4 && value.iter().all(|b| *b == 7))
        );
    }

    #[test]
    fn few_bytes_of_large_blocks_are_copied() {
        let (mut all, mut column) = (Blocks::default(), BlockViews::default());
        let block = Bytes::from(vec![7u8; 1000]);
        all.enter(&block);
        column.push(&block[3..23], &all);
        all.weigh(column.long());
        let array = column.binary(&all, None).unwrap();
        assert_eq!(array.data_buffers().iter().map(|b| b.len()).sum::<usize>(), 20);
        column.push(&block[3..900], &all);
        column.push(&block[3..6], &all);
        column.truncate(1);
        all.weigh(column.long());
        let array = column.binary(&all, None).unwrap();
        assert_eq!((array.len(), array.data_buffers()[1].as_ptr()), (1, block.as_ptr()));
    }
}
