//! Entries of a directory that are no files: pipes, sockets, devices, links that lead to themselves.

use std::path::Path;

use coldframe_store::special_kind;

use super::file_entry::FileEntry;
use super::storage::{Storage, os_path};

/// The kind of an entry that is no file. Such entries are listed without bytes.
pub(crate) fn special_of(storage: &dyn Storage, entry: &FileEntry) -> Option<&'static str> {
    let path = os_path(&entry.path);
    let is_empty = entry.known.as_ref().is_some_and(|known| known.len == 0);
    if is_empty && storage.is_of_this_machine(&path) { special_kind(Path::new(&path)) } else { None }
}
