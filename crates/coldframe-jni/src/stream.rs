//! Reads the new files of a folder batch by batch, for Spark's streams.
//!
//! ```text
//! CHECKPOINT/sources/0/coldframe/0        {"entry":0,"files":["/data/a.rc","/data/b.rc"]}
//!                               /1        {"entry":1,"files":["/data/c.rc"]}
//!                               /9.all    the lines of all entries so far; the entries are then deleted
//! ```
//! An offset is the number of an entry; a batch is the files of the entries between two offsets. Java writes an entry
//! atomically before Spark sees its number, so a batch that is repeated after a restart has the same files. A file is
//! identified by its path: it is in only one entry and so is read only once, even if its time or content
//! changes later.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::Schema;
use coldframe::dataset::foreign::foreign;
use coldframe::dataset::storage::{os_path, shown_path};
use coldframe::dataset::{Dataset, FileEntry, Given, Storage, Stores, TableOptions, discover};
use coldframe::load::LoadOptions;
use coldframe::{Error, Result};
use serde_json::{Value as Json, json};

use crate::plan::planned::Planning;
use crate::plan::{self, Table};

/// The files that a stream has read, and the current listing.
pub struct Stream {
    options: LoadOptions,
    /// The columns in Spark's types, including partition columns.
    user: Schema,
    /// For each known file, the entry that has it.
    seen: HashMap<String, i64>,
    /// The newest entry; -1 if there is none.
    last: i64,
    /// The files of the newest listing.
    listed: Vec<FileEntry>,
    /// Whether no further listing is made.
    frozen: bool,
}

impl Stream {
    /// The stream of a `load()` for `{"options": {..}, "schema": ..}`.
    pub fn open(request: &[u8]) -> Result<Self> {
        let (options, user) = plan::parse_open(request)?;
        let user = user.ok_or_else(|| Error::invalid("expected the columns of a stream, found none"))?;
        Ok(Self { options, user, seen: HashMap::new(), last: -1, listed: Vec::new(), frozen: false })
    }

    /// The number of the newest entry; -1 if there is none.
    pub fn last(&self) -> i64 {
        self.last
    }

