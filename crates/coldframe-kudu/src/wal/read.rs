//! The operations in a tablet's segments, and the holes between them.
//!
//! ```text
//! replicate 7.41 | replicate 7.42 | commit 7.41: store, store .. | replicate 7.43 | commit 7.42 ..
//! ```
//!
//! A replicate message gives an operation a term and an index; a commit message follows once the operation
//! has been applied. For each row, the commit message names the store in memory that got the row. If that
//! store was flushed later, the row is in a rowset; the super block lists the last flushed stores. If an
//! index occurs again, the new operation replaces one that was never committed, and all operations after it
//! (`tablet_bootstrap.cc`).

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::io::Folder;
use coldframe_core::{Error, Fault, Limits, Result};
use coldframe_encoding::limits::message;

use super::loss::{Gap, Hole};
use crate::layout::log::{Record, Segment};
use crate::layout::operations::{
    AlterSchema, Commit, EntryBatch, LogEntry, OpId, ParticipantOp, Replicate, Store, Write, kind,
};
use crate::layout::proto;
use crate::schema::TableSchema;
use crate::store::segments::open_segment;
use crate::tablet::Tablet;

/// Maximum number of recorded holes. What follows the last of them in the log counts as unknown.
const MAX_HOLES: usize = 256;

/// What has been flushed, according to the super block.
#[derive(Debug)]
pub(crate) struct Flushed {
    memrowset: i64,
    rowsets: HashMap<i64, i64>,
    /// For each transaction, whether it has no rows in memory.
    transactions: HashMap<i64, bool>,
}

impl Flushed {
    pub(crate) fn new(tablet: &Tablet) -> Self {
        let of = |r: &crate::tablet::RowSet| Some((i64::try_from(r.id).ok()?, r.last_durable_dms));
        Self {
            memrowset: tablet.last_durable_mrs,
            rowsets: tablet.rowsets.iter().filter_map(of).collect(),
            transactions: tablet.transactions.iter().copied().collect(),
        }
    }

    /// Where the rows of `store` are now: still in memory, in files, or gone with a rowset that the tablet no longer
    /// has.
    fn store_state(&self, store: &Store) -> StoreState {
        let active = match (store.transaction, store.memrowset, store.rowset) {
            // A transaction that neither the super block nor the log knows must have ended long ago.
            (Some(transaction), ..) => self.transactions.get(&transaction).map(|ended| !ended),
            (None, Some(id), _) => Some(id > self.memrowset),
            (None, None, Some(id)) => {
                self.rowsets.get(&id).map(|last| store.changes.is_some_and(|changes| changes > *last))
            }
            _ => None,
        };
        match active {
            Some(true) => StoreState::Memory,
            Some(false) => StoreState::Files,
            None => StoreState::Gone,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StoreState {
    Memory,
    Files,
    Gone,
}

/// The store in memory into which a row has to be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// No store: the row was flushed, or was not written at all.
    None,
    /// The MemRowSet, for new rows.
    Memory,
    /// The DeltaMemStore, for changes, of the rowset with this id.
    RowSet(u64),
}

/// What an operation does.
#[derive(Clone, Debug)]
pub(crate) enum OpBody {
    Write(Write),
    Alter(AlterSchema),
    Participant(ParticipantOp),
    /// The operation does not change rows.
    Other,
}

/// Whether and how an operation was applied, if this is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// This is unknown, since there is no commit message.
    Unknown,
    /// The operation was not applied.
    Not,
    /// The operation was applied. For a write, this is the target of each row.
    To(Vec<Target>),
}

/// An operation.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) id: OpId,
    /// The time of the operation, a hybrid time.
    pub(crate) time: u64,
    pub(crate) what: OpBody,
    pub(crate) applied: Applied,
}

/// The contents of a log that a replay needs.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// The operations by index.
    pub(crate) ops: BTreeMap<i64, Op>,
    /// Schemas in segment headers: the first index with the schema, its version, and its columns.
    pub(crate) schemas: Vec<(i64, u32, proto::Schema)>,
    /// The highest index that a commit message confirms.
    pub(crate) committed: i64,
    /// The last replicated operation.
    pub(crate) last: Option<OpId>,
    /// The number of replicated operations.
    pub(crate) replicated: u64,
    pub(crate) holes: Vec<Hole>,
    /// Commit messages of operations that are not in the log, with the stores in memory that they name.
    pub(crate) orphans: BTreeMap<i64, Vec<Store>>,
    /// For each rowset id, the highest index that is known to be flushed; the id `None` means the MemRowSet.
    pub(crate) flushed: HashMap<Option<i64>, i64>,
    /// The number of segments that could be opened.
    pub(crate) segments: u64,
    first: Option<OpId>,
    time: u64,
    open_holes: usize,
    /// Whether the log has more holes than are recorded.
    too_many_holes: bool,
}

