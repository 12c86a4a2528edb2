//! The options of Spark's `load()` and `save()`, as Python's own types.

use std::collections::BTreeMap;

use coldframe::load::{LoadOptions, SaveOptions};
use coldframe::{OnError, SchemaSpec, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::capsule::export_schema;
use crate::error;
use crate::types::pyarrow;
use crate::value::to_python;

/// What a `load()` asks for, by the names of `coldframe.spark.options.ReadOptions`.
#[pyfunction]
#[pyo3(signature = (given, format=None))]
pub(crate) fn load_options<'py>(
    py: Python<'py>,
    given: BTreeMap<String, String>,
    format: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = LoadOptions::parse(&given, format).map_err(error::to_python)?;
    let dict = PyDict::new(py);
    dict.set_item("paths", found.paths)?;
    dict.set_item("format", found.format)?;
    dict.set_item("columns", found.columns)?;
    dict.set_item("filter", found.filter)?;
    dict.set_item("on_error", if found.on_error == OnError::Raise { "raise" } else { "skip" })?;
    dict.set_item("damage", found.damage)?;
    dict.set_item("split_bytes", found.split_bytes)?;
    dict.set_item("batch_rows", found.batch_rows)?;
    dict.set_item("verify_checksums", !found.open.skip_checksums)?;
    dict.set_item("unify", found.unify)?;
    dict.set_item("storage_options", found.storage)?;
    let keys = found.open.keys.into_iter().map(|(name, key)| (name, PyBytes::new(py, &key)));
    dict.set_item("keys", keys.collect::<BTreeMap<_, _>>())?;
    dict.set_item("options", options(py, found.open.extra, found.open.schema)?)?;
    Ok(dict)
}

/// What a `save()` asks for, by the names of `coldframe.spark.options.WriteOptions`.
#[pyfunction]
#[pyo3(signature = (given, format=None))]
pub(crate) fn save_options<'py>(
    py: Python<'py>,
    given: BTreeMap<String, String>,
    format: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = SaveOptions::parse(&given, format).map_err(error::to_python)?;
    let dict = PyDict::new(py);
    dict.set_item("path", found.path)?;
    dict.set_item("format", found.format)?;
    dict.set_item("storage_options", found.storage)?;
    dict.set_item("options", options(py, found.extra, found.schema)?)?;
    Ok(dict)
}

/// The options of a format, its schema among them.
fn options<'py>(
    py: Python<'py>,
    extra: BTreeMap<String, Value>,
    schema: Option<SchemaSpec>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in &extra {
        dict.set_item(name, to_python(py, value)?)?;
    }
    match schema {
        None => {}
        Some(SchemaSpec::Ddl(text)) => dict.set_item("schema", text)?,
        Some(SchemaSpec::Arrow(schema)) => {
            dict.set_item("schema", pyarrow(py, "Schema", export_schema(py, &schema)?)?)?;
        }
    }
    Ok(dict)
}
