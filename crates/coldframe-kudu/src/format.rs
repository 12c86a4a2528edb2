//! Registers Kudu data directories as a format.

use std::sync::Arc;

use coldframe_core::io::{Entry, Folder};
use coldframe_core::options::Options as _;
use coldframe_core::{
    Capabilities, Content, Error, Format, OpenOptions, OptionSpec, Result, Source, TableFile,
};

use crate::contents::contents;
use crate::open::tables;
use crate::options;
use crate::store::roots;
use crate::table::KuduTable;

/// The format of the file systems of one or several Kudu servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct KuduFormat;

impl Format for KuduFormat {
    fn name(&self) -> &'static str {
        "kudu"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            folders: true,
            tables: true,
            tables_of: Some("cfile"),
            side_by_side: true,
            ..Capabilities::default()
        }
    }

    fn probe(&self, _head: &[u8], _tail: &[u8]) -> bool {
        false
    }

    fn probe_folder(&self, folder: &dyn Folder) -> Result<bool> {
        roots::probe(folder)
    }

    fn tables(&self, source: &Source, options: &OpenOptions) -> Result<Vec<(String, String)>> {
        match source {
            Source::Folder { folder, path } => tables(folder, path, options),
            Source::File { .. } => {
                Err(Error::unsupported("tables of a file: expected a data directory of Kudu's"))
            }
        }
    }

    fn contents(&self, source: &Source, options: &OpenOptions) -> Result<Vec<Content>> {
        match source {
            Source::Folder { folder, path } => contents(folder, path, options),
            Source::File { .. } => Err(Error::invalid("expected a Kudu data directory, found a file")),
        }
    }

    fn unclaimed(&self, source: &Source, options: &OpenOptions) -> Result<Vec<Entry>> {
        match source {
            Source::Folder { folder, .. } => {
                roots::unclaimed(folder.as_ref(), !options.skip_checksums, &options.limits)
            }
            Source::File { .. } => Ok(Vec::new()),
        }
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        match source {
            Source::Folder { folder, path } => Ok(Arc::new(KuduTable::open(folder, path, options)?)),
            Source::File { .. } => Err(Error::invalid("expected a Kudu data directory, found a file")),
        }
    }

    fn open_options(&self) -> &'static [OptionSpec] {
        options::OpenOptions::specs()
    }
}
