//! A table of a Kudu data directory: the best replica of each of its tablets, as one `TableFile`.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arrow_schema::SchemaRef;
use coldframe_core::io::Folder;
use coldframe_core::{
    Damage, Error, Node, OnError, OpenOptions, Plan, PlanRequest, Result, Split, TableFile, Value,
};

use super::inspect;
use super::options::Options;
use super::plan::RowSetPlan;
use super::roots;
use super::rowset::{Reading, column_bytes, row_count, statistics};
use super::schema::Column;
use super::tablet::{RowSet, Server, Tablet, Unreadable, best_replicas};

/// A table, opened.
#[derive(Debug)]
pub struct KuduTable {
    folder: Arc<dyn Folder>,
    servers: Vec<Arc<Server>>,
    /// In order of their partitions. At least one.
    tablets: Vec<Arc<Tablet>>,
    name: String,
    /// The newest that a tablet has.
    columns: Vec<Arc<Column>>,
    schema: SchemaRef,
    reading: Reading,
    parts: Vec<Part>,
    /// Names of all tables in the folder.
    tables: Vec<String>,
    /// Tablets that may be of this table; each is a part behind the rowsets.
    unreadable: Vec<Unreadable>,
}

/// A rowset, which is a part of the table for splits.
#[derive(Debug)]
struct Part {
    tablet: Arc<Tablet>,
    rowset: RowSet,
    rows: OnceLock<u64>,
    bytes: OnceLock<u64>,
}

/// The ids and names of all tables in `folder`, which errors call `path`, sorted by name.
pub fn tables(
    folder: &Arc<dyn Folder>,
    path: &Arc<str>,
    options: &OpenOptions,
) -> Result<Vec<(String, String)>> {
    let (_, all, unreadable) = replicas(folder, path, options)?;
    if let (true, Some(first)) = (all.is_empty(), unreadable.first()) {
        return Err(first.damage.to_error());
    }
    // A table that is being renamed has tablets of both names: the newest schema's counts.
    let mut newest: BTreeMap<String, (u32, String)> = BTreeMap::new();
    for tablet in best_replicas(all) {
        let known = newest.entry(tablet.table_id).or_insert((tablet.schema_version, tablet.table.clone()));
        if tablet.schema_version > known.0 {
            *known = (tablet.schema_version, tablet.table);
        }
    }
    let mut tables: Vec<(String, String)> = newest.into_iter().map(|(id, (_, name))| (id, name)).collect();
    tables.sort_by(|a, b| a.1.cmp(&b.1));
    Ok(tables)
}

type Replicas = (Vec<Arc<Server>>, Vec<Tablet>, Vec<Unreadable>);

/// The servers whose directories are in `folder`, all their tablets, and those that cannot be read.
fn replicas(folder: &Arc<dyn Folder>, path: &Arc<str>, options: &OpenOptions) -> Result<Replicas> {
    let (checked, limits) = (!options.skip_checksums, options.limits);
    let key = options.key("server")?;
    let servers: Vec<Arc<Server>> = roots::servers(folder.as_ref(), checked, &limits)?
        .into_iter()
        .map(|dirs| Arc::new(Server::new(folder, path, dirs, key.as_ref(), checked, limits)))
        .collect();
    let (mut all, mut unreadable) = (Vec::new(), Vec::new());
    for server in &servers {
        all.extend(server.tablets(folder.as_ref(), checked, &limits, &mut unreadable)?);
    }
    Ok((servers, all, unreadable))
}

