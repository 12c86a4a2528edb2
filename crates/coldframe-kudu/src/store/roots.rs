//! Where a Kudu server keeps its files, seen from the opened folder.
//!
//! ```text
//! root/instance                        the server's uuid and keys: every root has it
//! root/tablet-meta/<tablet>            super blocks            the metadata directory (one)
//! root/consensus-meta/<tablet>         members of the Raft group
//! root/wals/<tablet>/wal-000000001     write-ahead log          the WAL directory (one)
//! root/data/block_manager_instance     the data directory's uuid, and the kind of its block manager (any number)
//! root/data/..                         blocks
//! ```
//!
//! One root may have all of these roles (`fs_wal_dir`, `fs_metadata_dir`, `fs_data_dirs` of the server). The
//! opened folder is a root, or contains the roots of one or several servers. Roots with the same uuid belong
//! to one server. If a server was copied twice, each data directory is combined with the nearest metadata
//! directory.

use coldframe_core::io::{Entry, Folder, files_below};
use coldframe_core::{Error, Limits, Result};

use crate::layout::container::{MAGIC, only_message, whole_file};
use crate::layout::proto::{DirInstance, Instance};

/// The maximum number of levels between a root and the opened folder.
const DEPTH: usize = 4;
/// How many levels are searched when a folder is recognised by its contents.
const PROBE_DEPTH: usize = 2;
const INSTANCE: &str = "instance";
/// The database folder in a data directory of the `logr` block manager.
pub(crate) const DATABASE: &str = "rdb";

/// Joins two parts of a path.
pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The last part of a path.
pub(crate) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A directory with an `instance` file.
#[derive(Clone, Debug)]
struct Root {
    path: String,
    instance: Instance,
    has_metadata: bool,
    has_wals: bool,
    data: Option<DataDir>,
}

/// How a data directory keeps its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockManager {
    /// One file for each block.
    File,
    /// Many blocks in each container.
    Log,
    /// Like `Log`, with the block records in a database.
    LogRocks,
}

impl BlockManager {
    /// Whether the block manager keeps blocks in containers.
    pub(crate) fn has_containers(self) -> bool {
        self != Self::File
    }
}

/// A data directory.
#[derive(Clone, Debug)]
pub(crate) struct DataDir {
    /// The folder of the blocks.
    pub(crate) path: String,
    /// The uuid of the directory. The order of the uuids determines which directory a block id means.
    pub(crate) uuid: Vec<u8>,
    /// The uuids of all the server's directories, in order.
    pub(crate) all_uuids: Vec<Vec<u8>>,
    pub(crate) manager: BlockManager,
}

/// The directories of one server.
#[derive(Clone, Debug)]
pub(crate) struct ServerDirs {
    /// The root with `tablet-meta`.
    pub(crate) metadata: String,
    /// The root with `wals`, if that root was copied.
    pub(crate) wals: Option<String>,
    pub(crate) data: Vec<DataDir>,
    pub(crate) instance: Instance,
}

/// Whether `folder` is a root, or contains roots and nothing else.
pub(crate) fn probe(folder: &dyn Folder) -> Result<bool> {
    only_roots(folder, "", PROBE_DEPTH)
}

fn only_roots(folder: &dyn Folder, path: &str, depth: usize) -> Result<bool> {
    let entries = match folder.list(path) {
        Ok(entries) => entries,
        // The folder was deleted after its parent was listed.
        Err(e) if !path.is_empty() && e.is_not_found() => return Ok(false),
        Err(e) => return Err(e),
    };
    let shown: Vec<_> = entries.into_iter().filter(|e| !name_of(&e.path).starts_with(['.', '_'])).collect();
    if shown.iter().any(|e| !e.is_folder && name_of(&e.path) == INSTANCE) {
        return is_instance(folder, path);
    }
    if depth == 0 || shown.is_empty() || shown.iter().any(|e| !e.is_folder) {
        return Ok(false);
    }
    for entry in &shown {
        if !only_roots(folder, &entry.path, depth - 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_instance(folder: &dyn Folder, path: &str) -> Result<bool> {
    let file = folder.open(&join(path, INSTANCE))?;
    Ok(file.len() >= 8 && file.read(0..8)?.as_ref() == MAGIC)
}

/// The files that no server of Kudu writes.
pub(crate) fn unclaimed(folder: &dyn Folder, checked: bool, limits: &Limits) -> Result<Vec<Entry>> {
    let roots = roots(folder, checked, limits)?;
    let below = |root: &Root, path: &'_ str| -> Option<String> {
        let rest =
            if root.path.is_empty() { path } else { path.strip_prefix(&root.path)?.strip_prefix('/')? };
        Some(rest.to_owned())
    };
    files_below(folder, &|path| {
        roots.iter().any(|root| below(root, path).is_some_and(|path| is_own(&path, root)))
    })
}

/// Whether a server writes a file of this path below a root.
fn is_own(path: &str, root: &Root) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    // A new file has a temporary name first.
    let plain = |name: &str| name.split(".kudutmp").next().unwrap_or_default().to_owned();
    let is_hex = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_hexdigit());
    let is_number = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
    match parts.as_slice() {
        [name] => plain(name) == INSTANCE,
        ["tablet-meta" | "consensus-meta", name] => is_hex(&plain(name)),
        ["wals", tablet, name] => {
            let tablet = tablet.strip_suffix(".recovery").unwrap_or(tablet);
            let name = plain(name);
            let numbered = name.strip_prefix("wal-").or_else(|| name.strip_prefix("index."));
            is_hex(tablet) && (numbered.is_some_and(is_number) || name.starts_with(".tmp.newsegment"))
        }
        ["data", name] if plain(name) == "block_manager_instance" => true,
        ["data", rest @ ..] => match root.data.as_ref().map(|data| data.manager) {
            Some(BlockManager::File) => {
                let (folders, name) = rest.split_at(rest.len().saturating_sub(1));
                folders.len() == 3
                    && folders.iter().all(|f| is_hex(f))
                    && name.iter().all(|n| is_number(&plain(n)))
            }
            Some(BlockManager::Log) => matches!(rest, [name] if is_container(&plain(name))),
            Some(BlockManager::LogRocks) => {
                matches!(rest, [name] if is_container(&plain(name))) || rest.first() == Some(&DATABASE)
            }
            None => false,
        },
        _ => false,
    }
}

