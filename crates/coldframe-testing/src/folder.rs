//! A directory in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::io::{Entry, Folder};
use coldframe_core::{Error, ReadAt, Result, Source};

/// Files by path relative to the root, with `/` as separator.
#[derive(Clone, Debug, Default)]
pub struct MemoryFolder {
    /// The files.
    pub files: BTreeMap<String, Bytes>,
}

impl MemoryFolder {
    /// All files below `root` on the disk.
    pub fn load(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut open = vec![root.to_owned()];
        while let Some(folder) = open.pop() {
            for item in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
                let path = item.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let below = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                    files.insert(below, std::fs::read(&path).unwrap().into());
                }
            }
        }
        Self { files }
    }

    /// A copy with different content in one file.
    #[must_use]
    pub fn with(&self, path: &str, bytes: impl Into<Bytes>) -> Self {
        let mut files = self.files.clone();
        files.insert(path.to_owned(), bytes.into());
        Self { files }
    }

    /// The folder as a source that can be opened.
    pub fn source(&self) -> Source {
        Source::Folder { path: "memory".into(), folder: Arc::new(self.clone()) }
    }
}

impl Folder for MemoryFolder {
    fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let below = if path.is_empty() { String::new() } else { format!("{path}/") };
        let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
        for (name, bytes) in &self.files {
            let Some(rest) = name.strip_prefix(&below) else { continue };
            let (path, is_folder) = match rest.split_once('/') {
                Some((folder, _)) => (format!("{below}{folder}"), true),
                None => (name.clone(), false),
            };
            let len = if is_folder { 0 } else { bytes.len() as u64 };
            entries.insert(path.clone(), Entry { path, len, is_folder });
        }
        if entries.is_empty() && !path.is_empty() {
            return Err(Error::not_found(path));
        }
        Ok(entries.into_values().collect())
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        match self.files.get(path) {
            Some(bytes) => Ok(Arc::new(bytes.clone())),
            None => Err(Error::not_found(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_has_a_single_level() {
        let folder =
            MemoryFolder::default().with("a/b", &b"xy"[..]).with("a/c/d", &b"z"[..]).with("e", &b""[..]);
        let names = |path: &str| -> Vec<(String, bool)> {
            folder.list(path).unwrap().into_iter().map(|e| (e.path, e.is_folder)).collect()
        };
        assert_eq!(names(""), [("a".to_owned(), true), ("e".to_owned(), false)]);
        assert_eq!(names("a"), [("a/b".to_owned(), false), ("a/c".to_owned(), true)]);
        assert!(folder.list("x").is_err() && folder.open("a").is_err());
        assert_eq!(folder.open("a/c/d").unwrap().len(), 1);
    }
}
