//! Parts of a table that are read by themselves: regions, and ranges of rows within one.
//!
//! ```text
//! region, its largest file's root index   | b | k | r |        range 0..4 is the region, 0..2 the rows before k, 2..3 those before r
//! ```
//!
//! A split is plain numbers, so that it travels: the rows they stand for are those of the largest file's root index, which
//! whoever reads the split finds there again.

use std::ops::Range;

use coldframe_core::{Result, Split};
use coldframe_hfile::{IndexCursor, RawFile};

use crate::alive::Region;
use crate::files::Shared;
use crate::open::Found;
use crate::scan::plan::Rows;

/// The end of a range that is a whole region, whatever rows there are.
const WHOLE: u64 = u64::MAX;

/// Splits of about `target` bytes.
pub(crate) fn of_regions(found: &Found, target: u64) -> Result<Vec<Split>> {
    let mut splits = Vec::with_capacity(found.regions.len());
    for (part, region) in found.regions.iter().enumerate() {
        let Ok(part) = u32::try_from(part) else { break };
        if target == u64::MAX {
            splits.push(Split { part, range: 0..WHOLE, rows: None });
            continue;
        }
        let (rows, bytes) = cuts(&found.shared, region)?;
        let pieces = bytes.div_ceil(target.max(1)).clamp(1, rows.len() as u64 + 1);
        let places = rows.len() as u64 + 1;
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

/// Rows at which a region may be cut, and the bytes of its files.
fn cuts(shared: &Shared, region: &Region) -> Result<(Vec<Vec<u8>>, u64)> {
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

/// Blocks of the largest file between two rows that [`fine_cuts`] gives.
const BLOCKS: usize = 32;

/// Rows at which a region may be cut into parts of some MiB.
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

/// The rows that the range of a split stands for.
pub(crate) fn rows(shared: &Shared, region: &Region, range: &Range<u64>) -> Result<Rows> {
    let (lower, upper) = (region.start.clone(), region.upper().map(<[u8]>::to_vec));
    if *range == (0..WHOLE) {
        return Ok(Rows { lower, upper, first: true });
    }
    let (cuts, _) = cuts(shared, region)?;
    let at = |place: u64| usize::try_from(place).ok().and_then(|i| cuts.get(i.checked_sub(1)?)).cloned();
    let beyond = |place: u64| place > cuts.len() as u64;
    if beyond(range.start) {
        // Nothing is behind the last one.
        let end = upper.clone().unwrap_or_default();
        return Ok(Rows { lower: end.clone(), upper: Some(end), first: false });
    }
    let upper = if beyond(range.end) { upper } else { at(range.end) };
    Ok(Rows { lower: at(range.start).unwrap_or(lower), upper, first: range.start == 0 })
}
