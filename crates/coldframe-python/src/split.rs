//! Splits: parts of tables that are read independently, also in other processes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema};
use coldframe::dataset::storage::os_path;
use coldframe::dataset::wire::Bound as PlanBound;
use coldframe::dataset::{Opening, Part, Plan, Split, SplitFile, pack};
use coldframe::store::{Identity, to_text};
use coldframe::{Piece, Scan, SchemaSpec};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};

use crate::capsule::export_schema;
use crate::error::to_python;
use crate::file::{PyPiece, RawFile, parse_on_error, pieces};
use crate::opening::RawOpening;
use crate::predicate::PyPredicate;
use crate::rows::RawTableRows;
use crate::scan::RawBatch;
use crate::storage::{PyStorage, shared};
use crate::store::Known;
use crate::strings::parse_strings;
use crate::value;

/// Arguments for opening: storage options, whether checksums are verified, keys, options of the format.
type PyArguments<'py> = (BTreeMap<String, String>, bool, Bound<'py, PyDict>, Bound<'py, PyDict>);

/// A part of a table.
#[pyclass(module = "coldframe._coldframe", frozen)]
pub(crate) struct RawSplit(pub(crate) Split);

fn owned(recorded: Vec<(u64, Vec<u8>)>) -> Vec<Piece> {
    recorded.into_iter().map(|(at, bytes)| (at, bytes.into())).collect()
}

impl RawSplit {
    fn cut_of(&self) -> (u32, u64, u64, Option<u64>) {
        match &self.0.part {
            Part::Cut(cut) => (cut.part, cut.range.start, cut.range.end, cut.rows),
            Part::Share { .. } => (0, 0, self.0.file_bytes().unwrap_or(0), None),
        }
    }
}

#[pymethods]
impl RawSplit {
    #[new]
    #[pyo3(signature = (opening, path, cut, *, rows=None, recorded=Vec::new(), known=None, own=Vec::new()))]
    fn new(
        opening: &RawOpening,
        path: PathBuf,
        cut: (u32, u64, u64),
        rows: Option<u64>,
        recorded: Vec<(u64, Vec<u8>)>,
        known: Option<Known>,
        own: Vec<(u64, Vec<u8>)>,
    ) -> Self {
        let (part, start, end) = cut;
        let file = SplitFile {
            path: to_text(path.as_os_str()),
            opening: opening.opening.clone(),
            known: known.map(|(len, modified, etag)| Identity { len, modified, etag }),
            recorded: Arc::new(owned(recorded)),
            fragment: None,
            source: None,
        };
        let part = Part::Cut(coldframe::Split { part, range: start..end, rows });
        Self(Split { file: Arc::new(file), part, own: owned(own) })
    }

    #[getter]
    fn path(&self) -> OsString {
        os_path(&self.0.file.path)
    }

    #[getter]
    fn format(&self) -> Option<&str> {
        self.0.file.opening.format.as_deref()
    }

    /// The part, start and stop of the split, and the number of rows if known.
    #[getter]
    fn cut(&self) -> (u32, u64, u64, Option<u64>) {
        self.cut_of()
    }

    /// The number of the share and the number of shares, if this is a share of the file's splits.
    #[getter]
    fn share(&self) -> Option<(u64, u64)> {
        match self.0.part {
            Part::Share { number, of, .. } => Some((number, of)),
            Part::Cut(_) => None,
        }
    }

    #[getter]
    fn known(&self) -> Option<Known> {
        self.0.file.known.clone().map(|known| (known.len, known.modified, known.etag))
    }

