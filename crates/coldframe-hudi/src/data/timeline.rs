//! The timeline of a data table: its actions, and which of them are valid.
//!
//! ```text
//! layout 1   .hoodie/<instant>.<action>[.requested|.inflight]                       .hoodie/archived/
//! layout 2   .hoodie/timeline/<instant>[_<completion>].<action>[.requested|.inflight]   .hoodie/timeline/history/
//! ```
//!
//! Only completed instants are valid. An instant that is older than the timeline is archived: it was completed,
//! unless a rollback names it. A savepoint has the instant of the commit that it keeps, and is no write. If a
//! savepoint keeps the first instant of a timeline, the timeline does not start there: newer instants may have been
//! archived.

use std::collections::{BTreeMap, BTreeSet};

use coldframe_core::io::Folder;
use coldframe_core::{Error, ErrorContext, Limits, Result};
use serde_json::Value as Json;

use crate::data::commit;
use crate::data::properties::Properties;
use crate::timeline::parse_name;

/// The folder with a table's properties and timeline.
const HOODIE: &str = ".hoodie";

/// A completed action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instant {
    /// When it began: its name.
    pub time: String,
    /// `commit`, `deltacommit`, `replacecommit`, `clean` ..
    pub action: String,
    /// When it was completed. In layout 1, which does not store that, the instant itself.
    pub completion: String,
    /// The file that records it.
    path: String,
}

impl Instant {
    /// Whether it may have written rows.
    fn is_write(&self) -> bool {
        matches!(self.action.as_str(), "commit" | "deltacommit" | "replacecommit")
    }
}

/// The active timeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    /// The completed actions by instant, without savepoints.
    completed: Vec<Instant>,
    /// The completed writes: instant to completion.
    writes: BTreeMap<String, String>,
    /// Instants that began and were not completed.
    pending: BTreeSet<String>,
    /// Those of them that are compactions.
    compactions: BTreeSet<String>,
    /// Those of them whose writer was started.
    inflight: BTreeSet<String>,
    /// Instants that are older than the timeline, but were rolled back.
    rolled_back: BTreeSet<String>,
    /// The first instant that no savepoint keeps.
    start: Option<String>,
    /// The completion times of archived instants that were read.
    archived: BTreeMap<String, String>,
    /// Whether file names and completion times follow layout 2.
    pub by_completion: bool,
}

impl Timeline {
    /// Lists the timeline, and reads its rollbacks.
    pub(crate) fn read(folder: &dyn Folder, properties: &Properties, limits: &Limits) -> Result<Self> {
        let layout = properties.number("hoodie.timeline.layout.version");
        let version = properties.number("hoodie.table.version").unwrap_or(0);
        let by_completion = match layout {
            Some(0 | 1) => false,
            Some(2) => true,
            None => version >= 8,
            Some(other) => {
                return Err(Error::unsupported(format!("version {other} of the layout of Hudi's timeline")));
            }
        };
        let at = match by_completion {
            true => format!("{HOODIE}/{}", properties.get("hoodie.timeline.path").unwrap_or("timeline")),
            false => HOODIE.to_owned(),
        };
        let mut timeline = Self { by_completion, ..Self::default() };
        let (mut begun, mut savepoints) = (BTreeSet::new(), BTreeSet::new());
        let listed = match folder.list(&at) {
            Err(e) if e.is_not_found() && by_completion => Vec::new(),
            listed => listed?,
        };
        for entry in listed.iter().filter(|e| !e.is_folder) {
            let Some(name) = parse_name(entry.path.rsplit('/').next().unwrap_or_default()) else { continue };
            if name.action == "savepoint" {
                savepoints.insert(name.instant.to_owned());
            } else if name.done {
                timeline.completed.push(Instant {
                    time: name.instant.to_owned(),
                    action: name.action.to_owned(),
                    completion: name.completion.unwrap_or(name.instant).to_owned(),
                    path: entry.path.clone(),
                });
            } else {
                begun.insert((name.instant.to_owned(), name.action.to_owned()));
                if name.inflight {
                    timeline.inflight.insert(name.instant.to_owned());
                }
            }
        }
        timeline.completed.sort_by(|a, b| (&a.time, &a.action).cmp(&(&b.time, &b.action)));
        timeline.fill(begun, &savepoints);
        for instant in timeline.of(&["rollback", "restore"]) {
            let rolled = timeline.rolled_back_by(folder, instant, limits)?;
            timeline.rolled_back.extend(rolled);
        }
        Ok(timeline)
    }

