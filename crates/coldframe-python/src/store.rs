//! Lists, reads and writes files below a path or URL for Python.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coldframe::store::{Identity, Listing, Mode, OPTIONS, Stat, Store, StoreOption, Upload, shown, shown_in};
use coldframe::{Error, ReadAt, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyString};

use crate::error::to_python;
use crate::filesystem::PyFiles;

/// The URL schemes that are read without a Python file system.
#[pyfunction]
pub(crate) fn store_schemes() -> Vec<&'static str> {
    coldframe::store::schemes()
}

/// The options of stores: name, the kinds of stores that accept it, other names, help.
#[pyfunction]
pub(crate) fn store_options() -> Vec<(&'static str, Vec<String>, Vec<&'static str>, &'static str)> {
    let kinds =
        |option: &StoreOption| option.of.iter().map(|kind| format!("{kind:?}").to_lowercase()).collect();
    OPTIONS.iter().map(|option| (option.name, kinds(option), option.aliases.to_vec(), option.help)).collect()
}

/// The options of a path's or URL's store, from `storage_options` and the environment, under their main
/// names. Their purpose is to configure other libraries. These options contain secrets.
#[pyfunction]
#[pyo3(signature = (url, storage_options=None))]
pub(crate) fn resolved_options(
    py: Python<'_>,
    url: PathBuf,
    storage_options: Option<BTreeMap<String, String>>,
) -> PyResult<BTreeMap<String, String>> {
    let options = storage_options.unwrap_or_default();
    py.detach(|| coldframe::store::resolved_options(url.as_os_str(), &options)).map_err(to_python)
}

/// A path or URL as people may see it: without passwords, and without a query, which may be a signature.
#[pyfunction]
#[pyo3(name = "shown")]
pub(crate) fn shown_path<'py>(path: &Bound<'py, PyString>) -> Bound<'py, PyString> {
    without_secrets(path, shown)
}

/// A text with each URL in it as `shown` has it.
#[pyfunction]
#[pyo3(name = "shown_in")]
pub(crate) fn shown_text<'py>(text: &Bound<'py, PyString>) -> Bound<'py, PyString> {
    without_secrets(text, shown_in)
}

/// A text that is no URL is returned as it is, since it need not be UTF-8.
fn without_secrets<'py>(
    text: &Bound<'py, PyString>,
    remove: impl Fn(&str) -> String,
) -> Bound<'py, PyString> {
    let plain = text.to_string_lossy();
    if plain.contains("://") { PyString::new(text.py(), &remove(&plain)) } else { text.clone() }
}

/// The number of entries passed to Python at once.
const AT_ONCE: usize = 1000;

/// Length, modification time in ms, and etag of a known file.
pub(crate) type Known = (u64, Option<i64>, Option<String>);

/// The files below a path or URL.
#[pyclass(module = "coldframe._coldframe", name = "Store", frozen)]
pub(crate) struct PyStore(pub(crate) Store);

/// A file or folder.
#[pyclass(module = "coldframe._coldframe", name = "StoreEntry", frozen, get_all)]
pub(crate) struct PyEntry {
    path: OsString,
    size: u64,
    is_folder: bool,
    modified: Option<i64>,
    etag: Option<String>,
}

impl PyEntry {
    fn new(store: &Store, stat: Stat) -> Self {
        let Stat { path, len, is_folder, modified, etag } = stat;
        Self { path: store.os_path(&path), size: len, is_folder, modified, etag }
    }
}

#[pymethods]
impl PyEntry {
    /// The value for `known` of `open_file` and `detect`.
    #[getter]
    fn identity(&self) -> Known {
        (self.size, self.modified, self.etag.clone())
    }

    fn __repr__(&self) -> String {
        let kind = if self.is_folder { "folder" } else { "file" };
        format!("<{kind} {:?}, {} bytes>", self.path, self.size)
    }
}

/// The entries of a listing, in lists, as they arrive.
#[pyclass(module = "coldframe._coldframe", name = "StoreListing", frozen)]
pub(crate) struct PyListing {
    store: Store,
    entries: Mutex<Listing>,
}

#[pymethods]
impl PyListing {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Vec<PyEntry>>> {
        py.check_signals()?;
        let next = || -> Result<Vec<PyEntry>> {
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.by_ref().take(AT_ONCE).map(|stat| Ok(PyEntry::new(&self.store, stat?))).collect()
        };
        let next = py.detach(next).map_err(to_python)?;
        Ok((!next.is_empty()).then_some(next))
    }
}

