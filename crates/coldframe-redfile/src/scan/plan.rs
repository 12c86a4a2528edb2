//! The row groups of a split: all row groups that begin in it. RED1 has no statistics, so no row group is
//! pruned.

use std::collections::VecDeque;
use std::sync::Arc;

use coldframe_core::format::Fetch;
use coldframe_core::{DecodeUnit, Divided, Plan, Result, Unit};

use super::ScanContext;
use super::decode::DecodeGroup;
use super::scout::ScoutGroup;
use crate::open::groups::Group;

/// Yields row groups.
pub(crate) struct GroupPlan {
    scan: Arc<ScanContext>,
    /// How a filtered scan divides the columns: it decodes the filter's columns first.
    divided: Option<Arc<Divided>>,
    groups: VecDeque<Arc<Group>>,
}

impl GroupPlan {
    /// Creates a plan of `groups`.
    pub(crate) fn new(scan: ScanContext, divided: Option<Divided>, groups: VecDeque<Arc<Group>>) -> Self {
        Self { scan: Arc::new(scan), divided: divided.map(Arc::new), groups }
    }
}

impl Plan for GroupPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        let Some(group) = self.groups.pop_front() else { return Ok(None) };
        let mut fetch = Vec::new();
        for chunk in self.scan.wanted().into_iter().filter_map(|(i, _)| group.chunks.get(i)) {
            let Some(source) = self.scan.file.parts.get(chunk.source).map(|p| &p.source) else { continue };
            // A truncated file may have the start of a chunk or nothing of it; the loss is detected from the
            // chunk's pages. A chunk without metadata is not read.
            let end = if chunk.metadata.is_ok() { chunk.range.end.min(source.len()) } else { 0 };
            let range = chunk.range.start.min(end)..end;
            fetch.push(Fetch { source: source.clone(), range });
        }
        let (bytes, rows) = (group.start..group.end.max(group.start), Some(group.rows));
        let structure = group.name();
        let all = DecodeGroup { scan: self.scan.clone(), group };
        let decode: Box<dyn DecodeUnit> = match &self.divided {
            Some(columns) => Box::new(ScoutGroup { columns: columns.clone(), all }),
            None => Box::new(all),
        };
        Ok(Some(Unit { fetch, bytes, rows, structure, decode }))
    }
}