    fn fill(&mut self, begun: BTreeSet<(String, String)>, savepoints: &BTreeSet<String>) {
        let writes = self.completed.iter().filter(|i| i.is_write());
        self.writes = writes.map(|i| (i.time.clone(), i.completion.clone())).collect();
        let done: BTreeSet<String> = self.completed.iter().map(|i| i.time.clone()).collect();
        for (time, action) in begun.into_iter().filter(|(time, _)| !done.contains(time)) {
            match action.as_str() {
                "compaction" | "logcompaction" => {
                    self.compactions.insert(time.clone());
                }
                "commit" | "deltacommit" | "replacecommit" | "clustering" => {}
                _ => continue,
            }
            self.pending.insert(time);
        }
        self.inflight.retain(|time| self.pending.contains(time));
        let all = || self.writes.keys().chain(&self.pending);
        self.start = all().filter(|time| !savepoints.contains(*time)).min().or(all().min()).cloned();
    }

    /// The completed actions of some kinds, the oldest first.
    pub(crate) fn of(&self, actions: &[&str]) -> Vec<Instant> {
        self.completed.iter().filter(|i| actions.contains(&i.action.as_str())).cloned().collect()
    }

    /// The completed writes, the oldest first.
    pub(crate) fn commits(&self) -> impl DoubleEndedIterator<Item = &Instant> {
        self.completed.iter().filter(|i| i.is_write())
    }

    /// Instants that began and were not completed.
    pub(crate) fn pending(&self) -> &BTreeSet<String> {
        &self.pending
    }

    /// Writes that were started and not completed. A write that was only requested has never been completed.
    pub(crate) fn inflight(&self) -> &BTreeSet<String> {
        &self.inflight
    }

    /// Whether an instant is a compaction that was not completed.
    pub(crate) fn is_pending_compaction(&self, time: &str) -> bool {
        self.compactions.contains(time)
    }

    /// Whether an instant is valid: it is completed, or it is older than the timeline and was not rolled back.
    pub(crate) fn is_committed(&self, time: &str) -> bool {
        self.writes.contains_key(time) || self.is_archived(time)
    }

    /// Whether an instant is older than the timeline.
    pub(crate) fn is_archived(&self, time: &str) -> bool {
        !self.writes.contains_key(time)
            && !self.pending.contains(time)
            && !self.rolled_back.contains(time)
            && self.start.as_ref().is_some_and(|start| time < start.as_str())
    }

    /// Whether the timeline knows the outcome of an instant.
    pub(crate) fn is_known(&self, time: &str) -> bool {
        self.writes.contains_key(time)
            || self.pending.contains(time)
            || self.rolled_back.contains(time)
            || self.compactions.contains(time)
    }

    /// When a committed instant was completed; for an archived one, when it began.
    pub(crate) fn completion<'a>(&'a self, time: &'a str) -> Option<&'a str> {
        match self.writes.get(time) {
            Some(completion) => Some(completion),
            None if !self.is_archived(time) => None,
            None => Some(self.archived.get(time).map_or(time, String::as_str)),
        }
    }

    /// Sets when archived instants were completed.
    pub(crate) fn set_archived(&mut self, completions: BTreeMap<String, String>) {
        self.archived = completions;
    }

    /// What an action recorded, as JSON; `None` for an empty file.
    pub(crate) fn content(&self, folder: &dyn Folder, of: &Instant, limits: &Limits) -> Result<Option<Json>> {
        let content = || {
            let file = folder.open(&of.path)?;
            limits.metadata("instant of a timeline", file.len())?;
            commit::json(&file.read(0..file.len())?, limits)
        };
        content().map_err(|e| e.in_file(of.path.clone())).within(|| format!("{} {}", of.action, of.time))
    }

    fn rolled_back_by(&self, folder: &dyn Folder, of: Instant, limits: &Limits) -> Result<BTreeSet<String>> {
        let mut all = BTreeSet::new();
        if let Some(json) = self.content(folder, &of, limits)? {
            collect_texts(&json, "commitsRollback", &mut all);
        }
        // An instant may be written again after it was rolled back.
        Ok(all.into_iter().filter(|time| !self.writes.contains_key(time)).collect())
    }
}

/// The texts of all lists under `key`, anywhere in `json`: a restore contains several rollbacks.
fn collect_texts(json: &Json, key: &str, into: &mut BTreeSet<String>) {
    match json {
        Json::Object(map) => {
            for (name, value) in map {
                match value {
                    Json::Array(items) if name == key => {
                        into.extend(items.iter().filter_map(Json::as_str).map(str::to_owned));
                    }
                    _ => collect_texts(value, key, into),
                }
            }
        }
        Json::Array(items) => items.iter().for_each(|item| collect_texts(item, key, into)),
        _ => {}
    }
}
