//! From row groups to batches.

pub(crate) mod assemble;
pub(crate) mod decode;
pub(crate) mod leaf;
pub(crate) mod plan;
pub(crate) mod scout;
pub(crate) mod survey;

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use coldframe_core::{DamageLog, OnError, PlanRequest, Result};

use crate::open::RawFile;
use crate::schema::{Node, prune_all};

/// What all row groups of a scan have in common.
#[derive(Debug)]
pub(crate) struct ScanContext {
    /// The file.
    pub(crate) file: Arc<RawFile>,
    /// The wanted columns, with only their wanted parts.
    pub(crate) columns: Vec<Node>,
    /// The columns in Arrow.
    pub(crate) schema: SchemaRef,
    /// Most rows of a batch.
    pub(crate) batch_rows: usize,
    /// What to do about damage.
    pub(crate) on_error: OnError,
    /// Where it is recorded.
    pub(crate) damage: DamageLog,
}

impl ScanContext {
    /// For the columns that a request decodes.
    pub(crate) fn new(file: Arc<RawFile>, request: &PlanRequest) -> Result<Self> {
        // Both stand in the order of the file: one walk over both, whatever their number, and whatever names they share.
        let columns = prune_all(&file.schema.fields, request.decode.fields())?;
        Ok(Self {
            file,
            columns,
            schema: request.decode.clone(),
            batch_rows: request.scan.batch_rows,
            on_error: request.scan.on_error,
            damage: request.damage.clone(),
        })
    }

    /// The leaves to fetch, in the order of their bytes: their places, and what they become.
    pub(crate) fn wanted(&self) -> Vec<(usize, &DataType)> {
        let mut leaves = Vec::new();
        self.columns.iter().for_each(|c| c.typed_leaves(&mut leaves));
        leaves
    }
}
