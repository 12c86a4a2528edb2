//! Merges the cells of a unit: the blocks of several store files, without copying cells.
//!
//! ```text
//! file 0   | block | block ..      heads, sorted:  a1  b1  d0
//! file 1   | block | ..                            │
//! file 2   | block | ..                            └─▶ visible? ──▶ columns; its file's next cell is inserted again
//! ```
//!
//! Cells are ordered by row, family, qualifier, newest timestamp first, greatest type first, greatest
//! sequence id first, newest file first. As long as one file's cells come before the rows of all other files,
//! they are taken as a [`Run`](super::merge_heap::Run), without comparisons. That is always so if files do
//! not overlap, and mostly so within a row.
//!
//! If a block cannot be read, its cells are lost. Cells of the same rows in other files may be outdated or
//! deleted, so they are dropped too, except in the view `raw`.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use bytes::Bytes;
use coldframe_core::{
    BatchIter, Damage, DamageLog, DecodeUnit, Error, Fault, Limits, OnError, PassedOver, Result,
};
use coldframe_hfile::{Cell, Columns, Passed, Room, RowOrder};

use super::damaged_rows::{self, DamagedRows};
use super::feed::{Blocks, Cells, Origin, Piece};
use super::merge_heap::{Ended, MergeHeap};
use super::mob::{self, MobFiles};
use super::pivot::Wide;
use super::visibility::{BatchedColumns, Visibility, VisibilityRules};
use crate::columns::wide::WideTable;
use crate::layout::policy::Family;

/// The state that the units of a scan share.
#[derive(Debug)]
pub(crate) struct Scanning {
    pub(crate) rules: VisibilityRules,
    pub(crate) families: Arc<[Family]>,
    pub(crate) mob: Arc<MobFiles>,
    pub(crate) order: RowOrder,
    pub(crate) on_error: OnError,
    pub(crate) damage: DamageLog,
    pub(crate) batch_rows: usize,
    pub(crate) columns: arrow_schema::SchemaRef,
    /// The wide table, if one is requested.
    pub(crate) wide: Option<Arc<WideTable>>,
    pub(crate) limits: Limits,
    /// The size of the first batch of a unit; that of the next unit is usually similar.
    pub(crate) room: Mutex<Room>,
}

impl Scanning {
    /// Records damage; under `raise`, returns it as an error.
    pub(crate) fn record_damage(
        &self,
        e: Error,
        bytes: std::ops::Range<u64>,
        rows: Option<u64>,
        own: bool,
    ) -> Result<()> {
        let e = self.on_error.weigh(e);
        if self.on_error == OnError::Raise || !e.is_damage() {
            return Err(e);
        }
        if own {
            self.damage.push(Damage::from_error(&e, bytes, rows));
        }
        Ok(())
    }
}

/// A unit to decode.
pub(crate) struct DecodeRows {
    pub(crate) scanning: Arc<Scanning>,
    /// The blocks of each file. The fetched bytes are in the same order.
    pub(crate) files: Vec<(Arc<crate::regions::files::StoreFile>, Vec<Piece>)>,
    pub(crate) lower: Vec<u8>,
    pub(crate) upper: Option<Vec<u8>>,
    /// Whether this unit records the damage of blocks that begin before the unit.
    pub(crate) first: bool,
    pub(crate) damaged: Vec<DamagedRows>,
    /// Cells that exist only in logs, each with the index of its family.
    pub(crate) edits: Vec<(usize, Bytes)>,
}

impl DecodeUnit for DecodeRows {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let mut bytes = bytes.into_iter();
        let mut blocks = Vec::with_capacity(self.files.len());
        for (file, pieces) in self.files {
            let pieces = pieces.into_iter().zip(bytes.by_ref()).collect();
            let of_file = Blocks::new(file, pieces, &self.lower, self.upper.as_deref());
            blocks.push(Cells::File(Box::new(of_file)));
        }
        blocks.extend(self.edits.into_iter().map(|(family, cells)| Cells::edits(family, cells)));
        let owned = Owned { lower: self.lower, first: self.first };
        Ok(Box::new(Merge::new(self.scanning, blocks, self.damaged, owned)?))
    }
}

/// Of some cells in memory, returns the visible cells.
pub(crate) fn visible_cells(scanning: Arc<Scanning>, cells: Vec<Cells>) -> Result<BatchIter> {
    let owned = Owned { lower: Vec::new(), first: true };
    Ok(Box::new(Merge::new(scanning, cells, Vec::new(), owned)?))
}

/// Decides which damage a unit records: the damage of a block is recorded by the unit in which the block
/// begins.
#[derive(Debug)]
struct Owned {
    lower: Vec<u8>,
    first: bool,
}

