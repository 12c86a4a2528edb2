//! What every kind of store can do: the trait, and what it says of its files.

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::Arc;

use coldframe_core::io::Identity;
use coldframe_core::{Error, ErrorKind, ReadAt, Result};

/// A file or folder as its store knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Its key in the store; what [`crate::Store`] hands out is the path below its root. Parts are joined by `/`, names are as the store
    /// has them: nothing in them is an escape.
    pub path: String,
    /// Length in bytes; 0 for a folder.
    pub len: u64,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// When it was written last, in milliseconds since 1970, where the store says so.
    pub modified: Option<i64>,
    /// What the store calls this very content, where it does.
    pub etag: Option<String>,
}

impl Stat {
    /// What the file is known by.
    pub fn identity(&self) -> Identity {
        Identity { len: self.len, modified: self.modified, etag: self.etag.clone() }
    }
}

/// Refuses a file that is not the one which `known` was taken of. What one of the two does not know is not compared.
pub(crate) fn check(known: &Identity, found: &Identity) -> Result<()> {
    if known.may_be(found) {
        return Ok(());
    }
    let told = |identity: &Identity| {
        let modified = identity.modified.map(|ms| format!(" of {ms} ms")).unwrap_or_default();
        let etag = identity.etag.as_deref().map(|etag| format!(" with etag {etag}")).unwrap_or_default();
        format!("{} bytes{modified}{etag}", identity.len)
    };
    Err(changed(&format!("expected {}, found {}", told(known), told(found))))
}

/// A file is not what it was when it was listed or opened.
#[cold]
pub(crate) fn changed(how: &str) -> Error {
    Error::from(io::Error::other(format!("the file was changed since it was listed or opened: {how}")))
}

/// What a file that is to be written may find in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: of several that try, one succeeds.
    New,
    /// Anything, which it replaces.
    Over,
    /// The content with this etag, which it replaces.
    Matching(String),
}

/// Something is where [`Mode::New`] expects nothing.
#[cold]
pub(crate) fn already_exists() -> Error {
    Error::from(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists already"))
}

/// The file to be replaced is not there, or not the one that was meant.
#[cfg(feature = "object-store")]
#[cold]
pub(crate) fn other_content(etag: &str) -> Error {
    changed(&format!("expected the content with etag {etag} in its place"))
}

/// Whether [`Mode::New`] found something.
pub fn is_taken(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Io(e) if e.kind() == io::ErrorKind::AlreadyExists)
}

/// An error as those of `std::io` are, of the same kind.
#[cfg(any(feature = "object-store", feature = "hdfs"))]
pub(crate) fn as_io(e: Error) -> io::Error {
    match e.kind() {
        ErrorKind::Io(inner) => io::Error::new(inner.kind(), e.to_string()),
        _ => io::Error::other(e),
    }
}

/// A key beside `key` that nobody else has, and that readers of folders leave out.
#[cfg(any(feature = "object-store", feature = "hdfs"))]
pub(crate) fn own_key(key: &str) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (now, process, count) = (now.as_nanos(), std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let own = format!(".coldframe-{now:x}-{process:x}-{count:x}");
    key.rsplit_once('/').map(|(folder, _)| format!("{folder}/{own}")).unwrap_or(own)
}

/// A file on its way into a store. Dropped before [`Upload::finish`], nothing of it appears.
pub trait Upload: Write + Send + Debug {
    /// Makes the file appear, whole.
    fn finish(self: Box<Self>) -> Result<Stat>;
}

/// Where a URL leads.
#[cfg(any(feature = "object-store", feature = "hdfs"))]
#[derive(Debug)]
pub(crate) struct Reached {
    /// The files of the store.
    pub(crate) files: Arc<dyn Files>,
    /// What errors call the place.
    pub(crate) url: String,
    /// Its key.
    pub(crate) root: String,
}

/// The entries of a listing, as they come in.
pub type Listing = Box<dyn Iterator<Item = Result<Stat>> + Send>;

/// One kind of store, asked by keys. A key's meaning is the store's own: a path of a file system, the name of an object.
///
/// Errors need not name the file: [`crate::Store`] does.
pub trait Files: Send + Sync + Debug {
    /// What lies directly below a folder or, if `deep`, all files below it, in any order. A folder that is not there is empty, or an error.
    fn list(&self, folder: &str, deep: bool) -> Result<Listing>;

    /// The file or folder, if there is one. Object stores know folders by what lies below them.
    fn stat(&self, key: &str) -> Result<Option<Stat>>;

    /// Opens a file. With what a listing has told of it, no more requests are made for that; where the store can tell, reading what has
    /// become another file since is an error.
    ///
    /// `url` is what errors of reading call it.
    fn open(&self, key: &str, url: &str, known: Option<&Identity>) -> Result<Arc<dyn ReadAt>>;

    /// Starts a file; folders above it are made.
    fn create(&self, key: &str, mode: &Mode) -> Result<Box<dyn Upload>>;

    /// Gives a whole file another name, at once: with [`Mode::New`] one of several wins.
    fn publish(&self, from: &str, to: &str, mode: &Mode) -> Result<()>;

    /// Whether [`Files::publish_folder`] is there.
    fn renames_folders(&self) -> bool {
        false
    }

    /// Gives a folder with all that is below it another name, at once, where nothing is or an empty folder.
    fn publish_folder(&self, _from: &str, _to: &str) -> Result<()> {
        Err(Error::unsupported("renaming a folder at once in this store"))
    }

    /// Deletes a file; one that is not there is not found.
    fn delete(&self, key: &str) -> Result<()>;

    /// Deletes a folder with all that is below it; one that is not there is as good as deleted.
    fn delete_folder(&self, key: &str) -> Result<()>;
}
