//! Filters made in Python.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use coldframe::predicate::expression::Expression;
use coldframe::predicate::{Condition, Op, Pattern, Predicate, dnf, parse};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySequence, PyString, PyTuple};

use crate::capsule::{import_array, import_schema};
use crate::error::to_python;
use crate::literal::literal;
use crate::scan::RawBatch;

/// A filter that is not bound to a schema.
#[pyclass(name = "Condition", module = "coldframe._coldframe", frozen, eq)]
#[derive(Clone, PartialEq)]
pub(crate) struct PyCondition(pub(crate) Condition);

#[pymethods]
impl PyCondition {
    #[staticmethod]
    fn parse(text: &str) -> PyResult<Self> {
        parse::condition(text).map(Self).map_err(to_python)
    }

    #[staticmethod]
    fn from_lists(lists: &Bound<'_, PyAny>) -> PyResult<Self> {
        from_lists(lists).map(Self)
    }

    #[staticmethod]
    fn compare(column: String, op: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let op = Op::parse(op).ok_or_else(|| {
            PyValueError::new_err(format!("expected one of = == != <> < <= > >=, found {op:?}"))
        })?;
        Ok(Self(Condition::Compare { column, op, value: literal(value)? }))
    }

    #[staticmethod]
    fn is_in(column: String, values: &Bound<'_, PyAny>) -> PyResult<Self> {
        let values = values.try_iter()?.map(|v| literal(&v?)).collect::<PyResult<_>>()?;
        Ok(Self(Condition::In { column, values }))
    }

    #[staticmethod]
    fn is_null(column: String) -> Self {
        Self(Condition::IsNull { column })
    }

    #[staticmethod]
    fn starts_with(column: String, prefix: &str) -> Self {
        let mut pattern = String::with_capacity(prefix.len() + 1);
        for c in prefix.chars() {
            if matches!(c, '%' | '_' | '\\') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern.push('%');
        Self(Condition::Like { column, pattern: Pattern::new(&pattern) })
    }

    #[staticmethod]
    fn all_of(parts: Vec<PyRef<'_, Self>>) -> Self {
        Self(Condition::And(parts.iter().map(|p| p.0.clone()).collect()))
    }

    #[staticmethod]
    fn any_of(parts: Vec<PyRef<'_, Self>>) -> Self {
        Self(Condition::Or(parts.iter().map(|p| p.0.clone()).collect()))
    }

    fn negate(&self) -> Self {
        Self(!self.0.clone())
    }

    fn columns(&self) -> HashSet<String> {
        self.0.columns().into_iter().map(str::to_owned).collect()
    }

    fn bind(&self, schema: &Bound<'_, PyAny>) -> PyResult<PyPredicate> {
        let schema = import_schema(schema)?;
        self.0.bind(&schema).map(PyPredicate).map_err(to_python)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Condition {}>", self.0)
    }
}

/// What a pyarrow expression contains, from its pickled form.
#[pyclass(name = "Calls", module = "coldframe._coldframe", frozen)]
pub(crate) struct PyCalls(Expression);

#[pymethods]
impl PyCalls {
    #[new]
    fn new(message: &[u8]) -> PyResult<Self> {
        Expression::read(message).map(Self).map_err(to_python)
    }

    fn columns(&self) -> Vec<String> {
        self.0.columns().into_iter().map(str::to_owned).collect()
    }

    #[getter]
    fn depth(&self) -> usize {
        self.0.depth()
    }

    fn predicate(&self, schema: &Bound<'_, PyAny>) -> PyResult<Option<PyPredicate>> {
        let schema = import_schema(schema)?;
        self.0.predicate(&schema).map(|predicate| predicate.map(PyPredicate)).map_err(to_python)
    }
}

/// The filter lists of pyarrow.parquet: `[(column, op, value), ..]`, or a list of such lists.
fn from_lists(lists: &Bound<'_, PyAny>) -> PyResult<Condition> {
    let malformed = || {
        let shown = lists.repr().map_or_else(|_| String::new(), |r| r.to_string());
        PyValueError::new_err(format!(
            "malformed filter {shown}: expected [(column, op, value), ...], a list of such lists, \
             a pyarrow.compute.Expression, or SQL text"
        ))
    };
    if lists.is_instance_of::<PyString>() || lists.is_instance_of::<PyBytes>() {
        return Err(malformed());
    }
    let parts = items(lists).ok_or_else(malformed)?;
    if parts.is_empty() {
        return Err(malformed());
    }
    if parts.iter().all(|p| p.is_instance_of::<PyTuple>()) {
        return all_of(&parts);
    }
    let mut any = Vec::new();
    for part in &parts {
        let is_list = !part.is_instance_of::<PyTuple>() && !part.is_instance_of::<PyString>();
        any.push(all_of(&items(part).filter(|_| is_list).ok_or_else(malformed)?)?);
    }
    Ok(if any.len() == 1 { any.remove(0) } else { Condition::Or(any) })
}

fn items<'py>(sequence: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    sequence.cast::<PySequence>().ok()?.try_iter().ok()?.collect::<PyResult<_>>().ok()
}

