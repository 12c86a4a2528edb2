//! HFile as the registry knows it: single files, with their records if that is asked for, and Hudi's folders of them.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::format::check_options;
use coldframe_core::io::Folder;
use coldframe_core::options::text;
use coldframe_core::{
    BatchWriter, Capabilities, Error, Format, OpenOptions, OptionDoc, Result, Source, TableFile, WriteOptions,
};
use coldframe_hfile::{HFile, HFileFormat, OPEN_OPTIONS as OF_FILES};

use crate::records::RecordFile;
use crate::table::{self, MetadataTable};

/// HFiles of Hudi and of others; metadata tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct HudiFormat;

/// The options of `open`: those of HFile and one more.
const OPEN_OPTIONS: &[OptionDoc] = &[
    OF_FILES[0],
    OF_FILES[1],
    OF_FILES[2],
    OptionDoc {
        name: "decode",
        help: "\"avro\": Hudi's values also as a struct of the schema that the file holds",
    },
    OF_FILES[3],
];

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
        check_options(self.name(), &options.extra, OPEN_OPTIONS)?;
        let avro = match text(&options.extra, "decode")? {
            None => false,
            Some("avro") => true,
            Some(other) => {
                return Err(Error::invalid(format!("option `decode`: expected \"avro\", found {other:?}")));
            }
        };
        match (source, avro) {
            (Source::Folder { .. }, _) => Ok(Arc::new(MetadataTable::open(source, options)?)),
            (_, true) => Ok(Arc::new(RecordFile::open(source, options)?)),
            (_, false) => Ok(Arc::new(HFile::open(source, options)?)),
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

    fn open_options(&self) -> &'static [OptionDoc] {
        OPEN_OPTIONS
    }

    fn write_options(&self) -> &'static [OptionDoc] {
        HFileFormat.write_options()
    }
}
