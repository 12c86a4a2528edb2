//! Files of other kinds that lie among the files of a table: a README, a list of checksums, an export.
//!
//! ```text
//! sales/README.md                 text: left out and reported
//!       dt=2014-01-01/000000_0    a file of the table
//!                     000001_0    text, but one of a series: not left out, so opening it is an error
//!       dt=2014-01-02/export.csv  the only file of its folder: not left out, or the partition would be lost
//! ```
//!
//! Rows must not be lost without notice. A listed file is left out only if all of these hold:
//!
//! 1. No format recognises it, and its bytes show another kind (`Kind::Other`).
//! 2. Its name is not like the names of the table's files: its extension differs or, if it has none, its name
//!    differs in more than numbers. If the table's files form a numbered series, a file with a number in its
//!    name counts as one of the series. The exception is a listed file's name with an extension added
//!    (`part-0.orc.md5`).
//! 3. The folder of the file, or a folder below this folder, has a file of the table.
//!
//! Files that are named explicitly are never left out. If all names are alike, or all have the extension of a
//! format, no file is read.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use coldframe_core::{Error, Result};

use super::file_entry::FileEntry;
use super::openings::in_parallel;
use super::special::special_of;
use super::storage::{Storage, os_path, shown_path};
use crate::formats;
use crate::open::{Kind, kind_of};

/// Maximum number of left-out files that a message names.
const NAMED: usize = 3;

/// A file that is left out of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The file's path or URL, as text.
    pub path: String,
    /// The kind that the file's bytes show: `text`, `Parquet`.
    pub kind: &'static str,
}

/// The listed entries that do not belong to the table, as indexes into `entries` with their kinds: files of
/// other kinds, and entries that are no files.
pub fn foreign(storage: &Arc<dyn Storage>, entries: &[FileEntry]) -> Result<Vec<(usize, &'static str)>> {
    let special = |(at, entry)| Some((at, special_of(storage.as_ref(), entry)?));
    let special: BTreeMap<usize, &'static str> = entries.iter().enumerate().filter_map(special).collect();
    let mut all = foreign_files(storage, entries, &special)?;
    all.extend(special);
    all.sort_unstable();
    Ok(all)
}

fn foreign_files(
    storage: &Arc<dyn Storage>,
    entries: &[FileEntry],
    special: &BTreeMap<usize, &'static str>,
) -> Result<Vec<(usize, &'static str)>> {
    let names = Names::new(entries, special);
    if names.groups.len() + usize::from(names.has_ours) < 2 {
        return Ok(Vec::new());
    }
    // If the first file of a group belongs to the table, the whole group belongs to it.
    let groups: Vec<&Vec<usize>> = names.groups.values().collect();
    let firsts: Vec<usize> = groups.iter().filter_map(|group| group.first().copied()).collect();
    let kinds = kinds(storage, entries, &firsts)?;
    let (mut suspects, mut others) = (Vec::new(), Vec::new());
    for (group, kind) in groups.into_iter().zip(kinds) {
        match kind {
            Kind::Other(_) => suspects.push(group),
            Kind::Ours | Kind::Unknown => others.extend(group.iter().copied()),
        }
    }
    let asked: Vec<usize> = suspects.iter().flat_map(|group| group.iter().copied()).collect();
    let kinds = self::kinds(storage, entries, &asked)?;
    let mut kinds = asked.into_iter().zip(kinds).collect::<BTreeMap<_, _>>();
    for group in suspects {
        let is_of_table = group.iter().any(|at| matches!(kinds.get(at), Some(Kind::Ours)));
        if is_of_table {
            others.extend(group.iter().copied());
            kinds.retain(|at, _| !group.contains(at));
        }
    }
    others.extend(names.ours);
    let table = Table::new(entries, &others);
    let is_foreign = |(at, kind): (usize, Kind)| match (kind, entries.get(at)) {
        (Kind::Other(kind), Some(entry)) if !table.has_like(&entry.path) => Some((at, kind)),
        _ => None,
    };
    Ok(kinds.into_iter().filter_map(is_foreign).collect())
}

