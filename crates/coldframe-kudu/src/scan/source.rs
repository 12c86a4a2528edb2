//! The files and blocks of a rowset that a scan reads.
//!
//! ```text
//! rowset ── column files of the requested columns ──▶ positional index ──▶ blocks of a range of ordinals
//!        ── delta files that the snapshot needs ────▶ value index (row, time) ──▶ blocks of a range of rows
//! ```

use std::ops::Range;
use std::sync::Arc;

use coldframe_cfile::layout::block::BlockPointer;
use coldframe_cfile::layout::delta::sorted_varint;
use coldframe_cfile::open::CFile;
use coldframe_cfile::prune::walk::Step;
use coldframe_cfile::scan::column::ColumnScan;
use coldframe_core::salvage::Loss;
use coldframe_core::{Damage, Error, ErrorContext, Fault, OnError, PlanRequest, Result};
use coldframe_encoding::Cursor;

use crate::rowset::{Location, Opened, Reading, open_block, stats};
use crate::schema::Column;
use crate::tablet::{RowSet, Tablet};

/// Where the values of a requested column come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Entries from blocks of a file.
    File {
        scan: Arc<ColumnScan>,
        place: Arc<Location>,
        /// Ordinals whose blocks the index does not list.
        losses: Arc<Vec<Loss>>,
    },
    /// From the read default: the rowset is older than the column.
    Default,
    /// From nowhere: the column's file cannot be read, and its values are null.
    Lost,
}

/// A delta file that a snapshot needs.
#[derive(Clone, Debug)]
pub(crate) struct DeltaFile {
    pub(crate) opened: Opened,
    pub(crate) undo: bool,
    /// For each block, the row of its first entry and the pointer to the block.
    pub(crate) blocks: Vec<(u64, BlockPointer)>,
    /// Rows whose entries may be lost, because an index block cannot be read.
    pub(crate) losses: Vec<Loss>,
}

impl DeltaFile {
    /// The blocks that may hold entries of `rows`.
    pub(crate) fn part(&self, rows: &Range<u64>) -> Range<usize> {
        // The entries of one row may continue in the next block.
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

/// Opens the delta files that the snapshot needs, in the order in which they apply.
pub(crate) fn delta_files(
    tablet: &Tablet,
    rowset: &RowSet,
    tolerant: bool,
    reading: &Reading,
) -> Result<Vec<DeltaFile>> {
    let mut files = Vec::new();
    // Without a snapshot, all operations are applied and none is undone.
    let undo = rowset.undo.iter().filter(|_| reading.snapshot.is_some());
    let all = undo.map(|id| (*id, true)).chain(rowset.redo.iter().map(|id| (*id, false)));
    for (id, undo) in all {
        let what = if undo { "UNDO deltas" } else { "REDO deltas" };
        let opened = open_block(tablet, id, what, reading)?;
        let place = opened.place.clone();
        let file = delta_file(opened, undo, tolerant, reading).map_err(|e| place.explain(e))?;
        files.extend(file);
    }
    Ok(files)
}

fn delta_file(opened: Opened, undo: bool, tolerant: bool, reading: &Reading) -> Result<Option<DeltaFile>> {
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
    let index = Index { file: &opened.file, root, tolerant };
    let (blocks, losses) = index.read().within(|| "value index")?;
    Ok(Some(DeltaFile { opened, undo, blocks, losses }))
}

/// The row of a block's first entry, and the block.
type DeltaBlock = (u64, BlockPointer);

/// The value index of a delta file.
struct Index<'a> {
    file: &'a CFile,
    root: BlockPointer,
    tolerant: bool,
}

impl Index<'_> {
    /// The blocks, each with the row of its first entry. If losses are tolerated, also the rows whose entries
    /// may be lost.
    fn read(&self) -> Result<(Vec<DeltaBlock>, Vec<Loss>)> {
        let mut walk = self.file.walk(self.root)?;
        if self.tolerant {
            walk = walk.lossy();
        }
        let (mut blocks, mut losses) = (Vec::new(), Vec::<Loss>::new());
        // The row at which the last step began, and the loss that has begun there and not ended.
        let (mut at, mut open) = (0u64, None::<Loss>);
        while let Some(step) = walk.step()? {
            let (key, block) = match step {
                Step::Index { .. } => continue,
                Step::Block(key, pointer) => (Some(key), Ok(pointer)),
                Step::Lost { key, bytes, error } => (key, Err((bytes, error))),
            };
            let row = key.map(|key| self.row(&key, at)).transpose();
            let (row, block) = match row {
                Ok(row) => (row.unwrap_or(at), block),
                Err(e) if self.tolerant => (at, Err((self.root.range(), e.reason()))),
                Err(e) => return Err(e),
            };
            if let Some(mut loss) = open.take() {
                // The block after the loss may begin with entries of the same row.
                loss.rows.end = row.saturating_add(1);
                losses.push(loss);
            }
            match block {
                Ok(pointer) => blocks.push((row, pointer)),
                Err((bytes, reason)) => {
                    let structure = "value index".to_owned();
                    open = Some(Loss { rows: row..u64::MAX, bytes, structure, reason });
                }
            }
            at = row;
        }
        losses.extend(open);
        Ok((blocks, losses))
    }

    /// The row of a key. The row must be at least `least`.
    fn row(&self, key: &[u8], least: u64) -> Result<u64> {
        let row = sorted_varint(&mut Cursor::new(key, self.root.offset))?;
        if row >= least {
            return Ok(row);
        }
        let e = format!("expected rows in order, found {row} after a later one");
        Err(Error::corrupt(e).at(self.root.offset))
    }
}

/// The source of a requested column, in a rowset of `all` rows; `None` if the column is lost and its rows are
/// dropped with it.
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
        let mut losses = Vec::new();
        let blocks = if tolerant {
            opened.file.blocks_lossy(rows.clone(), &mut losses).map_err(explain)?
        } else {
            opened.file.blocks(rows.clone()).map_err(explain)?
        };
        let scan = ColumnScan::of_blocks(&opened.file, blocks, &column.arrow).map_err(explain)?;
        Ok(Source::File { scan: Arc::new(scan), place: opened.place.clone(), losses: Arc::new(losses) })
    };
    match open() {
        Ok(source) => Ok(Some(source)),
        Err(e) if tolerant && Fault::is(&e) => {
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

/// Fails if the file's type differs from the column's, or its length from the rowset's: it is then not the
/// file of this column.
fn check_file(file: &CFile, column: &Column, rows: u64) -> Result<()> {
    let (actual, values) = (file.footer().data_type, file.footer().num_values);
    if actual != column.data_type {
        return Err(Error::corrupt(format!("expected values of type {}, found {actual}", column.data_type)));
    }
    if values != rows {
        return Err(Error::corrupt(format!(
            "expected {rows} values as in the rowset's first column, found {values}"
        )));
    }
    Ok(())
}
