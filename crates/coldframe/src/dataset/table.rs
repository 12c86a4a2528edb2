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
use super::file_entry::FileEntry;
use super::foreign::{self, LeftOut};
use super::fragment::Fragment;
use super::openings::in_parallel;
use super::partition;
use super::plan::{Opening, SplitFile};
use super::special::special_of;
use super::storage::{Storage, os_path, shown_path};
use crate::{File, format_named, formats};

/// How many files stay open at most: for an open file, the bytes that opening it read stay in memory.
const KEPT_OPEN: usize = 256;

/// The sources of a table.
#[derive(Clone)]
#[non_exhaustive]
pub enum Given {
    /// A path, folder, pattern or URL.
    Path(OsString),
    /// A file that was already listed.
    Entry(FileEntry),
    /// A file that was already listed, with default values of its own, as arrays of one value, for columns
    /// that it may lack.
    EntryWith(FileEntry, Vec<(String, arrow_array::ArrayRef)>),
    /// A file that is already open.
    File(File),
    /// An object of this process that can be opened repeatedly, and a name for it.
    Source(Source, String),
}

/// How several files are read as one table.
#[derive(Clone, Debug, Default)]
pub struct TableOptions {
    /// Whether to ignore `key=value` folders instead of making a column of each key.
    pub without_partitions: bool,
    /// The types of partition columns, if they should not be inferred from the values.
    pub partition_types: Option<SchemaRef>,
    /// Whether the columns are those of the first file only. Otherwise the columns of all files are merged,
    /// with a common type for each. This opens every file when the columns are first needed.
    pub first_only: bool,
    /// The table's columns including partitions, if known; no file is then opened to determine them.
    pub schema: Option<SchemaRef>,
    /// How the columns of files are matched.
    pub by: ColumnsBy,
    /// Default values for columns that a file lacks, as arrays of one value; a column without default is null. A file's own
    /// defaults ([`Given::EntryWith`]) replace these.
    pub defaults: Vec<(String, arrow_array::ArrayRef)>,
}

/// A file of a table.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) entry: FileEntry,
    pub(super) file: Option<File>,
    pub(super) source: Option<Source>,
    /// Default values of this file for columns that it may lack.
    defaults: Vec<(String, arrow_array::ArrayRef)>,
}

/// Many files as one table.
#[derive(Clone)]
pub struct Dataset(Arc<Inner>);

struct Inner {
    members: Vec<Member>,
    opening: Arc<Opening>,
    options: TableOptions,
    /// The partition columns, and the values of each file for them.
    partitions: Vec<Field>,
    constants: Vec<Vec<(String, arrow_array::ArrayRef)>>,
    schema: OnceLock<SchemaRef>,
    /// The index of the file whose columns come first: the first file that can be opened. Set once this is
    /// known.
    lead: AtomicUsize,
    opened: Mutex<HashMap<usize, File>>,
    notices: Mutex<Vec<(String, Notice)>>,
    has_notices: AtomicBool,
    left_out: Vec<LeftOut>,
}

