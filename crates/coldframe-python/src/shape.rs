//! Casts batches and arrays of pyarrow to a target's schema, and returns pyarrow objects.

use arrow_array::StructArray;
use arrow_schema::SchemaRef;
use coldframe::Error;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::capsule::{
    BareArray, export_array, export_schema, import_array, import_batch, import_schema, import_type,
};
use crate::error::to_python;

/// The batch with exactly the schema `target`; the object itself if it already has this schema.
#[pyfunction]
pub(crate) fn conform_batch<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
    target: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let exactly = PyDict::new(py);
    exactly.set_item("check_metadata", true)?;
    let schema = batch.getattr(intern!(py, "schema"))?;
    if schema.call_method(intern!(py, "equals"), (target,), Some(&exactly))?.is_truthy()? {
        return Ok(batch.clone());
    }
    let (source, wanted) = (import_batch(batch)?, import_schema(target)?);
    let made = py.detach(|| {
        let made = coldframe::types::conform(&source, &wanted)?;
        let (schema, columns, rows) = made.into_parts();
        let structs = StructArray::try_new_with_length(schema.fields().clone(), columns, None, rows);
        structs.map(|structs| BareArray::new(&structs)).map_err(|e| Error::schema(e.to_string()))
    });
    let made = made.map_err(to_python)?;
    // The batch is imported with the target object as its schema, so that pyarrow does not make a new schema.
    let batches = py.import("pyarrow")?.getattr("RecordBatch")?;
    batches.call_method1(intern!(py, "_import_from_c"), (made.address(), target))
}

/// One schema for several files, given with their paths.
#[pyfunction]
#[pyo3(signature = (schemas, table=None))]
pub(crate) fn unified<'py>(
    py: Python<'py>,
    schemas: Vec<(String, Bound<'py, PyAny>)>,
    table: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let imported = schemas.iter().map(|(path, schema)| Ok((path.as_str(), import_schema(schema)?)));
    let imported: Vec<(&str, SchemaRef)> = imported.collect::<PyResult<_>>()?;
    let all = imported.iter().map(|(path, schema)| (*path, schema.as_ref()));
    let made = py.detach(|| coldframe::types::unify(all, table)).map_err(to_python)?;
    let schemas = py.import("pyarrow")?.getattr("Schema")?;
    schemas.call_method1(intern!(py, "_import_from_c_capsule"), (export_schema(py, &made)?,))
}

/// Adds missing struct fields to the array, as nulls; returns the same object if no field is missing.
#[pyfunction]
pub(crate) fn with_fields<'py>(
    py: Python<'py>,
    array: &Bound<'py, PyAny>,
    target: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let kind = array.getattr(intern!(py, "type"))?;
    let is_same = kind.call_method1(intern!(py, "equals"), (target,))?.is_truthy()?;
    // The storage fields of an extension type are fixed, so no field is added.
    if is_same || kind.hasattr(intern!(py, "extension_name"))? {
        return Ok(array.clone());
    }
    let wanted = import_type(target)?;
    if !wanted.is_nested() {
        return Ok(array.clone());
    }
    let source = import_array(array)?;
    let made = py.detach(|| coldframe::types::with_fields(&source, &wanted)).map_err(to_python)?;
    if made.data_type() == source.data_type() {
        return Ok(array.clone());
    }
    let arrays = py.import("pyarrow")?.getattr("Array")?;
    arrays.call_method1(intern!(py, "_import_from_c_capsule"), export_array(py, &made)?)
}

/// The array with only the struct fields that `target` has; the object itself if it has no other fields.
#[pyfunction]
pub(crate) fn pruned<'py>(
    py: Python<'py>,
    array: &Bound<'py, PyAny>,
    target: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let kind = array.getattr(intern!(py, "type"))?;
    if kind.call_method1(intern!(py, "equals"), (target,))?.is_truthy()? {
        return Ok(array.clone());
    }
    let (source, wanted) = (import_array(array)?, import_type(target)?);
    let made = py.detach(|| coldframe::projection::prune(&source, &wanted)).map_err(to_python)?;
    let arrays = py.import("pyarrow")?.getattr("Array")?;
    arrays.call_method1(intern!(py, "_import_from_c_capsule"), export_array(py, &made)?)
}
