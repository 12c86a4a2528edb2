//! From row groups to batches.

pub mod assemble;
pub mod decode;
pub mod leaf;
pub mod plan;
pub mod survey;

use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::{DamageLog, Error, OnError, PlanRequest, Result};

use crate::open::RawFile;
use crate::schema::Node;

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
        let mut columns = Vec::new();
        for wanted in request.decode.fields() {
            let node = file.schema.fields.iter().find(|n| n.name == *wanted.name());
            let node = node.ok_or_else(|| Error::schema(format!("no column `{}`", wanted.name())))?;
            columns.push(node.prune(wanted)?);
        }
        Ok(Self {
            file,
            columns,
            schema: request.decode.clone(),
            batch_rows: request.scan.batch_rows,
            on_error: request.scan.on_error,
            damage: request.damage.clone(),
        })
    }

    /// The places of the leaves to fetch, in the order of their bytes.
    pub(crate) fn wanted(&self) -> Vec<usize> {
        let mut places = Vec::new();
        self.columns.iter().for_each(|c| c.leaf_places(&mut places));
        places
    }
}
