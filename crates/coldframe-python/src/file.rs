//! An open file.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use coldframe::{Ahead, File, OnError, Piece, Scan, Split, StoredDictionary, TableScan};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyTuple};

use crate::capsule::export_schema;
use crate::error::{from_python as foreign, to_python};
use crate::fingerprint::RawWitness;
use crate::notice::kind_and_text;
use crate::opening::RawOpening;
use crate::predicate::PyPredicate;
use crate::scan::{RawBatch, RawScan};
use crate::strings::parse_strings;
use crate::{printed, value};

/// A split: part, start, end.
type SplitRange = (u32, u64, u64);
/// Recorded data: an offset or a number, and bytes.
pub(crate) type PyPiece<'py> = (u64, Bound<'py, PyBytes>);
/// A planned unit: structure, offset, length, rows if known, bytes to read.
type PlannedUnit = (String, u64, u64, Option<u64>, u64);

/// Opens a file of any format.
#[pyfunction]
#[pyo3(signature = (opening, source, *, storage_options=None, recorded=None, known=None))]
pub(crate) fn open_file(
    py: Python<'_>,
    opening: &RawOpening,
    source: &Bound<'_, PyAny>,
    storage_options: Option<BTreeMap<String, String>>,
    recorded: Option<Vec<(u64, Vec<u8>)>>,
    known: Option<crate::store::Known>,
) -> PyResult<RawFile> {
    let source = crate::source::from_python(source, &storage_options.unwrap_or_default(), known)?;
    let recorded = recorded.unwrap_or_default().into_iter().map(|(o, b)| (o, b.into())).collect();
    py.detach(|| opening.opening.open(source, recorded)).map(RawFile).map_err(to_python)
}

/// An open file.
#[pyclass(module = "coldframe._coldframe", frozen)]
pub(crate) struct RawFile(pub(crate) File);

