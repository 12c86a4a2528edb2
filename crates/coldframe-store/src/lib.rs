//! Where bytes lie: local files and folders, and, with the feature `object-store`, object stores and web servers by URL.
//!
//! What a source is, [`coldframe_core::io`] says; network, TLS and a runtime are known here alone.

mod file;
mod folder;
mod location;
mod name;
#[cfg(feature = "object-store")]
mod object;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use coldframe_core::io::Folder;
use coldframe_core::{ReadAt, Result, Source};

pub use file::LocalFile;
pub use folder::LocalFolder;
pub use location::Location;
#[cfg(feature = "object-store")]
pub use object::open_url;

/// The file or folder that a path or, where built in, a URL names. Errors show a path as far as it is text.
pub fn open(location: &OsStr, storage_options: &BTreeMap<String, String>) -> Result<Source> {
    match Location::parse(location)? {
        Location::Local(path) => open_local(&path),
        Location::Url { url, scheme } => open_remote(&url, &scheme, storage_options),
    }
}

fn open_local(local: &Path) -> Result<Source> {
    let path: Arc<str> = local.display().to_string().into();
    if local.is_dir() {
        return Ok(Source::Folder { path, folder: Arc::new(LocalFolder::new(local)) });
    }
    let bytes: Arc<dyn ReadAt> = Arc::new(LocalFile::open(local)?);
    let folder = local.parent().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
    let siblings = folder.map(|p| Arc::new(LocalFolder::new(p)) as Arc<dyn Folder>);
    Ok(Source::File { path, bytes, siblings })
}

#[cfg(feature = "object-store")]
fn open_remote(url: &str, _scheme: &str, storage_options: &BTreeMap<String, String>) -> Result<Source> {
    open_url(url, storage_options)
}

#[cfg(not(feature = "object-store"))]
fn open_remote(_url: &str, scheme: &str, _storage_options: &BTreeMap<String, String>) -> Result<Source> {
    let what = format!("{scheme}:// URLs in a build without the feature `object-store`");
    Err(coldframe_core::Error::unsupported(what))
}
