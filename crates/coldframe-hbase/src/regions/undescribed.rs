//! Finds the region folders without a description that hbase:meta does not list, and decides whether they may
//! have replaced regions with a description.
//!
//! ```text
//! described    |----- R -----|          U has halves of files of R: R is its parent, and dead
//! not          |--U--|                  R has halves of files of U: U is dead
//!                                       U has rows of R, or its rows are unknown: one of the two is dead
//! ```
//!
//! The cells of a dead region may be outdated or deleted, so in the third case neither R nor U is read. If
//! there are rows without a region, a folder whose rows are unknown is assumed to have these rows.

use std::collections::BTreeSet;

use coldframe_core::{Damage, Error, Result};
use coldframe_hfile::file_info::LAST_KEY;
use coldframe_hfile::row_of;

use crate::regions::alive::{self, Region};
use crate::regions::files::{Shared, StoreFile};

/// A range of rows for which a folder has data.
#[derive(Debug)]
pub(crate) struct Extent {
    first: Vec<u8>,
    last: Option<Vec<u8>>,
    /// The end of the rows, excluded.
    upper: Option<Vec<u8>>,
}

impl Extent {
    /// The rows of a file; `None` if no row of the file counts.
    pub(crate) fn of(file: &StoreFile) -> Option<Self> {
        let first = file.raw().root_rows().next()?.to_vec().max(file.lower.clone());
        let last = file.raw().info().get(LAST_KEY).and_then(row_of).map(<[u8]>::to_vec);
        let extent = Self { upper: file.upper.clone(), last, first };
        let holds_first = extent.reaches(&extent.first);
        holds_first.then_some(extent)
    }

    /// Whether the range has, or may have, this row or a later row.
    fn reaches(&self, row: &[u8]) -> bool {
        self.upper.as_deref().is_none_or(|upper| row < upper)
            && self.last.as_deref().is_none_or(|last| row <= last)
    }

    /// Whether a region has, or may have, some of these rows.
    pub(crate) fn overlaps(&self, region: &Region) -> bool {
        self.reaches(&region.start) && region.upper().is_none_or(|end| self.first.as_slice() < end)
    }
}

/// A region folder without a description.
#[derive(Debug)]
struct Undescribed {
    encoded: String,
    parents: BTreeSet<String>,
    /// The ranges of the folder's rows; empty if nothing shows which rows the folder has.
    rows: Vec<Extent>,
}

impl Undescribed {
    fn new(shared: &Shared, encoded: &str) -> Result<Self> {
        let open = shared.open(&Region::whole(encoded))?;
        let rows = match open.damaged.is_empty() {
            true => open.files.iter().filter_map(Extent::of).collect(),
            false => Vec::new(),
        };
        Ok(Self { encoded: encoded.to_owned(), parents: shared.parents(encoded)?, rows })
    }
}

/// The regions, divided into the regions that are certainly live, and the regions that a folder without a
/// description may have replaced.
#[derive(Debug, Default)]
pub(crate) struct Classified {
    pub(crate) alive: Vec<Region>,
    /// Regions that may have been replaced, with a damage record for each region. Such regions are not read.
    pub(crate) uncertain: Vec<(Region, Damage)>,
}

/// Determines which of `regions` are certainly live, given the folders `undescribed`.
pub(crate) fn classify(shared: &Shared, regions: Vec<Region>, undescribed: &[&str]) -> Result<Classified> {
    let undescribed: Vec<Undescribed> =
        undescribed.iter().map(|name| Undescribed::new(shared, name)).collect::<Result<_>>()?;
    if undescribed.is_empty() {
        return Ok(Classified { alive: regions, uncertain: Vec::new() });
    }
    let has_holes = !alive::holes(&regions).is_empty();
    let mut classified = Classified::default();
    for region in regions {
        let parents = shared.parents(&region.encoded)?;
        let others = || undescribed.iter().filter(|u| !parents.contains(&u.encoded));
        if others().any(|u| u.parents.contains(&region.encoded)) {
            continue;
        }
        let may_be = |u: &&Undescribed| match u.rows.as_slice() {
            [] => !has_holes,
            rows => rows.iter().any(|extent| extent.overlaps(&region)),
        };
        match others().find(may_be) {
            None => classified.alive.push(region),
            Some(other) => {
                let message = format!(
                    "expected a description of the region {}, which may have replaced this one, found none",
                    other.encoded
                );
                let e = Error::corrupt(message).within(region.describe());
                classified.uncertain.push((region, Damage::from_error(&e, 0..0, None)));
            }
        }
    }
    Ok(classified)
}
