//! Options as their formats declare them.

use coldframe::OptionSpec;
use coldframe::Side;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;
use crate::value::to_python;

/// By name: what each takes, its default, its help, the words that it may be, its other names.
pub(crate) fn declared<'py>(
    py: Python<'py>,
    specs: impl IntoIterator<Item = &'static OptionSpec>,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for spec in specs {
        let one = PyDict::new(py);
        let words: Vec<&str> = spec.kind.choices().iter().map(|word| word.name).collect();
        one.set_item("kind", spec.kind.name())?;
        one.set_item("default", to_python(py, &spec.default)?)?;
        one.set_item("choices", words)?;
        one.set_item("aliases", spec.aliases)?;
        one.set_item("help", spec.help)?;
        all.set_item(spec.name, one)?;
    }
    Ok(all)
}

/// What the text of an option means: of a format, or of any where the format is not known yet. An option that no format has stays text.
#[pyfunction]
#[pyo3(signature = (name, text, *, format=None, write=false))]
pub(crate) fn parse_option<'py>(
    py: Python<'py>,
    name: &str,
    text: &str,
    format: Option<&str>,
    write: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let side = if write { Side::Write } else { Side::Open };
    let value = coldframe::parse_option(format, side, name, text).map_err(error::to_python)?;
    to_python(py, &value)
}
