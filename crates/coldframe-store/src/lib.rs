//! Access to all stores through one type: local files and folders, HDFS (feature `hdfs`), object stores and
//! web servers (feature `object-store`).
//!
//! ```text
//!   Store ── root + path ──▶ key ──▶ Files:  local   hdfs   s3 gs az http   a caller's own
//!     │                                        │      │          │               │
//!     └── Source, Folder, ReadAt ◀─────────────┴──────┴── Ends ──┴───────────────┘
//! ```
//!
//! [`coldframe_core::io`] defines sources. Only this crate uses a network, TLS and an async runtime.

#[cfg(any(feature = "object-store", feature = "hdfs"))]
mod ends;
mod file;
mod files;
mod folder;
#[cfg(feature = "hdfs")]
mod hdfs;
mod local;
mod location;
mod name;
#[cfg(feature = "object-store")]
mod object;
#[cfg(any(feature = "object-store", feature = "hdfs"))]
mod options;
#[cfg(any(feature = "object-store", feature = "hdfs"))]
mod parts;
#[cfg(any(feature = "object-store", feature = "hdfs"))]
mod runtime;
mod store;
#[cfg(any(feature = "object-store", feature = "hdfs"))]
mod trace;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use coldframe_core::io::Folder;
use coldframe_core::{ReadAt, Result, Source};

pub use coldframe_core::io::Identity;
pub use coldframe_core::{shown, shown_in};
pub use file::{LocalFile, special_kind};
pub use files::{Files, Listing, Mode, Stat, Upload, is_taken};
pub use folder::LocalFolder;
pub use location::Location;
pub use name::{from_text, to_text};
#[cfg(any(feature = "object-store", feature = "hdfs"))]
pub use options::{Kind, OPTIONS, StoreOption};
pub use store::{Store, StoreFolder};

/// The URL schemes that this build supports, besides `file`.
pub fn schemes() -> Vec<&'static str> {
    let all: [&[&str]; 2] = [
        if cfg!(feature = "hdfs") { &["hdfs", "viewfs"] } else { &[] },
        if cfg!(feature = "object-store") {
            &[
                "s3", "s3a", "s3n", "gs", "gcs", "az", "adl", "azure", "abfs", "abfss", "wasb", "wasbs",
                "http", "https",
            ]
        } else {
            &[]
        },
    ];
    all.concat()
}

/// Whether the store of a URL has a flat namespace, so that a single listing returns all files below a
/// folder.
pub fn is_flat(location: &OsStr) -> bool {
    const FLAT: [&str; 12] =
        ["s3", "s3a", "s3n", "gs", "gcs", "az", "adl", "azure", "abfs", "abfss", "wasb", "wasbs"];
    matches!(Location::parse(location), Ok(Location::Url { scheme, .. }) if FLAT.contains(&scheme.as_str()))
}

/// Whether the store of a URL knows which machines have the bytes of a file, so that tasks can run there.
pub fn has_hosts(location: &OsStr) -> bool {
    matches!(Location::parse(location), Ok(Location::Url { scheme, .. }) if matches!(&*scheme, "hdfs" | "viewfs"))
}

/// Opens the file or folder of a path or, if its feature is enabled, of a URL. `known` is the file's identity
/// from a listing: it is then not requested again, and it is an error if the file has changed since.
pub fn open(
    location: &OsStr,
    storage_options: &BTreeMap<String, String>,
    known: Option<&Identity>,
) -> Result<Source> {
    match Location::parse(location)? {
        Location::Local(path) => open_local(&path, known),
        Location::Url { .. } => Store::new(location, storage_options)?.source(known),
    }
}

/// The options in effect for the store of a path or URL, under their main names: the given options, completed
/// from the environment. They contain secrets. Their purpose is to configure other clients of the same store.
pub fn resolved_options(
    location: &OsStr,
    options: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>> {
    match Location::parse(location)? {
        Location::Local(_) => Ok(BTreeMap::new()),
        #[cfg(feature = "hdfs")]
        Location::Url { scheme, .. } if matches!(scheme.as_str(), "hdfs" | "viewfs") => {
            Ok(hdfs::options(options)?.into_map())
        }
        #[cfg(feature = "object-store")]
        Location::Url { url, scheme } => Ok(object::resolved(&url, &scheme, options)?.into_map()),
        #[cfg(not(feature = "object-store"))]
        Location::Url { scheme, .. } => {
            let _ = options;
            Err(coldframe_core::Error::unsupported(format!("{scheme}:// URLs in this build")))
        }
    }
}

fn open_local(local: &Path, known: Option<&Identity>) -> Result<Source> {
    let path: Arc<str> = local.display().to_string().into();
    if known.is_none() && local.is_dir() {
        return Ok(Source::Folder { path, folder: Arc::new(LocalFolder::new(local)) });
    }
    let file = LocalFile::open(local)?;
    if let Some(known) = known {
        files::check(known, &file.identity()).map_err(|e| e.in_file(&*path))?;
    }
    let bytes: Arc<dyn ReadAt> = Arc::new(file);
    let folder = local.parent().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
    let siblings = folder.map(|p| Arc::new(LocalFolder::new(p)) as Arc<dyn Folder>);
    Ok(Source::File { path, bytes, siblings })
}
