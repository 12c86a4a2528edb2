//! A folder whose files form one table, or that contains the neighbours of the opened file.

use std::fmt::Debug;
use std::sync::Arc;

use coldframe_encoding::Result;

use super::ReadAt;

/// A file or folder found by [`Folder::list`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path below the folder, parts joined by `/`. If a name is not text, it is replaced by a form that
    /// [`Folder::open`] and [`Folder::list`] understand.
    pub path: String,
    /// Length in bytes; 0 for a folder.
    pub len: u64,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// Files under a common root.
pub trait Folder: Send + Sync + Debug {
    /// The direct entries of `path` ("" is the root), sorted by name.
    fn list(&self, path: &str) -> Result<Vec<Entry>>;

    /// Opens the file at `path` below the root.
    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>>;

    /// The parent of this folder and its name there, if reachable: for tables that describe their files beside
    /// their folder.
    fn parent(&self) -> Result<Option<(Arc<dyn Folder>, String)>> {
        Ok(None)
    }
}
