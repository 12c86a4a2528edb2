//! Determines which regions are live. That a folder exists does not prove that its region is live.
//!
//! ```text
//! after a split     parent |----------|  id 1        after a merge   parents |----|-----|  ids 1, 2
//!                daughters |----|-----|  id 2                         merged |----------|  id 3
//! ```
//!
//! The folders of parents remain until nothing refers to them and HBase has cleaned them up. A region that
//! replaces other regions always has a greater id, so a region is dead if one with a greater id overlaps it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use coldframe_core::{Error, Result};

use crate::layout::names::TableName;
use crate::layout::proto::{FamilyFiles, RegionInfo};
use crate::regions::unopened::FilesOfFamilies;

/// The folder in which a cloned table has its MOB files. This folder is not a region.
const MOB: &[u8] = b".mob";

/// A region.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// The encoded name of the region, which is the name of its folder.
    pub(crate) encoded: String,
    /// The region's creation time, which is its id.
    pub(crate) id: u64,
    /// The region's first row.
    pub(crate) start: Vec<u8>,
    /// The end of the region's rows, excluded; empty for the last region.
    pub(crate) end: Vec<u8>,
    /// The region's files, if a snapshot lists them; otherwise the files in the region's folder.
    pub(crate) listed: Option<Vec<FamilyFiles>>,
    /// The region's files by family, if another process has listed them already.
    pub(crate) known: Option<Arc<FilesOfFamilies>>,
}

impl Region {
    /// The region that a message describes; `None` if the region has no rows of its own.
    pub(crate) fn of(encoded: &str, info: RegionInfo, table: &TableName) -> Result<Option<Self>> {
        let (start, end) = (info.start_key.unwrap_or_default(), info.end_key.unwrap_or_default());
        if info.region_id == 0 && start == MOB {
            return Ok(None);
        }
        let named = TableName::of(&info.table_name)?;
        if named != *table {
            return Err(Error::corrupt(format!("expected a region of {table}, found one of {named}")));
        }
        if !end.is_empty() && start >= end {
            let (start, end) = (start.escape_ascii(), end.escape_ascii());
            return Err(Error::corrupt(format!("expected a range of rows, found \"{start}\" to \"{end}\"")));
        }
        let encoded = encoded.to_owned();
        Ok(Some(Self { encoded, id: info.region_id, start, end, listed: None, known: None }))
    }

    /// A single region with all rows.
    pub(crate) fn whole(encoded: &str) -> Self {
        let (start, end) = (Vec::new(), Vec::new());
        Self { encoded: encoded.to_owned(), id: 0, start, end, listed: None, known: None }
    }

    /// Whether a description states the region's rows.
    pub(crate) fn is_described(&self) -> bool {
        self.id != 0
    }

    /// The end of the region's rows, excluded; `None` for the last region.
    pub(crate) fn upper(&self) -> Option<&[u8]> {
        Some(self.end.as_slice()).filter(|end| !end.is_empty())
    }

    /// Whether this region and another have rows in common.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let before = |end: Option<&[u8]>, start: &[u8]| end.is_some_and(|end| end <= start);
        !before(self.upper(), &other.start) && !before(other.upper(), &self.start)
    }

    /// The region's name and rows, for messages.
    pub(crate) fn describe(&self) -> String {
        let Self { encoded, start, end, .. } = self;
        format!("region {encoded} [\"{}\", \"{}\")", start.escape_ascii(), end.escape_ascii())
    }
}

/// Disjoint ranges of rows: the start of each range, and its end if the range is bounded.
#[derive(Debug, Default)]
struct Covered(BTreeMap<Vec<u8>, Option<Vec<u8>>>);

impl Covered {
    fn overlaps(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        let mut last_before = match end {
            Some(end) => self.0.range::<[u8], _>((Unbounded, Excluded(end))),
            None => self.0.range::<[u8], _>(..),
        };
        let last = last_before.next_back();
        last.is_some_and(|(_, to)| to.as_deref().is_none_or(|to| to > start))
    }

    fn add(&mut self, start: &[u8], end: Option<&[u8]>) {
        let (mut from, mut to) = (start.to_vec(), end.map(<[u8]>::to_vec));
        while let Some((at, held)) = self.touching(&from, to.as_deref()) {
            self.0.remove(&at);
            from = from.min(at);
            to = match (to, held) {
                (Some(a), Some(b)) => Some(a.max(b)),
                _ => None,
            };
        }
        self.0.insert(from, to);
    }

