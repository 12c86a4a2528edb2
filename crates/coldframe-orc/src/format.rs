//! ORC as one of the formats.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::format::check_options;
use coldframe_core::options::text;
use coldframe_core::{
    BatchWriter, Capabilities, Error, ErrorKind, Format, OpenOptions, OptionDoc, Result, Source, TableFile,
    WriteOptions,
};

use crate::layout::tail::MAGIC;
use crate::open::{Recovery, Shape};
use crate::options::{OPEN_OPTIONS, Options};
use crate::recover;
use crate::table::OrcFile;
use crate::write::{self, WRITE_OPTIONS};

/// ORC.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrcFormat;

fn is_unsupported(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Unsupported(_))
}

impl Format for OrcFormat {
    fn name(&self) -> &'static str {
        "orc"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            written: true,
            endings: &["orc"],
            // A writer that got no row may leave such a file.
            empty_files: true,
            unit_option: Some("timestamp_unit"),
            ..Capabilities::default()
        }
    }

    /// The magic is at the start, or in front of the postscript's length.
    fn probe(&self, head: &[u8], tail: &[u8]) -> bool {
        let at_end = tail.split_last().is_some_and(|(length, rest)| *length > 3 && rest.ends_with(MAGIC));
        (head.starts_with(MAGIC) && tail.len() > MAGIC.len()) || at_end
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        check_options(self.name(), &options.extra, OPEN_OPTIONS)?;
        let read = Options::new(options)?;
        let Source::File { bytes, siblings, .. } = source else {
            return Err(Error::unsupported("a directory as an ORC file"));
        };
        let found = match OrcFile::open(bytes.clone(), read.clone()) {
            // What a cut file ends with may pass for a postscript that names a version or a codec which nobody knows.
            Err(e) if read.recover && (e.is_damage() || is_unsupported(&e)) => {
                let from = text(&options.extra, "schema_from")?;
                let found = recover::recover(bytes, &read, from, siblings.as_deref())
                    .map_err(|none| if is_unsupported(&e) && none.is_damage() { e } else { none })?;
                let mut shape = Shape::new(bytes.clone(), found.tail, read, found.lost)?;
                shape.recovered = Some(Recovery { proof: found.proof });
                OrcFile::new(shape)?
            }
            other => other?,
        };
        Ok(Arc::new(found))
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