/// A decoded block, and the offset of its next cell.
#[derive(Clone, Debug, Default)]
struct Current {
    cells: Bytes,
    at: usize,
    piece: Option<Piece>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begin,
    Going,
    Done,
}

/// Why a pass over the current blocks ended.
enum Stop {
    /// The batch is full.
    Full,
    /// The current block of this file has no more cells.
    UsedUp(usize),
    /// A cell in the current block of this file cannot be parsed.
    Broken(usize, Error),
    /// The value of a cell, which is in a MOB file, is lost: the store file of the cell, and the reason.
    NoValue(usize, Error),
    /// There are no cells left.
    End,
}

impl From<Ended> for Stop {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::UsedUp(file) => Self::UsedUp(file),
            Ended::Broken(file, e) => Self::Broken(file, e),
        }
    }
}

/// Collects the visible cells.
enum Sink {
    Cells(Box<Columns>),
    Wide(Box<Wide>),
}

impl Sink {
    fn new(scanning: &Scanning) -> Result<Self> {
        Ok(match &scanning.wide {
            None => {
                let mut columns = Columns::new(scanning.columns.clone(), scanning.batch_rows)?;
                columns = columns.bounded(&scanning.limits);
                columns.reserve(&scanning.room.lock().unwrap_or_else(PoisonError::into_inner));
                Self::Cells(Box::new(columns))
            }
            Some(table) => {
                let how = (scanning.batch_rows, scanning.on_error, scanning.damage.clone());
                Self::Wide(Box::new(Wide::new(&scanning.columns, table, how)?.bounded(&scanning.limits)))
            }
        })
    }

    #[inline]
    fn is_full(&self, next: &Cell<'_>) -> bool {
        match self {
            Self::Cells(columns) => columns.is_full(),
            Self::Wide(wide) => wide.is_full(next),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Cells(columns) => columns.is_empty(),
            Self::Wide(wide) => wide.is_empty(),
        }
    }

    /// Prepares for a cell; `is_damaged` returns whether cells of a row are lost.
    #[inline]
    fn begin(&mut self, cell: &Cell<'_>, is_damaged: impl Fn(&[u8]) -> bool) -> Result<()> {
        match self {
            Self::Wide(wide) if wide.is_next_row(cell) => wide.begin(cell, is_damaged(cell.row)),
            _ => Ok(()),
        }
    }