/// An error if the directory of an Iceberg table was listed: only its metadata knows which files belong to the table, and
/// which of their rows are deleted.
pub fn check_no_iceberg(entries: &[FileEntry]) -> Result<()> {
    let table = |path: &'_ str| -> Option<String> {
        let (folder, name) = path.rsplit_once('/')?;
        let (above, last) = folder.rsplit_once('/')?;
        let is_metadata = name.ends_with(".metadata.json") || name.ends_with(".metadata.json.gz");
        (last == "metadata" && is_metadata).then(|| above.to_owned())
    };
    match entries.iter().filter(|entry| entry.listed).find_map(|entry| table(&entry.path)) {
        None => Ok(()),
        Some(location) => Err(Error::unsupported(format!(
            "the directory of an Iceberg table among the files; only its metadata knows which files belong to it. In Python, \
             coldframe.scan('{}') reads it; in Spark coldframe.spark.read, or the format coldframe_python",
            shown_path(&location)
        ))),
    }
}

/// All files, if each of them is of another kind; otherwise none.
pub fn only_foreign(storage: &Arc<dyn Storage>, entries: &[FileEntry]) -> Result<Vec<LeftOut>> {
    let kind = |at: usize| Ok::<_, Error>(kinds(storage, entries, &[at])?.pop());
    if !matches!(kind(0)?, Some(Kind::Other(_))) {
        return Ok(Vec::new());
    }
    let all = kinds(storage, entries, &(0..entries.len()).collect::<Vec<_>>())?;
    let other = |(entry, kind): (&FileEntry, Kind)| match kind {
        Kind::Other(kind) => Some(LeftOut { path: entry.path.clone(), kind }),
        Kind::Ours | Kind::Unknown => None,
    };
    Ok(entries.iter().zip(all).map(other).collect::<Option<Vec<_>>>().unwrap_or_default())
}

/// The files' names and kinds for a message: `README.md (text), sums.md5 (text) and 7 more`.
pub fn summary(left_out: &[LeftOut]) -> String {
    let name = |file: &LeftOut| format!("{} ({})", name_of(&shown_path(&file.path)), file.kind);
    let mut text = left_out.iter().take(NAMED).map(name).collect::<Vec<_>>().join(", ");
    if left_out.len() > NAMED {
        text += &format!(" and {} more", left_out.len() - NAMED);
    }
    text
}

fn kinds(storage: &Arc<dyn Storage>, entries: &[FileEntry], asked: &[usize]) -> Result<Vec<Kind>> {
    let asked: Vec<FileEntry> = asked.iter().filter_map(|at| entries.get(*at).cloned()).collect();
    let storage = storage.clone();
    in_parallel(asked.len(), move |at| {
        let Some(entry) = asked.get(at) else { return Ok(Kind::Unknown) };
        // A file that cannot be read is reported when it is opened.
        let source = storage.source(&os_path(&entry.path), entry.known.as_ref());
        Ok(source.and_then(|source| kind_of(&source)).unwrap_or(Kind::Unknown))
    })
}

/// Listed files, grouped by their names.
struct Names {
    /// The files without a format's extension, by the part of the name that is common to the group.
    groups: BTreeMap<String, Vec<usize>>,
    /// All other entries: folders that are tables, and files that were named explicitly or have a format's
    /// extension.
    ours: Vec<usize>,
    has_ours: bool,
}

impl Names {
    fn new(entries: &[FileEntry], special: &BTreeMap<usize, &'static str>) -> Self {
        let all = formats();
        let endings: HashSet<&str> =
            all.iter().flat_map(|format| format.capabilities().endings).copied().collect();
        let mut names = Self { groups: BTreeMap::new(), ours: Vec::new(), has_ours: false };
        for (at, entry) in entries.iter().enumerate().filter(|(at, _)| !special.contains_key(at)) {
            let name = name_of(&entry.path);
            if !entry.listed
                || entry.known.is_none()
                || ending(name).is_some_and(|end| endings.contains(&*end))
            {
                names.ours.push(at);
            } else {
                names.groups.entry(alike(name)).or_default().push(at);
            }
        }
        names.has_ours = !names.ours.is_empty();
        names
    }
}

