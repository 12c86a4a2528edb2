//! Reads rows once, as an iterator of batches or as a C stream.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::{RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, SchemaRef};
use coldframe::{Change, DamageLog, PassedOver, TableScan};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};

use crate::capsule::{export_array, export_schema, export_stream};
use crate::error::{ColdframeError, from_python as foreign, to_python};
use crate::{printed, value};

/// Rows that are read once, until a C stream takes them over or the pass is closed.
pub(crate) struct Pass<R> {
    rows: Mutex<Option<R>>,
    schema: SchemaRef,
}

impl<R: RecordBatchReader + Send + 'static> Pass<R> {
    pub(crate) fn new(schema: SchemaRef, rows: R) -> Self {
        Self { rows: Mutex::new(Some(rows)), schema }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<R>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next batch. Errors keep their type here; a C stream passes on only their message.
    pub(crate) fn next_batch(
        &self,
        py: Python<'_>,
        next: impl FnOnce(&mut R) -> coldframe::Result<Option<RecordBatch>> + Send,
    ) -> PyResult<Option<RawBatch>> {
        py.check_signals()?;
        let batch = py.detach(|| self.lock().as_mut().map_or(Ok(None), next));
        batch.map(|batch| batch.map(RawBatch)).map_err(to_python)
    }

    /// Takes the rows out of the pass.
    pub(crate) fn take(&self) -> PyResult<R> {
        let rows = self.lock().take();
        rows.ok_or_else(|| ColdframeError::new_err("this scan was consumed; start a new one"))
    }

    pub(crate) fn export_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.schema)
    }

    pub(crate) fn export_stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_stream(py, Box::new(Interruptible(self.take()?)))
    }

    /// Drops batches that were read ahead.
    pub(crate) fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.lock().take()));
    }
}

/// Reads the rows of a file once.
#[pyclass(module = "coldframe._coldframe", frozen)]
pub(crate) struct RawScan {
    pass: Pass<TableScan>,
    damage: DamageLog,
}

impl RawScan {
    pub(crate) fn new(scan: TableScan) -> Self {
        let damage = scan.damage().clone();
        Self { pass: Pass::new(scan.schema(), scan), damage }
    }

    /// Takes the scan out of the pass.
    pub(crate) fn take(&self) -> PyResult<TableScan> {
        self.pass.take()
    }
}

#[pymethods]
impl RawScan {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RawBatch>> {
        self.pass.next_batch(py, TableScan::next_batch)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.pass.export_schema(py)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema); // it was applied when the scan was made
        self.pass.export_stream(py)
    }

    /// How many values the request skipped, by kind, in the rows read so far.
    fn passed_over(&self) -> BTreeMap<&'static str, u64> {
        let counted = PassedOver::ALL.map(|kind| (kind.name(), self.damage.passed_over(kind)));
        counted.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// How many values were changed, by kind of change, in the rows read so far.
    fn changes(&self) -> BTreeMap<&'static str, u64> {
        let counted = Change::ALL.map(|change| (change.name(), self.damage.changes().count(change)));
        counted.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// Takes what the user should know of the rows read so far: the kind of each note, and its text.
    fn take_notices(&self) -> Vec<(&'static str, String)> {
        self.damage.take_notices().into_iter().map(crate::notice::kind_and_text).collect()
    }

    fn damage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        value::damage_to_python(py, &self.damage.records())
    }
}

/// A batch to export.
#[pyclass(module = "coldframe._coldframe", frozen)]
pub(crate) struct RawBatch(pub(crate) RecordBatch);

#[pymethods]
impl RawBatch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    /// The values of each column, as the command line prints them; `None` if only pyarrow can do so.
    fn printed<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Vec<Bound<'py, PyAny>>>>> {
        self.0.columns().iter().map(|column| printed::values(py, column)).collect()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        drop(requested_schema); // this is only a request; the consumer casts the batch
        let columns = self.0.columns().to_vec();
        let fields = self.0.schema().fields().clone();
        let batch = StructArray::try_new_with_length(fields, columns, None, self.0.num_rows())
            .map_err(|e| to_python(coldframe::arrow_error(e)))?;
        export_array(py, &batch)
    }
}

/// A scan that the user can end with Ctrl-C between batches. If the consumer of the stream holds the GIL, the
/// scan also lets other Python threads run, including threads for which it waits.
pub(crate) struct Interruptible<R>(pub(crate) R);

impl<R: RecordBatchReader + Send> Iterator for Interruptible<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = Python::attach(|py| {
            py.check_signals()?;
            Ok(py.detach(|| self.0.next()))
        });
        next.unwrap_or_else(|e: PyErr| Some(Err(ArrowError::ExternalError(Box::new(foreign(e))))))
    }
}

impl<R: RecordBatchReader + Send> RecordBatchReader for Interruptible<R> {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}