    /// Adds the lines of entries, from a log or from [`Stream::fresh`].
    pub fn recall(&mut self, entries: &[u8]) -> Result<()> {
        let wrong =
            |what: &str| Error::corrupt(format!("{what}; expected a log of this stream")).within("log");
        for line in entries.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let entry: Json = serde_json::from_slice(line).map_err(|_| wrong("a line that is not JSON"))?;
            let number = entry.get("entry").and_then(Json::as_i64).filter(|number| *number >= 0);
            let number = number.ok_or_else(|| wrong("an entry without a number"))?;
            let files =
                entry.get("files").and_then(Json::as_array).ok_or_else(|| wrong("an entry without files"))?;
            for file in files {
                let path = file.as_str().ok_or_else(|| wrong("a file without a path"))?;
                self.seen.insert(path.to_owned(), number);
            }
            self.last = self.last.max(number);
        }
        Ok(())
    }

    /// All entries so far, as lines.
    pub fn all(&self) -> Vec<u8> {
        let mut entries: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
        for (path, number) in &self.seen {
            entries.entry(*number).or_default().push(path);
        }
        entries.iter().flat_map(|(number, files)| line(*number, files)).collect()
    }

    /// The next entry, as a line, with the oldest files that are in no entry; `None` if there are none. The
    /// entry counts only once it is passed to [`Stream::recall`]. `unlimited`: whether to take all new files,
    /// whatever limits the options set.
    pub fn fresh(&mut self, unlimited: bool) -> Result<Option<Vec<u8>>> {
        if !self.frozen {
            self.listed = self.list()?;
        }
        let mut new: Vec<&FileEntry> =
            self.listed.iter().filter(|file| !self.seen.contains_key(&file.path)).collect();
        new.sort_unstable_by(|a, b| (modified(a), &a.path).cmp(&(modified(b), &b.path)));
        let limit = |of: Option<u64>| of.filter(|_| !unlimited).unwrap_or(u64::MAX);
        let max_files = limit(self.options.max_files_per_trigger);
        let max_bytes = limit(self.options.max_bytes_per_trigger);
        let (mut taken, mut bytes) = (Vec::new(), 0_u64);
        for file in new {
            bytes = bytes.saturating_add(file.known.as_ref().map_or(0, |known| known.len));
            // At least one file is taken, because otherwise a large file would stop the stream.
            if !taken.is_empty() && (taken.len() as u64 >= max_files || bytes > max_bytes) {
                break;
            }
            taken.push(file.path.as_str());
        }
        Ok((!taken.is_empty()).then(|| line(self.last.saturating_add(1), &taken)))
    }

    /// Lists the files a last time; later files are not read.
    pub fn freeze(&mut self) -> Result<()> {
        self.listed = self.list()?;
        self.frozen = true;
        Ok(())
    }

    /// The tasks that read the files of the entries after `from`, up to `to`.
    pub fn plan(&self, from: i64, to: i64, request: &[u8]) -> Result<Planning> {
        let wanted: HashSet<&str> = self
            .seen
            .iter()
            .filter(|(_, number)| (from.saturating_add(1)..=to).contains(*number))
            .map(|(path, _)| path.as_str())
            .collect();
        let of = |listed: &[FileEntry]| -> Vec<FileEntry> {
            listed.iter().filter(|file| wanted.contains(file.path.as_str())).cloned().collect()
        };
        let mut files = of(&self.listed);
        if files.len() < wanted.len() {
            // The files were listed before a restart.
            files = of(&self.list()?);
        }
        let existing: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        if let Some(gone) = wanted.difference(&existing).next().filter(|_| !self.options.ignore_missing) {
            let what = "a file of the stream's next batch was deleted, or is empty";
            return Err(Error::not_found(what).in_file(shown_path(gone)));
        }
        if files.is_empty() {
            return Ok(Planning::default());
        }
        // The files are not marked as `listed`, because files of other kinds were already left out when the
        // entry was made.
        let given: Vec<Given> =
            files.into_iter().map(|file| Given::Entry(FileEntry { listed: false, ..file })).collect();
        let dataset = |options: &LoadOptions| {
            let table = TableOptions {
                first_only: !options.unify,
                partition_types: Some(self.user.clone().into()),
                without_partitions: options.selection.is_recursive(),
                ..TableOptions::default()
            };
            Dataset::new(given.clone(), plan::opening(options), table)
        };
        Table::over(dataset, self.options.clone(), Some(self.user.clone()))?.plan(request)
    }

    /// The table's files that exist now; none if the folder does not exist yet.
    fn list(&self) -> Result<Vec<FileEntry>> {
        let storage: Arc<dyn Storage> = Arc::new(Stores(self.options.storage.clone()));
        let mut files = Vec::new();
        for path in &self.options.paths {
            let listed = discover(storage.as_ref(), &os_path(path), false);
            match listed.and_then(|listed| self.options.selection.of_listing(path, listed)) {
                Ok(selected) => files.extend(selected),
                Err(e) if e.is_not_found() => {}
                Err(e) => return Err(e),
            }
        }
        if let Some(whole) = files.iter().find(|file| file.known.is_none()) {
            let what = "a stream needs a folder of files; this is one table, or a file on a web server";
            return Err(Error::unsupported(what).in_file(shown_path(&whole.path)));
        }
        files.retain(|file| file.known.as_ref().is_some_and(|known| known.len > 0));
        let foreign: HashSet<usize> = foreign(&storage, &files)?.into_iter().map(|(at, _)| at).collect();
        let own = files.into_iter().enumerate().filter(|(at, _)| !foreign.contains(at));
        Ok(own.map(|(_, file)| file).collect())
    }
}

fn modified(file: &FileEntry) -> i64 {
    file.known.as_ref().and_then(|known| known.modified).unwrap_or(0)
}