/// Whether a name is the name of a block container: `<uuid>.data` or `<uuid>.metadata`.
fn is_container(name: &str) -> bool {
    let uuid = name.strip_suffix(".data").or_else(|| name.strip_suffix(".metadata"));
    uuid.is_some_and(|uuid| uuid.len() == 32 && uuid.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The servers whose roots lie in `folder`.
pub(crate) fn servers(folder: &dyn Folder, checked: bool, limits: &Limits) -> Result<Vec<ServerDirs>> {
    let servers = group(&roots(folder, checked, limits)?);
    if servers.is_empty() {
        return Err(Error::not_found(
            "no Kudu data directory: expected `instance` and `tablet-meta`, found neither",
        ));
    }
    Ok(servers)
}

/// The roots in `folder`, by path.
fn roots(folder: &dyn Folder, checked: bool, limits: &Limits) -> Result<Vec<Root>> {
    let mut roots = Vec::new();
    let mut open = vec![(String::new(), DEPTH)];
    while let Some((path, depth)) = open.pop() {
        let entries = folder.list(&path)?;
        if entries.iter().any(|e| !e.is_folder && name_of(&e.path) == INSTANCE) && is_instance(folder, &path)?
        {
            roots.push(read_root(folder, &path, &entries, checked, limits)?);
        } else if depth > 0 {
            open.extend(entries.into_iter().filter(|e| e.is_folder).map(|e| (e.path, depth - 1)));
        }
    }
    roots.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(roots)
}

fn read_root(
    folder: &dyn Folder,
    path: &str,
    entries: &[coldframe_core::io::Entry],
    checked: bool,
    limits: &Limits,
) -> Result<Root> {
    let file = join(path, INSTANCE);
    let instance: Instance = whole_file(folder.open(&file)?.as_ref(), limits)
        .and_then(|bytes| only_message(&bytes, checked))
        .map_err(|e| e.within(file))?;
    let has = |name: &str| entries.iter().any(|e| e.is_folder && name_of(&e.path) == name);
    let data = if has("data") { Some(data_dir(folder, join(path, "data"), checked, limits)?) } else { None };
    let (has_metadata, has_wals) = (has("tablet-meta"), has("wals"));
    Ok(Root { path: path.to_owned(), instance, has_metadata, has_wals, data })
}

fn data_dir(folder: &dyn Folder, path: String, checked: bool, limits: &Limits) -> Result<DataDir> {
    let file = join(&path, "block_manager_instance");
    let stored = folder.open(&file).and_then(|f| whole_file(f.as_ref(), limits));
    let instance: DirInstance = match stored {
        Ok(bytes) => only_message(&bytes, checked).map_err(|e| e.within(file))?,
        // A directory copied without this file is recognised by its other files.
        Err(e) if e.is_not_found() => {
            DirInstance { dir_set: None, dir_type: kind_of(&folder.list(&path)?).to_owned() }
        }
        Err(e) => return Err(e),
    };
    let manager = match instance.dir_type.as_str() {
        "file" => BlockManager::File,
        "log" => BlockManager::Log,
        "logr" => BlockManager::LogRocks,
        other => return Err(Error::unsupported(format!("Kudu's block manager \"{other}\" ({path})"))),
    };
    let set = instance.dir_set.unwrap_or_default();
    Ok(DataDir { path, uuid: set.uuid, all_uuids: set.all_uuids, manager })
}

/// The block manager that a data directory's files belong to.
fn kind_of(entries: &[coldframe_core::io::Entry]) -> &'static str {
    if entries.iter().any(|e| e.is_folder && name_of(&e.path) == DATABASE) {
        "logr"
    } else if entries.iter().any(|e| e.path.ends_with(".metadata")) {
        "log"
    } else {
        "file"
    }
}

fn group(roots: &[Root]) -> Vec<ServerDirs> {
    let mut servers: Vec<ServerDirs> = roots
        .iter()
        .filter(|r| r.has_metadata)
        .map(|r| ServerDirs {
            metadata: r.path.clone(),
            wals: None,
            data: Vec::new(),
            instance: r.instance.clone(),
        })
        .collect();
    for root in roots {
        let same = servers.iter_mut().filter(|s| s.instance.uuid == root.instance.uuid);
        let Some(server) = same.max_by_key(|s| common(&s.metadata, &root.path)) else { continue };
        server.data.extend(root.data.clone());
        if root.has_wals {
            server.wals.get_or_insert_with(|| root.path.clone());
        }
    }
    servers
}

/// The number of bytes that two paths have in common; the maximum for equal paths.
fn common(a: &str, b: &str) -> usize {
    if a == b { usize::MAX } else { a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count() }
}
