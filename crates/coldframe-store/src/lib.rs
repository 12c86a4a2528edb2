//! Where bytes lie: local files and folders, and, with the feature `object-store`, object stores and web servers by URL.
//!
//! What a source is, [`coldframe_core::io`] says; network, TLS and a runtime are known here alone.

mod file;
mod folder;
#[cfg(feature = "object-store")]
mod object;

pub use file::LocalFile;
pub use folder::LocalFolder;
#[cfg(feature = "object-store")]
pub use object::open_url;
