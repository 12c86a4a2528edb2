//! Store files before they are opened: what is known from their names or from a manifest.

use crate::layout::names::FileAt;

/// A store file that is not open yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnopenedFile {
    pub(crate) name: String,
    pub(crate) place: FileLocation,
    /// The row that divides the file, and which rows to read: the rows from that row on, or the rows before
    /// it.
    pub(crate) half: Option<(Vec<u8>, bool)>,
    /// The file's length, if a listing states it.
    pub(crate) len: Option<u64>,
}

/// The store files of a region, by the index of the family.
pub(crate) type FilesOfFamilies = Vec<Vec<UnopenedFile>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileLocation {
    /// The file is in the region's own folder.
    Own(String),
    /// The file is in the folder of another region, or in the archive.
    Elsewhere(FileAt),
}
