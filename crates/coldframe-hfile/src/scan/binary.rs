//! Collects a column of byte strings: in plain layout, as views, or as a dictionary.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use coldframe_core::Result;
use coldframe_core::arrays::blocks::{BlockViews, Blocks};

use crate::scan::names::Names;
use crate::scan::strings::Strings;

/// A column of byte strings.
#[derive(Debug)]
pub(crate) enum Binary {
    Plain(Strings),
    Views(BlockViews),
    Names(Names),
}

impl Binary {
    /// An empty column of the given type.
    pub(crate) fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::BinaryView => Self::Views(BlockViews::default()),
            DataType::Dictionary(..) => Self::Names(Names::default()),
            _ => Self::Plain(Strings::new()),
        }
    }

    /// Appends one string. If the string is in the current block of `blocks`, a view refers to it there.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: &[u8], blocks: &Blocks) {
        match self {
            Self::Plain(strings) => strings.push(value),
            other => other.push_other(value, blocks),
        }
    }

    /// Not inlined, because in the loop of a decoder the code for views and dictionaries would take registers
    /// from the code for plain columns.
    #[inline(never)]
    fn push_other(&mut self, value: &[u8], blocks: &Blocks) {
        match self {
            Self::Plain(strings) => strings.push(value),
            Self::Views(views) => views.push(value, blocks),
            Self::Names(names) => names.push(value),
        }
    }

    /// Appends strings.
    #[inline]
    pub(crate) fn extend<'a>(
        &mut self,
        values: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
        blocks: &Blocks,
    ) {
        match self {
            Self::Plain(strings) => strings.extend(values),
            Self::Views(views) => values.for_each(|value| views.push(value, blocks)),
            Self::Names(names) => values.for_each(|value| names.push(value)),
        }
    }

    /// Bytes of the strings that the column stores itself.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Plain(strings) => strings.size(),
            Self::Views(views) => views.size(),
            Self::Names(names) => names.size(),
        }
    }

    /// The number of stored bytes and of strings.
    pub(crate) fn room(&self) -> (usize, usize) {
        match self {
            Self::Plain(strings) => strings.room(),
            Self::Views(views) => views.room(),
            Self::Names(names) => (0, names.len()),
        }
    }

    /// Reserves room for this many bytes and strings.
    pub(crate) fn reserve(&mut self, room: (usize, usize)) {
        match self {
            Self::Plain(strings) => strings.reserve(room),
            Self::Views(views) => views.reserve(room),
            Self::Names(names) => names.reserve(room.1),
        }
    }

    /// Reserves room for `times` the current content, and a little more, but at most `most`.
    pub(crate) fn reserve_times(&mut self, times: usize, most: usize) {
        let more = |len: usize| (len.saturating_mul(times) + len / 4).min(most);
        let (bytes, strings) = self.room();
        self.reserve((more(bytes), more(strings)));
    }

    /// Keeps the first `rows` strings.
    pub(crate) fn truncate(&mut self, rows: usize) {
        match self {
            Self::Plain(strings) => strings.truncate(rows),
            Self::Views(views) => views.truncate(rows),
            Self::Names(names) => names.truncate(rows),
        }
    }

    /// Bytes of the strings that are too long to be stored in their views.
    pub(crate) fn long(&self) -> usize {
        match self {
            Self::Views(views) => views.long(),
            Self::Plain(_) | Self::Names(_) => 0,
        }
    }

    /// Returns the strings as an array, and begins a new column.
    pub(crate) fn finish(&mut self, blocks: &Blocks) -> Result<ArrayRef> {
        Ok(match self {
            Self::Plain(strings) => Arc::new(strings.binary()?),
            Self::Views(views) => Arc::new(views.binary(blocks, None)?),
            Self::Names(names) => Arc::new(names.finish()?),
        })
    }
}
