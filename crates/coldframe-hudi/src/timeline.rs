//! Instants: the actions on a table and their states.
//!
//! ```text
//! Hudi 0.x, .hoodie/            <instant>.<action>.requested | <instant>.<action>.inflight | <instant>.<action>
//! Hudi 1.x, .hoodie/timeline/   the same, but when completed: <instant>_<completion time>.<action>
//! ```
//!
//! Instants are strings of 17 digits and are compared as strings. Old tables have 14 digits, and some
//! operations on metadata append three. Commits in flight are `<instant>.inflight`. A compaction completes as
//! a `commit`, a log compaction and an indexing as a `deltacommit`.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use coldframe_core::io::Folder;
use coldframe_core::{Error, Limits, Result};

use crate::avro::container;
use crate::avro::datum::Datum;
use crate::avro::schema::{Schema, Type, TypeId};

/// The prefix of all instants that initialise a partition of the metadata table, and that instant in Hudi 0.7 to 0.10.
const SOLO_COMMIT: &str = "0000000000000";

/// Whether a text is an instant.
pub(crate) fn is_instant(text: &str) -> bool {
    text == SOLO_COMMIT || (text.len() >= 14 && text.bytes().all(|b| b.is_ascii_digit()))
}

/// A completed instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Completed {
    /// The action: `deltacommit`, `commit`, `rollback` ...
    pub action: String,
    /// The completion time, which old tables do not store.
    pub completion: Option<String>,
    /// The file that records it.
    path: String,
}

impl Completed {
    /// Creates a completed instant whose file is not needed.
    #[cfg(test)]
    pub(crate) fn new(action: &str, completion: Option<&str>) -> Self {
        Self { action: action.into(), completion: completion.map(str::to_owned), path: String::new() }
    }
}

/// The active timeline of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timeline {
    /// The completed instants, with what is known of each instant.
    pub completed: BTreeMap<String, Completed>,
    /// Instants that are requested or inflight.
    pub pending: BTreeSet<String>,
}

/// A parsed file name of a timeline.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InstantName<'a> {
    /// When the action began.
    pub instant: &'a str,
    /// When the action was completed, if the name says so.
    pub completion: Option<&'a str>,
    /// The action.
    pub action: &'a str,
    /// Whether the action is completed.
    pub done: bool,
    /// Whether the action was started and is not completed.
    pub inflight: bool,
}

/// Parses the name of a timeline's file.
pub(crate) fn parse_name(name: &str) -> Option<InstantName<'_>> {
    let mut parts = name.split('.');
    let (times, action, state) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    let (instant, completion) = match times.split_once('_') {
        Some((instant, completion)) => (instant, Some(completion)),
        None => (times, None),
    };
    if !is_instant(instant) || completion.is_some_and(|c| !is_instant(c)) {
        return None;
    }
    let (action, done, inflight) = match (action, state) {
        ("inflight", None) => ("commit", false, true),
        (action, None) => (action, true, false),
        (action, Some("requested")) => (action, false, false),
        (action, Some("inflight")) => (action, false, true),
        _ => return None,
    };
    Some(InstantName { instant, completion, action, done, inflight })
}

impl Timeline {
    /// Reads the timeline in the folder `at` (a `.hoodie`), and in its subfolder `below`, if there is one (newer tables).
    pub(crate) fn read(folder: &dyn Folder, at: &str, below: &str) -> Result<Self> {
        let mut timeline = Self::default();
        let mut begun = BTreeSet::new();
        let mut listed = folder.list(at)?;
        let below = if at.is_empty() { below.to_owned() } else { format!("{at}/{below}") };
        if listed.iter().any(|e| e.is_folder && e.path == below) {
            listed.extend(folder.list(&below)?);
        }
        for entry in listed.iter().filter(|e| !e.is_folder) {
            let Some(name) = parse_name(entry.path.rsplit('/').next().unwrap_or_default()) else { continue };
            // A savepoint has the instant of the commit that it preserves.
            if name.action == "savepoint" {
                continue;
            }
            if name.done {
                let done = Completed {
                    action: name.action.to_owned(),
                    completion: name.completion.map(str::to_owned),
                    path: entry.path.clone(),
                };
                timeline.completed.insert(name.instant.to_owned(), done);
            } else {
                begun.insert(name.instant.to_owned());
            }
        }
        timeline.pending = begun.into_iter().filter(|i| !timeline.completed.contains_key(i)).collect();
        Ok(timeline)
    }

    /// The first listed instant. Older instants are archived, and archived instants are completed.
    fn start(&self) -> Option<&str> {
        let (completed, pending) = (self.completed.keys().next(), self.pending.iter().next());
        completed.into_iter().chain(pending).map(String::as_str).min()
    }

    /// Whether an instant is completed, or older than all listed instants.
    pub(crate) fn is_committed(&self, instant: &str) -> bool {
        self.completed.contains_key(instant)
            || (!self.pending.contains(instant) && self.start().is_some_and(|start| instant < start))
    }

