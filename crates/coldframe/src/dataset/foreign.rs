//! Files of other kinds that lie among the files of a table: a README, a list of checksums, an export.
//!
//! ```text
//! sales/README.md                 text: left out, and reported
//!       dt=2014-01-01/000000_0    a file of the table
//!                     000001_0    text, but one of the series: not left out, so that opening it says so
//!       dt=2014-01-02/export.csv  the only file of its folder: not left out, the partition would be gone
//! ```
//!
//! Rows must not be lost silently. So a listed file is left out only if all of this holds:
//!
//! 1. No format recognises it, and its bytes show what it is instead (`Kind::Other`).
//! 2. It is not named like a file of the table: it has another extension or, without one, another name, where
//!    numbers do not count. A number in its name makes it one of a series, if the table's files have such names, unless
//!    it is called after a listed file (`part-0.orc.md5`).
//! 3. Its folder, or one below, has a file of the table.
//!
//! Files that are named explicitly are never left out. Nothing is read where all names are alike, or end as those
//! of a format do.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use coldframe_core::{Error, Result};

use super::found::Found;
use super::openings::side_by_side;
use super::storage::{Storage, os_path, shown_path};
use crate::formats;
use crate::open::{Kind, kind_of};

/// So many of the files that are left out are named in a message.
const NAMED: usize = 3;

/// A file that is left out of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its path or URL, as text.
    pub path: String,
    /// What its bytes show it to be: `text`, `Parquet`.
    pub kind: &'static str,
}

/// The files among those that were listed which are none of the table's, by their numbers, with their kinds.
pub fn foreign(storage: &Arc<dyn Storage>, found: &[Found]) -> Result<Vec<(usize, &'static str)>> {
    let names = Names::new(found);
    if names.groups.len() + usize::from(names.has_ours) < 2 {
        return Ok(Vec::new());
    }
    // The first file speaks for a group, as long as it is one of the table's.
    let groups: Vec<&Vec<usize>> = names.groups.values().collect();
    let firsts: Vec<usize> = groups.iter().filter_map(|group| group.first().copied()).collect();
    let kinds = kinds(storage, found, &firsts)?;
    let (mut suspects, mut others) = (Vec::new(), Vec::new());
    for (group, kind) in groups.into_iter().zip(kinds) {
        match kind {
            Kind::Other(_) => suspects.push(group),
            Kind::Ours | Kind::Unknown => others.extend(group.iter().copied()),
        }
    }
    let asked: Vec<usize> = suspects.iter().flat_map(|group| group.iter().copied()).collect();
    let told = self::kinds(storage, found, &asked)?;
    let mut told = asked.into_iter().zip(told).collect::<BTreeMap<_, _>>();
    for group in suspects {
        let is_of_table = group.iter().any(|at| matches!(told.get(at), Some(Kind::Ours)));
        if is_of_table {
            others.extend(group.iter().copied());
            told.retain(|at, _| !group.contains(at));
        }
    }
    others.extend(names.ours);
    let table = Table::new(found, &others);
    let is_foreign = |(at, kind): (usize, Kind)| match (kind, found.get(at)) {
        (Kind::Other(kind), Some(one)) if !table.has_like(&one.path) => Some((at, kind)),
        _ => None,
    };
    Ok(told.into_iter().filter_map(is_foreign).collect())
}

/// An error if the directory of an Iceberg table was listed: its metadata says which of its files have its rows, and
/// which rows of them are deleted.
pub fn demand_no_iceberg(found: &[Found]) -> Result<()> {
    let table = |path: &'_ str| -> Option<String> {
        let (folder, name) = path.rsplit_once('/')?;
        let (above, last) = folder.rsplit_once('/')?;
        let is_metadata = name.ends_with(".metadata.json") || name.ends_with(".metadata.json.gz");
        (last == "metadata" && is_metadata).then(|| above.to_owned())
    };
    match found.iter().filter(|one| one.listed).find_map(|one| table(&one.path)) {
        None => Ok(()),
        Some(place) => Err(Error::unsupported(format!(
            "the directory of an Iceberg table among the files: its metadata says which of its files count. In Python, \
             coldframe.scan('{}') reads it; in Spark coldframe.spark.read, or the format coldframe_python",
            shown_path(&place)
        ))),
    }
}

