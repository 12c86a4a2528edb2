//! Lists the files of a table: by paths, folders, patterns and URLs.
//!
//! ```text
//! warehouse/t/dt=2014-01-01/000000_0          a file, with the pair dt = 2014-01-01
//!             dt=2014-01-01/_SUCCESS          hidden: the name starts with `.` or `_`, as in Hive and Spark
//!             dt=2014-01-02/000000_0 (empty)  no rows: an empty Hive bucket, or an object that marks a folder
//!             dt=2014-01-03/base_5/..         one source: a partition of a transactional table
//! kudu/                                       one table: a folder that a format reads as a whole
//! ```
//!
//! The order of files is stable: arguments in the order given, and the files of a folder or pattern by path.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use coldframe_core::{Error, Result};
use coldframe_store::{Location, Stat, Store, is_flat, to_text};

use super::file_entry::{FileEntry, Pair};
use super::folder::{check_unmanaged, is_one_table, is_one_table_as_listed, is_unfinished, linked_folders};
use super::foreign::{LeftOut, summary};
use super::glob::{fits, fixed_part, is_hidden, is_pattern, leads_through_hidden, matches};
use super::partition::pairs_of;
use super::special::special_of;
use super::storage::{Storage, not_there, os_path, shown_path};
use crate::formats;

/// Lists the files that `given` names. `whole`: each folder is one table of its format, whatever it contains.
pub fn discover(storage: &dyn Storage, given: &OsStr, whole: bool) -> Result<Vec<FileEntry>> {
    let location = Location::parse(given)?;
    if let Location::Url { url, scheme } = &location
        && matches!(scheme.as_str(), "http" | "https")
    {
        // HTTP has no listing, so the URL is taken as one file.
        return Ok(vec![FileEntry { path: url.clone(), ..FileEntry::default() }]);
    }
    let path = match location {
        Location::Local(path) => to_text(path.as_os_str()),
        Location::Url { url, .. } => url,
    };
    let tree = Tree::new(storage, &path, whole)?;
    match tree.store.stat("")? {
        Some(stat) if stat.is_folder => tree.folder("", Vec::new()),
        Some(stat) => Ok(vec![FileEntry { path, known: Some(stat.identity()), ..FileEntry::default() }]),
        None if is_pattern(&path) => of_pattern(storage, &path, whole),
        None => Err(not_there(&path, "no such file or directory")),
    }
}

fn of_pattern(storage: &dyn Storage, path: &str, whole: bool) -> Result<Vec<FileEntry>> {
    let root = fixed_part(path).map_err(|e| e.in_file(shown_path(path)))?;
    let behind = path.get(root.len()..).unwrap_or_default();
    let parts: Vec<&str> = behind.split('/').filter(|part| !part.is_empty()).collect();
    let tree = Tree::new(storage, root, whole)?;
    let mut matching = Vec::new();
    tree.matching("", &parts, &mut matching)?;
    if matching.is_empty() {
        return Err(not_there(path, "no file matches"));
    }
    matching.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let mut entries = Vec::with_capacity(matching.len());
    for stat in matching {
        if !stat.is_folder {
            entries.push(tree.entry(&stat));
        } else if !parts.contains(&"**") {
            // The pattern's `**` has already listed the files below the folder.
            entries.extend(tree.folder(&stat.path, pairs_of(&format!("{}/", stat.path)))?);
        }
    }
    Ok(entries)
}

/// The files below a path or URL.
struct Tree<'a> {
    storage: &'a dyn Storage,
    store: Store,
    root: &'a str,
    whole: bool,
}

impl<'a> Tree<'a> {
    fn new(storage: &'a dyn Storage, root: &'a str, whole: bool) -> Result<Self> {
        let store = storage.store(&os_path(if root.is_empty() { "." } else { root }))?;
        Ok(Self { storage, store, root, whole })
    }

    /// The path or URL of a file, from its path below the root, in the form that the caller used.
    fn url_of(&self, path: &str) -> String {
        if self.root.is_empty() { path.to_owned() } else { self.store.url_of(path) }
    }

    fn entry(&self, stat: &Stat) -> FileEntry {
        FileEntry {
            path: self.url_of(&stat.path),
            pairs: pairs_of(&stat.path),
            known: Some(stat.identity()),
            listed: true,
            rows: None,
        }
    }

