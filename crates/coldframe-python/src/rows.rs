//! Reads the rows of a table's files once.

use arrow_array::RecordBatchReader;
use coldframe::Notice;
use coldframe::dataset::storage::os_path;
use coldframe::dataset::{Dataset, FileDamage, Rows};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::scan::{Pass, RawBatch};
use crate::value;

/// Reads the rows once.
#[pyclass(module = "coldframe._coldframe", frozen)]
pub(crate) struct RawTableRows {
    pass: Pass<Rows>,
    /// The dataset whose files the scan opens.
    dataset: Option<Dataset>,
}

impl RawTableRows {
    pub(crate) fn new(rows: Rows, dataset: Option<Dataset>) -> Self {
        Self { pass: Pass::new(rows.schema(), rows), dataset }
    }
}

#[pymethods]
impl RawTableRows {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RawBatch>> {
        let next = self.pass.next_batch(py, Rows::next_batch);
        if let Some(dataset) = &self.dataset {
            warn(py, dataset)?;
        }
        let notices = self.pass.lock().as_mut().map(Rows::take_notices).unwrap_or_default();
        warn_of(py, notices)?;
        next
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

    /// The damage so far, with the paths of the files.
    fn damage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let damage = self.pass.lock().as_ref().map(Rows::damage).unwrap_or_default();
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
        self.pass.close(py);
    }
}

/// Warns of problems in the opened files that users should know about.
pub(crate) fn warn(py: Python<'_>, dataset: &Dataset) -> PyResult<()> {
    warn_of(py, dataset.take_notices())
}

/// Warns of notices about files.
pub(crate) fn warn_of(py: Python<'_>, notices: Vec<(String, Notice)>) -> PyResult<()> {
    for (path, notice) in notices {
        let (kind, text) = crate::notice::kind_and_text(notice);
        py.import("coldframe.errors")?.call_method1("warn", (os_path(&path), kind, text))?;
    }
    Ok(())
}
