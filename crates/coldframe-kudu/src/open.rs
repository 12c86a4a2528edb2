//! Finds a table in a data directory: the best replica of each of its tablets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coldframe_core::io::Folder;
use coldframe_core::{Error, OpenOptions, Result};

use crate::missing::{Absent, lacks_end_of_log, lacks_log, missing_tablet, without_super_block};
use crate::options::Options;
use crate::replicas::{Incomplete, Replicas, by_tablet, incomplete, missing};
use crate::rowset::Reading;
use crate::schema::TableSchema;
use crate::store::roots;
use crate::tablet::{Server, Tablet, Unreadable};
use crate::wal::{ReplayCache, TabletLog};

const NO_LOG: &str = "expected its write-ahead log, found none: rows that were not flushed are missing; wal=False accepts this";
const NO_END_OF_LOG: &str = "expected a header of its newest log segment, found none: rows that were not flushed may be missing; wal=False accepts this";
const NO_SUPER_BLOCK: &str =
    "expected its super block beside its log or consensus metadata, found none: its rows cannot be read";

/// A table's tablets and where they are.
#[derive(Debug)]
pub(crate) struct LocatedTable {
    pub(crate) folder: Arc<dyn Folder>,
    pub(crate) servers: Vec<Arc<Server>>,
    /// The tablets in the order of their partitions; at least one.
    pub(crate) tablets: Vec<Arc<Tablet>>,
    pub(crate) name: String,
    /// The log of each tablet.
    pub(crate) logs: Vec<Arc<TabletLog>>,
    /// Whether every partition must have a tablet; `None` if the user does not specify this.
    pub(crate) complete: Option<bool>,
    /// Whether logs are replayed.
    pub(crate) wal: bool,
    /// The newest of the tablets' schemas.
    pub(crate) schema: TableSchema,
    pub(crate) reading: Reading,
    /// The names of all tables in the folder.
    pub(crate) tables: Vec<String>,
    /// Tablets that cannot be read and may belong to this table. In the list of the table's parts, they come
    /// after the rowsets.
    pub(crate) unreadable: Vec<Unreadable>,
    /// Partitions without a tablet in this directory. Other servers may hold these partitions.
    pub(crate) absent: Vec<Absent>,
    /// Tablets with fewer replicas here than a majority of their Raft group: the number of voters, and of those
    /// that are here.
    pub(crate) minorities: Vec<(String, usize, usize)>,
    /// Tablets whose log is missing, if the caller needs it.
    pub(crate) without_log: Vec<String>,
    /// Tablets whose newest log segment has no header, if the caller needs it.
    pub(crate) without_end: Vec<String>,
    /// Tablets without a super block, which may belong to this table.
    pub(crate) lost: BTreeSet<String>,
}

/// The ids and names of all tables in `folder`, sorted by name. Errors call the folder `path`.
pub(crate) fn tables(
    folder: &Arc<dyn Folder>,
    path: &Arc<str>,
    options: &OpenOptions,
) -> Result<Vec<(String, String)>> {
    let ServerTablets { all, unreadable, .. } = replicas(folder, path, options)?;
    if let (true, Some(first)) = (all.is_empty(), unreadable.first()) {
        return Err(first.fault.to_error());
    }
    // While a table is being renamed, its tablets have different names. The name in the newest schema is
    // taken as the table's name.
    let mut newest: BTreeMap<&str, (u32, &str)> = BTreeMap::new();
    let reading = Reading { verify: !options.skip_checksums, limits: options.limits, snapshot: None };
    let tablets = by_tablet(all, &reading);
    for tablet in tablets.iter().filter_map(Replicas::best) {
        let known = newest.entry(&tablet.table_id).or_insert((tablet.schema_version, &tablet.table));
        if tablet.schema_version > known.0 {
            *known = (tablet.schema_version, &tablet.table);
        }
    }
    let tables = newest.into_iter().map(|(id, (_, name))| (id.to_owned(), name.to_owned()));
    let mut tables: Vec<(String, String)> = tables.collect();
    tables.sort_by(|a, b| a.1.cmp(&b.1));
    Ok(tables)
}

