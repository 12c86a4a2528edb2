//! Opens the files of a rowset.

use std::sync::Arc;

use coldframe_cfile::layout::delta::STATISTICS;
use coldframe_cfile::open::CFile;
use coldframe_core::{Error, ErrorContext, Limits, Result};

use crate::layout::container;
use crate::layout::proto::DeltaStats;
use crate::tablet::{RowSet, Tablet};

/// How files are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) verify: bool,
    pub(crate) limits: Limits,
    /// Only operations before this hybrid time are read; `None` means all.
    pub(crate) snapshot: Option<u64>,
}

/// A CFile of a rowset and its location.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) file: Arc<CFile>,
    pub(crate) place: Arc<Location>,
}

/// Where a CFile is, as errors and damage records state it.
#[derive(Debug)]
pub(crate) struct Location {
    /// What the CFile is: `column 'x' (block 17)`.
    pub(crate) name: String,
    /// The path of the file that holds the CFile.
    pub(crate) path: String,
    /// The offset of the CFile in that file.
    pub(crate) offset: u64,
}

impl Location {
    /// Turns an error in the CFile into an error in the file that holds it, with the offset in that file.
    pub(crate) fn explain(&self, e: Error) -> Error {
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
pub(crate) fn open_block(tablet: &Tablet, id: u64, what: &str, reading: &Reading) -> Result<Opened> {
    let name = format!("{what} (block {id})");
    let block = tablet.server.store.open(id).within(|| name.clone())?;
    let path = tablet.server.store.full_path(&block.path);
    let place = Location { name, path, offset: block.offset };
    match CFile::open(block.bytes, reading.verify, reading.limits) {
        Ok(file) => Ok(Opened { file: Arc::new(file), place: Arc::new(place) }),
        Err(e) => Err(place.explain(e)),
    }
}

/// The number of rows of a rowset, including deleted ones, as the first readable column states it.
pub(crate) fn row_count(tablet: &Tablet, rowset: &RowSet, reading: &Reading) -> Result<u64> {
    let mut first_error = None;
    for (id, block) in &rowset.columns {
        match open_block(tablet, *block, &format!("column number {id}"), reading) {
            Ok(opened) => return Ok(opened.file.footer().num_values),
            Err(e) => first_error = first_error.or(Some(e)),
        }
    }
    Err(first_error.unwrap_or_else(|| Error::corrupt("expected a rowset with columns, found one without")))
}

/// The bytes that the columns of a rowset take.
pub(crate) fn column_bytes(tablet: &Tablet, rowset: &RowSet) -> u64 {
    let bytes = rowset.columns.values().map(|id| tablet.server.store.open(*id).map_or(0, |b| b.bytes.len()));
    bytes.sum()
}

/// The statistics of a delta file.
pub(crate) fn stats(file: &CFile) -> Result<Option<DeltaStats>> {
    file.footer().pair(STATISTICS).map(container::decode).transpose().within(|| "deltafilestats")
}

/// The time of the newest flushed operation, according to the delta files.
pub(crate) fn newest_operation(tablet: &Tablet, reading: &Reading) -> Option<u64> {
    let deltas = tablet.rowsets.iter().flat_map(|rowset| rowset.redo.iter().chain(&rowset.undo));
    let newest = |id: &u64| {
        let opened = open_block(tablet, *id, "deltas", reading).ok()?;
        stats(&opened.file).ok()??.max_timestamp
    };
    deltas.filter_map(newest).max()
}
