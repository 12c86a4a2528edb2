//! Parts of a table that are read independently: regions, and ranges of rows within a region.
//!
//! ```text
//! region, its largest file's root index   | b | k | r |        range 0..4 is the region, 0..2 the rows before k, 2..3 those before r
//! ```
//!
//! A split has two numbers: positions in the root index of the region's largest file. A reader that has only
//! these numbers must read that index again to find the rows. The data that is sent with a split (`packed`)
//! includes the rows.

pub(crate) mod packed;
mod parallel;

use std::ops::Range;
use std::sync::Arc;

use coldframe_core::{Result, Split};
use coldframe_hfile::{IndexCursor, RawFile};

use self::parallel::map_each;
use crate::open::OpenTable;
use crate::regions::alive::Region;
use crate::regions::files::Shared;
use crate::scan::plan::Rows;

/// The end of a range that covers a whole region, whatever its rows.
const WHOLE: u64 = u64::MAX;

/// Splits of about `target` bytes.
pub(crate) fn of_regions(table: &OpenTable, target: u64) -> Result<Vec<Split>> {
    let mut splits = Vec::with_capacity(table.regions.len());
    let cuts_of = |region: &Arc<Region>| {
        if is_small(&table.shared, region, target)? {
            return Ok((0, 0));
        }
        cuts(&table.shared, region).map(|(rows, bytes)| (rows.len() as u64, bytes))
    };
    let of_regions = match target {
        u64::MAX => vec![(0, 0); table.regions.len()],
        _ => map_each(&table.regions, cuts_of)?,
    };
    for (part, (rows, bytes)) in of_regions.into_iter().enumerate() {
        let Ok(part) = u32::try_from(part) else { break };
        let places = rows + 1;
        let pieces = bytes.div_ceil(target.max(1)).clamp(1, places);
        let mut start = 0;
        for i in 1..=pieces {
            let end = if i == pieces { WHOLE } else { places * i / pieces };
            if end > start {
                splits.push(Split { part, range: start..end, rows: None });
                start = end;
            }
        }
    }
    Ok(splits)
}

/// Whether a listing shows that a region has at most `bytes` bytes; if so, no file of the region is opened.
fn is_small(shared: &Shared, region: &Region, bytes: u64) -> Result<bool> {
    let files = shared.find(region)?;
    let lengths = files.and_then(|files| files.iter().flatten().map(|f| f.len).collect::<Option<Vec<_>>>());
    Ok(lengths.is_some_and(|lengths| lengths.into_iter().fold(0, u64::saturating_add) <= bytes))
}

/// Whether the range of a split covers a whole region.
pub(crate) fn is_whole(range: &Range<u64>) -> bool {
    *range == (0..WHOLE)
}

/// The rows at which a region may be divided into splits, and the total size of its files.
pub(crate) fn cuts(shared: &Shared, region: &Region) -> Result<(Vec<Vec<u8>>, u64)> {
    let open = shared.open(region)?;
    let len = |raw: &RawFile| raw.source().len();
    let bytes = open.files.iter().map(|f| len(f.raw())).fold(0, u64::saturating_add);
    let largest =
        open.files.iter().max_by(|a, b| len(a.raw()).cmp(&len(b.raw())).then_with(|| b.path.cmp(&a.path)));
    let mut rows: Vec<Vec<u8>> = Vec::new();
    if let Some(file) = largest {
        let order = file.raw().order();
        for row in file.raw().root_rows() {
            let inside = order.compare(row, &region.start).is_gt()
                && region.upper().is_none_or(|upper| order.compare(row, upper).is_lt());
            if inside && rows.last().is_none_or(|last| order.compare(last, row).is_lt()) {
                rows.push(row.to_vec());
            }
        }
    }
    Ok((rows, bytes))
}

/// The number of blocks of the largest file between two rows of [`fine_cuts`].
const BLOCKS: usize = 32;

/// The rows at which a region may be divided into parts of a few MiB.
pub(crate) fn fine_cuts(shared: &Shared, region: &Region) -> Result<Vec<Vec<u8>>> {
    let open = shared.open(region)?;
    let mut rows = Vec::new();
    let Some(file) = open.files.iter().max_by_key(|f| f.raw().source().len()) else { return Ok(rows) };
    let mut cursor = IndexCursor::new(file.raw().clone());
    let mut count = 0;
    while let Some(entry) = cursor.next_entry().map_err(|e| file.named(e))? {
        if count % BLOCKS == BLOCKS - 1 {
            rows.push(entry.row().to_vec());
        }
        count += 1;
    }
    rows.dedup();
    Ok(rows)
}

/// The rows of a split's range.
pub(crate) fn rows(shared: &Shared, region: &Region, range: &Range<u64>) -> Result<Rows> {
    let cuts = if is_whole(range) { Vec::new() } else { cuts(shared, region)?.0 };
    Ok(rows_between(region, range, &cuts))
}

/// Like [`rows`], if the rows at which the region is divided are known.
pub(crate) fn rows_between(region: &Region, range: &Range<u64>, cuts: &[Vec<u8>]) -> Rows {
    let (lower, upper) = (region.start.clone(), region.upper().map(<[u8]>::to_vec));
    if is_whole(range) {
        return Rows { lower, upper, first: true };
    }
    let at = |place: u64| usize::try_from(place).ok().and_then(|i| cuts.get(i.checked_sub(1)?)).cloned();
    let beyond = |place: u64| place > cuts.len() as u64;
    if beyond(range.start) {
        // A range that begins after the last of these rows is empty.
        let end = upper.clone().unwrap_or_default();
        return Rows { lower: end.clone(), upper: Some(end), first: false };
    }
    let upper = if beyond(range.end) { upper } else { at(range.end) };
    Rows { lower: at(range.start).unwrap_or(lower), upper, first: range.start == 0 }
}
