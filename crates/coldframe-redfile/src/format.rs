//! Registers Redfile as a format.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::io::{Entry, Folder};
use coldframe_core::options::Options as _;
use coldframe_core::{
    BatchWriter, Capabilities, Format, OpenOptions, OptionSpec, Result, Source, TableFile, WriteOptions,
};

use crate::layout::footer::MAGIC;
use crate::open::summary;
use crate::options;
use crate::table::RedFile;
use crate::write;

/// The format of Redfiles.
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

    fn unclaimed(&self, source: &Source, options: &OpenOptions) -> Result<Vec<Entry>> {
        match source {
            Source::Folder { folder, .. } => summary::unclaimed(folder.as_ref(), &options.limits),
            Source::File { .. } => Ok(Vec::new()),
        }
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        Ok(Arc::new(RedFile::open(source, options)?))
    }

    fn create(
        &self,
        sink: Box<dyn Write + Send>,
        schema: &SchemaRef,
        options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        let options = write::WriteOptions::read(self.name(), &options.extra)?;
        Ok(Box::new(write::Writer::new(sink, schema, options)?))
    }

    fn open_options(&self) -> &'static [OptionSpec] {
        options::OpenOptions::specs()
    }

    fn write_options(&self) -> &'static [OptionSpec] {
        write::WriteOptions::specs()
    }
}
