//! File groups: from the files in a partition's folder to those that a view reads.
//!
//! ```text
//! layout 1   a log has the instant of its base file, or of a pending compaction, whose base file is not there yet
//! layout 2   a log has the instant of the commit that wrote it, and belongs to the last base file before its completion
//! ```
//!
//! Files of instants that are not valid are left out first, so that they never hide committed rows.

use std::collections::{BTreeMap, BTreeSet};

use coldframe_core::io::Folder;
use coldframe_core::{Error, Result};

use crate::data::timeline::Timeline;
use crate::data::view::Visible;
use crate::slice::{FileName, parse_name};

/// The start of the name of the file that makes a folder a partition; base formats have an extension.
const PARTITION: &str = ".hoodie_partition_metadata";
/// The deepest nesting of partitions.
const MAX_DEPTH: usize = 64;

/// A file of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupFile {
    /// The path below the table.
    pub path: String,
    /// Its length in bytes.
    pub len: u64,
    /// The instant in its name.
    pub instant: String,
}

/// The files of a group that a view reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    /// The partition's folder; empty for a table without partitions.
    pub partition: String,
    /// The group's id.
    pub file_id: String,
    /// The base file, if there is one.
    pub base: Option<GroupFile>,
    /// The logs, in the order of their writes.
    pub logs: Vec<GroupFile>,
    /// Files that a commit names but that are missing.
    pub missing: Vec<Named>,
    /// Logs with records, and the commits of which each must have a block.
    pub logged: Vec<Named>,
    /// Whether Hudi's reader has logs over this base file: of an incremental view those in its range, otherwise those of commits
    /// after the view too.
    pub has_logs: bool,
}

/// A file that a commit names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The path below the table.
    pub path: String,
    /// The instant of the commit.
    pub instant: String,
    /// Whether it is a log.
    pub is_log: bool,
}

impl Slice {
    /// All files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &GroupFile> {
        self.base.iter().chain(&self.logs)
    }

    /// The bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files().map(|file| file.len).fold(0, u64::saturating_add)
    }
}

/// A log's version, its write token and its file.
type Log = (u64, String, GroupFile);

/// All files of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// Base files by instant; several of one instant if tasks were repeated.
    pub bases: BTreeMap<String, Vec<GroupFile>>,
    logs: Vec<Log>,
}

/// The groups of a table by partition and id.
pub(crate) type Groups = BTreeMap<(String, String), Group>;

/// The folders that are partitions, with the files in them.
pub(crate) fn groups(folder: &dyn Folder) -> Result<Groups> {
    let mut groups = Groups::new();
    let mut folders = vec![(String::new(), 0)];
    while let Some((at, depth)) = folders.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::unsupported(format!("more than {MAX_DEPTH} folders above a partition: {at}")));
        }
        let entries = folder.list(&at)?;
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let is_partition = entries.iter().any(|e| !e.is_folder && name(&e.path).starts_with(PARTITION));
        for entry in entries {
            let own = name(&entry.path);
            if entry.is_folder {
                if !own.starts_with('.') {
                    folders.push((entry.path, depth + 1));
                }
                continue;
            }
            if !is_partition {
                continue;
            }
            match parse_name(&own) {
                Some(FileName::Base { file_id, instant, .. }) => {
                    let file = GroupFile { path: entry.path, len: entry.len, instant: instant.to_owned() };
                    let group = groups.entry((at.clone(), file_id.to_owned())).or_default();
                    group.bases.entry(instant.to_owned()).or_default().push(file);
                }
                Some(FileName::Log { file_id, instant, version, token, is_cdc: false }) => {
                    let file = GroupFile { path: entry.path, len: entry.len, instant: instant.to_owned() };
                    let group = groups.entry((at.clone(), file_id.to_owned())).or_default();
                    group.logs.push((version, token.to_owned(), file));
                }
                _ => {}
            }
        }
    }
    Ok(groups)
}

