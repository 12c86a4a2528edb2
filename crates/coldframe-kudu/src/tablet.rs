//! Tablets, read from their super blocks.
//!
//! ```text
//! tablet-meta/<tablet>      container of one super block: table, schema, partition, rowsets -> blocks
//! consensus-meta/<tablet>   container of one message: the members of the Raft group, and the operation that set them
//! ```

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use coldframe_core::io::Folder;
use coldframe_core::{Error, ErrorContext, ErrorKind, Fault, Limits, Result, Value};
use coldframe_encoding::limits::message::{self, Shaped};

use crate::layout::container::{MAGIC, decode, only_bytes, whole_file};
use crate::layout::proto::{self, Consensus, SuperBlock};
use crate::schema::TableSchema;
use crate::store::blocks::BlockStore;
use crate::store::crypt::{Expected, Section, ServerKeys, decrypted};
use crate::store::roots::{ServerDirs, join, name_of};
use crate::store::segments::Segments;

/// `TABLET_DATA_COPYING`
const COPYING: i32 = 0;
/// `TABLET_DATA_READY`
const READY: i32 = 1;
/// `TABLET_DATA_DELETED`
const DELETED: i32 = 2;
/// `TABLET_DATA_TOMBSTONED`
const TOMBSTONED: i32 = 3;
/// `VOTER`
const VOTER: i32 = 1;

/// The parts of a server that its tablets need.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) dirs: ServerDirs,
    pub(crate) uuid: String,
    pub(crate) store: BlockStore,
    keys: ServerKeys,
}

/// A tablet that cannot be read: its super block is damaged or of an unknown kind, its data is incomplete, or it is
/// missing.
#[derive(Clone, Debug)]
pub(crate) struct Unreadable {
    pub(crate) tablet: String,
    pub(crate) fault: Fault,
}

/// A replica of a tablet.
#[derive(Debug)]
pub(crate) struct Tablet {
    pub(crate) id: String,
    pub(crate) table_id: String,
    pub(crate) table: String,
    /// The columns; none if the tablet is `unsupported`.
    pub(crate) schema: TableSchema,
    /// Why the tablet's table cannot be read, if a column has an unknown type. Other tables of the server can
    /// be read.
    pub(crate) unsupported: Option<Error>,
    pub(crate) schema_version: u32,
    pub(crate) partition: proto::Partition,
    pub(crate) partition_schema: Option<proto::PartitionSchema>,
    pub(crate) rowsets: Vec<RowSet>,
    pub(crate) server: Arc<Server>,
    /// Whether the super block states the live rows of each rowset.
    pub(crate) counts_live_rows: bool,
    state: Option<i32>,
    /// The index of the operation that set the Raft group's members, whether this server is a member, and the
    /// Raft term.
    membership: (i64, bool, i64),
    /// The number of voting members of the Raft group, and whether this server is such a member. The number
    /// is 0 if unknown.
    voters: (usize, bool),
    /// The segments of the tablet's write-ahead log.
    pub(crate) segments: Segments,
    /// The id of the newest flushed MemRowSet (new rows).
    pub(crate) last_durable_mrs: i64,
    /// Transactions, each with whether it has no rows in memory, because they were flushed or it was aborted.
    pub(crate) transactions: Vec<(i64, bool)>,
}

/// A rowset: columns of rows that were written together, sorted by key, and the changes to them.
#[derive(Clone, Debug)]
pub(crate) struct RowSet {
    pub(crate) id: u64,
    /// The ids of the column blocks, by column id.
    pub(crate) columns: BTreeMap<i32, u64>,
    /// The ids of the REDO delta blocks, oldest first.
    pub(crate) redo: Vec<u64>,
    /// The ids of the UNDO delta blocks, newest first.
    pub(crate) undo: Vec<u64>,
    pub(crate) bloom: Option<u64>,
    pub(crate) adhoc_index: Option<u64>,
    pub(crate) min_key: Option<Vec<u8>>,
    pub(crate) max_key: Option<Vec<u8>>,
    pub(crate) live_rows: Option<u64>,
    /// The id of the newest flushed DeltaMemStore (changes).
    pub(crate) last_durable_dms: i64,
}

