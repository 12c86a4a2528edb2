//! Which cells a reader of a table sees, by the view and by what the families say.

use coldframe_core::Result;
use coldframe_hfile::{Cell, Policy, Tags, Visibility};

use super::new_versions::NewVersions;
use crate::layout::policy::Family;
use crate::options::{Options, View};

/// The tag that says how long a cell lives, in milliseconds.
const TTL_TAG: u8 = 8;

/// What is asked of all cells.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) view: View,
    pub(crate) time_range: Option<(i64, i64)>,
    pub(crate) now: i64,
    /// For each family what is seen of it.
    policies: Vec<Policy>,
    /// Which of them go by the order of writing (`NEW_VERSION_BEHAVIOR`), and how many versions they keep.
    by_writing: Vec<Option<u32>>,
}

impl Asked {
    pub(crate) fn new(options: &Options, families: &[Family]) -> Self {
        let policy = |f: &Family| f.policy(options.versions, options.time_range, options.now);
        Self {
            view: options.view,
            time_range: options.time_range,
            now: options.now,
            policies: families.iter().map(policy).collect(),
            by_writing: families.iter().map(|f| f.new_versions.then_some(f.versions)).collect(),
        }
    }

    /// Whether what is lost may have hidden what is left.
    pub(crate) fn hides(&self) -> bool {
        self.view != View::Raw
    }
}

/// Follows the cells of a merge.
#[derive(Debug)]
pub(crate) struct Sight {
    asked: Asked,
    visible: Visibility,
    by_writing: Option<NewVersions>,
}

impl Sight {
    pub(crate) fn new(asked: Asked) -> Self {
        let by_writing = asked.by_writing.iter().any(Option::is_some).then(NewVersions::default);
        Self { asked, visible: Visibility::default(), by_writing }
    }

    /// Whether a cell of a family is seen.
    #[inline]
    pub(crate) fn admits(&mut self, cell: &Cell<'_>, family: usize) -> Result<bool> {
        if !cell.tags.is_empty() && self.has_expired(cell)? {
            return Ok(false);
        }
        if self.asked.view == View::Raw {
            let outside = |(from, to): (i64, i64)| cell.timestamp < from || cell.timestamp >= to;
            return Ok(!self.asked.time_range.is_some_and(outside) && self.visible.is_new(cell));
        }
        let Some(policy) = self.asked.policies.get(family) else { return Ok(false) };
        if let Some(state) = &mut self.by_writing
            && let Some(Some(kept)) = self.asked.by_writing.get(family)
        {
            return state.admits(cell, *kept, policy);
        }
        self.visible.admits(cell, policy)
    }

    /// Whether the cell's own time to live is over.
    fn has_expired(&self, cell: &Cell<'_>) -> Result<bool> {
        let mut tags = Tags::new(cell.tags);
        while let Some((kind, value)) = tags.next_tag()? {
            if let (TTL_TAG, Ok(ttl)) = (kind, value.try_into()) {
                let end = cell.timestamp.saturating_add(i64::from_be_bytes(ttl));
                return Ok(end < self.asked.now);
            }
        }
        Ok(false)
    }
}