/// A file written through Python; the file appears when it is finished.
#[pyclass(module = "coldframe._coldframe", name = "StoreUpload", frozen)]
pub(crate) struct PyUpload {
    store: Store,
    upload: Mutex<Option<Box<dyn Upload>>>,
    written: AtomicU64,
}

impl PyUpload {
    fn slot(&self) -> MutexGuard<'_, Option<Box<dyn Upload>>> {
        self.upload.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyUpload {
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        // pyarrow may pass one of its own buffers instead of bytes.
        let data: PyBackedBytes = match data.extract() {
            Ok(data) => data,
            Err(_) => py.get_type::<PyBytes>().call1((data,))?.extract()?,
        };
        let written = py.detach(|| match self.slot().as_mut() {
            Some(upload) => upload.write_all(&data).map_err(Error::from),
            None => Err(Error::invalid("the file is already finished; nothing can be added")),
        });
        written.map_err(to_python)?;
        self.written.fetch_add(data.len() as u64, Ordering::Relaxed);
        Ok(data.len())
    }

    fn tell(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn flush(&self) {}

    fn writable(&self) -> bool {
        true
    }

    fn readable(&self) -> bool {
        false
    }

    fn seekable(&self) -> bool {
        false
    }

    #[getter]
    fn closed(&self) -> bool {
        self.slot().is_none()
    }

    fn finish(&self, py: Python<'_>) -> PyResult<PyEntry> {
        let finished = py.detach(|| match self.slot().take() {
            Some(upload) => upload.finish().map_err(|e| e.in_file(self.store.url())),
            None => Err(Error::invalid("the file is already finished")),
        });
        finished.map(|stat| PyEntry::new(&self.store, stat)).map_err(to_python)
    }

    /// Discards the file. The call has no effect once the file is finished.
    fn abandon(&self, py: Python<'_>) {
        py.detach(|| drop(self.slot().take()));
    }
}

fn mode(mode: &str, etag: Option<String>) -> PyResult<Mode> {
    match (mode, etag) {
        ("new", None) => Ok(Mode::New),
        ("over", None) => Ok(Mode::Over),
        ("over", Some(etag)) => Ok(Mode::Matching(etag)),
        _ => {
            Err(PyValueError::new_err("mode: expected \"new\" or \"over\", and an etag with the latter only"))
        }
    }
}

/// A file that is read by ranges, from any thread.
#[pyclass(module = "coldframe._coldframe", name = "StoreFile", frozen)]
pub(crate) struct PyStoreFile {
    file: Arc<dyn ReadAt>,
    url: String,
}

#[pymethods]
impl PyStoreFile {
    #[getter]
    fn size(&self) -> u64 {
        self.file.len()
    }

    #[getter]
    fn identity(&self) -> Known {
        let Identity { len, modified, etag } = self.file.identity();
        (len, modified, etag)
    }

    /// The bytes of a range; fewer if the file ends before.
    fn read<'py>(&self, py: Python<'py>, start: u64, stop: u64) -> PyResult<Bound<'py, PyBytes>> {
        let stop = stop.min(self.file.len());
        let bytes = py.detach(|| self.file.read(start.min(stop)..stop));
        let bytes = bytes.map_err(|e| to_python(e.in_file(&*self.url)))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __repr__(&self) -> String {
        format!("StoreFile({:?})", shown(&self.url))
    }
}

#[pymethods]
impl PyStore {
    #[new]
    #[pyo3(signature = (url, storage_options=None))]
    fn new(
        py: Python<'_>,
        url: PathBuf,
        storage_options: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let options = storage_options.unwrap_or_default();
        py.detach(|| Store::new(url.as_os_str(), &options)).map(Self).map_err(to_python)
    }

    /// The files of a Python object with the interface of `coldframe.filesystems`, below its path `root`.
    #[staticmethod]
    fn of(files: Py<PyAny>, url: &str, root: &str) -> Self {
        Self(Store::of(Arc::new(PyFiles::new(files)), url, root))
    }

    #[getter]
    fn url(&self) -> OsString {
        self.0.os_url_of("")
    }

    #[getter]
    fn is_local(&self) -> bool {
        self.0.is_local()
    }

    fn url_of(&self, path: PathBuf) -> PyResult<OsString> {
        Ok(self.0.os_url_of(&self.path(path)?))
    }

    fn below(&self, path: PathBuf) -> PyResult<Self> {
        self.0.below(&self.path(path)?).map(Self).map_err(to_python)
    }

