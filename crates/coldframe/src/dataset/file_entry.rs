//! A file as a listing describes it.

use coldframe_store::Identity;

/// The key and value of a `key=value` folder, as text.
pub type Pair = (String, String);

/// A file, or a folder that is one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileEntry {
    /// Its path or URL, as text (see [`super::storage`]).
    pub path: String,
    /// The `key=value` pairs of the folders between it and the given root.
    pub pairs: Vec<Pair>,
    /// Its identity from the listing.
    pub known: Option<Identity>,
    /// Whether it comes from listing a folder or a pattern, and was not named explicitly.
    pub listed: bool,
}
