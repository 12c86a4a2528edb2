//! One pass over the rows of a table's files.

use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatchReader;
use arrow_schema::SchemaRef;
use coldframe::dataset::storage::os_path;
use coldframe::dataset::{Dataset, FileDamage, Rows};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::capsule::{export_schema, export_stream};
use crate::error::{ColdframeError, to_python};
use crate::scan::{Interruptible, RawBatch};
use crate::value;

/// One pass over the rows.
#[pyclass(module = "coldframe._coldframe", frozen)]
pub(crate) struct RawTableRows {
    rows: Mutex<Option<Rows>>,
    schema: SchemaRef,
    /// The dataset whose files the scan opens.
    dataset: Option<Dataset>,
}

impl RawTableRows {
    pub(crate) fn new(rows: Rows, dataset: Option<Dataset>) -> Self {
        Self { schema: rows.schema(), rows: Mutex::new(Some(rows)), dataset }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Rows>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl RawTableRows {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// The next batch. Errors keep their type here; through a C stream only their message survives.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RawBatch>> {
        py.check_signals()?;
        let next = py.detach(|| match self.lock().as_mut() {
            Some(rows) => rows.next_batch(),
            None => Ok(None),
        });
        if let Some(dataset) = &self.dataset {
            warn(py, dataset)?;
        }
        next.map(|batch| batch.map(RawBatch)).map_err(to_python)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema); // heard when the scan was made
        let rows = self.lock().take();
        let rows = rows.ok_or_else(|| ColdframeError::new_err("this scan was consumed; start a new one"))?;
        export_stream(py, Box::new(Interruptible(rows)))
    }

    /// The damage so far, with the paths of the files.
    fn damage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let damage = self.lock().as_ref().map(Rows::damage).unwrap_or_default();
        let list = PyList::empty(py);
        for FileDamage { path, damage } in damage {
            let dict = PyDict::new(py);
            dict.set_item("path", os_path(&path))?;
            for record in value::damage_to_python(py, &[damage])?.iter() {
                dict.update(record.cast()?)?;
            }
            list.append(dict)?;
        }
        Ok(list)
    }

    /// Drops batches that were read ahead.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.lock().take()));
    }
}

/// Warns of problems in the opened files that users should know about.
pub(crate) fn warn(py: Python<'_>, dataset: &Dataset) -> PyResult<()> {
    for (path, notice) in dataset.take_notices() {
        let (kind, text) = crate::file::told(notice);
        py.import("coldframe.file")?.call_method1("tell", (os_path(&path), kind, text))?;
    }
    Ok(())
}