impl Dataset {
    /// Creates the table of some files; folders and patterns are listed.
    pub fn new(given: Vec<Given>, opening: Opening, options: TableOptions) -> Result<Self> {
        let whole = folders_are_tables(&opening)?;
        let shown = shown(&given);
        let (mut listed, mut others, mut defaults) = (Vec::new(), HashMap::new(), HashMap::new());
        for input in given {
            match input {
                Given::Path(path) => listed.extend(discover(opening.storage.as_ref(), &path, whole)?),
                Given::Entry(entry) => listed.push(entry),
                Given::EntryWith(entry, own) => {
                    defaults.insert(listed.len(), own);
                    listed.push(entry);
                }
                Given::File(file) => {
                    others.insert(listed.len(), (Some(file.clone()), None));
                    listed.push(FileEntry { path: file.path.to_string(), ..FileEntry::default() });
                }
                Given::Source(source, name) => {
                    others.insert(listed.len(), (None, Some(source)));
                    listed.push(FileEntry { path: name, ..FileEntry::default() });
                }
            }
        }
        let numbered = listed.into_iter().enumerate().map(|(at, entry)| {
            let (file, source) = others.remove(&at).unwrap_or_default();
            Member { entry, file, source, defaults: defaults.remove(&at).unwrap_or_default() }
        });
        let mut members: Vec<Member> = numbered.collect();
        if options.without_partitions {
            members.iter_mut().for_each(|member| member.entry.pairs.clear());
        }
        let storage = opening.storage.as_ref();
        with_bytes(storage, members.iter().map(|member| member.entry.clone()).collect(), &shown)?;
        members.retain(|member| {
            let is_empty = member.entry.known.as_ref().is_some_and(|known| known.len == 0);
            !is_empty || special_of(storage, &member.entry).is_some()
        });
        let left_out = leave_out(&mut members, &opening.storage)?;
        let kept: Vec<FileEntry> = members.iter().map(|member| member.entry.clone()).collect();
        let partitions = partition::fields(&kept, options.partition_types.as_deref())?;
        let constants =
            kept.iter().map(|entry| partition::values(entry, &partitions)).collect::<Result<_>>()?;
        let schema = OnceLock::new();
        if let Some(known) = &options.schema {
            drop(schema.set(views::laid_out(known, Strings::Plain)));
        }
        let notices: Vec<(String, Notice)> = match left_out.is_empty() {
            true => Vec::new(),
            false => vec![(shown, Notice::LeftOut(foreign::summary(&left_out)))],
        };
        Ok(Self(Arc::new(Inner {
            members,
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

    /// The table's columns: first the columns of the files, then the partition columns. Strings have the plain Arrow
    /// type, even if a request uses views.
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
        let whole =
            if self.has_all_columns(&first)? { own.as_ref().clone() } else { self.unified(lead, &first)? };
        let is_partition =
            |field: &Field| self.0.partitions.iter().any(|partition| partition.name() == field.name());
        let mut fields: Vec<Field> = whole
            .fields()
            .iter()
            .map(|field| field.as_ref().clone())
            .filter(|field| !is_partition(field))
            .collect();
        fields.extend(self.0.partitions.iter().cloned());
        Ok(Schema::new_with_metadata(fields, own.metadata().clone()).into())
    }

    /// Whether the table's columns are those of the first file, whatever the other files have.
    fn has_all_columns(&self, first: &File) -> Result<bool> {
        if self.0.members.len() == 1 || self.0.options.first_only {
            return Ok(true);
        }
        let is_given = self.0.opening.options.schema.is_some();
        Ok(is_given && format_named(first.table.format())?.capabilities().needs_schema)
    }

    fn unified(&self, lead: usize, first: &File) -> Result<Schema> {
        let others: Vec<usize> = (0..self.len()).filter(|at| *at != lead).collect();
        let this = self.clone();
        let opened = in_parallel(others.len(), move |at| match others.get(at) {
            Some(at) => this.open_or_leave(*at),
            None => Ok(None),
        })?;
        let mut all = vec![(first.path.clone(), first.table.schema().clone())];
        all.extend(opened.into_iter().flatten().map(|file| (file.path.clone(), file.table.schema().clone())));
        unify(all.iter().map(|(path, schema)| (&**path, schema.as_ref())), None)
    }

    /// Opens a file. `None` if it cannot be opened; the error is then reported when its rows are requested.
    pub(super) fn open_or_leave(&self, at: usize) -> Result<Option<File>> {
        match self.open(at) {
            Ok(file) => Ok(Some(file)),
            Err(e) if Fault::is(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The first file that can be opened, and its number; the error of the first file if none can be opened.
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

    /// Opens the first `count` files in parallel, so that unsupported content is reported now. Damaged files
    /// are reported when their rows are requested, unless no file can be opened.
    pub fn open_first(&self, count: usize) -> Result<()> {
        self.lead()?;
        let this = self.clone();
        in_parallel(self.len().min(count), move |at| match this.open(at) {
            Err(e) if !e.is_damage() => Err(e),
            _ => Ok(()),
        })?;
        Ok(())
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.0.members.len()
    }

    /// Whether the table has no files, which never happens.
    pub fn is_empty(&self) -> bool {
        self.0.members.is_empty()
    }

    /// A file as it was listed.
    pub fn entry(&self, at: usize) -> Option<&FileEntry> {
        self.0.members.get(at).map(|member| &member.entry)
    }

    /// Whether a file was given as an object of this process, so that its path is only a name.
    pub fn is_of_this_process(&self, at: usize) -> bool {
        self.0.members.get(at).is_some_and(|member| member.file.is_some() || member.source.is_some())
    }

    /// The files of other kinds that were listed but are not read.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.0.left_out
    }

    /// The columns that come from the names of folders.
    pub fn partitions(&self) -> &[Field] {
        &self.0.partitions
    }

    /// A file's values of the partition columns.
    pub fn constants(&self, at: usize) -> &[(String, arrow_array::ArrayRef)] {
        self.0.constants.get(at).map(Vec::as_slice).unwrap_or_default()
    }

    /// How the table's files are opened.
    pub fn opening(&self) -> &Arc<Opening> {
        &self.0.opening
    }

    /// Opens a file. The first files that are opened stay open.
    pub fn open(&self, at: usize) -> Result<File> {
        let member = self.member(at)?;
        if let Some(file) = &member.file {
            return Ok(file.clone());
        }
        let opened = || self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = opened().get(&at) {
            return Ok(file.clone());
        }
        let source = match &member.source {
            Some(source) => source.clone(),
            None => {
                self.0.opening.storage.source(&os_path(&member.entry.path), member.entry.known.as_ref())?
            }
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
        let notices = file.table.notices().map_err(|e| file.named(e))?;
        if !notices.is_empty() {
            let mut all = self.0.notices.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(notices.into_iter().map(|notice| (file.path.to_string(), notice)));
            self.0.has_notices.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Returns the notices about files that were opened since the last call, with the files' paths.
    pub fn take_notices(&self) -> Vec<(String, Notice)> {
        if !self.0.has_notices.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.0.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn member(&self, at: usize) -> Result<&Member> {
        self.0
            .members
            .get(at)
            .ok_or_else(|| Error::invalid(format!("file {at} of a table of {} files", self.len())))
    }

    /// How a file maps to the table.
    pub fn fragment(&self, at: usize) -> Result<Fragment> {
        let own = &self.member(at)?.defaults;
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

    /// The files that may have rows that pass a filter. Only their partitions are considered.
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

    /// The number of rows, or of the rows that pass a filter; decodes only the columns that this needs.
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

    /// What the splits of a file have in common. `opened`: the file, if it is open.
    pub(super) fn split_file(&self, at: usize, opened: Option<&File>) -> Result<SplitFile> {
        let member = self.member(at)?;
        let mut opening = (*self.0.opening).clone();
        if let Some(file) = opened {
            opening.format = Some(file.table.format().to_owned());
        }
        Ok(SplitFile {
            path: member.entry.path.clone(),
            opening: Arc::new(opening),
            known: opened.map_or_else(|| member.entry.known.clone(), |file| file.identity.clone()),
            recorded: opened.map(|file| file.recorded.clone()).unwrap_or_default(),
            fragment: Some(self.fragment(at)?),
            source: member.source.clone(),
        })
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<String> =
            self.0.members.iter().take(3).map(|member| shown_path(&member.entry.path)).collect();
        f.debug_struct("Dataset").field("files", &self.len()).field("first", &paths).finish_non_exhaustive()
    }
}

/// Removes the files that do not belong to the table, and returns them.
fn leave_out(members: &mut Vec<Member>, storage: &Arc<dyn Storage>) -> Result<Vec<LeftOut>> {
    let entries: Vec<FileEntry> = members.iter().map(|member| member.entry.clone()).collect();
    foreign::check_no_iceberg(&entries)?;
    let foreign_files = foreign::foreign(storage, &entries)?;
    for (at, _) in foreign_files.iter().rev() {
        members.remove(*at);
    }
    let left_out = foreign_files
        .into_iter()
        .filter_map(|(at, kind)| Some(LeftOut { path: entries.get(at)?.path.clone(), kind }));
    Ok(left_out.collect())
}

/// Whether an option of the format (of any format, if none is named) makes a folder one table.
fn folders_are_tables(opening: &Opening) -> Result<bool> {
    let of = match &opening.format {
        Some(name) => vec![format_named(name)?],
        None => formats(),
    };
    let is_set =
        |name: &str| matches!(opening.options.extra.get(name), Some(coldframe_core::Value::Bool(true)));
    Ok(of.iter().filter_map(|format| format.capabilities().folder_option).any(is_set))
}

/// The paths of the request, for errors.
fn shown(given: &[Given]) -> String {
    let name = |input: &Given| match input {
        Given::Path(path) => coldframe_store::shown(&OsStr::to_string_lossy(path)),
        Given::Entry(entry) | Given::EntryWith(entry, _) => shown_path(&entry.path),
        Given::File(file) => shown_path(&file.path),
        Given::Source(_, name) => name.clone(),
    };
    given.iter().take(3).map(name).collect::<Vec<_>>().join(", ")
}