    /// A range in the set that has a row in common with the given range, or that touches one of its ends.
    fn touching(&self, start: &[u8], end: Option<&[u8]>) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let last = match end {
            Some(end) => self.0.range::<[u8], _>((Unbounded, Included(end))).next_back(),
            None => self.0.iter().next_back(),
        };
        let (at, to) = last.filter(|(_, to)| to.as_deref().is_none_or(|to| to >= start))?;
        Some((at.clone(), to.clone()))
    }
}

/// The regions that no region with a greater id overlaps, sorted by row.
pub(crate) fn youngest(mut regions: Vec<Region>) -> Vec<Region> {
    regions.sort_by_key(|region| Reverse(region.id));
    let mut covered = Covered::default();
    let mut alive = Vec::with_capacity(regions.len());
    for same in regions.chunk_by(|a, b| a.id == b.id) {
        let free = same.iter().filter(|r| !covered.overlaps(&r.start, r.upper()));
        alive.extend(free.cloned());
        same.iter().for_each(|r| covered.add(&r.start, r.upper()));
    }
    alive.sort_by(|a, b| a.start.cmp(&b.start).then_with(|| a.encoded.cmp(&b.encoded)));
    alive
}

/// A range of rows for which there is no region: its first row, and its end (excluded).
pub(crate) type Hole = (Vec<u8>, Option<Vec<u8>>);

/// The rows for which there is no region. `regions` must be sorted by row.
pub(crate) fn holes(regions: &[Region]) -> Vec<Hole> {
    let mut holes = Vec::new();
    // The end of the rows covered so far; `None` at the end of the table.
    let mut at: Option<&[u8]> = Some(&[]);
    for region in regions {
        let Some(reached) = at else { break };
        if region.start.as_slice() > reached {
            holes.push((reached.to_vec(), Some(region.start.clone())));
        }
        at = region.upper().map(|end| end.max(reached));
    }
    if let Some(reached) = at {
        holes.push((reached.to_vec(), None));
    }
    holes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(encoded: &str, id: u64, start: &str, end: &str) -> Region {
        Region { id, start: start.into(), end: end.into(), ..Region::whole(encoded) }
    }

    fn names(regions: &[Region]) -> Vec<&str> {
        regions.iter().map(|r| r.encoded.as_str()).collect()
    }

    #[test]
    fn newer_regions_replace_older_regions() {
        let all = vec![
            region("parent", 1, "", ""),
            region("left", 2, "", "m"),
            region("right", 2, "m", ""),
            region("right-left", 3, "m", "t"),
            region("right-right", 3, "t", ""),
        ];
        assert_eq!(names(&youngest(all.clone())), ["left", "right-left", "right-right"]);
        let merged = [all, vec![region("merged", 4, "", "t")]].concat();
        let alive = youngest(merged);
        assert_eq!(names(&alive), ["merged", "right-right"]);
        assert!(holes(&alive).is_empty());
    }

    #[test]
    fn holes_are_rows_without_a_region() {
        let some = [region("a", 1, "b", "f"), region("b", 1, "f", "k"), region("c", 1, "m", "p")];
        let hole = |from: &str, to: &str| (from.as_bytes().to_vec(), Some(to.as_bytes().to_vec()));
        assert_eq!(holes(&some), [hole("", "b"), hole("k", "m"), (b"p".to_vec(), None)]);
        assert!(holes(&[region("a", 1, "", "")]).is_empty());
        assert_eq!(holes(&[]), [(Vec::new(), None)]);
    }

    #[test]
    fn adjacent_ranges_become_one() {
        let mut covered = Covered::default();
        covered.add(b"d", Some(b"f"));
        covered.add(b"a", Some(b"b"));
        assert!(!covered.overlaps(b"b", Some(b"d")) && covered.overlaps(b"b", Some(b"e")));
        covered.add(b"b", Some(b"d"));
        assert_eq!(covered.0.len(), 1);
        covered.add(b"x", None);
        assert!(covered.overlaps(b"z", None) && !covered.overlaps(b"f", Some(b"x")));
        covered.add(b"c", Some(b"y"));
        assert_eq!(covered.0.into_iter().collect::<Vec<_>>(), [(b"a".to_vec(), None)]);
    }
}