fn all_of(parts: &[Bound<'_, PyAny>]) -> PyResult<Condition> {
    let parts = parts.iter().map(leaf).collect::<PyResult<Vec<_>>>()?;
    dnf::all_of(parts).map_err(to_python)
}

fn leaf(part: &Bound<'_, PyAny>) -> PyResult<Condition> {
    let malformed = |why: &str| {
        let shown = part.repr().map_or_else(|_| String::new(), |r| r.to_string());
        PyValueError::new_err(format!("malformed filter {shown}: {why}"))
    };
    let expected = || malformed("expected (column, op, value)");
    let tuple = part.cast::<PyTuple>().map_err(|_| expected())?;
    if !matches!(tuple.len(), 2 | 3) {
        return Err(expected());
    }
    let (column, op) = (tuple.get_item(0)?, tuple.get_item(1)?);
    let column = column.cast::<PyString>().map_err(|_| expected())?.to_string();
    let op = op.cast::<PyString>().map_err(|_| expected())?.to_string();
    let operand = match tuple.get_item(2) {
        Err(_) => dnf::Operand::Missing,
        Ok(value) if dnf::takes_many(&op) => {
            let is_text = value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>();
            match value.try_iter() {
                Ok(values) if !is_text => {
                    dnf::Operand::Many(values.map(|v| literal(&v?)).collect::<PyResult<_>>()?)
                }
                _ => return Err(malformed(&format!("{op:?} needs a collection of values"))),
            }
        }
        Ok(value) => dnf::Operand::Single(literal(&value)?),
    };
    dnf::condition(&column, &op, operand).map_err(|e| match e.kind() {
        coldframe::ErrorKind::InvalidArgument(_) => malformed(&format!("unknown operator {op:?}")),
        _ => to_python(e),
    })
}

/// A filter in normal form, bound to a schema.
#[pyclass(name = "Predicate", module = "coldframe._coldframe", frozen)]
pub(crate) struct PyPredicate(pub(crate) Predicate);

#[pymethods]
impl PyPredicate {
    fn columns(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.0.columns(&mut names);
        let names: BTreeSet<&str> = names.into_iter().collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// The nodes of the filter, for translation into another language: `("and", nodes)`, `("or", nodes)`, or
    /// a test of a column: its kind, the column, the operand, whether the result is negated.
    fn tree<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tree(py, &self.0)
    }

    /// A boolean or null for each row of a record batch, as a batch of one column.
    fn evaluate(&self, py: Python<'_>, batch: &Bound<'_, PyAny>) -> PyResult<RawBatch> {
        let columns = import_array(batch)?;
        let columns =
            columns.as_struct_opt().ok_or_else(|| PyTypeError::new_err("expected a record batch"))?;
        let batch = RecordBatch::from(columns.clone());
        py.detach(|| {
            let passes: ArrayRef = Arc::new(self.0.evaluate(&batch)?);
            RecordBatch::try_from_iter_with_nullable([("passes", passes, true)])
                .map_err(coldframe::arrow_error)
        })
        .map(RawBatch)
        .map_err(to_python)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

fn tree<'py>(py: Python<'py>, predicate: &Predicate) -> PyResult<Bound<'py, PyTuple>> {
    let all = |parts: &[Predicate]| parts.iter().map(|part| tree(py, part)).collect::<PyResult<Vec<_>>>();
    let values = |values: &ArrayRef| single_column("value", values.clone());
    match predicate {
        Predicate::And(parts) => ("and", all(parts)?).into_pyobject(py),
        Predicate::Or(parts) => ("or", all(parts)?).into_pyobject(py),
        Predicate::Compare { column, op, value, negated } => {
            (op.to_string(), column, values(value)?, *negated).into_pyobject(py)
        }
        Predicate::In { column, values: members, negated } => {
            ("in", column, values(members)?, *negated).into_pyobject(py)
        }
        Predicate::Null { column, negated } => ("null", column, py.None(), *negated).into_pyobject(py),
        // No other language has this test.
        Predicate::Trimmed(_) => ("and", Vec::<Bound<'py, PyTuple>>::new()).into_pyobject(py),
        Predicate::Like { column, pattern, negated } => {
            ("like", column, pattern.as_str(), *negated).into_pyobject(py)
        }
    }
}

fn single_column(name: &str, values: ArrayRef) -> PyResult<RawBatch> {
    let batch = RecordBatch::try_from_iter_with_nullable([(name, values, true)]);
    batch.map(RawBatch).map_err(|e| to_python(coldframe::arrow_error(e)))
}
