//! Detects a file's format, and opens it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use coldframe_core::io::{Entry, Folder, Identity, Recorded, Recording};
use coldframe_core::options::Strings;
use coldframe_core::types::views;
use coldframe_core::{
    Capabilities, DamageLog, Error, Format, OpenOptions, Piece, ReadAt, Report, Result, Scan, ScanReader,
    Source, Split, TableFile, scan,
};
use coldframe_store::shown;
use tracing::debug_span;
use tracing::field::Empty;

use crate::{format_named, formats};

/// How many bytes at the start and at the end of a file are used to detect its format.
const PROBE: u64 = 4096;

/// An open file of any format.
#[derive(Clone, Debug)]
pub struct File {
    /// The path or URL that the file was opened with, for errors.
    pub path: Arc<str>,
    /// The table.
    pub table: Arc<dyn TableFile>,
    /// The bytes that were read to open the file, with their offsets, so that [`open_source`] in another
    /// process need not read them again.
    pub recorded: Arc<Vec<Piece>>,
    /// The file's identity, for opening the same version again; a folder has no identity.
    pub identity: Option<Identity>,
    /// Maximum number of busy threads of a scan, if set when the file was opened ([`OpenOptions::threads`]).
    pub threads: Option<usize>,
    /// Decoded bytes that a scan may hold for each thread ([`coldframe_core::Limits::memory_limit`]).
    pub memory_limit: u64,
    /// The layout of strings in its scans, if set when the file was opened ([`OpenOptions::strings`]).
    pub strings: Option<Strings>,
}

impl File {
    /// The schema of the file's rows: the table's columns, with the string layout of its scans.
    pub fn schema(&self) -> SchemaRef {
        match self.strings {
            Some(strings) => views::laid_out(self.table.schema(), strings),
            None => self.table.schema().clone(),
        }
    }

    /// Starts a scan of one split.
    pub fn scan(&self, scan: &Scan, split: &Split) -> Result<ScanReader> {
        self.scan_logged(scan, split, DamageLog::default())
    }

    /// Starts a scan that records damage in `damage`.
    pub fn scan_logged(&self, scan: &Scan, split: &Split, damage: DamageLog) -> Result<ScanReader> {
        let strings = scan.strings.or(self.strings);
        let scan = Scan { threads: self.max_threads(scan), strings, ..scan.clone() };
        // Marks, in the trace, that the next plan in this thread is for this file.
        tracing::debug!(
            name: "plan",
            path = shown(&self.path),
            start = split.range.start,
            end = split.range.end,
        );
        ScanReader::try_new(self.table.as_ref(), &scan, split, damage).map_err(|e| self.named(e))
    }

    /// Maximum number of threads of a scan: the smaller of the scan's number and the number with which the
    /// file was opened.
    pub(crate) fn max_threads(&self, scan: &Scan) -> usize {
        scan.threads.min(self.threads.unwrap_or(usize::MAX))
    }

    /// The whole table: one split if the format's files have one part, otherwise one split per part.
    pub fn whole(&self) -> Result<Vec<Split>> {
        self.table.splits(u64::MAX).map_err(|e| self.named(e))
    }

    /// Decodes everything and checks the structure.
    pub fn verify(&self, tick: impl FnMut(u64) -> Result<()>) -> Result<Report> {
        scan::verify(self.table.as_ref(), tick).map_err(|e| self.named(e))
    }

    /// An error with this file's path.
    pub fn named(&self, e: Error) -> Error {
        e.in_file(&*self.path)
    }
}

/// The source for a local path, which need not be UTF-8, or a URL if its store is built in. `known`: the file's identity from
/// a listing.
pub fn source_of_path(
    path: impl AsRef<OsStr>,
    storage_options: &BTreeMap<String, String>,
    known: Option<&Identity>,
) -> Result<Source> {
    coldframe_store::open(path.as_ref(), storage_options, known)
}

/// The format of a source by its bytes or, for a folder, by its files; `None` if no format of this build matches.
pub fn detect(source: &Source) -> Result<Option<Arc<dyn Format>>> {
    let format = match source {
        Source::File { path, bytes, .. } => Ends::read(bytes.as_ref()).map(|ends| ends.detect(path)),
        Source::Folder { folder, .. } => detect_folder(folder),
    };
    format.map_err(|e| e.in_file(&**source.path()))
}

fn detect_folder(folder: &Arc<dyn Folder>) -> Result<Option<Arc<dyn Format>>> {
    let listed = Listed { folder: folder.clone(), lists: Mutex::default() };
    for format in formats() {
        if format.probe_folder(&listed)? {
            return Ok(Some(format));
        }
    }
    Ok(None)
}

