//! The hierarchy of Python exceptions, and the conversion of errors to them.

use coldframe::{Error, ErrorKind};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyException, PyFileExistsError, PyOSError, PyPermissionError, PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

create_exception!(_coldframe, ColdframeError, PyException, "Base of all errors of this package.");
create_exception!(
    _coldframe,
    CorruptFileError,
    ColdframeError,
    "The bytes break the format's rules. Attributes: path, offset, structure, reason."
);
create_exception!(
    _coldframe,
    UnsupportedError,
    ColdframeError,
    "Valid, but not supported by this package. Attribute: what."
);
create_exception!(
    _coldframe,
    KeyUnavailableError,
    ColdframeError,
    "The data is encrypted, and none of the given keys decrypts it."
);
create_exception!(
    _coldframe,
    LimitError,
    ColdframeError,
    "The file asks for more than a limit of this package; it may be intact. Attributes: path, offset, structure, what, \
     limit, option (the option of `open` that raises the limit)."
);
create_exception!(_coldframe, NotFoundError, ColdframeError, "The file, table or column does not exist.");

/// `SchemaError` is a `ColdframeError` and also a `ValueError`, like pyarrow's errors about values. PyO3's
/// macro supports only one base class.
fn schema_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        let bases = PyTuple::new(py, [py.get_type::<ColdframeError>(), py.get_type::<PyValueError>()])?;
        let attributes = PyDict::new(py);
        attributes.set_item("__module__", "_coldframe")?;
        attributes.set_item("__doc__", "A schema, column, type or value that does not fit.")?;
        let class = py.get_type::<PyType>().call1(("SchemaError", bases, attributes))?;
        Ok::<_, PyErr>(class.cast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py))
}

/// Adds the exceptions to the module.
pub(crate) fn add_to(py: Python<'_>, module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ColdframeError", py.get_type::<ColdframeError>())?;
    module.add("CorruptFileError", py.get_type::<CorruptFileError>())?;
    module.add("UnsupportedError", py.get_type::<UnsupportedError>())?;
    module.add("SchemaError", schema_error(py)?)?;
    module.add("KeyUnavailableError", py.get_type::<KeyUnavailableError>())?;
    module.add("LimitError", py.get_type::<LimitError>())?;
    module.add("NotFoundError", py.get_type::<NotFoundError>())
}

/// The exception for an error, with its attributes.
pub(crate) fn to_python(e: Error) -> PyErr {
    let message = e.to_string();
    match e.kind() {
        ErrorKind::Corrupt(_) | ErrorKind::Checksum { .. } => corrupt(&e, message),
        ErrorKind::LimitExceeded { what, limit, option, .. } => {
            with_attributes(LimitError::new_err(message), |object| {
                set_place(&e, object)?;
                object.setattr("what", what)?;
                object.setattr("limit", limit)?;
                object.setattr("option", option)
            })
        }
        ErrorKind::Unsupported(what) => {
            let error = UnsupportedError::new_err(message);
            with_attributes(error, |object| object.setattr("what", what))
        }
        ErrorKind::Schema(_) => Python::attach(|py| match schema_error(py) {
            Ok(class) => PyErr::from_type(class.clone(), message),
            Err(other) => other,
        }),
        ErrorKind::KeyUnavailable(_) => KeyUnavailableError::new_err(message),
        ErrorKind::NotFound(_) => NotFoundError::new_err(message),
        ErrorKind::InvalidArgument(_) => PyValueError::new_err(message),
        ErrorKind::Io(e) => match e.kind() {
            std::io::ErrorKind::AlreadyExists => PyFileExistsError::new_err(message),
            std::io::ErrorKind::PermissionDenied => PyPermissionError::new_err(message),
            std::io::ErrorKind::TimedOut => PyTimeoutError::new_err(message),
            _ => PyOSError::new_err(message),
        },
        ErrorKind::Foreign(_) => foreign(e, message),
        _ => ColdframeError::new_err(message),
    }
}

fn corrupt(e: &Error, message: String) -> PyErr {
    with_attributes(CorruptFileError::new_err(message), |object| {
        set_place(e, object)?;
        object.setattr("reason", e.reason())
    })
}

fn set_place(e: &Error, object: &Bound<'_, PyAny>) -> PyResult<()> {
    object.setattr("path", e.path())?;
    object.setattr("offset", e.offset())?;
    object.setattr("structure", e.structure())
}

fn with_attributes(error: PyErr, set: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) -> PyErr {
    Python::attach(|py| match set(error.value(py).as_any()) {
        Ok(()) => error,
        Err(other) => other,
    })
}

/// An exception raised by the user's Python code is passed on unchanged.
fn foreign(e: Error, message: String) -> PyErr {
    match e.into_kind() {
        ErrorKind::Foreign(inner) => match inner.downcast::<PyErr>() {
            Ok(error) => *error,
            Err(_) => ColdframeError::new_err(message),
        },
        _ => ColdframeError::new_err(message),
    }
}

/// Wraps a Python exception as an error that [`to_python`] returns unchanged.
pub(crate) fn from_python(error: PyErr) -> Error {
    Error::new(ErrorKind::Foreign(Box::new(error)))
}
