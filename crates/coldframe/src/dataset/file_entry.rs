//! A file as a listing describes it.

use coldframe_store::Identity;

/// The key and value of a `key=value` folder, as text.
pub type Pair = (String, String);

/// A file, or a folder that is one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileEntry {
    /// The path or URL, as text (see [`super::storage`]).
    pub path: String,
    /// The `key=value` pairs of the folders between the file and the given root.
    pub pairs: Vec<Pair>,
    /// The file's identity from the listing.
    pub known: Option<Identity>,
    /// Whether the file comes from listing a folder or a pattern, and was not named explicitly.
    pub listed: bool,
    /// The number of its rows, if the metadata of a table states it: a file with another number is damage.
    pub rows: Option<u64>,
}
