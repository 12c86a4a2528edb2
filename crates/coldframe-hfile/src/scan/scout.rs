//! Decodes the filter's columns of a block first, then all columns of the cells that pass.
//!
//! ```text
//! cells of a block    | c | c | c | c | c | c |     decompressed once
//! filter's columns    | v | v | v | v | v | v |     decoded and compared
//! cells that pass           x           x
//! all columns             | v |       | v |         decoded once more; passing cells are copied
//! ```
//!
//! In most blocks no cell passes. In the other blocks, decoding a second time costs less than storing the
//! offsets of all cells.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use coldframe_core::{BatchIter, DecodeUnit, PlanRequest, Result, Scouting};

use crate::scan::columns::Columns;
use crate::scan::decode::{Batches, Blocks, DecodeRun};

/// If more than one cell in `FUTILE_SHARE` passes in a block, the scan from then on decodes all columns at
/// once.
const FUTILE_SHARE: usize = 4;

/// The state that all runs of a scan share.
#[derive(Debug)]
pub(crate) struct Scout {
    scouting: Scouting,
    /// The filter's columns.
    schema: SchemaRef,
    /// Whether the number of passing cells of a block was so large that decoding the filter's columns first
    /// costs more than it saves.
    futile: AtomicBool,
}

impl Scout {
    /// The scout for a filtered scan; `None` if the filter reads all of the scan's columns, or none.
    pub(crate) fn new(request: &PlanRequest) -> Result<Option<Self>> {
        let Some(scouting) = Scouting::new(request) else { return Ok(None) };
        let Some(of_filter) = scouting.columns(&request.decode)? else { return Ok(None) };
        let fields = request.decode.fields().iter().zip(&of_filter).filter(|(_, wanted)| **wanted);
        let schema = Arc::new(Schema::new(fields.map(|(field, _)| field.clone()).collect::<Vec<_>>()));
        Ok(Some(Self { scouting, schema, futile: AtomicBool::new(false) }))
    }

    /// Whether decoding the filter's columns first saves time.
    fn is_useful(&self) -> bool {
        !self.futile.load(Ordering::Relaxed)
    }
}

/// A run of blocks. Only cells that pass the filter are decoded in full.
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
            if passing > cells / FUTILE_SHARE {
                scout.futile.store(true, Ordering::Relaxed);
            }
            Ok(true)
        };
        Ok(Box::new(Batches::new(blocks, fill)?))
    }
}
