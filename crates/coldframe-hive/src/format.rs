//! Registers ORC as a format: `coldframe-orc` opens a single file, and this crate opens the directory of a
//! transactional table.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::io::{Entry, Folder};
use coldframe_core::options::Options as _;
use coldframe_core::{
    BatchWriter, Capabilities, Content, Error, Format, OpenOptions, OptionSpec, Piece, Result, Source,
    TableFile, WriteOptions,
};
use coldframe_orc::{Options, OrcFormat};

use crate::names;
use crate::state;
use crate::table::AcidTable;
use crate::write_ids::WriteIds;

coldframe_core::options! {
    /// How the directory of a transactional table is opened.
    pub struct TableOptions for OpenOptions {
        /// true opens the directory of a transactional Hive table as its live rows; false refuses it: open its files
        /// one by one instead
        acid: bool = true;
        /// the visible writes of a transactional table, in the form of Hive's ValidReaderWriteIdList:
        /// "table:highest:least open:open,..:aborted,.."; default: all
        acid_valid_write_ids: Option<String>;
        /// true treats as damage that a base or delta of a transactional table is missing, which later deletes prove; false
        /// accepts it. Default: a warning
        complete: Option<bool>;
    }
}

coldframe_core::options! {
    /// All options for opening a file or a directory.
    struct AllOptions for OpenOptions {
        flatten files: coldframe_orc::OpenOptions;
        flatten table: TableOptions;
    }
}

impl TableOptions {
    fn ids(&self) -> Result<Option<WriteIds>> {
        self.acid_valid_write_ids.as_deref().map(str::parse).transpose()
    }
}

/// The format of ORC files and of tables made of them.
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
        self.open_recorded(source, options, &[])
    }

    fn open_recorded(
        &self,
        source: &Source,
        options: &OpenOptions,
        recorded: &[Piece],
    ) -> Result<Arc<dyn TableFile>> {
        let AllOptions { files, table } = AllOptions::read(self.name(), &options.extra)?;
        let ids = table.ids()?.map(Arc::new);
        match source {
            Source::Folder { .. } if table.acid && files.row_numbers.is_some() => Err(Error::unsupported(
                "`row_numbers` with the directory of a transactional Hive table: its rows come from many \
                 files",
            )),
            Source::Folder { folder, .. } if table.acid => {
                let state = recorded.first().map(|(state, _)| *state);
                let options = Options::new(&files, options);
                Ok(Arc::new(AcidTable::open(folder.as_ref(), ids, table.complete, &options, state)?))
            }
            Source::Folder { .. } => Err(Error::unsupported(
                "the directory of a transactional Hive table with `acid` false: open its files one by one, or leave \
                 that option out",
            )),
            Source::File { .. } => coldframe_orc::open(source, &files, options),
        }
    }

    /// Writes that `acid_valid_write_ids` excludes but that may become visible: open writes and later writes.
    fn contents(&self, source: &Source, options: &OpenOptions) -> Result<Vec<Content>> {
        let AllOptions { table, .. } = AllOptions::read(self.name(), &options.extra)?;
        let (Source::Folder { folder, .. }, Some(ids)) = (source, table.ids()?) else {
            return Ok(Vec::new());
        };
        let uncounted = state::uncounted(folder.as_ref(), &ids)?;
        let left_out = |kind, count, note: &str| {
            (count > 0).then(|| Content::new(kind, "", Some(false)).counted(count, "directories").noted(note))
        };
        let later = "writes later than the list: it is unknown whether they are committed";
        let open = "open writes: it is unknown whether they will be committed";
        let all =
            [left_out("later writes", uncounted.later, later), left_out("open writes", uncounted.open, open)];
        Ok(all.into_iter().flatten().collect())
    }

    fn unclaimed(&self, source: &Source, _options: &OpenOptions) -> Result<Vec<Entry>> {
        match source {
            Source::Folder { folder, .. } => state::unclaimed(folder.as_ref()),
            Source::File { .. } => Ok(Vec::new()),
        }
    }

    fn probe_folder(&self, folder: &dyn Folder) -> Result<bool> {
        state::is_acid(folder)
    }

    fn is_part_of_folder(&self, name: &str) -> bool {
        names::is_part(name)
    }

    fn create(
        &self,
        sink: Box<dyn Write + Send>,
        schema: &SchemaRef,
        options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        OrcFormat.create(sink, schema, options)
    }

    fn open_options(&self) -> &'static [OptionSpec] {
        AllOptions::specs()
    }

    fn write_options(&self) -> &'static [OptionSpec] {
        OrcFormat.write_options()
    }
}
