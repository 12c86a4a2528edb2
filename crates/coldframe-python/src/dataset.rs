//! Many files as one table.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Once};

use arrow_array::{ArrayRef, RecordBatch};
use coldframe::dataset::storage::{Storage, os_path};

use coldframe::dataset::{
    ColumnsBy, Dataset, FileEntry, Given, LeftOut, Origin, Plan, ScanBuilder, TableDef, TableOptions,
    discover, discovery, foreign,
};
use coldframe::load::Selection;
use coldframe::store::{Identity, to_text};
use coldframe::{Error, Notice, Predicate, Scan};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyString, PyTuple};

use crate::capsule::{export_schema, import_batch, import_schema};
use crate::error::to_python;
use crate::file::{RawFile, parse_on_error};
use crate::metastore::{self, PyDefinition};
use crate::opening::RawOpening;
use crate::predicate::PyPredicate;
use crate::rows::{RawTableRows, warn};
use crate::scan::RawBatch;
use crate::source;
use crate::split::{RawSplit, bound, one_row, texts};
use crate::storage::PyStorage;
use crate::store::Known;
use crate::strings::parse_strings;

/// A listed file: path, name and value pairs of its folders, and the size, time and tag from the listing.
type PyEntry = (OsString, Vec<(String, String)>, Option<Known>);

/// The same tuple as Python passes it.
type EntryGiven = (PathBuf, Vec<(String, String)>, Option<Known>);

fn entry_to_python(entry: &FileEntry) -> PyEntry {
    let known = entry.known.clone().map(|known| (known.len, known.modified, known.etag));
    (os_path(&entry.path), entry.pairs.clone(), known)
}

fn entry_from_python((path, pairs, known): EntryGiven) -> FileEntry {
    let known = known.map(|(len, modified, etag)| Identity { len, modified, etag });
    FileEntry { path: to_text(path.as_os_str()), pairs, known, listed: false, rows: None }
}

/// Converts an element of the sources: a path, a listed file (a 3-tuple, or a 5-tuple that also has default values and the
/// stated number of rows), an open file, or (handle, name) of an object.
fn given(source: &Bound<'_, PyAny>, opening: &RawOpening) -> PyResult<Given> {
    if source.is_instance_of::<PyString>() {
        return Ok(Given::Path(source.extract::<PathBuf>()?.into_os_string()));
    }
    if let Ok(file) = source.cast::<RawFile>() {
        return Ok(Given::File(file.get().0.clone()));
    }
    let tuple = source.cast::<PyTuple>().map_err(|_| PyTypeError::new_err("expected a source"))?;
    if tuple.len() == 5 {
        let rows = tuple.get_item(4)?.extract()?;
        let entry = FileEntry { rows, ..entry_from_python(tuple.get_slice(0, 3).extract()?) };
        return Ok(Given::EntryWith(entry, columns_of(&import_batch(&tuple.get_item(3)?)?)));
    }
    if tuple.len() == 3 {
        return Ok(Given::Entry(entry_from_python(tuple.extract()?)));
    }
    let (handle, name): (Bound<'_, PyAny>, String) = tuple.extract()?;
    let options = texts(&opening.opening, &name);
    Ok(Given::Source(source::from_python(&handle, &options, None)?, name))
}

/// The columns of a batch of one row.
fn columns_of(row: &RecordBatch) -> Vec<(String, ArrayRef)> {
    let names = row.schema_ref().fields().iter().map(|field| field.name().clone());
    names.zip(row.columns().iter().cloned()).collect()
}

/// Makes the reading threads stop before the interpreter exits, since they may be running Python code.
fn stop_at_exit(py: Python<'_>) -> PyResult<()> {
    static REGISTERED: Once = Once::new();
    let mut done = Ok(());
    REGISTERED.call_once(|| {
        done = (|| {
            let stop = py.import("coldframe._coldframe")?.getattr("stop_reading")?;
            py.import("atexit")?.call_method1("register", (stop,)).map(drop)
        })();
    });
    done
}

/// Stops the reading threads; the next read starts them again.
#[pyfunction]
pub(crate) fn stop_reading(py: Python<'_>) {
    py.detach(coldframe::stop_reading);
}

/// Lists the files at a path, in a folder, or that match a pattern. `whole`: each folder is one table. `selection`: the options of
/// a `load()` that select some of them.
#[pyfunction]
#[pyo3(signature = (paths, *, storage_options=None, whole=false, selection=None))]
pub(crate) fn find_files(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    storage_options: Option<&Bound<'_, PyAny>>,
    whole: bool,
    selection: Option<BTreeMap<String, String>>,
) -> PyResult<Vec<PyEntry>> {
    let storage = PyStorage::new(storage_options)?;
    let selection = Selection::parse(&selection.unwrap_or_default()).map_err(to_python)?;
    let entries = py.detach(|| {
        let mut all = Vec::new();
        for path in &paths {
            let listed = discover(&storage, path.as_os_str(), whole)?;
            all.extend(selection.of_listing(&path.to_string_lossy(), listed)?);
        }
        let shown = paths.iter().take(3).map(|path| coldframe::store::shown(&path.to_string_lossy()));
        discovery::with_bytes(&storage, all, &shown.collect::<Vec<_>>().join(", "))
    });
    Ok(entries.map_err(to_python)?.iter().map(entry_to_python).collect())
}

/// Why the files of a folder with these entries are no table by themselves; None for other folders.
#[pyfunction]
pub(crate) fn managed_by(names: Vec<String>) -> Option<&'static str> {
    coldframe::dataset::managed_by(names.iter().map(String::as_str))
}