    /// The files in a folder, or the folder itself if it is one table.
    fn folder(&self, path: &str, pairs: Vec<Pair>) -> Result<Vec<FileEntry>> {
        let url = self.url_of(path);
        let flat = is_flat(OsStr::new(&url));
        let itself =
            |pairs| vec![FileEntry { path: url.clone(), pairs, known: None, listed: true, rows: None }];
        if !flat && is_one_table(self.storage, &os_path(&url)) {
            return Ok(itself(pairs));
        }
        let listed = self.below(path)?;
        let below =
            |stat: &Stat| stat.path.get(path.len()..).unwrap_or_default().trim_start_matches('/').to_owned();
        let names: Vec<String> = listed.iter().map(below).collect();
        let store = if path.is_empty() { self.store.clone() } else { self.store.below(path)? };
        if is_unfinished(&store, &names)? {
            let what = "a write is publishing its files, or was interrupted while publishing; write there again to \
                        complete it";
            return Err(Error::from(std::io::Error::other(what)).in_file(shown_path(&url)));
        }
        if flat && is_one_table_as_listed(&self.store, path, &listed) {
            return Ok(itself(pairs));
        }
        check_unmanaged(&names, &url)?;
        let visible = listed.iter().zip(&names).filter(|(_, name)| !leads_through_hidden(name));
        let mut files: Vec<&Stat> = visible.map(|(stat, _)| stat).collect();
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let entries = self.with_tables(path, &files);
        let has_tables = entries.iter().any(|entry| entry.known.is_none());
        Ok(if self.whole && !has_tables { itself(pairs) } else { entries })
    }

    /// Entries for the files, in the order of their paths. A folder that is a table or a partition, as in
    /// Hive's transactional tables, replaces the files in it.
    fn with_tables(&self, root: &str, files: &[&Stat]) -> Vec<FileEntry> {
        let above: BTreeSet<&str> =
            files.iter().filter_map(|stat| folder_of_part(&stat.path, root)).collect();
        let mut entries = Vec::with_capacity(files.len());
        let mut folders = BTreeSet::new();
        for stat in files {
            let mut parents = stat.path.match_indices('/').filter_map(|(at, _)| stat.path.get(..at));
            match parents.find(|parent| above.contains(parent)) {
                None => entries.push(self.entry(stat)),
                Some(folder) if folders.insert(folder) => entries.push(FileEntry {
                    path: self.url_of(folder),
                    pairs: pairs_of(&format!("{folder}/")),
                    known: None,
                    listed: true,
                    rows: None,
                }),
                Some(_) => {}
            }
        }
        entries
    }

    /// All files below a folder, including those below links to folders, as in Hive and pyarrow.
    fn below(&self, path: &str) -> Result<Vec<Stat>> {
        let mut all = self.store.list(path, true)?.collect::<Result<Vec<_>>>()?;
        let root = os_path(if self.root.is_empty() { "." } else { self.root });
        if self.storage.is_of_this_machine(&root) {
            for linked in linked_folders(&root, path)? {
                for stat in self.store.list(&linked, true)? {
                    all.push(stat?);
                }
            }
        }
        Ok(all)
    }

    /// Adds the entries below a folder whose paths match the pattern's parts one by one. Paths with a hidden
    /// part never match.
    fn matching(&self, folder: &str, parts: &[&str], into: &mut Vec<Stat>) -> Result<()> {
        let Some((part, rest)) = parts.split_first() else { return Ok(()) };
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let name_of = |stat: &Stat| stat.path.get(prefix.len()..).unwrap_or_default().to_owned();
        if *part == "**" {
            for stat in or_empty(self.below(folder))? {
                let name = name_of(&stat);
                let names: Vec<&str> = name.split('/').collect();
                if fits(&names, parts) && !names.iter().any(|name| is_hidden(name)) {
                    into.push(stat);
                }
            }
            return Ok(());
        }
        if !is_pattern(part) {
            let path = format!("{prefix}{part}");
            if !rest.is_empty() {
                return self.matching(&path, rest, into);
            }
            into.extend(self.store.stat(&path)?);
            return Ok(());
        }
        for stat in or_empty(self.store.list(folder, false).and_then(Iterator::collect::<Result<Vec<_>>>))? {
            let name = name_of(&stat);
            if is_hidden(&name) || !matches(part, &name) {
                continue;
            }
            if rest.is_empty() {
                into.push(stat);
            } else if stat.is_folder {
                self.matching(&stat.path, rest, into)?;
            }
        }
        Ok(())
    }
}

