//! Many files as one table: which files, which columns, and what is constant in each file.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_schema::{Field, Schema, SchemaRef};
use coldframe_core::options::Strings;
use coldframe_core::types::{unify, views};
use coldframe_core::{Error, Fault, Notice, Predicate, Result, Source, scan};

use super::columns::ColumnsBy;
use super::discovery::{discover, with_bytes};
use super::foreign::{self, LeftOut};
use super::found::Found;
use super::fragment::Fragment;
use super::openings::side_by_side;
use super::partition;
use super::plan::{Opening, SplitFile};
use super::storage::{Storage, os_path, shown_path};
use crate::{File, format_named, formats};

/// How many files stay open, that is, keep in memory what opening them read.
const KEPT_OPEN: usize = 256;

/// The sources of a table.
#[derive(Clone)]
pub enum Given {
    /// A path, folder, pattern or URL.
    Path(OsString),
    /// A file that was already found.
    Found(Found),
    /// The same, with default values of its own for columns that it may lack: arrays of one value.
    FoundWith(Found, Vec<(String, arrow_array::ArrayRef)>),
    /// A file that is already open.
    File(File),
    /// An object of this process that can be opened repeatedly, and its name.
    Source(Source, String),
}

/// How files become a table.
#[derive(Clone, Debug, Default)]
pub struct TableOptions {
    /// Whether to ignore `key=value` folders instead of making them columns.
    pub without_partitions: bool,
    /// The types of partition columns, if they should not be derived from the values.
    pub partition_types: Option<SchemaRef>,
    /// Whether the columns are those of the first file only. Otherwise they are those of all files, in types as wide as
    /// needed, and every file is opened when they are first needed.
    pub first_only: bool,
    /// The table's columns including partitions, if they are known: then no file is opened for them.
    pub schema: Option<SchemaRef>,
    /// How the columns of files are matched.
    pub by: ColumnsBy,
    /// Default values for columns that a file lacks, as arrays of one value; null if there is none here. A file's own
    /// ones ([`Given::FoundWith`]) replace these.
    pub defaults: Vec<(String, arrow_array::ArrayRef)>,
}

/// A file of a table.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) found: Found,
    pub(super) file: Option<File>,
    pub(super) source: Option<Source>,
    /// Default values of this file.
    defaults: Vec<(String, arrow_array::ArrayRef)>,
}

/// Many files as one table.
#[derive(Clone)]
pub struct Dataset(Arc<Inner>);

struct Inner {
    entries: Vec<Entry>,
    opening: Arc<Opening>,
    options: TableOptions,
    /// The partition columns, and each file's values of them.
    partitions: Vec<Field>,
    constants: Vec<Vec<(String, arrow_array::ArrayRef)>>,
    schema: OnceLock<SchemaRef>,
    /// The file whose columns come first, once known: the first that can be opened.
    lead: AtomicUsize,
    opened: Mutex<HashMap<usize, File>>,
    notices: Mutex<Vec<(String, Notice)>>,
    has_notices: AtomicBool,
    left_out: Vec<LeftOut>,
}

