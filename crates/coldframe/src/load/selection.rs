//! Which of the listed files a `load()` reads, as for Spark's own file sources.
//!
//! ```text
//! pathGlobFilter        *.orc                     a pattern of the file's name
//! recursiveFileLookup   true                      all files below; names of folders are no columns
//!                       false                     not the files in folders other than `key=value`
//! modifiedAfter         2024-01-01T00:00:00Z      files that are newer
//! modifiedBefore        2024-02-01T00:00:00Z      files that are older
//! ```

use std::collections::BTreeMap;

use arrow_array::timezone::Tz;
use arrow_cast::parse::string_to_datetime;
use coldframe_core::{Error, Result};

use super::{Given, truth};
use crate::dataset::FileEntry;
use crate::dataset::glob::{alternatives, matches};
use crate::dataset::storage::shown_path;

/// The options of this module, in lower case.
pub const NAMES: &[&str] = &["pathglobfilter", "recursivefilelookup", "modifiedafter", "modifiedbefore"];

/// Which of the listed files are read; all, by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The patterns of names; empty for any name.
    patterns: Vec<String>,
    /// Whether all files below are read, without columns of partitions.
    recursive: Option<bool>,
    /// Microseconds since 1970.
    after: Option<i64>,
    before: Option<i64>,
}

impl Selection {
    /// Parses the options, by names in lower case; other options are ignored.
    pub fn parse(given: &BTreeMap<String, String>) -> Result<Self> {
        Self::of(&given.iter().map(|(name, text)| (name.clone(), text.as_str())).collect())
    }

    pub(super) fn of(given: &Given<'_>) -> Result<Self> {
        let get = |name: &str| given.get(name).copied();
        let time = |name: &str| get(&name.to_lowercase()).map(|text| moment(name, text)).transpose();
        let recursive = get("recursivefilelookup");
        Ok(Self {
            patterns: get("pathglobfilter").map(patterns).transpose()?.unwrap_or_default(),
            recursive: recursive.map(|text| truth("recursiveFileLookup", text)).transpose()?,
            after: time("modifiedAfter")?,
            before: time("modifiedBefore")?,
        })
    }

    /// Whether all files are read, as they are listed.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether names of folders are no columns.
    pub fn is_recursive(&self) -> bool {
        self.recursive == Some(true)
    }

    /// The files that are read, of those that a listing of `path` has. An error if none is left.
    pub fn of_listing(&self, path: &str, listed: Vec<FileEntry>) -> Result<Vec<FileEntry>> {
        let mut kept = Vec::with_capacity(listed.len());
        let any = !listed.is_empty();
        for entry in listed {
            if self.takes(path, &entry)? {
                kept.push(entry);
            }
        }
        if any && kept.is_empty() {
            return Err(Error::not_found(format!(
                "no files to scan in {}: none is selected by {}",
                coldframe_store::shown(path),
                self.names().join(", ")
            )));
        }
        Ok(kept)
    }

    fn names(&self) -> Vec<&'static str> {
        let given = [
            (!self.patterns.is_empty(), "pathGlobFilter"),
            (self.recursive.is_some(), "recursiveFileLookup"),
            (self.after.is_some(), "modifiedAfter"),
            (self.before.is_some(), "modifiedBefore"),
        ];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, name)| name).collect()
    }

    fn takes(&self, path: &str, entry: &FileEntry) -> Result<bool> {
        let name = entry.path.rsplit('/').next().unwrap_or_default();
        let is_named = self.patterns.is_empty() || self.patterns.iter().any(|pattern| matches(pattern, name));
        let is_placed = self.recursive != Some(false) || is_in_partitions(path, &entry.path);
        Ok(is_named && is_placed && self.is_in_time(entry)?)
    }

    fn is_in_time(&self, entry: &FileEntry) -> Result<bool> {
        if self.after.is_none() && self.before.is_none() {
            return Ok(true);
        }
        let Some(modified) = entry.known.as_ref().and_then(|known| known.modified) else {
            let what = "modifiedAfter and modifiedBefore: the time of this file, or table, is not known";
            return Err(Error::unsupported(what).in_file(shown_path(&entry.path)));
        };
        let modified = modified.saturating_mul(1000);
        Ok(self.after.is_none_or(|after| modified > after)
            && self.before.is_none_or(|before| modified < before))
    }
}

