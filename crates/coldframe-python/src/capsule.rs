//! Exchanges Arrow data with other libraries through the PyCapsule interface.
//!
//! Together with [`crate::allocator`] this is the only unsafe code of the package. By the contract of the
//! PyCapsule protocol, a capsule of the right name holds a struct of the C data interface. The name is
//! checked before the pointer is used.
#![expect(unsafe_code, reason = "the C data interface hands over raw pointers")]

use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader, StructArray, make_array};
use arrow_schema::{DataType, Schema, SchemaRef};
use coldframe::{Error, arrow_error};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::error::to_python;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// The number of levels of a type that Arrow's importers accept: 64, including the level of the table.
const MAX_LEVELS: usize = 63;

fn failed(e: arrow_schema::ArrowError) -> PyErr {
    to_python(arrow_error(e))
}

/// Whether a type has more than `most` levels.
fn is_deeper(kind: &DataType, most: usize) -> bool {
    let Some(below) = most.checked_sub(1) else { return true };
    match kind {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => is_deeper(field.data_type(), below),
        DataType::Struct(fields) => fields.iter().any(|field| is_deeper(field.data_type(), below)),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| is_deeper(field.data_type(), below)),
        _ => false,
    }
}

/// Refuses columns that the importers of Arrow's C data interface refuse with an error of their own.
fn check_depth(schema: &Schema) -> PyResult<()> {
    let deep: Vec<String> = schema
        .fields()
        .iter()
        .filter(|field| is_deeper(field.data_type(), MAX_LEVELS))
        .map(|field| format!("`{}`", field.name()))
        .collect();
    if deep.is_empty() {
        return Ok(());
    }
    let deep = deep.join(", ");
    Err(to_python(Error::unsupported(format!(
        "columns of more than {MAX_LEVELS} levels, where Arrow's C data interface ends: {deep}; read other columns by \
         `columns`"
    ))))
}

/// Exports a schema.
pub(crate) fn export_schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    check_depth(schema)?;
    let ffi = FFI_ArrowSchema::try_from(schema).map_err(failed)?;
    PyCapsule::new_with_value(py, ffi, SCHEMA)
}

/// Exports a type.
pub(crate) fn export_type<'py>(py: Python<'py>, kind: &DataType) -> PyResult<Bound<'py, PyCapsule>> {
    let ffi = FFI_ArrowSchema::try_from(kind).map_err(failed)?;
    PyCapsule::new_with_value(py, ffi, SCHEMA)
}

/// Exports an array; a batch is exported as a struct array.
pub(crate) fn export_array<'py>(py: Python<'py>, array: &dyn Array) -> PyResult<Bound<'py, PyTuple>> {
    let (array, schema) = to_ffi(&array.to_data()).map_err(failed)?;
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
    let array = PyCapsule::new_with_value(py, array, ARRAY)?;
    PyTuple::new(py, [schema, array])
}

/// A batch for a library in this process that already knows the columns: only the array struct, without the
/// schema struct.
pub(crate) struct BareArray(Mutex<Box<FFI_ArrowArray>>);

impl BareArray {
    pub(crate) fn new(batch: &StructArray) -> Self {
        Self(Mutex::new(Box::new(FFI_ArrowArray::new(&batch.to_data()))))
    }

    /// The address of the struct, valid as long as this object lives. A library that imports the struct
    /// leaves a released struct in its place. If it is not imported, it is released with this object.
    pub(crate) fn address(&self) -> usize {
        let mut array = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::ptr::from_mut::<FFI_ArrowArray>(array.as_mut()).expose_provenance()
    }
}

/// Exports a stream. The reader of the stream runs without the GIL if the consumer has released the GIL.
pub(crate) fn export_stream(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    check_depth(&reader.schema())?;
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// The capsule returned by `object.method()`.
fn capsule<'py>(object: &Bound<'py, PyAny>, method: &str) -> PyResult<Bound<'py, PyAny>> {
    if !object.hasattr(method)? {
        let kind = object.get_type();
        return Err(PyTypeError::new_err(format!("expected an object with {method}, found {kind}")));
    }
    object.call_method0(method)
}

/// The pointer in a capsule named `name`.
fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    let capsule = capsule.cast::<PyCapsule>()?;
    Ok(capsule.pointer_checked(Some(name))?.cast::<T>().as_ptr())
}

/// Imports the schema of an object with `__arrow_c_schema__`.
pub(crate) fn import_schema(object: &Bound<'_, PyAny>) -> PyResult<SchemaRef> {
    schema_in(&capsule(object, "__arrow_c_schema__")?)
}

/// Imports the schema in a capsule.
pub(crate) fn schema_in(capsule: &Bound<'_, PyAny>) -> PyResult<SchemaRef> {
    let schema = pointer::<FFI_ArrowSchema>(capsule, SCHEMA)?;
    // SAFETY: a capsule of this name holds a valid `ArrowSchema` as long as it lives, which is until the end of this
    // function; the struct is only read.
    let schema = unsafe { &*schema };
    Ok(Arc::new(Schema::try_from(schema).map_err(failed)?))
}

/// Imports the type of an object with `__arrow_c_schema__`. An extension type becomes its storage type.
pub(crate) fn import_type(object: &Bound<'_, PyAny>) -> PyResult<DataType> {
    let capsule = capsule(object, "__arrow_c_schema__")?;
    let schema = pointer::<FFI_ArrowSchema>(&capsule, SCHEMA)?;
    // SAFETY: as in `schema_in`.
    let schema = unsafe { &*schema };
    DataType::try_from(schema).map_err(failed)
}

/// Imports the array of an object with `__arrow_c_array__`.
pub(crate) fn import_array(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let pair = capsule(object, "__arrow_c_array__")?;
    let pair = pair.cast::<PyTuple>()?;
    let (schema, array) = (pair.get_item(0)?, pair.get_item(1)?);
    let schema = pointer::<FFI_ArrowSchema>(&schema, SCHEMA)?;
    let array = pointer::<FFI_ArrowArray>(&array, ARRAY)?;
    // SAFETY: capsules of these names hold valid structs while `pair` lives. `from_raw` moves the array out
    // and leaves a released array in its place, as the protocol requires of a consumer. The buffers are not
    // checked: the producer is code of this process.
    let data = unsafe { from_ffi(FFI_ArrowArray::from_raw(array), &*schema) }.map_err(failed)?;
    Ok(make_array(data))
}

/// Imports the batch of an object with `__arrow_c_array__`.
pub(crate) fn import_batch(object: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let array = import_array(object)?;
    let Some(columns) = array.as_struct_opt() else {
        let kind = array.data_type();
        return Err(to_python(Error::schema(format!("expected a batch, found {kind}"))));
    };
    Ok(RecordBatch::from(columns.clone()))
}

/// Imports the stream of an object with `__arrow_c_stream__`.
pub(crate) fn import_stream(object: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = capsule(object, "__arrow_c_stream__")?;
    let stream = pointer::<FFI_ArrowArrayStream>(&capsule, STREAM)?;
    // SAFETY: a capsule of this name holds a valid `ArrowArrayStream`; `from_raw` moves it out and leaves a
    // released stream in its place, as the protocol requires of a consumer.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream) };
    reader.map_err(|e| to_python(Error::schema(e.to_string())))
}