/// Reads the segments of a tablet.
pub(crate) fn read(tablet: &Tablet, folder: &dyn Folder, how: (bool, &Limits)) -> Result<Log> {
    let mut reader =
        Reader { log: Log::default(), flushed: Flushed::new(tablet), limits: how.1, schema: &tablet.schema };
    let mut expected = None;
    let last = tablet.segments.iter().next_back().map(|(number, ..)| number);
    for (number, path, len) in tablet.segments.iter() {
        let place = SegmentFile { path: tablet.server.store.full_path(path), len };
        if expected.is_some_and(|n| n != number) {
            let reason = format!("expected segment {}, found {number}", expected.unwrap_or_default());
            reader.hole(&place, 0..0, "write-ahead log", reason);
        }
        expected = number.checked_add(1);
        match open_segment(folder, tablet.server.keys(), path, how) {
            Ok(Some(segment)) => reader.segment(&segment, &place, Some(number) == last)?,
            Ok(None) if Some(number) == last => {}
            Ok(None) => {
                reader.hole(&place, 0..len, "log segment", "expected a segment, found none".to_owned());
            }
            Err(e) if Fault::is(&e) => {
                reader.hole_of(&place, 0..len, "log segment", &e);
            }
            Err(e) => return Err(e.in_file(place.path)),
        }
    }
    // A segment begins with a header, and files of zeros have none.
    if let Some((_, path, len)) = tablet.segments.iter().next_back()
        && reader.log.segments == 0
        && reader.log.holes.is_empty()
        && len > 0
        && !tablet.is_new()
    {
        let place = SegmentFile { path: tablet.server.store.full_path(path), len };
        reader.hole(&place, 0..len, "log segment", "expected a header, found zeros".to_owned());
    }
    let mut log = reader.log;
    if let Some(last) = log.holes.last_mut().filter(|_| log.too_many_holes) {
        (last.gap, last.before) = (Gap::Unknown, log.last);
    }
    Ok(log)
}

/// The file of a segment, with its place for errors.
struct SegmentFile {
    path: String,
    len: u64,
}

struct Reader<'a> {
    log: Log,
    flushed: Flushed,
    limits: &'a Limits,
    /// The schema according to the super block.
    schema: &'a TableSchema,
}

