//! The descriptor of a table, or what the table's folders show if it is lost.
//!
//! ```text
//! TABLE/.tabledesc/.tableinfo.N     name, families, their settings
//! TABLE/REGION/FAMILY/              without it: the families, with HBase's default settings
//! ```

use std::collections::BTreeMap;

use coldframe_core::{Error, ErrorContext, Limits, Result};

use crate::layout::messages;
use crate::layout::names::{META_REGION, RECOVERED_EDITS, TableName, is_region};
use crate::layout::proto::{ColumnFamilySchema, TableSchema, TextPair};
use crate::root::{Root, join, name_of};

/// The families of a table and their settings.
pub(crate) struct Descriptor {
    pub(crate) table: TableName,
    pub(crate) schema: TableSchema,
    /// Whether the descriptor is lost, so that the families are the family folders of the table.
    pub(crate) is_lost: bool,
}

impl Descriptor {
    /// Reads the descriptor of a table. The descriptor gives the name of a table whose folder was opened on
    /// its own.
    pub(crate) fn read(root: &Root, requested: Option<&TableName>, limits: &Limits) -> Result<Self> {
        let any = TableName::parse("");
        let at = requested.unwrap_or(&any);
        let Some((path, length)) = root.descriptor(at)? else {
            return Self::by_folders(root, requested, limits);
        };
        let bytes = root.read(&path, limits)?;
        let schema = messages::table_schema(&bytes, length, limits);
        let schema = schema.within(|| format!("table descriptor {path}"))?;
        let table = match (requested, &schema.table_name) {
            (Some(requested), None) => requested.clone(),
            (requested, Some(_)) => {
                let named = name_in(&schema).within(|| format!("table descriptor {path}"))?;
                if let Some(requested) = requested.filter(|requested| **requested != named) {
                    let message = format!("expected the descriptor of {requested}, found that of {named}");
                    return Err(Error::corrupt(message).within(format!("table descriptor {path}")));
                }
                named
            }
            (None, None) => {
                return Err(Error::corrupt("expected a table's name in its descriptor, found none"));
            }
        };
        Ok(Self { table, schema, is_lost: false })
    }

    fn by_folders(root: &Root, requested: Option<&TableName>, limits: &Limits) -> Result<Self> {
        let any = TableName::parse("");
        let table = requested.unwrap_or(&any);
        let regions = root.regions(table)?;
        let schema = match regions.is_empty() {
            true => TableSchema::default(),
            false => families_of(root, table, &regions)?,
        };
        let lost = || format!("{}/.tabledesc/.tableinfo.N", root.table(table));
        if schema.column_families.is_empty() {
            let known = root.tables()?;
            if known.contains(table) {
                return Err(Error::not_found(format!(
                    "the descriptor of table {table} ({}), and a folder of a family in any of its regions",
                    lost()
                )));
            }
            let names: Vec<String> = known.iter().map(ToString::to_string).collect();
            return Err(Error::not_found(format!("table {table}; the directory has: {}", names.join(", "))));
        }
        let table = match requested {
            Some(requested) => requested.clone(),
            None => name_by_regions(root, &regions, limits).within(lost)?,
        };
        Ok(Self { table, schema, is_lost: true })
    }
}

/// The name of the table in a descriptor.
pub(crate) fn name_in(schema: &TableSchema) -> Result<TableName> {
    let name = schema.table_name.as_ref();
    TableName::of(name.ok_or_else(|| Error::corrupt("expected a table's name, found none"))?)
}

/// The families that have a folder in a region. A family with lists of its files is read according to these
/// lists.
fn families_of(root: &Root, table: &TableName, regions: &[String]) -> Result<TableSchema> {
    let mut families: BTreeMap<String, bool> = BTreeMap::new();
    for region in regions {
        for entry in root.list(&join(&root.table(table), region))? {
            let name = name_of(&entry);
            if entry.is_folder && name != RECOVERED_EDITS {
                let has_lists = root.list_all(&entry.path)?.iter().any(|e| name_of(e) == ".filelist");
                *families.entry(name.to_owned()).or_default() |= has_lists;
            }
        }
    }
    let of_family = |(name, has_lists): (String, bool)| {
        let setting = TextPair { name: TRACKER.to_vec(), value: b"FILE".to_vec() };
        let configuration = if has_lists { vec![setting] } else { Vec::new() };
        ColumnFamilySchema { name: name.into_bytes(), attributes: Vec::new(), configuration }
    };
    let column_families = families.into_iter().map(of_family).collect();
    Ok(TableSchema { column_families, ..TableSchema::default() })
}

/// The name of the table in the first description of a region that can be read.
fn name_by_regions(root: &Root, regions: &[String], limits: &Limits) -> Result<TableName> {
    let mut first = None;
    for region in regions.iter().filter(|region| is_region(region) && *region != META_REGION) {
        let path = join(region, ".regioninfo");
        let named = root.read(&path, limits).and_then(|bytes| {
            messages::region_info(&bytes, limits).and_then(|info| TableName::of(&info.table_name))
        });
        match named.map_err(|e| e.within(format!("region info {path}"))) {
            Ok(table) => return Ok(table),
            Err(e) => drop(first.get_or_insert(e)),
        }
    }
    Err(first.unwrap_or_else(|| Error::not_found("the description of a region (.regioninfo)")))
}

/// The setting that selects how a family's files are determined.
const TRACKER: &[u8] = b"hbase.store.file-tracker.impl";
