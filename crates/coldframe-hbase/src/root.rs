//! The locations of files below a root directory, in any store.
//!
//! ```text
//! <root>/data/NS/TABLE/.tabledesc/.tableinfo.N        archive/data/NS/TABLE/..    .hbase-snapshot/NAME/{.snapshotinfo,data.manifest}
//! <root>/data/NS/TABLE/REGION/{.regioninfo,FAMILY/}   mobdir/data/NS/TABLE/..     .tmp/data/NS/TABLE/..
//! ```
//!
//! Names that begin with a dot belong to HBase itself, or are checksum files of a local file system.

use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::io::{Entry, Folder};
use coldframe_core::{Error, Limits, ReadAt, Result};

use crate::layout::names::{FileAt, TableName, is_region};

/// The folder of snapshots.
pub(crate) const SNAPSHOTS: &str = ".hbase-snapshot";
/// The file with a snapshot's description.
pub(crate) const SNAPSHOT_INFO: &str = ".snapshotinfo";
/// `data/NS/TABLE` and `.hbase-snapshot/NAME`: a root directory is at most this many levels above the
/// folders.
const TABLE_LEVELS: usize = 3;
const SNAPSHOT_LEVELS: usize = 2;
/// The file with a region's description.
const REGION_INFO: &str = ".regioninfo";
/// How many folders with the name of a region are examined to recognise a table.
const PROBED: usize = 4;
/// The folder of a table's descriptors.
const DESCRIPTORS: &str = ".tabledesc";

/// A root directory, or only the folder of one table in a root directory.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    folder: Arc<dyn Folder>,
    /// Whether the folder is a table's folder and the folders above it are inaccessible.
    alone: bool,
    /// How many levels the root directory is above the opened folder.
    levels: usize,
}

/// The kind of an opened folder.
#[derive(Clone, Debug)]
pub(crate) enum Opened {
    /// A root directory.
    Root(Root),
    /// The folder of a table in a root directory, with the table's name if the path of folders states it.
    Table(Root, Option<TableName>),
    /// The folder of a snapshot in a root directory.
    Snapshot(Root, String),
}

fn has(entries: &[Entry], name: &str) -> bool {
    entries.iter().any(|e| e.path == name)
}

/// Whether a folder is a root directory, or the folder of a table, a region or a snapshot.
pub(crate) fn probe(folder: &dyn Folder) -> Result<bool> {
    let entries = folder.list("")?;
    if has(&entries, DESCRIPTORS) {
        return Ok(descriptors_in(folder, DESCRIPTORS)?.is_some());
    }
    Ok(has(&entries, SNAPSHOT_INFO)
        || has(&entries, REGION_INFO)
        || is_old_root(&entries)
        || is_root(folder, &entries)?
        || holds_regions(folder, &entries)?)
}

/// Whether it is a root directory as HBase before 0.96 keeps it: tables and their regions lie in the root itself.
fn is_old_root(entries: &[Entry]) -> bool {
    (has(entries, "-ROOT-") || has(entries, ".META.")) && !has(entries, "data")
}