/// The names of the table's own files, with which other files are compared.
struct Table<'a> {
    folders: HashSet<&'a str>,
    series: HashSet<String>,
    listed: HashSet<&'a str>,
}

impl<'a> Table<'a> {
    fn new(entries: &'a [FileEntry], own: &[usize]) -> Self {
        let mut folders = HashSet::new();
        let mut series = HashSet::new();
        for entry in own.iter().filter_map(|at| entries.get(*at)) {
            let stem = numberless(stem(name_of(&entry.path)));
            if stem.contains('#') {
                series.insert(stem);
            }
            let mut path = entry.path.as_str();
            while !path.is_empty() && folders.insert(folder_of(path)) {
                path = folder_of(path);
            }
        }
        Self { folders, series, listed: entries.iter().map(|entry| entry.path.as_str()).collect() }
    }

    /// Whether leaving out a file could lose rows: it is the only file of its folder, or it is one of a
    /// series.
    fn has_like(&self, path: &str) -> bool {
        let is_alone = !self.folders.contains(folder_of(path));
        let is_called_after = path.rsplit_once('.').is_some_and(|(of, _)| self.listed.contains(of));
        is_alone || (self.series.contains(&numberless(stem(name_of(path)))) && !is_called_after)
    }
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The name up to its first dot.
fn stem(name: &str) -> &str {
    name.split_once('.').map_or(name, |(stem, _)| stem)
}

/// The extension, in lower case. Numbers, as in `000000_0.1`, are no extensions.
fn ending(name: &str) -> Option<String> {
    let (stem, end) = name.rsplit_once('.')?;
    let is_word =
        end.chars().all(|c| c.is_ascii_alphanumeric()) && end.chars().any(|c| c.is_ascii_alphabetic());
    (!stem.is_empty() && is_word).then(|| end.to_ascii_lowercase())
}

/// The name of a file's group: its extension or, if it has none, its name without numbers.
fn alike(name: &str) -> String {
    ending(name).map_or_else(|| numberless(name), |end| format!(".{end}"))
}

/// A name with `#` in place of each number. A number is decimal or, if it has eight digits or more,
/// hexadecimal.
fn numberless(name: &str) -> String {
    let mut made = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (token, behind) = rest.split_at(length.max(first.len_utf8()));
        let is_hex = token.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        if is_hex && token.len() >= 8 && token.contains(|c: char| c.is_ascii_digit()) {
            made.push('#');
        } else {
            without_digits(token, &mut made);
        }
        rest = behind;
    }
    made
}

