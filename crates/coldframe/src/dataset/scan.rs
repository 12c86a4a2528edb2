//! A request to a table: which columns, which rows, how many. The result is either a plan of splits or the
//! rows.

use std::ffi::OsStr;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::io::Identity;
use coldframe_core::options::Strings;
use coldframe_core::predicate::{Condition, parse};
use coldframe_core::{Error, Matching, OnError, Predicate, Result, Scan, threads};
use tracing::field::Empty;
use tracing::{Span, debug_span};

use super::fragment::{Fragment, Numbers, projected, strings_of};
use super::given::{Given, TableOptions};
use super::opening::Opening;
use super::openings::in_parallel;
use super::plan::{Part, Plan, Split};
use super::rows::{Rows, Unopened};
use super::storage::os_path;
use super::table::Dataset;
use super::table_def::Origin;
use crate::File;
use crate::opened::Opened;

/// The default target size of splits in bytes.
pub const SPLIT_BYTES: u64 = 128 << 20;

/// A split carries the bytes that were read when its file was opened, but at most this many.
const MAX_RECORDED: usize = 256 << 10;

/// The number of remote files to read at once, even with fewer processors: most reads wait for the network.
const REMOTE_FILES: usize = 8;

/// Which rows to return.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Filter {
    /// A condition in SQL: `dt >= '2014-01-01' and x is not null`.
    Text(String),
    /// An unbound condition.
    Condition(Condition),
    /// A filter that is bound to the table's columns.
    Predicate(Predicate),
}

impl From<&str> for Filter {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Condition> for Filter {
    fn from(condition: Condition) -> Self {
        Self::Condition(condition)
    }
}

impl From<Predicate> for Filter {
    fn from(predicate: Predicate) -> Self {
        Self::Predicate(predicate)
    }
}

/// A request to a table.
#[derive(Clone, Debug)]
pub struct ScanBuilder {
    dataset: Dataset,
    scan: Scan,
    filter: Option<Filter>,
    split_bytes: u64,
    files: Option<Vec<usize>>,
    max_opened: usize,
}

impl Dataset {
    /// A request for all rows; its methods narrow it.
    pub fn scan(&self) -> ScanBuilder {
        ScanBuilder {
            dataset: self.clone(),
            scan: Scan::default(),
            filter: None,
            split_bytes: SPLIT_BYTES,
            files: None,
            max_opened: 0,
        }
    }
}

/// A request for the rows of a path, a folder, a pattern or a URL: all files are read as one table, and
/// formats are detected from the bytes. [`Dataset::new`] takes several paths, options of formats and stores,
/// and further settings of a table.
pub fn scan(location: impl AsRef<OsStr>) -> Result<ScanBuilder> {
    let given = vec![Given::Path(location.as_ref().to_owned())];
    Ok(Dataset::new(given, Opening::default(), TableOptions::default())?.scan())
}

impl ScanBuilder {
    /// The columns, in the requested order; all if this is not called.
    #[must_use]
    pub fn columns<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.scan.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Returns only the rows that pass this filter, which is applied exactly.
    #[must_use]
    pub fn filter(mut self, filter: impl Into<Filter>) -> Self {
        self.filter = Some(filter.into());
        self
    }

    /// At most this many rows, counted after the filter.
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Self {
        self.scan.limit = Some(rows);
        self
    }

    /// Maximum rows of a batch.
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.scan.batch_rows = rows;
        self
    }

