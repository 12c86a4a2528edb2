//! Finds the bytes of each value: the cells of a column, or the parts of cells that nested types
//! separate.

use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};

use crate::serde::Cells;

/// The bytes of one value.
#[derive(Clone, Copy)]
pub(super) struct Cell<'a> {
    /// The bytes from the first byte of the value to the end of the buffer, so that a parser can load
    /// fixed-size words that extend past the value.
    pub(super) rest: &'a [u8],
    /// How many of these bytes belong to the value.
    pub(super) len: usize,
}

impl<'a> Cell<'a> {
    pub(super) fn bytes(self) -> &'a [u8] {
        self.rest.get(..self.len).unwrap_or(self.rest)
    }
}

/// The bytes of a column of values; some values may be missing.
pub(super) trait CellSource {
    /// The number of values.
    fn len(&self) -> usize;

    /// The buffer that holds all values.
    fn data(&self) -> &[u8];

    /// Start and end of each value in `data`; a value whose start is after its end is missing.
    fn ranges(&self) -> impl Iterator<Item = (usize, usize)>;

    /// The buffers, if the values are contiguous and no value is missing.
    fn shared(&self) -> Option<(&Buffer, &OffsetBuffer<i32>)> {
        None
    }

    /// The bytes of each value; `None` for a missing value.
    fn cells(&self) -> impl Iterator<Item = Option<Cell<'_>>> {
        let data = self.data();
        self.ranges().map(move |(start, end)| {
            let len = end.checked_sub(start)?;
            Some(Cell { rest: data.get(start..)?, len })
        })
    }
}

impl CellSource for Cells {
    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn data(&self) -> &[u8] {
        &self.data
    }

    #[inline]
    fn ranges(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut start = self.offsets.inner().first().map_or(0, |o| o.as_usize());
        let ends = self.offsets.get(1..).unwrap_or_default();
        ends.iter().map(move |end| {
            let range = (start, end.as_usize());
            start = range.1;
            range
        })
    }

    fn shared(&self) -> Option<(&Buffer, &OffsetBuffer<i32>)> {
        Some((&self.data, &self.offsets))
    }
}

/// Parts of cells.
pub(super) struct CellParts<'a> {
    data: &'a [u8],
    ranges: Vec<(u32, u32)>,
}

impl<'a> CellParts<'a> {
    pub(super) fn new(data: &'a [u8], capacity: usize) -> Self {
        Self { data, ranges: Vec::with_capacity(capacity) }
    }

    /// Adds `data[start..end]`. The offsets fit an `i32`, because the size of a column fits an `i32`.
    pub(super) fn push(&mut self, start: usize, end: usize) {
        let narrow = |n| u32::try_from(n).unwrap_or(u32::MAX);
        self.ranges.push((narrow(start), narrow(end)));
    }

    /// Adds a missing value.
    pub(super) fn push_missing(&mut self) {
        self.ranges.push((u32::MAX, 0));
    }

    /// Removes all parts.
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// The parts for which `keep` is set.
    pub(super) fn filter(&self, keep: &BooleanBuffer) -> Self {
        let ranges = self.ranges.iter().zip(keep).filter(|(_, k)| *k).map(|(r, _)| *r).collect();
        Self { data: self.data, ranges }
    }
}

impl CellSource for CellParts<'_> {
    fn len(&self) -> usize {
        self.ranges.len()
    }

    fn data(&self) -> &[u8] {
        self.data
    }

    #[inline]
    fn ranges(&self) -> impl Iterator<Item = (usize, usize)> {
        self.ranges.iter().map(|&(start, end)| (start.as_usize(), end.as_usize()))
    }
}

/// Collects validity bits, 64 at a time.
pub(super) struct Validity {
    words: Vec<u64>,
    word: u64,
    len: usize,
}

impl Validity {
    pub(super) fn with_capacity(len: usize) -> Self {
        Self { words: Vec::with_capacity(len / 64 + 1), word: 0, len: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, valid: bool) {
        self.word |= u64::from(valid) << (self.len % 64);
        self.len += 1;
        if self.len.is_multiple_of(64) {
            self.words.push(self.word);
            self.word = 0;
        }
    }

    /// Appends the next `len` bits, up to 64; only the last call may pass fewer than 64.
    pub(super) fn push_block(&mut self, bits: u64, len: usize) {
        debug_assert!(self.len.is_multiple_of(64) && len <= 64);
        self.len += len;
        if len == 64 {
            self.words.push(bits);
        } else {
            self.word = bits;
        }
    }

    /// The validity bits; `None` if all values are valid.
    pub(super) fn finish(self) -> Option<NullBuffer> {
        let len = self.len;
        let nulls = NullBuffer::new(self.into_bits());
        debug_assert_eq!(nulls.len(), len);
        (nulls.null_count() > 0).then_some(nulls)
    }

    pub(super) fn into_bits(mut self) -> BooleanBuffer {
        self.words.push(self.word);
        BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.len)
    }
}
