//! Registers RCFile as a format.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::options::Options as _;
use coldframe_core::{
    BatchWriter, Capabilities, Format, OpenOptions, OptionSpec, Result, Source, TableFile, WriteOptions,
};

use crate::layout::header::Header;
use crate::options;
use crate::table::RcFile;
use crate::write;

/// Hive RCFile.
#[derive(Clone, Copy, Debug, Default)]
pub struct RcFileFormat;

impl Format for RcFileFormat {
    fn name(&self) -> &'static str {
        "rcfile"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            needs_schema: true,
            written: true,
            endings: &["rc", "rcfile"],
            input_formats: &["RCFileInputFormat"],
            unit_option: Some("timestamp_unit"),
            ..Capabilities::default()
        }
    }

    fn probe(&self, head: &[u8], _tail: &[u8]) -> bool {
        Header::probe(head)
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        // Reports a wrong option before anything is read.
        options::OpenOptions::read(self.name(), &options.extra)?;
        Ok(Arc::new(RcFile::open(source, options)?))
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