    /// The completion time of an instant. For an archived instant, that is the time when it began.
    pub(crate) fn completion<'a>(&'a self, instant: &'a str) -> Option<&'a str> {
        match self.completed.get(instant) {
            Some(done) => Some(done.completion.as_deref().unwrap_or(instant)),
            None => self.is_committed(instant).then_some(instant),
        }
    }

    /// The contents of the completed instants later than `after` with one of these actions.
    fn contents(
        &self,
        folder: &dyn Folder,
        actions: &[&str],
        after: &str,
        limits: &Limits,
    ) -> Result<Vec<(String, Bytes)>> {
        let mut all = Vec::new();
        for (instant, done) in &self.completed {
            if instant.as_str() > after && actions.contains(&done.action.as_str()) {
                let file = folder.open(&done.path)?;
                limits.metadata("instant of a timeline", file.len())?;
                all.push((instant.clone(), file.read(0..file.len())?));
            }
        }
        Ok(all)
    }

    /// The instants that were undone by a rollback or restore later than `after`.
    fn rolled_back(&self, folder: &dyn Folder, after: &str, limits: &Limits) -> Result<BTreeSet<String>> {
        let mut instants = BTreeSet::new();
        for (instant, bytes) in self.contents(folder, &["rollback", "restore"], after, limits)? {
            // A repeated rollback may leave an empty file.
            if bytes.is_empty() {
                continue;
            }
            let each = |schema: &Schema, datum: &Datum<'_>| {
                collect_rolled_back(schema, schema.root(), datum, &mut instants)
            };
            container::read(&bytes, limits, each).map_err(|e| e.within(format!("instant {instant}")))?;
        }
        Ok(instants)
    }

    /// For each partition, the file groups whose rows are now in other groups because of clustering or
    /// overwriting.
    pub(crate) fn replaced(
        &self,
        folder: &dyn Folder,
        limits: &Limits,
    ) -> Result<BTreeMap<String, Vec<String>>> {
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (instant, bytes) in self.contents(folder, &["replacecommit"], "", limits)? {
            let result = if bytes.starts_with(container::MAGIC) {
                container::read(&bytes, limits, |schema, datum| {
                    let replaced = datum.field(schema, schema.root(), REPLACED);
                    let Some(Datum::Map(partitions)) = replaced else { return };
                    for (partition, ids) in partitions {
                        let Datum::Array(ids) = ids.unwrap_union() else { continue };
                        let ids = ids.iter().filter_map(|id| match id.unwrap_union() {
                            Datum::String(id) => Some((*id).to_owned()),
                            _ => None,
                        });
                        groups.entry((*partition).to_owned()).or_default().extend(ids);
                    }
                })
            } else {
                replaced_of_json(&bytes, limits, &mut groups)
            };
            result.map_err(|e| e.within(format!("instant {instant}")))?;
        }
        Ok(groups)
    }
}

/// The field of a commit's metadata.
const REPLACED: &str = "partitionToReplaceFileIds";

/// Parses the form that Hudi 0.x writes. An instant without metadata replaces nothing.
fn replaced_of_json(bytes: &[u8], limits: &Limits, groups: &mut BTreeMap<String, Vec<String>>) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    // A JSON value of two bytes takes several dozen bytes in memory, so the values are counted first: each
    // value but the first follows one of these characters.
    let values = bytes.iter().filter(|b| matches!(b, b'[' | b'{' | b',' | b':')).count();
    let size = values.saturating_mul(size_of::<(String, serde_json::Value)>()).saturating_add(bytes.len());
    limits.decoded("JSON of an instant", size as u64, bytes.len() as u64)?;
    let json: serde_json::Value = serde_json::from_slice(bytes)
        .map_err(|e| Error::corrupt(format!("expected JSON or an Avro container, found {e}")))?;
    for (partition, ids) in json.get(REPLACED).and_then(|r| r.as_object()).into_iter().flatten() {
        let ids = ids.as_array().into_iter().flatten().filter_map(|id| id.as_str()).map(str::to_owned);
        groups.entry(partition.clone()).or_default().extend(ids);
    }
    Ok(())
}

/// Collects the lists `commitsRollback` anywhere in a datum: a restore contains several rollbacks.
fn collect_rolled_back(schema: &Schema, id: TypeId, datum: &Datum<'_>, into: &mut BTreeSet<String>) {
    match (datum, schema.get(id)) {
        (Datum::Union(branch, inner), Type::Union(branches)) => {
            collect_rolled_back(schema, branches.get(*branch).copied().unwrap_or_default(), inner, into);
        }
        (Datum::Array(items), Type::Array(of)) => {
            items.iter().for_each(|item| collect_rolled_back(schema, *of, item, into));
        }
        (Datum::Map(entries), Type::Map(of)) => {
            entries.iter().for_each(|(_, value)| collect_rolled_back(schema, *of, value, into));
        }
        (Datum::Record(values), Type::Record { fields, .. }) => {
            for (field, value) in fields.iter().zip(values) {
                match value.unwrap_union() {
                    Datum::Array(instants) if field.name == "commitsRollback" => {
                        into.extend(instants.iter().filter_map(|i| match i.unwrap_union() {
                            Datum::String(instant) => Some((*instant).to_owned()),
                            _ => None,
                        }));
                    }
                    _ => collect_rolled_back(schema, field.of, value, into),
                }
            }
        }
        _ => {}
    }
}

