//! Finds rows of rowsets by key, and whether they exist.

use std::sync::Arc;

use coldframe_cfile::layout::delta::{ChangeType, Delta, entries};
use coldframe_cfile::prune::find::KeyFinder;
use coldframe_core::{Error, ErrorContext, Result};

use crate::prune::rows::key_index;
use crate::rowset::{Location, Reading, open_block};
use crate::scan::source::{DeltaFile, delta_files};
use crate::tablet::{RowSet, Tablet};

/// A rowset that is searched by key.
pub(crate) struct RowSetKeys<'a> {
    tablet: &'a Tablet,
    rowset: &'a RowSet,
    reading: Reading,
    finder: KeyFinder,
    place: Arc<Location>,
    /// The REDO delta files, opened on first use.
    redo: Option<Vec<DeltaFile>>,
}

impl<'a> RowSetKeys<'a> {
    /// Opens the file of the rowset that is sorted by key.
    pub(crate) fn open(tablet: &'a Tablet, rowset: &'a RowSet, reading: &Reading) -> Result<Self> {
        let missing = || Error::corrupt("expected a file that is sorted by keys, found none");
        let (id, _) = key_index(tablet, rowset).ok_or_else(missing)?;
        let index = open_block(tablet, id, "key index", reading)?;
        let finder = KeyFinder::new(index.file).map_err(|e| index.place.explain(e))?;
        // All operations are read, whatever the snapshot, since the log changes the newest state.
        let reading = Reading { snapshot: None, ..*reading };
        Ok(Self { tablet, rowset, reading, finder, place: index.place, redo: None })
    }

    /// The ordinal of a key, if the rowset has it. The row may be deleted.
    pub(crate) fn ordinal(&mut self, key: &[u8]) -> Result<Option<u64>> {
        self.finder.find(key).map_err(|e| self.place.explain(e))
    }

    /// Whether the row exists after all flushed changes.
    pub(crate) fn exists(&mut self, row: u64) -> Result<bool> {
        let files = match self.redo.take() {
            Some(files) => files,
            None => delta_files(self.tablet, self.rowset, false, &self.reading)?,
        };
        let mut live = true;
        for file in &files {
            for (_, pointer) in file.blocks.get(file.part(&(row..row.saturating_add(1)))).unwrap_or_default()
            {
                let look = || -> Result<Option<bool>> {
                    let cfile = &file.opened.file;
                    cfile.format().limits.block("delta block", pointer.size.into())?;
                    let stored = cfile.source().read(pointer.range())?;
                    let block = cfile.format().open_owned(&stored, pointer.offset)?;
                    let (mut places, mut exists) = (Vec::new(), None);
                    for entry in entries(&block, pointer.offset, &mut places)? {
                        let delta = Delta::parse(entry, pointer.offset)?;
                        if delta.row == row && delta.kind != ChangeType::Update {
                            exists = Some(delta.kind == ChangeType::Reinsert);
                        }
                    }
                    Ok(exists)
                };
                let exists = look().within(|| "delta block").map_err(|e| file.opened.place.explain(e))?;
                live = exists.unwrap_or(live);
            }
        }
        self.redo = Some(files);
        Ok(live)
    }
}
