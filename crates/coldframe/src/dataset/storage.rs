//! Where a table's files are reached: by paths and URLs, as text.
//!
//! Names of files need not be UTF-8. [`coldframe_store::to_text`] has a text for each, so that a path can be compared, sorted and
//! written down; [`os_path`] gives the name back.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use coldframe_core::{Error, Result, Source};
use coldframe_store::{Identity, Location, Store, from_text, shown};

/// Opens stores and files by their paths and URLs.
pub trait Storage: Send + Sync + fmt::Debug {
    /// The files at and below a path or URL.
    fn store(&self, location: &OsStr) -> Result<Store>;

    /// The file or folder at a path or URL; with what a listing has told of it, another content is an error.
    fn source(&self, location: &OsStr, known: Option<&Identity>) -> Result<Source> {
        self.store(location)?.source(known)
    }

    /// Whether a path is one of the operating system's.
    fn is_of_this_machine(&self, location: &OsStr) -> bool {
        matches!(Location::parse(location), Ok(Location::Local(_)))
    }

    /// The options of a location's store, which may be secrets; `None` where they alone do not lead another process there.
    fn options(&self, location: &OsStr) -> Option<&BTreeMap<String, String>>;
}

/// Local files and the stores of [`coldframe_store`], by one set of options.
#[derive(Clone, Default)]
pub struct Stores(pub BTreeMap<String, String>);

impl fmt::Debug for Stores {
    /// The values are secrets.
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

/// A path or URL as the operating system has it, from its text.
pub fn os_path(text: &str) -> OsString {
    match Location::parse(OsStr::new(text)) {
        Ok(Location::Url { .. }) => text.into(),
        _ => from_text(text),
    }
}

/// A path or URL as errors show it: without secrets, and whatever is not text replaced.
pub fn shown_path(text: &str) -> String {
    shown(&os_path(text).to_string_lossy())
}

/// There is nothing at a path.
pub(super) fn not_there(path: &str, what: &str) -> Error {
    Error::not_found(what).in_file(shown_path(path))
}
