//! Folders of regions whose own description is lost, where hbase:meta says nothing of them: have they taken the place of
//! regions that are described?
//!
//! ```text
//! described    |----- R -----|          U has halves of files of R: R is its parent, and dead
//! not          |--U--|                  R has halves of files of U: U is dead
//!                                       U has rows of R, or none to go by: one of them is dead, and nobody knows which
//! ```
//!
//! What a dead region still has may be old, or have been deleted since; so neither of such two is read. A folder without rows
//! belongs where rows have no region, if there are such.

use std::collections::BTreeSet;

use coldframe_core::{Damage, Error, Result};
use coldframe_hfile::file_info::LAST_KEY;
use coldframe_hfile::row_of;

use crate::regions::alive::{self, Region};
use crate::regions::files::{Shared, StoreFile};

/// Some rows, by what bounds them.
#[derive(Debug)]
struct Extent {
    first: Vec<u8>,
    last: Option<Vec<u8>>,
    /// The first row behind them.
    upper: Option<Vec<u8>>,
}

impl Extent {
    fn of(file: &StoreFile) -> Option<Self> {
        let first = file.raw().root_rows().next()?.to_vec().max(file.lower.clone());
        let last = file.raw().info().get(LAST_KEY).and_then(row_of).map(<[u8]>::to_vec);
        let found = Self { upper: file.upper.clone(), last, first };
        let holds_first = found.reaches(&found.first);
        holds_first.then_some(found)
    }

    /// Whether it has, or may have, a row from this one on.
    fn reaches(&self, row: &[u8]) -> bool {
        self.upper.as_deref().is_none_or(|upper| row < upper)
            && self.last.as_deref().is_none_or(|last| row <= last)
    }

    fn overlaps(&self, region: &Region) -> bool {
        self.reaches(&region.start) && region.upper().is_none_or(|end| self.first.as_slice() < end)
    }
}

/// A folder of a region without a description.
#[derive(Debug)]
struct Unknown {
    encoded: String,
    parents: BTreeSet<String>,
    /// Empty if there are none to go by.
    rows: Vec<Extent>,
}

impl Unknown {
    fn new(shared: &Shared, encoded: &str) -> Result<Self> {
        let open = shared.open(&Region::whole(encoded))?;
        let rows = match open.lost.is_empty() {
            true => open.files.iter().filter_map(Extent::of).collect(),
            false => Vec::new(),
        };
        Ok(Self { encoded: encoded.to_owned(), parents: shared.parents(encoded)?, rows })
    }
}

/// Regions by what is known of them beside others that have no description.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    pub(crate) alive: Vec<Region>,
    /// One of two that have the same rows: not to be read.
    pub(crate) doubtful: Vec<(Region, Damage)>,
}

/// Which of `regions` are alive for sure beside those in the folders `unknown`.
pub(crate) fn judge(shared: &Shared, regions: Vec<Region>, unknown: &[&str]) -> Result<Judged> {
    let unknown: Vec<Unknown> =
        unknown.iter().map(|name| Unknown::new(shared, name)).collect::<Result<_>>()?;
    if unknown.is_empty() {
        return Ok(Judged { alive: regions, doubtful: Vec::new() });
    }
    let has_holes = !alive::holes(&regions).is_empty();
    let mut judged = Judged::default();
    for region in regions {
        let parents = shared.parents(&region.encoded)?;
        let others = || unknown.iter().filter(|u| !parents.contains(&u.encoded));
        if others().any(|u| u.parents.contains(&region.encoded)) {
            continue;
        }
        let may_be = |u: &&Unknown| match u.rows.as_slice() {
            [] => !has_holes,
            rows => rows.iter().any(|extent| extent.overlaps(&region)),
        };
        match others().find(may_be) {
            None => judged.alive.push(region),
            Some(other) => {
                let message = format!(
                    "expected a description of the region {}, which may have taken its place, found none",
                    other.encoded
                );
                let e = Error::corrupt(message).within(region.describe());
                judged.doubtful.push((region, Damage::from_error(&e, 0..0, None)));
            }
        }
    }
    Ok(judged)
}
