//! Writes a file from anything that streams Arrow data.

use std::path::PathBuf;

use coldframe::WriteOptions;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::capsule::import_stream;
use crate::error::to_python;
use crate::file::tick;
use crate::value;

/// Writes a file atomically; returns its rows and bytes.
#[pyfunction]
#[pyo3(signature = (data, dest, *, format, options=None, progress=None))]
pub(crate) fn write<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    dest: PathBuf,
    format: &str,
    options: Option<&Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = WriteOptions { extra: value::options_from_python(options)? };
    let mut reader = import_stream(data)?;
    let written = py
        .detach(move || {
            coldframe::write_file(&mut reader, &dest, format, &options, |rows| tick(progress.as_ref(), rows))
        })
        .map_err(to_python)?;
    let dict = PyDict::new(py);
    dict.set_item("rows", written.rows)?;
    dict.set_item("bytes", written.bytes)?;
    Ok(dict)
}
