//! Folders: tables that are one folder, interrupted writes, links to other folders.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coldframe_core::io::{Entry, Folder};
use coldframe_core::{Error, ReadAt, Result, Source};
use coldframe_store::{Stat, Store, to_text};

use super::glob::is_hidden;
use super::storage::{Storage, shown_path};
use crate::detect;

/// Whether a format treats the folder at a path or URL as one table, as Kudu does.
pub(super) fn is_one_table(storage: &dyn Storage, location: &OsStr) -> bool {
    let format = storage.source(location, None).and_then(|source| detect(&source));
    matches!(format, Ok(Some(_)))
}

/// [`is_one_table`], decided from a listing: in some stores, checking a folder costs as much as checking a
/// file.
pub(super) fn is_one_table_as_listed(store: &Store, path: &str, files: &[Stat]) -> bool {
    let folder = Arc::new(Listed { store: store.clone(), path: path.to_owned(), folders: by_folder(files) });
    matches!(detect(&Source::Folder { path: store.url_of(path).into(), folder }), Ok(Some(_)))
}

/// The folder of a Hudi table's timeline, and the file in it that every table has.
const HUDI: &str = ".hoodie";
const HUDI_PROPERTIES: &str = "hoodie.properties";
const HUDI_REASON: &str = "a Hudi table: its timeline (.hoodie) says which of its files count; read its directory by itself, as one table";

/// A file in each folder of a Hudi table that is a partition; its name may have an ending.
const HUDI_PARTITION: &str = ".hoodie_partition_metadata";
const HUDI_PARTITION_REASON: &str = "a partition of a Hudi table: the table's timeline says which of its files count; read the table's directory, and filter by the partition";

/// Why the files of a folder with these entries are no table by themselves: the metadata of a table format says which of
/// them count. `None` for other folders.
pub fn managed_by<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let mut reason = None;
    for name in names {
        if name == HUDI {
            return Some(HUDI_REASON);
        }
        if name.starts_with(HUDI_PARTITION) {
            reason = Some(HUDI_PARTITION_REASON);
        }
    }
    reason
}

/// Refuses a listing with the files of a table whose metadata says which of them count. `files`: paths below the folder,
/// which errors call `url`.
pub(super) fn check_unmanaged(files: &[String], url: &str) -> Result<()> {
    let table_of = |file: &String| {
        let above = file.strip_suffix(HUDI_PROPERTIES)?.strip_suffix('/')?.strip_suffix(HUDI)?;
        // The metadata table of a table lies within its timeline.
        let is_outermost = above.is_empty() || above.ends_with('/') && !above.contains(HUDI);
        is_outermost.then(|| above.trim_end_matches('/').to_owned())
    };
    let partition_of = |file: &String| {
        let (above, name) = file.rsplit_once('/').unwrap_or(("", file));
        let is_partition = name.starts_with(HUDI_PARTITION) && !above.contains(HUDI);
        is_partition.then(|| above.to_owned())
    };
    let table = files.iter().find_map(table_of).map(|table| (table, HUDI_REASON));
    let partition = || files.iter().find_map(partition_of).map(|folder| (folder, HUDI_PARTITION_REASON));
    let Some((below, reason)) = table.or_else(partition) else { return Ok(()) };
    let place = if below.is_empty() { url.to_owned() } else { format!("{url}/{below}") };
    Err(Error::unsupported(reason).in_file(shown_path(&place)))
}

type Folders = Arc<BTreeMap<String, Vec<Entry>>>;

/// Files and folders, grouped by their parent folder.
fn by_folder(files: &[Stat]) -> Folders {
    let mut folders: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    let mut made = BTreeSet::new();
    for file in files {
        let above = |path: &str| path.rsplit_once('/').map_or(String::new(), |(above, _)| above.to_owned());
        let entry = Entry { path: file.path.clone(), len: file.len, is_folder: false };
        folders.entry(above(&file.path)).or_default().push(entry);
        let mut folder = above(&file.path);
        while !folder.is_empty() && made.insert(folder.clone()) {
            let entry = Entry { path: folder.clone(), len: 0, is_folder: true };
            folder = above(&folder);
            folders.entry(folder.clone()).or_default().push(entry);
        }
    }
    folders.values_mut().for_each(|entries| entries.sort_unstable_by(|a, b| a.path.cmp(&b.path)));
    Arc::new(folders)
}

