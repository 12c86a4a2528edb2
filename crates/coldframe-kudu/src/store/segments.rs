//! The segment files of a tablet's write-ahead log.

use std::collections::BTreeMap;

use bytes::Bytes;
use coldframe_core::io::Folder;
use coldframe_core::{Limits, Result};

use crate::layout::log::{MAGIC, Segment};
use crate::store::crypt::{Expected, Section, ServerKeys, decrypted_block};
use crate::store::roots::name_of;

/// The segment files of a tablet by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segments {
    files: BTreeMap<u64, (String, u64)>,
}

impl Segments {
    /// Selects the segments among the entries of a folder.
    pub(crate) fn among(entries: &[coldframe_core::io::Entry]) -> Self {
        let number = |path: &str| name_of(path).strip_prefix("wal-")?.parse::<u64>().ok();
        let files = entries.iter().filter(|e| !e.is_folder);
        let files = files.filter_map(|e| Some((number(&e.path)?, (e.path.clone(), e.len))));
        Self { files: files.collect() }
    }

    pub(crate) fn count(&self) -> u64 {
        self.files.len() as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.files.values().map(|(_, len)| *len).sum()
    }

    /// The numbers, paths and lengths of the segments, in order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &str, u64)> {
        self.files.iter().map(|(number, (path, len))| (*number, path.as_str(), *len))
    }
}

/// Opens and decrypts a segment file; `None` if it was created but never written to.
pub(crate) fn open_segment(
    folder: &dyn Folder,
    keys: &ServerKeys,
    path: &str,
    (checked, limits): (bool, &Limits),
) -> Result<Option<Segment>> {
    let file = folder.open(path)?;
    if file.is_empty() {
        return Ok(None);
    }
    // The super block has already shown which key is right.
    let (file, start) = decrypted_block(file, keys, &Expected::start(&[MAGIC]))?;
    let file = Section::of(file.clone(), &(start..file.len()))?;
    limits.block("a segment of the log", file.len())?;
    let bytes: Bytes = file.read(0..file.len())?;
    Segment::open(bytes, checked, limits)
}
