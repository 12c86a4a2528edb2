//! The options of Spark's `load()` and `save()`, as Python's own types.

use std::collections::BTreeMap;

use coldframe::load::selection::NAMES;
use coldframe::load::{LoadOptions, SaveOptions};
use coldframe::{OnError, SchemaSpec, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::capsule::export_schema;
use crate::error;
use crate::types::pyarrow;
use crate::value::to_python;

/// The request of a `load()`, by the names of `coldframe.spark.options.ReadOptions`.
#[pyfunction]
#[pyo3(signature = (given, format=None))]
pub(crate) fn load_options<'py>(
    py: Python<'py>,
    given: BTreeMap<String, String>,
    format: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let parsed = LoadOptions::parse(&given, format).map_err(error::to_python)?;
    let selection = given.iter().map(|(name, text)| (name.to_lowercase(), text));
    let selection: BTreeMap<_, _> = selection.filter(|(name, _)| NAMES.contains(&name.as_str())).collect();
    let dict = PyDict::new(py);
    dict.set_item("paths", parsed.paths)?;
    dict.set_item("selection", selection)?;
    dict.set_item("partitioned", !parsed.selection.is_recursive())?;
    dict.set_item("ignore_missing", parsed.ignore_missing)?;
    dict.set_item("format", parsed.format)?;
    dict.set_item("columns", parsed.columns)?;
    dict.set_item("filter", parsed.filter)?;
    dict.set_item("on_error", if parsed.on_error == OnError::Raise { "raise" } else { "skip" })?;
    dict.set_item("damage", parsed.damage)?;
    dict.set_item("split_bytes", parsed.split_bytes)?;
    dict.set_item("batch_rows", parsed.batch_rows)?;
    dict.set_item("verify_checksums", !parsed.open.skip_checksums)?;
    dict.set_item("unify", parsed.unify)?;
    dict.set_item("storage_options", parsed.storage)?;
    let keys = parsed.open.keys.into_iter().map(|(name, key)| (name, PyBytes::new(py, &key)));
    dict.set_item("keys", keys.collect::<BTreeMap<_, _>>())?;
    dict.set_item("options", options(py, parsed.open.extra, parsed.open.schema)?)?;
    Ok(dict)
}

/// The request of a `save()`, by the names of `coldframe.spark.options.WriteOptions`.
#[pyfunction]
#[pyo3(signature = (given, format=None))]
pub(crate) fn save_options<'py>(
    py: Python<'py>,
    given: BTreeMap<String, String>,
    format: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let parsed = SaveOptions::parse(&given, format).map_err(error::to_python)?;
    let dict = PyDict::new(py);
    dict.set_item("path", parsed.path)?;
    dict.set_item("format", parsed.format)?;
    dict.set_item("storage_options", parsed.storage)?;
    dict.set_item("options", options(py, parsed.extra, parsed.schema)?)?;
    Ok(dict)
}

/// The options of a format, including its schema.
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
