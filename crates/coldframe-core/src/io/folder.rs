//! A folder whose files form one table, or the folder of an opened file.

use std::fmt::Debug;
use std::sync::Arc;

use coldframe_encoding::Result;

use super::ReadAt;

/// A file or folder listed by [`Folder::list`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path below the folder, parts joined by `/`. A name that is not UTF-8 is encoded in a form that
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

    /// The parent of this folder, if it can be reached, and this folder's name in the parent. Some tables
    /// keep metadata beside their folder.
    fn parent(&self) -> Result<Option<(Arc<dyn Folder>, String)>> {
        Ok(None)
    }
}
