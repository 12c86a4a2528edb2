//! Keys of encrypted files: a mapping by name, or a function that returns keys.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use coldframe::{KeySource, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::error::from_python as foreign;

/// The given keys, and the source of further keys.
pub(crate) type GivenKeys = (BTreeMap<String, Vec<u8>>, Option<Arc<dyn KeySource>>);

/// Converts the argument `keys`.
pub(crate) fn from_python(keys: &Bound<'_, PyAny>) -> PyResult<GivenKeys> {
    if keys.is_callable() && !keys.hasattr("keys")? {
        return Ok((BTreeMap::new(), Some(Arc::new(KeyFunction(keys.clone().unbind())))));
    }
    let given: BTreeMap<String, Bound<'_, PyAny>> = keys.extract()?;
    let given = given.into_iter().map(|(name, value)| Ok((name, key(&value)?)));
    Ok((given.collect::<PyResult<_>>()?, None))
}

/// A key: bytes, or hex digits.
fn key(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = value.cast::<PyString>() {
        let bytes = value.py().get_type::<PyBytes>().call_method1("fromhex", (text,))?;
        return bytes.extract();
    }
    value.extract()
}

/// A Python function that takes a name and returns a key or None. Each call takes the GIL.
struct KeyFunction(Py<PyAny>);

impl fmt::Debug for KeyFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyFunction")
    }
}

impl KeySource for KeyFunction {
    fn key(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let ask = |py: Python<'_>| -> PyResult<Option<Vec<u8>>> {
            let returned = self.0.bind(py).call1((name,))?;
            if returned.is_none() { Ok(None) } else { key(&returned).map(Some) }
        };
        Python::attach(ask).map_err(foreign)
    }
}