/// The contents of a folder.
pub(crate) struct ServerTablets {
    /// The servers with directories in the folder.
    pub(crate) servers: Vec<Arc<Server>>,
    /// All tablets of the servers.
    pub(crate) all: Vec<Tablet>,
    /// The tablets that cannot be read.
    pub(crate) unreadable: Vec<Unreadable>,
    /// The tablets that have lost their super block, on every server.
    pub(crate) lost: BTreeSet<String>,
}

/// The servers with directories in `folder`, and their tablets.
pub(crate) fn replicas(
    folder: &Arc<dyn Folder>,
    path: &Arc<str>,
    options: &OpenOptions,
) -> Result<ServerTablets> {
    let (checked, limits) = (!options.skip_checksums, options.limits);
    let key = options.key("server")?;
    let servers: Vec<Arc<Server>> = roots::servers(folder.as_ref(), checked, &limits)?
        .into_iter()
        .map(|dirs| Arc::new(Server::new(folder, path, dirs, key.as_ref(), checked, limits)))
        .collect();
    let (mut all, mut unreadable, mut lost) = (Vec::new(), Vec::new(), BTreeSet::new());
    for server in &servers {
        let hidden = unreadable.len();
        let tablets = server.tablets(folder.as_ref(), checked, &limits, &mut unreadable)?;
        let described = tablets.iter().map(|t| &t.id);
        let described = described.chain(unreadable.iter().skip(hidden).map(|u| &u.tablet)).cloned().collect();
        lost.extend(without_super_block(server, folder.as_ref(), &described)?);
        all.extend(tablets);
    }
    lost.retain(|id| !all.iter().any(|t| t.id == *id && t.ready()));
    Ok(ServerTablets { servers, all, unreadable, lost })
}

impl LocatedTable {
    /// Finds the servers' directories in `folder`, and the table in them. Errors call the folder `path`.
    pub(crate) fn open(folder: &Arc<dyn Folder>, path: &Arc<str>, options: &OpenOptions) -> Result<Self> {
        let own = Options::new(&options.extra)?;
        let (checked, limits) = (!options.skip_checksums, options.limits);
        let ServerTablets { servers, all, mut unreadable, mut lost } = replicas(folder, path, options)?;
        lost.retain(|id| own.tablet.as_ref().is_none_or(|asked| asked == id));
        // Drop tablets with a readable replica, and tablets that were not requested.
        unreadable.retain(|u: &Unreadable| {
            all.iter().all(|t: &Tablet| t.id != u.tablet || !t.ready())
                && own.tablet.as_ref().is_none_or(|id| *id == u.tablet)
        });
        let reading = Reading { verify: checked, limits, snapshot: own.snapshot };
        let broken = incomplete(&all);
        let all = by_tablet(all, &reading);
        let tables = table_names(&all);
        if let (true, Some(first)) = (all.is_empty(), unreadable.first()) {
            return Err(first.fault.to_error());
        }
        let chosen = choose(all, &own, &tables)?;
        if own.complete == Some(true) {
            unreadable.extend(lost.iter().map(|id| missing_tablet(id, NO_SUPER_BLOCK)));
        }
        let absent = match own.tablet {
            Some(_) => Vec::new(),
            None => absent(&chosen, &broken, &own, &mut unreadable),
        };
        let mut minorities = Vec::new();
        for replicas in &chosen {
            if let (Some(best), Some((voters, here))) = (replicas.best(), replicas.minority()) {
                minorities.push((best.id.clone(), voters, here));
            }
        }
        let mut tablets = Vec::with_capacity(chosen.len());
        let mut logs = Vec::with_capacity(chosen.len());
        let cache = Arc::new(ReplayCache::default());
        for replicas in chosen {
            let Some((mut tablet, others)) = replicas.choose(folder.as_ref(), &reading, own.wal)? else {
                continue;
            };
            if let Some(unsupported) = tablet.unsupported.take() {
                return Err(unsupported);
            }
            let tablet = Arc::new(tablet);
            let (of, how) = (tablet.clone(), (others, own.wal));
            logs.push(Arc::new(TabletLog::new(folder.clone(), of, reading, how, cache.clone())));
            tablets.push(tablet);
        }
        let without_log = tablets.iter().filter(|t| own.wal && lacks_log(t));
        let without_log: Vec<String> = without_log.map(|t: &Arc<Tablet>| t.id.clone()).collect();
        let mut without_end = Vec::new();
        for tablet in tablets.iter().filter(|_| own.wal) {
            if lacks_end_of_log(tablet, folder.as_ref())? {
                without_end.push(tablet.id.clone());
            }
        }
        if own.complete == Some(true) {
            unreadable.extend(without_log.iter().map(|id| missing_tablet(id, NO_LOG)));
            unreadable.extend(without_end.iter().map(|id| missing_tablet(id, NO_END_OF_LOG)));
        }
        let newest = tablets.iter().max_by_key(|t| t.schema_version);
        let newest = newest.ok_or_else(|| Error::not_found("a Kudu table with tablets in the directory"))?;
        let (name, schema) = (newest.table.clone(), newest.schema.clone());
        let folder = folder.clone();
        let Options { wal, complete, .. } = own;
        Ok(Self {
            folder,
            servers,
            tablets,
            logs,
            complete,
            wal,
            name,
            schema,
            reading,
            tables,
            unreadable,
            absent,
            minorities,
            without_log,
            without_end,
            lost,
        })
    }
}

