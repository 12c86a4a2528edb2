//! The ordinals of a rowset that have keys in a given range.
//!
//! ```text
//! key column or ad hoc index ──▶ value index ──▶ ordinals of a range of keys; bloom filter ──▶ none
//! ```

use std::ops::Range;
use std::sync::Arc;

use coldframe_cfile::open::CFile;
use coldframe_cfile::prune::bloom;
use coldframe_cfile::prune::find::{KeyFinder, VALUE_INDEX};
use coldframe_cfile::prune::key::KeyBounds;
use coldframe_core::{DamageLog, Notice, Result};

use crate::rowset::{Reading, open_block};
use crate::tablet::{RowSet, Tablet};

/// Narrows `rows` to the ordinals that a key range selects. The result may be empty. An index that contradicts the keys
/// narrows nothing, and `log` notes it.
pub(crate) fn key_rows(
    tablet: &Tablet,
    rowset: &RowSet,
    bounds: &KeyBounds,
    rows: Range<u64>,
    reading: &Reading,
    log: &DamageLog,
) -> Result<Range<u64>> {
    if bounds.is_empty() {
        return Ok(rows);
    }
    if !bounds.may_match(rowset.min_key.as_deref(), rowset.max_key.as_deref()) {
        return Ok(rows.start..rows.start);
    }
    let Some((id, _)) = key_index(tablet, rowset) else { return Ok(rows) };
    let index = open_block(tablet, id, "key index", reading)?;
    let range = match key_rows_by(&index.file, bounds) {
        Err(e) if e.is_damage() && e.structure().starts_with(VALUE_INDEX) => {
            let e = index.place.explain(e).within(format!("rowset {}", rowset.id));
            log.notify(Notice::wrong_index(&e.within(format!("tablet {}", tablet.id))));
            return Ok(rows);
        }
        range => range.map_err(|e| index.place.explain(e))?,
    };
    let rows = rows.start.max(range.start)..rows.end.min(range.end);
    if rows.start >= rows.end {
        return Ok(rows.start..rows.start);
    }
    if let (Some(key), Some(id)) = (&bounds.exact, rowset.bloom) {
        let filter = open_block(tablet, id, "bloom filter", reading)?;
        if !bloom::might_contain(&filter.file, key).map_err(|e| filter.place.explain(e))? {
            return Ok(rows.start..rows.start);
        }
    }
    Ok(rows)
}

/// The id of the block that is sorted by encoded key, and whether this block is an ad hoc index.
pub(crate) fn key_index(tablet: &Tablet, rowset: &RowSet) -> Option<(u64, bool)> {
    match (rowset.adhoc_index, tablet.schema.key().as_slice()) {
        (Some(id), _) => Some((id, true)),
        (None, [column]) => rowset.columns.get(&column.id).map(|id| (*id, false)),
        _ => None,
    }
}

/// The ordinals from the first row in the block that may hold the lower bound to the last row in the block
/// that may hold the upper bound.
fn key_rows_by(file: &Arc<CFile>, bounds: &KeyBounds) -> Result<Range<u64>> {
    let footer = file.footer();
    let all = footer.num_values;
    if !bounds.may_match(footer.pair("min_key"), footer.pair("max_key")) {
        return Ok(0..0);
    }
    if footer.value.is_none() || all == 0 {
        return Ok(0..all);
    }
    KeyFinder::new(file.clone())?.rows_between(bounds.lower.as_deref(), bounds.upper.as_deref())
}
