//! Files that commits name but that are missing, and files whose instants the timeline does not know.
//!
//! A file that a commit wrote may be gone once a later base file of its group has all of its rows, or once the group was
//! replaced. Any other file has rows that must not be left out without notice.

use std::collections::{BTreeMap, BTreeSet};

use coldframe_core::io::Folder;
use coldframe_core::{Damage, Error, Limits, Notice, Result};

use crate::data::commit::Commit;
use crate::data::files::{Groups, Named, Slice};
use crate::data::properties::Properties;
use crate::data::timeline::{Instant, Timeline};
use crate::data::view::{Shown, Visible};
use crate::log::{Block, BlockKind};
use crate::slice::{FileName, is_change_data, parse_name};

/// A group's partition and id.
pub(crate) type Key = (String, String);

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
    let key = |slice: &Slice| (slice.partition.clone(), slice.file_id.clone());
    let bases = slices.iter().filter_map(|slice| Some((key(slice), slice.base.as_ref()?.instant.clone())));
    let mut lost = find(&there, &bases.collect(), timeline, commits)?;
    lost.retain(|key, _| !replaced.contains(key));
    for slice in slices.iter_mut() {
        if let Some(Lost { missing, logged }) = lost.remove(&key(slice)) {
            (slice.missing, slice.logged) = (missing, logged);
        }
    }
    for ((partition, file_id), Lost { missing, logged }) in lost {
        let has_logs = missing.iter().any(|file| file.is_log);
        slices.push(Slice { partition, file_id, base: None, logs: Vec::new(), missing, logged, has_logs });
    }
    Ok(())
}

/// The files of a group that must be there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost {
    /// Those that are not there.
    pub missing: Vec<Named>,
    /// Logs with records, and the commits of which each must have a block.
    pub logged: Vec<Named>,
}

/// The files that commits name and whose rows no later base file of their group has. `there`: the paths of all files;
/// `bases`: the instants of the groups' base files.
pub(crate) fn find(
    there: &BTreeSet<&str>,
    bases: &BTreeMap<Key, String>,
    timeline: &Timeline,
    commits: &[(Instant, Commit)],
) -> Result<BTreeMap<Key, Lost>> {
    let mut lost: BTreeMap<Key, Lost> = BTreeMap::new();
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
            let base = bases.get(&key).map(String::as_str);
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
            if !is_superseded {
                let (path, instant) = (file.path.clone(), instant.time.clone());
                let Lost { missing, logged } = lost.entry(key).or_default();
                let list = if is_there { logged } else { missing };
                list.push(Named { path, instant, is_log });
            }
        }
    }
    Ok(lost)
}

/// The files of a metadata table. Its groups are chosen elsewhere.
pub(crate) struct OfMetadata<'a> {
    /// The paths of the files of its groups.
    pub there: BTreeSet<&'a str>,
    /// The instants of the groups' base files.
    pub bases: BTreeMap<Key, String>,
    /// The instants in the names of all files.
    pub instants: BTreeSet<&'a str>,
}

/// What the commits of a metadata table name and its partitions lack, and what else it seems to lack.
pub(crate) fn of_metadata(
    root: &dyn Folder,
    files: &OfMetadata<'_>,
    limits: &Limits,
) -> Result<(BTreeMap<Key, Lost>, Vec<String>)> {
    let Some(properties) = Properties::read(root, limits)? else { return Ok(Default::default()) };
    let timeline = Timeline::read(root, &properties, limits)?;
    let shown = Shown::Snapshot { as_of: None };
    let visible = Visible::new(&timeline, &shown);
    let (commits, unrecorded) = visible.commits(root, limits)?;
    let lost = find(&files.there, &files.bases, &timeline, &commits)?;
    Ok((lost, lacking_of(root, &files.instants, &visible, &unrecorded)?))
}

/// Fails if commits wrote blocks that no log has: those of a file in `missing` or `logged`. A later log may repeat the
/// blocks of a missing one. `blocks`: those of all logs.
pub(crate) fn check_blocks(blocks: &[&Block], missing: &[Named], logged: &[Named]) -> Result<()> {
    let is_there = |file: &&Named| {
        blocks.iter().filter(|block| block.kind != BlockKind::Corrupt).any(|block| {
            let merged = block.compacted().is_some_and(|all| all.contains(&file.instant.as_str()));
            merged || block.instant() == Some(file.instant.as_str())
        })
    };
    if let Some(file) = missing.iter().find(|file| !is_there(file)) {
        return Err(error(file));
    }
    // A block that was torn when its writer died belongs to no commit, unless it was written again.
    match logged.iter().find(|file| !is_there(file)) {
        Some(file) => Err(lost_block(file)),
        None => Ok(()),
    }
}

