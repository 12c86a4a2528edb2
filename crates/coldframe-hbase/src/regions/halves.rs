//! Checks the halves of files that references state.
//!
//! ```text
//! split   parent |----------|      daughters |----|-----|      each reads its half of the parent's files: K is where they meet
//!                     K
//! merge   parents |----|-----|     merged    |----------|      reads the parents' files from the first row of each parent on
//! ```
//!
//! A reference has no checksum. With another row, a region would lack rows that no other region has, and nothing would show it.
//! HBase: `HRegionFileSystem.splitStoreFile`, `mergeStoreFile`.

use coldframe_core::{Error, Result};

use crate::layout::messages;
use crate::layout::names::FileAt;
use crate::regions::alive::Region;
use crate::regions::files::Shared;
use crate::root::join;

impl Shared {
    /// Checks that the row of a half is an edge of the region or, for the file of a merged region, of its parent. `at`: the
    /// file in the parent.
    pub(crate) fn check_half(
        &self,
        region: &Region,
        at: &FileAt,
        (row, is_top): &(Vec<u8>, bool),
    ) -> Result<()> {
        let edge = if *is_top { &region.start } else { &region.end };
        // A region without a description has no edges.
        if !region.is_described() || row == edge || (*is_top && self.may_start(region, at, row)) {
            return Ok(());
        }
        let (row, edge) = (row.escape_ascii(), edge.escape_ascii());
        Err(Error::corrupt(format!(
            "expected the row \"{edge}\", where the region was split off, found \"{row}\""
        )))
    }

    /// Whether a parent of a merged region may start at a row. The description of the parent proves it; if it is gone, or
    /// damaged itself, any row of the region is possible.
    fn may_start(&self, region: &Region, at: &FileAt, row: &[u8]) -> bool {
        let path = join(&join(&self.root.table(&at.table), &at.region), ".regioninfo");
        let limits = &self.options.limits;
        match self.root.read(&path, limits).and_then(|bytes| messages::region_info(&bytes, limits)) {
            Ok(parent) => parent.start_key.unwrap_or_default() == row,
            Err(_) => region.start.as_slice() < row && region.upper().is_none_or(|end| row < end),
        }
    }
}
