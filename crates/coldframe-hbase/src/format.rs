//! Registers HBase's directories as a format.

use std::collections::BTreeMap;
use std::sync::Arc;

use coldframe_core::io::{Entry, Folder};
use coldframe_core::options::Options as _;
use coldframe_core::{
    Capabilities, Content, Error, Format, OpenOptions, OptionSpec, Piece, Result, Source, TableFile,
};

use crate::contents::contents;
use crate::open::tables;
use crate::options;
use crate::own_files::unclaimed;
use crate::root;
use crate::splits::packed;
use crate::table::HBaseTable;

/// The format of root directories, of the folders of tables in them, and of snapshots.
#[derive(Clone, Copy, Debug, Default)]
pub struct HBaseFormat;

impl Format for HBaseFormat {
    fn name(&self) -> &'static str {
        "hbase"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { folders: true, keys: true, tables: true, ..Capabilities::default() }
    }

    fn probe(&self, _head: &[u8], _tail: &[u8]) -> bool {
        false
    }

    fn probe_folder(&self, folder: &dyn Folder) -> Result<bool> {
        root::probe(folder)
    }

    fn tables(&self, source: &Source, _options: &OpenOptions) -> Result<Vec<(String, String)>> {
        let Source::Folder { folder, .. } = source else {
            return Err(Error::unsupported("tables of a file: expected a root directory of HBase"));
        };
        Ok(tables(folder)?.iter().map(|table| (table.to_string(), table.shown())).collect())
    }

    fn contents(&self, source: &Source, options: &OpenOptions) -> Result<Vec<Content>> {
        match source {
            Source::Folder { folder, .. } => contents(folder, options),
            Source::File { .. } => Err(Error::invalid("expected a root directory of HBase, found a file")),
        }
    }

    fn unclaimed(&self, source: &Source, options: &OpenOptions) -> Result<Vec<Entry>> {
        match source {
            Source::Folder { folder, .. } => unclaimed(folder, options),
            Source::File { .. } => Ok(Vec::new()),
        }
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        match source {
            Source::Folder { folder, .. } => Ok(Arc::new(HBaseTable::open(folder, options)?)),
            Source::File { .. } => Err(Error::invalid("expected a root directory of HBase, found a file")),
        }
    }

    fn open_recorded(
        &self,
        source: &Source,
        options: &OpenOptions,
        recorded: &[Piece],
    ) -> Result<Arc<dyn TableFile>> {
        match source {
            Source::Folder { folder, .. } => {
                Ok(Arc::new(HBaseTable::open_recorded(folder, options, recorded)?))
            }
            Source::File { .. } => self.open(source, options),
        }
    }

    fn shared(&self, source: &Source, options: &OpenOptions) -> Result<BTreeMap<String, Vec<Piece>>> {
        match source {
            Source::Folder { folder, .. } => packed::shared(folder, options),
            Source::File { .. } => Ok(BTreeMap::new()),
        }
    }

    fn open_options(&self) -> &'static [OptionSpec] {
        options::OpenOptions::specs()
    }
}
