//! A table of a Kudu data directory: the best replica of each of its tablets, as one `TableFile`.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow_schema::SchemaRef;
use coldframe_core::io::Folder;
use coldframe_core::{
    Damage, Error, Node, OnError, OpenOptions, Plan, PlanRequest, Result, Split, TableFile, Value,
};

use crate::metadata::statistics;
use crate::open::Found;
use crate::rowset::{column_bytes, row_count};
use crate::scan::plan::RowSetPlan;
use crate::schema::Column;
use crate::tablet::{RowSet, Tablet};
use crate::{inspect, verify};

/// A table, opened.
#[derive(Debug)]
pub struct KuduTable {
    found: Found,
    columns: Vec<Arc<Column>>,
    /// Places in `columns`.
    by_name: HashMap<String, usize>,
    schema: SchemaRef,
    parts: Vec<Part>,
}

/// A rowset, which is a part of the table for splits.
#[derive(Debug)]
struct Part {
    tablet: Arc<Tablet>,
    rowset: RowSet,
    rows: OnceLock<u64>,
    bytes: OnceLock<u64>,
}

impl KuduTable {
    /// Finds the servers' directories in `folder`, which errors call `path`, and in them the table.
    pub fn open(folder: &Arc<dyn Folder>, path: &Arc<str>, options: &OpenOptions) -> Result<Self> {
        let found = Found::open(folder, path, options)?;
        let parts = found.tablets.iter().flat_map(|tablet| {
            tablet.rowsets.iter().map(|r| Part {
                tablet: tablet.clone(),
                rowset: r.clone(),
                rows: OnceLock::new(),
                bytes: OnceLock::new(),
            })
        });
        Ok(Self {
            parts: parts.collect(),
            schema: found.schema.arrow(),
            by_name: found.schema.columns.iter().enumerate().map(|(i, c)| (c.name.clone(), i)).collect(),
            columns: found.schema.columns.iter().cloned().map(Arc::new).collect(),
            found,
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
        let rows = match row_count(&part.tablet, &part.rowset, &self.found.reading) {
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
}

impl TableFile for KuduTable {
    fn format(&self) -> &'static str {
        "kudu"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn row_count(&self) -> Option<u64> {
        if self.found.reading.snapshot.is_some()
            || !self.found.unreadable.is_empty()
            || self.found.tablets.iter().any(|t| !t.counts_live_rows)
        {
            return None;
        }
        self.parts.iter().map(|p| p.rowset.live_rows).sum()
    }

    fn metadata(&self) -> Result<Value> {
        let key: Vec<Value> = self.columns.iter().filter(|c| c.key).map(|c| c.name.as_str().into()).collect();
        let wals: u64 = self.found.tablets.iter().map(|t| t.wal_segments()).sum();
        let newest = self.found.tablets.iter().max_by_key(|t| t.schema_version);
        let undated = self.parts.iter().filter(|p| p.rowset.undo.is_empty()).count();
        let servers = self.found.servers.iter().map(|s| {
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
            ("table", Value::from(self.found.name.as_str())),
            ("table_id", Value::from(newest.map(|t| t.table_id.clone()))),
            ("tables", Value::List(self.found.tables.iter().map(|t| t.as_str().into()).collect())),
            ("schema_version", Value::from(newest.map(|t| t.schema_version))),
            ("columns", Value::List(self.columns.iter().map(|c| c.describe()).collect())),
            ("primary_key", Value::List(key)),
            ("partitioning", newest.map_or(Value::Null, |t| t.describe_partitioning())),
            ("snapshot", Value::from(self.found.reading.snapshot)),
            ("tablets", Value::List(self.found.tablets.iter().map(|t| t.describe()).collect())),
            ("servers", Value::List(servers.collect())),
            ("wal_segments", Value::from(wals)),
            ("wal_may_hold_rows", Value::from(wals > 0)),
            ("rowsets_without_undo", Value::from(undated as u64)),
        ]))
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let mut splits = Vec::new();
        let counted = self.row_count().is_some();
        for (i, part) in self.parts.iter().enumerate() {
            let number = u32::try_from(i).map_err(|_| Error::unsupported("a table of 2^32 rowsets"))?;
            let rows = self.rows(part)?;
            let pieces = Self::pieces(part, target).clamp(1, rows.max(1));
            let step = rows.div_ceil(pieces).max(1);
            let mut start = 0;
            while start < rows {
                let end = start.saturating_add(step).min(rows);
                let whole = rows > 0 && pieces == 1;
                let live = part.rowset.live_rows.filter(|_| whole && counted);
                splits.push(Split { part: number, range: start..end, rows: live });
                start = end;
            }
        }
        let behind = self.parts.len()..self.parts.len() + self.found.unreadable.len();
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
        if let Some(lost) = behind.and_then(|i| self.found.unreadable.get(i)) {
            if request.scan.on_error == OnError::Raise {
                return Err(lost.damage.to_error());
            }
            request.damage.push(lost.damage.clone());
            return Ok(Box::new(NoRows));
        }
        let part = self.part(split)?;
        let wanted = request.decode.fields().iter().map(|f| {
            let found = self.by_name.get(f.name()).and_then(|i| self.columns.get(*i));
            found.cloned().ok_or_else(|| Error::schema(format!("the table has no column `{}`", f.name())))
        });
        let columns = wanted.collect::<Result<Vec<_>>>()?;
        // A key that begins with a column which the table does not know by its number says nothing.
        let key = part.tablet.schema.key().into_iter();
        let key =
            key.map_while(|k| self.columns.iter().find(|c| c.id == k.id && c.arrow == k.arrow).cloned());
        let key = key.collect();
        let (tablet, rowset) = (part.tablet.clone(), part.rowset.clone());
        let rows = split.range.clone();
        Ok(Box::new(RowSetPlan::new(
            tablet,
            rowset,
            (columns, key),
            request.clone(),
            self.found.reading,
            rows,
        )))
    }

    fn statistics(&self) -> Result<Value> {
        let of = |p: &Part| statistics(&p.tablet, &p.rowset, &self.found.reading);
        Ok(Value::map([("rowsets", Value::List(self.parts.iter().map(of).collect::<Result<_>>()?))]))
    }

    fn inspect(&self) -> Result<Node> {
        inspect::folder(&self.found)
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        verify::damage(&self.found)
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
