//! A file as a listing tells of it.

use coldframe_store::Identity;

/// A `key=value` folder: both as texts.
pub type Pair = (String, String);

/// A file, or a folder that is one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its path or URL, as text (see [`super::storage`]).
    pub path: String,
    /// The `key=value` pairs of the folders between it and the root that was given.
    pub pairs: Vec<Pair>,
    /// What the listing that found it told of it.
    pub known: Option<Identity>,
}
