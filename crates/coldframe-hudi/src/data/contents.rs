//! What else a table's folder has: earlier states, files of writes that are not valid, and foreign files.

use std::collections::BTreeSet;

use coldframe_core::io::{Entry, Folder, files_below};
use coldframe_core::{Content, Result};

use crate::data::files;
use crate::data::open::Opened;
use crate::data::view::Shown;
use crate::slice::{is_change_data, parse_name};

/// The parts of a table, and whether this view reads them.
pub(crate) fn contents(folder: &dyn Folder, opened: &Opened) -> Result<Vec<Content>> {
    let reads_logs = !matches!(opened.shown, Shown::ReadOptimized { .. });
    let read: BTreeSet<&str> = opened
        .slices
        .iter()
        .flat_map(|slice| slice.base.iter().chain(slice.logs.iter().filter(|_| reads_logs)))
        .map(|file| file.path.as_str())
        .collect();
    let (mut earlier, mut bytes) = (0_u64, 0_u64);
    let (mut dead, mut dead_bytes) = (0_u64, 0_u64);
    for group in files::groups(folder)?.values() {
        for file in group.files().filter(|file| !read.contains(file.path.as_str())) {
            if opened.timeline.is_committed(&file.instant) {
                (earlier, bytes) = (earlier + 1, bytes.saturating_add(file.len));
            } else {
                (dead, dead_bytes) = (dead + 1, dead_bytes.saturating_add(file.len));
            }
        }
    }
    let is_latest = matches!(opened.shown, Shown::Snapshot { as_of: None });
    let mut all = vec![Content::new("table", "", Some(is_latest))];
    if earlier > 0 {
        let note =
            "files of earlier states, or of rows that this view does not show; `as_of` reads earlier states";
        let versions = Content::new("versions", "", Some(false)).counted(earlier, "files").sized(bytes);
        all.push(versions.noted(note));
    }
    if dead > 0 {
        let note = "files of writes that were not completed, or were rolled back";
        let writes = Content::new("uncommitted", "", Some(true)).counted(dead, "files").sized(dead_bytes);
        all.push(writes.noted(note).hidden());
    }
    Ok(all)
}

/// The foreign files, by their names.
pub(crate) fn unclaimed(folder: &dyn Folder) -> Result<Vec<Entry>> {
    files_below(folder, &|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let own = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".crc")).unwrap_or(name);
        path.starts_with(".hoodie/")
            || own.starts_with(".hoodie_partition_metadata")
            || parse_name(own).is_some()
            || is_change_data(own)
    })
}