/// A folder with a cache of its listings: every format looks at the listing, and a folder in a store may have
/// a hundred thousand files.
#[derive(Debug)]
struct Listed {
    folder: Arc<dyn Folder>,
    lists: Mutex<BTreeMap<String, Vec<Entry>>>,
}

impl Folder for Listed {
    fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lists.get(path) {
            return Ok(known.clone());
        }
        let entries = self.folder.list(path)?;
        lists.insert(path.to_owned(), entries.clone());
        Ok(entries)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        self.folder.open(path)
    }

    fn parent(&self) -> Result<Option<(Arc<dyn Folder>, String)>> {
        self.folder.parent()
    }
}

/// The first and last bytes of a file.
struct Ends {
    head: Bytes,
    tail_start: u64,
    tail: Bytes,
}

impl Ends {
    fn read(bytes: &dyn ReadAt) -> Result<Self> {
        let len = bytes.len();
        let (head, tail_start) = (0..len.min(PROBE), len.saturating_sub(PROBE));
        let mut parts = coldframe_core::io::read_coalesced(bytes, &[head, tail_start..len])?.into_iter();
        Ok(Self {
            head: parts.next().unwrap_or_default(),
            tail_start,
            tail: parts.next().unwrap_or_default(),
        })
    }

    /// The format of the file according to its bytes; an empty file is recognised by its name.
    fn detect(&self, path: &str) -> Option<Arc<dyn Format>> {
        formats().into_iter().find(|f| match self.head.is_empty() {
            true => may_be_empty(&f.capabilities(), path),
            false => f.probe(&self.head, &self.tail),
        })
    }

    /// The name of the file's kind, if its bytes show that it is of a kind that this build does not read.
    fn other_kind(&self) -> Option<&'static str> {
        let known = OTHERS.iter().find(|(magic, _)| self.head.starts_with(magic));
        known.map(|(_, name)| *name).or((is_text(&self.head) && is_text(&self.tail)).then_some("text"))
    }

    /// The bytes in the form of a recording, so that opening the file does not read them again.
    fn into_recorded(self) -> [(u64, Bytes); 2] {
        [(0, self.head), (self.tail_start, self.tail)]
    }
}

/// Whether an empty file at `path` belongs to a format.
fn may_be_empty(of: &Capabilities, path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending);
    of.empty_files && ending.is_some_and(|ending| of.endings.contains(&ending))
}

/// Opens the file or table folder at `path`; if the format is not named, it is detected from the bytes.
pub fn open(path: impl AsRef<OsStr>, format: Option<&str>, options: &OpenOptions) -> Result<File> {
    open_source(source_of_path(path, &BTreeMap::new(), None)?, format, options, Vec::new())
}

/// Opens `source`. `recorded`: the [`File::recorded`] of an earlier opening of the same file, which is then
/// not read again; for a folder, the pieces for [`Format::open_recorded`].
pub fn open_source(
    source: Source,
    format: Option<&str>,
    options: &OpenOptions,
    recorded: Vec<Piece>,
) -> Result<File> {
    let span = debug_span!(
        "open",
        path = shown(source.path()),
        bytes = source.bytes().ok().map(|bytes| bytes.len()),
        format = Empty,
        failed = Empty,
    );
    let file = open_detected(source, format, options, recorded);
    match &file {
        Ok(file) => span.record("format", file.table.format()),
        Err(_) => span.record("failed", true),
    };
    file
}

fn open_detected(
    source: Source,
    format: Option<&str>,
    options: &OpenOptions,
    mut recorded: Vec<Piece>,
) -> Result<File> {
    let path = source.path().clone();
    let named = |e: Error| e.in_file(&*path);
    let detected = match (format, &source) {
        (Some(name), source) => Some(format_of(name, source)?),
        (None, Source::File { bytes, .. }) => {
            let ends = Ends::read(bytes.as_ref()).map_err(named)?;
            let detected = ends.detect(&path);
            recorded.extend(ends.into_recorded());
            detected
        }
        (None, Source::Folder { folder, .. }) => detect_folder(folder).map_err(named)?,
    };
    let Some(format) = detected else { return Err(named(not_ours(&source))) };
    let identity = source.bytes().ok().map(|bytes| bytes.identity());
    let mut options = options.clone();
    options.take_common()?;
    let (threads, strings) = (options.threads, options.strings);
    let memory_limit = options.limits.memory_limit;
    if let Some(name) = format.capabilities().unit_option.filter(|_| options.microseconds) {
        options.extra.entry(name.to_owned()).or_insert_with(|| "us".into());
    }
    if let Some((name, zone)) = format.capabilities().zone_option.zip(options.timestamps_in.as_ref()) {
        options.extra.entry(name.to_owned()).or_insert_with(|| zone.as_str().into());
    }
    if matches!(source, Source::Folder { .. }) && !recorded.is_empty() {
        let table = format.open_recorded(&source, &options, &recorded).map_err(named)?;
        return Ok(File { path, table, recorded: Arc::default(), identity, threads, memory_limit, strings });
    }
    let (source, recording) = record(source, recorded);
    let table = format.open(&source, &options).map_err(named)?;
    let recorded = recording.map(|r| r.stop()).unwrap_or_default();
    Ok(File { path, table, recorded: Arc::new(recorded), identity, threads, memory_limit, strings })
}

