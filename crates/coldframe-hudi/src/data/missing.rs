//! Files that commits name but that are missing, and files whose instants the timeline does not know.
//!
//! A file that a commit wrote may be gone once a later base file of its group has all of its rows, or once the group was
//! replaced. Any other file has rows that must not be left out without notice.

use std::collections::{BTreeMap, BTreeSet};

use coldframe_core::{Error, Notice, Result};

use crate::data::commit::Commit;
use crate::data::files::{Groups, Named, Slice};
use crate::data::timeline::{Instant, Timeline};
use crate::slice::{FileName, is_change_data, parse_name};

/// A group's partition and id.
type Key = (String, String);

/// Adds the missing files to the slices, and adds slices for groups whose files are all missing.
pub(crate) fn add_missing(
    slices: &mut Vec<Slice>,
    groups: &Groups,
    timeline: &Timeline,
    commits: &[(Instant, Commit)],
    replaced: &BTreeSet<&Key>,
) -> Result<()> {
    let there: BTreeSet<&str> =
        groups.values().flat_map(|group| group.files()).map(|file| file.path.as_str()).collect();
    let mut named: BTreeMap<Key, (Vec<Named>, Vec<Named>)> = BTreeMap::new();
    let places: BTreeMap<Key, usize> =
        slices.iter().enumerate().map(|(i, s)| ((s.partition.clone(), s.file_id.clone()), i)).collect();
    for (instant, commit) in commits {
        for file in &commit.written {
            let name = file.path.rsplit('/').next().unwrap_or_default();
            if name.is_empty() || is_change_data(name) {
                continue;
            }
            let is_there = there.contains(file.path.as_str());
            let is_log = name.starts_with('.');
            if is_there && !(is_log && file.has_records) {
                continue;
            }
            let key = (file.partition.clone(), file.file_id.clone());
            let of_group = places.get(&key).and_then(|place| slices.get(*place));
            let base = of_group.and_then(|slice| slice.base.as_ref()).map(|base| base.instant.as_str());
            let is_superseded = match parse_name(name) {
                None => {
                    return Err(Error::unsupported(format!(
                        "a Hudi table whose commit {} names a file that is not called as Hudi calls its files: {:?}",
                        instant.time, file.path
                    )));
                }
                // A repeated task may have left the file of another attempt.
                Some(FileName::Base { instant, .. }) => base.is_some_and(|base| instant <= base),
                Some(FileName::Log { instant: own, .. }) => {
                    base.is_some_and(|base| match timeline.by_completion {
                        // As for the slices: logs from before an upgrade have the instant of their base file.
                        true => timeline.completion(own).is_none_or(|at| at < base),
                        false => own < base,
                    })
                }
            };
            if !is_superseded && !replaced.contains(&key) {
                let (path, instant) = (file.path.clone(), instant.time.clone());
                let (missing, logged) = named.entry(key).or_default();
                let list = if is_there { logged } else { missing };
                list.push(Named { path, instant, is_log });
            }
        }
    }
    for (key, (missing, logged)) in named {
        match places.get(&key).and_then(|place| slices.get_mut(*place)) {
            Some(slice) => (slice.missing, slice.logged) = (missing, logged),
            None => {
                let (partition, file_id) = key;
                slices.push(Slice { partition, file_id, base: None, logs: Vec::new(), missing, logged });
            }
        }
    }
    Ok(())
}

/// The error for a slice with a missing file.
pub(crate) fn error(missing: &Named) -> Error {
    let Named { path, instant, .. } = missing;
    Error::corrupt(format!("expected the file {path}, which commit {instant} names, found none"))
        .within("file group")
}

/// The error for a log without a block of the commit that wrote it.
pub(crate) fn lost_block(logged: &Named) -> Error {
    let Named { path, instant, .. } = logged;
    Error::corrupt(format!("expected a block of commit {instant} in the log {path}, found none"))
        .within("log")
}

/// The warning about files whose instants the timeline lacks, although it begins before them.
pub(crate) fn notice(groups: &Groups, timeline: &Timeline) -> Option<Notice> {
    let files = groups.values().flat_map(|group| group.files());
    let unknown: BTreeSet<&str> = files
        .map(|file| file.instant.as_str())
        .filter(|time| !timeline.is_known(time) && !timeline.is_archived(time))
        .collect();
    let first = unknown.first()?;
    Some(Notice::PartialTable(format!(
        "its timeline does not know {} of the instants in the names of its files ({first} is the first): their rows are \
         not read. They are left by writes that failed, or the timeline has lost instants",
        unknown.len()
    )))
}
