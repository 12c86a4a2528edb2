//! A Python object as a store: `coldframe.filesystems` adapts fsspec's and pyarrow's file systems to its interface.
//!
//! Files are read by ranges, and not from a current position, so that threads do not interfere.

use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe::io::{Identity, check_range};
use coldframe::store::{Files, Listing, Mode, Stat, Upload};
use coldframe::{Error, ErrorKind, ReadAt, Result};
use pyo3::exceptions::PyFileNotFoundError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::error::from_python;

/// An entry: path, size, whether it is a folder, milliseconds since 1970, etag.
type EntryTuple = (String, u64, bool, Option<i64>, Option<String>);

/// The Python object.
pub(crate) struct PyFiles(Py<PyAny>);

impl fmt::Debug for PyFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PyFiles")
    }
}

fn stat_of((path, len, is_folder, modified, etag): EntryTuple) -> Stat {
    Stat { path, len, is_folder, modified, etag }
}

fn error(e: PyErr) -> Error {
    let is_missing = Python::attach(|py| e.is_instance_of::<PyFileNotFoundError>(py));
    if is_missing { Error::not_found("no such file or directory") } else { from_python(e) }
}

fn is_new(mode: &Mode) -> Result<bool> {
    match mode {
        Mode::New => Ok(true),
        Mode::Over => Ok(false),
        Mode::Matching(_) => Err(Error::unsupported(
            "replacing a file only if its content is unchanged, through a Python file system",
        )),
    }
}

impl PyFiles {
    pub(crate) fn new(object: Py<PyAny>) -> Self {
        Self(object)
    }

    /// Calls a method.
    fn call<'py, A: pyo3::call::PyCallArgs<'py>>(
        &self,
        py: Python<'py>,
        name: &str,
        args: A,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.0.bind(py).call_method1(name, args)
    }

    fn stat_entry(&self, key: &str) -> Result<Option<Stat>> {
        let stat = |py: Python<'_>| self.call(py, "stat", (key,))?.extract::<Option<EntryTuple>>();
        Ok(Python::attach(stat).map_err(error)?.map(stat_of))
    }
}

impl Files for PyFiles {
    fn list(&self, folder: &str, deep: bool) -> Result<Listing> {
        let iterator = Python::attach(|py| {
            let entries = self.call(py, "list", (folder, deep))?;
            Ok(entries.try_iter()?.into_any().unbind())
        });
        Ok(Box::new(Entries(Some(iterator.map_err(error)?))))
    }

    fn stat(&self, key: &str) -> Result<Option<Stat>> {
        self.stat_entry(key)
    }

    fn open(&self, key: &str, url: &str, known: Option<&Identity>) -> Result<Arc<dyn ReadAt>> {
        let identity = match self.stat_entry(key)? {
            Some(stat) if !stat.is_folder => stat.identity(),
            _ => return Err(Error::not_found("no such file")),
        };
        if known.is_some_and(|known| !known.may_be(&identity)) {
            let text = "the file was changed since it was listed or opened";
            return Err(Error::new(ErrorKind::Io(io::Error::other(text))));
        }
        let files = Self(Python::attach(|py| self.0.clone_ref(py)));
        Ok(Arc::new(RangedFile { files, key: key.to_owned(), url: url.to_owned(), known: identity }))
    }

    fn create(&self, key: &str, mode: &Mode) -> Result<Box<dyn Upload>> {
        let new = is_new(mode)?;
        let writer = Python::attach(|py| Ok(self.call(py, "create", (key, new))?.unbind())).map_err(error)?;
        Ok(Box::new(PyUpload { writer: Some(writer), key: key.to_owned(), written: 0 }))
    }

    fn publish(&self, from: &str, to: &str, mode: &Mode) -> Result<()> {
        let new = is_new(mode)?;
        Python::attach(|py| self.call(py, "publish", (from, to, new)).map(drop)).map_err(error)
    }

    fn delete(&self, key: &str) -> Result<()> {
        Python::attach(|py| self.call(py, "delete", (key,)).map(drop)).map_err(error)
    }

    fn delete_folder(&self, key: &str) -> Result<()> {
        Python::attach(|py| self.call(py, "delete_folder", (key,)).map(drop)).map_err(error)
    }
}

/// A Python iterator of entries.
struct Entries(Option<Py<PyAny>>);

impl Iterator for Entries {
    type Item = Result<Stat>;

    fn next(&mut self) -> Option<Self::Item> {
        let iterator = self.0.as_ref()?;
        let next = Python::attach(|py| {
            let next = iterator.bind(py).try_iter()?.next();
            next.transpose()?.map(|entry| entry.extract::<EntryTuple>()).transpose()
        });
        let next = next.map_err(error).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
        }
        next.map(|entry| entry.map(stat_of))
    }
}

/// A file that is read by ranges.
#[derive(Debug)]
struct RangedFile {
    files: PyFiles,
    key: String,
    url: String,
    known: Identity,
}

impl RangedFile {
    fn read_range(&self, py: Python<'_>, range: &Range<u64>) -> PyResult<PyBackedBytes> {
        self.files
            .call(py, "read", (self.key.as_str(), range.start, range.end))?
            .extract()
            .map_err(PyErr::from)
    }
}

impl ReadAt for RangedFile {
    fn len(&self) -> u64 {
        self.known.len
    }

    fn identity(&self) -> Identity {
        self.known.clone()
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let named = |e: Error| e.in_file(&*self.url);
        let mut all = Vec::with_capacity(ranges.len());
        for range in ranges {
            check_range(range, self.known.len).map_err(named)?;
            let bytes = Python::attach(|py| self.read_range(py, range)).map_err(|e| named(error(e)))?;
            let (wanted, len) = (range.end - range.start, bytes.len());
            if len as u64 != wanted {
                let text = format!(
                    "expected {wanted} bytes, found {len}: the file was changed, or its file system is faulty"
                );
                return Err(named(Error::new(ErrorKind::Io(io::Error::other(text))).at(range.start)));
            }
            all.push(Bytes::from_owner(bytes));
        }
        // Python file systems open a file by its name for each read, so it can only be detected after the
        // read that the file was replaced.
        match self.files.stat_entry(&self.key).map_err(named)? {
            Some(now) if self.known.may_be(&now.identity()) => Ok(all),
            _ => {
                let text = "the file was changed since it was listed or opened";
                Err(named(Error::new(ErrorKind::Io(io::Error::other(text)))))
            }
        }
    }

    fn worthwhile_gap(&self) -> u64 {
        64 << 10
    }
}

/// A file written through Python: `write`, then `finish` or `abandon`.
struct PyUpload {
    writer: Option<Py<PyAny>>,
    key: String,
    written: u64,
}

impl fmt::Debug for PyUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PyUpload({})", self.key)
    }
}

impl Write for PyUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(writer) = &self.writer {
            Python::attach(|py| writer.call_method1(py, "write", (PyBytes::new(py, bytes),)).map(drop))
                .map_err(io::Error::other)?;
            self.written += bytes.len() as u64;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Upload for PyUpload {
    fn finish(mut self: Box<Self>) -> Result<Stat> {
        if let Some(writer) = &self.writer {
            Python::attach(|py| writer.call_method0(py, "finish").map(drop)).map_err(error)?;
        }
        self.writer = None;
        Ok(Stat { path: self.key.clone(), len: self.written, ..Stat::default() })
    }
}

impl Drop for PyUpload {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            // An error here is ignored; the error that caused the drop is reported.
            drop(Python::attach(|py| writer.call_method0(py, "abandon")));
        }
    }
}