impl Group {
    /// All files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &GroupFile> {
        self.bases.values().flatten().chain(self.logs.iter().map(|(.., file)| file))
    }

    /// Whether the completion of an archived commit decides to which base file one of the logs belongs.
    pub(crate) fn needs_archive(&self, timeline: &Timeline) -> bool {
        let logs = self.logs.iter().map(|(.., file)| file.instant.as_str());
        let mut archived = logs.filter(|time| timeline.is_archived(time));
        let last = self.bases.keys().next_back();
        archived.any(|time| last.is_some_and(|base| time < base.as_str()))
    }

    /// The files that a view reads; `None` if it shows nothing of the group. `written`: the paths of the base files that an
    /// instant's commit names, to distinguish repeated tasks.
    pub(crate) fn slice(
        &self,
        key: &(String, String),
        timeline: &Timeline,
        visible: &Visible<'_>,
        written: &mut dyn FnMut(&str) -> Result<BTreeSet<String>>,
    ) -> Result<Option<Slice>> {
        let base = match self.bases.iter().rev().find(|(instant, _)| visible.has(instant)) {
            Some((instant, files)) => named_by_commit(files, instant, written)?,
            None => None,
        };
        let after = base.as_ref().map(|file| file.instant.as_str());
        let logs = match timeline.by_completion {
            true => self.logs_by_completion(after, timeline, visible),
            false => self.logs_by_base(after, timeline, visible),
        };
        let slice = Slice {
            partition: key.0.clone(),
            file_id: key.1.clone(),
            has_logs: match visible.is_incremental() {
                true => logs.iter().any(|file| visible.shows(&file.instant)),
                false => !logs.is_empty() || self.is_logged_later(after, timeline),
            },
            base,
            logs,
            missing: Vec::new(),
            logged: Vec::new(),
        };
        Ok((slice.base.is_some() || !slice.logs.is_empty()).then_some(slice))
    }

    /// Layout 1: the logs over a base file, and those that already have the instant of a pending compaction. A log whose
    /// instant is that of another commit without a base file has the name of layout 2, from before a downgrade.
    fn logs_by_base(&self, base: Option<&str>, timeline: &Timeline, visible: &Visible<'_>) -> Vec<GroupFile> {
        let counts = |file: &GroupFile| {
            let instant = file.instant.as_str();
            let behind = base.is_none_or(|base| instant >= base);
            behind
                && (visible.has(instant)
                    || (timeline.is_pending_compaction(instant) && !visible.is_later(instant)))
        };
        let mut logs: Vec<&Log> = self.logs.iter().filter(|(.., file)| counts(file)).collect();
        logs.sort_by(|a, b| (&a.2.instant, a.0, &a.1).cmp(&(&b.2.instant, b.0, &b.1)));
        logs.into_iter().map(|(.., file)| file.clone()).collect()
    }

    /// Layout 2: whether a commit after the view wrote a log before the group's next base file.
    fn is_logged_later(&self, base: Option<&str>, timeline: &Timeline) -> bool {
        let next = self.bases.keys().find(|instant| base.is_none_or(|base| instant.as_str() > base));
        timeline.by_completion
            && self.logs.iter().any(|(.., file)| {
                timeline.completion(&file.instant).is_some_and(|at| {
                    base.is_none_or(|base| at >= base) && next.is_none_or(|next| at < next.as_str())
                })
            })
    }

    /// Layout 2: the logs of commits that were completed after the base file's instant.
    fn logs_by_completion(
        &self,
        base: Option<&str>,
        timeline: &Timeline,
        visible: &Visible<'_>,
    ) -> Vec<GroupFile> {
        let counts = |file: &GroupFile| {
            let completion = timeline.completion(&file.instant);
            visible.has(&file.instant) && completion.is_some_and(|at| base.is_none_or(|base| at >= base))
        };
        let mut logs: Vec<&Log> = self.logs.iter().filter(|(.., file)| counts(file)).collect();
        logs.sort_by(|a, b| (&a.2.instant, a.0, &a.1).cmp(&(&b.2.instant, b.0, &b.1)));
        logs.into_iter().map(|(.., file)| file.clone()).collect()
    }
}

/// The base file of an instant: of several, the one that its commit names.
fn named_by_commit(
    files: &[GroupFile],
    instant: &str,
    written: &mut dyn FnMut(&str) -> Result<BTreeSet<String>>,
) -> Result<Option<GroupFile>> {
    if let [only] = files {
        return Ok(Some(only.clone()));
    }
    let named = written(instant)?;
    let chosen = files.iter().find(|file| named.contains(&file.path));
    match chosen {
        Some(file) => Ok(Some(file.clone())),
        None => Err(Error::unsupported(format!(
            "several base files of one file group and of instant {instant}, none of which its commit names"
        ))),
    }
}
