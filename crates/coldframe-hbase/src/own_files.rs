//! Which files below a root directory or a table's folder HBase has written itself.
//!
//! ```text
//! hbase.version, hbase.id          WALs/SERVER/LOG, oldWALs/LOG, corrupt/LOG        .hbase-snapshot/..   .hbck/..
//! data/NS/TABLE/..                 archive/data/NS/TABLE/..   mobdir/data/NS/TABLE/..   .tmp/data/NS/TABLE/..
//!   .tabledesc/.tableinfo.N
//!   REGION/.regioninfo   REGION/recovered.edits/N   REGION/FAMILY/{HFILE, .filelist/f1.N, recovered.hfiles/HFILE}
//! ```
//!
//! All other files, and all files in a folder that is no family of its table, have content that nobody reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coldframe_core::io::{Entry, Folder, files_below};
use coldframe_core::{OpenOptions, Result};

use crate::descriptor::Descriptor;
use crate::layout::names::{RECOVERED_EDITS, StoreName, TableName, is_file, is_region};
use crate::options::Options;
use crate::root::{Opened, Root};

/// A namespace, and a name in the namespace.
type TableKey = (String, String);
/// The families of each table.
type Families = BTreeMap<TableKey, BTreeSet<String>>;

/// The files that HBase has not written.
pub(crate) fn unclaimed(folder: &Arc<dyn Folder>, options: &OpenOptions) -> Result<Vec<Entry>> {
    let options = Options::new(options)?;
    match Opened::new(folder)? {
        Opened::Root(root) => {
            let mut families = Families::new();
            for table in root.tables()? {
                families.extend(families_of(&root, &table, &options)?);
            }
            files_below(folder.as_ref(), &|path| of_root(path, &families))
        }
        Opened::Table(root, name) => {
            let table = name.unwrap_or_else(|| TableName::parse(""));
            let known = families_of(&root, &table, &options)?.map(|(_, families)| families);
            files_below(folder.as_ref(), &|path| {
                of_table(&path.split('/').collect::<Vec<_>>(), &table, known.as_ref())
            })
        }
        // The snapshot's files lie elsewhere, and the folder is never listed alone.
        Opened::Snapshot(..) => Ok(Vec::new()),
    }
}

/// The families of a table; `None` if its descriptor cannot be read, which opening the table reports.
fn families_of(
    root: &Root,
    table: &TableName,
    options: &Options,
) -> Result<Option<(TableKey, BTreeSet<String>)>> {
    if table.is_system() {
        return Ok(None);
    }
    let requested = Some(table).filter(|table| !table.name.is_empty());
    match Descriptor::read(root, requested, &options.files.limits) {
        Ok(Descriptor { schema, .. }) => {
            let name = |family: &[u8]| String::from_utf8_lossy(family).into_owned();
            let families = schema.column_families.iter().map(|family| name(&family.name)).collect();
            Ok(Some(((table.namespace.clone(), table.name.clone()), families)))
        }
        Err(e) if e.is_damage() || e.is_not_found() => Ok(None),
        Err(e) => Err(e),
    }
}

fn of_root(path: &str, families: &Families) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["hbase.version" | "hbase.id"] => true,
        ["data", namespace, table, rest @ ..]
        | ["archive" | "mobdir" | ".tmp", "data", namespace, table, rest @ ..] => {
            let name = TableName { namespace: (*namespace).to_owned(), name: (*table).to_owned() };
            // Only tables in `data` have families to compare with: the archive may have files of older
            // families.
            let known = families.get(&(name.namespace.clone(), name.name.clone()));
            of_table(rest, &name, known.filter(|_| parts.first() == Some(&"data")))
        }
        ["WALs" | "oldWALs" | "corrupt", rest @ ..] => {
            rest.len() <= 2 && rest.last().is_some_and(|name| is_log(name))
        }
        // Descriptions of snapshots, and of procedures, which are no rows of a table.
        [".hbase-snapshot" | ".hbck" | "MasterProcWALs" | "MasterData", _, ..] => true,
        // The lock of the repair tool.
        [".tmp", name] => name.starts_with("hbase-hbck"),
        [name] => is_checksum(name),
        _ => false,
    }
}

