//! Python's values as literals of a filter.

use arrow_array::Array;
use coldframe::predicate::{Literal, Number};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyMemoryView, PyString};

use crate::capsule::import_array;

/// The `date.toordinal()` of 1970-01-01 in Python.
const EPOCH: i64 = 719_163;
const DAY_NANOS: i128 = 86_400_000_000_000;

/// Converts a value of any class. A value that no column can be compared with is kept too, because the error
/// can be clear only once the column's name is known.
pub(crate) fn literal(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    if value.is_none() {
        return Ok(Literal::Null);
    }
    // A bool is an int in Python, so it is tested first.
    if let Ok(v) = value.cast::<PyBool>() {
        return Ok(Literal::Bool(v.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        let text = value.call_method0("__index__")?.str()?.to_string();
        return Ok(Number::parse(&text).map_or_else(|| other(value), Literal::Number));
    }
    if let Ok(v) = value.cast::<PyFloat>() {
        return v.extract().map(Literal::Float);
    }
    if let Ok(v) = value.cast::<PyString>() {
        return v.extract().map(Literal::Text);
    }
    if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        return value.extract().map(Literal::Bytes);
    }
    if value.is_instance_of::<PyMemoryView>() {
        return value.call_method0("tobytes")?.extract().map(Literal::Bytes);
    }
    if value.hasattr("as_py")? {
        return scalar(value);
    }
    let py = value.py();
    let class = value.get_type().name()?.to_string();
    if class == "NaTType" {
        return Ok(Literal::Null); // pandas has one null for all kinds of times
    }
    if value.is_instance(&py.import("decimal")?.getattr("Decimal")?)? {
        let text = value.str()?.to_string();
        let number = Number::parse(&text).map(Literal::Number);
        return Ok(number.or_else(|| text.parse().ok().map(Literal::Float)).unwrap_or_else(|| other(value)));
    }
    let datetime = py.import("datetime")?;
    if value.is_instance(&datetime.getattr("datetime")?)? {
        return instant(value, &datetime);
    }
    if value.is_instance(&datetime.getattr("date")?)? {
        return Ok(Literal::Date(value.call_method0("toordinal")?.extract::<i64>()? - EPOCH));
    }
    // The value is a NumPy scalar. Times are converted by Arrow, since only Arrow keeps their nanoseconds.
    if value.hasattr("item")? && !matches!(class.as_str(), "datetime64" | "timedelta64") {
        return literal(&value.call_method0("item")?);
    }
    match py.import("pyarrow")?.call_method1("scalar", (value,)) {
        Ok(made) => scalar(&made),
        Err(_) => Ok(other(value)),
    }
}

/// A scalar of pyarrow.
fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    if !value.getattr("is_valid")?.extract::<bool>()? {
        return Ok(Literal::Null);
    }
    let array = value.py().import("pyarrow")?.call_method1("repeat", (value, 1));
    match array.and_then(|array| import_array(&array)) {
        Ok(array) if array.len() == 1 => Ok(Literal::from_array(&array, 0)),
        _ => Ok(other(value)),
    }
}

/// A `datetime`, or a pandas Timestamp with its nanoseconds.
fn instant(value: &Bound<'_, PyAny>, datetime: &Bound<'_, PyModule>) -> PyResult<Literal> {
    let zoned = !value.getattr("tzinfo")?.is_none();
    let utc = datetime.getattr("timezone")?.getattr("utc")?;
    let value = if zoned { value.call_method1("astimezone", (utc,))? } else { value.clone() };
    let part = |name: &str| value.getattr(name)?.extract::<i128>();
    let days = value.call_method0("toordinal")?.extract::<i64>()? - EPOCH;
    let seconds = (part("hour")? * 60 + part("minute")?) * 60 + part("second")?;
    let nanosecond = if value.hasattr("nanosecond")? { part("nanosecond")? } else { 0 };
    let nanos =
        i128::from(days) * DAY_NANOS + seconds * 1_000_000_000 + part("microsecond")? * 1_000 + nanosecond;
    Ok(Literal::Instant { nanos, zoned })
}

fn other(value: &Bound<'_, PyAny>) -> Literal {
    let class = value.get_type().name().map_or_else(|_| "object".to_owned(), |n| n.to_string());
    let shown = value.repr().map_or_else(|_| String::new(), |r| r.to_string());
    Literal::Other(format!("{class} {shown}"))
}