/// All of the files, if each of them is of another kind: there is no table here.
pub fn only_foreign(storage: &Arc<dyn Storage>, found: &[Found]) -> Result<Vec<LeftOut>> {
    let kind = |at: usize| Ok::<_, Error>(kinds(storage, found, &[at])?.pop());
    if !matches!(kind(0)?, Some(Kind::Other(_))) {
        return Ok(Vec::new());
    }
    let all = kinds(storage, found, &(0..found.len()).collect::<Vec<_>>())?;
    let other = |(one, kind): (&Found, Kind)| match kind {
        Kind::Other(kind) => Some(LeftOut { path: one.path.clone(), kind }),
        Kind::Ours | Kind::Unknown => None,
    };
    Ok(found.iter().zip(all).map(other).collect::<Option<Vec<_>>>().unwrap_or_default())
}

/// Their names and kinds: `README.md (text), sums.md5 (text) and 7 more`.
pub fn in_words(left_out: &[LeftOut]) -> String {
    let name = |one: &LeftOut| format!("{} ({})", name_of(&shown_path(&one.path)), one.kind);
    let mut said = left_out.iter().take(NAMED).map(name).collect::<Vec<_>>().join(", ");
    if left_out.len() > NAMED {
        said += &format!(" and {} more", left_out.len() - NAMED);
    }
    said
}

fn kinds(storage: &Arc<dyn Storage>, found: &[Found], asked: &[usize]) -> Result<Vec<Kind>> {
    let asked: Vec<Found> = asked.iter().filter_map(|at| found.get(*at).cloned()).collect();
    let storage = storage.clone();
    side_by_side(asked.len(), move |at| {
        let Some(one) = asked.get(at) else { return Ok(Kind::Unknown) };
        // What cannot be read is reported when it is opened.
        let source = storage.source(&os_path(&one.path), one.known.as_ref());
        Ok(source.and_then(|source| kind_of(&source)).unwrap_or(Kind::Unknown))
    })
}

/// Listed files by what their names have in common.
struct Names {
    /// Those whose names do not end as a format's files do.
    groups: BTreeMap<String, Vec<usize>>,
    /// All others: folders that are tables, files that were named explicitly or end as a format's do.
    ours: Vec<usize>,
    has_ours: bool,
}

impl Names {
    fn new(found: &[Found]) -> Self {
        let all = formats();
        let endings: HashSet<&str> =
            all.iter().flat_map(|format| format.capabilities().endings).copied().collect();
        let mut names = Self { groups: BTreeMap::new(), ours: Vec::new(), has_ours: false };
        for (at, one) in found.iter().enumerate() {
            let name = name_of(&one.path);
            if !one.listed || one.known.is_none() || ending(name).is_some_and(|end| endings.contains(&*end)) {
                names.ours.push(at);
            } else {
                names.groups.entry(alike(name)).or_default().push(at);
            }
        }
        names.has_ours = !names.ours.is_empty();
        names
    }
}

/// The table's own files, to compare others with.
struct Table<'a> {
    folders: HashSet<&'a str>,
    series: HashSet<String>,
    listed: HashSet<&'a str>,
}

impl<'a> Table<'a> {
    fn new(found: &'a [Found], own: &[usize]) -> Self {
        let mut folders = HashSet::new();
        let mut series = HashSet::new();
        for one in own.iter().filter_map(|at| found.get(*at)) {
            let stem = numberless(stem(name_of(&one.path)));
            if stem.contains('#') {
                series.insert(stem);
            }
            let mut path = one.path.as_str();
            while !path.is_empty() && folders.insert(folder_of(path)) {
                path = folder_of(path);
            }
        }
        Self { folders, series, listed: found.iter().map(|one| one.path.as_str()).collect() }
    }