/// A folder that was listed with everything below it.
#[derive(Debug)]
struct Listed {
    store: Store,
    path: String,
    folders: Folders,
}

impl Listed {
    fn below(&self, path: &str) -> String {
        match (self.path.as_str(), path) {
            ("", path) => path.to_owned(),
            (root, "") => root.to_owned(),
            (root, path) => format!("{root}/{path}"),
        }
    }
}

impl Folder for Listed {
    fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let folder = self.below(path);
        let Some(entries) = self.folders.get(&folder) else {
            return if path.is_empty() { Ok(Vec::new()) } else { Err(Error::not_found("no such directory")) };
        };
        let skipped = if self.path.is_empty() { 0 } else { self.path.len() + 1 };
        let relative = |entry: &Entry| {
            let path = entry.path.get(skipped..).unwrap_or_default().to_owned();
            Entry { path, ..entry.clone() }
        };
        Ok(entries.iter().map(relative).collect())
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        self.store.open(&self.below(path), None)
    }

    fn parent(&self) -> Result<Option<(Arc<dyn Folder>, String)>> {
        if self.path.is_empty() {
            return Ok(None);
        }
        let (above, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let parent =
            Self { store: self.store.clone(), path: above.to_owned(), folders: self.folders.clone() };
        Ok(Some((Arc::new(parent), name.to_owned())))
    }
}

/// The prefix of names in coldframe's staging: of files that are not published yet, and of the record that
/// lists the files to be published.
const STAGED: &str = "_coldframe-";
const RECORD: &str = "_coldframe-written.json";

/// Whether a folder that contains `files` has only some of the files that its record of a write lists.
pub(super) fn is_unfinished(store: &Store, files: &[String]) -> Result<bool> {
    let is_staged = |name: &String| name.starts_with(STAGED) && name.contains('/');
    if !files.iter().any(|name| name == RECORD) || !files.iter().any(is_staged) {
        return Ok(false);
    }
    let file = store.open(RECORD, None)?;
    let record: serde_json::Value = serde_json::from_slice(&file.read(0..file.len())?).map_err(|reason| {
        Error::from(std::io::Error::other(format!("not the record of a write: {reason}")))
            .in_file(store.url_of(RECORD))
    })?;
    let Some(staged) = record.get("staged").and_then(serde_json::Value::as_str) else { return Ok(false) };
    Ok(files.iter().any(|name| name.strip_prefix(staged).is_some_and(|rest| rest.starts_with('/'))))
}

/// The links to folders below a local folder, and below the linked folders, as paths below `root`.
/// A link to one of its own parent folders is left out: it adds no files, and following it would never end.
pub(super) fn linked_folders(root: &OsStr, folder: &str) -> Result<Vec<String>> {
    let mut links = Links { root: PathBuf::from(root), links: Vec::new() };
    links.below(folder, &[])?;
    Ok(links.links)
}

struct Links {
    root: PathBuf,
    links: Vec<String>,
}

impl Links {
    /// `way`: for each link followed so far, its target and the folder that holds the next link.
    fn below(&mut self, folder: &str, way: &[(PathBuf, PathBuf)]) -> Result<()> {
        let top = if folder.is_empty() {
            self.root.clone()
        } else {
            self.root.join(coldframe_store::from_text(folder))
        };
        let start = real(&top);
        let mut waiting = vec![(top, folder.to_owned())];
        while let Some((above, path)) = waiting.pop() {
            // A folder that cannot be listed is reported when files are listed.
            let Ok(entries) = std::fs::read_dir(&above) else { continue };
            let mut folders: Vec<_> = entries.flatten().filter(|entry| entry.path().is_dir()).collect();
            folders.sort_unstable_by_key(std::fs::DirEntry::file_name);
            for entry in folders.iter().rev() {
                let name = to_text(&entry.file_name());
                if is_hidden(&name) {
                    continue;
                }
                let relative = if path.is_empty() { name } else { format!("{path}/{name}") };
                if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                    waiting.push((entry.path(), relative));
                    continue;
                }
                let target = real(&entry.path());
                let mut way = way.to_vec();
                way.push((start.clone(), real(&above)));
                let leads_back =
                    way.iter().any(|(first, last)| target.starts_with(first) && last.starts_with(&target));
                if !leads_back {
                    self.links.push(relative.clone());
                    self.below(&relative, &way)?;
                }
            }
        }
        Ok(())
    }
}

fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use coldframe_store::Mode;

    use super::*;

    #[test]
    fn a_listing_equals_listing_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().as_os_str(), &BTreeMap::new()).unwrap();
        for path in ["t/a", "t/b/c", "t/b/d", "x"] {
            store.put(path, b"1", &Mode::New).unwrap();
        }
        let files: Vec<Stat> = store.list("", true).unwrap().map(Result::unwrap).collect();
        for path in ["", "t", "t/b"] {
            let listed = Listed { store: store.clone(), path: path.to_owned(), folders: by_folder(&files) };
            let real = coldframe_store::StoreFolder::new(store.below(path).unwrap());
            assert_eq!(listed.list("").unwrap(), real.list("").unwrap(), "{path}");
        }
        let listed = Listed { store, path: "t".to_owned(), folders: by_folder(&files) };
        assert_eq!(listed.list("b").unwrap()[0].path, "b/c");
        assert_eq!(listed.open("b/c").unwrap().len(), 1);
        let (parent, name) = listed.parent().unwrap().unwrap();
        assert_eq!((parent.list("").unwrap().len(), name.as_str()), (2, "t"));
        assert!(listed.list("nothing").unwrap_err().is_not_found());
    }

    #[test]
    fn a_table_of_hudi_is_no_folder_of_files() {
        let check = |files: &[&str]| {
            let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
            check_unmanaged(&files, "/w").map_err(|e| e.to_string())
        };
        check(&["a.orc", "hoodie.properties", "x.hoodie/hoodie.properties"]).unwrap();
        let e = check(&["eu/a.orc", ".hoodie/hoodie.properties"]).unwrap_err();
        assert!(e.starts_with("/w: ") && e.contains("a Hudi table"), "{e}");
        let e = check(&["t/.hoodie/metadata/.hoodie/hoodie.properties", "t/.hoodie/hoodie.properties"]);
        assert!(e.unwrap_err().starts_with("/w/t: "));
        assert!(managed_by(["eu", ".hoodie"].into_iter()).is_some());
        assert!(managed_by(["eu", "hoodie"].into_iter()).is_none());
        let e = check(&["a.orc", "dt=1/.hoodie_partition_metadata.orc", "dt=1/b.orc"]).unwrap_err();
        assert!(e.starts_with("/w/dt=1: ") && e.contains("a partition of a Hudi table"), "{e}");
        check(&["a.orc", ".hoodie/metadata/files/.hoodie_partition_metadata"]).unwrap();
        assert!(managed_by([".hoodie_partition_metadata", "a.orc"].into_iter()).is_some());
    }

    #[test]
    fn an_interrupted_write_is_recognised() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().as_os_str(), &BTreeMap::new()).unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let both = names(&[RECORD, "_coldframe-1/a", "b"]);
        assert!(is_unfinished(&store, &both).unwrap_err().is_not_found());
        store.put(RECORD, br#"{"staged": "_coldframe-1", "files": {}}"#, &Mode::New).unwrap();
        assert!(is_unfinished(&store, &both).unwrap());
        assert!(!is_unfinished(&store, &names(&[RECORD, "_coldframe-2/a"])).unwrap());
        assert!(!is_unfinished(&store, &names(&[RECORD, "b"])).unwrap());
        store.put(RECORD, b"{", &Mode::Over).unwrap();
        assert!(is_unfinished(&store, &both).unwrap_err().to_string().contains("not the record"));
    }
}