/// The format that `name` means for a source: if the source is a folder, the name of a file format means the
/// format of tables that consist of such files.
fn format_of(name: &str, source: &Source) -> Result<Arc<dyn Format>> {
    let tables = match source {
        Source::Folder { .. } => formats().into_iter().find(|f| f.capabilities().tables_of == Some(name)),
        Source::File { .. } => None,
    };
    tables.map_or_else(|| format_named(name), Ok)
}

/// A source that records its requests, or answers from an earlier recording.
fn record(source: Source, recorded: Vec<Piece>) -> (Source, Option<Arc<Recording>>) {
    match source {
        Source::File { path, bytes, siblings } => {
            let bytes: Arc<dyn ReadAt> =
                if recorded.is_empty() { bytes } else { Arc::new(Recorded::new(bytes, recorded)) };
            let recording = Arc::new(Recording::new(bytes));
            (Source::File { path, bytes: recording.clone(), siblings }, Some(recording))
        }
        folder => (folder, None),
    }
}

/// Magic bytes of other kinds of files, which this build does not read.
const OTHERS: &[(&[u8], &str)] = &[
    (b"PAR1", "Parquet"),
    (b"Obj\x01", "Avro"),
    (b"SEQ", "Hadoop sequence"),
    (b"ARROW1", "Arrow"),
    (b"%PDF", "PDF"),
    (b"PK\x03\x04", "zip"),
    (b"\x1f\x8b", "gzip"),
];

/// The kind of a source by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A format of this build.
    Ours,
    /// Another known kind, with its name.
    Other(&'static str),
    /// Unknown: it may be a damaged file of a format of this build.
    Unknown,
}

/// The kind of a source by its first and last bytes. A folder is either one table of a format, or unknown.
pub(crate) fn kind_of(source: &Source) -> Result<Kind> {
    let Source::File { path, bytes, .. } = source else {
        return Ok(if detect(source)?.is_some() { Kind::Ours } else { Kind::Unknown });
    };
    let ends = Ends::read(bytes.as_ref()).map_err(|e| e.in_file(&**path))?;
    if ends.detect(path).is_some() {
        return Ok(Kind::Ours);
    }
    Ok(ends.other_kind().map_or(Kind::Unknown, Kind::Other))
}

/// Whether bytes from the start or end of a file are text; a character at either end may be incomplete.
fn is_text(bytes: &[u8]) -> bool {
    let is_printed = |byte: &u8| *byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    let cut = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    let decoded = std::str::from_utf8(bytes.get(cut..).unwrap_or_default());
    let is_utf8 = decoded.err().is_none_or(|e| e.error_len().is_none());
    !bytes.is_empty() && is_utf8 && bytes.iter().all(is_printed)
}

/// The error for a source of unknown format: either its magic bytes are damaged, or it is another kind of
/// file.
fn not_ours(source: &Source) -> Error {
    let names: Vec<&'static str> = formats().iter().map(|f| f.name()).collect();
    let names = names.join(", ");
    match source {
        Source::Folder { .. } => {
            Error::unsupported(format!("expected a table directory of a known format ({names}), found none"))
        }
        Source::File { bytes, .. } => {
            let head = bytes.read(0..bytes.len().min(8)).unwrap_or_default();
            if let Some((_, name)) = OTHERS.iter().find(|(magic, _)| head.starts_with(magic)) {
                return Error::unsupported(format!("{name} files; this build knows: {names}"));
            }
            let magic = head.escape_ascii();
            Error::corrupt(format!("expected the magic of a known format ({names}), found \"{magic}\""))
                .at(0)
                .within("magic")
        }
    }
}