impl Dataset {
    /// The table of some files; those in a folder or matching a pattern are looked up.
    pub fn new(given: Vec<Given>, opening: Opening, options: TableOptions) -> Result<Self> {
        let whole = folders_are_tables(&opening)?;
        let shown = shown(&given);
        let (mut found, mut others, mut defaults) = (Vec::new(), HashMap::new(), HashMap::new());
        for one in given {
            match one {
                Given::Path(path) => found.extend(discover(opening.storage.as_ref(), &path, whole)?),
                Given::Found(one) => found.push(one),
                Given::FoundWith(one, own) => {
                    defaults.insert(found.len(), own);
                    found.push(one);
                }
                Given::File(file) => {
                    others.insert(found.len(), (Some(file.clone()), None));
                    found.push(Found { path: file.path.to_string(), ..Found::default() });
                }
                Given::Source(source, name) => {
                    others.insert(found.len(), (None, Some(source)));
                    found.push(Found { path: name, ..Found::default() });
                }
            }
        }
        let numbered = found.into_iter().enumerate().map(|(at, one)| {
            let (file, source) = others.remove(&at).unwrap_or_default();
            Entry { found: one, file, source, defaults: defaults.remove(&at).unwrap_or_default() }
        });
        let mut entries: Vec<Entry> = numbered.collect();
        if options.without_partitions {
            entries.iter_mut().for_each(|entry| entry.found.pairs.clear());
        }
        with_bytes(entries.iter().map(|entry| entry.found.clone()).collect(), &shown)?;
        entries.retain(|entry| entry.found.known.as_ref().is_none_or(|known| known.len > 0));
        let left_out = leave_out(&mut entries, &opening.storage)?;
        let kept: Vec<Found> = entries.iter().map(|entry| entry.found.clone()).collect();
        let partitions = partition::fields(&kept, options.partition_types.as_deref())?;
        let constants = kept.iter().map(|one| partition::values(one, &partitions)).collect::<Result<_>>()?;
        let schema = OnceLock::new();
        if let Some(known) = &options.schema {
            drop(schema.set(views::laid_out(known, Strings::Plain)));
        }
        let notices: Vec<(String, Notice)> = match left_out.is_empty() {
            true => Vec::new(),
            false => vec![(shown, Notice::LeftOut(foreign::in_words(&left_out)))],
        };
        Ok(Self(Arc::new(Inner {
            entries,
            opening: Arc::new(opening),
            options,
            partitions,
            constants,
            schema,
            lead: AtomicUsize::new(0),
            opened: Mutex::default(),
            has_notices: AtomicBool::new(!notices.is_empty()),
            notices: Mutex::new(notices),
            left_out,
        })))
    }

    /// Its columns: those of the files, then those of the partitions. Strings are plain, however a request lays them out.
    pub fn schema(&self) -> Result<SchemaRef> {
        if let Some(known) = self.0.schema.get() {
            return Ok(known.clone());
        }
        let made = self.columns_of_files()?;
        Ok(self.0.schema.get_or_init(|| made).clone())
    }

    fn columns_of_files(&self) -> Result<SchemaRef> {
        let (lead, first) = self.lead()?;
        let own = first.table.schema();
        let whole = if self.is_said_by(&first)? { own.as_ref().clone() } else { self.unified(lead, &first)? };
        let is_partition = |field: &Field| self.0.partitions.iter().any(|one| one.name() == field.name());
        let mut fields: Vec<Field> = whole
            .fields()
            .iter()
            .map(|field| field.as_ref().clone())
            .filter(|field| !is_partition(field))
            .collect();
        fields.extend(self.0.partitions.iter().cloned());
        Ok(Schema::new_with_metadata(fields, own.metadata().clone()).into())
    }

    /// Whether the first file's columns are the table's, regardless of the others.
    fn is_said_by(&self, first: &File) -> Result<bool> {
        if self.0.entries.len() == 1 || self.0.options.first_only {
            return Ok(true);
        }
        let is_given = self.0.opening.options.schema.is_some();
        Ok(is_given && format_named(first.table.format())?.capabilities().needs_schema)
    }

    fn unified(&self, lead: usize, first: &File) -> Result<Schema> {
        let others: Vec<usize> = (0..self.len()).filter(|at| *at != lead).collect();
        let this = self.clone();
        let opened = side_by_side(others.len(), move |at| match others.get(at) {
            Some(at) => this.open_or_leave(*at),
            None => Ok(None),
        })?;
        let mut all = vec![(first.path.clone(), first.table.schema().clone())];
        all.extend(opened.into_iter().flatten().map(|file| (file.path.clone(), file.table.schema().clone())));
        unify(all.iter().map(|(path, schema)| (&**path, schema.as_ref())), None)
    }

