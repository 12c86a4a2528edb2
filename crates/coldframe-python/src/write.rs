//! Writes a file from any Arrow stream.

use std::collections::BTreeMap;
use std::path::PathBuf;

use coldframe::store::Mode;
use coldframe::{Dest, WriteOptions};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::capsule::import_stream;
use crate::error::to_python;
use crate::file::tick;
use crate::store::PyStore;
use crate::value;

/// Writes a file atomically; returns its rows and bytes.
#[pyfunction]
#[pyo3(signature = (data, dest, *, format, options=None, progress=None, storage_options=None, new=false))]
#[expect(clippy::too_many_arguments, reason = "they are keyword arguments")]
pub(crate) fn write<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    dest: &Bound<'_, PyAny>,
    format: &str,
    options: Option<&Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
    storage_options: Option<BTreeMap<String, String>>,
    new: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let options = WriteOptions { extra: value::options_from_python(options)? };
    let mut reader = import_stream(data)?;
    let mode = if new { Mode::New } else { Mode::Over };
    let dest = match dest.cast::<PyStore>() {
        Ok(store) => Dest::below(&store.get().0, "", mode),
        Err(_) => Dest::new(dest.extract::<PathBuf>()?, &storage_options.unwrap_or_default(), mode),
    }
    .map_err(to_python)?;
    let written = py
        .detach(move || {
            coldframe::write_file(&mut reader, &dest, format, &options, |rows| tick(progress.as_ref(), rows))
        })
        .map_err(to_python)?;
    let dict = PyDict::new(py);
    dict.set_item("rows", written.rows)?;
    dict.set_item("bytes", written.bytes)?;
    if let Some(etag) = written.etag {
        dict.set_item("etag", etag)?;
    }
    Ok(dict)
}
