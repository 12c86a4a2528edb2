//! Registers single CFiles as a format.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::options::Options as _;
use coldframe_core::{
    BatchWriter, Capabilities, Format, OpenOptions, OptionSpec, Result, Source, TableFile, WriteOptions,
};

use crate::layout::types::{MAGIC_V1, MAGIC_V2};
use crate::options::{self, Options};
use crate::table::CFileTable;

/// The format of a single CFile, which has one column.
#[derive(Clone, Copy, Debug, Default)]
pub struct CFileFormat;

impl Format for CFileFormat {
    fn name(&self) -> &'static str {
        "cfile"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            seek: true,
            lookup: true,
            might_contain: true,
            written: true,
            endings: &["cfile"],
            ..Capabilities::default()
        }
    }

    fn probe(&self, head: &[u8], tail: &[u8]) -> bool {
        let ends = tail.last_chunk::<12>().and_then(|t| t.first_chunk::<8>());
        head.starts_with(MAGIC_V2)
            || head.starts_with(MAGIC_V1)
            || ends.is_some_and(|m| m == MAGIC_V2 || m == MAGIC_V1)
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        Ok(Arc::new(CFileTable::open(source.bytes()?.clone(), Options::new(options)?)?))
    }

    fn create(
        &self,
        sink: Box<dyn Write + Send>,
        schema: &SchemaRef,
        options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        let options = crate::write::Options::read(self.name(), &options.extra)?;
        Ok(Box::new(crate::write::Writer::new(sink, schema, &options)?))
    }

    fn open_options(&self) -> &'static [OptionSpec] {
        options::OpenOptions::specs()
    }

    fn write_options(&self) -> &'static [OptionSpec] {
        crate::write::Options::specs()
    }
}
