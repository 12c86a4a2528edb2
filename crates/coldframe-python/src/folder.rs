//! Folders of several tables.

use std::collections::BTreeMap;

use coldframe::{Format, OpenOptions, Result, Source};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::to_python;
use crate::file::{PyPiece, pieces};
use crate::{keys, source, value};

/// A folder, and the options to read it.
struct FolderRequest {
    source: Source,
    options: OpenOptions,
    format: String,
}

impl FolderRequest {
    fn new(
        path: &Bound<'_, PyAny>,
        format: &str,
        storage_options: Option<BTreeMap<String, String>>,
        verify_checksums: bool,
        keys: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (keys, key_source) = keys.map_or_else(|| Ok((BTreeMap::new(), None)), keys::from_python)?;
        let extra = value::options_from_python(options)?;
        let skip_checksums = !verify_checksums;
        let options = OpenOptions { skip_checksums, keys, key_source, extra, ..OpenOptions::default() };
        let source = source::from_python(path, &storage_options.unwrap_or_default(), None)?;
        Ok(Self { source, options, format: format.to_owned() })
    }

    /// Calls `question` with the format, without the GIL.
    fn ask<T: Send>(
        mut self,
        py: Python<'_>,
        question: impl FnOnce(&dyn Format, &Source, &OpenOptions) -> Result<T> + Send,
    ) -> PyResult<T> {
        let answer = py.detach(|| {
            self.options.take_common()?;
            question(coldframe::format_named(&self.format)?.as_ref(), &self.source, &self.options)
        });
        answer.map_err(|e| to_python(e.in_file(&**self.source.path())))
    }
}

/// The tables in a folder: for each, the value of the option `table` and the name.
#[pyfunction]
#[pyo3(signature = (path, *, format, storage_options=None, verify_checksums=true, keys=None))]
pub(crate) fn tables(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    format: &str,
    storage_options: Option<BTreeMap<String, String>>,
    verify_checksums: bool,
    keys: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<(String, String)>> {
    let request = FolderRequest::new(path, format, storage_options, verify_checksums, keys, None)?;
    request.ask(py, |format, source, options| format.tables(source, options))
}

/// Reads the data that all tables of a folder share, so that it is not read again for each table. The keys
/// are the values of the option `table`.
#[pyfunction]
#[pyo3(signature = (path, *, format, storage_options=None, verify_checksums=true, keys=None, options=None))]
pub(crate) fn shared_of_tables<'py>(
    py: Python<'py>,
    path: &Bound<'py, PyAny>,
    format: &str,
    storage_options: Option<BTreeMap<String, String>>,
    verify_checksums: bool,
    keys: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyAny>>,
) -> PyResult<BTreeMap<String, Vec<PyPiece<'py>>>> {
    let request = FolderRequest::new(path, format, storage_options, verify_checksums, keys, options)?;
    let shared = request.ask(py, |format, source, options| format.shared(source, options))?;
    Ok(shared.into_iter().map(|(table, recorded)| (table, pieces(py, recorded))).collect())
}

/// The files of a folder that belong to none of its tables: their paths below it, and their sizes.
#[pyfunction]
#[pyo3(signature = (path, *, format, storage_options=None, verify_checksums=true, keys=None))]
pub(crate) fn unclaimed(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    format: &str,
    storage_options: Option<BTreeMap<String, String>>,
    verify_checksums: bool,
    keys: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<(String, u64)>> {
    let request = FolderRequest::new(path, format, storage_options, verify_checksums, keys, None)?;
    let files = request.ask(py, |format, source, options| format.unclaimed(source, options))?;
    Ok(files.into_iter().map(|file| (file.path, file.len)).collect())
}

/// The contents of a source, each with whether a request with `options` reads all of it.
#[pyfunction]
#[pyo3(signature = (path, *, format, storage_options=None, verify_checksums=true, keys=None, options=None))]
pub(crate) fn contents<'py>(
    py: Python<'py>,
    path: &Bound<'py, PyAny>,
    format: &str,
    storage_options: Option<BTreeMap<String, String>>,
    verify_checksums: bool,
    keys: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let request = FolderRequest::new(path, format, storage_options, verify_checksums, keys, options)?;
    let contents = request.ask(py, |format, source, options| format.contents(source, options))?;
    let list = PyList::empty(py);
    for coldframe::Content { kind, of, name, visible, taken, count, unit, bytes, note } in contents {
        let dict = PyDict::new(py);
        dict.set_item("kind", kind)?;
        dict.set_item("of", of)?;
        dict.set_item("name", name)?;
        dict.set_item("visible", visible)?;
        dict.set_item("taken", taken)?;
        dict.set_item("count", count)?;
        dict.set_item("unit", unit)?;
        dict.set_item("bytes", bytes)?;
        dict.set_item("note", note)?;
        list.append(dict)?;
    }
    Ok(list)
}
