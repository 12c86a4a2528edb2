//! Access to a table's files by their paths and URLs, which are kept as text.
//!
//! File names need not be UTF-8. [`coldframe_store::to_text`] gives every file name a text form, so that a
//! path can be compared, sorted and stored; [`os_path`] converts it back.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use coldframe_core::{Error, Result, Source};
use coldframe_store::{Identity, Location, Store, from_text, shown};

/// Opens stores and files by their paths and URLs.
pub trait Storage: Send + Sync + fmt::Debug {
    /// The files at and below a path or URL.
    fn store(&self, location: &OsStr) -> Result<Store>;

    /// The file or folder at a path or URL. `known`: the file's identity from a listing; it is an error if
    /// the file has changed since then.
    fn source(&self, location: &OsStr, known: Option<&Identity>) -> Result<Source> {
        self.store(location)?.source(known)
    }

    /// Whether a location is a local path.
    fn is_of_this_machine(&self, location: &OsStr) -> bool {
        matches!(Location::parse(location), Ok(Location::Local(_)))
    }

    /// The options of a location's store, which may contain secrets; `None` if another process needs more
    /// than these options to open the store.
    fn options(&self, location: &OsStr) -> Option<&BTreeMap<String, String>>;
}

/// Local files and the stores of [`coldframe_store`], with one set of options.
#[derive(Clone, Default)]
pub struct Stores(pub BTreeMap<String, String>);

impl fmt::Debug for Stores {
    /// The values of options are not shown, because they may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stores").field(&self.0.keys().collect::<Vec<_>>()).finish()
    }
}

impl Storage for Stores {
    fn store(&self, location: &OsStr) -> Result<Store> {
        Store::new(location, &self.0)
    }

    fn source(&self, location: &OsStr, known: Option<&Identity>) -> Result<Source> {
        coldframe_store::open(location, &self.0, known)
    }

    fn options(&self, _location: &OsStr) -> Option<&BTreeMap<String, String>> {
        Some(&self.0)
    }
}

/// A path or URL in the operating system's form, from its text.
pub fn os_path(text: &str) -> OsString {
    match Location::parse(OsStr::new(text)) {
        Ok(Location::Url { .. }) => text.into(),
        _ => from_text(text),
    }
}

/// A path or URL for errors: without secrets, and with a replacement for each byte sequence that is not text.
pub fn shown_path(text: &str) -> String {
    shown(&os_path(text).to_string_lossy())
}

/// The error for a path or URL at which nothing exists.
pub(super) fn not_there(path: &str, what: &str) -> Error {
    Error::not_found(what).in_file(shown_path(path))
}
