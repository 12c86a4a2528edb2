//! The cells of a column, and the elements of a nested type gathered into cells of their own.

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use coldframe_encoding::{Cursor, Error, Result};

use super::framing::Framing;

/// Cell `i` is `data[offsets[i]..offsets[i + 1]]`. A null cell has no bytes.
pub(super) struct Run<'a> {
    pub(super) data: &'a Buffer,
    /// The offsets never decrease, and the last offset is within `data`.
    pub(super) offsets: &'a OffsetBuffer<i32>,
    pub(super) nulls: Option<NullBuffer>,
    /// Whether the cells are the cells of a column, where an empty cell is null.
    pub(super) top_level: bool,
}

impl<'a> Run<'a> {
    /// The cells of a column: the empty cells are null.
    pub(super) fn of_column(data: &'a Buffer, offsets: &'a OffsetBuffer<i32>) -> Result<Self> {
        let end = at(offsets.last());
        if end > data.len() {
            let len = data.len();
            return Err(Error::corrupt(format!("expected cells of {end} bytes, found {len}")).within("cell"));
        }
        let mut run = Self { data, offsets, nulls: None, top_level: true };
        let (starts, ends) = run.bounds();
        // The compiler vectorises a loop that counts and does not stop early.
        if starts.iter().zip(ends).filter(|(s, e)| s == e).count() > 0 {
            run.nulls = Some(NullBuffer::new(run.pack(|start, end| start != end)));
        }
        Ok(run)
    }

    /// The number of cells.
    pub(super) fn len(&self) -> usize {
        self.bounds().0.len()
    }

    /// The starts and the ends of the cells, of the same length.
    pub(super) fn bounds(&self) -> (&'a [i32], &'a [i32]) {
        let starts = self.offsets.split_last().map_or(&[][..], |(_, s)| s);
        let ends = self.offsets.split_first().map_or(&[][..], |(_, e)| e);
        (starts, ends)
    }

    /// The start and end of each cell.
    pub(super) fn places(&self) -> impl ExactSizeIterator<Item = (usize, usize)> + use<'a> {
        let (starts, ends) = self.bounds();
        starts.iter().zip(ends).map(|(s, e)| (at(*s), at(*e)))
    }

    /// One bit for each cell, computed from its start and end.
    pub(super) fn pack(&self, bit: impl Fn(i32, i32) -> bool) -> BooleanBuffer {
        let (starts, ends) = self.bounds();
        let word = |starts: &[i32], ends: &[i32]| {
            let mut flags = [0u8; 64];
            for (flag, (start, end)) in flags.iter_mut().zip(starts.iter().zip(ends)) {
                *flag = bit(*start, *end).into();
            }
            // The multiplication moves the low bit of byte `i` of eight to bit `56 + i`.
            let bytes = flags.as_chunks::<8>().0.iter();
            let bytes =
                bytes.map(|eight| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56);
            bytes.zip((0u32..).step_by(8)).fold(0, |word, (byte, shift)| word | (byte << shift))
        };
        let ((whole, rest), (whole_ends, rest_ends)) = (starts.as_chunks::<64>(), ends.as_chunks::<64>());
        let mut words = Vec::with_capacity(whole.len() + 1);
        words.extend(whole.iter().zip(whole_ends).map(|(s, e)| word(s, e)));
        words.push(word(rest, rest_ends));
        BooleanBuffer::new(Buffer::from_vec(words), 0, starts.len())
    }

    /// The bytes of each cell.
    pub(super) fn cells(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let data = self.data.as_slice();
        self.places().map(move |(start, end)| data.get(start..end).unwrap_or_default())
    }

    /// The bytes of cell `i`.
    pub(super) fn cell(&self, i: usize) -> &'a [u8] {
        let (starts, ends) = self.bounds();
        let (start, end) = (starts.get(i).map_or(0, |o| at(*o)), ends.get(i).map_or(0, |o| at(*o)));
        self.data.as_slice().get(start..end).unwrap_or_default()
    }

    /// Whether cell `i` is null.
    pub(super) fn is_null(&self, i: usize) -> bool {
        self.nulls.as_ref().is_some_and(|n| n.is_null(i))
    }

    /// The bytes of all cells together.
    pub(super) fn bytes(&self) -> &'a [u8] {
        let (start, end) = (at(self.offsets.first()), at(self.offsets.last()));
        self.data.as_slice().get(start..end).unwrap_or_default()
    }

    /// The bytes of all cells, and the position of each cell in them, without the column's bytes before and
    /// after the cells.
    pub(super) fn own(&self) -> (Buffer, OffsetBuffer<i32>) {
        let first = self.offsets.first();
        let length = self.bytes().len();
        if first == 0 && length == self.data.len() {
            return (self.data.clone(), self.offsets.clone());
        }
        let offsets: Vec<i32> = self.offsets.iter().map(|o| o - first).collect();
        (self.data.slice_with_length(at(first), length), OffsetBuffer::new(ScalarBuffer::from(offsets)))
    }

    /// Whether every non-null cell has `n` bytes.
    pub(super) fn all_have(&self, n: i32) -> bool {
        let (starts, ends) = self.bounds();
        let others = starts.iter().zip(ends).filter(|(s, e)| **e - **s != n && **e != **s).count();
        others == 0
    }

    /// The error of the first cell that `check` refuses. It is for functions that do not know which cell is
    /// wrong.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(&self, check: impl Fn(Cursor<'_>) -> Result<()>) -> CellError {
        let wrong = self.cells().enumerate().filter(|(i, _)| !self.is_null(*i));
        let first = wrong.filter_map(|(i, cell)| check(Cursor::new(cell, 0)).err().map(|e| (i, e))).next();
        let (index, error) = first.unwrap_or_else(|| (0, Error::corrupt("a cell contradicts its type")));
        CellError { index, error }
    }
}

