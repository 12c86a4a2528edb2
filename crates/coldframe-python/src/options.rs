//! Options as their formats declare them.

use coldframe::OptionSpec;
use coldframe::Side;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;
use crate::value::to_python;

/// The options by name, each with its kind, default, choices, aliases and help.
pub(crate) fn declared<'py>(
    py: Python<'py>,
    specs: impl IntoIterator<Item = &'static OptionSpec>,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for spec in specs {
        let option = PyDict::new(py);
        let choices: Vec<&str> = spec.kind.choices().iter().map(|word| word.name).collect();
        option.set_item("kind", spec.kind.name())?;
        option.set_item("default", to_python(py, &spec.default)?)?;
        option.set_item("choices", choices)?;
        option.set_item("aliases", spec.aliases)?;
        option.set_item("help", spec.help)?;
        all.set_item(spec.name, option)?;
    }
    Ok(all)
}

/// Parses the text of an option of a format, or of any format if it is not known yet. If no format has the
/// option, the value stays text.
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
