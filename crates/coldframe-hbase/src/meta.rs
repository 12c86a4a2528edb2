//! What hbase:meta states about a table's regions.
//!
//! ```text
//! row TABLE,START,ID.ENCODED.   info:regioninfo = "PBUF" RegionInfo | parents of a split: offline, split | table:state
//! ```
//!
//! hbase:meta is itself a table, with one region, whose rows have an order of their own.

use std::collections::BTreeMap;

use arrow_array::{Array, BinaryArray, RecordBatch};
use coldframe_core::{Error, Limits, Plan, Result};

use crate::layout::messages;
use crate::layout::names::TableName;
use crate::layout::proto::RegionInfo;
use crate::regions::alive::{self, Region};
use crate::scan::plan::each_batch;

/// The regions of a table in hbase:meta.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// By encoded name: the region, and whether it is live.
    pub(crate) regions: BTreeMap<String, (RegionInfo, bool)>,
    /// Whether the table is disabled, if hbase:meta states that.
    pub(crate) disabled: Option<bool>,
}

/// Reads what hbase:meta states about `table`; `meta` is a plan of the rows of hbase:meta.
pub(crate) fn listed(meta: &mut dyn Plan, table: &TableName, limits: &Limits) -> Result<Listed> {
    let mut listed = Listed::default();
    each_batch(meta, |batch| add(&batch, table, limits, &mut listed))?;
    Ok(listed)
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a BinaryArray> {
    let column = batch.column_by_name(name).and_then(|c| c.as_any().downcast_ref());
    column.ok_or_else(|| Error::schema(format!("hbase:meta has no column `{name}`")))
}

fn add(batch: &RecordBatch, table: &TableName, limits: &Limits, listed: &mut Listed) -> Result<()> {
    let (rows, families) = (column(batch, "row")?, column(batch, "family")?);
    let (qualifiers, values) = (column(batch, "qualifier")?, column(batch, "value")?);
    let plain = table.plain();
    for i in 0..batch.num_rows() {
        let (row, value) = (rows.value(i), values.value(i));
        match (families.value(i), qualifiers.value(i)) {
            (b"info", b"regioninfo") => {
                let Some(encoded) = encoded_name(row) else { continue };
                // Rows of another table, whose name begins with this one's name, have no comma after it.
                if !row.strip_prefix(plain.as_bytes()).is_some_and(|rest| rest.starts_with(b",")) {
                    continue;
                }
                let info = messages::region_info_of_meta(value, limits);
                let info =
                    info.map_err(|e| e.within(format!("row \"{}\" of hbase:meta", row.escape_ascii())))?;
                if info.replica_id.unwrap_or(0) == 0 {
                    let alive = !info.split.unwrap_or(false);
                    listed.regions.insert(encoded, (info, alive));
                }
            }
            (b"table", b"state") if row == plain.as_bytes() => {
                // the state is a protobuf field, 08, with a number: 0 enabled, 1 disabled, 2 disabling, 3
                // enabling
                listed.disabled = Some(value.ends_with(&[8, 1]));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The encoded name, which is the last part of a region's name.
fn encoded_name(row: &[u8]) -> Option<String> {
    let row = row.strip_suffix(b".")?;
    let at = row.iter().rposition(|b| *b == b'.')?;
    let name = std::str::from_utf8(row.get(at + 1..)?).ok()?;
    crate::layout::names::is_region(name).then(|| name.to_owned())
}

/// The regions of a table according to hbase:meta.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) alive: Vec<Region>,
    /// Folders of regions that hbase:meta does not list and that are not left over from older regions. Such
    /// folders are from an abandoned split or merge, or newer than the copy of hbase:meta.
    pub(crate) unknown: Vec<Region>,
}

impl Listed {
    /// Whether hbase:meta lists a region.
    pub(crate) fn knows(&self, encoded: &str) -> bool {
        self.regions.contains_key(encoded)
    }

    /// Decides which regions are live. `folders`: the regions of folders that hbase:meta does not list.
    /// `None` if hbase:meta does not list the table.
    pub(crate) fn decide(self, folders: &[Region], table: &TableName) -> Result<Option<Decided>> {
        let mut alive = Vec::new();
        let mut unknown: Vec<&Region> = folders.iter().collect();
        for (encoded, (info, is_alive)) in self.regions {
            if is_alive {
                alive.extend(Region::of(&encoded, info, table)?);
            }
        }
        if alive.is_empty() {
            return Ok(None);
        }
        // Folders of such older regions remain, for example, of the parents of a merge.
        let is_older = |r: &&Region| alive.iter().any(|a| a.id > r.id && a.overlaps(r));
        unknown.retain(|r| !is_older(r));
        let unknown: Vec<Region> = unknown.into_iter().cloned().collect();
        // Rows for which hbase:meta lists no region are read from unlisted folders, because otherwise they
        // would be lost.
        let uncovered = unknown.iter().filter(|r| !alive.iter().any(|a| a.overlaps(r))).cloned();
        alive.extend(alive::youngest(uncovered.collect()));
        alive.sort_by(|a, b| a.start.cmp(&b.start).then_with(|| a.encoded.cmp(&b.encoded)));
        Ok(Some(Decided { alive, unknown }))
    }
}
