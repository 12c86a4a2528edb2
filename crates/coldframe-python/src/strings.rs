//! How consumers want strings laid out: plain, or as views.

use coldframe::options::{Field as _, Strings};
use coldframe::types::views;
use pyo3::prelude::*;

use crate::capsule::{export_schema, import_schema, schema_in};
use crate::error::to_python;
use crate::types::pyarrow;

/// `None` as the file was opened with.
pub(crate) fn parse_strings(strings: Option<&str>) -> PyResult<Option<Strings>> {
    strings.map(|word| Strings::from_value(word.into())).transpose().map_err(to_python)
}

/// What a consumer asks for by the schema capsule that it passes to `__arrow_c_stream__`; `None` if it asks for nothing.
#[pyfunction]
pub(crate) fn requested_strings(requested: Option<&Bound<'_, PyAny>>) -> PyResult<Option<&'static str>> {
    let schema = requested.map(schema_in).transpose()?;
    Ok(schema.and_then(|schema| views::asked(&schema)).map(Strings::name))
}

/// A pyarrow.Schema without views; the object itself if it has none.
#[pyfunction]
pub(crate) fn without_views<'py>(py: Python<'py>, schema: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let found = import_schema(schema)?;
    let plain = views::laid_out(&found, Strings::Plain);
    if plain == found { Ok(schema.clone()) } else { pyarrow(py, "Schema", export_schema(py, &plain)?) }
}
