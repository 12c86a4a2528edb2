//! A rowset, opened: what a scan reads of it.
//!
//! ```text
//! rowset ── column files of the wanted columns ──▶ positional index ──▶ blocks of a range of ordinals
//!        ── delta files that the snapshot needs ──▶ value index (row, time) ──▶ blocks of a range of rows
//!        ── key column or ad hoc index ──▶ value index ──▶ ordinals of a range of keys
//! ```

use std::ops::Range;
use std::sync::Arc;

use coldframe_core::{Damage, Error, ErrorContext, Limits, OnError, PlanRequest, Result, Value};
use coldframe_encoding::Cursor;

use super::delta;
use super::key::KeyBounds;
use super::proto::DeltaStats;
use super::schema::Column;
use super::tablet::{RowSet, Tablet};
use crate::block::BlockPointer;
use crate::bloom;
use crate::column::{CFile, ColumnScan};
use crate::index::Step;

/// How files are opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) verify: bool,
    pub(super) limits: Limits,
    /// Operations before this hybrid time count; none is too late without one.
    pub(super) snapshot: Option<u64>,
}

/// A CFile of a rowset, and where it is.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) file: Arc<CFile>,
    pub(super) place: Arc<Place>,
}

/// What errors and damage records say about where something is.
#[derive(Debug)]
pub(super) struct Place {
    /// `column 'x' (block 17)`
    pub(super) name: String,
    /// The file.
    pub(super) path: String,
    /// Where in it the CFile begins.
    pub(super) offset: u64,
}

impl Place {
    /// An error of the CFile, as one of the file that holds it: with the offset there.
    pub(super) fn explain(&self, e: Error) -> Error {
        let (at, structure) = (e.offset(), e.structure());
        let mut moved = Error::new(e.into_kind());
        if let Some(at) = at {
            moved = moved.at(self.offset.saturating_add(at));
        }
        if !structure.is_empty() {
            moved = moved.within(structure);
        }
        moved.within(self.name.clone()).in_file(self.path.clone())
    }
}

/// Opens a block of the tablet's server as a CFile.
pub(super) fn open_block(tablet: &Tablet, id: u64, what: &str, reading: &Reading) -> Result<Opened> {
    let name = format!("{what} (block {id})");
    let block = tablet.server.store.open(id).within(|| name.clone())?;
    let path = tablet.server.store.full_path(&block.path);
    let place = Place { name, path, offset: block.offset };
    match CFile::open(block.bytes, reading.verify, reading.limits) {
        Ok(file) => Ok(Opened { file: Arc::new(file), place: Arc::new(place) }),
        Err(e) => Err(place.explain(e)),
    }
}

/// How many rows a rowset has, deleted ones too: as any of its columns says.
pub(super) fn row_count(tablet: &Tablet, rowset: &RowSet, reading: &Reading) -> Result<u64> {
    let mut first_error = None;
    for (id, block) in &rowset.columns {
        match open_block(tablet, *block, &format!("column number {id}"), reading) {
            Ok(opened) => return Ok(opened.file.footer().num_values),
            Err(e) => first_error = first_error.or(Some(e)),
        }
    }
    Err(first_error.unwrap_or_else(|| Error::corrupt("expected a rowset with columns, found one without")))
}

/// How many bytes the columns of a rowset take.
pub(super) fn column_bytes(tablet: &Tablet, rowset: &RowSet) -> u64 {
    let bytes = rowset.columns.values().map(|id| tablet.server.store.open(*id).map_or(0, |b| b.bytes.len()));
    bytes.sum()
}

/// Where a wanted column's values come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Blocks of a file.
    File { scan: Arc<ColumnScan>, place: Arc<Place> },
    /// The rowset is older than the column.
    Default,
    /// Its file cannot be read, and nulls stand in for it.
    Lost,
}

/// A delta file that a snapshot needs.
#[derive(Clone, Debug)]
pub(super) struct DeltaFile {
    pub(super) opened: Opened,
    pub(super) undo: bool,
    /// The row of each block's first entry, and the block.
    pub(super) blocks: Vec<(u64, BlockPointer)>,
}

impl DeltaFile {
    /// The blocks that may hold entries of `rows`.
    pub(super) fn part(&self, rows: &Range<u64>) -> Range<usize> {
        // Entries of one row may go on in the next block.
        let from = self.blocks.partition_point(|(row, _)| *row < rows.start).saturating_sub(1);
        let to = self.blocks.partition_point(|(row, _)| *row < rows.end);
        from..to.max(from)
    }

