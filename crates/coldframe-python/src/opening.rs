//! How files are opened: this is built once for all files of a dataset.

use std::collections::BTreeMap;
use std::sync::Arc;

use coldframe::dataset::Opening;
use coldframe::{OpenOptions, SchemaSpec};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::capsule::import_schema;
use crate::storage::{PyStorage, shared};
use crate::value;

/// How files are opened.
#[pyclass(module = "coldframe._coldframe", frozen)]
pub(crate) struct RawOpening {
    pub(crate) opening: Arc<Opening>,
}

fn schema_spec(schema: &Bound<'_, PyAny>) -> PyResult<SchemaSpec> {
    match schema.cast::<PyString>() {
        Ok(ddl) => ddl.extract().map(SchemaSpec::Ddl),
        Err(_) => import_schema(schema).map(SchemaSpec::Arrow),
    }
}

#[pymethods]
impl RawOpening {
    #[new]
    #[pyo3(signature = (*, format=None, storage_options=None, verify_checksums=true, keys=None, schema=None, options=None,
        microseconds=false))]
    fn new(
        format: Option<String>,
        storage_options: Option<&Bound<'_, PyAny>>,
        verify_checksums: bool,
        keys: Option<&Bound<'_, PyAny>>,
        schema: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyAny>>,
        microseconds: bool,
    ) -> PyResult<Self> {
        let given = keys.filter(|keys| !keys.is_none());
        let (known, key_source) =
            given.map_or_else(|| Ok((BTreeMap::new(), None)), crate::keys::from_python)?;
        let options = OpenOptions {
            schema: schema.filter(|schema| !schema.is_none()).map(schema_spec).transpose()?,
            skip_checksums: !verify_checksums,
            keys: known,
            key_source,
            microseconds,
            extra: value::options_from_python(options)?,
            ..OpenOptions::default()
        };
        let storage = PyStorage::new(storage_options)?;
        Ok(Self { opening: Arc::new(Opening { format, options, storage: shared(storage) }) })
    }
}
