//! ORC as one of the formats: a single file is one of `coldframe-orc`; a directory is a transactional table.

use std::io::Write;
use std::sync::{Arc, LazyLock};

use arrow_schema::SchemaRef;
use coldframe_core::format::check_options;
use coldframe_core::io::Folder;
use coldframe_core::options::{flag, text};
use coldframe_core::{
    BatchWriter, Capabilities, Error, Format, OpenOptions, OptionDoc, Result, Source, TableFile, WriteOptions,
};
use coldframe_orc::{Options, OrcFormat};

use crate::state;
use crate::table::AcidTable;

/// What directories are told by.
const TABLE_OPTIONS: [OptionDoc; 2] = [
    OptionDoc {
        name: "acid",
        help: "the directory of a transactional Hive table opens as its live rows; false refuses it, for those \
               who want its files one by one",
    },
    OptionDoc {
        name: "acid_valid_write_ids",
        help: "of a transactional table: which writes count, as Hive's ValidReaderWriteIdList has it: \
               \"table:highest:least open:open,..:aborted,..\"; default all",
    },
];

/// Those and the ones of files.
static OPEN_OPTIONS: LazyLock<Vec<OptionDoc>> =
    LazyLock::new(|| OrcFormat.open_options().iter().chain(&TABLE_OPTIONS).copied().collect());

/// ORC files and tables of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct HiveFormat;

impl Format for HiveFormat {
    fn name(&self) -> &'static str {
        OrcFormat.name()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { folders: true, folder_option: Some("acid"), ..OrcFormat.capabilities() }
    }

    fn probe(&self, head: &[u8], tail: &[u8]) -> bool {
        OrcFormat.probe(head, tail)
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        check_options(self.name(), &options.extra, self.open_options())?;
        let acid = !options.extra.contains_key("acid") || flag(&options.extra, "acid")?;
        let ids = text(&options.extra, "acid_valid_write_ids")?;
        let ids = ids.map(|list| list.parse().map(Arc::new)).transpose()?;
        let mut of_files = options.clone();
        of_files.extra.retain(|name, _| TABLE_OPTIONS.iter().all(|option| option.name != name));
        match source {
            Source::Folder { folder, .. } if acid => {
                Ok(Arc::new(AcidTable::open(folder.as_ref(), ids, &Options::new(&of_files)?)?))
            }
            Source::Folder { .. } => Err(Error::unsupported(
                "the directory of a transactional Hive table with `acid` false: open its files one by one, or leave \
                 that option out",
            )),
            Source::File { .. } => OrcFormat.open(source, &of_files),
        }
    }

    fn probe_folder(&self, folder: &dyn Folder) -> Result<bool> {
        state::is_acid(folder)
    }

    fn create(
        &self,
        sink: Box<dyn Write + Send>,
        schema: &SchemaRef,
        options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        OrcFormat.create(sink, schema, options)
    }

    fn open_options(&self) -> &'static [OptionDoc] {
        &OPEN_OPTIONS
    }

    fn write_options(&self) -> &'static [OptionDoc] {
        OrcFormat.write_options()
    }
}