/// The folder in a file's path, below `root`, that is a part of a transactional table: `t/p=1` of
/// `t/p=1/delta_1_1/bucket_00000`.
fn folder_of_part<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let formats = formats();
    let slashes: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
    let folders = slashes.windows(2).filter_map(|ends| match ends {
        [start, end] => Some((path.get(..*start)?, path.get(start + 1..*end)?)),
        _ => None,
    });
    let is_below = |folder: &str| folder.len() > root.len();
    let is_part = |name: &str| formats.iter().any(|format| format.is_part_of_folder(name));
    folders.filter(|(folder, name)| is_below(folder) && is_part(name)).map(|(folder, _)| folder).next()
}

/// The files of a listing: empty if the folder does not exist.
fn or_empty(listed: Result<Vec<Stat>>) -> Result<Vec<Stat>> {
    match listed {
        Err(e) if e.is_not_found() || is_no_folder(&e) => Ok(Vec::new()),
        listed => listed,
    }
}

fn is_no_folder(e: &Error) -> bool {
    matches!(e.kind(), coldframe_core::ErrorKind::Io(e) if e.kind() == std::io::ErrorKind::NotADirectory)
}

/// Removes the empty files: they have no rows, and some formats cannot open them. Entries that are no files
/// stay, so that the error names them. `shown`: the request, for errors.
pub fn with_bytes(storage: &dyn Storage, mut entries: Vec<FileEntry>, shown: &str) -> Result<Vec<FileEntry>> {
    if entries.is_empty() {
        return Err(Error::not_found(format!("no files to scan in {shown}")));
    }
    let has_bytes = |entry: &FileEntry| entry.known.as_ref().is_none_or(|known| known.len > 0);
    entries.retain(|entry| has_bytes(entry) || special_of(storage, entry).is_some());
    if entries.iter().any(has_bytes) {
        return Ok(entries);
    }
    let left_out: Vec<LeftOut> = entries.iter().filter_map(|entry| left_out(storage, entry)).collect();
    Err(Error::not_found(match left_out.is_empty() {
        true => format!("no files to scan: all files of {shown} are empty"),
        false => format!("no files to scan in {shown}, only {}", summary(&left_out)),
    }))
}

fn left_out(storage: &dyn Storage, entry: &FileEntry) -> Option<LeftOut> {
    Some(LeftOut { path: entry.path.clone(), kind: special_of(storage, entry)? })
}

#[cfg(test)]
mod tests {
    use coldframe_store::Identity;