    #[getter]
    fn own<'py>(&self, py: Python<'py>) -> Vec<PyPiece<'py>> {
        pieces(py, self.0.own.clone())
    }

    #[getter]
    fn recorded<'py>(&self, py: Python<'py>) -> Vec<PyPiece<'py>> {
        pieces(py, self.0.file.recorded.to_vec())
    }

    /// How to open the file: storage options, whether checksums are verified, keys, options of the format.
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<PyArguments<'py>> {
        let opening = &self.0.file.opening;
        let keys = PyDict::new(py);
        for (name, key) in &opening.options.keys {
            keys.set_item(name, PyBytes::new(py, key))?;
        }
        let storage = texts(opening, &self.0.file.path);
        Ok((storage, !opening.options.skip_checksums, keys, self.options(py)?))
    }

    /// The options of the format with which the file is opened.
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = &self.0.file.opening.options;
        let dict = PyDict::new(py);
        match &options.schema {
            None => {}
            Some(SchemaSpec::Ddl(ddl)) => dict.set_item("schema", ddl)?,
            Some(SchemaSpec::Arrow(schema)) => {
                let schemas = py.import("pyarrow")?.getattr("Schema")?;
                let schema = schemas.call_method1("_import_from_c_capsule", (export_schema(py, schema)?,))?;
                dict.set_item("schema", schema)?;
            }
        }
        for (name, option) in &options.extra {
            dict.set_item(name, value::to_python(py, option)?)?;
        }
        Ok(dict)
    }

    /// The weight of this split when splits are packed together, in bytes; None for a part of a folder that is one table.
    #[getter]
    fn weight(&self) -> Option<u64> {
        match self.0.part {
            Part::Share { of, .. } => self.0.file_bytes().map(|len| len / of.max(1)),
            Part::Cut(_) => self.0.file_bytes(),
        }
    }

    /// Whether the split belongs to a table of many files and has the table's columns.
    #[getter]
    fn is_of_table(&self) -> bool {
        self.0.file.fragment.is_some()
    }

    /// The columns of the table.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = py.detach(|| self.0.output_schema()).map_err(to_python)?;
        export_schema(py, &schema)
    }

    /// The values of the partition columns, as a batch of one row.
    fn constants(&self) -> PyResult<RawBatch> {
        let constants =
            self.0.file.fragment.as_ref().map(|fragment| fragment.constants.clone()).unwrap_or_default();
        one_row(constants)
    }

    /// Opens the file; `alone`: whether it is opened only for the rows of this split.
    #[pyo3(signature = (*, alone=false))]
    fn open(&self, py: Python<'_>, alone: bool) -> PyResult<RawFile> {
        let own = if alone { self.0.own.clone() } else { Vec::new() };
        py.detach(|| self.0.file.open(&own)).map(RawFile).map_err(to_python)
    }

    /// If this split is a share of a file's splits, opens the file and returns the splits of that share;
    /// otherwise returns only this split.
    fn expand(&self, py: Python<'_>) -> PyResult<Vec<Self>> {
        let all = py.detach(|| self.0.cut()).map_err(to_python)?;
        Ok(all.into_iter().map(Self).collect())
    }

    #[pyo3(signature = (*, columns=None, predicate=None, batch_size=65536, on_error="raise", strings=None))]
    fn scan(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        predicate: Option<&PyPredicate>,
        batch_size: usize,
        on_error: &str,
        strings: Option<&str>,
    ) -> PyResult<RawTableRows> {
        let scan = Scan {
            columns,
            predicate: predicate.map(|p| p.0.clone()),
            batch_rows: batch_size,
            on_error: parse_on_error(on_error)?,
            strings: parse_strings(strings)?,
            ..Scan::default()
        };
        let rows = py.detach(|| self.0.read(&scan)).map_err(to_python)?;
        Ok(RawTableRows::new(rows, None))
    }

    /// Whether reading needs Python objects that the bytes do not contain: a file system, or a function that returns keys.
    #[getter]
    fn is_bound(&self) -> bool {
        let (file, opening) = (&self.0.file, &self.0.file.opening);
        opening.options.key_source.is_some() || opening.storage.options(&os_path(&file.path)).is_none()
    }

    /// Whether another process can open the file.
    #[getter]
    fn travels(&self) -> bool {
        self.0.file.source.is_none()
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.to_bytes()).map_err(to_python)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Compares the file, the options for opening it, the part, and the bytes recorded for the split.
    fn __eq__(&self, other: &Self) -> bool {
        let (this, other) = (&self.0, &other.0);
        let same_file = Arc::ptr_eq(&this.file, &other.file)
            || (this.file.path == other.file.path
                && this.file.known == other.file.known
                && this.file.recorded == other.file.recorded
                && format!("{:?}", this.file.opening) == format!("{:?}", other.file.opening));
        same_file && this.part == other.part && this.own == other.own
    }

    fn __hash__(&self) -> u64 {
        let (part, start, end, _) = self.cut_of();
        u64::from(part) ^ start.rotate_left(17) ^ end.rotate_left(31) ^ self.0.file.path.len() as u64
    }
}

