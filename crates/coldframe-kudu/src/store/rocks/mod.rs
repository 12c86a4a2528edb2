//! Reads a whole RocksDB database from its folder: every record of every key, with its sequence number. The
//! record with the largest number is the newest.
//!
//! ```text
//! CURRENT            "MANIFEST-000005\n"
//! MANIFEST-000005    a log of edits: which tables are live, and the first log with records that are in no table
//! 000012.sst         a table: records in key order
//! 000011.log         a log of batches
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`log`] | logs of both kinds: fragments in blocks of 32 KiB |
//! | [`manifest`] | edits |
//! | [`batch`] | the operations of one write |
//! | [`table`] | tables: footer, properties, index |
//! | [`block`] | the blocks of a table and their entries |
//!
//! Supported are only the features of Kudu's databases (RocksDB 7.7 with its defaults, `dir_manager.cc`): one
//! column family, keys in byte order, no merges, no range deletions, Snappy or no compression. Any other
//! feature is an error that names it.
//!
//! If the manifest cannot be read, all tables and logs of the folder are read: sequence numbers still show the newest
//! record of a key, and the damage is reported.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use coldframe_core::io::Folder;
use coldframe_core::{Damage, Error, ErrorKind, Limits, ReadAt, Result};

use crate::layout::container::whole_file;
use crate::store::roots::{join, name_of};

mod batch;
mod block;
mod log;
mod manifest;
mod table;

/// One write to a key: a value, or a deletion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) key: &'a [u8],
    /// The record with the larger sequence number is newer.
    pub(crate) sequence: u64,
    /// The value; `None` deletes the key.
    pub(crate) value: Option<&'a [u8]>,
}

/// The callback for records. If it returns damage, the damage is recorded for the file and reading continues.
pub(crate) type Each<'a> = dyn FnMut(Record<'_>) -> Result<()> + 'a;

/// How bytes are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Whether checksums are compared.
    pub(crate) checked: bool,
    pub(crate) limits: Limits,
}

/// Whether reading can continue after the error. An exceeded limit counts as damage elsewhere, but here it
/// ends the reading.
fn is_loss(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt(_) | ErrorKind::Checksum { .. })
}

/// Keeps the first loss for later: the records after an invalid record are still read.
fn defer(first: &mut Option<Error>, result: Result<()>) -> Result<()> {
    match result {
        Err(e) if is_loss(&e) => {
            first.get_or_insert(e);
            Ok(())
        }
        other => other,
    }
}

/// The losses of one file: the first loss with its reason, and the range that all losses span.
#[derive(Debug, Default)]
struct Losses {
    first: Option<Error>,
    bytes: Option<Range<u64>>,
    places: u64,
}

impl Losses {
    /// Records damage. Any other error, and an exceeded limit, is returned and ends the reading.
    fn note(&mut self, error: Error, bytes: Range<u64>) -> Result<()> {
        if !is_loss(&error) {
            return Err(error);
        }
        self.places += 1;
        self.bytes = Some(match self.bytes.take() {
            None => bytes,
            Some(all) => all.start.min(bytes.start)..all.end.max(bytes.end),
        });
        self.first.get_or_insert(error);
        Ok(())
    }

    /// The damage of the file at `path`, if any.
    fn of_file(self, path: &str) -> Option<Damage> {
        let error = self.first?;
        let error = match self.places {
            1 => error.within(path),
            n => error.within(format!("{path}, the first of {n} places")),
        };
        Some(Damage::from_error(&error, self.bytes.unwrap_or_default(), None))
    }
}

/// The numbered files of the folder: for each number, the name and the length.
#[derive(Debug, Default)]
struct Files {
    tables: BTreeMap<u64, String>,
    logs: BTreeMap<u64, String>,
    /// The total size of all files.
    bytes: u64,
}

impl Files {
    fn list(folder: &dyn Folder, path: &str) -> Result<Self> {
        let mut files = Self::default();
        for entry in folder.list(path)?.into_iter().filter(|e| !e.is_folder) {
            let Some((number, ending)) = name_of(&entry.path).split_once('.') else { continue };
            let Ok(number) = number.parse() else { continue };
            let kind = match ending {
                "sst" => &mut files.tables,
                "log" => &mut files.logs,
                _ => continue,
            };
            files.bytes = files.bytes.saturating_add(entry.len);
            kind.insert(number, entry.path);
        }
        Ok(files)
    }
}

/// A table to read: its number, and its length if the manifest states it.
type LiveTable = (u64, Option<u64>);

/// A database whose files have been listed.
pub(crate) struct Database<'a> {
    folder: &'a dyn Folder,
    path: &'a str,
    reading: Reading,
    files: Files,
    damage: Vec<Damage>,
}

impl<'a> Database<'a> {
    /// Lists the files of the database at `path`.
    pub(crate) fn open(folder: &'a dyn Folder, path: &'a str, reading: Reading) -> Result<Self> {
        Ok(Self { folder, path, reading, files: Files::list(folder, path)?, damage: Vec::new() })
    }

