//! The next cell of each file of a unit, in order.
//!
//! ```text
//! file 0   block | a1 a2 | c0 ..      heads, sorted:  a1  b1  d0        run: a1 a2, before the row of the next head
//! file 1   block | b1 | ..                            │
//! file 2   block | d0 | ..                            └─▶ its file's next cell, c0, is inserted again
//! ```
//!
//! The heads (the next cell of each file) are large, so they stay in place and only their indexes are sorted.

use std::cmp::Ordering;

use bytes::Bytes;
use coldframe_core::{Error, Result};
use coldframe_hfile::{Cell, RowOrder};

use super::feed::Origin;
use crate::wal::edits;

/// The next cell of a file, with its start and end in the block.
#[derive(Debug)]
pub(super) struct Head<'a> {
    pub(super) cell: Cell<'a>,
    pub(super) file: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Cells of one block that come before the cells of all other files. Whole blocks if files do not overlap;
/// otherwise the cells that one file has of a row.
pub(super) struct Run<'a> {
    /// The first cell of the run, and the offset of the second cell.
    pub(super) cell: Cell<'a>,
    pub(super) end: usize,
    pub(super) block: &'a Bytes,
    pub(super) origin: &'a Origin,
    pub(super) order: RowOrder,
    /// The first row of any other file, which comes after the row of `cell`.
    pub(super) bound: Option<&'a [u8]>,
}

/// Why a file has no next cell in its block.
pub(super) enum Ended {
    UsedUp(usize),
    Broken(usize, Error),
}

/// The heads of all files.
pub(super) struct MergeHeap<'a> {
    order: RowOrder,
    origins: &'a [Origin],
    blocks: &'a [Bytes],
    heads: Vec<Head<'a>>,
    sorted: Vec<usize>,
}

impl<'a> MergeHeap<'a> {
    /// Reads the heads at the offsets `places` of the files' blocks.
    pub(super) fn new(
        order: RowOrder,
        origins: &'a [Origin],
        blocks: &'a [Bytes],
        places: impl Iterator<Item = usize>,
    ) -> std::result::Result<Self, Ended> {
        let mut heads = Vec::with_capacity(blocks.len());
        for (file, ((block, origin), at)) in blocks.iter().zip(origins).zip(places).enumerate() {
            if at < block.len() {
                let (cell, end) = read(block, origin, at).map_err(|e| Ended::Broken(file, e))?;
                heads.push(Head { cell, file, start: at, end });
            }
        }
        let mut heap = Self { order, origins, blocks, sorted: (0..heads.len()).collect(), heads };
        let mut sorted = std::mem::take(&mut heap.sorted);
        sorted.sort_by(|a, b| heap.compare(*a, *b));
        heap.sorted = sorted;
        Ok(heap)
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (Some(a), Some(b)) = (self.heads.get(a), self.heads.get(b)) else { return Ordering::Equal };
        let rank = |head: &Head<'_>| self.origins.get(head.file).map_or(0, |origin| origin.rank);
        edits::compare(self.order, &a.cell, &b.cell).then_with(|| rank(b).cmp(&rank(a)))
    }

    /// The first head in the order of cells.
    #[inline]
    pub(super) fn top(&self) -> Option<&Head<'a>> {
        self.heads.get(*self.sorted.first()?)
    }

    /// The properties that the source of a head gives to its cells.
    #[inline]
    pub(super) fn origin(&self, head: &Head<'_>) -> Option<&'a Origin> {
        self.origins.get(head.file)
    }

    /// The run that begins with the first head, if no other file has its row.
    #[inline]
    pub(super) fn run(&self) -> Option<Run<'a>> {
        let Head { cell, file, end, .. } = *self.top()?;
        let bound = self.sorted.get(1).and_then(|place| Some(self.heads.get(*place)?.cell.row));
        if bound.is_some_and(|bound| self.order.compare(cell.row, bound).is_ge()) {
            return None;
        }
        let (block, origin) = (self.blocks.get(file)?, self.origins.get(file)?);
        Some(Run { cell, end, block, origin, order: self.order, bound })
    }

    /// Moves the file of the first head on to offset `end` of its block. `next`: the cell at that offset and
    /// its end, if they have been read.
    pub(super) fn go_on(
        &mut self,
        end: usize,
        next: Option<(Cell<'a>, usize)>,
    ) -> std::result::Result<(), Ended> {
        let Some(&place) = self.sorted.first() else { return Ok(()) };
        let Some(top) = self.heads.get_mut(place) else { return Ok(()) };
        let (Some(block), Some(origin)) = (self.blocks.get(top.file), self.origins.get(top.file)) else {
            return Ok(());
        };
        if end >= block.len() {
            self.sorted.remove(0);
            return Err(Ended::UsedUp(top.file));
        }
        match next.map_or_else(|| read(block, origin, end), Ok) {
            Ok((cell, next_end)) => (top.cell, top.start, top.end) = (cell, end, next_end),
            Err(e) => {
                self.sorted.remove(0);
                return Err(Ended::Broken(top.file, e));
            }
        }
        let others = self.sorted.get(1..).unwrap_or_default();
        let passes = |other: &usize| self.compare(*other, place).is_lt();
        if others.first().is_some_and(passes) {
            let passed = 1 + others.get(1..).unwrap_or_default().partition_point(passes);
            if let Some(passed) = self.sorted.get_mut(..=passed) {
                passed.rotate_left(1);
            }
        }
        Ok(())
    }

    /// Removes the file of the first head.
    pub(super) fn drop_top(&mut self) {
        self.sorted.remove(0);
    }

    /// The current offset of each file that has a head.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let heads = self.sorted.iter().filter_map(|place| self.heads.get(*place));
        heads.map(|head| (head.file, head.start))
    }
}

/// The cell at an offset of a block, with the sequence id that its source gives to it.
#[inline(always)]
fn read<'a>(block: &'a [u8], origin: &Origin, at: usize) -> Result<(Cell<'a>, usize)> {
    let (mut cell, end) = origin.layout.cell(block, at)?;
    cell.sequence_id = origin.id.unwrap_or(cell.sequence_id);
    Ok((cell, end))
}

impl<'a> Run<'a> {
    /// The cell of the run at an offset after its first cell; `None` at the end of the run, or if the cell
    /// cannot be read.
    #[inline(always)]
    pub(super) fn cell(&self, at: usize) -> Option<(Cell<'a>, usize)> {
        if at >= self.block.len() {
            return None;
        }
        read(self.block, self.origin, at).ok()
    }

    /// Whether other files may have cells before the cells of a row.
    #[inline(always)]
    pub(super) fn ends_before(&self, row: &[u8]) -> bool {
        self.bound.is_some_and(|bound| self.order.compare(row, bound).is_ge())
    }
}
