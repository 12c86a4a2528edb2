//! Storage for Python: the stores of Rust, and Python file systems for locations that the stores do not
//! support.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;

use coldframe::dataset::{Storage, Stores};
use coldframe::store::{Identity, Location, Store, schemes};
use coldframe::{Result, Source};
use pyo3::prelude::*;

use crate::error::from_python as foreign;
use crate::store::PyStore;

/// The storage option that holds a Python file system.
const FILESYSTEM: &str = "filesystem";

/// Storage options as a Python object and as text.
pub(crate) struct PyStorage {
    given: Option<Py<PyAny>>,
    core: Stores,
    has_filesystem: bool,
}

impl PyStorage {
    pub(crate) fn new(given: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(given) = given.filter(|given| !given.is_none()) else {
            return Ok(Self { given: None, core: Stores::default(), has_filesystem: false });
        };
        let has_filesystem = given.contains(FILESYSTEM)?;
        let texts: Option<BTreeMap<String, String>> = if has_filesystem {
            None
        } else {
            given.py().import("coldframe.sources")?.call_method1("text_options", (given,))?.extract()?
        };
        Ok(Self {
            given: Some(given.clone().unbind()),
            core: Stores(texts.unwrap_or_default()),
            has_filesystem,
        })
    }

    fn given(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.given.as_ref().map(|given| given.clone_ref(py))
    }

    /// Whether a path or URL is opened by a store of Rust, and not by a Python file system.
    fn is_of_core(&self, location: &OsStr) -> bool {
        !self.has_filesystem
            && match Location::parse(location) {
                Ok(Location::Url { scheme, .. }) => schemes().contains(&scheme.as_str()),
                _ => true,
            }
    }
}

impl fmt::Debug for PyStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

impl Storage for PyStorage {
    fn store(&self, location: &OsStr) -> Result<Store> {
        if self.is_of_core(location) {
            return self.core.store(location);
        }
        let location: OsString = location.to_owned();
        let opened = Python::attach(|py| -> PyResult<Store> {
            let given = self.given(py);
            let opened = py.import("coldframe.sources")?.call_method1("open_store", (location, given))?;
            Ok(opened.cast::<PyStore>()?.get().0.clone())
        });
        opened.map_err(foreign)
    }

    fn source(&self, location: &OsStr, known: Option<&Identity>) -> Result<Source> {
        if self.is_of_core(location) {
            return self.core.source(location, known);
        }
        self.store(location)?.source(known)
    }

    fn is_of_this_machine(&self, location: &OsStr) -> bool {
        !self.has_filesystem && matches!(Location::parse(location), Ok(Location::Local(_)))
    }

    fn options(&self, location: &OsStr) -> Option<&BTreeMap<String, String>> {
        self.is_of_core(location).then_some(&self.core.0)
    }
}

/// The type that plans require.
pub(crate) fn shared(storage: PyStorage) -> Arc<dyn Storage> {
    Arc::new(storage)
}
