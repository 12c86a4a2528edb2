//! What a scan reads of a rowset.
//!
//! ```text
//! rowset ── column files of the wanted columns ──▶ positional index ──▶ blocks of a range of ordinals
//!        ── delta files that the snapshot needs ──▶ value index (row, time) ──▶ blocks of a range of rows
//! ```

use std::ops::Range;
use std::sync::Arc;

use coldframe_cfile::layout::block::BlockPointer;
use coldframe_cfile::layout::delta::{STATISTICS, sorted_varint};
use coldframe_cfile::open::CFile;
use coldframe_cfile::prune::walk::Step;
use coldframe_cfile::scan::column::ColumnScan;
use coldframe_core::{Damage, Error, ErrorContext, OnError, PlanRequest, Result};
use coldframe_encoding::Cursor;

use crate::layout::container;
use crate::layout::proto::DeltaStats;
use crate::rowset::{Location, Opened, Reading, open_block};
use crate::schema::Column;
use crate::tablet::{RowSet, Tablet};

/// Where a wanted column's values come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Blocks of a file.
    File { scan: Arc<ColumnScan>, place: Arc<Location> },
    /// The rowset is older than the column.
    Default,
    /// Its file cannot be read, and nulls stand in for it.
    Lost,
}

/// A delta file that a snapshot needs.
#[derive(Clone, Debug)]
pub(crate) struct DeltaFile {
    pub(crate) opened: Opened,
    pub(crate) undo: bool,
    /// The row of each block's first entry, and the block.
    pub(crate) blocks: Vec<(u64, BlockPointer)>,
}

impl DeltaFile {
    /// The blocks that may hold entries of `rows`.
    pub(crate) fn part(&self, rows: &Range<u64>) -> Range<usize> {
        // Entries of one row may go on in the next block.
        let from = self.blocks.partition_point(|(row, _)| *row < rows.start).saturating_sub(1);
        let to = self.blocks.partition_point(|(row, _)| *row < rows.end);
        from..to.max(from)
    }

    /// The rows whose entries a block may hold.
    pub(crate) fn rows_of(&self, block: usize) -> Range<u64> {
        let first = self.blocks.get(block).map_or(0, |(row, _)| *row);
        let last = self.blocks.get(block + 1).map_or(u64::MAX - 1, |(row, _)| *row);
        first..last.saturating_add(1)
    }
}

/// The delta files that matter to the snapshot, in the order in which they apply.
pub(crate) fn delta_files(tablet: &Tablet, rowset: &RowSet, reading: &Reading) -> Result<Vec<DeltaFile>> {
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
            let row = sorted_varint(&mut Cursor::new(&key, root.offset)).within(|| "value index")?;
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
    file.footer().pair(STATISTICS).map(container::decode).transpose().within(|| "deltafilestats")
}

/// Where the values of a wanted column come from, of a rowset with `all` rows; `None` if they are lost and so are
/// their rows.
pub(crate) fn column_source(
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
        let scan = ColumnScan::of_blocks(&opened.file, blocks, &column.arrow).map_err(explain)?;
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