/// The indexes of listed files of other kinds, and a notice about them. An error if all files are of other kinds.
#[pyfunction]
#[pyo3(signature = (files, *, storage_options=None))]
pub(crate) fn foreign_files(
    py: Python<'_>,
    files: Vec<EntryGiven>,
    storage_options: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Vec<usize>, Option<String>)> {
    let storage: Arc<dyn Storage> = Arc::new(PyStorage::new(storage_options)?);
    let listed = |file| FileEntry { listed: true, ..entry_from_python(file) };
    let files: Vec<FileEntry> = files.into_iter().map(listed).collect();
    let others = py.detach(|| {
        let others = foreign::foreign(&storage, &files)?;
        let only = if others.is_empty() { foreign::only_foreign(&storage, &files)? } else { Vec::new() };
        match only.is_empty() {
            true => Ok(others),
            false => {
                Err(Error::not_found(format!("no files of a known format, only {}", foreign::summary(&only))))
            }
        }
    });
    let others = others.map_err(to_python)?;
    let left_out: Vec<LeftOut> = others
        .iter()
        .filter_map(|(at, kind)| Some(LeftOut { path: files.get(*at)?.path.clone(), kind }))
        .collect();
    let notice = (!left_out.is_empty()).then(|| Notice::LeftOut(foreign::summary(&left_out)).text());
    Ok((others.into_iter().map(|(at, _)| at).collect(), notice))
}

/// Many files as one table.
#[pyclass(module = "coldframe._coldframe", frozen)]
pub(crate) struct RawDataset(Dataset);

impl RawDataset {
    fn without_gil<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> coldframe::Result<T> + Send,
    ) -> PyResult<T> {
        let answer = py.detach(work);
        warn(py, &self.0)?;
        answer.map_err(to_python)
    }

    fn request(
        &self,
        predicate: Option<&PyPredicate>,
        files: Option<Vec<usize>>,
        split_bytes: u64,
    ) -> ScanBuilder {
        let mut request = self.0.scan().split_bytes(split_bytes);
        if let Some(predicate) = predicate {
            request = request.filter(predicate.0.clone());
        }
        match files {
            Some(files) => request.files(files),
            None => request,
        }
    }
}

fn splits_of(plan: Plan) -> Vec<RawSplit> {
    plan.splits.into_iter().map(RawSplit).collect()
}