    /// What to do about damage.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.scan.on_error = on_error;
        self
    }

    /// Maximum number of busy threads; 1 means only the caller's.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.scan.threads = threads.clamp(1, threads::MAX);
        self
    }

    /// The layout of strings and binary values; by default the one that the files are opened with.
    #[must_use]
    pub fn strings(mut self, strings: Strings) -> Self {
        self.scan.strings = Some(strings);
        self
    }

    /// Splits of about this many bytes of a file.
    #[must_use]
    pub fn split_bytes(mut self, bytes: u64) -> Self {
        self.split_bytes = bytes.max(1);
        self
    }

    /// Maximum number of files that [`Self::plan`] opens in order to leave out splits that the files'
    /// metadata rule out; 0 by default. If there are more files, or no filter, or if one split holds all
    /// files, it opens none.
    #[must_use]
    pub fn max_opened(mut self, files: usize) -> Self {
        self.max_opened = files;
        self
    }

    /// Reads only these of the table's files, by their numbers.
    #[must_use]
    pub fn files(mut self, numbers: Vec<usize>) -> Self {
        self.files = Some(numbers);
        self
    }

    /// The table that the request is for.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// The request with its filter bound to the table's columns.
    pub(super) fn request(&self) -> Result<Scan> {
        let schema = self.dataset.schema()?;
        let bound = match &self.filter {
            None => None,
            Some(Filter::Text(text)) => Some(parse::condition(text)?.bind(&schema)?),
            Some(Filter::Condition(condition)) => Some(condition.bind(&schema)?),
            Some(Filter::Predicate(predicate)) => Some(predicate.clone().bind(&schema)?),
        };
        Ok(Scan { predicate: bound, strings: self.layout()?, ..self.scan.clone() })
    }

    /// The files that may have rows that pass.
    pub(super) fn matching(&self, scan: &Scan) -> Result<Vec<usize>> {
        let mut matching = self.dataset.matching(scan.predicate.as_ref())?;
        if let Some(files) = &self.files {
            matching.retain(|at| files.contains(at));
        }
        Ok(matching)
    }

    /// The layout of strings in this request.
    pub fn layout(&self) -> Result<Option<Strings>> {
        match self.scan.strings {
            Some(strings) => Ok(Some(strings)),
            None => self.dataset.opening().strings(),
        }
    }

    /// The schema of the returned batches.
    pub fn schema(&self) -> Result<SchemaRef> {
        let plain = projected(&self.dataset.schema()?, self.scan.columns.as_deref())?;
        Ok(strings_of(&plain, self.layout()?))
    }

    /// A plan made from the listing; the readers divide the files into splits. It opens only files that were
    /// not listed, and up to [`Self::max_opened`] files.
    pub fn plan(&self) -> Result<Plan> {
        Ok(self.planned(false)?.0)
    }

    /// The plan, and the number of units, such as stripes, that the metadata of opened files rule out. Units
    /// of files that are ruled out without opening them are not counted.
    pub fn plan_and_pruned(&self) -> Result<(Plan, u64)> {
        self.planned(false)
    }

    /// A plan for which all files are opened and divided into splits now.
    pub fn splits(&self) -> Result<Plan> {
        Ok(self.planned(true)?.0)
    }

    fn planned(&self, opened: bool) -> Result<(Plan, u64)> {
        if *self.dataset.origin() != Origin::default() {
            return Err(Error::unsupported(
                "splits of a dataset with file_path or row_index: scan without them; Split.path is the path",
            ));
        }
        let span = debug_span!("plan", files = Empty, splits = Empty, pruned = Empty, failed = Empty);
        let planned = self.plan_files(opened, &span);
        match &planned {
            Ok((plan, pruned)) => span.record("splits", plan.splits.len()).record("pruned", *pruned),
            Err(_) => span.record("failed", true),
        };
        planned
    }

    fn plan_files(&self, opened: bool, span: &Span) -> Result<(Plan, u64)> {
        let (schema, scan) = (self.schema()?, self.request()?);
        let files = self.matching(&scan)?;
        span.record("files", files.len());
        if !opened && let Some((splits, pruned)) = self.without_excluded(&scan, &files)? {
            return Ok((Plan { schema, scan, splits }, pruned));
        }
        let mut splits = Vec::new();
        for at in files {
            match self.known(at).filter(|_| !opened) {
                Some(known) => splits.extend(self.shares(at, known.len)?),
                None => {
                    let file = self.dataset.open(at)?;
                    let split_file = self.dataset.split_file(at, Some(&file))?;
                    splits.extend(Split::of(split_file, &file, self.split_bytes)?);
                }
            }
        }
        Ok((Plan { schema, scan, splits }, 0))
    }

    /// The file's identity from the listing.
    pub(super) fn known(&self, at: usize) -> Option<&Identity> {
        self.dataset.entry(at).and_then(|entry| entry.known.as_ref())
    }

    /// The shares of a file, which its readers divide into splits.
    fn shares(&self, at: usize, bytes: u64) -> Result<Vec<Split>> {
        let file = Arc::new(self.dataset.split_file(at, None)?);
        let (of, target) = (bytes.div_ceil(self.split_bytes).max(1), self.split_bytes);
        let share =
            |number| Split { file: file.clone(), part: Part::Share { number, of, target }, own: Vec::new() };
        Ok((0..of).map(share).collect())
    }

    /// The splits whose rows may pass according to the files' metadata, and the number of units that are
    /// ruled out. `None` if no file may be opened for this, or if the first file has no metadata about its
    /// units.
    fn without_excluded(&self, scan: &Scan, files: &[usize]) -> Result<Option<(Vec<Split>, u64)>> {
        let lengths: Option<Vec<u64>> = files.iter().map(|at| Some(self.known(*at)?.len)).collect();
        let Some(lengths) = lengths.filter(|_| scan.predicate.is_some() && scan.prune) else {
            return Ok(None);
        };
        let is_one_task =
            lengths.iter().fold(0, |all: u64, len| all.saturating_add(*len)) <= self.split_bytes;
        if is_one_task || files.len() > self.max_opened {
            return Ok(None);
        }
        let Some((first, others)) = files.split_first() else { return Ok(None) };
        let Some((mut splits, mut pruned)) = self.of_file_without_excluded(scan, *first)? else {
            return Ok(None);
        };
        let (this, scan, others) = (self.clone(), scan.clone(), others.to_vec());
        let results = in_parallel(others.len(), move |number| {
            let (Some(at), Some(len)) = (others.get(number), lengths.get(number + 1)) else {
                return Ok((Vec::new(), 0));
            };
            match this.of_file_without_excluded(&scan, *at)? {
                Some(planned) => Ok(planned),
                None => Ok((this.shares(*at, *len)?, 0)),
            }
        })?;
        for (more, excluded) in results {
            splits.extend(more);
            pruned += excluded;
        }
        Ok(Some((splits, pruned)))
    }

    fn of_file_without_excluded(&self, scan: &Scan, at: usize) -> Result<Option<(Vec<Split>, u64)>> {
        let Some(file) = self.dataset.open_or_leave(at)? else { return Ok(None) };
        let fragment = self.dataset.fragment(at)?;
        let Some(reading) = fragment.reading(file.table.schema(), scan, &file.path)? else {
            return Ok(Some((Vec::new(), 0)));
        };
        // If damage is tolerated, a filter must not change what is saved and recorded.
        let filter = reading.scan.predicate.as_ref().filter(|_| reading.scan.on_error == OnError::Raise);
        let Some(filter) = filter else { return Ok(None) };
        let matching = file.table.matching_splits(self.split_bytes, filter).map_err(|e| file.named(e))?;
        let Some(Matching { splits: cut, pruned }) = matching else { return Ok(None) };
        let mut split_file = self.dataset.split_file(at, Some(&file))?;
        if split_file.recorded.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() > MAX_RECORDED {
            split_file.recorded = Arc::default();
        }
        Ok(Some((Split::of_cut(split_file, &file, cut)?, pruned)))
    }

    /// The rows, in the order of the files. Nothing is read before the first batch is requested.
    pub fn read(&self) -> Result<Rows> {
        let (schema, mut scan) = (self.schema()?, self.request()?);
        let is_numbered = self.dataset.is_numbered(scan.columns.as_deref(), scan.predicate.as_ref());
        let numbers = self.dataset.numbers().filter(|_| is_numbered);
        let files = match numbers {
            None => self.matching(&scan)?,
            Some(_) => (0..self.dataset.len()).collect(),
        };
        if numbers.is_some() {
            scan.threads = 1;
        }
        let mut threads = scan.threads;
        if threads > 1 && files.first().is_some_and(|at| self.is_elsewhere(*at)) {
            threads = threads.max(REMOTE_FILES);
        }
        let files = files.into_iter().map(|at| self.unopened(at, &scan, numbers.clone()));
        let files = files.collect::<Result<_>>()?;
        Ok(Rows::new(files, schema, &scan, threads))
    }

    fn is_elsewhere(&self, at: usize) -> bool {
        let storage = &self.dataset.opening_of(at).storage;
        let entry = self.dataset.entry(at);
        entry.is_some_and(|entry| !storage.is_of_this_machine(&os_path(&entry.path)))
    }

    fn unopened(&self, at: usize, scan: &Scan, numbers: Option<Numbers>) -> Result<Unopened> {
        let entry = &self.dataset.member(at)?.entry;
        let (dataset, scan) = (self.dataset.clone(), scan.clone());
        let fragment = Fragment { numbers, ..self.dataset.fragment(at)? };
        Ok(Unopened {
            path: entry.path.clone(),
            bytes: entry.known.as_ref().map_or(0, |known| known.len),
            open: Box::new(move |target| {
                let whole = |file: &File| file.table.splits(target);
                opened(dataset.open(at)?, Some(&fragment), &scan, whole)
            }),
        })
    }
}

