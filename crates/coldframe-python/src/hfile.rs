//! Operations that only HFiles and tables of them have: cells and pairs by key.

use std::sync::{Mutex, PoisonError};

use arrow_array::{RecordBatch, StructArray};
use arrow_schema::SchemaRef;
use coldframe::TableFile;
use coldframe::hbase::HBaseTable;
use coldframe::{Error, File, Result};
use coldframe_hfile::{HFile, RowQuery};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyString};

use crate::capsule::{BareArray, export_schema};
use crate::error::to_python;
use crate::file::RawFile;
use crate::scan::RawBatch;

/// The file as an HFile. If it is no HFile, an unsupported error that names the operation.
pub(crate) fn hfile<'f>(file: &'f File, what: &str) -> PyResult<&'f HFile> {
    let table: Option<&HFile> = file.table.as_any().downcast_ref();
    table.ok_or_else(|| {
        let format = file.table.format();
        let table = if format == "hfile" { "a table of many HFiles" } else { format };
        to_python(file.named(Error::unsupported(format!("{what} of {table}; {what} needs a single HFile"))))
    })
}

/// A key: bytes, or text as UTF-8.
pub(crate) struct Key(pub(crate) Vec<u8>);

impl<'a, 'py> FromPyObject<'a, 'py> for Key {
    type Error = PyErr;

    fn extract(key: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match key.cast::<PyString>() {
            Ok(text) => Ok(Self(text.to_str()?.as_bytes().to_vec())),
            Err(_) => key.extract().map(Self),
        }
    }
}

/// The cells that a look-up found.
#[pyclass(module = "coldframe._coldframe", frozen)]
pub(crate) struct RawCells {
    batches: Vec<BareArray>,
    schema: SchemaRef,
}

impl RawCells {
    fn new(file: &File, schema: &SchemaRef, batches: Result<Vec<RecordBatch>>) -> PyResult<Self> {
        let batches = batches.map_err(|e| to_python(file.named(e)))?;
        let batches = batches.into_iter().map(|batch| BareArray::new(&StructArray::from(batch))).collect();
        Ok(Self { batches, schema: schema.clone() })
    }
}

#[pymethods]
impl RawCells {
    /// The addresses of the batches' structs; there is at least one.
    fn addresses(&self) -> Vec<usize> {
        self.batches.iter().map(BareArray::address).collect()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.schema)
    }
}

/// The table as an HBase table.
fn hbase(file: &File) -> Option<&HBaseTable> {
    file.table.as_any().downcast_ref()
}

/// The cells of a row, or the pairs of a key.
#[pyfunction]
pub(crate) fn hfile_get(py: Python<'_>, file: &RawFile, key: Key) -> PyResult<RawCells> {
    if let Some(table) = hbase(&file.0) {
        return RawCells::new(&file.0, table.schema(), py.detach(|| table.get(&key.0)));
    }
    let table = hfile(&file.0, "get")?;
    RawCells::new(&file.0, table.cell_schema(), py.detach(|| table.get(&key.0)))
}

/// The cells of many rows in file order.
#[pyfunction]
pub(crate) fn hfile_get_many(py: Python<'_>, file: &RawFile, keys: Vec<Key>) -> PyResult<RawCells> {
    let keys: Vec<Vec<u8>> = keys.into_iter().map(|key| key.0).collect();
    if let Some(table) = hbase(&file.0) {
        return RawCells::new(&file.0, table.schema(), py.detach(|| table.get_many(&keys)));
    }
    let table = hfile(&file.0, "get_many")?;
    RawCells::new(&file.0, table.cell_schema(), py.detach(|| table.get_many(&keys)))
}

/// The cells of a range of rows.
#[pyfunction]
#[pyo3(signature = (file, *, start=None, stop=None, prefix=None, reverse=false, columns=None, time_range=None,
    max_versions=None, batch_size=65536))]
#[expect(clippy::too_many_arguments, reason = "they are keyword arguments")]
pub(crate) fn hfile_scan(
    py: Python<'_>,
    file: &RawFile,
    start: Option<Key>,
    stop: Option<Key>,
    prefix: Option<Key>,
    reverse: bool,
    columns: Option<Vec<String>>,
    time_range: Option<(i64, i64)>,
    max_versions: Option<u32>,
    batch_size: usize,
) -> PyResult<RawRows> {
    let query = RowQuery {
        start: start.map(|key| key.0),
        stop: stop.map(|key| key.0),
        prefix: prefix.map(|key| key.0),
        reverse,
        columns: columns.unwrap_or_default(),
        time_range,
        max_versions,
        batch_rows: batch_size,
    };
    let named = |e| to_python(file.0.named(e));
    if let Some(table) = hbase(&file.0) {
        let scan = py.detach(|| table.scan_rows(&query)).map_err(named)?;
        return Ok(RawRows {
            schema: scan.schema().clone(),
            scan: Mutex::new(Box::new(scan)),
            file: file.0.clone(),
        });
    }
    let table = hfile(&file.0, "scan")?;
    let scan = py.detach(|| table.scan_rows(&query)).map_err(named)?;
    Ok(RawRows { schema: scan.schema().clone(), scan: Mutex::new(Box::new(scan)), file: file.0.clone() })
}

/// Reads the cells of a range of rows once.
#[pyclass(module = "coldframe._coldframe", frozen)]
pub(crate) struct RawRows {
    scan: Mutex<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>>,
    schema: SchemaRef,
    file: File,
}

#[pymethods]
impl RawRows {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RawBatch>> {
        py.check_signals()?;
        let next = py.detach(|| self.scan.lock().unwrap_or_else(PoisonError::into_inner).next());
        next.transpose().map(|batch| batch.map(RawBatch)).map_err(|e| to_python(self.file.named(e)))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.schema)
    }
}