impl Server {
    pub(crate) fn new(
        folder: &Arc<dyn Folder>,
        root: &Arc<str>,
        dirs: ServerDirs,
        key: Option<&Vec<u8>>,
        checked: bool,
        limits: Limits,
    ) -> Self {
        let keys = ServerKeys::new(key, &dirs.instance);
        let uuid = text(&dirs.instance.uuid);
        let store =
            BlockStore::new((folder.clone(), root.clone()), dirs.data.clone(), keys.clone(), checked, limits);
        Self { dirs, uuid, store, keys }
    }

    /// The candidate keys for the server's files.
    pub(crate) fn keys(&self) -> &ServerKeys {
        &self.keys
    }

    /// All tablet replicas with a super block on the server. Replicas that cannot be read are added to
    /// `unreadable`.
    pub(crate) fn tablets(
        self: &Arc<Self>,
        folder: &dyn Folder,
        checked: bool,
        limits: &Limits,
        unreadable: &mut Vec<Unreadable>,
    ) -> Result<Vec<Tablet>> {
        let (mut tablets, mut locked) = (Vec::new(), None);
        for entry in folder.list(&join(&self.dirs.metadata, "tablet-meta"))? {
            let name = name_of(&entry.path);
            // Kudu first writes a new super block under a temporary name (`<tablet>.kudutmp.<random>`).
            if entry.is_folder || name.contains('.') {
                continue;
            }
            match self.tablet(folder, &entry.path, checked, limits) {
                Ok(tablet) => tablets.push(tablet),
                Err(e) => {
                    let path = self.store.full_path(&entry.path);
                    let is_locked = matches!(e.kind(), ErrorKind::KeyUnavailable(_));
                    if !is_locked && !Fault::is(&e) {
                        return Err(e.in_file(path));
                    }
                    let tablet = name.to_owned();
                    let e = e.within(format!("super block {path}"));
                    let fault = Fault::from_error(&e, 0..entry.len, None);
                    if is_locked {
                        locked.get_or_insert(e);
                    }
                    unreadable.push(Unreadable { tablet, fault });
                }
            }
        }
        // If a key opens any super block, it is the server's key, and super blocks that it does not open are
        // damaged.
        locked.filter(|_| tablets.is_empty()).map_or(Ok(tablets), Err)
    }

    fn tablet(
        self: &Arc<Self>,
        folder: &dyn Folder,
        path: &str,
        checked: bool,
        limits: &Limits,
    ) -> Result<Tablet> {
        let message: SuperBlock = self.message(folder, path, checked, limits)?;
        let id = text(&message.tablet_id);
        let schema =
            message.schema.as_ref().ok_or_else(|| Error::corrupt("expected a schema, found none"))?;
        limits.columns("a schema", schema.columns.len() as u64)?;
        let consensus = join(&join(&self.dirs.metadata, "consensus-meta"), &id);
        let (membership, voters) = match self.message::<Consensus>(folder, &consensus, checked, limits) {
            Ok(c) => (self.membership(&c), self.voters(&c)),
            // Consensus metadata only helps to choose a replica and to know which operations the group agreed
            // on, so it is safe to continue without it.
            Err(_) => ((-1, false, -1), (0, false)),
        };
        let rowsets: Vec<RowSet> =
            message.rowsets.iter().map(RowSet::new).collect::<Result<_>>().within(|| "super block")?;
        check_blocks(&rowsets).within(|| "super block")?;
        let (schema, unsupported) = match TableSchema::new(schema).within(|| "super block") {
            Ok(schema) => (schema, None),
            Err(e) if matches!(e.kind(), ErrorKind::Unsupported(_)) => {
                (TableSchema::default(), Some(e.in_file(self.store.full_path(path))))
            }
            Err(e) => return Err(e),
        };
        Ok(Tablet {
            table_id: text(&message.table_id),
            table: message.table_name,
            schema,
            unsupported,
            schema_version: message.schema_version,
            partition: message.partition.unwrap_or_default(),
            partition_schema: message.partition_schema,
            rowsets,
            server: self.clone(),
            counts_live_rows: message.counts_live_rows,
            state: message.state,
            membership,
            voters,
            segments: self.segments(folder, &id)?,
            last_durable_mrs: message.last_durable_mrs_id,
            transactions: message.transactions.iter().map(ended).collect(),
            id,
        })
    }

