//! ORC as one of the formats.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::format::check_options;
use coldframe_core::io::Folder;
use coldframe_core::options::text;
use coldframe_core::{
    BatchWriter, Error, Format, OpenOptions, OptionDoc, Result, Source, TableFile, WriteOptions,
};

use crate::acid::{self, AcidTable};
use crate::file::OrcFile;
use crate::options::{OPEN_OPTIONS, Options};
use crate::recover;
use crate::tail::MAGIC;
use crate::write::{self, WRITE_OPTIONS};

/// ORC.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrcFormat;

impl Format for OrcFormat {
    fn name(&self) -> &'static str {
        "orc"
    }

    /// The magic is at the start, or in front of the postscript's length.
    fn probe(&self, head: &[u8], tail: &[u8]) -> bool {
        let at_end = tail.split_last().is_some_and(|(length, rest)| *length > 3 && rest.ends_with(MAGIC));
        (head.starts_with(MAGIC) && tail.len() > MAGIC.len()) || at_end
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        check_options(self.name(), &options.extra, OPEN_OPTIONS)?;
        let read = Options::new(options)?;
        if options.schema.is_some() && !read.recover {
            let what = "a schema for ORC, whose files hold their own, without the option `recover`";
            return Err(Error::unsupported(what));
        }
        let (bytes, siblings) = match source {
            Source::File { bytes, siblings, .. } => (bytes, siblings),
            Source::Folder { folder, .. } if read.acid => {
                return Ok(Arc::new(AcidTable::open(folder.as_ref(), &read)?));
            }
            Source::Folder { .. } => {
                let what =
                    "the directory of a transactional Hive table without the option `acid`, which merges it";
                return Err(Error::unsupported(what));
            }
        };
        if !read.recover {
            return Ok(Arc::new(OrcFile::open(bytes.clone(), read)?));
        }
        let recover = || {
            let from = text(&options.extra, "schema_from")?;
            recover::recover(bytes, options.schema.as_ref(), from, siblings.as_deref(), &read.limits)
        };
        match OrcFile::open(bytes.clone(), read.clone()) {
            Ok(file) => Ok(Arc::new(file)),
            Err(e) if e.is_damage() => {
                let found = recover()?;
                Ok(Arc::new(OrcFile::new(bytes.clone(), found.tail, read, found.lost)?))
            }
            Err(e) => Err(e),
        }
    }

    fn probe_folder(&self, folder: &dyn Folder) -> Result<bool> {
        acid::state::is_acid(folder)
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
