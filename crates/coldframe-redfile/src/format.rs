//! Redfile as one of the formats.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::format::check_options;
use coldframe_core::io::Folder;
use coldframe_core::{
    BatchWriter, Capabilities, Format, OpenOptions, OptionDoc, Result, Source, TableFile, WriteOptions,
};

use crate::layout::footer::MAGIC;
use crate::open::summary;
use crate::options::OPEN_OPTIONS;
use crate::table::RedFile;
use crate::write::{self, WRITE_OPTIONS};

/// Redfile.
#[derive(Clone, Copy, Debug, Default)]
pub struct RedfileFormat;

impl Format for RedfileFormat {
    fn name(&self) -> &'static str {
        "redfile"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { folders: true, written: true, endings: &["red", "redelm"], ..Capabilities::default() }
    }

    fn probe(&self, head: &[u8], tail: &[u8]) -> bool {
        head.starts_with(MAGIC) || (tail.ends_with(MAGIC) && tail.len() >= 12) || summary::probe(head)
    }

    fn probe_folder(&self, folder: &dyn Folder) -> Result<bool> {
        Ok(folder.list("")?.iter().any(|e| !e.is_folder && e.path == summary::NAME))
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        check_options(self.name(), &options.extra, OPEN_OPTIONS)?;
        Ok(Arc::new(RedFile::open(source, options)?))
    }

    fn create(
        &self,
        sink: Box<dyn Write + Send>,
        schema: &SchemaRef,
        options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        check_options(self.name(), &options.extra, WRITE_OPTIONS)?;
        Ok(Box::new(write::Writer::new(sink, schema, write::write_options(options)?)?))
    }

    fn open_options(&self) -> &'static [OptionDoc] {
        OPEN_OPTIONS
    }

    fn write_options(&self) -> &'static [OptionDoc] {
        WRITE_OPTIONS
    }
}
