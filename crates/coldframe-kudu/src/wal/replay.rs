//! Replays the operations of a log: rebuilds the memory that the server lost when it stopped.
//!
//! ```text
//! operation, committed ──▶ each row: where it went ──▶ new rows by key: insert, update, delete, insert again
//!                                                  └─▶ changes to a rowset, by key; by ordinal at the end
//! committed, without a record of where it went ──▶ the row is looked up, as the server would do
//! not committed ──▶ not applied, nor anything after it
//! ```
//!
//! Operations are applied in index order, with the columns that the tablet had at the time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use coldframe_cfile::layout::delta::ChangeType;
use coldframe_core::io::Folder;
use coldframe_core::{Error, Fault, Result};

use super::find::RowSetKeys;
use super::loss::LogLoss;
use super::memory::Entries;
use super::read::{Applied, Log, Op, OpBody, Target, read};
use super::rows::{RowOp, RowOpKind, RowOps};
use super::summary::Summary;
use crate::layout::operations::{OpId, ParticipantOp, Write};
use crate::rowset::Reading;
use crate::schema::TableSchema;
use crate::tablet::Tablet;

/// What a tablet's log adds to the flushed rows.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// New rows, numbered in the order of `keys`.
    pub(crate) rows: Entries,
    /// The encoded keys of the new rows, sorted.
    pub(crate) keys: Vec<Vec<u8>>,
    /// The changes to each rowset's rows.
    pub(crate) changes: HashMap<u64, Entries>,
    /// New rows whose current state is unknown.
    pub(crate) lost_rows: Vec<LogLoss>,
    /// Holes in which unknown rows may have been inserted. Such rows have no numbers.
    pub(crate) lost_inserts: Vec<LogLoss>,
    /// For each rowset, the rows whose current state is unknown.
    pub(crate) lost_changes: HashMap<u64, Vec<LogLoss>>,
    /// All damage in the log.
    pub(crate) broken: Vec<Arc<Fault>>,
    /// The number of live rows minus the number of flushed live rows, if nothing is lost.
    pub(crate) live: i64,
    /// The number of operations in the log, and the number of uncommitted operations.
    pub(crate) operations: u64,
    pub(crate) uncommitted: u64,
}

impl Replayed {
    /// Approximately how much memory the replayed log takes.
    pub(crate) fn bytes(&self) -> u64 {
        let keys: usize = self.keys.iter().map(|key| key.len() + size_of::<Vec<u8>>()).sum();
        let changes: u64 = self.changes.values().map(Entries::memory).sum();
        self.rows.memory().saturating_add(changes).saturating_add(keys as u64)
    }

    pub(crate) fn summary(&self) -> Summary {
        let reported = self.lost_changes.values().flatten().chain(&self.lost_rows).chain(&self.lost_inserts);
        let reported: HashSet<*const Fault> = reported.map(|loss| Arc::as_ptr(&loss.what)).collect();
        let harmless = self.broken.iter().filter(|what| !reported.contains(&Arc::as_ptr(what)));
        Summary {
            rows: self.keys.len() as u64,
            bytes: self.rows.bytes(),
            changes: self.changes.values().map(Entries::len).sum::<usize>() as u64,
            live: reported.is_empty().then_some(self.live),
            lacks_rows: !self.lost_inserts.is_empty(),
            operations: self.operations,
            uncommitted: self.uncommitted,
            broken: self.broken.clone(),
            harmless: harmless.cloned().collect(),
        }
    }
}

/// Replays the log of a tablet. `committed` returns whether the Raft group agreed on an operation that has no
/// commit message; its second argument is the highest index with a commit message.
pub(crate) fn replay(
    tablet: &Tablet,
    folder: &dyn Folder,
    reading: &Reading,
    committed: &dyn Fn(OpId, i64) -> bool,
) -> Result<Replayed> {
    let log = read(tablet, folder, (reading.verify, &reading.limits))?;
    let mut state = Replay {
        tablet,
        reading,
        schema: tablet.schema.clone(),
        version: None,
        rows: HashMap::new(),
        entries: Entries::default(),
        changes: HashMap::new(),
        transactions: HashMap::new(),
        finders: HashMap::new(),
        memory_since: None,
        missing: Vec::new(),
        uncertain: Vec::new(),
        out: Replayed { operations: log.replicated, ..Replayed::default() },
    };
    state.run(log, committed)?;
    state.finish()
}