    fn message<M: prost::Message + Default + Shaped>(
        &self,
        folder: &dyn Folder,
        path: &str,
        checked: bool,
        limits: &Limits,
    ) -> Result<M> {
        let (file, start) = decrypted(folder.open(path)?, &self.keys, &Expected::start(&[MAGIC]))?;
        let file = Section::of(file.clone(), &(start..file.len()))?;
        let bytes = whole_file(file.as_ref(), limits)?;
        let bytes = only_bytes(&bytes, checked)?;
        message::check::<M>(bytes, limits, file.len())?;
        decode(bytes)
    }

    fn membership(&self, consensus: &Consensus) -> (i64, bool, i64) {
        let config = consensus.committed.clone().unwrap_or_default();
        let own = |p: &proto::RaftPeer| p.uuid.as_deref() == Some(self.dirs.instance.uuid.as_slice());
        (config.opid_index.unwrap_or(-1), config.peers.iter().any(own), consensus.term)
    }

    fn voters(&self, consensus: &Consensus) -> (usize, bool) {
        let peers = consensus.committed.iter().flat_map(|c| &c.peers);
        let voters: Vec<_> = peers.filter(|p| p.member_type == Some(VOTER)).collect();
        let own = |p: &&proto::RaftPeer| p.uuid.as_deref() == Some(self.dirs.instance.uuid.as_slice());
        (voters.len(), voters.iter().any(own))
    }

    /// The segments of the log. If a server stopped while it replayed a log, the old segments are in the
    /// folder `.recovery`; the new segments are incomplete and ignored.
    fn segments(&self, folder: &dyn Folder, tablet: &str) -> Result<Segments> {
        let Some(root) = &self.dirs.wals else { return Ok(Segments::default()) };
        let logs = join(root, "wals");
        for name in [format!("{tablet}.recovery"), tablet.to_owned()] {
            match folder.list(&join(&logs, &name)) {
                Ok(entries) => return Ok(Segments::among(&entries)),
                Err(e) if e.is_not_found() => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Segments::default())
    }
}

impl RowSet {
    fn new(message: &proto::RowSetData) -> Result<Self> {
        let number = |block: Option<proto::BlockId>| block.and_then(|b| b.id);
        let missing =
            || Error::corrupt(format!("expected a block's number in rowset {}, found none", message.id));
        let deltas = |all: &[proto::DeltaData]| -> Result<Vec<u64>> {
            all.iter().map(|d| number(d.block).ok_or_else(missing)).collect()
        };
        let columns = message.columns.iter().map(|c| c.column_id.zip(number(c.block)).ok_or_else(missing));
        Ok(Self {
            id: message.id,
            columns: columns.collect::<Result<_>>()?,
            redo: deltas(&message.redo)?,
            undo: deltas(&message.undo)?,
            bloom: number(message.bloom),
            adhoc_index: number(message.adhoc_index),
            min_key: message.min_key.clone(),
            max_key: message.max_key.clone(),
            live_rows: message.live_rows.and_then(|n| u64::try_from(n).ok()),
            last_durable_dms: message.last_durable_dms_id,
        })
    }
}

/// An error if two rowsets share a block: a shared block would be read twice, which would give rows that were
/// never written.
fn check_blocks(rowsets: &[RowSet]) -> Result<()> {
    let mut seen = HashSet::new();
    for rowset in rowsets {
        let of_columns = rowset.columns.values();
        if let Some(block) = of_columns.chain(&rowset.redo).chain(&rowset.undo).find(|b| !seen.insert(**b)) {
            let (id, what) = (rowset.id, format!("expected block {block} once"));
            return Err(Error::corrupt(format!("{what}, found it again in rowset {id}")));
        }
    }
    Ok(())
}

impl Tablet {
    /// Whether the replica's data is complete: it is not being copied, not deleted and not a tombstone.
    pub(crate) fn ready(&self) -> bool {
        self.state == Some(READY)
    }