/// Whether it is a table's folder without a descriptor: it holds regions. Before 0.90 the names of regions
/// were numbers.
fn holds_regions(folder: &dyn Folder, entries: &[Entry]) -> Result<bool> {
    let is_named =
        |name: &str| is_region(name) || (name.len() > 6 && name.bytes().all(|b| b.is_ascii_digit()));
    for entry in entries.iter().filter(|e| e.is_folder && is_named(name_of(e))).take(PROBED) {
        if has_file(&folder.list(&entry.path)?, REGION_INFO) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_file(entries: &[Entry], name: &str) -> bool {
    entries.iter().any(|e| !e.is_folder && name_of(e) == name)
}

fn is_root(folder: &dyn Folder, entries: &[Entry]) -> Result<bool> {
    if has(entries, SNAPSHOTS) || (has(entries, "hbase.version") && has(entries, "hbase.id")) {
        return Ok(true);
    }
    if !entries.iter().any(|e| e.path == "data" && e.is_folder) {
        return Ok(false);
    }
    // A partial copy of a root directory is recognised by the folder of a table with its descriptor.
    for namespace in folder.list("data")?.iter().filter(|e| e.is_folder).take(64) {
        for table in folder.list(&namespace.path)?.iter().filter(|e| e.is_folder).take(64) {
            if descriptors_in(folder, &format!("{}/{DESCRIPTORS}", table.path))?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The newest of the descriptors in a folder, and the length in its name.
fn descriptors_in(folder: &dyn Folder, path: &str) -> Result<Option<(Entry, Option<u64>)>> {
    let listed = match folder.list(path) {
        Err(e) if e.is_not_found() => return Ok(None),
        listed => listed?,
    };
    let numbered = listed.into_iter().filter(|e| !e.is_folder).filter_map(|entry| {
        let rest = entry.path.rsplit('/').next()?.strip_prefix(".tableinfo.")?;
        let (number, length) = match rest.split_once('.') {
            Some((number, length)) => (number, Some(length.parse::<u64>().ok()?)),
            None => (rest, None),
        };
        Some((number.parse::<u64>().ok()?, entry, length))
    });
    Ok(numbered.max_by_key(|(number, ..)| *number).map(|(_, entry, length)| (entry, length)))
}

impl Opened {
    /// Determines the kind of `folder`.
    pub(crate) fn new(folder: &Arc<dyn Folder>) -> Result<Self> {
        let entries = folder.list("")?;
        if is_old_root(&entries) {
            return Err(Error::unsupported(
                "a root directory of HBase before 0.96 (with -ROOT- and .META.): HBase 0.96 or 0.98 converts a copy of it (`hbase upgrade -execute`)",
            ));
        }
        if has(&entries, REGION_INFO) {
            return Err(Error::unsupported(
                "the folder of one region of an HBase table: open the table's folder or the root directory",
            ));
        }
        let whole = |folder: Arc<dyn Folder>, levels: usize| Root { folder, alone: false, levels };
        if has(&entries, DESCRIPTORS) || holds_regions(folder.as_ref(), &entries)? {
            let above = above(folder, TABLE_LEVELS)?;
            let [data, namespace, name] = match above.as_ref().map(|(_, names)| names.as_slice()) {
                Some([data, namespace, name]) => [data, namespace, name].map(String::as_str),
                _ => [""; 3],
            };
            return Ok(match above.as_ref().filter(|_| data == "data") {
                Some((root, _)) => {
                    let table = TableName { namespace: namespace.to_owned(), name: name.to_owned() };
                    Self::Table(whole(root.clone(), TABLE_LEVELS), Some(table))
                }
                None => Self::Table(Root { folder: folder.clone(), alone: true, levels: 0 }, None),
            });
        }
        if has(&entries, SNAPSHOT_INFO) {
            if let Some((root, names)) = above(folder, SNAPSHOT_LEVELS)?
                && let [snapshots, name] = names.as_slice()
                && snapshots == SNAPSHOTS
            {
                return Ok(Self::Snapshot(whole(root, SNAPSHOT_LEVELS), name.clone()));
            }
            return Err(Error::not_found(format!(
                "the root directory above a snapshot, `../../{SNAPSHOTS}`"
            )));
        }
        Ok(Self::Root(whole(folder.clone(), 0)))
    }
}

/// A parent folder, and the names of the folders that lead back from it.
type Above = (Arc<dyn Folder>, Vec<String>);

/// The folder that is `levels` above a folder.
fn above(folder: &Arc<dyn Folder>, levels: usize) -> Result<Option<Above>> {
    let mut at = folder.clone();
    let mut names = Vec::new();
    for _ in 0..levels {
        let Some((parent, name)) = at.parent()? else { return Ok(None) };
        names.insert(0, name);
        at = parent;
    }
    Ok(Some((at, names)))
}

impl Root {
    /// The root directory `levels` above a folder, which an earlier opening has found.
    pub(crate) fn reopen(folder: &Arc<dyn Folder>, levels: usize, alone: bool) -> Result<Self> {
        let Some((folder, _)) = above(folder, levels)? else {
            return Err(Error::not_found(format!("the root directory, {levels} folders above")));
        };
        Ok(Self { folder, alone, levels })
    }

    /// How many levels the root directory is above the opened folder, and whether only a table's folder is
    /// accessible.
    pub(crate) fn place(&self) -> (usize, bool) {
        (self.levels, self.alone)
    }

    /// The path of a table's folder.
    pub(crate) fn table(&self, table: &TableName) -> String {
        if self.alone { String::new() } else { table.folder() }
    }

    /// The entries of a folder whose names do not begin with a dot; empty if the folder does not exist.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let mut all = self.list_all(path)?;
        all.retain(|e| !name_of(e).starts_with('.'));
        Ok(all)
    }

    /// Like [`list`](Self::list), but including names that begin with a dot.
    pub(crate) fn list_all(&self, path: &str) -> Result<Vec<Entry>> {
        match self.folder.list(path) {
            Err(e) if e.is_not_found() => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// Opens a file.
    pub(crate) fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        self.folder.open(path)
    }

    /// All bytes of a small file; errors name the file.
    pub(crate) fn read(&self, path: &str, limits: &Limits) -> Result<Bytes> {
        let read = || {
            let source = self.folder.open(path)?;
            limits.metadata("a file of metadata", source.len())?;
            source.read(0..source.len())
        };
        read().map_err(|e| e.in_file(path))
    }

    /// The path of a table's newest descriptor, and the length in its name.
    pub(crate) fn descriptor(&self, table: &TableName) -> Result<Option<(String, Option<u64>)>> {
        let path = join(&self.table(table), DESCRIPTORS);
        let newest = descriptors_in(self.folder.as_ref(), &path)?;
        Ok(newest.map(|(entry, length)| (entry.path, length)))
    }

    /// The tables that have a folder.
    pub(crate) fn tables(&self) -> Result<Vec<TableName>> {
        let mut tables = Vec::new();
        for namespace in self.list("data")?.iter().filter(|e| e.is_folder) {
            for table in self.list(&namespace.path)?.iter().filter(|e| e.is_folder) {
                tables.push(TableName {
                    namespace: name_of(namespace).to_owned(),
                    name: name_of(table).to_owned(),
                });
            }
        }
        Ok(tables)
    }

    /// The names of the snapshots.
    pub(crate) fn snapshots(&self) -> Result<Vec<String>> {
        let listed = self.list(SNAPSHOTS)?;
        Ok(listed.iter().filter(|e| e.is_folder).map(|e| name_of(e).to_owned()).collect())
    }

    /// Whether the folder of the servers' logs should exist here, but is missing.
    pub(crate) fn lacks_log_folder(&self) -> Result<bool> {
        Ok(!self.alone && !has(&self.folder.list("")?, "WALs"))
    }

    /// Whether no server has a log here. A server with open regions always has one.
    pub(crate) fn lacks_logs(&self) -> Result<bool> {
        Ok(self.logs()?.iter().all(|log| log.path.ends_with(".meta")))
    }

    /// The servers' logs that are not empty.
    pub(crate) fn logs(&self) -> Result<Vec<Entry>> {
        let mut logs = Vec::new();
        for server in self.list("WALs")?.iter().filter(|e| e.is_folder) {
            logs.extend(self.list(&server.path)?.into_iter().filter(|e| !e.is_folder && e.len > 0));
        }
        Ok(logs)
    }

    /// The encoded names of the regions that have a folder.
    pub(crate) fn regions(&self, table: &TableName) -> Result<Vec<String>> {
        let listed = self.list(&self.table(table))?;
        let names = listed.iter().filter(|e| e.is_folder).map(name_of);
        Ok(names.filter(|name| is_region(name)).map(str::to_owned).collect())
    }

    /// Opens a store file at its location, or in the archive.
    pub(crate) fn open_store_file(&self, at: &FileAt) -> Result<(String, Arc<dyn ReadAt>)> {
        let below = format!("{}/{}/{}/{}", at.table.folder(), at.region, at.family, at.file);
        for prefix in ["", "archive/", "mobdir/", ".tmp/"] {
            let path = match (self.alone, prefix) {
                (true, "") => format!("{}/{}/{}", at.region, at.family, at.file),
                (true, _) => continue,
                (false, _) => format!("{prefix}{below}"),
            };
            match self.folder.open(&path) {
                Ok(source) => return Ok((path, source)),
                Err(e) if e.is_not_found() => {}
                Err(e) => return Err(e),
            }
        }
        // A missing file that something refers to is damage, which a read may tolerate.
        Err(Error::corrupt(format!("expected the store file {below} or archive/{below}, found neither")))
    }
}

/// The last part of an entry's path.
pub(crate) fn name_of(entry: &Entry) -> &str {
    entry.path.rsplit('/').next().unwrap_or_default()
}

/// A path below another.
pub(crate) fn join(base: &str, name: &str) -> String {
    if base.is_empty() { name.to_owned() } else { format!("{base}/{name}") }
}