/// A new row.
struct Row {
    number: u64,
    live: bool,
    /// If the state of the row is unknown: since when, and why.
    lost: Option<(u64, Arc<Fault>)>,
    /// The index of the operation that wrote all cells of the row.
    written_by: i64,
}

/// The changes to the rows of a rowset.
#[derive(Default)]
struct RowSetChanges {
    numbers: HashMap<Vec<u8>, u64>,
    entries: Entries,
    /// For rows that a change deleted or reinserted: whether they are live.
    live: HashMap<u64, bool>,
}

/// A row written by a transaction. The row becomes visible when the transaction ends.
struct UncommittedRow {
    kind: ChangeType,
    key: Vec<u8>,
    cells: Vec<u8>,
}

struct Replay<'a> {
    tablet: &'a Tablet,
    reading: &'a Reading,
    /// The schema at this point of the log.
    schema: TableSchema,
    version: Option<u32>,
    rows: HashMap<Vec<u8>, Row>,
    entries: Entries,
    changes: HashMap<u64, RowSetChanges>,
    transactions: HashMap<i64, Vec<UncommittedRow>>,
    finders: HashMap<u64, RowSetKeys<'a>>,
    /// If a hole may contain changes to new rows: the state of rows that were written before this operation
    /// is unknown.
    memory_since: Option<(i64, u64, Arc<Fault>)>,
    missing: Vec<LogLoss>,
    /// Keys of rows whose state is unknown, whichever store they are in.
    uncertain: Vec<(Vec<u8>, u64, Arc<Fault>)>,
    out: Replayed,
}

impl<'a> Replay<'a> {
    fn run(&mut self, log: Log, committed: &dyn Fn(OpId, i64) -> bool) -> Result<()> {
        let rowsets: Vec<u64> = self.tablet.rowsets.iter().map(|r| r.id).collect();
        self.out.broken = log.holes.iter().map(|h| h.what.clone()).collect();
        let mut holes = log.holes.iter().peekable();
        let last_hole = log.holes.iter().rev().find_map(|h| Some((h.before?.index, h)));
        let mut schemas = log.schemas.iter().peekable();
        // Set at the first operation whose commit message the server did not write before it stopped. From there on,
        // operations are applied again, or not at all.
        let mut reapplying = false;
        for (index, op) in &log.ops {
            while let Some((_, version, schema)) = schemas.next_if(|(first, ..)| first <= index) {
                self.set_schema(*version, || TableSchema::new(schema))?;
            }
            while let Some(hole) = holes.next_if(|h| h.before.is_none_or(|id| id.index < *index)) {
                let unknown = hole.unknown(&rowsets, &log.orphans, &log.flushed);
                self.mark_unknown(unknown.memory, unknown.rowsets, *index, (hole.time, &hole.what));
            }
            match (&op.applied, last_hole) {
                (Applied::Not, _) => {}
                (Applied::To(targets), _) if !reapplying => self.applied(op, targets)?,
                (Applied::Unknown, Some((before, hole))) if *index <= before => {
                    self.apply_uncertain(op, &hole.what)?
                }
                _ => {
                    reapplying = true;
                    if !committed(op.id, log.committed) {
                        self.out.uncommitted = log.ops.range(index..).count() as u64;
                        break;
                    }
                    self.reapply(op)?;
                }
            }
        }
        for hole in holes {
            let unknown = hole.unknown(&rowsets, &log.orphans, &log.flushed);
            self.mark_unknown(unknown.memory, unknown.rowsets, i64::MAX, (hole.time, &hole.what));
        }
        Ok(())
    }

    fn set_schema(&mut self, version: u32, schema: impl FnOnce() -> Result<TableSchema>) -> Result<()> {
        // The first schema is used whatever its version, because it is older than the schema of the super
        // block.
        if self.version.is_none_or(|known| version > known) {
            self.schema = schema()?;
            self.version = Some(version);
        }
        Ok(())
    }

