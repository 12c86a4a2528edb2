//! Finds regions that were made for a split or merge that HBase gave up.
//!
//! ```text
//! parent    |--- f: k, p ---|  id 1      k and p are rows in its files of the family f
//! abandoned |---------------|  id 2      nothing of f, and never opened: it has not replaced its parent
//! ```
//!
//! Before a new region counts, HBase gives it references to all files of its parents with rows of the new
//! region, and opens the region, which leaves a mark. A compaction leaves a file even if no cell is left.
//! hbase:meta is not here to decide. HBase: `HRegionFileSystem.splitStoreFile`, `MergeTableRegionsProcedure`.

use std::collections::BTreeSet;

use coldframe_core::Result;

use crate::regions::alive::{self, Region};
use crate::regions::files::Shared;
use crate::regions::undescribed::Extent;

/// The regions that no younger region has replaced, sorted by row, and the abandoned regions.
pub(crate) fn alive_and_abandoned(
    shared: &Shared,
    mut regions: Vec<Region>,
) -> Result<(Vec<Region>, Vec<Region>)> {
    let mut abandoned = Vec::new();
    loop {
        let alive = alive::youngest(regions.clone());
        let given_up = given_up(shared, &regions, &alive)?;
        if given_up.is_empty() {
            return Ok((alive, abandoned));
        }
        let (gone, left) = regions.into_iter().partition(|r| given_up.contains(&r.encoded));
        abandoned.extend::<Vec<Region>>(gone);
        regions = left;
    }
}

/// The names of the regions among `alive` that were abandoned, so that they have not replaced their parents.
fn given_up(shared: &Shared, regions: &[Region], alive: &[Region]) -> Result<BTreeSet<String>> {
    let living: BTreeSet<&str> = alive.iter().map(|r| r.encoded.as_str()).collect();
    let mut all = BTreeSet::new();
    for parent in regions.iter().filter(|r| !living.contains(r.encoded.as_str())) {
        let mut rows = Vec::new();
        for file in &shared.open(parent)?.files {
            rows.extend(Extent::of(file).map(|extent| (file.family, extent)));
        }
        for region in alive.iter().filter(|r| r.id > parent.id && r.overlaps(parent)) {
            let families = rows.iter().filter(|(_, extent)| extent.overlaps(region)).map(|(i, _)| *i);
            let families: BTreeSet<usize> = families.collect();
            if !shared.was_opened(&region.encoded)? && !shared.has_files(&region.encoded, &families)? {
                all.insert(region.encoded.clone());
            }
        }
    }
    Ok(all)
}