#[pymethods]
impl RawFile {
    #[getter]
    fn format(&self) -> &'static str {
        self.0.table.format()
    }

    #[getter]
    fn path(&self) -> &str {
        &self.0.path
    }

    /// The identity of the file's content, for `known` of `open_file`.
    #[getter]
    fn identity(&self) -> Option<crate::store::Known> {
        self.0.identity.clone().map(|known| (known.len, known.modified, known.etag))
    }

    /// The maximum number of threads of a scan, if set when the file was opened.
    #[getter]
    fn threads(&self) -> Option<usize> {
        self.0.threads
    }

    /// Notices for the user: each a kind and a text.
    fn notices(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, String)>> {
        let notices = py.detach(|| self.0.table.notices()).map_err(|e| self.raise(e))?;
        Ok(notices.into_iter().map(kind_and_text).collect())
    }

    /// Notices that only reading a part of the table gives.
    fn notices_by_reading(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, String)>> {
        let notices = py.detach(|| self.0.table.notices_by_reading()).map_err(|e| self.raise(e))?;
        Ok(notices.into_iter().map(kind_and_text).collect())
    }

    #[getter]
    fn has_placeholder_names(&self) -> bool {
        self.0.table.has_placeholder_names()
    }

    #[getter]
    fn num_rows(&self) -> Option<u64> {
        self.0.table.row_count()
    }

    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let metadata = py.detach(|| self.0.table.metadata()).map_err(|e| self.raise(e))?;
        value::to_python(py, &metadata)
    }

    fn proposal<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let proposal = py.detach(|| self.0.table.proposal()).map_err(|e| self.raise(e))?;
        proposal.map(|proposal| value::to_python(py, &proposal)).transpose()
    }

    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let statistics = py.detach(|| self.0.table.statistics()).map_err(|e| self.raise(e))?;
        value::to_python(py, &statistics)
    }

    fn stated<'py>(&self, py: Python<'py>, split: SplitRange) -> PyResult<Bound<'py, PyAny>> {
        let (part, start, end) = split;
        let split = Split { part, range: start..end, rows: None };
        let stated = py.detach(|| self.0.table.split_statistics(&split)).map_err(|e| self.raise(e))?;
        value::to_python(py, &stated)
    }

    fn witness(&self, py: Python<'_>, split: SplitRange) -> PyResult<RawWitness> {
        let (part, start, end) = split;
        let split = Split { part, range: start..end, rows: None };
        let stated = py.detach(|| self.0.table.column_summaries(&split)).map_err(|e| self.raise(e))?;
        Ok(RawWitness(coldframe_migrate::FileStatistics::new(stated)))
    }

    fn inspect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tree = py.detach(|| self.0.table.inspect()).map_err(|e| self.raise(e))?;
        value::node_to_python(py, &tree)
    }

    fn recorded<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.0.recorded.iter().map(|(offset, bytes)| (*offset, PyBytes::new(py, bytes))))
    }

    /// The split of a byte range.
    fn byte_split(&self, py: Python<'_>, start: u64, end: u64) -> PyResult<SplitRange> {
        let split = py.detach(|| self.0.table.byte_split(start..end)).map_err(|e| self.raise(e))?;
        Ok((split.part, split.range.start, split.range.end))
    }

    /// Whether some rows of damaged files are doubtful.
    #[getter]
    fn has_doubtful_rows(&self) -> bool {
        self.0.table.has_doubtful_rows()
    }

    /// If `prune` is false, nothing is skipped by statistics, indexes or bloom filters; the rows are the
    /// same. `doubtful` returns only the doubtful rows that `skip` leaves out.
    #[pyo3(signature = (*, columns=None, predicate=None, limit=None, batch_size=65536, split=None, on_error="raise",
        threads=None, read_ahead=false, prune=true, strings=None, doubtful=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keyword arguments")]
    fn scan(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        predicate: Option<&PyPredicate>,
        limit: Option<u64>,
        batch_size: usize,
        split: Option<SplitRange>,
        on_error: &str,
        threads: Option<usize>,
        read_ahead: bool,
        prune: bool,
        strings: Option<&str>,
        doubtful: bool,
    ) -> PyResult<RawScan> {
        let scan = Scan {
            columns,
            predicate: predicate.map(|p| p.0.clone()),
            limit,
            batch_rows: batch_size,
            on_error: parse_on_error(on_error)?,
            doubtful,
            prune,
            threads: threads.or(self.0.threads).unwrap_or_else(coldframe::threads::all),
            strings: parse_strings(strings)?,
        };
        let made = py.detach(|| match split {
            Some((part, start, end)) => {
                let split = Split { part, range: start..end, rows: None };
                TableScan::try_new(self.0.clone(), scan, vec![split])
            }
            None if read_ahead && scan.threads > 1 => {
                let ahead = Ahead::for_threads(scan.threads);
                TableScan::try_new_parallel(self.0.clone(), scan, ahead)
            }
            None => TableScan::try_new(self.0.clone(), scan, self.0.whole()?),
        });
        made.map(RawScan::new).map_err(|e| self.raise(e))
    }

    /// The units that a scan would read, as (structure, offset, length, rows, bytes fetched).
    #[pyo3(signature = (*, columns=None, predicate=None))]
    fn units(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        predicate: Option<&PyPredicate>,
    ) -> PyResult<Vec<PlannedUnit>> {
        let scan = Scan { columns, predicate: predicate.map(|p| p.0.clone()), ..Scan::default() };
        let mut units = Vec::new();
        let listed = py.detach(|| {
            coldframe::scan::units(self.0.table.as_ref(), &scan, |unit| {
                let length = unit.bytes.end.saturating_sub(unit.bytes.start);
                units.push((unit.structure, unit.bytes.start, length, unit.rows, unit.fetched));
                Ok(())
            })
        });
        listed.map(|()| units).map_err(|e| self.raise(e))
    }

    #[pyo3(signature = (predicate=None))]
    fn count(&self, py: Python<'_>, predicate: Option<&PyPredicate>) -> PyResult<u64> {
        let predicate = predicate.map(|p| p.0.clone());
        py.detach(|| coldframe::scan::count(self.0.table.as_ref(), predicate)).map_err(|e| self.raise(e))
    }

    #[pyo3(signature = (progress=None))]
    fn verify<'py>(&self, py: Python<'py>, progress: Option<Py<PyAny>>) -> PyResult<Bound<'py, PyDict>> {
        let report = py.detach(|| self.0.verify(|rows| tick(progress.as_ref(), rows))).map_err(to_python)?;
        let dict = PyDict::new(py);
        dict.set_item("rows", report.rows)?;
        dict.set_item("units", report.units)?;
        dict.set_item("damage", value::damage_to_python(py, &report.damage)?)?;
        dict.set_item("checksums", report.proof.checksums.name())?;
        dict.set_item("checked", report.proof.text())?;
        Ok(dict)
    }

    #[pyo3(signature = (progress=None))]
    fn lengths<'py>(&self, py: Python<'py>, progress: Option<Py<PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let mut progressed = |rows| tick(progress.as_ref(), rows);
        let lengths = py.detach(|| self.0.table.lengths(&mut progressed)).map_err(|e| self.raise(e))?;
        value::to_python(py, &lengths)
    }

    /// Calls `with` with the part, start, end and values (a batch) of each dictionary of a column.
    fn dictionaries(&self, py: Python<'_>, column: &str, with: Py<PyAny>) -> PyResult<()> {
        let mut pass_on = |dictionary: StoredDictionary| {
            let batch =
                RecordBatch::try_from_iter([("value", dictionary.values)]).map_err(coldframe::arrow_error)?;
            let arguments = (dictionary.part, dictionary.bytes.start, dictionary.bytes.end, RawBatch(batch));
            Python::attach(|py| with.call1(py, arguments).map(drop)).map_err(foreign)
        };
        py.detach(|| self.0.table.dictionaries(column, &mut pass_on)).map_err(|e| self.raise(e))
    }

    /// The names of its columns, which also exist where Arrow's interface cannot pass on their types.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.0.schema())
    }

    /// Each column's name, its type in pyarrow's notation, and whether it may be null; `None` if only pyarrow can say
    /// so.
    fn printed_columns(&self) -> Option<Vec<(String, String, bool)>> {
        printed::columns(self.0.schema().fields())
    }
}

