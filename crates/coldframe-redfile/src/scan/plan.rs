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
        let mut fetch = self.scan.fetch(&group);
        let window = window(&fetch, self.scan.file.options.limits.memory_limit);
        if window.is_some() {
            fetch.iter_mut().for_each(|part| part.range.end = part.range.start);
        }
        let (bytes, rows) = (group.start..group.end.max(group.start), Some(group.rows));
        let structure = group.name();
        let all = DecodeGroup { scan: self.scan.clone(), group, window };
        let decode: Box<dyn DecodeUnit> = match &self.divided {
            Some(columns) => Box::new(ScoutGroup { columns: columns.clone(), all }),
            None => Box::new(all),
        };
        Ok(Some(Unit { fetch, bytes, rows, structure, decode }))
    }
}

/// A group of which more than this part of the read's memory is fetched is read in windows instead.
const FETCHED_SHARE: u64 = 4;

/// How many bytes of each chunk are read at once, if all of them together take too much memory.
fn window(fetch: &[Fetch], memory: u64) -> Option<u64> {
    const SHORTEST: u64 = 256 << 10;
    const LONGEST: u64 = 16 << 20;
    let most = memory / FETCHED_SHARE;
    let stored = fetch.iter().fold(0u64, |sum, part| sum.saturating_add(part.range.end - part.range.start));
    let each = most / (fetch.len() as u64).max(1);
    (stored > most).then(|| each.clamp(SHORTEST, LONGEST))
}
