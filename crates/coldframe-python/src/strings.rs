//! The layout of strings that consumers request: plain or as views.

use coldframe::options::{Field as _, Strings};
use coldframe::types::views;
use pyo3::prelude::*;

use crate::capsule::{export_schema, import_schema, schema_in};
use crate::error::to_python;
use crate::types::pyarrow;

/// Parses a layout; `None` is the layout that the file was opened with.
pub(crate) fn parse_strings(strings: Option<&str>) -> PyResult<Option<Strings>> {
    strings.map(|layout| Strings::from_value(layout.into())).transpose().map_err(to_python)
}

/// The layout that a consumer requests by the schema capsule of `__arrow_c_stream__`; `None` if the consumer
/// requests none.
#[pyfunction]
pub(crate) fn requested_strings(requested: Option<&Bound<'_, PyAny>>) -> PyResult<Option<&'static str>> {
    let schema = requested.map(schema_in).transpose()?;
    Ok(schema.and_then(|schema| views::asked(&schema)).map(Strings::name))
}

/// A pyarrow.Schema without views; the object itself if it has no views.
#[pyfunction]
pub(crate) fn without_views<'py>(py: Python<'py>, schema: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let own = import_schema(schema)?;
    let plain = views::laid_out(&own, Strings::Plain);
    if plain == own { Ok(schema.clone()) } else { pyarrow(py, "Schema", export_schema(py, &plain)?) }
}
