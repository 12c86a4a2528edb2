//! Store files before they are opened: what their names or a manifest state.

use crate::layout::names::FileAt;

/// A store file that is not open yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnopenedFile {
    pub(crate) name: String,
    pub(crate) place: FileLocation,
    /// The row that divides the file, and whether to read the rows from that row on (or those before it).
    pub(crate) half: Option<(Vec<u8>, bool)>,
    /// Its length, if a listing states it.
    pub(crate) len: Option<u64>,
}

/// The store files of a region, by family index.
pub(crate) type FilesOfFamilies = Vec<Vec<UnopenedFile>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileLocation {
    /// In the region's own folder.
    Own(String),
    /// In the folder of another region, or in the archive.
    Elsewhere(FileAt),
}