pub(crate) fn one_row(columns: Vec<(String, arrow_array::ArrayRef)>) -> PyResult<RawBatch> {
    let field =
        |(name, array): &(String, arrow_array::ArrayRef)| Field::new(name, array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new_with_options(schema.into(), arrays, &options)
        .map(RawBatch)
        .map_err(|e| to_python(coldframe::arrow_error(e)))
}

/// Divides an open file into splits of about `split_bytes` bytes. `path` is the name of the file. If the file
/// is an object of this process, `source` is the object to open again.
#[pyfunction]
#[pyo3(signature = (file, split_bytes, opening, path, *, source=None))]
pub(crate) fn splits_of(
    py: Python<'_>,
    file: &RawFile,
    split_bytes: u64,
    opening: &RawOpening,
    path: PathBuf,
    source: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<RawSplit>> {
    let source =
        source.map(|object| crate::source::from_python(object, &BTreeMap::new(), None)).transpose()?;
    let format = Some(file.0.table.format().to_owned());
    let split_file = SplitFile {
        path: to_text(path.as_os_str()),
        opening: Arc::new(Opening { format, ..(*opening.opening).clone() }),
        known: file.0.identity.clone(),
        recorded: file.0.recorded.clone(),
        fragment: None,
        source,
    };
    let splits = py.detach(|| Split::of(split_file, &file.0, split_bytes));
    Ok(splits.map_err(to_python)?.into_iter().map(RawSplit).collect())
}

/// Serialises splits as one plan.
#[pyfunction]
pub(crate) fn plan_to_bytes<'py>(
    py: Python<'py>,
    splits: Vec<PyRef<'py, RawSplit>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let splits = splits.iter().map(|split| split.0.clone()).collect();
    let plan = Plan { schema: Arc::new(Schema::empty()), scan: Scan::default(), splits };
    let bytes = py.detach(|| plan.to_bytes()).map_err(to_python)?;
    Ok(PyBytes::new(py, &bytes))
}

/// The splits of a serialised plan. `storage_options`, `keys`: Python objects that the bytes cannot hold.
#[pyfunction]
#[pyo3(signature = (bytes, *, storage_options=None, keys=None))]
pub(crate) fn plan_from_bytes(
    py: Python<'_>,
    bytes: &[u8],
    storage_options: Option<&Bound<'_, PyAny>>,
    keys: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<RawSplit>> {
    let bound = bound(storage_options, keys)?;
    let plan = py.detach(|| Plan::from_bytes(bytes, &bound)).map_err(to_python)?;
    Ok(plan.splits.into_iter().map(RawSplit).collect())
}

/// The objects of this process for a plan or a definition.
pub(crate) fn bound(
    storage_options: Option<&Bound<'_, PyAny>>,
    keys: Option<&Bound<'_, PyAny>>,
) -> PyResult<PlanBound> {
    let keys = keys.filter(|keys| !keys.is_none()).map(crate::keys::from_python).transpose()?;
    let storage = Some(shared(PyStorage::new(storage_options)?));
    Ok(PlanBound { storage, keys: keys.and_then(|(_, source)| source) })
}

/// Groups consecutive parts of the given sizes into groups of about `target` bytes: returns the start and
/// stop of each group.
#[pyfunction]
#[pyo3(name = "pack")]
pub(crate) fn pack_sizes(sizes: Vec<u64>, target: u64) -> Vec<(usize, usize)> {
    pack(sizes, target).into_iter().map(|group| (group.start, group.end)).collect()
}

/// The storage options of an opening as text; empty if they are Python objects.
pub(crate) fn texts(opening: &Opening, path: &str) -> BTreeMap<String, String> {
    opening.storage.options(&os_path(path)).cloned().unwrap_or_default()
}
