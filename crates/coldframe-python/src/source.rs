//! Converts sources that Python passes: a path, a URL, bytes, or an object with `read` and `seek`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use coldframe::io::check_range;
use coldframe::store::{Identity, Location};
use coldframe::{Error, ReadAt, Result, Source};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::MutexExt;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

use crate::error::{from_python as foreign, to_python};
use crate::store::{Known, PyStore};

/// Converts an argument to a source.
pub(crate) fn from_python(
    source: &Bound<'_, PyAny>,
    storage_options: &BTreeMap<String, String>,
    known: Option<Known>,
) -> PyResult<Source> {
    if source.is_instance_of::<PyString>() {
        return of_path(source, storage_options, known);
    }
    if let Ok(store) = source.cast::<PyStore>() {
        let known = known.map(|(len, modified, etag)| Identity { len, modified, etag });
        let store = store.get().0.clone();
        return source.py().detach(|| store.source(known.as_ref())).map_err(to_python);
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
    of_path(source, storage_options, known)
}

/// A path or URL. In Python, bytes of a path that are not UTF-8 are represented by surrogates; here they
/// become bytes again.
fn of_path(
    path: &Bound<'_, PyAny>,
    storage_options: &BTreeMap<String, String>,
    known: Option<Known>,
) -> PyResult<Source> {
    let py = path.py();
    let path: PathBuf = path.extract()?;
    let known = known.map(|(len, modified, etag)| Identity { len, modified, etag });
    py.detach(|| coldframe::source_of_path(&path, storage_options, known.as_ref())).map_err(to_python)
}

/// The local path of a path or a `file://` URL; None for a URL of another store.
#[pyfunction]
pub(crate) fn local_path(path: PathBuf) -> PyResult<Option<OsString>> {
    match Location::parse(path.as_os_str()).map_err(to_python)? {
        Location::Local(path) => Ok(Some(path.into_os_string())),
        Location::Url { .. } => Ok(None),
    }
}

/// The name of a Python file, for errors.
fn name_of(file: &Bound<'_, PyAny>) -> String {
    for attribute in ["full_name", "path", "name"] {
        if let Ok(name) = file.getattr(attribute).and_then(|n| n.extract::<String>()) {
            return name;
        }
    }
    "<file>".to_owned()
}

/// A Python file with `seek` and `read`. Each request takes the GIL.
/// A file has only one position, which `seek` sets for the `read` that follows, and Python may switch threads
/// between the two. So requests to one object run one after another, even if it was opened twice. Two cases
/// cannot be detected: another object with the same position (a wrapper, a duplicated descriptor), and a
/// caller who moves the position during a read.
struct PyFile {
    object: Py<PyAny>,
    len: u64,
    turn: Arc<Turn>,
}

/// The lock of an open object; held from before `seek` until after `read`.
type Turn = Mutex<()>;

/// The lock of each open object, by its address, which no other object can have while this one exists.
static TURNS: Mutex<BTreeMap<usize, Weak<Turn>>> = Mutex::new(BTreeMap::new());

fn turn_of(object: &Bound<'_, PyAny>) -> Arc<Turn> {
    // This lock is never held while waiting for the GIL.
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    turns.retain(|_, turn| turn.strong_count() > 0);
    let address = object.as_ptr().addr();
    if let Some(turn) = turns.get(&address).and_then(Weak::upgrade) {
        return turn;
    }
    let turn = Arc::default();
    turns.insert(address, Arc::downgrade(&turn));
    turn
}

/// Locks an object. The GIL is released while waiting, because the thread that holds the lock needs the GIL
/// to finish.
fn take<'t>(turn: &'t Turn, py: Python<'_>) -> MutexGuard<'t, ()> {
    turn.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for PyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PyFile({} bytes)", self.len)
    }
}

impl PyFile {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let turn = turn_of(object);
        let held = take(&turn, object.py());
        let end = object.call_method1("seek", (0, 2))?;
        // `seek` returns nothing in some file-like classes.
        let len = if end.is_none() { object.call_method0("tell")?.extract()? } else { end.extract()? };
        drop(held);
        Ok(Self { object: object.clone().unbind(), len, turn })
    }

    fn read_range(&self, py: Python<'_>, range: &Range<u64>) -> PyResult<Bytes> {
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
                let e =
                    Error::corrupt(format!("expected {left} more bytes, but read() returned {n}")).at(end);
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
        let read = |py: Python<'_>| {
            let _held = take(&self.turn, py);
            ranges.iter().map(|range| self.read_range(py, range)).collect::<PyResult<_>>()
        };
        Python::attach(read).map_err(foreign)
    }

    fn worthwhile_gap(&self) -> u64 {
        64 << 10
    }
}