    /// Marks rows as unknown from an operation on.
    fn mark_unknown(
        &mut self,
        memory: bool,
        rowsets: impl IntoIterator<Item = u64>,
        index: i64,
        (since, what): (u64, &Arc<Fault>),
    ) {
        if memory {
            self.memory_since = Some((index, since, what.clone()));
            self.missing.push(LogLoss { rows: 0..0, since, what: what.clone() });
        }
        for id in rowsets {
            let loss = LogLoss { rows: 0..u64::MAX, since, what: what.clone() };
            self.out.lost_changes.entry(id).or_default().push(loss);
        }
    }

    /// Applies an operation whose commit message names the store of each row.
    fn applied(&mut self, op: &Op, targets: &[Target]) -> Result<()> {
        let write = match &op.what {
            OpBody::Write(write) => write,
            OpBody::Alter(alter) => return self.alter(alter.schema_version, alter.schema.as_ref()),
            OpBody::Participant(step) => {
                self.participant(op, step);
                return Ok(());
            }
            OpBody::Other => return Ok(()),
        };
        let mut left = targets.iter();
        let done = self.each_row(write, |state, row| match left.next() {
            Some(Target::None) => Ok(()),
            Some(Target::Memory) => state.write_row(op, write, row),
            Some(Target::RowSet(id)) => state.change_row(*id, row.key(&state.schema)?, op, row),
            None => Err(Error::corrupt("expected a result for each row of a write, found fewer")),
        });
        let done = done.and_then(|()| match left.find(|target| **target != Target::None) {
            Some(_) => Err(Error::corrupt("expected a row for each result of a write, found fewer")),
            None => Ok(()),
        });
        match done {
            Err(e) if Fault::is(&e) => {
                let ids =
                    targets.iter().filter_map(|t| if let Target::RowSet(id) = t { Some(*id) } else { None });
                let what = Arc::new(self.broken(op, &e));
                self.out.broken.push(what.clone());
                let ids: Vec<u64> = ids.collect();
                let memory = targets.contains(&Target::Memory);
                self.mark_unknown(memory, ids, op.id.index.saturating_add(1), (op.time, &what));
                Ok(())
            }
            other => other,
        }
    }

    fn broken(&self, op: &Op, e: &Error) -> Fault {
        let structure = format!("operation {}.{} of the write-ahead log", op.id.term, op.id.index);
        let mut fault = Fault::from_error(e, 0..0, None);
        fault.damage.structure = structure;
        fault
    }

