//! Registers Hudi's tables as a format.

use std::sync::Arc;

use coldframe_core::io::{Entry, Folder};
use coldframe_core::options::Options as _;
use coldframe_core::{
    Capabilities, Content, Format, OpenOptions, OptionSpec, Piece, ReadAt, Result, Source, TableFile,
};

use crate::data::log_file::LogFile;
use crate::data::table::HudiTable;
use crate::data::{contents, open, options};
use crate::table::{self, MetadataTable};

/// The format of Hudi's tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct HudiTableFormat;

/// Where the metadata table is, below the table.
const METADATA: &str = ".hoodie/metadata";

impl Format for HudiTableFormat {
    fn name(&self) -> &'static str {
        "hudi"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { folders: true, ..Capabilities::default() }
    }

    /// A log file, which has no rows by itself.
    fn probe(&self, head: &[u8], _tail: &[u8]) -> bool {
        LogFile::probe(head)
    }

    /// A folder with `.hoodie`, unless it is a metadata table.
    fn probe_folder(&self, folder: &dyn Folder) -> Result<bool> {
        let has = folder.list("")?.iter().any(|e| e.is_folder && e.path == ".hoodie");
        Ok(has && !table::probe(folder)?)
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
        let given = options::OpenOptions::given(options)?;
        let Source::Folder { path, folder } = source else {
            return Ok(Arc::new(LogFile::open(source.bytes()?.as_ref(), options)?));
        };
        if given.metadata {
            let below = Below { root: folder.clone(), at: METADATA.to_owned() };
            let source = Source::Folder { path: path.clone(), folder: Arc::new(below) };
            let options = OpenOptions { extra: Default::default(), ..options.clone() };
            return Ok(Arc::new(MetadataTable::open(&source, &options, given.complete)?));
        }
        let state = recorded.first().map(|(state, _)| *state);
        Ok(Arc::new(HudiTable::open(folder, &given, options, state)?))
    }

    fn contents(&self, source: &Source, options: &OpenOptions) -> Result<Vec<Content>> {
        let given = options::OpenOptions::given(options)?;
        match source {
            Source::Folder { folder, .. } if !given.metadata => {
                contents::contents(folder.as_ref(), &open::open(folder, &given, options)?)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn unclaimed(&self, source: &Source, _options: &OpenOptions) -> Result<Vec<Entry>> {
        match source {
            Source::Folder { folder, .. } => contents::unclaimed(folder.as_ref()),
            Source::File { .. } => Ok(Vec::new()),
        }
    }

    fn open_options(&self) -> &'static [OptionSpec] {
        options::OpenOptions::specs()
    }
}

/// A folder below another folder.
#[derive(Debug)]
struct Below {
    root: Arc<dyn Folder>,
    at: String,
}

impl Below {
    fn path(&self, path: &str) -> String {
        if path.is_empty() { self.at.clone() } else { format!("{}/{path}", self.at) }
    }
}

impl Folder for Below {
    fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let entries = self.root.list(&self.path(path))?;
        let own = |path: &str| {
            path.strip_prefix(&self.at).and_then(|rest| rest.strip_prefix('/')).map(str::to_owned)
        };
        Ok(entries.into_iter().filter_map(|e| Some(Entry { path: own(&e.path)?, ..e })).collect())
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        self.root.open(&self.path(path))
    }

    fn parent(&self) -> Result<Option<(Arc<dyn Folder>, String)>> {
        match self.at.rsplit_once('/') {
            Some((above, name)) => {
                let above = Self { root: self.root.clone(), at: above.to_owned() };
                Ok(Some((Arc::new(above), name.to_owned())))
            }
            None => Ok(Some((self.root.clone(), self.at.clone()))),
        }
    }
}