    /// Adds a cell to `waiting`, so that it is taken together with other cells.
    #[inline]
    fn take_later<'a>(&mut self, cell: &Cell<'a>, waiting: &mut Vec<Cell<'a>>) -> Result<()> {
        match self {
            Self::Cells(columns) => columns.push_later(cell, waiting),
            Self::Wide(wide) => wide.take(cell, Some(cell.value)),
        }
    }

    /// Takes a cell whose parts do not live as long as the current blocks.
    fn take(&mut self, cell: &Cell<'_>) -> Result<()> {
        match self {
            Self::Cells(columns) => columns.push(cell),
            Self::Wide(wide) => wide.take(cell, Some(cell.value)),
        }
    }

    /// Takes the cells in `waiting`.
    fn take_waiting(&mut self, waiting: &mut Vec<Cell<'_>>) -> Result<()> {
        match self {
            Self::Cells(columns) => columns.append_waiting(waiting),
            Self::Wide(_) => Ok(()),
        }
    }

    /// Announces that the next cells lie in `block`.
    #[inline]
    fn enter(&mut self, block: &Bytes, waiting: &mut Vec<Cell<'_>>) -> Result<()> {
        match self {
            Self::Cells(columns) if columns.has_views() => {
                columns.append_waiting(waiting)?;
                columns.enter(block);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes a cell whose value is lost.
    fn without_value(&mut self, cell: &Cell<'_>) -> Result<()> {
        if let Self::Wide(wide) = self {
            wide.mark_incomplete();
            wide.take(cell, None)?;
        }
        Ok(())
    }

    /// Records that a block is lost, in which the current row may continue.
    fn enter_lost_block(&mut self, piece: &Piece, order: RowOrder) {
        if let Self::Wide(wide) = self
            && wide.row().is_some_and(|row| order.compare(row, &piece.first).is_ge())
        {
            wide.mark_incomplete();
        }
    }

    /// Returns the rows since the last batch. `more`: whether further rows may follow.
    fn finish(&mut self, more: bool) -> Result<RecordBatch> {
        match self {
            Self::Cells(columns) if more => columns.finish(),
            Self::Cells(columns) => columns.finish_last(),
            Self::Wide(wide) => wide.finish(),
        }
    }
}

struct Merge {
    scanning: Arc<Scanning>,
    blocks: Vec<Cells>,
    current: Vec<Current>,
    visibility: Visibility,
    columns: Sink,
    damaged: Vec<DamagedRows>,
    owned: Owned,
    state: State,
    /// Whether this unit has returned a batch.
    handed_out: bool,
}

impl Merge {
    fn new(
        scanning: Arc<Scanning>,
        blocks: Vec<Cells>,
        damaged: Vec<DamagedRows>,
        owned: Owned,
    ) -> Result<Self> {
        let columns = Sink::new(&scanning)?;
        let visibility = Visibility::new(scanning.rules.clone());
        let current = vec![Current::default(); blocks.len()];
        let (state, handed_out) = (State::Begin, false);
        Ok(Self { blocks, current, visibility, columns, damaged, owned, scanning, state, handed_out })
    }

    /// Merges the current blocks until one is used up or a batch is full.
    fn run(&mut self) -> Result<Stop> {
        let Self { blocks, current, visibility, columns, scanning, damaged, .. } = self;
        let order = scanning.order;
        // The blocks are kept here because cells refer to them while the current offsets change.
        let cells: Vec<Bytes> = current.iter().map(|c| c.cells.clone()).collect();
        let origins: Vec<Origin> = blocks.iter().map(|blocks| blocks.origin().clone()).collect();
        let mut heap = match MergeHeap::new(order, &origins, &cells, current.iter().map(|c| c.at)) {
            Ok(heap) => heap,
            Err(ended) => return Ok(ended.into()),
        };
        let all = !scanning.rules.hides();
        let checks_damage = !damaged.is_empty();
        let follows = visibility.can_follow() && !checks_damage;
        let mut before = None;
        let mut waiting = Vec::new();
        let stop = loop {
            let Some(top) = heap.top() else { break Stop::End };
            if columns.is_full(&top.cell) {
                break Stop::Full;
            }
            let (file, mut end, mut next) = (top.file, top.end, None);
            if let Some(run) = heap.run().filter(|_| follows && top.cell.tags.is_empty()) {
                columns.enter(run.block, &mut waiting)?;
                (end, next) = match columns {
                    Sink::Cells(columns) => {
                        let mut batched = BatchedColumns { columns: columns.as_mut(), waiting: &mut waiting };
                        visibility.follow(&run, &mut batched, &mut before)?
                    }
                    Sink::Wide(wide) => visibility.follow(&run, wide.as_mut(), &mut before)?,
                };
            } else {
                let Some(family) = heap.origin(top).map(|origin| origin.family) else { break Stop::End };
                let hidden = damaged.iter().any(|rows| rows.may_hide(&top.cell, family, all, order));
                let visible =
                    if hidden { Ok(false) } else { visibility.admits(&top.cell, family, &mut before) };
                let visible = match visible {
                    // Tags are parsed here for the first time.
                    Err(e) if Fault::is(&e) => break Stop::Broken(file, e),
                    visible => visible?,
                };
                if visible {
                    if let Some(block) = cells.get(file) {
                        columns.enter(block, &mut waiting)?;
                    }
                    columns.begin(&top.cell, |row| damaged.iter().any(|l| l.holds(row, order)))?;
                    if let Some(e) = take(scanning, columns, &mut waiting, &top.cell, family)? {
                        set_place(current, file, end);
                        heap.drop_top();
                        break Stop::NoValue(file, e);
                    }
                }
            }
            if let Err(ended) = heap.go_on(end, next) {
                set_place(current, file, end);
                break ended.into();
            }
        };
        columns.take_waiting(&mut waiting)?;
        for (file, at) in heap.places() {
            set_place(current, file, at);
        }
        visibility.settle(before.as_ref());
        Ok(stop)
    }

    /// Makes the next block of a file the current block.
    fn load(&mut self, file: usize) -> Result<()> {
        if let Some(current) = self.current.get_mut(file) {
            *current = Current::default();
        }
        while let Some(blocks) = self.blocks.get_mut(file) {
            match blocks.next() {
                Ok(None) => break,
                Ok(Some((cells, piece))) => {
                    if let Some(current) = self.current.get_mut(file) {
                        *current = Current { cells, at: 0, piece };
                    }
                    break;
                }
                Err(bad) => self.record_lost_block(file, bad.piece, bad.error)?,
            }
        }
        Ok(())
    }

    /// Abandons the rest of a file's current block.
    fn skip_block(&mut self, file: usize, e: Error) -> Result<()> {
        let piece = self.current.get_mut(file).and_then(|current| current.piece.take());
        let Some(piece) = piece else { return Err(e) };
        // All rows of the block are recorded as lost. Rows before the unreadable cell have already been
        // returned; they do not occur again.
        let e = e.at(piece.block.offset).within("data block");
        self.record_lost_block(file, piece, e)?;
        self.load(file)
    }

    /// Records a lost block, or fails under `raise`. Cells of its rows in other files may be outdated.
    fn record_lost_block(&mut self, file: usize, piece: Piece, e: Error) -> Result<()> {
        let Some(blocks) = self.blocks.get(file) else { return Err(e) };
        let (Some(from), family) = (blocks.file(), blocks.origin().family) else { return Err(e) };
        let order = self.scanning.order;
        let begins = piece.first.as_slice().max(from.lower.as_slice());
        let own = self.owned.first || order.compare(begins, &self.owned.lower).is_ge();
        let range = from.raw().range_of(piece.block);
        self.scanning.record_damage(from.named(e.at(range.start)), range, None, own)?;
        self.columns.enter_lost_block(&piece, order);
        let times = from.times();
        damaged_rows::add_block(&mut self.damaged, family, piece, times, order);
        Ok(())
    }

    /// Records that the value of the last cell is lost, or fails under `raise`.
    fn record_lost_value(&mut self, file: usize, e: Error) -> Result<()> {
        let (Some(blocks), Some(current)) = (self.blocks.get(file), self.current.get(file)) else {
            return Err(e);
        };
        let at = current.piece.as_ref().map_or(0, |piece| piece.block.offset);
        let path = blocks.file().map_or("", |from| from.path.as_str());
        self.scanning.record_damage(e.within(format!("store file {path}")), at..at, Some(1), true)?;
        // The cell may have been the last of its block.
        if current.at >= current.cells.len() { self.load(file) } else { Ok(()) }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.state == State::Begin {
            self.state = State::Going;
            for file in 0..self.blocks.len() {
                self.load(file)?;
            }
        }
        while self.state == State::Going {
            match self.run()? {
                Stop::Full => return self.finish(true).map(Some),
                Stop::UsedUp(file) => self.load(file)?,
                Stop::Broken(file, e) => self.skip_block(file, e)?,
                Stop::NoValue(file, e) => self.record_lost_value(file, e)?,
                Stop::End => self.state = State::Done,
            }
        }
        if self.columns.is_empty() { Ok(None) } else { self.finish(false).map(Some) }
    }

    /// Adds the cells that were skipped since the last batch to the counts.
    fn report_passed(&mut self) {
        let Passed { versions, times } = self.visibility.take_passed();
        let columns = match &mut self.columns {
            Sink::Cells(_) => 0,
            Sink::Wide(wide) => wide.take_passed(),
        };
        let counted =
            [(PassedOver::Versions, versions), (PassedOver::Times, times), (PassedOver::Columns, columns)];
        counted.into_iter().for_each(|(kind, more)| self.scanning.damage.pass_over(kind, more));
    }

    fn finish(&mut self, more: bool) -> Result<RecordBatch> {
        if let (Sink::Cells(columns), false) = (&self.columns, std::mem::replace(&mut self.handed_out, true))
        {
            *self.scanning.room.lock().unwrap_or_else(PoisonError::into_inner) = columns.room();
        }
        self.columns.finish(more)
    }
}

fn set_place(current: &mut [Current], file: usize, at: usize) {
    if let Some(state) = current.get_mut(file) {
        state.at = at;
    }
}

/// Appends a cell to `columns`. If its value is in a MOB file and is lost, returns the reason.
#[inline]
fn take<'a>(
    scanning: &Scanning,
    columns: &mut Sink,
    waiting: &mut Vec<Cell<'a>>,
    cell: &Cell<'a>,
    family: usize,
) -> Result<Option<Error>> {
    match value_of(scanning, cell, family) {
        Ok(None) => columns.take_later(cell, waiting).map(|()| None),
        Ok(Some(value)) => {
            columns.take_waiting(waiting)?;
            columns.take(&Cell { value: &value, ..*cell }).map(|()| None)
        }
        Err(e) if Fault::is(&e) => columns.without_value(cell).map(|()| Some(e)),
        Err(e) => Err(e),
    }
}

/// The value of a cell, if it is in a MOB file.
fn value_of(scanning: &Scanning, cell: &Cell<'_>, family: usize) -> Result<Option<Bytes>> {
    let Some(table) = mob::reference(cell)? else { return Ok(None) };
    let family = scanning.families.get(family).map_or("", |f| f.name.as_str());
    scanning.mob.value(cell, table, family).map(Some)
}

impl Iterator for Merge {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Done && self.columns.is_empty() {
            return None;
        }
        let batch = self.next_batch().map_err(|e| self.scanning.on_error.weigh(e)).transpose();
        if !matches!(batch, Some(Ok(_))) {
            self.state = State::Done;
        }
        self.report_passed();
        batch
    }
}