/// Whether HBase writes a file of this path below a table's folder.
fn of_table(parts: &[&str], table: &TableName, families: Option<&BTreeSet<String>>) -> bool {
    let known = |family: &str| families.is_none_or(|all| all.contains(family));
    let is_store =
        |name: &str, family: &str| StoreName::parse(name, table, family).is_some() || is_checksum(name);
    match parts {
        [".tabledesc" | ".tmp", name] => name.trim_start_matches('.').starts_with("tableinfo"),
        [region, ".regioninfo" | "..regioninfo.crc"] => is_region(region),
        [region, RECOVERED_EDITS, name] => {
            let digits = name.trim_start_matches('-').trim_end_matches("seqid").trim_end_matches(['.', '_']);
            is_region(region) && (is_checksum(name) || digits.bytes().all(|b| b.is_ascii_digit()))
        }
        // What is being written, split or merged: not yet, or no longer, a part of the table.
        [region, ".tmp" | ".splits" | ".merges", .., name] => is_region(region) && is_unfinished(name),
        [region, family, ".filelist", name] => {
            is_region(region) && known(family) && name.trim_start_matches('.').starts_with(['f', 't'])
        }
        [region, family, "recovered.hfiles", name] => is_region(region) && known(family) && is_file(name),
        [region, family, name] => is_region(region) && known(family) && is_store(name, family),
        // Links back to the files of a snapshot or clone.
        [region, family, links, _] => is_region(region) && known(family) && links.starts_with(".links-"),
        _ => false,
    }
}

/// Whether a file in the folder of unfinished work has the name of a store file, or of a description.
fn is_unfinished(name: &str) -> bool {
    let of = name.split('.').next().unwrap_or_default();
    name == ".regioninfo" || is_checksum(name) || is_file(of) || of.contains('=')
}

/// Whether it is a checksum file of Hadoop's local file system.
fn is_checksum(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".crc")
}

/// Whether a file has the name of a write-ahead log: `host%2C16020%2C1700000000000.1700000000001[.meta]`.
fn is_log(name: &str) -> bool {
    let plain = name.trim_end_matches(".meta").trim_end_matches(".syncrep");
    let number = plain.rsplit(['.', '-']).next().unwrap_or_default();
    is_checksum(name)
        || (plain.len() > number.len() && number.len() > 2 && number.bytes().all(|b| b.is_ascii_digit()))
        || plain.contains("%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: &str = "103bf72953198c23387b5ebfeace50f7";
    const FILE: &str = "fedc0ec7901043b498591ff38ef42be3";

    #[test]
    fn files_that_hbase_did_not_write_are_unclaimed() {
        let families: Families = [(("shop".to_owned(), "orders".to_owned()), ["f".to_owned()].into())].into();
        let table = format!("data/shop/orders/{REGION}");
        let own = [
            "hbase.id".to_owned(),
            ".hbase.version.crc".to_owned(),
            "WALs/host,16020,17/host%2C16020%2C17.1700000000001".to_owned(),
            "oldWALs/host%2C16020%2C17.1700000000001.meta".to_owned(),
            ".hbase-snapshot/kept/data.manifest".to_owned(),
            "data/shop/orders/.tabledesc/.tableinfo.0000000001.620".to_owned(),
            format!("{table}/.regioninfo"),
            format!("{table}/recovered.edits/12.seqid"),
            format!("{table}/f/{FILE}"),
            format!("{table}/f/.{FILE}.crc"),
            format!("{table}/f/.filelist/f1.1700000000001"),
            format!("archive/{table}/old/{FILE}"),
        ];
        for path in &own {
            assert!(of_root(path, &families), "{path}");
        }
        let foreign = [
            "part-0.orc".to_owned(),
            "backup/part-0.orc".to_owned(),
            "WALs/part-0.orc".to_owned(),
            "data/part-0.orc".to_owned(),
            "data/shop/orders/part-0.orc".to_owned(),
            format!("{table}/part-0.orc"),
            format!("{table}/f/part-0.orc"),
            format!("{table}/.tmp/part-0.orc"),
            // A family that the table does not have.
            format!("{table}/g/{FILE}"),
            format!("archive/{table}/f/part-0.orc"),
        ];
        for path in &foreign {
            assert!(!of_root(path, &families), "{path}");
        }
    }
}