impl Reader<'_> {
    fn segment(&mut self, segment: &Segment, place: &SegmentFile, last: bool) -> Result<()> {
        self.log.segments += 1;
        // The header has no checksum, so its columns are checked against the super block's.
        let schema = segment.header.schema.as_ref().map(TableSchema::new).transpose();
        let schema = schema.and_then(|schema| self.check(schema));
        if let Err(e) = &schema {
            self.hole_of(place, 0..segment.bounds().0, "header of log segment", e);
        }
        if let (Ok(()), Some(schema)) = (schema, &segment.header.schema) {
            let next = self.log.last.map_or(i64::MIN, |id| id.index.saturating_add(1));
            self.log.schemas.push((next, segment.header.schema_version, schema.clone()));
        }
        let (mut entries, holes) = (0i64, self.log.holes.len());
        let mut records = segment.records();
        while let Some(record) = records.next_record().map_err(|e| e.in_file(place.path.clone()))? {
            match record {
                Record::Broken(bytes, reason) => self.hole(place, bytes, "log record", reason),
                Record::Whole(contents, bytes) => match self.batch(contents, place) {
                    Ok(batch) => {
                        entries = entries.saturating_add(i64::try_from(batch.len()).unwrap_or(i64::MAX));
                        batch.into_iter().for_each(|entry| self.entry(entry, place, &bytes));
                    }
                    Err(e) if Fault::is(&e) => {
                        self.hole_of(place, bytes, "log record", &e);
                    }
                    Err(e) => return Err(e.at(bytes.start).in_file(place.path.clone())),
                },
            }
        }
        let end = segment.bounds().1;
        match segment.footer.map(|f| f.entries.unwrap_or(entries)) {
            Some(n) if n != entries && self.log.holes.len() == holes => {
                let reason = format!("expected {n} entries according to the footer, found {entries}");
                self.hole(place, end..end, "log segment", reason);
            }
            // A server closes a segment before it begins another.
            None if !last => {
                let reason = "expected the footer of a closed segment, found none".to_owned();
                self.hole(place, end..end, "log segment", reason);
            }
            _ => {}
        }
        Ok(())
    }

    /// Fails if a schema changes the type of a column: a column id always has the same type.
    fn check(&self, schema: Option<TableSchema>) -> Result<()> {
        for column in schema.iter().flat_map(|s| &s.columns) {
            let known = self.schema.columns.iter().find(|c| c.id == column.id);
            if let Some(known) = known.filter(|c| c.data_type != column.data_type || c.key != column.key) {
                let (expected, actual) = (known.data_type, column.data_type);
                let e = format!("expected column {} of type {expected}, found {actual}", column.id);
                return Err(Error::corrupt(e));
            }
        }
        Ok(())
    }

    fn batch(&self, contents: Bytes, place: &SegmentFile) -> Result<Vec<LogEntry>> {
        message::check::<EntryBatch>(&contents, self.limits, place.len.max(contents.len() as u64))?;
        let batch: EntryBatch = prost::Message::decode(contents)
            .map_err(|e| Error::corrupt(format!("expected entries of the log, found: {e}")))?;
        Ok(batch.entries)
    }

    fn hole(&mut self, place: &SegmentFile, bytes: Range<u64>, structure: &str, reason: String) {
        self.hole_of(place, bytes, structure, &Error::corrupt(reason));
    }

    fn hole_of(&mut self, place: &SegmentFile, bytes: Range<u64>, structure: &str, e: &Error) {
        if self.log.holes.len() >= MAX_HOLES {
            self.log.too_many_holes = true;
            return;
        }
        let mut what = Fault::from_error(e, bytes, None);
        (what.damage.structure, what.damage.reason) =
            (format!("{structure} of {}", place.path), e.to_string());
        self.log.holes.push(Hole {
            what: Arc::new(what),
            before: self.log.last,
            time: self.log.time,
            gap: Gap::Unknown,
        });
    }

    fn entry(&mut self, entry: LogEntry, place: &SegmentFile, bytes: &Range<u64>) {
        let bad = |e: &str| Error::corrupt(e.to_owned()).reason();
        match (entry.replicate, entry.commit) {
            (Some(replicate), _) => match replicate.id {
                Some(id) => self.replicate(id, replicate, place, bytes),
                None => self.hole(
                    place,
                    bytes.clone(),
                    "log record",
                    bad("expected the number of an operation, found none"),
                ),
            },
            (None, Some(commit)) => match commit.id {
                Some(id) => self.commit(id, &commit, place, bytes),
                None => self.hole(
                    place,
                    bytes.clone(),
                    "log record",
                    bad("expected the number of an operation, found none"),
                ),
            },
            (None, None) => {}
        }
    }

    fn replicate(&mut self, id: OpId, replicate: Replicate, place: &SegmentFile, bytes: &Range<u64>) {
        if id.index <= self.log.committed && self.log.last.is_some_and(|last| id.index <= last.index) {
            let known = self.log.ops.get(&id.index).is_none_or(|op| op.id == id);
            if !known {
                let reason =
                    format!("expected no change to a committed operation, found {}.{}", id.term, id.index);
                self.hole(place, bytes.clone(), "log record", reason);
            }
            return;
        }
        if let Some(last) = self.log.last {
            let next = last.index.saturating_add(1);
            if id.index > next && self.log.open_holes == self.log.holes.len() {
                let reason = format!("expected operation {next}, found {}.{}", id.term, id.index);
                self.hole(place, bytes.start..bytes.start, "write-ahead log", reason);
            }
            let gap = if id.index > next { Gap::Operations(next..id.index) } else { Gap::None };
            for hole in self.log.holes.iter_mut().skip(self.log.open_holes).filter(|h| h.before.is_some()) {
                hole.gap = gap.clone();
            }
        }
        self.log.open_holes = self.log.holes.len();
        self.log.first.get_or_insert(id);
        // Operations from this index on were never committed and can no longer be committed.
        drop(self.log.ops.split_off(&id.index));
        let what = match (replicate.op_type, replicate.write, replicate.alter_schema, replicate.participant) {
            (kind::WRITE, Some(write), ..) => OpBody::Write(write),
            (kind::ALTER_SCHEMA, _, Some(alter), _) => OpBody::Alter(alter),
            (kind::PARTICIPANT, _, _, Some(p)) => {
                let begins = p.op.filter(|op| op.step == Some(ParticipantOp::BEGIN));
                if let Some(transaction) = begins.and_then(|op| op.transaction) {
                    self.flushed.transactions.entry(transaction).or_insert(false);
                }
                p.op.map_or(OpBody::Other, OpBody::Participant)
            }
            _ => OpBody::Other,
        };
        let op = Op { id, time: replicate.time, what, applied: Applied::Unknown };
        self.log.time = self.log.time.max(replicate.time);
        self.log.last = Some(id);
        self.log.replicated += 1;
        self.log.ops.insert(id.index, op);
    }

    fn commit(&mut self, id: OpId, commit: &Commit, place: &SegmentFile, bytes: &Range<u64>) {
        self.log.committed = self.log.committed.max(id.index);
        let targets = self.targets(id.index, commit);
        let Some(op) = self.log.ops.get_mut(&id.index) else { return self.orphan(id, commit, place, bytes) };
        if op.id != id {
            let reason = format!(
                "expected the commit of {}.{}, found {}.{}",
                op.id.term, op.id.index, id.term, id.index
            );
            return self.hole(place, bytes.clone(), "log record", reason);
        }
        op.applied = match (&op.what, commit.op_type, &commit.result) {
            (OpBody::Write(_), kind::WRITE, _) => Applied::To(targets),
            (OpBody::Alter(_), kind::ALTER_SCHEMA, None) | (OpBody::Participant(_), kind::PARTICIPANT, _) => {
                Applied::To(Vec::new())
            }
            _ => Applied::Not,
        };
        let idle = match &op.applied {
            Applied::To(targets) => {
                matches!(op.what, OpBody::Write(_)) && targets.iter().all(|t| *t == Target::None)
            }
            Applied::Not => true,
            Applied::Unknown => false,
        };
        if idle {
            self.log.ops.remove(&id.index);
        }
    }

    /// For each row of a write, the store to replay it into. Also records which stores were flushed.
    fn targets(&mut self, index: i64, commit: &Commit) -> Vec<Target> {
        let rows = commit.result.as_ref().map(|r| r.rows.as_slice()).unwrap_or_default();
        let mut targets = Vec::with_capacity(rows.len());
        for row in rows {
            let mut target = Target::None;
            for store in row.stores.iter().filter(|_| !row.skip && row.failed.is_none()) {
                match (self.flushed.store_state(store), store.rowset) {
                    (StoreState::Memory, Some(id)) => {
                        target = u64::try_from(id).map_or(Target::None, Target::RowSet);
                    }
                    (StoreState::Memory, None) => target = Target::Memory,
                    (StoreState::Files, id) if store.transaction.is_none() => {
                        let known = self.log.flushed.entry(id).or_insert(index);
                        *known = index.max(*known);
                    }
                    _ => {}
                }
            }
            targets.push(target);
        }
        targets
    }

    /// Handles the commit message of an operation that is not in the log. The segment of the operation was
    /// deleted, because all operations in it had been flushed.
    fn orphan(&mut self, id: OpId, commit: &Commit, place: &SegmentFile, bytes: &Range<u64>) {
        let rows = commit.result.as_ref().map(|r| r.rows.as_slice()).unwrap_or_default();
        let stores = rows.iter().filter(|r| !r.skip && r.failed.is_none()).flat_map(|r| &r.stores);
        let active = stores.filter(|s| self.flushed.store_state(s) == StoreState::Memory).copied();
        let active: Vec<Store> = active.collect();
        let deleted = self.log.first.is_none_or(|first| id.index < first.index);
        if deleted && active.is_empty() {
            return;
        }
        if deleted && self.log.holes.is_empty() {
            let reason = format!(
                "expected operation {}.{}, which was not flushed, found only its commit message",
                id.term, id.index
            );
            self.hole(place, bytes.clone(), "write-ahead log", reason);
        }
        self.log.orphans.insert(id.index, active);
    }
}
