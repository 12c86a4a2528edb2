//! A table of a Kudu data directory as a `TableFile`: its rows are the rows of the best replica of each
//! tablet.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow_schema::SchemaRef;
use coldframe_core::io::Folder;
use coldframe_core::{
    Checksums, Damage, Error, Fault, NoUnits, Node, Notice, OnError, OpenOptions, Plan, PlanRequest, Proof,
    Result, Split, TableFile, Value,
};

use crate::metadata::{log_metadata, statistics};
use crate::missing::Absent;
use crate::open::LocatedTable;
use crate::rowset::{column_bytes, row_count};
use crate::scan::memory::MemoryPlan;
use crate::scan::plan::RowSetPlan;
use crate::schema::Column;
use crate::tablet::{RowSet, Tablet};
use crate::wal::{Summary, TabletLog};
use crate::{inspect, verify};

/// An open table.
#[derive(Debug)]
pub struct KuduTable {
    located: LocatedTable,
    columns: Vec<Arc<Column>>,
    /// The positions of columns in `columns`, by name.
    by_name: HashMap<String, usize>,
    schema: SchemaRef,
    parts: Vec<RowSetPart>,
}

/// A rowset, which is one part of the table, for splits.
#[derive(Debug)]
struct RowSetPart {
    tablet: Arc<Tablet>,
    log: Arc<TabletLog>,
    rowset: RowSet,
    rows: OnceLock<u64>,
    bytes: OnceLock<u64>,
}

impl KuduTable {
    /// Finds the servers' directories in `folder`, and the table in them. Errors call the folder `path`.
    pub fn open(folder: &Arc<dyn Folder>, path: &Arc<str>, options: &OpenOptions) -> Result<Self> {
        let located = LocatedTable::open(folder, path, options)?;
        let parts = located.tablets.iter().zip(&located.logs).flat_map(|(tablet, log)| {
            tablet.rowsets.iter().map(|r| RowSetPart {
                tablet: tablet.clone(),
                log: log.clone(),
                rowset: r.clone(),
                rows: OnceLock::new(),
                bytes: OnceLock::new(),
            })
        });
        Ok(Self {
            parts: parts.collect(),
            schema: located.schema.arrow(),
            by_name: located.schema.columns.iter().enumerate().map(|(i, c)| (c.name.clone(), i)).collect(),
            columns: located.schema.columns.iter().cloned().map(Arc::new).collect(),
            located,
        })
    }

    fn part(&self, split: &Split) -> Result<&RowSetPart> {
        let index = usize::try_from(split.part).unwrap_or(usize::MAX);
        self.parts.get(index).ok_or_else(|| {
            Error::invalid(format!("part {} of a table with {} rowsets", split.part, self.parts.len()))
        })
    }

    /// The number of rows of a rowset, including deleted rows.
    fn rows(&self, part: &RowSetPart) -> Result<u64> {
        if let Some(rows) = part.rows.get() {
            return Ok(*rows);
        }
        let rows = match row_count(&part.tablet, &part.rowset, &self.located.reading) {
            Ok(rows) => rows,
            // One row is stated so that a split exists; reading that split reports the fault.
            Err(e) if Fault::is(&e) => return Ok(1),
            Err(e) => return Err(e.within(format!("rowset {}", part.rowset.id))),
        };
        Ok(*part.rows.get_or_init(|| rows))
    }

    /// The number of live rows in all rowsets, if the super blocks state it.
    fn flushed_rows(&self) -> Option<u64> {
        if self.located.reading.snapshot.is_some()
            || !self.located.unreadable.is_empty()
            || self.located.tablets.iter().any(|t| !t.counts_live_rows)
        {
            return None;
        }
        self.parts.iter().map(|p| p.rowset.live_rows).sum()
    }

    /// The columns of a tablet's primary key, with the table's names; empty if the first column has an id
    /// that the table does not have.
    fn key(&self, tablet: &Tablet) -> Vec<Arc<Column>> {
        let key = tablet.schema.key().into_iter();
        let key =
            key.map_while(|k| self.columns.iter().find(|c| c.id == k.id && c.arrow == k.arrow).cloned());
        key.collect()
    }

    /// Metadata of the write-ahead logs: their size, and what was recovered from them.
    fn log(&self) -> Value {
        let segments: u64 = self.located.tablets.iter().map(|t| t.segments.count()).sum();
        let bytes: u64 = self.located.tablets.iter().map(|t| t.segments.bytes()).sum();
        let mut pairs = vec![
            ("read".to_owned(), Value::from(self.located.wal)),
            ("segments".to_owned(), Value::from(segments)),
            ("bytes".to_owned(), Value::from(bytes)),
        ];
        if self.located.wal {
            let logs: Vec<_> = self.located.logs.iter().map(|log| log.summary()).collect();
            pairs.extend(log_metadata(&logs));
        }
        Value::Map(pairs)
    }

