//! A folder of the local file system.

use std::path::PathBuf;
use std::sync::Arc;

use coldframe_core::io::{Entry, Folder};
use coldframe_core::{Error, ReadAt, Result};

use crate::file::{LocalFile, is_loop, not_found_or_io};
use crate::name::{from_text, to_text};

/// A folder of the local file system. Paths that lead out of the folder are refused.
#[derive(Debug)]
pub struct LocalFolder {
    root: PathBuf,
}

impl LocalFolder {
    /// The folder at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn resolve(&self, path: &str) -> Result<PathBuf> {
        let relative = PathBuf::from(from_text(path));
        let inside = relative.components().all(|c| matches!(c, std::path::Component::Normal(_)));
        if !inside {
            return Err(Error::invalid(format!("expected a path below the folder, found {path:?}")));
        }
        Ok(self.root.join(relative))
    }
}

impl Folder for LocalFolder {
    fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let folder = self.resolve(path)?;
        let mut entries = Vec::new();
        for item in std::fs::read_dir(&folder).map_err(|e| not_found_or_io(e, &folder))? {
            let item = item?;
            let name = to_text(&item.file_name());
            // The call follows links, as `open` does.
            let meta = match std::fs::metadata(item.path()) {
                Ok(meta) => meta,
                // Deleted since it was listed, or a broken link: there is no such file to read.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound || is_loop(&e) => continue,
                Err(e) => return Err(e.into()),
            };
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            let len = if meta.is_dir() { 0 } else { meta.len() };
            entries.push(Entry { path, len, is_folder: meta.is_dir() });
        }
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(LocalFile::open(self.resolve(path)?)?))
    }

    fn parent(&self) -> Result<Option<(Arc<dyn Folder>, String)>> {
        let root = std::fs::canonicalize(&self.root).map_err(|e| not_found_or_io(e, &self.root))?;
        let (Some(parent), Some(name)) = (root.parent(), root.file_name()) else { return Ok(None) };
        Ok(Some((Arc::new(LocalFolder::new(parent)), to_text(name))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::write(dir.path().join("a/b"), b"xyz").unwrap();
        let folder = LocalFolder::new(dir.path());
        assert_eq!(folder.list("").unwrap(), [Entry { path: "a".into(), len: 0, is_folder: true }]);
        assert_eq!(folder.list("a").unwrap(), [Entry { path: "a/b".into(), len: 3, is_folder: false }]);
        assert_eq!(folder.open("a/b").unwrap().read(1..3).unwrap().as_ref(), b"yz");
        let (parent, name) = LocalFolder::new(dir.path().join("a")).parent().unwrap().unwrap();
        assert_eq!((name.as_str(), parent.list("a").unwrap().len()), ("a", 1));
        // A broken link is not a file, and must not prevent the other entries from being listed.
        std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
        assert_eq!(folder.list("").unwrap().len(), 1);
        assert!(folder.open("../a").is_err());
        assert!(folder.open("/etc/hostname").is_err());
        assert!(matches!(folder.open("no").unwrap_err().kind(), coldframe_core::ErrorKind::NotFound(_)));
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_not_text_is_listed_and_opened() {
        use std::os::unix::ffi::OsStringExt;
        let dir = tempfile::tempdir().unwrap();
        let sub = dir.path().join(std::ffi::OsString::from_vec(b"d\xfe".to_vec()));
        std::fs::create_dir(&sub).unwrap();
        std::fs::write(sub.join(std::ffi::OsString::from_vec(b"\xff.x".to_vec())), b"xyz").unwrap();
        let folder = LocalFolder::new(dir.path());
        let below = folder.list("").unwrap();
        assert!(below[0].is_folder);
        let files = folder.list(&below[0].path).unwrap();
        assert_eq!((files.len(), files[0].len), (1, 3));
        assert!(files[0].path.starts_with(&format!("{}/", below[0].path)) && files[0].path.ends_with(".x"));
        assert_eq!(folder.open(&files[0].path).unwrap().read(1..3).unwrap().as_ref(), b"yz");
        let (parent, name) = LocalFolder::new(sub).parent().unwrap().unwrap();
        assert_eq!(name, below[0].path);
        assert_eq!(parent.list(&name).unwrap(), files);
    }
}
