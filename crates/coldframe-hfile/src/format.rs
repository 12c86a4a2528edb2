//! Registers HFile as a format.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::options::Options as _;
use coldframe_core::{
    BatchWriter, Capabilities, Format, OpenOptions, OptionSpec, Result, Source, TableFile, WriteOptions,
};

use crate::layout::block::{BlockType, MAGIC_LEN};
use crate::layout::trailer;
use crate::options;
use crate::table::HFile;
use crate::write;

/// HFile.
#[derive(Clone, Copy, Debug, Default)]
pub struct HFileFormat;

impl Format for HFileFormat {
    fn name(&self) -> &'static str {
        "hfile"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            keys: true,
            might_contain: true,
            written: true,
            endings: &["hfile"],
            ..Capabilities::default()
        }
    }

    fn probe(&self, head: &[u8], tail: &[u8]) -> bool {
        let magic = head.first_chunk::<MAGIC_LEN>().and_then(BlockType::from_magic);
        magic.is_some() || trailer::probe(tail)
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        options::OpenOptions::read(self.name(), &options.extra)?;
        Ok(Arc::new(HFile::open(source, options)?))
    }

    fn create(
        &self,
        sink: Box<dyn Write + Send>,
        schema: &SchemaRef,
        options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        let options = write::WriteOptions::read(self.name(), &options.extra)?;
        Ok(Box::new(write::Writer::new(sink, schema, options.try_into()?)?))
    }

    fn open_options(&self) -> &'static [OptionSpec] {
        options::OpenOptions::specs()
    }

    fn write_options(&self) -> &'static [OptionSpec] {
        write::WriteOptions::specs()
    }
}
