//! Decides about region folders whose description is lost and that hbase:meta does not list: did they replace regions whose
//! descriptions exist?
//!
//! ```text
//! described    |----- R -----|          U has halves of files of R: R is its parent, and dead
//! not          |--U--|                  R has halves of files of U: U is dead
//!                                       U has rows of R, or none to go by: one of them is dead, and it is unknown which
//! ```
//!
//! The cells of a dead region may be outdated or deleted since, so in the third case neither is read. A folder without rows belongs
//! to rows without a region, if there are any.

use std::collections::BTreeSet;

use coldframe_core::{Damage, Error, Result};
use coldframe_hfile::file_info::LAST_KEY;
use coldframe_hfile::row_of;

use crate::regions::alive::{self, Region};
use crate::regions::files::{Shared, StoreFile};

/// A range of rows.
#[derive(Debug)]
struct Extent {
    first: Vec<u8>,
    last: Option<Vec<u8>>,
    /// The end of the rows, excluded.
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

    /// Whether it has, or may have, a row at or after this one.
    fn reaches(&self, row: &[u8]) -> bool {
        self.upper.as_deref().is_none_or(|upper| row < upper)
            && self.last.as_deref().is_none_or(|last| row <= last)
    }

    fn overlaps(&self, region: &Region) -> bool {
        self.reaches(&region.start) && region.upper().is_none_or(|end| self.first.as_slice() < end)
    }
}

/// A region folder without a description.
#[derive(Debug)]
struct Unknown {
    encoded: String,
    parents: BTreeSet<String>,
    /// Empty if there is no evidence of its rows.
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

/// The regions, judged beside folders without a description.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    pub(crate) alive: Vec<Region>,
    /// Regions that may have been replaced: not to be read.
    pub(crate) doubtful: Vec<(Region, Damage)>,
}

/// Determines which of `regions` are certainly live, given the folders `unknown`.
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