#[pymethods]
impl RawDataset {
    #[new]
    #[pyo3(signature = (opening, sources, *, partitioned=true, types=None, unify=true, schema=None, ids=None, file_path=None,
        row_index=None, first_row=0))]
    #[expect(clippy::too_many_arguments, reason = "they are keyword arguments")]
    fn new(
        py: Python<'_>,
        opening: &RawOpening,
        sources: Vec<Bound<'_, PyAny>>,
        partitioned: bool,
        types: Option<&Bound<'_, PyAny>>,
        unify: bool,
        schema: Option<&Bound<'_, PyAny>>,
        ids: Option<String>,
        file_path: Option<String>,
        row_index: Option<String>,
        first_row: u64,
    ) -> PyResult<Self> {
        let options = TableOptions {
            by: ids.map_or_else(ColumnsBy::default, ColumnsBy::Id),
            without_partitions: !partitioned,
            partition_types: types.map(import_schema).transpose()?,
            first_only: !unify,
            schema: schema.map(import_schema).transpose()?,
            origin: Origin { file_path, row_index },
            first_row,
            ..TableOptions::default()
        };
        let given = sources.iter().map(|source| given(source, opening)).collect::<PyResult<Vec<_>>>()?;
        let opening = (*opening.opening).clone();
        let dataset = py.detach(|| Dataset::new(given, opening, options)).map_err(to_python)?;
        warn(py, &dataset)?;
        Ok(Self(dataset))
    }

    /// The definition of the table as bytes, which hold the options of stores and keys.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.without_gil(py, || self.0.definition()?.to_bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The table of a definition. `storage_options`, `keys`: Python objects that the bytes cannot hold.
    #[staticmethod]
    #[pyo3(signature = (bytes, *, storage_options=None, keys=None))]
    fn from_bytes(
        py: Python<'_>,
        bytes: &[u8],
        storage_options: Option<&Bound<'_, PyAny>>,
        keys: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let bound = bound(storage_options, keys)?;
        let def = py.detach(|| TableDef::from_bytes(bytes, &bound)).map_err(to_python)?;
        Ok(Self(Dataset::of(def)))
    }

    /// The table of some partitions as a metastore defines them, which lie at `locations`. The options of `opening` override
    /// those in the metastore.
    #[staticmethod]
    #[pyo3(signature = (opening, definition, partitions, locations, *, storage_options=None))]
    fn of_hive(
        py: Python<'_>,
        opening: &RawOpening,
        definition: PyDefinition,
        partitions: Vec<Bound<'_, PyAny>>,
        locations: Vec<PathBuf>,
        storage_options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        metastore::dataset(py, opening, definition, &partitions, &locations, storage_options).map(Self)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = self.without_gil(py, || self.0.scan().schema())?;
        export_schema(py, &schema)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.without_gil(py, || Ok(self.0.lead()?.1.table.format()))
    }

    /// The files: path, name and value pairs of its folders, and the size, time and tag from a listing.
    #[pyo3(name = "found")]
    fn entries(&self) -> Vec<PyEntry> {
        (0..self.0.len()).filter_map(|at| self.0.entry(at)).map(entry_to_python).collect()
    }

    /// The files that are left out: path and kind.
    fn left_out(&self) -> Vec<(OsString, &'static str)> {
        self.0.left_out().iter().map(|file| (os_path(&file.path), file.kind)).collect()
    }

    /// The numbers of the files that are objects of this process, in the given order.
    fn objects(&self) -> Vec<usize> {
        (0..self.0.len()).filter(|at| self.0.is_of_this_process(*at)).collect()
    }

    /// The names of the partition columns.
    fn partition_columns(&self) -> Vec<String> {
        self.0.partitions().iter().map(|field| field.name().clone()).collect()
    }

    /// The schema of the partition columns.
    fn partitions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &arrow_schema::Schema::new(self.0.partitions().to_vec()))
    }

    /// The values of a file's partition columns, as a batch of one row.
    fn constants(&self, number: usize) -> PyResult<RawBatch> {
        one_row(self.0.constants(number).map_err(to_python)?)
    }

    /// The values of the partition columns: a row for each file.
    fn partition_values(&self) -> PyResult<RawBatch> {
        self.0.partition_values().map(RawBatch).map_err(to_python)
    }

    fn open(&self, py: Python<'_>, number: usize) -> PyResult<RawFile> {
        self.without_gil(py, || self.0.open(number)).map(RawFile)
    }

    /// The sum of the row counts that the files record; None if a file records none.
    fn num_rows(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.without_gil(py, || {
            let mut rows = Some(0u64);
            for at in 0..self.0.len() {
                rows = rows.zip(self.0.open(at)?.table.row_count()).map(|(sum, n)| sum.saturating_add(n));
            }
            Ok(rows)
        })
    }

    #[pyo3(signature = (predicate=None))]
    fn count(&self, py: Python<'_>, predicate: Option<&PyPredicate>) -> PyResult<u64> {
        let predicate: Option<Predicate> = predicate.map(|p| p.0.clone());
        self.without_gil(py, || {
            let schema = self.0.schema()?;
            let bound = predicate.map(|p| p.bind(&schema)).transpose()?;
            self.0.count(bound.as_ref())
        })
    }

    /// `files`: reads only the files with these numbers.
    #[pyo3(signature = (*, columns=None, predicate=None, limit=None, batch_size=65536, on_error="raise", threads=1, files=None,
        strings=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keyword arguments")]
    fn scan(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        predicate: Option<&PyPredicate>,
        limit: Option<u64>,
        batch_size: usize,
        on_error: &str,
        threads: usize,
        files: Option<Vec<usize>>,
        strings: Option<&str>,
    ) -> PyResult<RawTableRows> {
        if batch_size == 0 {
            return Err(PyValueError::new_err("batch_size must be at least 1, not 0"));
        }
        if threads > 1 {
            stop_at_exit(py)?;
        }
        let mut request = self.request(predicate, files, 1);
        request = request.batch_rows(batch_size).on_error(parse_on_error(on_error)?).threads(threads);
        if let Some(columns) = columns {
            request = request.columns(columns);
        }
        if let Some(limit) = limit {
            request = request.limit(limit);
        }
        if let Some(strings) = parse_strings(strings)? {
            request = request.strings(strings);
        }
        let rows = self.without_gil(py, || request.read())?;
        Ok(RawTableRows::new(rows, Some(self.0.clone())))
    }

    /// The splits as the formats define them; opens all files.
    #[pyo3(signature = (split_bytes, *, predicate=None, files=None))]
    fn splits(
        &self,
        py: Python<'_>,
        split_bytes: u64,
        predicate: Option<&PyPredicate>,
        files: Option<Vec<usize>>,
    ) -> PyResult<Vec<RawSplit>> {
        let request = self.request(predicate, files, split_bytes);
        self.without_gil(py, || request.splits()).map(splits_of)
    }

    /// The splits as planned from the listing; opens only files that are not from a listing.
    #[pyo3(signature = (split_bytes, *, predicate=None))]
    fn plan(
        &self,
        py: Python<'_>,
        split_bytes: u64,
        predicate: Option<&PyPredicate>,
    ) -> PyResult<Vec<RawSplit>> {
        let request = self.request(predicate, None, split_bytes);
        self.without_gil(py, || request.plan()).map(splits_of)
    }

    /// Adapts a batch of a file to the table's columns, whichever library has read the batch.
    fn adapt(
        &self,
        py: Python<'_>,
        number: usize,
        batch: &Bound<'_, PyAny>,
        columns: Vec<String>,
    ) -> PyResult<RawBatch> {
        let batch = import_batch(batch)?;
        let adapted = self.without_gil(py, || {
            let path = self.0.entry(number).map(|entry| entry.path.clone()).unwrap_or_default();
            let strings = self.0.scan().layout()?;
            let scan = Scan { columns: Some(columns), strings, ..Scan::default() };
            let reading = self.0.fragment(number)?.reading(batch.schema_ref(), &scan, &path)?;
            let Some(reading) = reading else { return Ok(None) };
            let wanted = reading.scan.columns.unwrap_or_default();
            let places = wanted.iter().map(|name| batch.schema_ref().index_of(name));
            let places = places.collect::<Result<Vec<_>, _>>().map_err(coldframe::arrow_error)?;
            let narrow = batch.project(&places).map_err(coldframe::arrow_error)?;
            reading.adaptation.adapt(&narrow).map(Some)
        })?;
        adapted.map(RawBatch).ok_or_else(|| PyValueError::new_err("no row of the file passes"))
    }
}
