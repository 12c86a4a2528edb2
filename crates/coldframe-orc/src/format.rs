//! Registers ORC as a format.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::options::Options as _;
use coldframe_core::{
    BatchWriter, Capabilities, Error, ErrorKind, Format, OpenOptions, OptionSpec, Result, Source, TableFile,
    WriteOptions,
};

use crate::layout::tail::MAGIC;
use crate::open::{Recovery, Shape};
use crate::options::{self, Declares, Options};
use crate::recover;
use crate::table::OrcFile;
use crate::write;

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
            // A writer that received no rows may leave an empty file.
            empty_files: true,
            input_formats: &["OrcInputFormat", "OrcNewInputFormat"],
            unit_option: Some("timestamp_unit"),
            zone_option: Some("timestamps_in"),
            row_numbers_option: Some("row_numbers"),
            ..Capabilities::default()
        }
    }

    /// The magic bytes are at the start of the file, or before the length of the postscript.
    fn probe(&self, head: &[u8], tail: &[u8]) -> bool {
        let at_end = tail.split_last().is_some_and(|(length, rest)| *length > 3 && rest.ends_with(MAGIC));
        (head.starts_with(MAGIC) && tail.len() > MAGIC.len()) || at_end
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        open(source, &options::OpenOptions::read(self.name(), &options.extra)?, options)
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

/// Opens a file with the format's own options (`given`) and the options of all formats.
pub fn open(
    source: &Source,
    given: &options::OpenOptions,
    options: &OpenOptions,
) -> Result<Arc<dyn TableFile>> {
    let mut read = Options::new(given, options);
    read.converts = given.schema_of == Declares::Hive;
    let Source::File { bytes, siblings, .. } = source else {
        return Err(Error::unsupported("a directory as an ORC file"));
    };
    let file = match OrcFile::open(bytes.clone(), read.clone()) {
        // The end of a truncated file may look like a postscript with an unknown version or codec.
        Err(e) if read.recover && (e.is_confined() || is_unsupported(&e)) => {
            let from = given.schema_from.as_deref();
            let recovered = recover::recover(bytes, &read, from, siblings.as_deref())
                .map_err(|none| if is_unsupported(&e) && none.is_damage() { e } else { none })?;
            let mut shape = Shape::new(bytes.clone(), recovered.tail, read, recovered.lost)?;
            shape.recovered = Some(Recovery { proof: recovered.proof });
            OrcFile::new(shape)?
        }
        other => other?,
    };
    file.converted()
}