    /// The rows whose entries a block may hold.
    pub(super) fn rows_of(&self, block: usize) -> Range<u64> {
        let first = self.blocks.get(block).map_or(0, |(row, _)| *row);
        let last = self.blocks.get(block + 1).map_or(u64::MAX - 1, |(row, _)| *row);
        first..last.saturating_add(1)
    }
}

/// The delta files that matter to the snapshot, in the order in which they apply.
pub(super) fn delta_files(tablet: &Tablet, rowset: &RowSet, reading: &Reading) -> Result<Vec<DeltaFile>> {
    let mut files = Vec::new();
    // Without a snapshot every operation counts, and none has to be undone.
    let undo = rowset.undo.iter().filter(|_| reading.snapshot.is_some());
    let all = undo.map(|id| (*id, true)).chain(rowset.redo.iter().map(|id| (*id, false)));
    for (id, undo) in all {
        let what = if undo { "UNDO deltas" } else { "REDO deltas" };
        let opened = open_block(tablet, id, what, reading)?;
        let place = opened.place.clone();
        let file = delta_file(opened, undo, reading).map_err(|e| place.explain(e))?;
        files.extend(file);
    }
    Ok(files)
}

fn delta_file(opened: Opened, undo: bool, reading: &Reading) -> Result<Option<DeltaFile>> {
    if let (Some(snapshot), Some(stats)) = (reading.snapshot, stats(&opened.file)?) {
        let needed = match (undo, stats.min_timestamp, stats.max_timestamp) {
            (true, _, Some(max)) => max >= snapshot,
            (false, Some(min), _) => min < snapshot,
            _ => true,
        };
        if !needed {
            return Ok(None);
        }
    }
    let Some(root) = opened.file.footer().value else {
        return Err(Error::corrupt("expected a value index, found none"));
    };
    let mut blocks = Vec::new();
    let mut walk = opened.file.walk(root).within(|| "value index")?;
    while let Some(step) = walk.step().within(|| "value index")? {
        if let Step::Block(key, pointer) = step {
            let row = delta::sorted_varint(&mut Cursor::new(&key, root.offset)).within(|| "value index")?;
            if blocks.last().is_some_and(|(before, _)| *before > row) {
                let e = Error::corrupt(format!("expected rows in order, found {row} behind a later one"));
                return Err(e.at(root.offset).within("value index"));
            }
            blocks.push((row, pointer));
        }
    }
    Ok(Some(DeltaFile { opened, undo, blocks }))
}

fn stats(file: &CFile) -> Result<Option<DeltaStats>> {
    file.footer().pair("deltafilestats").map(super::container::decode).transpose().within(|| "deltafilestats")
}

/// The ordinals of a rowset that a key range leaves of `rows`; a part of a split may be left without any.
pub(super) fn key_rows(
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
    let found = key_rows_by(&index.file, adhoc, bounds).map_err(|e| index.place.explain(e))?;
    let rows = rows.start.max(found.start)..rows.end.min(found.end);
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

/// The block of the file that is sorted by encoded keys, and whether it is an ad hoc index.
fn key_index(tablet: &Tablet, rowset: &RowSet) -> Option<(u64, bool)> {
    match (rowset.adhoc_index, tablet.schema.key().as_slice()) {
        (Some(id), _) => Some((id, true)),
        (None, [one]) => rowset.columns.get(&one.id).map(|id| (*id, false)),
        _ => None,
    }
}

/// What the files say of a rowset without its rows: how many there are, and the least and the greatest encoded key.
pub(super) fn statistics(tablet: &Tablet, rowset: &RowSet, reading: &Reading) -> Result<Value> {
    let index =
        key_index(tablet, rowset).map(|(id, _)| open_block(tablet, id, "key index", reading)).transpose()?;
    let pair = |name: &str| {
        let found = index.as_ref().and_then(|i| i.file.footer().pair(name).map(<[u8]>::to_vec));
        found.map_or(Value::Null, Value::Bytes)
    };
    Ok(Value::map([
        ("tablet", Value::from(tablet.id.as_str())),
        ("rowset", Value::from(rowset.id)),
        ("rows", Value::from(row_count(tablet, rowset, reading)?)),
        ("live_rows", Value::from(rowset.live_rows.filter(|_| tablet.counts_live_rows))),
        ("min_key", pair("min_key")),
        ("max_key", pair("max_key")),
    ]))
}

/// The ordinals between the block that may hold the lower bound and the one that may hold the upper.
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
        // The block behind the one that may hold the bound has none but larger keys.
        Some(upper) => match block_at(file, root, upper)?.1 {
            Some(block) => ordinal(block)?,
            None => all,
        },
    };
    Ok(start.min(all)..end.min(all).max(start.min(all)))
}