fn line(entry: i64, files: &[&str]) -> Vec<u8> {
    let mut line = json!({"entry": entry, "files": files}).to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn stream(folder: &Path, options: &[(&str, &str)]) -> Stream {
        let mut all = serde_json::Map::from_iter([("path".to_owned(), json!(folder))]);
        all.extend(options.iter().map(|(name, text)| ((*name).to_owned(), json!(text))));
        let field = json!({"name": "a", "type": "long", "nullable": true, "metadata": {}});
        let schema = json!({"type": "struct", "fields": [field]});
        Stream::open(json!({"options": all, "schema": schema}).to_string().as_bytes()).unwrap()
    }

    fn put(folder: &Path, name: &str, bytes: usize, seconds: u64) {
        std::fs::create_dir_all(folder).unwrap();
        let file = std::fs::File::create(folder.join(name)).unwrap();
        std::io::Write::write_all(&mut &file, &b"RCF\x01".repeat(bytes / 4)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
    }

    /// The files of the next entry, which is recalled.
    fn next(stream: &mut Stream, unlimited: bool) -> Vec<String> {
        let Some(entry) = stream.fresh(unlimited).unwrap() else { return Vec::new() };
        stream.recall(&entry).unwrap();
        let parsed: Json = serde_json::from_slice(&entry).unwrap();
        assert_eq!(parsed["entry"], stream.last());
        let names = parsed["files"].as_array().unwrap().iter();
        names.map(|path| path.as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn each_file_is_in_one_entry_oldest_first() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("in");
        let mut stream = stream(&folder, &[("maxFilesPerTrigger", "2")]);
        assert!(next(&mut stream, false).is_empty(), "there is no folder yet");
        for (name, time) in [("c.rc", 5), ("a.rc", 7), ("b.rc", 7), ("_d.rc", 1), (".e", 1), ("empty.rc", 0)]
        {
            put(&folder, name, if name == "empty.rc" { 0 } else { 8 }, time);
        }
        assert_eq!(next(&mut stream, false), ["c.rc", "a.rc"]);
        // There is a late file that is older than the files already read, a file changed after it was read,
        // and a file that is no longer empty.
        put(&folder, "late.rc", 8, 2);
        put(&folder, "c.rc", 16, 9);
        put(&folder, "empty.rc", 8, 9);
        assert_eq!(next(&mut stream, true), ["late.rc", "b.rc", "empty.rc"]);
        assert!(next(&mut stream, true).is_empty());
    }

    #[test]
    fn bytes_are_limited_but_one_file_is_always_read() {
        let dir = tempfile::tempdir().unwrap();
        for (at, bytes) in [400, 8, 8, 8].into_iter().enumerate() {
            put(dir.path(), &format!("{at}.rc"), bytes, at as u64);
        }
        let mut stream = stream(dir.path(), &[("maxbytespertrigger", "16")]);
        assert_eq!(next(&mut stream, false), ["0.rc"]);
        assert_eq!(next(&mut stream, false), ["1.rc", "2.rc"]);
        // Files that arrive after freezing are ignored.
        stream.freeze().unwrap();
        put(dir.path(), "4.rc", 8, 0);
        assert_eq!(next(&mut stream, false), ["3.rc"]);
        assert!(next(&mut stream, false).is_empty());
    }

    #[test]
    fn a_stream_continues_from_its_log() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.rc", "b.rc", "c.rc"] {
            put(dir.path(), name, 8, 3);
        }
        let limit = [("maxfilespertrigger", "1")];
        let mut before = stream(dir.path(), &limit);
        let entries = [0, 1].map(|_| {
            let entry = before.fresh(false).unwrap().unwrap();
            before.recall(&entry).unwrap();
            entry
        });
        for log in [entries.concat(), before.all()] {
            assert_eq!(log, entries.concat());
            let mut after = stream(dir.path(), &limit);
            after.recall(&log).unwrap();
            assert_eq!((after.last(), next(&mut after, true)), (1, vec!["c.rc".to_owned()]));
        }
        for wrong in ["{", "{\"entry\":-1,\"files\":[]}", "{\"entry\":1}", "{\"entry\":1,\"files\":[1]}"] {
            let e = before.recall(wrong.as_bytes()).unwrap_err();
            assert!(e.to_string().contains("expected a log of this stream"), "{e}");
        }
    }

    #[test]
    fn deleted_files_and_table_folders_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "a.rc", 8, 3);
        let mut reading = stream(dir.path(), &[]);
        assert_eq!(next(&mut reading, false), ["a.rc"]);
        std::fs::remove_file(dir.path().join("a.rc")).unwrap();
        let e = stream_of(&reading, dir.path()).plan(-1, 0, b"{}").unwrap_err();
        assert!(e.is_not_found() && e.to_string().contains("a.rc"), "{e}");
        assert!(reading.plan(0, 0, b"{}").unwrap().tasks.is_empty());
        let delta = dir.path().join("delta_1_1");
        std::fs::create_dir(&delta).unwrap();
        std::fs::write(delta.join("bucket_00000"), b"ORC").unwrap();
        let e = stream(dir.path(), &[]).fresh(false).unwrap_err();
        assert!(e.to_string().contains("needs a folder of files"), "{e}");
    }

    /// A new stream that gets the log of another stream.
    fn stream_of(other: &Stream, folder: &Path) -> Stream {
        let mut made = stream(folder, &[]);
        made.recall(&other.all()).unwrap();
        made
    }
}
