//! Converts plain nested data between Rust and Python.

use std::collections::BTreeMap;

use coldframe::{Damage, Node, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PySequence, PyString,
};
use pyo3::{IntoPyObjectExt, types::PyMappingMethods};

/// Converts a value to Python's own types.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(v) => v.into_bound_py_any(py),
        Value::Int(v) => v.into_bound_py_any(py),
        Value::UInt(v) => v.into_bound_py_any(py),
        Value::Float(v) => v.into_bound_py_any(py),
        Value::Str(v) => v.into_bound_py_any(py),
        Value::Bytes(v) => Ok(PyBytes::new(py, v).into_any()),
        Value::List(v) => {
            let items = v.iter().map(|x| to_python(py, x)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        Value::Map(v) => Ok(dict(py, v)?.into_any()),
    }
}

fn dict<'py>(py: Python<'py>, pairs: &[(String, Value)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in pairs {
        dict.set_item(key, to_python(py, value)?)?;
    }
    Ok(dict)
}

/// The options of a format.
pub(crate) fn options_from_python(options: Option<&Bound<'_, PyAny>>) -> PyResult<BTreeMap<String, Value>> {
    let Some(options) = options.filter(|o| !o.is_none()) else { return Ok(BTreeMap::new()) };
    let mut all = BTreeMap::new();
    for item in options.cast::<PyMapping>()?.items()?.iter() {
        let (key, value): (String, Bound<'_, PyAny>) = item.extract()?;
        all.insert(key, from_python(&value)?);
    }
    Ok(all)
}

/// A Python value as plain data.
fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    // A bool is an int in Python, so it is tested first.
    if let Ok(v) = value.cast::<PyBool>() {
        return Ok(Value::Bool(v.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return value.extract::<i64>().map(Value::Int).or_else(|_| value.extract::<u64>().map(Value::UInt));
    }
    if let Ok(v) = value.cast::<PyFloat>() {
        return v.extract().map(Value::Float);
    }
    if let Ok(v) = value.cast::<PyString>() {
        return v.extract().map(Value::Str);
    }
    if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        return value.extract().map(Value::Bytes);
    }
    // A date or time becomes ISO 8601 text, with its zone if there is a zone.
    if value.hasattr("isoformat")? {
        return value.call_method0("isoformat")?.extract().map(Value::Str);
    }
    if let Ok(v) = value.cast::<PyMapping>() {
        let mut pairs = Vec::new();
        for item in v.items()?.iter() {
            let (key, value): (String, Bound<'_, PyAny>) = item.extract()?;
            pairs.push((key, from_python(&value)?));
        }
        return Ok(Value::Map(pairs));
    }
    if let Ok(v) = value.cast::<PySequence>() {
        return v.try_iter()?.map(|x| from_python(&x?)).collect::<PyResult<_>>().map(Value::List);
    }
    Err(PyTypeError::new_err(format!("an option cannot be a {}", value.get_type())))
}

/// A node of the layout and its children.
pub(crate) fn node_to_python<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &node.name)?;
    dict.set_item("offset", node.bytes.start)?;
    dict.set_item("length", node.bytes.end.saturating_sub(node.bytes.start))?;
    dict.set_item("detail", self::dict(py, &node.detail)?)?;
    let children = node.children.iter().map(|c| node_to_python(py, c)).collect::<PyResult<Vec<_>>>()?;
    dict.set_item("children", children)?;
    Ok(dict)
}

/// Damage records.
pub(crate) fn damage_to_python<'py>(py: Python<'py>, damage: &[Damage]) -> PyResult<Bound<'py, PyList>> {
    let records = damage
        .iter()
        .map(|d| {
            let dict = PyDict::new(py);
            dict.set_item("offset", d.bytes.start)?;
            dict.set_item("length", d.bytes.end.saturating_sub(d.bytes.start))?;
            dict.set_item("rows_lost", d.rows_lost)?;
            dict.set_item("structure", &d.structure)?;
            dict.set_item("reason", &d.reason)?;
            Ok(dict)
        })
        .collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, records)
}