pub(crate) fn pieces(py: Python<'_>, recorded: Vec<Piece>) -> Vec<PyPiece<'_>> {
    recorded.into_iter().map(|(number, bytes)| (number, PyBytes::new(py, &bytes))).collect()
}

impl RawFile {
    pub(crate) fn raise(&self, e: coldframe::Error) -> PyErr {
        to_python(self.0.named(e))
    }

    /// Warns of what look-ups met.
    pub(crate) fn warn(&self, py: Python<'_>) -> PyResult<()> {
        let named = |notice| (self.0.path.to_string(), notice);
        crate::rows::warn_of(py, self.0.table.take_notices().into_iter().map(named).collect())
    }
}

/// Reports the progress of a long call to Python, which may stop the call.
pub(crate) fn tick(progress: Option<&Py<PyAny>>, rows: u64) -> coldframe::Result<()> {
    Python::attach(|py| {
        py.check_signals()?;
        match progress {
            Some(callback) => callback.call1(py, PyTuple::new(py, [rows])?).map(drop),
            None => Ok(()),
        }
    })
    .map_err(foreign)
}

pub(crate) fn parse_on_error(on_error: &str) -> PyResult<OnError> {
    match on_error {
        "raise" => Ok(OnError::Raise),
        "skip" => Ok(OnError::Skip),
        "null" => Ok(OnError::Null),
        other => Err(PyValueError::new_err(format!(
            "on_error: expected \"raise\", \"skip\" or \"null\", found {other:?}"
        ))),
    }
}