    /// Whether leaving out a file could lose rows: nothing else is in its folder, or it is one of a series.
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

/// The extension, in lower case. Numbers, as in `000000_0.1`, are none.
fn ending(name: &str) -> Option<String> {
    let (stem, end) = name.rsplit_once('.')?;
    let is_word =
        end.chars().all(|c| c.is_ascii_alphanumeric()) && end.chars().any(|c| c.is_ascii_alphabetic());
    (!stem.is_empty() && is_word).then(|| end.to_ascii_lowercase())
}

/// What files that are named alike have in common.
fn alike(name: &str) -> String {
    ending(name).map_or_else(|| numberless(name), |end| format!(".{end}"))
}

/// A name with `#` for each number, decimal or, from eight digits on, hexadecimal.
fn numberless(name: &str) -> String {
    let mut made = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (this, behind) = rest.split_at(word.max(first.len_utf8()));
        let is_hex = this.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        if is_hex && this.len() >= 8 && this.contains(|c: char| c.is_ascii_digit()) {
            made.push('#');
        } else {
            without_digits(this, &mut made);
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

    /// What is left out of a folder with these files; `!` in front of a name makes it one of the table's, `=` Parquet.
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
        let found = discover(storage.as_ref(), dir.path().as_os_str(), false).unwrap();
        let root = format!("{}/", dir.path().display());
        let name = |at: usize| found[at].path.strip_prefix(&root).unwrap().to_owned();
        foreign(&storage, &found).unwrap().into_iter().map(|(at, _)| name(at)).collect()
    }

    #[test]
    fn what_is_of_another_kind_and_name_is_left_out() {
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
    fn the_files_of_an_iceberg_table_are_no_rows_by_themselves() {
        let listed = |path: &str| Found { path: path.to_owned(), listed: true, ..Found::default() };
        for metadata in ["v3.metadata.json", "00003-0a.gz.metadata.json", "v3.metadata.json.gz"] {
            let found = [listed("lake/t/data/a.orc"), listed(&format!("lake/t/metadata/{metadata}"))];
            let e = demand_no_iceberg(&found).unwrap_err();
            assert!(e.to_string().contains("coldframe.scan('lake/t')"), "{e}");
        }
        for other in ["lake/metadata/a.orc", "lake/t/v3.metadata.json", "v3.metadata.json", "metadata/x.json"]
        {
            demand_no_iceberg(&[listed(other)]).unwrap();
        }
        let named = Found { listed: false, ..listed("lake/t/metadata/v3.metadata.json") };
        demand_no_iceberg(&[named]).unwrap();
    }

    #[test]
    fn what_may_hold_rows_is_not() {
        // One of the series, by extension or number.
        assert!(left_out(&["!000000_0", "000001_0", "!000002_0"]).is_empty());
        assert!(left_out(&["000000_0", "!000001_0", "!000002_0"]).is_empty());
        assert!(left_out(&["!a.orc", "b.orc"]).is_empty());
        assert!(left_out(&["!a.dat", "b.dat", "!c.dat"]).is_empty());
        assert!(left_out(&["!part-00000-ab.orc", "=part-00001-ab.parquet"]).is_empty());
        // The only ones of a partition.
        assert_eq!(left_out(&["!p=1/a.orc", "p=1/b.csv", "p=2/b.csv", "=p=3/c.parquet"]), ["p=1/b.csv"]);
        // Nothing shows what it is.
        assert!(left_out(&["!a.orc", "?README.md"]).is_empty());
        // Nothing is recognised.
        assert!(left_out(&["a.csv", "README"]).is_empty());
    }

    #[test]
    fn a_folder_may_hold_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let storage: Arc<dyn Storage> = Arc::new(Stores::default());
        let only = || {
            let found = discover(storage.as_ref(), dir.path().as_os_str(), false).unwrap();
            in_words(&only_foreign(&storage, &found).unwrap())
        };
        std::fs::write(dir.path().join("a.csv"), "id\n1\n").unwrap();
        std::fs::write(dir.path().join("b.gz"), b"\x1f\x8b\0").unwrap();
        assert_eq!(only(), "a.csv (text), b.gz (gzip)");
        std::fs::write(dir.path().join("c"), b"\0").unwrap();
        assert_eq!(only(), "");
    }

    #[test]
    fn names_without_their_numbers() {
        assert_eq!(numberless("part-00012-c000"), "part-#-c#");
        assert_eq!(numberless("0123456789abcdef0123456789abcdef_SeqId_4_"), "#_SeqId_#_");
        assert_eq!(numberless("\u{e4}1.x"), "\u{e4}#.x");
        assert_eq!(ending("a.ORC").as_deref(), Some("orc"));
        assert_eq!((ending("000000_0.1"), ending(".hidden"), ending("a")), (None, None, None));
    }

    #[test]
    fn a_message_names_the_first_ones() {
        let one = |path: &str| LeftOut { path: format!("s3://b/t/{path}"), kind: "text" };
        assert_eq!(in_words(&[one("a")]), "a (text)");
        assert!(in_words(&["a", "b", "c", "d", "e"].map(one)).ends_with("c (text) and 2 more"));
    }
}
