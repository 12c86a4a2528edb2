//! The local file system as a store. Keys are paths, in the text form of [`crate::name`].

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coldframe_core::io::Identity;
use coldframe_core::{Error, ReadAt, Result};

use crate::file::{LocalFile, is_loop, modified, not_found_or_io};
use crate::files::{Files, Listing, Mode, Stat, Upload, already_exists, check};
use crate::name::{from_text, to_text};

/// The file system.
#[derive(Debug)]
pub(crate) struct LocalFiles;

fn path_of(key: &str) -> PathBuf {
    if key.is_empty() { ".".into() } else { from_text(key).into() }
}

fn stat_of(key: String, meta: &Metadata) -> Stat {
    let len = if meta.is_file() { meta.len() } else { 0 };
    Stat { path: key, len, is_folder: meta.is_dir(), modified: modified(meta), etag: None }
}

impl Files for LocalFiles {
    fn list(&self, folder: &str, deep: bool) -> Result<Listing> {
        let mut walk = FolderWalk { deep, folders: VecDeque::new(), ready: VecDeque::new() };
        walk.read(folder)?;
        Ok(Box::new(walk))
    }

    fn stat(&self, key: &str) -> Result<Option<Stat>> {
        let path = path_of(key);
        match std::fs::metadata(&path) {
            Ok(meta) => Ok(Some(stat_of(key.to_owned(), &meta))),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(e) => Err(not_found_or_io(e, &path)),
        }
    }

    fn open(&self, key: &str, _url: &str, known: Option<&Identity>) -> Result<Arc<dyn ReadAt>> {
        let file = LocalFile::open(path_of(key))?;
        if let Some(known) = known {
            check(known, &file.identity())?;
        }
        Ok(Arc::new(file))
    }

    fn create(&self, key: &str, mode: &Mode) -> Result<Box<dyn Upload>> {
        let path = path_of(key);
        let no_overwrite = match mode {
            Mode::New => true,
            Mode::Over => false,
            Mode::Matching(_) => {
                return Err(Error::unsupported("replacing a local file by its etag: local files have none"));
            }
        };
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|e| not_found_or_io(e, folder))?;
        let file = new_file(folder).map_err(|e| not_found_or_io(e, folder))?;
        Ok(Box::new(LocalUpload { file, key: key.to_owned(), path, no_overwrite }))
    }

    fn publish(&self, from: &str, to: &str, mode: &Mode) -> Result<()> {
        let (from, to) = (path_of(from), path_of(to));
        if let Some(folder) = to.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|e| not_found_or_io(e, folder))?;
        }
        match mode {
            Mode::New => tempfile::TempPath::try_from_path(&from).and_then(|mut from| {
                // If the rename fails, the file is not deleted but keeps its old name.
                from.disable_cleanup(true);
                from.persist_noclobber(&to).map_err(|e| e.error)
            }),
            Mode::Over => std::fs::rename(&from, &to),
            Mode::Matching(_) => {
                return Err(Error::unsupported("replacing a local file by its etag: local files have none"));
            }
        }
        .map_err(|e| taken_or(e, &from))
    }

    #[cfg(unix)]
    fn renames_folders(&self) -> bool {
        true
    }

    /// In POSIX, renaming a folder replaces nothing but an empty folder.
    #[cfg(unix)]
    fn publish_folder(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (path_of(from), path_of(to));
        std::fs::rename(&from, &to).map_err(|e| match e.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => already_exists(),
            _ => taken_or(e, &from),
        })
    }

    fn delete(&self, key: &str) -> Result<()> {
        let path = path_of(key);
        std::fs::remove_file(&path).map_err(|e| not_found_or_io(e, &path))
    }

    fn delete_folder(&self, key: &str) -> Result<()> {
        let path = path_of(key);
        match std::fs::remove_dir_all(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(not_found_or_io(e, &path)),
            _ => Ok(()),
        }
    }
}

fn taken_or(e: io::Error, path: &Path) -> Error {
    if e.kind() == io::ErrorKind::AlreadyExists { already_exists() } else { not_found_or_io(e, path) }
}

/// A listing that reads one folder at a time.
struct FolderWalk {
    deep: bool,
    folders: VecDeque<String>,
    ready: VecDeque<Stat>,
}

impl FolderWalk {
    /// Reads the entries of a folder. Like `open`, the walk follows links to files and a link that is the
    /// starting folder. It does not follow links to folders below, since such links may lead back.
    fn read(&mut self, folder: &str) -> Result<()> {
        let path = path_of(folder);
        for item in std::fs::read_dir(&path).map_err(|e| not_found_or_io(e, &path))? {
            let item = item.map_err(|e| not_found_or_io(e, &path))?;
            let meta = match std::fs::metadata(item.path()) {
                Ok(meta) => meta,
                // The file was deleted after it was listed, or this is a broken link. In both cases there is
                // no file to read.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                // Listed as an empty file, so that it can be named.
                Err(e) if is_loop(&e) => item.metadata().map_err(|e| not_found_or_io(e, &item.path()))?,
                Err(e) => return Err(not_found_or_io(e, &item.path())),
            };
            let name = to_text(&item.file_name());
            let key = match folder {
                "" => name,
                folder if folder.ends_with('/') => format!("{folder}{name}"),
                folder => format!("{folder}/{name}"),
            };
            if self.deep && meta.is_dir() {
                if item.file_type().is_ok_and(|t| t.is_dir()) {
                    self.folders.push_back(key);
                }
                continue;
            }
            self.ready.push_back(stat_of(key, &meta));
        }
        Ok(())
    }
}

impl Iterator for FolderWalk {
    type Item = Result<Stat>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(stat) = self.ready.pop_front() {
                return Some(Ok(stat));
            }
            let folder = self.folders.pop_front()?;
            match self.read(&folder) {
                // The folder was deleted after its name was read.
                Err(e) if e.is_not_found() => {}
                Err(e) => return Some(Err(e)),
                Ok(()) => {}
            }
        }
    }
}

/// A file with a temporary name. Others may read it as far as the umask allows, unlike the library's own temporary files.
fn new_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut made = tempfile::Builder::new();
    made.prefix(".coldframe-");
    #[cfg(unix)]
    made.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    made.tempfile_in(folder)
}

/// A file under a temporary name beside its final name.
#[derive(Debug)]
struct LocalUpload {
    file: tempfile::NamedTempFile,
    key: String,
    path: PathBuf,
    no_overwrite: bool,
}

impl Write for LocalUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file_mut().flush()
    }
}

impl Upload for LocalUpload {
    #[cfg(unix)]
    fn limit_mode(&mut self, mode: u32) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let file = self.file.as_file();
        let own = file.metadata()?.permissions().mode();
        Ok(file.set_permissions(std::fs::Permissions::from_mode(own & mode & 0o777))?)
    }

    fn finish(self: Box<Self>) -> Result<Stat> {
        let Self { file, key, path, no_overwrite } = *self;
        #[cfg(unix)]
        if !no_overwrite
            && let Ok(before) = std::fs::symlink_metadata(&path)
            && before.is_file()
        {
            // As if the new content had been written into the file.
            file.as_file().set_permissions(before.permissions())?;
        }
        file.as_file().sync_all()?;
        let named = if no_overwrite { file.persist_noclobber(&path) } else { file.persist(&path) };
        let file: File = named.map_err(|e| taken_or(e.error, &path))?;
        Ok(stat_of(key, &file.metadata()?))
    }
}