impl KuduTable {
    /// Finds the servers' directories in `folder`, which errors call `path`, and in them the table.
    pub fn open(folder: &Arc<dyn Folder>, path: &Arc<str>, options: &OpenOptions) -> Result<Self> {
        let own = Options::new(&options.extra)?;
        let (checked, limits) = (!options.skip_checksums, options.limits);
        let (servers, all, mut unreadable) = replicas(folder, path, options)?;
        // Another replica does, and one that was not asked for does not matter.
        unreadable.retain(|u: &Unreadable| {
            all.iter().all(|t: &Tablet| t.id != u.tablet || !t.ready())
                && own.tablet.as_ref().is_none_or(|id| *id == u.tablet)
        });
        let all = best_replicas(all);
        let tables = table_names(&all);
        if let (true, Some(first)) = (all.is_empty(), unreadable.first()) {
            return Err(first.damage.to_error());
        }
        let tablets: Vec<Arc<Tablet>> = choose(all, &own, &tables)?.into_iter().map(Arc::new).collect();
        let newest = tablets.iter().max_by_key(|t| t.schema_version);
        let newest = newest.ok_or_else(|| Error::not_found("a Kudu table with tablets in the directory"))?;
        let (name, schema) = (newest.table.clone(), newest.schema.clone());
        let parts = tablets.iter().flat_map(|tablet| {
            tablet.rowsets.iter().map(|r| Part {
                tablet: tablet.clone(),
                rowset: r.clone(),
                rows: OnceLock::new(),
                bytes: OnceLock::new(),
            })
        });
        Ok(Self {
            parts: parts.collect(),
            folder: folder.clone(),
            servers,
            name,
            schema: schema.arrow(),
            columns: schema.columns.into_iter().map(Arc::new).collect(),
            tablets,
            reading: Reading { verify: checked, limits, snapshot: own.snapshot },
            tables,
            unreadable,
        })
    }

    fn part(&self, split: &Split) -> Result<&Part> {
        let index = usize::try_from(split.part).unwrap_or(usize::MAX);
        self.parts.get(index).ok_or_else(|| {
            Error::invalid(format!("part {} of a table with {} rowsets", split.part, self.parts.len()))
        })
    }

    /// Rows of a rowset, deleted ones too.
    fn rows(&self, part: &Part) -> Result<u64> {
        if let Some(rows) = part.rows.get() {
            return Ok(*rows);
        }
        let rows = match row_count(&part.tablet, &part.rowset, &self.reading) {
            Ok(rows) => rows,
            // Reading it will say so; the split only has to be there.
            Err(e) if e.is_damage() => return Ok(1),
            Err(e) => return Err(e.within(format!("rowset {}", part.rowset.id))),
        };
        Ok(*part.rows.get_or_init(|| rows))
    }

    /// Into how many splits of `target` bytes a rowset is cut. One of any size needs no look at the files.
    fn pieces(part: &Part, target: u64) -> u64 {
        if target == u64::MAX {
            return 1;
        }
        let bytes = *part.bytes.get_or_init(|| column_bytes(&part.tablet, &part.rowset));
        bytes.div_ceil(target.max(1))
    }

    pub(super) fn reading(&self) -> &Reading {
        &self.reading
    }

    pub(super) fn tablets(&self) -> &[Arc<Tablet>] {
        &self.tablets
    }

    pub(super) fn servers(&self) -> &[Arc<Server>] {
        &self.servers
    }

    pub(super) fn folder(&self) -> &Arc<dyn Folder> {
        &self.folder
    }
}

fn table_names(tablets: &[Tablet]) -> Vec<String> {
    let mut names: Vec<String> = tablets.iter().map(|t| t.table.clone()).collect();
    names.sort();
    names.dedup();
    names
}

