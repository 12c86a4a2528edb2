//! Writes files from any Arrow stream.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use coldframe::dataset::partition;
use coldframe::store::{Mode, from_text, to_text};
use coldframe::{Dest, Error, WriteOptions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

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

/// Writes the rows below a store's root, in a folder for each combination of values of the columns `keys`. Returns the
/// files: path below the root, rows, bytes.
#[pyfunction]
#[pyo3(signature = (data, root, keys, *, format, options=None, progress=None))]
pub(crate) fn write_partitioned(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    root: &PyStore,
    keys: Vec<String>,
    format: &str,
    options: Option<&Bound<'_, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<(String, u64, u64)>> {
    let options = WriteOptions { extra: value::options_from_python(options)? };
    let (mut reader, root) = (import_stream(data)?, root.0.clone());
    let tick = |rows| tick(progress.as_ref(), rows);
    let files = py.detach(|| coldframe::write_partitioned(&mut reader, &root, &keys, format, &options, tick));
    let files = files.map_err(to_python)?.into_iter();
    Ok(files.map(|(path, written)| (path, written.rows, written.bytes)).collect())
}

/// A name as Hive writes it in the name of a folder.
#[pyfunction]
pub(crate) fn escaped(name: &Bound<'_, PyString>) -> PyResult<OsString> {
    Ok(from_text(&partition::escaped(&name_of(name)?)))
}

/// The folders of a partition.
#[pyfunction]
pub(crate) fn folder_of(names: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>) -> PyResult<OsString> {
    let texts = |given: &Bound<'_, PyAny>| -> PyResult<Vec<String>> {
        given.try_iter()?.map(|text| name_of(text?.cast::<PyString>()?)).collect()
    };
    let (names, values) = (texts(names)?, texts(values)?);
    let pairs = names.iter().map(String::as_str).zip(values.iter().map(String::as_str));
    Ok(from_text(&partition::folder_of(pairs)))
}

/// The text form of a name, whose bytes need not be UTF-8.
fn name_of(name: &Bound<'_, PyString>) -> PyResult<String> {
    let what = "the name of a folder: expected characters, found half of a surrogate pair";
    let name: OsString = name.extract().map_err(|_| to_python(Error::schema(what)))?;
    Ok(to_text(&name))
}