    /// A file, if it can be opened; otherwise that is reported when its rows are requested.
    pub(super) fn open_or_leave(&self, at: usize) -> Result<Option<File>> {
        match self.open(at) {
            Ok(file) => Ok(Some(file)),
            Err(e) if Fault::is(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The first file that can be opened, and its number; the error of the first if none can.
    pub fn lead(&self) -> Result<(usize, File)> {
        let mut failed = None;
        for at in self.0.lead.load(Ordering::Relaxed)..self.len() {
            match self.open(at) {
                Ok(file) => {
                    self.0.lead.store(at, Ordering::Relaxed);
                    return Ok((at, file));
                }
                Err(e) if Fault::is(&e) => failed = failed.or(Some(e)),
                Err(e) => return Err(e),
            }
        }
        Err(failed.unwrap_or_else(|| Error::not_found("no files")))
    }

    /// Opens the first `most` files, in parallel, so that what they lack support for is an error now. Damaged ones are reported when
    /// their rows are requested, unless no file can be opened.
    pub fn open_first(&self, most: usize) -> Result<()> {
        self.lead()?;
        let this = self.clone();
        side_by_side(self.len().min(most), move |at| match this.open(at) {
            Err(e) if !e.is_damage() => Err(e),
            _ => Ok(()),
        })?;
        Ok(())
    }

    /// How many files it has.
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// Whether it has no file, which is impossible.
    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }

    /// A file as it was found.
    pub fn found(&self, at: usize) -> Option<&Found> {
        self.0.entries.get(at).map(|entry| &entry.found)
    }

    /// Whether a file was given as an object of this process, so that its path is only a name.
    pub fn is_of_this_process(&self, at: usize) -> bool {
        self.0.entries.get(at).is_some_and(|entry| entry.file.is_some() || entry.source.is_some())
    }

    /// Files that were found beside them and are of other kinds, so that they are not read.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.0.left_out
    }

    /// The columns that come from the names of folders.
    pub fn partitions(&self) -> &[Field] {
        &self.0.partitions
    }

    /// A file's values of these columns.
    pub fn constants(&self, at: usize) -> &[(String, arrow_array::ArrayRef)] {
        self.0.constants.get(at).map(Vec::as_slice).unwrap_or_default()
    }

    /// How its files are opened.
    pub fn opening(&self) -> &Arc<Opening> {
        &self.0.opening
    }

    /// Opens a file; the first ones stay open.
    pub fn open(&self, at: usize) -> Result<File> {
        let entry = self.entry(at)?;
        if let Some(file) = &entry.file {
            return Ok(file.clone());
        }
        let opened = || self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = opened().get(&at) {
            return Ok(file.clone());
        }
        let source = match &entry.source {
            Some(source) => source.clone(),
            None => self.0.opening.storage.source(&os_path(&entry.found.path), entry.found.known.as_ref())?,
        };
        let file = self.0.opening.open(source, Vec::new())?;
        self.note(&file)?;
        let mut kept = opened();
        if kept.len() < KEPT_OPEN {
            kept.insert(at, file.clone());
        }
        Ok(file)
    }

    fn note(&self, file: &File) -> Result<()> {
        let told = file.table.notices().map_err(|e| file.named(e))?;
        if !told.is_empty() {
            let mut all = self.0.notices.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(told.into_iter().map(|notice| (file.path.to_string(), notice)));
            self.0.has_notices.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Notices about the files opened since the last call, with the files' paths.
    pub fn take_notices(&self) -> Vec<(String, Notice)> {
        if !self.0.has_notices.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.0.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn entry(&self, at: usize) -> Result<&Entry> {
        self.0.entries.get(at).ok_or_else(|| Error::invalid(format!("file {at} of {}", self.len())))
    }

    /// A file's role in the table.
    pub fn fragment(&self, at: usize) -> Result<Fragment> {
        let own = &self.entry(at)?.defaults;
        let of_all = self.0.options.defaults.iter();
        let of_all = of_all.filter(|(name, _)| own.iter().all(|(known, _)| known != name));
        Ok(Fragment {
            constants: self.constants(at).to_vec(),
            defaults: own.iter().chain(of_all).cloned().collect(),
            by: self.0.options.by.clone(),
            complete: self.0.options.first_only,
            ..Fragment::new(self.schema()?)
        })
    }

    /// The files that may have rows that pass a filter, judged by their partitions alone.
    pub fn matching(&self, predicate: Option<&Predicate>) -> Result<Vec<usize>> {
        if predicate.is_none() || self.0.partitions.is_empty() {
            return Ok((0..self.len()).collect());
        }
        let mut fragment = Fragment::new(self.schema()?);
        let mut matching = Vec::new();
        for at in 0..self.len() {
            fragment.constants = self.constants(at).to_vec();
            if fragment.may_match(predicate)? {
                matching.push(at);
            }
        }
        Ok(matching)
    }

    /// The number of rows, or of those that pass a filter; decodes no more than that needs.
    pub fn count(&self, predicate: Option<&Predicate>) -> Result<u64> {
        let mut rows: u64 = 0;
        for at in self.matching(predicate)? {
            rows = rows.saturating_add(self.count_file(at, predicate)?);
        }
        Ok(rows)
    }

    fn count_file(&self, at: usize, predicate: Option<&Predicate>) -> Result<u64> {
        let file = self.open(at)?;
        let asked = coldframe_core::Scan {
            columns: Some(Vec::new()),
            predicate: predicate.cloned(),
            ..coldframe_core::Scan::default()
        };
        let fragment = Fragment { complete: false, ..self.fragment(at)? };
        let Some(reading) = fragment.reading(file.table.schema(), &asked, &file.path)? else { return Ok(0) };
        if !reading.adaptation.filters() {
            return scan::count(file.table.as_ref(), reading.scan.predicate).map_err(|e| file.named(e));
        }
        let mut rows = 0;
        for split in file.whole()? {
            let mut reader = file.scan(&reading.scan, &split)?;
            while let Some(batch) = reader.next_batch().map_err(|e| file.named(e))? {
                rows += reading.adaptation.adapt(&batch)?.num_rows() as u64;
            }
        }
        Ok(rows)
    }

    /// A file in the form that its splits use, once it is open.
    pub(super) fn split_file(&self, at: usize, opened: Option<&File>) -> Result<SplitFile> {
        let entry = self.entry(at)?;
        let mut opening = (*self.0.opening).clone();
        if let Some(file) = opened {
            opening.format = Some(file.table.format().to_owned());
        }
        Ok(SplitFile {
            path: entry.found.path.clone(),
            opening: Arc::new(opening),
            known: opened.map_or_else(|| entry.found.known.clone(), |file| file.identity.clone()),
            recorded: opened.map(|file| file.recorded.clone()).unwrap_or_default(),
            fragment: Some(self.fragment(at)?),
            source: entry.source.clone(),
        })
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<String> =
            self.0.entries.iter().take(3).map(|entry| shown_path(&entry.found.path)).collect();
        f.debug_struct("Dataset").field("files", &self.len()).field("first", &paths).finish_non_exhaustive()
    }
}

/// Takes out the files that are none of the table's.
fn leave_out(entries: &mut Vec<Entry>, storage: &Arc<dyn Storage>) -> Result<Vec<LeftOut>> {
    let found: Vec<Found> = entries.iter().map(|entry| entry.found.clone()).collect();
    foreign::demand_no_iceberg(&found)?;
    let told = foreign::foreign(storage, &found)?;
    for (at, _) in told.iter().rev() {
        entries.remove(*at);
    }
    let left_out =
        told.into_iter().filter_map(|(at, kind)| Some(LeftOut { path: found.get(at)?.path.clone(), kind }));
    Ok(left_out.collect())
}

/// Whether an option of the format (of any format, if none is named) says that a folder is one table.
fn folders_are_tables(opening: &Opening) -> Result<bool> {
    let of = match &opening.format {
        Some(name) => vec![format_named(name)?],
        None => formats(),
    };
    let is_set =
        |name: &str| matches!(opening.options.extra.get(name), Some(coldframe_core::Value::Bool(true)));
    Ok(of.iter().filter_map(|format| format.capabilities().folder_option).any(is_set))
}

/// The request, in an error.
fn shown(given: &[Given]) -> String {
    let name = |one: &Given| match one {
        Given::Path(path) => coldframe_store::shown(&OsStr::to_string_lossy(path)),
        Given::Found(found) | Given::FoundWith(found, _) => shown_path(&found.path),
        Given::File(file) => shown_path(&file.path),
        Given::Source(_, name) => name.clone(),
    };
    given.iter().take(3).map(name).collect::<Vec<_>>().join(", ")
}
