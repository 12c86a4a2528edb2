//! Converts rows to files for a migration, without the GIL.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, RecordBatch, RecordBatchReader, UInt32Array};
use coldframe::store::{Mode, Store};
use coldframe::types::Arrangement;
use coldframe::{Dest, Error, Result, WriteOptions};
use coldframe_migrate::{
    Converted, Decoded, Finished, Names, ParquetOptions, Partitioner, Shape, TargetFile, TargetFormat,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::capsule::{import_array, import_schema, import_stream};
use crate::error::to_python;
use crate::file::tick;
use crate::fingerprint::{RawFingerprint, RawObserved};
use crate::scan::{RawBatch, RawScan};
use crate::store::PyStore;
use crate::value;

/// How to convert and record the rows of a source.
#[pyclass(frozen, module = "coldframe._coldframe")]
pub(crate) struct RawShape(Shape);

#[pymethods]
impl RawShape {
    #[new]
    #[pyo3(signature = (schema, *, names=None, constants=None, verify=true, stated=None))]
    fn new(
        schema: &Bound<'_, PyAny>,
        names: Option<Vec<String>>,
        constants: Option<BTreeMap<String, Bound<'_, PyAny>>>,
        verify: bool,
        stated: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let constants = constants.unwrap_or_default().into_iter();
        let constants = constants.map(|(name, array)| Ok((name, import_array(&array)?)));
        let arrangement = Arrangement {
            target: import_schema(schema)?,
            names,
            constants: constants.collect::<PyResult<_>>()?,
        };
        Ok(Self(Shape { arrangement, verify, compared: stated.unwrap_or_default() }))
    }
}

/// Passes the rows of a [`RawScan`], or of any Arrow stream, to `work`, without the GIL.
fn with_rows<T: Send>(
    py: Python<'_>,
    rows: &Bound<'_, PyAny>,
    work: impl FnOnce(&mut dyn RecordBatchReader) -> Result<T> + Send,
) -> PyResult<T> {
    let done = if let Ok(scan) = rows.cast::<RawScan>() {
        let mut scan = scan.get().take()?;
        py.detach(|| work(&mut scan))
    } else {
        let mut stream = import_stream(rows)?;
        py.detach(|| work(&mut stream))
    };
    done.map_err(to_python)
}

/// Fails if the user has pressed Ctrl-C; called between batches.
fn interruptible() -> Result<()> {
    tick(None, 0)
}

fn target_format(format: &str, options: Option<&Bound<'_, PyAny>>) -> PyResult<TargetFormat> {
    let options = value::options_from_python(options)?;
    Ok(match format {
        "parquet" => TargetFormat::Parquet(ParquetOptions::from_options(&options).map_err(to_python)?),
        own => TargetFormat::Own(own.to_owned(), WriteOptions { extra: options }),
    })
}

/// Names the files of a folder: `part.parquet`, `part-1.parquet`, ...
struct Numbered {
    folder: Store,
    name: String,
}

impl Numbered {
    fn path(&self, number: usize) -> String {
        match (number, self.name.rsplit_once('.')) {
            (0, _) => self.name.clone(),
            (_, Some((base, ending))) => format!("{base}-{number}.{ending}"),
            (_, None) => format!("{}-{number}", self.name),
        }
    }
}

impl Names for Numbered {
    fn dest(&self, number: usize) -> Result<Dest> {
        // No other writer uses the name, so `Mode::Over` is safe.
        Dest::below(&self.folder, &self.path(number), Mode::Over)
    }

    fn discard(&self, number: usize) -> Result<()> {
        self.folder.delete(&self.path(number))
    }
}

/// A Python function that returns the partition of each row.
struct Divider {
    columns: Vec<usize>,
    partitions: Py<PyAny>,
}

impl Partitioner for Divider {
    fn columns(&self) -> &[usize] {
        &self.columns
    }

    fn partitions(&mut self, batch: &RecordBatch) -> Result<UInt32Array> {
        Python::attach(|py| {
            let numbers = self.partitions.call1(py, (RawBatch(batch.clone()),))?;
            let numbers = import_array(numbers.bind(py))?;
            let wrong = || PyTypeError::new_err(format!("expected uint32, found {}", numbers.data_type()));
            Ok(numbers.as_primitive_opt::<UInt32Type>().ok_or_else(wrong)?.clone())
        })
        .map_err(|e: PyErr| Error::schema(format!("partitions of rows: {e}")))
    }
}

/// Converts a part of a source.
#[pyfunction]
#[pyo3(signature = (rows, shape, folder, name, *, format, options=None, most_bytes=None, divide=None))]
#[expect(clippy::too_many_arguments, reason = "they are keyword arguments")]
pub(crate) fn convert<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    shape: &RawShape,
    folder: &PyStore,
    name: String,
    format: &str,
    options: Option<&Bound<'py, PyAny>>,
    most_bytes: Option<u64>,
    divide: Option<(Vec<usize>, Py<PyAny>)>,
) -> PyResult<Bound<'py, PyDict>> {
    let format = target_format(format, options)?;
    let names = Numbered { folder: folder.0.clone(), name };
    let divider = divide.map(|(columns, partitions)| Divider { columns, partitions });
    let Converted { files, observed } = with_rows(py, rows, |rows| match divider {
        Some(mut divider) => coldframe_migrate::convert_partitioned(
            rows,
            &shape.0,
            &format,
            &names,
            most_bytes,
            &mut divider,
            interruptible,
        ),
        None => coldframe_migrate::convert(rows, &shape.0, &format, &names, most_bytes, interruptible),
    })?;
    let listed = PyList::empty(py);
    for (number, written) in files.into_iter().enumerate() {
        let file = described(py, &written.finished)?;
        file.set_item("name", names.path(number))?;
        file.set_item("print", RawFingerprint::of(written.summary.fingerprint))?;
        file.set_item("partition", written.partition)?;
        listed.append(file)?;
    }
    let converted = PyDict::new(py);
    converted.set_item("files", listed)?;
    converted.set_item("observed", RawObserved::of(observed))?;
    Ok(converted)
}

