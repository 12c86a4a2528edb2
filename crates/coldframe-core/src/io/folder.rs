//! A folder whose files together are one table, or that holds files beside the one opened.

use std::fmt::Debug;
use std::sync::Arc;

use coldframe_encoding::Result;

use super::ReadAt;

/// A file or folder found by [`Folder::list`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path below the folder, parts joined by `/`. Where a name is not text, something that [`Folder::open`] and
    /// [`Folder::list`] know it by stands for it.
    pub path: String,
    /// Length in bytes; 0 for a folder.
    pub len: u64,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// Files under a common root.
pub trait Folder: Send + Sync + Debug {
    /// What lies directly below `path` ("" is the root), sorted by name.
    fn list(&self, path: &str) -> Result<Vec<Entry>>;

    /// Opens the file at `path` below the root.
    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>>;

    /// The folder that this one lies in and its name there, where that can be reached: for tables that say beside
    /// their folder what its files mean.
    fn parent(&self) -> Result<Option<(Arc<dyn Folder>, String)>> {
        Ok(None)
    }
}
