//! Reads row groups and returns batches.

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

/// The context of a scan, shared by its row groups.
#[derive(Clone, Debug)]
pub(crate) struct ScanContext {
    /// The file.
    pub(crate) file: Arc<RawFile>,
    /// The requested columns, with only their requested parts.
    pub(crate) columns: Vec<Node>,
    /// The columns in Arrow.
    pub(crate) schema: SchemaRef,
    /// Maximum rows of a batch.
    pub(crate) batch_rows: usize,
    /// What to do about damage.
    pub(crate) on_error: OnError,
    /// Where damage is recorded.
    pub(crate) damage: DamageLog,
}

impl ScanContext {
    /// Creates the context for the columns that a request decodes.
    pub(crate) fn new(file: Arc<RawFile>, request: &PlanRequest) -> Result<Self> {
        // Both lists are in the order of the file, so one pass over both is enough, whatever their number and
        // even if columns have the same name.
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

    /// The leaves to fetch, in the order of their bytes: their indexes, and the types that they become.
    pub(crate) fn wanted(&self) -> Vec<(usize, &DataType)> {
        let mut leaves = Vec::new();
        self.columns.iter().for_each(|c| c.typed_leaves(&mut leaves));
        leaves
    }
}