    /// The total size of the database's tables and logs.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.bytes
    }

    /// Passes each record to `each`, in any order. Returns what could not be read.
    pub(crate) fn each_record(mut self, each: &mut Each<'_>) -> Result<Vec<Damage>> {
        let (tables, first_log) = self.live_files()?;
        for (number, len) in tables {
            self.table(number, len, each)?;
        }
        let logs: Vec<_> = self.files.logs.range(first_log..).map(|(n, path)| (*n, path.clone())).collect();
        for (number, log) in logs {
            self.log(number, &log, each)?;
        }
        Ok(self.damage)
    }

    /// The live tables with their lengths, and the first log with records that are in no table.
    fn live_files(&mut self) -> Result<(Vec<LiveTable>, u64)> {
        let current = join(self.path, "CURRENT");
        let mut losses = Losses::default();
        let error = match self.manifest(&current) {
            Ok((file, version)) => {
                let missing = version.tables.keys().filter(|n| !self.files.tables.contains_key(n));
                if let Some(e) = absent(missing) {
                    losses.note(e, 0..0)?;
                }
                // An open database always has a log, even if it is empty.
                if self.files.logs.range(version.first_log..).next().is_none() {
                    let from = version.first_log;
                    let message = format!("expected a log with the number {from} or a later one, found none");
                    losses.note(Error::corrupt(message), 0..0)?;
                }
                self.damage.extend(losses.of_file(&file));
                let present = version.tables.into_iter().filter(|(n, _)| self.files.tables.contains_key(n));
                return Ok((present.map(|(n, len)| (n, Some(len))).collect(), version.first_log));
            }
            Err(e) => e,
        };
        losses.note(error, 0..0)?;
        self.damage.extend(losses.of_file(&current));
        Ok((self.files.tables.keys().map(|n| (*n, None)).collect(), 0))
    }

    /// The manifest that `CURRENT` names: its path and its contents.
    fn manifest(&self, current: &str) -> Result<(String, manifest::Version)> {
        let bytes = self.read(current)?;
        let name = std::str::from_utf8(&bytes).ok().and_then(|s| s.strip_suffix('\n'));
        let name = name.filter(|s| s.strip_prefix("MANIFEST-").is_some_and(is_number)).ok_or_else(|| {
            let text = bytes.get(..bytes.len().min(40)).unwrap_or_default().escape_ascii();
            Error::corrupt(format!("expected the name of a manifest, found \"{text}\""))
        })?;
        let path = join(self.path, name);
        let version = self.read(&path).and_then(|bytes| manifest::read(&bytes, self.reading));
        version.map(|version| (path.clone(), version)).map_err(|e| e.within(path))
    }

    fn read(&self, path: &str) -> Result<bytes::Bytes> {
        let file: Arc<dyn ReadAt> = self.folder.open(path).map_err(Error::of_named_file)?;
        whole_file(file.as_ref(), &self.reading.limits)
    }

    fn table(&mut self, number: u64, len: Option<u64>, each: &mut Each<'_>) -> Result<()> {
        let Some(path) = self.files.tables.get(&number) else { return Ok(()) };
        let bytes = self.read(path)?;
        let mut losses = Losses::default();
        let all = bytes.len() as u64;
        let len = len.unwrap_or(all);
        if len != all {
            losses.note(Error::corrupt(format!("expected {len} bytes, found {all}")), len.min(all)..all)?;
        }
        let bytes = bytes.get(..usize::try_from(len).unwrap_or(usize::MAX)).unwrap_or(&bytes);
        if let Err(e) = table::each_record(bytes, self.reading, &mut losses, each) {
            losses.note(e, 0..all).map_err(|e| e.within(path.clone()))?;
        }
        self.damage.extend(losses.of_file(path));
        Ok(())
    }

    fn log(&mut self, number: u64, path: &str, each: &mut Each<'_>) -> Result<()> {
        let bytes = self.read(path)?;
        let mut losses = Losses::default();
        let mut batch = |bytes: &[u8]| batch::each_record(bytes, each);
        log::each_record(&bytes, Some(number), self.reading.checked, &mut losses, &mut batch)
            .map_err(|e| e.within(path))?;
        self.damage.extend(losses.of_file(path));
        Ok(())
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The error for missing tables. The error states the number of the tables, and names the first tables.
fn absent<'n>(missing: impl Iterator<Item = &'n u64>) -> Option<Error> {
    let missing: Vec<&u64> = missing.collect();
    let first: Vec<String> = missing.iter().take(8).map(|n| format!("{n:06}.sst")).collect();
    let (count, first) = (missing.len(), first.join(", "));
    (count > 0).then(|| Error::corrupt(format!("{count} of its tables are missing: {first}")))
}

#[cfg(test)]
mod tests;