/// The block that may hold `key`, and the one behind it.
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

/// The first ordinal of a data block, by the positional index.
fn ordinal_of(file: &CFile, pointer: BlockPointer) -> Result<u64> {
    let blocks = file.blocks(0..file.footer().num_values)?;
    let at = blocks.partition_point(|b| b.pointer.offset < pointer.offset);
    let found = blocks.get(at).filter(|b| b.pointer == pointer);
    found.map(|b| b.rows.start).ok_or_else(|| {
        Error::corrupt("expected a data block that the positional index knows, found another")
            .at(pointer.offset)
    })
}

/// The first ordinal of a block of an ad hoc index, which has no positional index: the block itself says it.
fn adhoc_ordinal(file: &CFile, pointer: BlockPointer) -> Result<u64> {
    file.format().limits.block("block of the ad hoc index", pointer.size.into())?;
    let stored = file.source().read(pointer.range())?;
    let block = file.format().open_owned(&stored, pointer.offset)?;
    let [_, ordinal, _, _] = Cursor::new(&block, pointer.offset).group_varint()?;
    Ok(ordinal.into())
}

/// Where the values of a wanted column come from, of a rowset with `all` rows; `None` if they are lost and so are
/// their rows.
pub(super) fn column_source(
    tablet: &Tablet,
    rowset: &RowSet,
    column: &Column,
    (all, rows): (u64, &Range<u64>),
    request: &PlanRequest,
    reading: &Reading,
) -> Result<Option<Source>> {
    let Some(block) = rowset.columns.get(&column.id) else { return Ok(Some(Source::Default)) };
    let what = format!("column `{}`", column.name);
    let tolerant = request.scan.on_error != OnError::Raise;
    let open = || -> Result<Source> {
        let opened = open_block(tablet, *block, &what, reading)?;
        let place = opened.place.clone();
        let explain = |e| place.explain(e);
        check_file(&opened.file, column, all).map_err(explain)?;
        let blocks = if tolerant {
            let mut lost = Vec::new();
            let blocks = opened.file.blocks_lossy(rows.clone(), &mut lost).map_err(explain)?;
            for part in lost {
                let lost = part.rows.end.saturating_sub(part.rows.start);
                request.damage.push(Damage {
                    bytes: part.bytes.start + place.offset..part.bytes.end + place.offset,
                    rows_lost: Some(lost),
                    structure: format!(
                        "tablet {}: rowset {}: {}: ordinals {}..{}: {}",
                        tablet.id, rowset.id, place.name, part.rows.start, part.rows.end, part.structure
                    ),
                    reason: part.reason,
                });
            }
            blocks
        } else {
            opened.file.blocks(rows.clone()).map_err(explain)?
        };
        let scan = opened.file.scan_blocks(blocks, &column.arrow).map_err(explain)?;
        Ok(Source::File { scan: Arc::new(scan), place: opened.place.clone() })
    };
    match open() {
        Ok(source) => Ok(Some(source)),
        Err(e) if tolerant && e.is_damage() => {
            let e = e.within(format!("ordinals {}..{}", rows.start, rows.end));
            let e = e.within(format!("rowset {}", rowset.id)).within(format!("tablet {}", tablet.id));
            let filled = request.scan.on_error == OnError::Null && column.nullable;
            let lost = rows.end.saturating_sub(rows.start);
            request.damage.push(Damage::from_error(&e, 0..0, Some(if filled { 0 } else { lost })));
            Ok(filled.then_some(Source::Lost))
        }
        Err(e) => Err(e),
    }
}

/// A file of another type or length than the schema's column and the rowset is not that column's.
fn check_file(file: &CFile, column: &Column, rows: u64) -> Result<()> {
    let (found, values) = (file.footer().data_type, file.footer().num_values);
    if found != column.data_type {
        return Err(Error::corrupt(format!("expected values of type {}, found {found}", column.data_type)));
    }
    if values != rows {
        return Err(Error::corrupt(format!(
            "expected {rows} values as in the rowset's first column, found {values}"
        )));
    }
    Ok(())
}