/// The partitions without a tablet. Adds missing tablets to `unreadable`. If the table must be complete, also
/// adds these partitions.
fn absent(
    chosen: &[Replicas],
    broken: &[Incomplete],
    own: &Options,
    unreadable: &mut Vec<Unreadable>,
) -> Vec<Absent> {
    let best: Vec<&Tablet> = chosen.iter().filter_map(Replicas::best).collect();
    let (gone, partitions) = missing(&best, broken);
    // A super block that cannot be read may be the super block of the missing tablet.
    let (hidden, tablets) = (unreadable.len(), gone.len());
    unreadable.extend(gone.into_iter().skip(hidden));
    let absent: Vec<Absent> = partitions.into_iter().skip(hidden.saturating_sub(tablets)).collect();
    unreadable.extend(absent.iter().filter(|_| own.complete == Some(true)).map(Absent::to_unreadable));
    absent
}

fn table_names(tablets: &[Replicas]) -> Vec<String> {
    let mut names: Vec<String> = tablets.iter().filter_map(Replicas::best).map(|t| t.table.clone()).collect();
    names.sort();
    names.dedup();
    names
}

/// Selects the tablets that the options name.
fn choose(mut tablets: Vec<Replicas>, options: &Options, names: &[String]) -> Result<Vec<Replicas>> {
    let listed = || names.join(", ");
    if let Some(id) = &options.tablet {
        tablets.retain(|t| t.best().is_some_and(|t| t.id == *id));
        if tablets.is_empty() {
            return Err(Error::not_found(format!("tablet {id:?}; the directory has tables {}", listed())));
        }
    }
    if let Some(name) = &options.table {
        tablets.retain(|t| t.best().is_some_and(|t| t.table == *name || t.table_id == *name));
        if tablets.is_empty() {
            return Err(Error::not_found(format!("table {name:?}; the directory has: {}", listed())));
        }
    }
    let mut ids: Vec<&str> = tablets.iter().filter_map(Replicas::best).map(|t| t.table_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    match (ids.len(), names.len()) {
        (0 | 1, _) => Ok(tablets),
        (_, 1) => Err(Error::invalid(format!(
            "several tables have the name {}; choose one by table=\"<id>\": {}",
            listed(),
            ids.join(", ")
        ))),
        _ => Err(Error::invalid(format!(
            "the directory has several tables; choose one by table=: {}",
            listed()
        ))),
    }
}
