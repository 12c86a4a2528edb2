//! A folder whose files form one table, or the folder of an opened file.

use std::fmt::Debug;
use std::sync::Arc;

use coldframe_encoding::{Error, Result};

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

/// The deepest nesting of folders that [`files_below`] enters.
const MAX_DEPTH: usize = 64;

/// All files with bytes below a folder, also hidden files, whose paths `claims` does not claim.
pub fn files_below(folder: &dyn Folder, claims: &dyn Fn(&str) -> bool) -> Result<Vec<Entry>> {
    let (mut left, mut folders) = (Vec::new(), vec![(String::new(), 0)]);
    while let Some((path, depth)) = folders.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::unsupported(format!("more than {MAX_DEPTH} folders above a file: {path}")));
        }
        let entries = match folder.list(&path) {
            // Deleted since its parent was listed.
            Err(e) if depth > 0 && e.is_not_found() => continue,
            entries => entries?,
        };
        for entry in entries {
            if entry.is_folder {
                folders.push((entry.path, depth + 1));
            } else if entry.len > 0 && !claims(&entry.path) {
                left.push(entry);
            }
        }
    }
    left.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(left)
}

/// Files under a common root.
pub trait Folder: Send + Sync + Debug {
    /// The direct entries of `path` ("" is the root), sorted by name.
    fn list(&self, path: &str) -> Result<Vec<Entry>>;

    /// Opens the file at `path` below the root.
    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>>;

    /// The parent of this folder, if it is accessible, and this folder's name in the parent. Some tables keep
    /// metadata beside their folder.
    fn parent(&self) -> Result<Option<(Arc<dyn Folder>, String)>> {
        Ok(None)
    }
}
