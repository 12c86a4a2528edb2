//! A file as described by a listing.

use coldframe_store::Identity;

/// A `key=value` folder: both as text.
pub type Pair = (String, String);

/// A file, or a folder that is one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its path or URL, as text (see [`super::storage`]).
    pub path: String,
    /// The `key=value` pairs of the folders between it and the given root.
    pub pairs: Vec<Pair>,
    /// What the listing said about it.
    pub known: Option<Identity>,
    /// Whether it was found in a folder or by a pattern, and not named explicitly.
    pub listed: bool,
}