    use super::*;
    use crate::dataset::storage::Stores;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        dir
    }

    fn paths(dir: &tempfile::TempDir, pattern: &str) -> Vec<String> {
        let entries = discover(&Stores::default(), dir.path().join(pattern).as_os_str(), false).unwrap();
        let root = format!("{}/", dir.path().display());
        entries.iter().map(|entry| entry.path.strip_prefix(&root).unwrap().to_owned()).collect()
    }

    #[test]
    fn folders_and_patterns_are_listed() {
        let dir = tree(&["dt=1/b", "dt=1/a", "dt=2/c", "dt=2/_x", ".h/a", "_t/d/a", "dt=2/.y/z", "other"]);
        assert_eq!(paths(&dir, ""), ["dt=1/a", "dt=1/b", "dt=2/c", "other"]);
        assert_eq!(paths(&dir, "dt=1"), ["dt=1/a", "dt=1/b"]);
        assert_eq!(paths(&dir, "dt=*"), ["dt=1/a", "dt=1/b", "dt=2/c"]);
        assert_eq!(paths(&dir, "**/[ac]"), ["dt=1/a", "dt=2/c"]);
        assert_eq!(paths(&dir, "dt=?/a"), ["dt=1/a"]);
        for nothing in ["none", "none*/x", "dt=1/a/*"] {
            let e = discover(&Stores::default(), dir.path().join(nothing).as_os_str(), false).unwrap_err();
            assert!(e.is_not_found(), "{e}");
        }
    }

    #[test]
    fn pairs_come_from_folders_below_the_root() {
        let dir = tree(&["dt=1/city=a%20b/f"]);
        let at = |below: &str| {
            let entries = discover(&Stores::default(), dir.path().join(below).as_os_str(), false).unwrap();
            entries.into_iter().flat_map(|entry| entry.pairs).collect::<Vec<_>>()
        };
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(at(""), [pair("dt", "1"), pair("city", "a b")]);
        assert_eq!(at("dt=1"), [pair("city", "a b")]);
        assert_eq!(at("dt=*"), [pair("dt", "1"), pair("city", "a b")]);
        assert_eq!(at("dt=1/*/f"), [pair("city", "a b")]);
        assert!(at("dt=1/city=a%20b/f").is_empty());
    }

    #[test]
    fn partitions_of_transactional_tables_are_folders() {
        let dir = tree(&[
            "p=1/base_5/bucket_00000",
            "p=1/base_5/_orc_acid_version",
            "p=1/delta_6_6/bucket_00000",
            "p=1/000000_0",
            "p=2/000000_0",
            "p=2/.x/delta_1_1/y",
            "p=3/q=4/delta_1_1/bucket_00000",
            "delta_x_1/a",
        ]);
        assert_eq!(paths(&dir, ""), ["delta_x_1/a", "p=1", "p=2/000000_0", "p=3/q=4"]);
        assert_eq!(paths(&dir, "p=*"), ["p=1", "p=2/000000_0", "p=3/q=4"]);
        assert_eq!(paths(&dir, "p=1/*/bucket*"), ["p=1/base_5/bucket_00000", "p=1/delta_6_6/bucket_00000"]);
        let entries = discover(&Stores::default(), dir.path().as_os_str(), false).unwrap();
        assert_eq!(entries[3].pairs, [("p".to_owned(), "3".to_owned()), ("q".to_owned(), "4".to_owned())]);
    }

    #[cfg(unix)]
    #[test]
    fn links_to_folders_are_followed_without_cycles() {
        let dir = tree(&["t/a", "elsewhere/b"]);
        std::os::unix::fs::symlink("../elsewhere", dir.path().join("t/l")).unwrap();
        std::os::unix::fs::symlink("../t", dir.path().join("t/back")).unwrap();
        assert_eq!(paths(&dir, "t"), ["t/a", "t/l/b"]);
    }

    #[test]
    fn empty_files_are_left_out() {
        let of =
            |len| FileEntry { known: Some(Identity { len, ..Identity::default() }), ..FileEntry::default() };
        assert_eq!(with_bytes(&Stores::default(), vec![of(0), of(3)], "x").unwrap(), [of(3)]);
        assert!(
            with_bytes(&Stores::default(), vec![of(0)], "x")
                .unwrap_err()
                .to_string()
                .contains("all files of x are empty")
        );
        assert!(with_bytes(&Stores::default(), Vec::new(), "x").unwrap_err().is_not_found());
    }

    #[cfg(unix)]
    #[test]
    fn entries_that_are_no_files_are_kept_to_be_named() {
        let dir = tree(&["a.orc", "empty.orc"]);
        std::fs::write(dir.path().join("a.orc"), b"x").unwrap();
        std::fs::write(dir.path().join("empty.orc"), b"").unwrap();
        std::os::unix::fs::symlink("b.orc", dir.path().join("b.orc")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("c.orc")).unwrap();
        let _held = std::os::unix::net::UnixListener::bind(dir.path().join("d.orc")).unwrap();
        let storage = Stores::default();
        let listed = discover(&storage, dir.path().as_os_str(), false).unwrap();
        let kept = with_bytes(&storage, listed, "x").unwrap();
        let kinds: Vec<_> = kept.iter().map(|entry| special_of(&storage, entry)).collect();
        assert_eq!(kinds, [None, Some("link that leads to itself"), Some("socket")]);
        std::fs::remove_file(dir.path().join("a.orc")).unwrap();
        let listed = discover(&storage, dir.path().as_os_str(), false).unwrap();
        let error = with_bytes(&storage, listed, "x").unwrap_err().to_string();
        assert!(error.contains("only b.orc (link that leads to itself), d.orc (socket)"), "{error}");
    }
}
