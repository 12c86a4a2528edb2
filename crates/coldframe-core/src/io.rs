//! Where bytes come from.
//!
//! A format requests all ranges that it needs from a [`ReadAt`] with one call. The source decides how to read
//! them: one positioned read per range of a local file, a few coalesced requests to an object store. Nothing
//! above this module depends on the kind of source.

mod coalesce;
mod folder;
mod memory;
mod recorded;
mod window;

pub(crate) use coalesce::begin_coalesced;
pub use coalesce::{LONG, read_coalesced};
pub use folder::{Entry, Folder, files_below};
pub use recorded::{Recorded, Recording};
pub use window::Window;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_encoding::{Error, Result};

/// Identifies a version of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Length in bytes.
    pub len: u64,
    /// When it was last written, in milliseconds since 1970, if known.
    pub modified: Option<i64>,
    /// The store's identifier of this version of the content, if there is one.
    pub etag: Option<String>,
}

impl Identity {
    /// Whether both identities may be of the same version. A field is compared only if both identities have
    /// it.
    pub fn may_be(&self, other: &Self) -> bool {
        fn differ<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
            a.zip(b).is_some_and(|(a, b)| a != b)
        }
        self.len == other.len
            && !differ(self.modified.as_ref(), other.modified.as_ref())
            && !differ(self.etag.as_ref(), other.etag.as_ref())
    }
}

/// A request in flight. Calling the function waits for the bytes.
pub type Pending = Box<dyn FnOnce() -> Result<Vec<Bytes>> + Send>;

/// Random access to the bytes of one file.
pub trait ReadAt: Send + Sync + Debug {
    /// Length of the file in bytes.
    fn len(&self) -> u64;

    /// The bytes of all `ranges`; result `i` holds exactly the bytes of `ranges[i]`. A range beyond the end
    /// is an error.
    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;

    /// The file's identity, for opening the same version again.
    fn identity(&self) -> Identity {
        Identity { len: self.len(), ..Identity::default() }
    }

    /// Whether the file is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of one range.
    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let mut all = self.read_ranges(std::slice::from_ref(&range))?;
        all.pop().ok_or_else(|| Error::invalid("a source returned no bytes for a range"))
    }

    /// Requests `ranges` like [`Self::read_ranges`], without waiting for them. `None` from a source that is
    /// too fast to be worth reading ahead: a local file, memory.
    fn begin(&self, _ranges: &[Range<u64>]) -> Option<Pending> {
        None
    }

    /// How many extra bytes are worth reading to save a request; more for sources with expensive requests.
    fn worthwhile_gap(&self) -> u64 {
        4096
    }
}

/// An error if `range` does not lie inside a source of `len` bytes.
pub fn check_range(range: &Range<u64>, len: u64) -> Result<()> {
    if range.start <= range.end && range.end <= len {
        return Ok(());
    }
    let (start, end) = (range.start, range.end);
    Err(Error::corrupt(format!("expected bytes {start}..{end}, found the end of the file at {len}"))
        .at(start))
}

/// What was opened: a file, or a folder that is one table.
#[derive(Clone, Debug)]
pub enum Source {
    /// One file, and its folder if the files beside it can be opened.
    File {
        /// Path or URL as the user gave it.
        path: Arc<str>,
        /// The file's bytes.
        bytes: Arc<dyn ReadAt>,
        /// The folder that holds the file.
        siblings: Option<Arc<dyn Folder>>,
    },
    /// A folder (a Kudu data directory, a Hudi metadata table).
    Folder {
        /// Path or URL as the user gave it.
        path: Arc<str>,
        /// The files of the folder.
        folder: Arc<dyn Folder>,
    },
}

impl Source {
    /// A file without siblings.
    pub fn file(path: impl Into<Arc<str>>, bytes: Arc<dyn ReadAt>) -> Self {
        Self::File { path: path.into(), bytes, siblings: None }
    }

    /// The file's or folder's name as the user gave it.
    pub fn path(&self) -> &Arc<str> {
        match self {
            Self::File { path, .. } | Self::Folder { path, .. } => path,
        }
    }

    /// The bytes, if this is a file.
    pub fn bytes(&self) -> Result<&Arc<dyn ReadAt>> {
        match self {
            Self::File { bytes, .. } => Ok(bytes),
            Self::Folder { path, .. } => {
                Err(Error::invalid("expected a file, found a directory").in_file(&**path))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_compare_only_fields_that_both_have() {
        let of =
            |len, modified, etag: Option<&str>| Identity { len, modified, etag: etag.map(str::to_owned) };
        let was = of(3, Some(1), Some("a"));
        for same in [of(3, Some(1), Some("a")), of(3, None, None), of(3, None, Some("a"))] {
            assert!(was.may_be(&same) && same.may_be(&was), "{same:?}");
        }
        for other in [of(4, Some(1), Some("a")), of(3, Some(2), Some("a")), of(3, None, Some("b"))] {
            assert!(!was.may_be(&other), "{other:?}");
        }
    }
}