    /// Lists the splits of a rowset; `counted`: whether its number of live rows is the one that its super
    /// block states.
    fn rowset_splits(
        &self,
        number: usize,
        part: &RowSetPart,
        target: u64,
        counted: bool,
        splits: &mut Vec<Split>,
    ) -> Result<()> {
        let number = part_number(number)?;
        let rows = self.rows(part)?;
        let pieces = Self::pieces(part, target).clamp(1, rows.max(1));
        let step = rows.div_ceil(pieces).max(1);
        let mut start = 0;
        while start < rows {
            let end = start.saturating_add(step).min(rows);
            let live = part.rowset.live_rows.filter(|_| pieces == 1 && counted);
            splits.push(Split { part: number, range: start..end, rows: live });
            start = end;
        }
        Ok(())
    }

    /// The number of splits of `target` bytes for a rowset. Without a limit of bytes it is one, and no file
    /// is opened.
    fn pieces(part: &RowSetPart, target: u64) -> u64 {
        if target == u64::MAX {
            return 1;
        }
        let bytes = *part.bytes.get_or_init(|| column_bytes(&part.tablet, &part.rowset));
        bytes.div_ceil(target.max(1))
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
        let flushed = self.flushed_rows()?;
        let mut rows = i64::try_from(flushed).ok()?;
        for log in &self.located.logs {
            rows = rows.checked_add(log.summary().ok()?.live?)?;
        }
        u64::try_from(rows).ok()
    }