/// An open file with its splits to read; `None` if no row passes. The caller supplies the splits in `parts`, since a file
/// that was opened for only one of its splits cannot be divided again.
pub(super) fn opened(
    file: File,
    fragment: Option<&Fragment>,
    scan: &Scan,
    parts: impl FnOnce(&File) -> Result<Vec<coldframe_core::Split>>,
) -> Result<Option<Opened>> {
    let (scan, adaptation) = match fragment {
        None => (scan.clone(), None),
        Some(fragment) => match fragment.reading(file.table.schema(), scan, &file.path)? {
            Some(reading) => (reading.scan, Some(reading.adaptation)),
            None => return Ok(None),
        },
    };
    let splits = parts(&file).map_err(|e| file.named(e))?;
    Ok(Some(Opened { file, scan, splits, adaptation }))
}

impl Split {
    /// The schema of the split's rows, with the string layout that its file was opened with.
    pub fn output_schema(&self) -> Result<SchemaRef> {
        Ok(strings_of(&self.schema()?, self.file.opening.strings()?))
    }

    /// The columns of the table that the split's file belongs to. Strings are plain, whatever the layout of a
    /// request.
    pub fn schema(&self) -> Result<SchemaRef> {
        match &self.file.fragment {
            Some(fragment) => Ok(fragment.schema.clone()),
            None => Ok(self.open()?.table.schema().clone()),
        }
    }

