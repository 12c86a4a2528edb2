//! The filter's columns of a block first; of the others, the cells that pass.
//!
//! ```text
//! cells of a block    | c | c | c | c | c | c |     places in the block
//! filter's columns    | v | v | v | v | v | v |     copied and compared
//! passes                    x           x
//! all columns             | v |       | v |         copied
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use coldframe_core::{BatchIter, DecodeUnit, ErrorContext, PlanRequest, Result, Scouting};

use crate::layout::cell::CellRef;
use crate::scan::columns::Columns;
use crate::scan::decode::{Blocks, DecodeRun};

/// A scout looks at all of a cell's columns where more than one cell of so many passes.
const FEW: usize = 4;

/// What the scouts of all runs share.
#[derive(Debug)]
pub(crate) struct Scout {
    scouting: Scouting,
    /// The filter's columns.
    schema: SchemaRef,
    /// Whether most cells of a block passed.
    futile: AtomicBool,
}

impl Scout {
    /// For a filtered scan; nothing where the filter takes all of its columns, or none.
    pub(crate) fn new(request: &PlanRequest) -> Result<Option<Self>> {
        let Some(scouting) = Scouting::new(request) else { return Ok(None) };
        let Some(of_filter) = scouting.columns(&request.decode)? else { return Ok(None) };
        let fields = request.decode.fields().iter().zip(&of_filter).filter(|(_, wanted)| **wanted);
        let schema = Arc::new(Schema::new(fields.map(|(field, _)| field.clone()).collect::<Vec<_>>()));
        Ok(Some(Self { scouting, schema, futile: AtomicBool::new(false) }))
    }

    /// Whether it is worth it to look.
    fn is_useful(&self) -> bool {
        !self.futile.load(Ordering::Relaxed)
    }
}

/// A run of blocks, of whose cells those that pass are decoded.
pub(crate) struct ScoutRun {
    pub(crate) scout: Arc<Scout>,
    pub(crate) all: DecodeRun,
}

impl DecodeUnit for ScoutRun {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let Self { scout, all } = *self;
        if !scout.is_useful() {
            return Box::new(all).decode(bytes);
        }
        let DecodeRun(mut blocks) = all;
        let (of_filter, columns) = (blocks.columns(scout.schema.clone())?, blocks.all_columns()?);
        blocks.set_bytes(bytes);
        let (plain, passing) = (Bytes::new(), Vec::new());
        Ok(Box::new(Scouted { scout, blocks, of_filter, columns, plain, passing, taken: 0, done: false }))
    }
}

/// The batches of a run's cells that pass.
struct Scouted {
    scout: Arc<Scout>,
    blocks: Blocks,
    of_filter: Columns,
    columns: Columns,
    /// The block that was read last, and its cells that pass and are not handed out.
    plain: Bytes,
    passing: Vec<CellRef>,
    taken: usize,
    done: bool,
}

impl Scouted {
    /// Reads the next block and leaves its cells that pass; `false` if there is none.
    fn look(&mut self) -> Result<bool> {
        let Some(plain) = self.blocks.next_block()? else { return Ok(false) };
        let cells = &self.blocks.cells;
        self.passing.clear();
        self.taken = 0;
        let within = self.of_filter.check(&plain, cells);
        within.at(self.blocks.offset).within(|| "data block")?;
        let mut at = 0;
        while let Some(rest) = cells.get(at..).filter(|rest| !rest.is_empty()) {
            let some = self.of_filter.append(&plain, rest)?;
            let batch = self.of_filter.finish()?;
            let passes = self.scout.scouting.passing(&batch)?;
            self.passing.extend(passes.set_indices().filter_map(|place| rest.get(place)).copied());
            at += some;
        }
        if self.passing.len() > cells.len() / FEW {
            self.scout.futile.store(true, Ordering::Relaxed);
        }
        self.columns.check(&plain, &self.passing).at(self.blocks.offset).within(|| "data block")?;
        self.plain = plain;
        Ok(true)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            while let Some(rest) = self.passing.get(self.taken..).filter(|rest| !rest.is_empty()) {
                self.taken += self.columns.append(&self.plain, rest)?;
                if self.columns.is_full() {
                    return self.columns.finish().map(Some);
                }
            }
            if !self.look()? {
                return if self.columns.is_empty() { Ok(None) } else { self.columns.finish().map(Some) };
            }
        }
    }
}

impl Iterator for Scouted {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let batch = self.next_batch().transpose();
        self.done = !matches!(batch, Some(Ok(_)));
        batch
    }
}
