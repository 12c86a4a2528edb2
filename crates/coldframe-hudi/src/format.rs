//! Registers HFile as a format: single files, whose values are decoded as records if requested, and Hudi's
//! metadata tables.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::io::Folder;
use coldframe_core::options::Options as _;
use coldframe_core::{
    BatchWriter, Capabilities, Format, OpenOptions, OptionSpec, Result, Source, TableFile, WriteOptions,
};
use coldframe_hfile::{HFile, HFileFormat};

use crate::records::RecordFile;
use crate::table::{self, MetadataTable};

/// The format of HFiles and of Hudi's metadata tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct HudiFormat;

coldframe_core::choices! {
    /// How Hudi's values are decoded.
    #[non_exhaustive]
    pub enum Decode {
        /// By the Avro schema in the file.
        Avro = "avro",
    }
}

coldframe_core::options! {
    /// The options for the values of Hudi's files.
    pub struct RecordOptions for OpenOptions {
        /// "avro" adds a column with Hudi's values as structs, by the Avro schema stored in the file
        decode: Option<Decode>;
    }
}

coldframe_core::options! {
    /// All options for opening a file or a table.
    struct Given for OpenOptions {
        flatten files: coldframe_hfile::OpenOptions;
        flatten records: RecordOptions;
        /// for a metadata table of Hudi: true treats as damage what its timeline seems to lack. Default: a warning
        complete: bool;
    }
}

impl Format for HudiFormat {
    fn name(&self) -> &'static str {
        HFileFormat.name()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { folders: true, ..HFileFormat.capabilities() }
    }

    fn probe(&self, head: &[u8], tail: &[u8]) -> bool {
        HFileFormat.probe(head, tail)
    }

    fn probe_folder(&self, folder: &dyn Folder) -> Result<bool> {
        table::probe(folder)
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        let given = Given::read(self.name(), &options.extra)?;
        match (source, given.records.decode) {
            (Source::Folder { .. }, _) => Ok(Arc::new(MetadataTable::open(source, options, given.complete)?)),
            (_, Some(Decode::Avro)) => Ok(Arc::new(RecordFile::open(source, options)?)),
            (_, None) => Ok(Arc::new(HFile::open(source, options)?)),
        }
    }

    fn create(
        &self,
        sink: Box<dyn Write + Send>,
        schema: &SchemaRef,
        options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        HFileFormat.create(sink, schema, options)
    }

    fn open_options(&self) -> &'static [OptionSpec] {
        Given::specs()
    }

    fn write_options(&self) -> &'static [OptionSpec] {
        HFileFormat.write_options()
    }
}
