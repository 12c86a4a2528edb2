//! The filter's columns of a block first; of the others, the cells that pass.
//!
//! ```text
//! cells of a block    | c | c | c | c | c | c |     decompressed once
//! filter's columns    | v | v | v | v | v | v |     decoded and compared
//! passes                    x           x
//! all columns             | v |       | v |         decoded once more, those that pass copied
//! ```
//!
//! In most blocks no cell passes. In the others, decoding once more costs less than keeping the places of all cells would.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use coldframe_core::{BatchIter, DecodeUnit, PlanRequest, Result, Scouting};

use crate::scan::columns::Columns;
use crate::scan::decode::{Batches, Blocks, DecodeRun};

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
        blocks.set_bytes(bytes);
        let mut of_filter = blocks.columns(scout.schema.clone())?;
        let fill = move |blocks: &mut Blocks, columns: &mut Columns| {
            if !scout.is_useful() {
                return blocks.next_into(columns);
            }
            let test = |batch: &RecordBatch| scout.scouting.passing(batch);
            let Some((cells, passing)) = blocks.next_passing(&mut of_filter, columns, test)? else {
                return Ok(false);
            };
            if passing > cells / FEW {
                scout.futile.store(true, Ordering::Relaxed);
            }
            Ok(true)
        };
        Ok(Box::new(Batches::new(blocks, fill)?))
    }
}