    /// The rows of the split for a request whose filter is bound to the table's columns.
    pub fn read(&self, scan: &Scan) -> Result<Rows> {
        let schema = match &self.file.fragment {
            Some(fragment) => fragment.projected(scan.columns.as_deref())?,
            None => projected(&self.schema()?, scan.columns.as_deref())?,
        };
        let strings = scan.strings.map_or_else(|| self.file.opening.strings(), |own| Ok(Some(own)))?;
        let scan = Scan { strings, ..scan.clone() };
        let schema = strings_of(&schema, strings);
        Ok(Rows::new(vec![self.unopened(&scan)], schema, &Scan { threads: 1, ..scan.clone() }, 1))
    }

    fn unopened(&self, scan: &Scan) -> Unopened {
        let (split, scan) = (self.clone(), scan.clone());
        Unopened {
            path: self.file.path.clone(),
            bytes: self.file_bytes().unwrap_or(0),
            open: Box::new(move |_| {
                let (file, cut) = split.open_cut()?;
                opened(file, split.file.fragment.as_ref(), &scan, |_| Ok(cut))
            }),
        }
    }
}

impl Plan {
    /// The rows of all splits, in order, with as many threads as the request allows.
    pub fn read(&self) -> Rows {
        let files = self.splits.iter().map(|split| split.unopened(&self.scan)).collect();
        Rows::new(files, self.schema.clone(), &self.scan, self.scan.threads)
    }
}
