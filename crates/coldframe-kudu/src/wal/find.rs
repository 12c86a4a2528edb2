//! Rows of rowsets by their keys, and whether they are there.

use std::sync::Arc;

use coldframe_cfile::layout::delta::{ChangeType, Delta, entries};
use coldframe_cfile::prune::find::KeyFinder;
use coldframe_core::{Error, ErrorContext, Result};

use crate::prune::rows::key_index;
use crate::rowset::{Location, Reading, open_block};
use crate::scan::source::{DeltaFile, delta_files};
use crate::tablet::{RowSet, Tablet};

/// A rowset, searched by keys.
pub(crate) struct RowSetKeys<'a> {
    tablet: &'a Tablet,
    rowset: &'a RowSet,
    reading: Reading,
    finder: KeyFinder,
    place: Arc<Location>,
    /// REDO files, once they are asked for.
    redo: Option<Vec<DeltaFile>>,
}

impl<'a> RowSetKeys<'a> {
    /// Opens the file that is sorted by keys.
    pub(crate) fn open(tablet: &'a Tablet, rowset: &'a RowSet, reading: &Reading) -> Result<Self> {
        let missing = || Error::corrupt("expected a file that is sorted by keys, found none");
        let (id, _) = key_index(tablet, rowset).ok_or_else(missing)?;
        let index = open_block(tablet, id, "key index", reading)?;
        let finder = KeyFinder::new(index.file).map_err(|e| index.place.explain(e))?;
        // All operations count, whatever the snapshot: it is the newest state that is changed.
        let reading = Reading { snapshot: None, ..*reading };
        Ok(Self { tablet, rowset, reading, finder, place: index.place, redo: None })
    }

    /// The ordinal of a key, if the rowset has it; its row may be deleted.
    pub(crate) fn ordinal(&mut self, key: &[u8]) -> Result<Option<u64>> {
        self.finder.find(key).map_err(|e| self.place.explain(e))
    }

    /// Whether the row is there after all that was flushed.
    pub(crate) fn is_there(&mut self, row: u64) -> Result<bool> {
        let files = match self.redo.take() {
            Some(files) => files,
            None => delta_files(self.tablet, self.rowset, false, &self.reading)?,
        };
        let mut there = true;
        for file in &files {
            for (_, pointer) in file.blocks.get(file.part(&(row..row.saturating_add(1)))).unwrap_or_default()
            {
                let look = || -> Result<Option<bool>> {
                    let cfile = &file.opened.file;
                    cfile.format().limits.block("delta block", pointer.size.into())?;
                    let stored = cfile.source().read(pointer.range())?;
                    let block = cfile.format().open_owned(&stored, pointer.offset)?;
                    let (mut places, mut found) = (Vec::new(), None);
                    for entry in entries(&block, pointer.offset, &mut places)? {
                        let delta = Delta::parse(entry, pointer.offset)?;
                        if delta.row == row && delta.kind != ChangeType::Update {
                            found = Some(delta.kind == ChangeType::Reinsert);
                        }
                    }
                    Ok(found)
                };
                let found = look().within(|| "delta block").map_err(|e| file.opened.place.explain(e))?;
                there = found.unwrap_or(there);
            }
        }
        self.redo = Some(files);
        Ok(there)
    }
}