/// The tablets that the options ask for.
fn choose(mut tablets: Vec<Tablet>, options: &Options, names: &[String]) -> Result<Vec<Tablet>> {
    let listed = || names.join(", ");
    if let Some(id) = &options.tablet {
        tablets.retain(|t| t.id == *id);
        if tablets.is_empty() {
            return Err(Error::not_found(format!("tablet {id:?}; the directory has tables {}", listed())));
        }
    }
    if let Some(name) = &options.table {
        tablets.retain(|t| t.table == *name || t.table_id == *name);
        if tablets.is_empty() {
            return Err(Error::not_found(format!("table {name:?}; the directory has: {}", listed())));
        }
    }
    let mut ids: Vec<&str> = tablets.iter().map(|t| t.table_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    match (ids.len(), names.len()) {
        (0 | 1, _) => Ok(tablets),
        (_, 1) => Err(Error::invalid(format!(
            "several tables have the name {}; say which by table=\"<id>\": {}",
            listed(),
            ids.join(", ")
        ))),
        _ => Err(Error::invalid(format!(
            "the directory has several tables; say which by table=: {}",
            listed()
        ))),
    }
}

impl TableFile for KuduTable {
    fn format(&self) -> &'static str {
        "kudu"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn row_count(&self) -> Option<u64> {
        if self.reading.snapshot.is_some()
            || !self.unreadable.is_empty()
            || self.tablets.iter().any(|t| !t.counts_live_rows)
        {
            return None;
        }
        self.parts.iter().map(|p| p.rowset.live_rows).sum()
    }

    fn metadata(&self) -> Result<Value> {
        let key: Vec<Value> = self.columns.iter().filter(|c| c.key).map(|c| c.name.as_str().into()).collect();
        let wals: u64 = self.tablets.iter().map(|t| t.wal_segments()).sum();
        let newest = self.tablets.iter().max_by_key(|t| t.schema_version);
        let undated = self.parts.iter().filter(|p| p.rowset.undo.is_empty()).count();
        let servers = self.servers.iter().map(|s| {
            Value::map([
                ("uuid", Value::from(s.uuid.as_str())),
                ("formatted", Value::from(s.dirs.instance.format_stamp.as_str())),
                ("directory", Value::from(s.dirs.metadata.as_str())),
                (
                    "data_directories",
                    Value::List(s.store.dirs().iter().map(|d| d.path.as_str().into()).collect()),
                ),
            ])
        });
        Ok(Value::map([
            ("table", Value::from(self.name.as_str())),
            ("table_id", Value::from(newest.map(|t| t.table_id.clone()))),
            ("tables", Value::List(self.tables.iter().map(|t| t.as_str().into()).collect())),
            ("schema_version", Value::from(newest.map(|t| t.schema_version))),
            ("columns", Value::List(self.columns.iter().map(|c| c.describe()).collect())),
            ("primary_key", Value::List(key)),
            ("partitioning", newest.map_or(Value::Null, |t| t.describe_partitioning())),
            ("snapshot", Value::from(self.reading.snapshot)),
            ("tablets", Value::List(self.tablets.iter().map(|t| t.describe()).collect())),
            ("servers", Value::List(servers.collect())),
            ("wal_segments", Value::from(wals)),
            ("wal_may_hold_rows", Value::from(wals > 0)),
            ("rowsets_without_undo", Value::from(undated as u64)),
        ]))
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let mut splits = Vec::new();
        for (i, part) in self.parts.iter().enumerate() {
            let number = u32::try_from(i).map_err(|_| Error::unsupported("a table of 2^32 rowsets"))?;
            let rows = self.rows(part)?;
            let pieces = Self::pieces(part, target).clamp(1, rows.max(1));
            let step = rows.div_ceil(pieces).max(1);
            let mut start = 0;
            while start < rows {
                let end = start.saturating_add(step).min(rows);
                let whole = rows > 0 && pieces == 1;
                let live = part.rowset.live_rows.filter(|_| whole && self.row_count().is_some());
                splits.push(Split { part: number, range: start..end, rows: live });
                start = end;
            }
        }
        let behind = self.parts.len()..self.parts.len() + self.unreadable.len();
        for part in behind.filter_map(|i| u32::try_from(i).ok()) {
            splits.push(Split { part, range: 0..1, rows: None });
        }
        Ok(splits)
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        // A table without rowsets has no splits either; its schema is asked for by an empty one.
        if split.range.is_empty() {
            return Ok(Box::new(NoRows));
        }
        let behind = usize::try_from(split.part).ok().and_then(|i| i.checked_sub(self.parts.len()));
        if let Some(lost) = behind.and_then(|i| self.unreadable.get(i)) {
            if request.scan.on_error == OnError::Raise {
                return Err(lost.damage.to_error());
            }
            request.damage.push(lost.damage.clone());
            return Ok(Box::new(NoRows));
        }
        let part = self.part(split)?;
        let wanted = request.decode.fields().iter().map(|f| {
            let found = self.columns.iter().find(|c| c.name == *f.name());
            found.cloned().ok_or_else(|| Error::schema(format!("the table has no column `{}`", f.name())))
        });
        let columns = wanted.collect::<Result<Vec<_>>>()?;
        let (tablet, rowset) = (part.tablet.clone(), part.rowset.clone());
        let rows = split.range.clone();
        Ok(Box::new(RowSetPlan::new(tablet, rowset, columns, request.clone(), self.reading, rows)))
    }

    fn statistics(&self) -> Result<Value> {
        let of = |p: &Part| statistics(&p.tablet, &p.rowset, &self.reading);
        Ok(Value::map([("rowsets", Value::List(self.parts.iter().map(of).collect::<Result<_>>()?))]))
    }

    fn inspect(&self) -> Result<Node> {
        inspect::folder(self)
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        inspect::damage(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The plan of a split without rows.
struct NoRows;

impl Plan for NoRows {
    fn next_unit(&mut self) -> Result<Option<coldframe_core::Unit>> {
        Ok(None)
    }
}