    #[pyo3(signature = (path=PathBuf::new(), *, recursive=false))]
    fn list(&self, py: Python<'_>, path: PathBuf, recursive: bool) -> PyResult<PyListing> {
        let entries = self.ask(py, path, |path| self.0.list(path, recursive))?;
        Ok(PyListing { store: self.0.clone(), entries: Mutex::new(entries) })
    }

    #[pyo3(signature = (path=PathBuf::new()))]
    fn stat(&self, py: Python<'_>, path: PathBuf) -> PyResult<Option<PyEntry>> {
        let stat = self.ask(py, path, |path| self.0.stat(path))?;
        Ok(stat.map(|stat| PyEntry::new(&self.0, stat)))
    }

    #[pyo3(signature = (path, start=0, stop=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        start: u64,
        stop: Option<u64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.ask(py, path, |path| {
            let file = self.0.open(path, None)?;
            let stop = stop.unwrap_or(u64::MAX).min(file.len());
            file.read(start.min(stop)..stop).map_err(|e| e.in_file(self.0.url_of(path)))
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[pyo3(signature = (path=PathBuf::new(), known=None))]
    fn open(&self, py: Python<'_>, path: PathBuf, known: Option<Known>) -> PyResult<PyStoreFile> {
        let known = known.map(|(len, modified, etag)| Identity { len, modified, etag });
        let url = self.0.url_of(&self.path(path.clone())?);
        let file = self.ask(py, path, |path| self.0.open(path, known.as_ref()))?;
        Ok(PyStoreFile { file, url })
    }

    #[pyo3(signature = (path, data, *, mode="new", etag=None))]
    fn put(
        &self,
        py: Python<'_>,
        path: PathBuf,
        data: &[u8],
        mode: &str,
        etag: Option<String>,
    ) -> PyResult<PyEntry> {
        let mode = self::mode(mode, etag)?;
        let stat = self.ask(py, path, |path| self.0.put(path, data, &mode))?;
        Ok(PyEntry::new(&self.0, stat))
    }

    #[pyo3(signature = (path="".into(), *, mode="new", permissions=None))]
    fn create(
        &self,
        py: Python<'_>,
        path: PathBuf,
        mode: &str,
        permissions: Option<u32>,
    ) -> PyResult<PyUpload> {
        let mode = self::mode(mode, None)?;
        let upload = self.ask(py, path, |path| {
            let mut upload = self.0.create(path, &mode)?;
            permissions.map_or(Ok(()), |bits| upload.limit_mode(bits))?;
            Ok(upload)
        })?;
        Ok(PyUpload { store: self.0.clone(), upload: Mutex::new(Some(upload)), written: AtomicU64::new(0) })
    }

    #[pyo3(signature = (source, path, *, mode="new"))]
    fn publish(&self, py: Python<'_>, source: PathBuf, path: PathBuf, mode: &str) -> PyResult<()> {
        let (from, mode) = (self.path(source)?, self::mode(mode, None)?);
        self.ask(py, path, |path| self.0.publish(&from, path, &mode))
    }

    /// The store of the parent folder, and the root's name in it.
    fn above(&self) -> Option<(Self, OsString)> {
        self.0.above().map(|(above, name)| {
            let name = above.os_path(&name);
            (Self(above), name)
        })
    }

    #[getter]
    fn renames_folders(&self) -> bool {
        self.0.renames_folders()
    }

    fn publish_folder(&self, py: Python<'_>, source: PathBuf, path: PathBuf) -> PyResult<()> {
        let from = self.path(source)?;
        self.ask(py, path, |path| self.0.publish_folder(&from, path))
    }

    #[pyo3(signature = (path, *, recursive=false))]
    fn delete(&self, py: Python<'_>, path: PathBuf, recursive: bool) -> PyResult<()> {
        self.ask(py, path, |path| if recursive { self.0.delete_folder(path) } else { self.0.delete(path) })
    }

    fn check_exclusive(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.ask(py, path, |path| self.0.check_exclusive(path))
    }

    fn __repr__(&self) -> String {
        format!("Store({:?})", shown(self.0.url()))
    }
}

impl PyStore {
    pub(crate) fn path(&self, path: PathBuf) -> PyResult<String> {
        self.0.path_of(path.as_os_str()).map_err(to_python)
    }

    /// Calls `question` with the path, without the GIL.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        path: PathBuf,
        ask: impl FnOnce(&str) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let path = self.path(path)?;
        py.detach(|| ask(&path)).map_err(to_python)
    }
}
