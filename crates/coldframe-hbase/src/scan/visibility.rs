//! Decides which cells are visible. This depends on the view and on the families.

use coldframe_core::Result;
use coldframe_hfile::{Cell, Columns, Coordinates, Passed, Policy, Step, Tags, Visibility as CellVisibility};

use super::merge_heap::Run;
use super::new_versions::NewVersions;
use super::pivot::Wide;
use crate::layout::policy::Family;
use crate::options::{Options, View};

/// The tag with a cell's time to live, in milliseconds.
const TTL_TAG: u8 = 8;

/// Collects visible cells, which live for `'a`.
pub(super) trait Collect<'a> {
    /// Whether the batch must be finished before a cell is taken.
    fn is_full(&self, next: &Cell<'_>) -> bool;

    /// Takes a cell that has its value and whose row has not lost any cells.
    fn collect(&mut self, cell: &Cell<'a>) -> Result<()>;
}

/// Columns to which several cells are appended at a time.
pub(super) struct BatchedColumns<'c, 'a> {
    pub(super) columns: &'c mut Columns,
    pub(super) waiting: &'c mut Vec<Cell<'a>>,
}

impl<'a> Collect<'a> for BatchedColumns<'_, 'a> {
    #[inline(always)]
    fn is_full(&self, _: &Cell<'_>) -> bool {
        self.columns.is_full()
    }

    #[inline(always)]
    fn collect(&mut self, cell: &Cell<'a>) -> Result<()> {
        self.columns.push_later(cell, self.waiting)
    }
}

impl<'a> Collect<'a> for Wide {
    #[inline]
    fn is_full(&self, next: &Cell<'_>) -> bool {
        Self::is_full(self, next)
    }

    #[inline]
    fn collect(&mut self, cell: &Cell<'a>) -> Result<()> {
        if self.is_next_row(cell) {
            self.begin(cell, false)?;
        }
        self.take(cell, Some(cell.value))
    }
}

/// The visibility rules of a scan.
#[derive(Clone, Debug)]
pub(crate) struct VisibilityRules {
    pub(crate) view: View,
    pub(crate) now: i64,
    /// The policy of each family.
    policies: Vec<Policy>,
    /// For families with `NEW_VERSION_BEHAVIOR`, how many versions they keep.
    new_versions: Vec<Option<u32>>,
}

impl VisibilityRules {
    pub(crate) fn new(options: &Options, families: &[Family]) -> Self {
        let policy = |f: &Family| {
            let policy = f.policy(options.versions, options.time_range, options.now);
            // The view `raw` returns everything that is stored, however many versions the family keeps.
            let versions = if options.view == View::Raw { options.versions } else { policy.versions };
            Policy { versions, ..policy }
        };
        Self {
            view: options.view,
            now: options.now,
            policies: families.iter().map(policy).collect(),
            new_versions: families.iter().map(|f| f.new_versions.then_some(f.versions)).collect(),
        }
    }

    /// Whether lost cells may have hidden other cells.
    pub(crate) fn hides(&self) -> bool {
        self.view != View::Raw
    }
}

/// Decides which cells of a merge are visible; it must see them in order.
#[derive(Debug)]
pub(crate) struct Visibility {
    rules: VisibilityRules,
    visible: CellVisibility,
    new_versions: Option<NewVersions>,
}

impl Visibility {
    pub(crate) fn new(rules: VisibilityRules) -> Self {
        let new_versions = rules.new_versions.iter().any(Option::is_some).then(NewVersions::default);
        Self { rules, visible: CellVisibility::default(), new_versions }
    }

    /// Whether a cell of a family is visible. `before`: the previous cell, if its block is still in memory.
    #[inline]
    pub(crate) fn admits<'a>(
        &mut self,
        cell: &Cell<'a>,
        family: usize,
        before: &mut Option<Coordinates<'a>>,
    ) -> Result<bool> {
        if !cell.tags.is_empty() && self.has_expired(cell)? {
            return Ok(false);
        }
        let Some(policy) = self.rules.policies.get(family) else { return Ok(false) };
        if self.rules.view != View::Raw
            && let Some(state) = &mut self.new_versions
            && let Some(Some(kept)) = self.rules.new_versions.get(family)
        {
            return state.admits(cell, *kept, policy);
        }
        let step = match before.replace(cell.coordinates()) {
            Some(before) => Step::between(&before, cell),
            None => self.visible.step(cell),
        };
        is_visible(&mut self.visible, &self.rules, step, cell, policy)
    }

    /// Passes the visible cells of a run, or of its beginning, to `sink`; returns the offset at which it
    /// stopped, and the cell there if it was read.
    pub(super) fn follow<'a>(
        &mut self,
        run: &Run<'a>,
        sink: &mut impl Collect<'a>,
        before: &mut Option<Coordinates<'a>>,
    ) -> Result<(usize, Option<(Cell<'a>, usize)>)> {
        let Some(policy) = self.rules.policies.get(run.origin.family) else { return Ok((run.end, None)) };
        let (mut cell, mut end) = (run.cell, run.end);
        let mut step = match before {
            Some(before) => Step::between(before, &cell),
            None => self.visible.step(&cell),
        };
        loop {
            if is_visible(&mut self.visible, &self.rules, step, &cell, policy)? {
                sink.collect(&cell)?;
            }
            let last = cell.coordinates();
            let Some((next, next_end)) = run.cell(end) else {
                *before = Some(last);
                return Ok((end, None));
            };
            step = Step::between(&last, &next);
            if sink.is_full(&next)
                || !next.tags.is_empty()
                || (step == Step::Row && run.ends_before(next.row))
            {
                *before = Some(last);
                return Ok((end, Some((next, next_end))));
            }
            (cell, end) = (next, next_end);
        }
    }

    /// Whether runs may be [followed](Self::follow).
    pub(super) fn can_follow(&self) -> bool {
        self.new_versions.is_none()
    }

    /// Copies the coordinates of the last cell before its block is freed: the next cell is compared with them.
    pub(super) fn settle(&mut self, last: Option<&Coordinates<'_>>) {
        if let Some(last) = last {
            self.visible.settle(last);
        }
    }

    /// The number of skipped cells since the last call.
    pub(super) fn take_passed(&mut self) -> Passed {
        let new_versions = self.new_versions.as_mut().map(NewVersions::take_passed).unwrap_or_default();
        let Passed { versions, times } = self.visible.take_passed();
        Passed { versions: versions + new_versions.versions, times: times + new_versions.times }
    }

    /// Whether the cell's own time to live is over.
    fn has_expired(&self, cell: &Cell<'_>) -> Result<bool> {
        let mut tags = Tags::new(cell.tags);
        while let Some((kind, value)) = tags.next_tag()? {
            if let (TTL_TAG, Ok(ttl)) = (kind, value.try_into()) {
                let end = cell.timestamp.saturating_add(i64::from_be_bytes(ttl));
                return Ok(end < self.rules.now);
            }
        }
        Ok(false)
    }
}

/// Whether a cell is visible. `step`: how the cell differs from the previous cell.
#[inline(always)]
fn is_visible(
    visible: &mut CellVisibility,
    rules: &VisibilityRules,
    step: Step,
    cell: &Cell<'_>,
    policy: &Policy,
) -> Result<bool> {
    if rules.view == View::Raw {
        return Ok(visible.admits_raw(step, cell, policy));
    }
    visible.admits_next(step, cell, policy)
}
