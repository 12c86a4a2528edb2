//! What Python passes as a source: a path, a URL, bytes, or an object that reads and seeks.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe::io::check_range;
use coldframe::{Error, ReadAt, Result, Source};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

use crate::error::{from_python as foreign, to_python};

/// The source an argument stands for.
pub(crate) fn from_python(
    source: &Bound<'_, PyAny>,
    storage_options: &BTreeMap<String, String>,
) -> PyResult<Source> {
    if let Ok(path) = source.cast::<PyString>() {
        let path: String = path.extract()?;
        return source.py().detach(|| coldframe::source_of_path(&path, storage_options)).map_err(to_python);
    }
    if source.is_instance_of::<PyBytes>() || source.is_instance_of::<PyByteArray>() {
        let backed: PyBackedBytes = source.extract()?;
        return Ok(Source::file("<bytes>", Arc::new(Bytes::from_owner(backed))));
    }
    if source.hasattr("read")? && source.hasattr("seek")? {
        let file = PyFile::new(source)?;
        return Ok(Source::file(name_of(source), Arc::new(file)));
    }
    if let Ok(view) = PyMemoryView::from(source) {
        let copy = source.py().get_type::<PyBytes>().call1((view,))?;
        let backed: PyBackedBytes = copy.extract()?;
        return Ok(Source::file("<bytes>", Arc::new(Bytes::from_owner(backed))));
    }
    let path: std::path::PathBuf = source.extract()?;
    let path = path.display().to_string();
    source.py().detach(|| coldframe::source_of_path(&path, storage_options)).map_err(to_python)
}

/// What to call a Python file in errors.
fn name_of(file: &Bound<'_, PyAny>) -> String {
    for attribute in ["full_name", "path", "name"] {
        if let Ok(name) = file.getattr(attribute).and_then(|n| n.extract::<String>()) {
            return name;
        }
    }
    "<file>".to_owned()
}

/// A Python file: `seek`, `read`. Each request takes the GIL.
struct PyFile {
    object: Py<PyAny>,
    len: u64,
}

impl fmt::Debug for PyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PyFile({} bytes)", self.len)
    }
}

impl PyFile {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let end = object.call_method1("seek", (0, 2))?;
        // `seek` of some file-likes returns nothing.
        let len = if end.is_none() { object.call_method0("tell")?.extract()? } else { end.extract()? };
        Ok(Self { object: object.clone().unbind(), len })
    }

    fn read_one(&self, py: Python<'_>, range: &Range<u64>) -> PyResult<Bytes> {
        let object = self.object.bind(py);
        object.call_method1("seek", (range.start,))?;
        let mut left = range.end - range.start;
        let mut parts: Vec<PyBackedBytes> = Vec::new();
        while left > 0 {
            let part = object.call_method1("read", (left,))?;
            let part: PyBackedBytes = match part.extract() {
                Ok(part) => part,
                Err(_) => py.get_type::<PyBytes>().call1((part,))?.extract()?,
            };
            let n = part.len() as u64;
            if n == 0 || n > left {
                let end = range.end - left;
                let e = Error::corrupt(format!("expected {left} more bytes, read() gave {n}")).at(end);
                return Err(to_python(e));
            }
            left -= n;
            parts.push(part);
        }
        match parts.len() {
            1 => Ok(parts.pop().map(Bytes::from_owner).unwrap_or_default()),
            _ => Ok(Bytes::from(parts.iter().flat_map(|p| p.iter().copied()).collect::<Vec<u8>>())),
        }
    }
}

impl ReadAt for PyFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        for range in ranges {
            check_range(range, self.len)?;
        }
        Python::attach(|py| ranges.iter().map(|r| self.read_one(py, r)).collect::<PyResult<_>>())
            .map_err(foreign)
    }

    fn worthwhile_gap(&self) -> u64 {
        64 << 10
    }
}
