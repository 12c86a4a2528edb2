//! The trait of all stores, and its descriptions of files.

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::Arc;

use coldframe_core::io::Identity;
use coldframe_core::{Error, ErrorKind, ReadAt, Result};

/// A file or folder as its store reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The key of the file in its store; in results of [`crate::Store`], the path below the store's root.
    /// Parts are joined by `/`; names are the store's own, without any escaping.
    pub path: String,
    /// Length in bytes; 0 for a folder.
    pub len: u64,
    /// Whether this is a folder.
    pub is_folder: bool,
    /// When it was last written, in milliseconds since 1970, if the store states it.
    pub modified: Option<i64>,
    /// The store's identifier of this version of the content, if there is one.
    pub etag: Option<String>,
}

impl Stat {
    /// What identifies the version of a file.
    pub fn identity(&self) -> Identity {
        Identity { len: self.len, modified: self.modified, etag: self.etag.clone() }
    }
}

/// An error if a file is not the version `known`. Fields that either identity lacks are not compared.
pub(crate) fn check(known: &Identity, actual: &Identity) -> Result<()> {
    if known.may_be(actual) {
        return Ok(());
    }
    let described = |identity: &Identity| {
        let modified = identity.modified.map(|ms| format!(" of {ms} ms")).unwrap_or_default();
        let etag = identity.etag.as_deref().map(|etag| format!(" with etag {etag}")).unwrap_or_default();
        format!("{} bytes{modified}{etag}", identity.len)
    };
    Err(changed(&format!("expected {}, found {}", described(known), described(actual))))
}

/// The error for a file that changed after it was listed or opened.
#[cold]
pub(crate) fn changed(how: &str) -> Error {
    Error::from(io::Error::other(format!("the file was changed since it was listed or opened: {how}")))
}

/// What may exist at the path of a new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing may exist. If several writers try, only one succeeds.
    New,
    /// Any file may exist; it is replaced.
    Over,
    /// Only the content with this etag may exist; it is replaced.
    Matching(String),
}

/// The error if a file exists despite [`Mode::New`].
#[cold]
pub(crate) fn already_exists() -> Error {
    Error::from(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists already"))
}

/// The error if the file to replace does not exist, or has another etag.
#[cfg(feature = "object-store")]
#[cold]
pub(crate) fn other_content(etag: &str) -> Error {
    changed(&format!("expected etag {etag}"))
}

/// Whether the error means that a file exists despite [`Mode::New`].
pub fn is_taken(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Io(e) if e.kind() == io::ErrorKind::AlreadyExists)
}

/// Converts an error to one of `std::io` with the same kind.
#[cfg(any(feature = "object-store", feature = "hdfs"))]
pub(crate) fn as_io(e: Error) -> io::Error {
    match e.kind() {
        ErrorKind::Io(inner) => io::Error::new(inner.kind(), e.to_string()),
        _ => io::Error::other(e),
    }
}

/// A unique key beside `key`, which readers of folders ignore.
#[cfg(any(feature = "object-store", feature = "hdfs"))]
pub(crate) fn temporary_key(key: &str) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (now, process, count) = (now.as_nanos(), std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let own = format!(".coldframe-{now:x}-{process:x}-{count:x}");
    key.rsplit_once('/').map(|(folder, _)| format!("{folder}/{own}")).unwrap_or(own)
}

/// A file being written to a store. If it is dropped before [`Upload::finish`], no file appears.
pub trait Upload: Write + Send + Debug {
    /// Removes the permissions that `mode` does not have, before the first byte is written. Stores without
    /// permissions ignore the call.
    fn limit_mode(&mut self, _mode: u32) -> Result<()> {
        Ok(())
    }

    /// Makes the complete file appear.
    fn finish(self: Box<Self>) -> Result<Stat>;
}

/// The store and key of a URL.
#[cfg(any(feature = "object-store", feature = "hdfs"))]
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The files of the store.
    pub(crate) files: Arc<dyn Files>,
    /// The URL of the store, for errors.
    pub(crate) url: String,
    /// The key of the URL in the store.
    pub(crate) root: String,
}

/// The entries of a listing, as they arrive.
pub type Listing = Box<dyn Iterator<Item = Result<Stat>> + Send>;

/// A kind of store, addressed by keys: paths of a file system, or names of objects.
///
/// Errors need not contain the file's path: [`crate::Store`] adds it.
pub trait Files: Send + Sync + Debug {
    /// The direct entries of a folder or, if `deep`, all files below it, in any order. If the folder is
    /// missing, the listing is empty or an error.
    fn list(&self, folder: &str, deep: bool) -> Result<Listing>;

    /// The file or folder, if it exists. Object stores recognise folders by the objects below them.
    fn stat(&self, key: &str) -> Result<Option<Stat>>;

    /// Opens a file. `known` is its identity from a listing, which is then not requested again. If the store
    /// can detect that the file has been replaced, reading it is an error.
    ///
    /// `url` names the file in the errors of reads.
    fn open(&self, key: &str, url: &str, known: Option<&Identity>) -> Result<Arc<dyn ReadAt>>;

    /// Starts a file; missing parent folders are created.
    fn create(&self, key: &str, mode: &Mode) -> Result<Box<dyn Upload>>;

    /// Renames a complete file atomically. With [`Mode::New`], only one of several writers succeeds.
    fn publish(&self, from: &str, to: &str, mode: &Mode) -> Result<()>;

    /// Whether [`Files::publish_folder`] is supported.
    fn renames_folders(&self) -> bool {
        false
    }

    /// Renames a folder with everything below it atomically, to a name that does not exist or is an empty
    /// folder.
    fn publish_folder(&self, _from: &str, _to: &str) -> Result<()> {
        Err(Error::unsupported("renaming a folder at once in this store"))
    }

    /// Deletes a file; a missing file is a not-found error.
    fn delete(&self, key: &str) -> Result<()>;

    /// Deletes a folder with everything below it; a missing folder is no error.
    fn delete_folder(&self, key: &str) -> Result<()>;
}
