//! Reads row groups and returns batches.

pub(crate) mod assemble;
pub(crate) mod decode;
pub(crate) mod leaf;
pub(crate) mod plan;
pub(crate) mod scout;
pub(crate) mod survey;

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use coldframe_core::format::Fetch;
use coldframe_core::{DamageLog, OnError, PlanRequest, Result};

use crate::open::RawFile;
use crate::open::groups::Group;
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

    /// The bytes of the wanted chunks of a row group.
    pub(crate) fn fetch(&self, group: &Group) -> Vec<Fetch> {
        let mut fetch = Vec::new();
        for chunk in self.wanted().into_iter().filter_map(|(i, _)| group.chunks.get(i)) {
            let Some(source) = self.file.parts.get(chunk.source).map(|p| &p.source) else { continue };
            // A truncated file may have the start of a chunk or nothing of it; the loss is detected from the
            // chunk's pages. A chunk without metadata is not read.
            let end = if chunk.metadata.is_ok() { chunk.range.end.min(source.len()) } else { 0 };
            let range = chunk.range.start.min(end)..end;
            fetch.push(Fetch { source: source.clone(), range });
        }
        fetch
    }

    /// The leaves to fetch, in the order of their bytes: their indexes, and the types that they become.
    pub(crate) fn wanted(&self) -> Vec<(usize, &DataType)> {
        let mut leaves = Vec::new();
        self.columns.iter().for_each(|c| c.typed_leaves(&mut leaves));
        leaves
    }
}
