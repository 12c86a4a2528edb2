//! How the files of a table are opened.

use std::sync::Arc;

use coldframe_core::options::Strings;
use coldframe_core::{Error, OpenOptions, Piece, Result, Source};

use super::storage::{Storage, Stores};
use crate::{File, open_source};

/// How files are opened.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The format's name; `None` means that it is detected from the bytes.
    pub format: Option<String>,
    /// The options of the format, including keys.
    pub options: OpenOptions,
    /// How the files are reached.
    pub storage: Arc<dyn Storage>,
}

impl Default for Opening {
    /// The default: any format; local files, or a store that needs no options.
    fn default() -> Self {
        Self { format: None, options: OpenOptions::default(), storage: Arc::new(Stores::default()) }
    }
}

impl Opening {
    /// Opens a source. `recorded`: the bytes that an earlier opening of the source read.
    pub fn open(&self, source: Source, recorded: Vec<Piece>) -> Result<File> {
        open_source(source, self.format.as_deref(), &self.options, recorded)
    }

    /// As [`Self::open`], for a file of which the table's metadata states the number of rows.
    pub(super) fn open_stated(
        &self,
        source: Source,
        recorded: Vec<Piece>,
        rows: Option<u64>,
    ) -> Result<File> {
        let file = self.open(source, recorded)?;
        match (rows, file.table.row_count()) {
            (Some(stated), Some(rows)) if stated != rows => {
                let what = format!("expected {stated} rows, as the table's metadata states, found {rows}");
                Err(file.named(Error::corrupt(what).within("file")))
            }
            _ => Ok(file),
        }
    }

    /// The share of one thread in the memory of a read.
    pub(super) fn memory_limit(&self) -> Result<u64> {
        let mut options = self.options.clone();
        options.take_common()?;
        Ok(options.limits.memory_limit)
    }

    /// The default layout of strings in scans.
    pub(super) fn strings(&self) -> Result<Option<Strings>> {
        let mut options = self.options.clone();
        options.take_common()?;
        Ok(options.strings)
    }
}
