//! The ordinals of a rowset that have keys in a given range.
//!
//! ```text
//! key column or ad hoc index ──▶ value index ──▶ ordinals of a range of keys; bloom filter ──▶ none
//! ```

use std::ops::Range;

use coldframe_cfile::layout::block::BlockPointer;
use coldframe_cfile::open::CFile;
use coldframe_cfile::prune::bloom;
use coldframe_cfile::prune::key::KeyBounds;
use coldframe_cfile::prune::walk::Step;
use coldframe_core::{Error, ErrorContext, Result};
use coldframe_encoding::Cursor;

use crate::rowset::{Reading, open_block};
use crate::tablet::{RowSet, Tablet};

/// Narrows `rows` to the ordinals that a key range selects. The result may be empty.
pub(crate) fn key_rows(
    tablet: &Tablet,
    rowset: &RowSet,
    bounds: &KeyBounds,
    rows: Range<u64>,
    reading: &Reading,
) -> Result<Range<u64>> {
    if bounds.is_empty() {
        return Ok(rows);
    }
    if !bounds.may_match(rowset.min_key.as_deref(), rowset.max_key.as_deref()) {
        return Ok(rows.start..rows.start);
    }
    let Some((id, adhoc)) = key_index(tablet, rowset) else { return Ok(rows) };
    let index = open_block(tablet, id, "key index", reading)?;
    let range = key_rows_by(&index.file, adhoc, bounds).map_err(|e| index.place.explain(e))?;
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
fn key_rows_by(file: &CFile, adhoc: bool, bounds: &KeyBounds) -> Result<Range<u64>> {
    let footer = file.footer();
    let all = footer.num_values;
    if !bounds.may_match(footer.pair("min_key"), footer.pair("max_key")) {
        return Ok(0..0);
    }
    let Some(root) = footer.value else { return Ok(0..all) };
    let ordinal =
        |pointer: BlockPointer| if adhoc { adhoc_ordinal(file, pointer) } else { ordinal_of(file, pointer) };
    let start = match &bounds.lower {
        None => 0,
        Some(lower) => match block_at(file, root, lower)?.0 {
            Some(block) => ordinal(block)?,
            None => 0,
        },
    };
    let end = match &bounds.upper {
        None => all,
        // In the block after the one that may hold the bound, all keys are larger.
        Some(upper) => match block_at(file, root, upper)?.1 {
            Some(block) => ordinal(block)?,
            None => all,
        },
    };
    Ok(start.min(all)..end.min(all).max(start.min(all)))
}

/// The block that may hold `key`, and the block after it.
fn block_at(
    file: &CFile,
    root: BlockPointer,
    key: &[u8],
) -> Result<(Option<BlockPointer>, Option<BlockPointer>)> {
    let mut walk = file.walk(root).within(|| "value index")?;
    walk.seek(key).within(|| "value index")?;
    let mut next = || -> Result<Option<BlockPointer>> {
        Ok(match walk.step().within(|| "value index")? {
            Some(Step::Block(_, pointer)) => Some(pointer),
            _ => None,
        })
    };
    Ok((next()?, next()?))
}

/// The first ordinal of a data block, looked up in the positional index.
fn ordinal_of(file: &CFile, pointer: BlockPointer) -> Result<u64> {
    let blocks = file.blocks(0..file.footer().num_values)?;
    let at = blocks.partition_point(|b| b.pointer.offset < pointer.offset);
    let block = blocks.get(at).filter(|b| b.pointer == pointer);
    block.map(|b| b.rows.start).ok_or_else(|| {
        Error::corrupt("expected a data block that is in the positional index, found another")
            .at(pointer.offset)
    })
}

/// The first ordinal of a block of an ad hoc index. Such an index has no positional index; instead the block
/// itself states the ordinal.
fn adhoc_ordinal(file: &CFile, pointer: BlockPointer) -> Result<u64> {
    file.format().limits.block("block of the ad hoc index", pointer.size.into())?;
    let stored = file.source().read(pointer.range())?;
    let block = file.format().open_owned(&stored, pointer.offset)?;
    let [_, ordinal, _, _] = Cursor::new(&block, pointer.offset).group_varint()?;
    Ok(ordinal.into())
}