    fn each_row(
        &mut self,
        write: &Write,
        mut each: impl FnMut(&mut Self, &RowOp<'_>) -> Result<()>,
    ) -> Result<()> {
        let (Some(client), Some(operations)) = (&write.schema, &write.operations) else { return Ok(()) };
        let counter = write.auto_incrementing.and_then(|a| a.counter).unwrap_or(0);
        let schema = self.schema.clone();
        let mut rows = RowOps::new(operations, client, &schema, counter)?;
        while let Some(row) = rows.next_row()? {
            each(self, &row)?;
        }
        Ok(())
    }

    fn alter(&mut self, version: u32, schema: Option<&crate::layout::proto::Schema>) -> Result<()> {
        let Some(schema) = schema else { return Ok(()) };
        // The server does not apply a change of the schema to an older version.
        self.set_schema(version, || TableSchema::new(schema))
    }

    /// Applies a step of a transaction. When the transaction ends, its rows become visible, with the time of
    /// that step.
    fn participant(&mut self, op: &Op, step: &ParticipantOp) {
        let Some(transaction) = step.transaction else { return };
        match step.step {
            Some(ParticipantOp::FINALIZE_COMMIT) => {
                let time = step.commit_time.and_then(|t| u64::try_from(t).ok()).unwrap_or(op.time);
                for held in self.transactions.remove(&transaction).unwrap_or_default() {
                    let row = self.row(held.key, op.id.index);
                    if held.kind == ChangeType::Reinsert {
                        *row.1 = Row { live: true, lost: None, written_by: op.id.index, number: row.0 };
                    }
                    let number = row.0;
                    self.entries.push(number, time, held.kind, &held.cells);
                }
            }
            Some(ParticipantOp::ABORT) => drop(self.transactions.remove(&transaction)),
            _ => {}
        }
    }

    /// The new row with a key. If there is none, adds one that is not live.
    fn row(&mut self, key: Vec<u8>, index: i64) -> (u64, &mut Row) {
        let next = self.rows.len() as u64;
        let row =
            self.rows.entry(key).or_insert(Row { number: next, live: false, lost: None, written_by: index });
        (row.number, row)
    }

    fn write_row(&mut self, op: &Op, write: &Write, row: &RowOp<'_>) -> Result<()> {
        let key = row.key(&self.schema)?;
        if let Some(transaction) = write.transaction {
            let held = UncommittedRow { kind: ChangeType::Reinsert, key, cells: row.row(&self.schema)? };
            self.transactions.entry(transaction).or_default().push(held);
            return Ok(());
        }
        let damaged = !self.out.broken.is_empty();
        let is_new = !self.rows.contains_key(&key);
        let live = self.rows.get(&key).is_some_and(|r| r.live);
        let (kind, cells) = match row.kind {
            RowOpKind::Insert if live && !damaged => {
                return Err(Error::corrupt("expected no row with the key in memory, found one"));
            }
            RowOpKind::Insert => (ChangeType::Reinsert, row.row(&self.schema)?),
            RowOpKind::Upsert if !live => (ChangeType::Reinsert, row.row(&self.schema)?),
            RowOpKind::Upsert | RowOpKind::Update => (ChangeType::Update, row.changes(&self.schema)),
            RowOpKind::Delete => (ChangeType::Delete, Vec::new()),
        };
        if kind != ChangeType::Reinsert && !live && !damaged {
            return Err(Error::corrupt("expected the row to change in memory, found none"));
        }
        let why = self.out.broken.last().cloned();
        let (number, state) = self.row(key, op.id.index);
        match kind {
            ChangeType::Reinsert => *state = Row { number, live: true, lost: None, written_by: op.id.index },
            ChangeType::Delete => state.live = false,
            // The row is not known, so it must have been inserted in a hole.
            ChangeType::Update if !live => {
                state.live = true;
                state.lost = state.lost.take().or(why.map(|what| (op.time, what)));
            }
            ChangeType::Update => {}
        }
        if is_new && kind == ChangeType::Delete {
            state.lost = None;
        }
        self.entries.push(number, op.time, kind, &cells);
        Ok(())
    }

    fn change_row(&mut self, id: u64, key: Vec<u8>, op: &Op, row: &RowOp<'_>) -> Result<()> {
        let (kind, cells) = match row.kind {
            RowOpKind::Insert => {
                return Err(Error::corrupt("expected a change to a row of a rowset, found an insert"));
            }
            RowOpKind::Upsert | RowOpKind::Update => (ChangeType::Update, row.changes(&self.schema)),
            RowOpKind::Delete => (ChangeType::Delete, Vec::new()),
        };
        let changes = self.changes.entry(id).or_default();
        let next = changes.numbers.len() as u64;
        let number = *changes.numbers.entry(key).or_insert(next);
        if kind == ChangeType::Delete {
            changes.live.insert(number, false);
        }
        changes.entries.push(number, op.time, kind, &cells);
        Ok(())
    }

    /// Handles an operation whose commit message is lost: the state of its rows is unknown.
    fn apply_uncertain(&mut self, op: &Op, what: &Arc<Fault>) -> Result<()> {
        match &op.what {
            OpBody::Alter(alter) => self.alter(alter.schema_version, alter.schema.as_ref()),
            OpBody::Participant(step) => {
                self.participant(op, step);
                Ok(())
            }
            OpBody::Other => Ok(()),
            OpBody::Write(write) => {
                let done = self.each_row(write, |state, row| {
                    let key = row.key(&state.schema)?;
                    state.mark_uncertain(key, row.kind, (op.time, what));
                    Ok(())
                });
                self.unless_damaged(op, done)
            }
        }
    }

    /// Marks a row as unknown, because the commit message of its operation is lost.
    fn mark_uncertain(&mut self, key: Vec<u8>, kind: RowOpKind, (since, what): (u64, &Arc<Fault>)) {
        if let Some(known) = self.rows.get_mut(&key) {
            known.lost = Some((since, what.clone()));
        } else if matches!(kind, RowOpKind::Insert | RowOpKind::Upsert) {
            self.missing.push(LogLoss { rows: 0..0, since, what: what.clone() });
        }
        self.uncertain.push((key, since, what.clone()));
    }

    /// If the rows of an operation cannot be read, the operation may concern any row.
    fn unless_damaged(&mut self, op: &Op, done: Result<()>) -> Result<()> {
        match done {
            Err(e) if Fault::is(&e) => {
                let ids: Vec<u64> = self.tablet.rowsets.iter().map(|r| r.id).collect();
                let what = Arc::new(self.broken(op, &e));
                self.out.broken.push(what.clone());
                self.mark_unknown(true, ids, op.id.index.saturating_add(1), (op.time, &what));
                Ok(())
            }
            other => other,
        }
    }

    /// Applies an operation without a commit message: the server was about to apply it, and does so when it starts
    /// again.
    fn reapply(&mut self, op: &Op) -> Result<()> {
        let write = match &op.what {
            OpBody::Write(write) => write,
            _ => return self.applied(op, &[]),
        };
        let done = self.each_row(write, |state, row| {
            let key = row.key(&state.schema)?;
            if write.transaction.is_some() {
                return state.write_row(op, write, row);
            }
            let target = match state.find(&key) {
                Err(e) if Fault::is(&e) => {
                    let what = state.broken_once(op, &e);
                    state.mark_uncertain(key, row.kind, (op.time, &what));
                    return Ok(());
                }
                target => target?,
            };
            match (row.kind, target) {
                (RowOpKind::Insert | RowOpKind::Upsert, Target::None)
                | (RowOpKind::Upsert | RowOpKind::Update | RowOpKind::Delete, Target::Memory) => {
                    state.write_row(op, write, row)
                }
                (RowOpKind::Upsert | RowOpKind::Update | RowOpKind::Delete, Target::RowSet(id)) => {
                    state.change_row(id, key, op, row)
                }
                // The server refuses to insert an existing row, or to change a missing row: the client got an
                // error.
                _ => Ok(()),
            }
        });
        self.unless_damaged(op, done)
    }

    /// The fault that prevents lookups by key. The fault is recorded only once, since it occurs again for
    /// every row.
    fn broken_once(&mut self, op: &Op, e: &Error) -> Arc<Fault> {
        match self.out.broken.last() {
            Some(last) if last.damage.reason == e.reason() => last.clone(),
            _ => {
                let what = Arc::new(self.broken(op, e));
                self.out.broken.push(what.clone());
                what
            }
        }
    }

    /// Finds the store that has the live row with a key.
    fn find(&mut self, key: &[u8]) -> Result<Target> {
        if self.rows.get(key).is_some_and(|r| r.live) {
            return Ok(Target::Memory);
        }
        for rowset in &self.tablet.rowsets {
            let Some(row) = self.ordinal(rowset.id, key)? else { continue };
            let changed = self.changes.get(&rowset.id);
            let changed = changed.and_then(|c| c.live.get(c.numbers.get(key)?).copied());
            let exists = match (changed, self.finders.get_mut(&rowset.id)) {
                (Some(live), _) => live,
                (None, Some(finder)) => finder.exists(row)?,
                (None, None) => false,
            };
            if exists {
                return Ok(Target::RowSet(rowset.id));
            }
        }
        Ok(Target::None)
    }

    /// The ordinal of a key in a rowset.
    fn ordinal(&mut self, id: u64, key: &[u8]) -> Result<Option<u64>> {
        let tablet: &'a Tablet = self.tablet;
        let Some(rowset) = tablet.rowsets.iter().find(|r| r.id == id) else { return Ok(None) };
        let below = rowset.min_key.as_deref().is_some_and(|min| key < min);
        if below || rowset.max_key.as_deref().is_some_and(|max| key > max) {
            return Ok(None);
        }
        if !self.finders.contains_key(&id) {
            self.finders.insert(id, RowSetKeys::open(tablet, rowset, self.reading)?);
        }
        self.finders.get_mut(&id).map_or(Ok(None), |finder| finder.ordinal(key))
    }

    fn finish(mut self) -> Result<Replayed> {
        self.number_rows();
        for (id, changes) in std::mem::take(&mut self.changes) {
            match self.number_changes(id, changes) {
                Ok(entries) => drop(self.out.changes.insert(id, entries)),
                Err(e) if Fault::is(&e) => self.record_lost_rowset(id, &e),
                Err(e) => return Err(e),
            }
        }
        let mut uncertain = std::mem::take(&mut self.uncertain);
        uncertain.sort_by(|a, b| a.0.cmp(&b.0));
        let ids: Vec<u64> = self.tablet.rowsets.iter().map(|r| r.id).collect();
        for id in ids {
            for (key, since, what) in &uncertain {
                match self.ordinal(id, key) {
                    Ok(None) => {}
                    Ok(Some(row)) => {
                        let rows = row..row.saturating_add(1);
                        let loss = LogLoss { rows, since: *since, what: what.clone() };
                        self.out.lost_changes.entry(id).or_default().push(loss);
                    }
                    Err(e) if Fault::is(&e) => {
                        self.record_lost_rowset(id, &e);
                        break;
                    }
                    Err(e) => return Err(e),
                }
            }
        }
        self.out.lost_inserts = self.missing;
        Ok(self.out)
    }

    fn number_rows(&mut self) {
        let mut sorted: Vec<(Vec<u8>, Row)> = std::mem::take(&mut self.rows).into_iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        let mut places = vec![0u64; sorted.len()];
        for (place, (_, row)) in sorted.iter().enumerate() {
            let slot = usize::try_from(row.number).ok().and_then(|n| places.get_mut(n));
            if let Some(slot) = slot {
                *slot = place as u64;
            }
            self.out.live += i64::from(row.live);
            let forgotten =
                self.memory_since.as_ref().filter(|(index, ..)| row.written_by < *index && row.live);
            let lost = row.lost.clone().or_else(|| forgotten.map(|(_, since, what)| (*since, what.clone())));
            if let Some((since, what)) = lost {
                let at = place as u64;
                self.out.lost_rows.push(LogLoss { rows: at..at.saturating_add(1), since, what });
            }
        }
        let mut entries = std::mem::take(&mut self.entries);
        entries.number(|n| usize::try_from(n).ok().and_then(|n| places.get(n).copied()));
        self.out.rows = entries;
        self.out.keys = sorted.into_iter().map(|(key, _)| key).collect();
    }

    fn number_changes(&mut self, id: u64, changes: RowSetChanges) -> Result<Entries> {
        let RowSetChanges { numbers, mut entries, live } = changes;
        let mut keys: Vec<(Vec<u8>, u64)> = numbers.into_iter().collect();
        keys.sort();
        let mut ordinals: BTreeMap<u64, u64> = BTreeMap::new();
        for (key, number) in keys {
            let row = self.ordinal(id, &key)?;
            let row = row.ok_or_else(|| {
                let e = format!("expected the row that the log changes in rowset {id}, found none");
                Error::corrupt(e)
            })?;
            ordinals.insert(number, row);
        }
        entries.number(|n| ordinals.get(&n).copied());
        self.out.live -= i64::try_from(live.values().filter(|live| !**live).count()).unwrap_or(i64::MAX);
        Ok(entries)
    }

    fn record_lost_rowset(&mut self, id: u64, e: &Error) {
        let mut what = Fault::from_error(e, 0..0, None);
        what.damage.structure.insert_str(0, "changes of the write-ahead log: ");
        let what = Arc::new(what);
        self.out.broken.push(what.clone());
        let loss = LogLoss { rows: 0..u64::MAX, since: 0, what };
        self.out.lost_changes.entry(id).or_default().push(loss);
    }
}
