//! Converts types of pyarrow to the types of a consumer, and to and from Hive DDL.

use arrow_schema::{DataType, TimeUnit};
use coldframe::ddl;
use coldframe::options::TimestampUnit;
use coldframe::types::Consumer;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::capsule::{export_schema, export_type, import_schema, import_type};
use crate::error::to_python;

fn spark(timestamp_unit: &str) -> Consumer {
    Consumer::spark(if timestamp_unit == "ns" { TimeUnit::Nanosecond } else { TimeUnit::Microsecond })
}

/// Imports a capsule as an object of pyarrow.
pub(crate) fn pyarrow<'py>(
    py: Python<'py>,
    class: &str,
    capsule: Bound<'py, PyCapsule>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("pyarrow")?.getattr(class)?.call_method1(intern!(py, "_import_from_c_capsule"), (capsule,))
}

/// Spark's type for the values of a pyarrow.DataType.
#[pyfunction]
pub(crate) fn plain_type<'py>(
    py: Python<'py>,
    arrow_type: &Bound<'py, PyAny>,
    timestamp_unit: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let plain: DataType = spark(timestamp_unit).plain(&import_type(arrow_type)?).map_err(to_python)?;
    pyarrow(py, "DataType", export_type(py, &plain)?)
}

/// A pyarrow.Schema in Spark's types.
#[pyfunction]
pub(crate) fn plain_schema<'py>(
    py: Python<'py>,
    schema: &Bound<'py, PyAny>,
    timestamp_unit: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let plain = spark(timestamp_unit).schema(import_schema(schema)?.as_ref()).map_err(to_python)?;
    pyarrow(py, "Schema", export_schema(py, &plain)?)
}

/// A pyarrow.DataType as text; structs whose fields differ only in order have the same text.
#[pyfunction]
pub(crate) fn type_shape(arrow_type: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(coldframe::types::shape(&import_type(arrow_type)?))
}

/// Parses columns in Hive DDL to a pyarrow.Schema. With `partitions`, only types are allowed whose values can
/// be names of directories. `timestamp_unit`: `ns` or `us`.
#[pyfunction]
#[pyo3(signature = (text, *, partitions=false, timestamp_unit="us"))]
pub(crate) fn parse_columns<'py>(
    py: Python<'py>,
    text: &str,
    partitions: bool,
    timestamp_unit: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let unit = match timestamp_unit {
        "ns" => TimestampUnit::Nanosecond,
        _ => TimestampUnit::Microsecond,
    };
    let parsed = if partitions { ddl::parse_partitions(text, unit) } else { ddl::parse_columns(text, unit) };
    pyarrow(py, "Schema", export_schema(py, &parsed.map_err(to_python)?)?)
}

/// Columns as a list in Hive DDL.
#[pyfunction]
pub(crate) fn print_columns(schema: &Bound<'_, PyAny>) -> PyResult<String> {
    ddl::print_columns(import_schema(schema)?.as_ref()).map_err(to_python)
}