/// The instants whose blocks in the logs of a metadata table are valid.
///
/// Hudi writes metadata before it completes the data table's instant, so the data table's timeline decides. An instant
/// that the data table lacks, from an indexing or an initialisation, is valid if the metadata table has it.
/// Instants that were rolled back stay in the set, since the logs contain the rollback as well.
pub(crate) fn valid_instants(
    metadata: &Timeline,
    data: Option<(&Timeline, &dyn Folder)>,
    limits: &Limits,
) -> Result<BTreeSet<String>> {
    let mut valid = BTreeSet::new();
    let pending = data.map(|(timeline, _)| &timeline.pending);
    if let Some((timeline, _)) = data {
        valid.extend(timeline.completed.keys().cloned());
    }
    for (instant, done) in &metadata.completed {
        let counts = match done.action.as_str() {
            "deltacommit" => {
                instant.starts_with(SOLO_COMMIT) || !pending.is_some_and(|p| p.contains(instant))
            }
            "rollback" | "restore" => true,
            // If the data table is not accessible, only compactions prove that the instants in them are
            // valid.
            _ => data.is_none(),
        };
        if counts {
            valid.insert(instant.clone());
        }
    }
    if let Some((timeline, folder)) = data {
        let earliest = valid.iter().next().cloned().unwrap_or_else(|| SOLO_COMMIT.to_owned());
        valid.extend(timeline.rolled_back(folder, &earliest, limits)?);
    }
    Ok(valid)
}

/// The `key=value` lines of a `hoodie.properties`; `None` if there is no such file.
pub(crate) fn properties(
    folder: &dyn Folder,
    path: &str,
    limits: &Limits,
) -> Result<Option<BTreeMap<String, String>>> {
    let file = match folder.open(path) {
        Ok(file) => file,
        Err(e) if e.is_not_found() => return Ok(None),
        Err(e) => return Err(e),
    };
    limits.metadata("hoodie.properties", file.len())?;
    let bytes = file.read(0..file.len())?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(str::trim).filter(|l| !l.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    Ok(Some(pairs.map(|(k, v)| (k.trim().to_owned(), v.trim().to_owned())).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_instants_of_both_layouts_are_parsed() {
        let name = |n| parse_name(n).map(|n| (n.instant, n.completion, n.action, n.done));
        let (i, c) = ("20261121071007673", "20261121071028731");
        assert_eq!(
            name("20261121071007673_20261121071028731.deltacommit"),
            Some((i, Some(c), "deltacommit", true))
        );
        assert_eq!(name("20261121071007673.deltacommit"), Some((i, None, "deltacommit", true)));
        assert_eq!(name("20261121071007673.deltacommit.inflight"), Some((i, None, "deltacommit", false)));
        assert_eq!(name("20261121071007673.commit.requested"), Some((i, None, "commit", false)));
        assert_eq!(name("20261121071007673.inflight"), Some((i, None, "commit", false)));
        assert_eq!(name("hoodie.properties"), None);
        assert_eq!(name(".20261121071007673.commit.crc"), None);
    }

    fn timeline(done: &[(&str, &str)], pending: &[&str]) -> Timeline {
        let done = done.iter().map(|(instant, action)| {
            let done = Completed { action: (*action).into(), completion: None, path: String::new() };
            ((*instant).to_owned(), done)
        });
        Timeline { completed: done.collect(), pending: pending.iter().map(|p| (*p).to_owned()).collect() }
    }

    #[test]
    fn pending_instants_are_not_valid() {
        let folder = coldframe_store::LocalFolder::new("/nowhere");
        let metadata = timeline(
            &[
                ("00000000000000000", "deltacommit"),
                ("20250101000000001", "deltacommit"),
                ("20250101000000002", "deltacommit"),
                ("20250101000000003", "deltacommit"),
                ("20250101000000004", "commit"),
            ],
            &["20250101000000005"],
        );
        // Instant 2 is completed in the metadata but pending in the data table. Instant 3 is an indexing,
        // which the data table does not have.
        let data = timeline(&[("20250101000000001", "commit")], &["20250101000000002"]);
        let valid = valid_instants(&metadata, Some((&data, &folder)), &Limits::default()).unwrap();
        let valid: Vec<&str> = valid.iter().map(String::as_str).collect();
        assert_eq!(valid, ["00000000000000000", "20250101000000001", "20250101000000003"]);
        assert!(metadata.is_committed("20250101000000004"));
        assert!(!metadata.is_committed("20250101000000005"));
        assert!(data.is_committed("20240101000000000"), "archived");
        assert_eq!(metadata.completion("20250101000000005"), None);
    }
}