/// An offset as an index.
#[inline]
#[expect(clippy::cast_sign_loss, reason = "no offset in an `OffsetBuffer` is negative")]
pub(super) fn at(offset: i32) -> usize {
    offset as usize
}

/// An error in cell `index` of a run.
#[derive(Debug)]
pub(super) struct CellError {
    pub(super) index: usize,
    pub(super) error: Error,
}

impl CellError {
    pub(super) fn new(index: usize, error: Error) -> Self {
        Self { index, error }
    }

    /// The error with the row in its group, for the user. The offset within the cell is removed, because it
    /// would look like an offset in the file.
    pub(super) fn in_row(self, first_row: u64) -> Error {
        let row = first_row + self.index as u64;
        Error::new(self.error.into_kind()).within("cell").within(format!("row {row}"))
    }
}

/// Converts the cells of one type to an array of the same length.
pub(super) trait Values: Send + Sync {
    /// How the end of an element of this type is found inside another type.
    fn framing(&self) -> Framing;

    /// One value for each cell.
    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError>;
}

/// The elements of a nested type, gathered into cells.
pub(super) struct Elements {
    data: Vec<u8>,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Elements {
    /// Allocates space for about `count` elements with `bytes` bytes together.
    pub(super) fn with_capacity(count: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(count.saturating_add(1));
        offsets.push(0);
        Self { data: Vec::with_capacity(bytes), offsets, nulls: NullBufferBuilder::new(count) }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
        // All elements together are shorter than the column they come from, whose offsets have the same type.
        self.offsets.push(i32::try_from(self.data.len()).unwrap_or(i32::MAX));
        self.nulls.append_non_null();
    }

    pub(super) fn push_null(&mut self) {
        self.offsets.push(self.offsets.last().copied().unwrap_or(0));
        self.nulls.append_null();
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Decodes the elements.
    pub(super) fn decode(mut self, values: &dyn Values) -> Result<ArrayRef, CellError> {
        let nulls = self.nulls.finish();
        let data = Buffer::from_vec(self.data);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        values.decode(&Run { data: &data, offsets: &offsets, nulls, top_level: false })
    }
}