/// Whether a file below `path` (a folder, a file or a pattern) is in folders of partitions only.
fn is_in_partitions(path: &str, file: &str) -> bool {
    let parts = |path: &str| path.split('/').filter(|part| !part.is_empty()).count();
    if path.split('/').any(|part| part == "**") {
        return true;
    }
    let mut below: Vec<&str> = file.split('/').filter(|part| !part.is_empty()).skip(parts(path)).collect();
    below.pop();
    below.iter().all(|folder| folder.contains('='))
}

fn patterns(text: &str) -> Result<Vec<String>> {
    let wrong = |why: &str| Error::schema(format!("option pathGlobFilter: {why} in '{text}'"));
    if text.matches('[').count() > text.matches(']').count() {
        return Err(wrong("a `[` without a `]`"));
    }
    alternatives(text).ok_or_else(|| wrong("a `{` without a `}`, or too many alternatives"))
}

/// Microseconds since 1970.
fn moment(name: &str, text: &str) -> Result<i64> {
    let wrong = |what: &str| Error::schema(format!("option {name}: expected {what}, found '{text}'"));
    let at = |zone: &str| {
        let zone: Tz = zone.parse().map_err(|_| wrong("a time"))?;
        let time =
            string_to_datetime(&zone, text).map_err(|_| wrong("a time such as 2024-01-01T00:00:00Z"))?;
        Ok::<_, Error>(time.timestamp_micros())
    };
    let time = at("+00:00")?;
    if time != at("+01:00")? {
        return Err(wrong("a time with its time zone, such as 2024-01-01T00:00:00Z"));
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use coldframe_store::Identity;

    use super::*;

    fn selection(options: &[(&str, &str)]) -> Result<Selection> {
        Selection::parse(
            &options.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect(),
        )
    }

    fn kept(options: &[(&str, &str)], root: &str, files: &[(&str, i64)]) -> Vec<String> {
        let entry = |(path, modified): &(&str, i64)| FileEntry {
            path: (*path).to_owned(),
            known: Some(Identity { modified: Some(*modified), len: 1, ..Identity::default() }),
            ..FileEntry::default()
        };
        let listed = files.iter().map(entry).collect();
        let kept = selection(options).unwrap().of_listing(root, listed);
        kept.map(|kept| kept.into_iter().map(|entry| entry.path).collect()).unwrap_or_default()
    }

    #[test]
    fn files_are_selected_by_name_place_and_time() {
        let files = [("/t/a.orc", 1000), ("/t/p=1/b.orc", 2000), ("/t/sub/c.rc", 3000)];
        assert_eq!(kept(&[("pathglobfilter", "*.{orc,red}")], "/t", &files), ["/t/a.orc", "/t/p=1/b.orc"]);
        assert_eq!(kept(&[("pathglobfilter", "[^b]*")], "/t", &files), ["/t/a.orc", "/t/sub/c.rc"]);
        assert_eq!(kept(&[("recursivefilelookup", "false")], "/t", &files), ["/t/a.orc", "/t/p=1/b.orc"]);
        assert_eq!(kept(&[("recursivefilelookup", "false")], "/t/*", &files).len(), 3);
        assert_eq!(kept(&[("recursivefilelookup", "true")], "/t", &files).len(), 3);
        let after = ("modifiedafter", "1970-01-01T00:00:01Z");
        assert_eq!(kept(&[after], "/t", &files), ["/t/p=1/b.orc", "/t/sub/c.rc"]);
        let before = ("modifiedbefore", "1970-01-01 01:00:03+01:00");
        assert_eq!(kept(&[after, before], "/t", &files), ["/t/p=1/b.orc"]);
        assert!(kept(&[("pathglobfilter", "x")], "/t", &files).is_empty());
    }

    #[test]
    fn wrong_selections_are_errors() {
        for (given, expected) in [
            (("pathglobfilter", "a["), "a `[` without a `]`"),
            (("pathglobfilter", "a{b"), "a `{` without a `}`"),
            (("recursivefilelookup", "maybe"), "expected true or false, found 'maybe'"),
            (("modifiedafter", "nonsense"), "option modifiedAfter: expected a time such as"),
            (("modifiedbefore", "2024-01-01T00:00:00"), "with its time zone"),
        ] {
            let message = selection(&[given]).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let unknown = vec![FileEntry { path: "/t".to_owned(), ..FileEntry::default() }];
        let after = selection(&[("modifiedafter", "1970-01-01T00:00:01Z")]).unwrap();
        assert!(after.of_listing("/t", unknown).unwrap_err().to_string().contains("not known"));
    }
}