fn without_digits(word: &str, into: &mut String) {
    let mut is_number = false;
    for c in word.chars() {
        match c.is_ascii_digit() {
            true if is_number => {}
            true => into.push('#'),
            false => into.push(c),
        }
        is_number = c.is_ascii_digit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::discovery::discover;
    use crate::dataset::storage::Stores;

    /// The files left out of a folder with these files. The first character of each name gives the file's
    /// content: `!` ORC, `=` Parquet, `?` unknown bytes; otherwise text.
    fn left_out(files: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let (name, content): (&str, &[u8]) = match file.split_at(1) {
                ("!", name) => (name, b"ORC then anything"),
                ("=", name) => (name, b"PAR1 \x00 PAR1"),
                ("?", name) => (name, b"\x00\x01\x02"),
                _ => (file, b"some\ntext\n"),
            };
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let storage: Arc<dyn Storage> = Arc::new(Stores::default());
        let entries = discover(storage.as_ref(), dir.path().as_os_str(), false).unwrap();
        let root = format!("{}/", dir.path().display());
        let name = |at: usize| entries[at].path.strip_prefix(&root).unwrap().to_owned();
        foreign(&storage, &entries).unwrap().into_iter().map(|(at, _)| name(at)).collect()
    }

    #[test]
    fn files_of_other_kinds_and_names_are_left_out() {
        assert_eq!(
            left_out(&["!a.orc", "README.md", "log.txt", "=old.parquet"]),
            ["README.md", "log.txt", "old.parquet"]
        );
        assert_eq!(
            left_out(&["!p=1/000000_0", "!p=2/000000_0", "README", "p=1/notes.csv"]),
            ["README", "p=1/notes.csv"]
        );
        assert_eq!(left_out(&["!p=1/part-0.orc", "p=1/part-0.orc.md5"]), ["p=1/part-0.orc.md5"]);
        assert_eq!(left_out(&["!0123456789abcdef0", "!feed0123456789abc", "0README"]), ["0README"]);
    }

    #[test]
    fn iceberg_directories_are_an_error() {
        let listed = |path: &str| FileEntry { path: path.to_owned(), listed: true, ..FileEntry::default() };
        for metadata in ["v3.metadata.json", "00003-0a.gz.metadata.json", "v3.metadata.json.gz"] {
            let entries = [listed("lake/t/data/a.orc"), listed(&format!("lake/t/metadata/{metadata}"))];
            let e = check_no_iceberg(&entries).unwrap_err();
            assert!(e.to_string().contains("coldframe.scan('lake/t')"), "{e}");
        }
        for other in ["lake/metadata/a.orc", "lake/t/v3.metadata.json", "v3.metadata.json", "metadata/x.json"]
        {
            check_no_iceberg(&[listed(other)]).unwrap();
        }
        let named = FileEntry { listed: false, ..listed("lake/t/metadata/v3.metadata.json") };
        check_no_iceberg(&[named]).unwrap();
    }

    #[test]
    fn files_that_may_have_rows_are_not_left_out() {
        // The text files belong to the series of ORC files, by extension or number.
        assert!(left_out(&["!000000_0", "000001_0", "!000002_0"]).is_empty());
        assert!(left_out(&["000000_0", "!000001_0", "!000002_0"]).is_empty());
        assert!(left_out(&["!a.orc", "b.orc"]).is_empty());
        assert!(left_out(&["!a.dat", "b.dat", "!c.dat"]).is_empty());
        assert!(left_out(&["!part-00000-ab.orc", "=part-00001-ab.parquet"]).is_empty());
        // A CSV file that is the only file of its partition is not left out.
        assert_eq!(left_out(&["!p=1/a.orc", "p=1/b.csv", "p=2/b.csv", "=p=3/c.parquet"]), ["p=1/b.csv"]);
        // The kind of the file is unknown.
        assert!(left_out(&["!a.orc", "?README.md"]).is_empty());
        // No file is of a format of this build.
        assert!(left_out(&["a.csv", "README"]).is_empty());
    }

    #[test]
    fn folders_with_only_foreign_files_are_recognised() {
        let dir = tempfile::tempdir().unwrap();
        let storage: Arc<dyn Storage> = Arc::new(Stores::default());
        let only = || {
            let entries = discover(storage.as_ref(), dir.path().as_os_str(), false).unwrap();
            summary(&only_foreign(&storage, &entries).unwrap())
        };
        std::fs::write(dir.path().join("a.csv"), "id\n1\n").unwrap();
        std::fs::write(dir.path().join("b.gz"), b"\x1f\x8b\0").unwrap();
        assert_eq!(only(), "a.csv (text), b.gz (gzip)");
        std::fs::write(dir.path().join("c"), b"\0").unwrap();
        assert_eq!(only(), "");
    }

    #[test]
    fn names_are_compared_without_their_numbers() {
        assert_eq!(numberless("part-00012-c000"), "part-#-c#");
        assert_eq!(numberless("0123456789abcdef0123456789abcdef_SeqId_4_"), "#_SeqId_#_");
        assert_eq!(numberless("\u{e4}1.x"), "\u{e4}#.x");
        assert_eq!(ending("a.ORC").as_deref(), Some("orc"));
        assert_eq!((ending("000000_0.1"), ending(".hidden"), ending("a")), (None, None, None));
    }

    #[test]
    fn a_message_names_the_first_files() {
        let left_out = |path: &str| LeftOut { path: format!("s3://b/t/{path}"), kind: "text" };
        assert_eq!(summary(&[left_out("a")]), "a (text)");
        assert!(summary(&["a", "b", "c", "d", "e"].map(left_out)).ends_with("c (text) and 2 more"));
    }
}