    /// Whether the tablet may have been created without anything being written to its log yet.
    pub(crate) fn is_new(&self) -> bool {
        self.rowsets.is_empty() && self.server.dirs.wals.is_some() && self.term() <= 0
    }

    /// Orders replicas by their super blocks and Raft groups: first the replicas with newer members of the
    /// Raft group, then the replicas whose server is a member, then the replicas with newer schemas. How
    /// often a replica has flushed does not matter.
    pub(crate) fn rank(&self) -> (i64, bool, u32) {
        let (opid, member, _) = self.membership;
        (opid, member, self.schema_version)
    }

    /// The number of voters of the Raft group, if this server is a voter.
    pub(crate) fn voters(&self) -> Option<usize> {
        let (voters, member) = self.voters;
        Some(voters).filter(|_| member)
    }

    /// The latest Raft term that the replica knows.
    pub(crate) fn term(&self) -> i64 {
        self.membership.2
    }

    /// Why the replica is not read; `None` if its data is complete, or if it was deleted with the tablet.
    pub(crate) fn incomplete(&self) -> Option<&'static str> {
        match self.state {
            Some(READY | DELETED) => None,
            Some(COPYING) => Some("one that was being copied"),
            Some(TOMBSTONED) => Some("one whose data was removed"),
            _ => Some("one in an unknown state"),
        }
    }

    /// Describes the super block and the log segments.
    pub(crate) fn describe(&self) -> Value {
        let live: Option<u64> = self.rowsets.iter().map(|r| r.live_rows).sum();
        let partition = &self.partition;
        Value::map([
            ("tablet", Value::from(self.id.as_str())),
            ("server", Value::from(self.server.uuid.as_str())),
            ("schema_version", Value::from(self.schema_version)),
            ("hash_buckets", Value::List(partition.hash_buckets.iter().map(|b| Value::from(*b)).collect())),
            ("partition_key_start", Value::Bytes(partition.start.clone().unwrap_or_default())),
            ("partition_key_end", Value::Bytes(partition.end.clone().unwrap_or_default())),
            ("rowsets", Value::List(self.rowsets.iter().map(RowSet::describe).collect())),
            ("live_rows", Value::from(live.filter(|_| self.counts_live_rows))),
            ("wal_segments", Value::from(self.segments.count())),
            ("wal_bytes", Value::from(self.segments.bytes())),
        ])
    }

    /// Describes the partitioning, with columns by name.
    pub(crate) fn describe_partitioning(&self) -> Value {
        let Some(schema) = &self.partition_schema else { return Value::Null };
        let names = |columns: &[proto::ColumnIdentifier]| {
            let name = |c: &proto::ColumnIdentifier| {
                let named = self.schema.columns.iter().find(|k| Some(k.id) == c.id).map(|k| k.name.clone());
                Value::from(named.or_else(|| c.name.clone()))
            };
            Value::List(columns.iter().map(name).collect())
        };
        let hash = schema.hash.iter().map(|h| {
            Value::map([
                ("columns", names(&h.columns)),
                ("buckets", Value::from(h.buckets)),
                ("seed", Value::from(h.seed)),
            ])
        });
        let range = schema.range.as_ref().map_or(Value::Null, |r| names(&r.columns));
        Value::map([("hash", Value::List(hash.collect())), ("range", range)])
    }
}

impl RowSet {
    fn describe(&self) -> Value {
        let numbers = |ids: &[u64]| Value::List(ids.iter().map(|id| Value::from(*id)).collect());
        let columns = self.columns.iter().map(|(id, block)| (id.to_string(), Value::from(*block)));
        Value::map([
            ("id", Value::from(self.id)),
            ("columns", Value::Map(columns.collect())),
            ("redo_deltas", numbers(&self.redo)),
            ("undo_deltas", numbers(&self.undo)),
            ("bloom", Value::from(self.bloom)),
            ("adhoc_index", Value::from(self.adhoc_index)),
            ("live_rows", Value::from(self.live_rows)),
        ])
    }
}

/// A transaction, and whether it has ended, so that it has no rows in memory.
fn ended(entry: &proto::TransactionEntry) -> (i64, bool) {
    (entry.id, entry.state.is_some_and(|state| state.aborted || state.flushed))
}

/// Converts a uuid, which is stored as the bytes of a text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
