//! HBase's directories as one of the formats.

use std::sync::Arc;

use coldframe_core::format::check_options;
use coldframe_core::io::Folder;
use coldframe_core::{Capabilities, Error, Format, OpenOptions, OptionDoc, Result, Source, TableFile};

use crate::options::OPEN_OPTIONS;
use crate::root;
use crate::table::HBaseTable;

/// Root directories, the folders of tables in them, snapshots.
#[derive(Clone, Copy, Debug, Default)]
pub struct HBaseFormat;

impl Format for HBaseFormat {
    fn name(&self) -> &'static str {
        "hbase"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { folders: true, keys: true, ..Capabilities::default() }
    }

    fn probe(&self, _head: &[u8], _tail: &[u8]) -> bool {
        false
    }

    fn probe_folder(&self, folder: &dyn Folder) -> Result<bool> {
        root::probe(folder)
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        check_options(self.name(), &options.extra, OPEN_OPTIONS)?;
        match source {
            Source::Folder { folder, .. } => Ok(Arc::new(HBaseTable::open(folder, options)?)),
            Source::File { .. } => Err(Error::invalid("expected a root directory of HBase, found a file")),
        }
    }

    fn open_options(&self) -> &'static [OptionDoc] {
        OPEN_OPTIONS
    }
}
