//! What is known of a store file before it is opened: by its name, or by a manifest.

use crate::layout::names::FileAt;

/// A store file that is not open yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub(crate) name: String,
    pub(crate) place: Place,
    /// The row that it is cut at, and whether the rows from it on count.
    pub(crate) half: Option<(Vec<u8>, bool)>,
    /// Its length, where a listing has it.
    pub(crate) len: Option<u64>,
}

/// The store files of a region, by the places of its table's families.
pub(crate) type FilesOfFamilies = Vec<Vec<FoundFile>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the region's folder.
    Own(String),
    /// In that of another one, or in the archive.
    Elsewhere(FileAt),
}