/// The error for a slice with a missing file.
pub(crate) fn error(missing: &Named) -> Error {
    let Named { path, instant, .. } = missing;
    Error::corrupt(format!("expected the file {path}, which commit {instant} names, found none"))
        .within("file group")
}

/// The error for a log without a block of the commit that wrote it.
fn lost_block(logged: &Named) -> Error {
    let Named { path, instant, .. } = logged;
    Error::corrupt(format!("expected a block of commit {instant} in the log {path}, found none"))
        .within("log")
}

/// Where writers keep marks while they write: a folder or file for each instant, removed once it is completed.
const MARKS: [&str; 2] = [".hoodie/.temp", ".hoodie/.heartbeat"];

/// What seems to be missing of a table, without proof that it existed. `unrecorded`: completed commits whose files are empty.
pub(crate) fn lacking(
    folder: &dyn Folder,
    groups: &Groups,
    visible: &Visible<'_>,
    unrecorded: &[String],
) -> Result<Vec<String>> {
    let files = groups.values().flat_map(|group| group.files());
    lacking_of(folder, &files.map(|file| file.instant.as_str()).collect(), visible, unrecorded)
}

/// The same, by the instants in the names of all files.
fn lacking_of(
    folder: &dyn Folder,
    instants: &BTreeSet<&str>,
    visible: &Visible<'_>,
    unrecorded: &[String],
) -> Result<Vec<String>> {
    let lost = unfinished(folder, visible)?.map(|(count, first)| {
        format!(
            "{count} of its commits were started and are not completed ({first} is the first), and no markers or \
             heartbeats of them are left, as if they had been completed: what they wrote is not read. They have \
             failed, or the timeline has lost files that complete them"
        )
    });
    let empty = unrecorded.first().map(|first| {
        format!(
            "{} of its completed commits have an empty file in the timeline ({first} is the first): which files they \
             wrote and which file groups they replaced is not known, and replaced groups are read",
            unrecorded.len()
        )
    });
    Ok(unknown(instants, visible.timeline()).into_iter().chain(lost).chain(empty).collect())
}

/// Files whose instants the timeline lacks, although it begins before them.
fn unknown(instants: &BTreeSet<&str>, timeline: &Timeline) -> Option<String> {
    let is_unknown = |time: &&&str| !timeline.is_known(time) && !timeline.is_archived(time);
    let unknown: Vec<&&str> = instants.iter().filter(is_unknown).collect();
    let first = unknown.first()?;
    Some(format!(
        "its timeline does not know {} of the instants in the names of its files ({first} is the first): their rows are \
         not read. They are left by writes that failed, or the timeline has lost instants",
        unknown.len()
    ))
}

/// The number of commits that were started and of which neither a completion nor a mark of their writers is left, and the
/// first of them. A running writer has marks, and one that died leaves them to the rollback.
fn unfinished(folder: &dyn Folder, visible: &Visible<'_>) -> Result<Option<(usize, String)>> {
    let started = visible.timeline().inflight().iter().filter(|time| !visible.is_later(time));
    let mut started: BTreeSet<&str> = started.map(String::as_str).collect();
    for at in MARKS {
        if started.is_empty() {
            return Ok(None);
        }
        match folder.list(at) {
            Err(e) if e.is_not_found() => {}
            listed => {
                for entry in listed? {
                    started.remove(entry.path.rsplit('/').next().unwrap_or_default());
                }
            }
        }
    }
    Ok(started.first().map(|first| (started.len(), (*first).to_owned())))
}

/// What a table lacks, as warnings; none for a complete table, which records it as damage.
pub(crate) fn notices(lacking: &[String], is_complete: bool) -> Vec<Notice> {
    let texts = if is_complete { &[] } else { lacking };
    texts.iter().cloned().map(Notice::PartialTable).collect()
}

/// What a table lacks, as damage.
pub(crate) fn loss(text: &str) -> Damage {
    Damage::from_error(&Error::corrupt(text.to_owned()).within("table"), 0..0, None)
}
