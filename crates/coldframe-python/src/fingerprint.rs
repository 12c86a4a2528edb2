//! Fingerprints of batches and of written files, for the migration.

use std::sync::{Mutex, MutexGuard, PoisonError};

use coldframe_migrate::{
    ColumnFingerprint, Extreme, FileStatistics, Fingerprint, Observed, ObservedColumn, row_hashes,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::capsule::{import_batch, import_schema};
use crate::error::to_python;

/// The fingerprint of the rows added so far.
#[pyclass(frozen, module = "coldframe._coldframe")]
pub(crate) struct RawFingerprint(Mutex<Fingerprint>);

impl RawFingerprint {
    pub(crate) fn of(print: Fingerprint) -> Self {
        Self(Mutex::new(print))
    }

    fn get(&self) -> MutexGuard<'_, Fingerprint> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl RawFingerprint {
    #[new]
    #[pyo3(signature = (target, *, rows_only=false))]
    fn new(target: &Bound<'_, PyAny>, rows_only: bool) -> PyResult<Self> {
        let target = import_schema(target)?;
        Ok(Self::of(if rows_only { Fingerprint::of_rows(target) } else { Fingerprint::new(target) }))
    }

    fn add(&self, py: Python<'_>, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        let batch = import_batch(batch)?;
        py.detach(|| self.get().add(&batch)).map_err(to_python)
    }

    /// Adds the rows of another fingerprint.
    fn join(&self, other: &Self) -> PyResult<()> {
        // The locks are taken one after another, since both may be the same object.
        let more = other.get().clone();
        self.get().join(&more).map_err(to_python)
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.get().rows()
    }

    /// The differences to the fingerprint of the written rows.
    fn differences(&self, written: &Self) -> Vec<String> {
        // The two locks are taken one after the other, since both may be the same object.
        let other = written.get().clone();
        self.get().differences(&other)
    }

    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let print = self.get();
        let (whole, columns) = (PyDict::new(py), PyDict::new(py));
        for (name, column) in print.columns() {
            columns.set_item(name, described(py, column)?)?;
        }
        whole.set_item("rows", print.rows())?;
        whole.set_item("row_checksum", print.checksum())?;
        whole.set_item("columns", columns)?;
        Ok(whole)
    }
}

/// Statistics of decoded columns, in the form that files store.
#[pyclass(frozen, module = "coldframe._coldframe")]
pub(crate) struct RawObserved(Mutex<Observed>);

impl RawObserved {
    pub(crate) fn of(observed: Observed) -> Self {
        Self(Mutex::new(observed))
    }

    fn get(&self) -> MutexGuard<'_, Observed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl RawObserved {
    #[new]
    fn new(names: Vec<String>) -> Self {
        Self(Mutex::new(Observed::new(names)))
    }

    fn add(&self, py: Python<'_>, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        let batch = import_batch(batch)?;
        py.detach(|| self.get().add(&batch)).map_err(to_python)
    }

    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (name, seen) in self.get().columns() {
            columns.set_item(name, observed(py, seen)?)?;
        }
        Ok(columns)
    }
}

fn observed<'py>(py: Python<'py>, seen: &ObservedColumn) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let (smallest, largest) = seen.ends.as_ref().map(|(low, high)| (low, high)).unzip();
    let number = |end: &Extreme| match end {
        // JSON has no infinities, so they become text.
        Extreme::Float(value) => Ok(value.into_pyobject(py)?.into_any()),
        other => json(py, other),
    };
    dict.set_item("values", seen.values)?;
    dict.set_item("smallest", smallest.map(number).transpose()?)?;
    dict.set_item("largest", largest.map(number).transpose()?)?;
    dict.set_item("has_nan", seen.has_nan)?;
    dict.set_item("sum", seen.sum)?;
    dict.set_item("bytes", seen.bytes)?;
    dict.set_item("trues", seen.trues)?;
    Ok(dict)
}

/// The statistics that a file stores of its columns, with which the statistics of the decoded values are
/// compared.
#[pyclass(frozen, module = "coldframe._coldframe")]
pub(crate) struct RawWitness(pub(crate) FileStatistics);

#[pymethods]
impl RawWitness {
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0.names().collect()
    }

    fn differences(&self, observed: &RawObserved) -> Vec<String> {
        self.0.differences(&observed.get())
    }
}

/// The hash of each row as 64-bit words, little-endian.
#[pyfunction]
pub(crate) fn hash_rows<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
    target: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (batch, target) = (import_batch(batch)?, import_schema(target)?);
    let hashes = py.detach(|| row_hashes(&batch, &target)).map_err(to_python)?;
    let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
    Ok(PyBytes::new(py, &bytes))
}

fn described<'py>(py: Python<'py>, column: &ColumnFingerprint) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let (smallest, largest) = column.extremes.as_ref().map(|(low, high)| (low, high)).unzip();
    dict.set_item("nulls", column.nulls)?;
    if let Some(nans) = column.nans {
        dict.set_item("nans", nans)?;
    }
    dict.set_item("min", smallest.map(|end| json(py, end)).transpose()?)?;
    dict.set_item("max", largest.map(|end| json(py, end)).transpose()?)?;
    dict.set_item("checksum", column.checksum())?;
    Ok(dict)
}

/// A value as JSON: infinities and decimals are text, bytes are hexadecimal digits.
fn json<'py>(py: Python<'py>, end: &Extreme) -> PyResult<Bound<'py, PyAny>> {
    match end {
        Extreme::Bool(value) => Ok(value.into_pyobject(py)?.to_owned().into_any()),
        Extreme::Whole(value) => Ok(value.into_pyobject(py)?.into_any()),
        Extreme::Float(value) if value.is_finite() => Ok(value.into_pyobject(py)?.into_any()),
        other => Ok(other.to_string().into_pyobject(py)?.into_any()),
    }
}