    fn metadata(&self) -> Result<Value> {
        let key: Vec<Value> = self.columns.iter().filter(|c| c.key).map(|c| c.name.as_str().into()).collect();
        let newest = self.located.tablets.iter().max_by_key(|t| t.schema_version);
        let undated = self.parts.iter().filter(|p| p.rowset.undo.is_empty()).count();
        let servers = self.located.servers.iter().map(|s| {
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
            ("table", Value::from(self.located.name.as_str())),
            ("table_id", Value::from(newest.map(|t| t.table_id.clone()))),
            ("tables", Value::List(self.located.tables.iter().map(|t| t.as_str().into()).collect())),
            ("schema_version", Value::from(newest.map(|t| t.schema_version))),
            ("columns", Value::List(self.columns.iter().map(|c| c.describe()).collect())),
            ("primary_key", Value::List(key)),
            ("partitioning", newest.map_or(Value::Null, |t| t.describe_partitioning())),
            ("snapshot", Value::from(self.located.reading.snapshot)),
            ("tablets", Value::List(self.located.tablets.iter().map(|t| t.describe()).collect())),
            ("servers", Value::List(servers.collect())),
            ("wal", self.log()),
            ("missing_tablets", Value::List(self.located.absent.iter().map(Absent::describe).collect())),
            ("tablets_without_log", texts(self.located.without_log.iter())),
            ("tablets_without_super_block", texts(self.located.lost.iter())),
            ("rowsets_without_undo", Value::from(undated as u64)),
        ]))
    }

    fn notices(&self) -> Result<Vec<Notice>> {
        let LocatedTable { absent, minorities, without_log, without_end, lost, name, complete, .. } =
            &self.located;
        let counted =
            |n: usize, single: &str, several: &str| format!("{n} {}", if n == 1 { single } else { several });
        let mut texts = Vec::new();
        if let Some((first, voters, here)) = minorities.first().filter(|_| *complete != Some(false)) {
            let tablets = counted(minorities.len(), "tablet", "tablets");
            texts.push(format!(
                "{tablets} of table {name} without a majority of the replicas (of {first}, {here} of {voters}): other servers may have newer rows (complete=False accepts it)"
            ));
        }
        // A complete table records the others as damage.
        if *complete == Some(true) {
            return Ok(texts.into_iter().map(Notice::PartialTable).collect());
        }
        if !absent.is_empty() && complete.is_none() {
            let have = counted(absent.len(), "hash bucket", "hash buckets");
            texts.push(format!(
                "{have} of table {name} {} no tablet in this directory; other servers may hold the data (see metadata[\"missing_tablets\"]; complete=True treats this as damage, complete=False accepts it)",
                if absent.len() == 1 { "has" } else { "have" },
            ));
        }
        if let Some(first) = without_log.first() {
            let tablets = counted(without_log.len(), "tablet", "tablets");
            texts.push(format!(
                "{tablets} of table {name} without a write-ahead log (wals/{first}): rows that were not flushed are missing, though Kudu had them (complete=True treats this as damage, wal=False accepts it)"
            ));
        }
        if let Some(first) = without_end.first() {
            let tablets = counted(without_end.len(), "tablet", "tablets");
            texts.push(format!(
                "{tablets} of table {name} with a newest log segment (wals/{first}) that has no header: a server that was killed leaves one, but it may have had rows that were not flushed (complete=True treats this as damage, wal=False accepts it)"
            ));
        }
        if let Some(first) = lost.first().filter(|_| complete.is_none()) {
            let tablets = counted(lost.len(), "tablet", "tablets");
            texts.push(format!(
                "{tablets} in the directory without a super block (tablet-meta/{first}), of this table or another one: their rows cannot be read (complete=True treats this as damage, complete=False accepts it)"
            ));
        }
        let unreadable = Damage::notice(self.located.unreadable.iter().map(|tablet| &tablet.fault.damage));
        Ok(texts.into_iter().map(Notice::PartialTable).chain(unreadable).collect())
    }

    fn notices_by_reading(&self) -> Result<Vec<Notice>> {
        Ok(Damage::notice(&verify::missing_blocks(&self.located)?).into_iter().collect())
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let mut splits = Vec::new();
        let counted = self.flushed_rows().is_some();
        let mut parts = self.parts.iter().enumerate();
        for (i, (tablet, log)) in self.located.tablets.iter().zip(&self.located.logs).enumerate() {
            let log = log.summary()?;
            // If the log changes no row, the row counts in the super blocks are exact.
            let flushed = counted && log.changes == 0 && log.live.is_some();
            for (number, part) in parts.by_ref().take(tablet.rowsets.len()) {
                self.rowset_splits(number, part, target, flushed, &mut splits)?;
            }
            memory_splits(part_number(self.parts.len() + i)?, &log, target, &mut splits);
        }
        let first = self.parts.len() + self.located.logs.len();
        for i in 0..self.located.unreadable.len() {
            splits.push(Split { part: part_number(first + i)?, range: 0..1, rows: None });
        }
        Ok(splits)
    }

    fn byte_split(&self, _bytes: std::ops::Range<u64>) -> Result<Split> {
        Err(Split::not_of_bytes())
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        // A table without rowsets has no splits. An empty split is used to get its schema.
        if split.range.is_empty() {
            return Ok(Box::new(NoUnits));
        }
        let index = usize::try_from(split.part).ok().and_then(|i| i.checked_sub(self.parts.len()));
        let log = index.and_then(|i| self.located.logs.get(i).zip(self.located.tablets.get(i)));
        let unreadable = index.and_then(|i| i.checked_sub(self.located.logs.len()));
        if let Some(unreadable) = unreadable.and_then(|i| self.located.unreadable.get(i)) {
            if request.scan.on_error == OnError::Raise {
                return Err(unreadable.fault.to_error());
            }
            request.damage.push(unreadable.fault.damage.clone());
            return Ok(Box::new(NoUnits));
        }
        let wanted = request.decode.fields().iter().map(|f| {
            let column = self.by_name.get(f.name()).and_then(|i| self.columns.get(*i));
            column.cloned().ok_or_else(|| Error::schema(format!("the table has no column `{}`", f.name())))
        });
        let columns = wanted.collect::<Result<Vec<_>>>()?;
        if let Some((log, tablet)) = log {
            return Ok(Box::new(MemoryPlan {
                log: log.clone(),
                name: format!("tablet {}", tablet.id),
                columns,
                key: self.key(tablet),
                request: request.clone(),
                snapshot: self.located.reading.snapshot,
                rows: split.range.clone(),
                replayed: None,
                limits: self.located.reading.limits,
            }));
        }
        let part = self.part(split)?;
        let key = self.key(&part.tablet);
        let (tablet, rowset) = (part.tablet.clone(), part.rowset.clone());
        let rows = split.range.clone();
        Ok(Box::new(RowSetPlan::new(
            tablet,
            rowset,
            (columns, key),
            request.clone(),
            self.located.reading,
            rows,
            part.log.clone(),
        )))
    }

    fn statistics(&self) -> Result<Value> {
        let of = |p: &RowSetPart| statistics(&p.tablet, &p.rowset, &self.located.reading);
        Ok(Value::map([("rowsets", Value::List(self.parts.iter().map(of).collect::<Result<_>>()?))]))
    }

    fn inspect(&self) -> Result<Node> {
        inspect::folder(&self.located)
    }

    fn proof(&self) -> Proof {
        // Only some files have checksums, since files of Kudu's first versions have no checksums.
        let checksums = Checksums::Some.if_compared(self.located.reading.verify);
        Proof { checksums, besides: &["the directory's metadata", "files that the newest rows do not need"] }
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        verify::damage(&self.located)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn texts<'a>(all: impl Iterator<Item = &'a String>) -> Value {
    Value::List(all.map(|text| Value::from(text.as_str())).collect())
}

fn part_number(i: usize) -> Result<u32> {
    u32::try_from(i).map_err(|_| Error::unsupported("a table of 2^32 rowsets"))
}

/// Lists the splits of the rows recovered from a log. If rows may be missing, there is at least one split, which
/// reports the loss.
fn memory_splits(part: u32, log: &Summary, target: u64, splits: &mut Vec<Split>) {
    let rows = log.rows.max(u64::from(log.lacks_rows));
    let pieces = log.bytes.div_ceil(target.max(1)).clamp(1, rows.max(1));
    let step = rows.div_ceil(pieces).max(1);
    let mut start = 0;
    while start < rows {
        let end = start.saturating_add(step).min(rows);
        splits.push(Split { part, range: start..end, rows: None });
        start = end;
    }
}
