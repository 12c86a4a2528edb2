//! Filters made in Python.

use coldframe::predicate::substrait;
use coldframe::{Op, Predicate};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::capsule::{import_array, import_schema};
use crate::error::to_python;

/// A filter in normal form, not yet bound to a schema.
#[pyclass(name = "Predicate", module = "coldframe._coldframe", frozen)]
pub(crate) struct PyPredicate(pub(crate) Predicate);

#[pymethods]
impl PyPredicate {
    #[staticmethod]
    fn compare(column: String, op: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let value = import_array(value)?;
        if value.len() != 1 {
            return Err(PyValueError::new_err(format!(
                "expected an array of one value, found {}",
                value.len()
            )));
        }
        Ok(Self(Predicate::compare(column, parse_op(op)?, value)))
    }

    #[staticmethod]
    #[pyo3(signature = (column, values, negated=false))]
    fn is_in(column: String, values: &Bound<'_, PyAny>, negated: bool) -> PyResult<Self> {
        Ok(Self(Predicate::In { column, values: import_array(values)?, negated }))
    }

    #[staticmethod]
    #[pyo3(signature = (column, negated=false))]
    fn is_null(column: String, negated: bool) -> Self {
        Self(Predicate::Null { column, negated })
    }

    #[staticmethod]
    fn all_of(parts: Vec<PyRef<'_, Self>>) -> Self {
        Self(Predicate::And(parts.iter().map(|p| p.0.clone()).collect()))
    }

    #[staticmethod]
    fn any_of(parts: Vec<PyRef<'_, Self>>) -> Self {
        Self(Predicate::Or(parts.iter().map(|p| p.0.clone()).collect()))
    }

    #[staticmethod]
    fn from_substrait(message: &[u8], schema: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let schema = import_schema(schema)?;
        substrait::parse(message, &schema).map(|p| p.map(Self)).map_err(to_python)
    }

    fn negate(&self) -> Self {
        Self(!self.0.clone())
    }

    fn columns(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.0.columns(&mut names);
        let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

fn parse_op(op: &str) -> PyResult<Op> {
    match op {
        "=" | "==" => Ok(Op::Eq),
        "!=" | "<>" => Ok(Op::Ne),
        "<" => Ok(Op::Lt),
        "<=" => Ok(Op::Le),
        ">" => Ok(Op::Gt),
        ">=" => Ok(Op::Ge),
        other => Err(PyValueError::new_err(format!("expected one of = == != < <= > >=, found {other:?}"))),
    }
}