fn described<'py>(py: Python<'py>, file: &Finished) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("rows", file.written.rows)?;
    dict.set_item("bytes", file.written.bytes)?;
    dict.set_item("sha256", &file.sha256)?;
    Ok(dict)
}

/// Decoded bytes of a small source that are held in memory.
const HELD_BYTES: u64 = 64 << 20;

/// A small source that was decoded to its end.
#[pyclass(frozen, module = "coldframe._coldframe")]
pub(crate) struct RawDecoded(Arc<Decoded>);

#[pymethods]
impl RawDecoded {
    #[getter]
    fn rows(&self) -> u64 {
        self.0.summary.rows
    }

    #[getter]
    fn print(&self) -> RawFingerprint {
        RawFingerprint::of(self.0.summary.fingerprint.clone())
    }

    #[getter]
    fn held(&self) -> bool {
        self.0.batches.is_some()
    }

    fn observed(&self) -> RawObserved {
        RawObserved::of(self.0.observed.clone())
    }
}

/// Decodes all rows of a small source.
#[pyfunction]
#[pyo3(signature = (rows, shape, *, most_bytes=HELD_BYTES))]
pub(crate) fn decode(
    py: Python<'_>,
    rows: &Bound<'_, PyAny>,
    shape: &RawShape,
    most_bytes: u64,
) -> PyResult<RawDecoded> {
    let work = |rows: &mut dyn RecordBatchReader| {
        coldframe_migrate::decode(rows, &shape.0, most_bytes, interruptible)
    };
    let decoded = with_rows(py, rows, work)?;
    Ok(RawDecoded(Arc::new(decoded)))
}

/// A file of the target that receives several sources. If it is dropped before it is finished, no file appears.
#[pyclass(frozen, module = "coldframe._coldframe")]
pub(crate) struct RawTarget(Mutex<Option<TargetFile>>);

impl RawTarget {
    fn slot(&self) -> MutexGuard<'_, Option<TargetFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl RawTarget {
    #[new]
    #[pyo3(signature = (schema, folder, name, *, format, options=None))]
    fn new(
        py: Python<'_>,
        schema: &Bound<'_, PyAny>,
        folder: &PyStore,
        name: String,
        format: &str,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (schema, format) = (import_schema(schema)?, target_format(format, options)?);
        let names = Numbered { folder: folder.0.clone(), name };
        let file = py.detach(|| TargetFile::create(&schema, &names.dest(0)?, &format)).map_err(to_python)?;
        Ok(Self(Mutex::new(Some(file))))
    }

    fn add(&self, py: Python<'_>, decoded: &RawDecoded) -> PyResult<()> {
        let added = py.detach(|| match self.slot().as_mut() {
            Some(file) => decoded.0.batches.iter().flatten().try_for_each(|batch| {
                file.write(batch)?;
                interruptible()
            }),
            None => Err(finished()),
        });
        added.map_err(to_python)
    }

    /// Decodes rows and adds them; returns their number and fingerprint.
    fn add_rows(
        &self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        shape: &RawShape,
    ) -> PyResult<(u64, RawFingerprint)> {
        let summary = with_rows(py, rows, |rows| match self.slot().as_mut() {
            Some(file) => coldframe_migrate::append(rows, &shape.0, file, interruptible),
            None => Err(finished()),
        })?;
        Ok((summary.rows, RawFingerprint::of(summary.fingerprint)))
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let file = py.detach(|| self.slot().take().ok_or_else(finished)?.finish()).map_err(to_python)?;
        described(py, &file)
    }
}

fn finished() -> Error {
    Error::invalid("the file is already finished")
}
