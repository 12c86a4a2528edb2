//! Tables as a Hive metastore defines them. Python asks servers and reads dumps; the rest is in `coldframe::metastore`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use coldframe::dataset::storage::{Storage as Stores, os_path};
use coldframe::dataset::{Dataset, TableDef};
use coldframe::metastore::{self, Access, Column, Definition, Partition, Storage, properties, values};
use coldframe::store::to_text;
use pyo3::intern;
use pyo3::prelude::*;

use crate::capsule::import_batch;
use crate::error::{from_python, to_python};
use crate::opening::RawOpening;
use crate::predicate::PyPredicate;
use crate::scan::RawBatch;
use crate::storage::{PyStorage, shared};

/// `coldframe.hive.definition.Column`.
#[derive(FromPyObject)]
pub(crate) struct PyColumn {
    name: String,
    #[pyo3(attribute("type"))]
    kind: String,
}

/// `coldframe.hive.definition.Storage`.
#[derive(FromPyObject)]
pub(crate) struct PyTableStorage {
    columns: Vec<PyColumn>,
    input_format: Option<String>,
    serde: Option<String>,
    serde_properties: BTreeMap<String, String>,
}

/// `coldframe.hive.definition.Definition`.
#[derive(FromPyObject)]
pub(crate) struct PyDefinition {
    full_name: String,
    storage: PyTableStorage,
    keys: Vec<PyColumn>,
    parameters: BTreeMap<String, String>,
    by_folders: bool,
}

/// Makes partitions of `coldframe.hive.definition.PartitionDefinition`. Those with the same columns usually share the tuple.
#[derive(Default)]
struct Partitions<'py> {
    last: Option<(Bound<'py, PyAny>, Vec<Column>)>,
}

impl<'py> Partitions<'py> {
    fn made(&mut self, of: &Bound<'py, PyAny>, location: &OsStr) -> PyResult<Partition> {
        let py = of.py();
        let storage = of.getattr(intern!(py, "storage"))?;
        let columns = self.columns(storage.getattr(intern!(py, "columns"))?)?;
        let storage = Storage {
            columns,
            input_format: storage.getattr(intern!(py, "input_format"))?.extract()?,
            serde: storage.getattr(intern!(py, "serde"))?.extract()?,
            serde_properties: storage.getattr(intern!(py, "serde_properties"))?.extract()?,
        };
        Ok(Partition {
            values: of.getattr(intern!(py, "values"))?.extract()?,
            storage,
            parameters: of.getattr(intern!(py, "parameters"))?.extract()?,
            location: to_text(location),
        })
    }

    fn columns(&mut self, given: Bound<'py, PyAny>) -> PyResult<Vec<Column>> {
        if let Some((_, columns)) = self.last.as_ref().filter(|(last, _)| last.is(&given)) {
            return Ok(columns.clone());
        }
        let made = columns(given.extract()?);
        self.last = Some((given, made.clone()));
        Ok(made)
    }
}

fn columns(all: Vec<PyColumn>) -> Vec<Column> {
    all.into_iter().map(|column| Column { name: column.name, kind: column.kind }).collect()
}

impl From<PyTableStorage> for Storage {
    fn from(of: PyTableStorage) -> Self {
        Self {
            columns: columns(of.columns),
            input_format: of.input_format,
            serde: of.serde,
            serde_properties: of.serde_properties,
        }
    }
}

impl From<PyDefinition> for Definition {
    fn from(of: PyDefinition) -> Self {
        Self {
            name: of.full_name,
            storage: of.storage.into(),
            keys: columns(of.keys),
            parameters: of.parameters,
            by_folders: of.by_folders,
        }
    }
}

/// The table of some partitions, whose files are listed now. `locations`: where the files of each partition are.
pub(crate) fn dataset(
    py: Python<'_>,
    opening: &RawOpening,
    definition: PyDefinition,
    partitions: &[Bound<'_, PyAny>],
    locations: &[PathBuf],
    storage_options: Option<&Bound<'_, PyAny>>,
) -> PyResult<Dataset> {
    let mut made = Partitions::default();
    let partitions = partitions.iter().zip(locations);
    let partitions = partitions.map(|(of, location)| made.made(of, location.as_os_str()));
    let partitions = partitions.collect::<PyResult<Vec<Partition>>>()?;
    let (definition, opening) = (definition.into(), &opening.opening);
    let storage_options = storage_options.map(|given| given.clone().unbind());
    let storage = |location: &str| {
        let path = os_path(location);
        Python::attach(|py| storage_at(py, &path, storage_options.as_ref())).map_err(from_python)
    };
    let def: coldframe::Result<TableDef> = py.detach(|| {
        metastore::table_def(
            &definition,
            partitions,
            &Access { options: &opening.options, storage: &storage },
        )
    });
    Ok(Dataset::of(def.map_err(to_python)?))
}

/// The store of a location, with those of the options that are for its scheme.
fn storage_at(py: Python<'_>, location: &OsStr, given: Option<&Py<PyAny>>) -> PyResult<Arc<dyn Stores>> {
    let own = py.import("coldframe.sources")?.call_method1("options_for", (location, given))?;
    Ok(shared(PyStorage::new(Some(&own))?))
}

/// The values of partitions by their names, `dt=2014-01-01/region=eu`: a row for each. `table` is for errors.
#[pyfunction]
pub(crate) fn partition_values(table: &str, names: Vec<String>, keys: Vec<PyColumn>) -> PyResult<RawBatch> {
    let keys = metastore::keys_of(&columns(keys)).map_err(to_python)?;
    let fields: Vec<_> = keys.iter().map(|key| key.field.as_ref().clone()).collect();
    let texts: Vec<Vec<String>> = names.iter().map(|name| values::of_name(name)).collect();
    values::columns(table, &texts, &fields).map(RawBatch).map_err(to_python)
}

/// The numbers of the rows of known values that a filter does not rule out. The filter is bound to the table's columns.
#[pyfunction]
pub(crate) fn matching_rows(
    py: Python<'_>,
    predicate: &PyPredicate,
    schema: &Bound<'_, PyAny>,
    rows: &Bound<'_, PyAny>,
) -> PyResult<Vec<usize>> {
    let (schema, rows) = (crate::capsule::import_schema(schema)?, import_batch(rows)?);
    py.detach(|| values::matching(&predicate.0, &schema, &rows)).map_err(to_python)
}

/// The properties of a table or partition that mean something to a SerDe.
#[pyfunction]
pub(crate) fn serde_properties(parameters: BTreeMap<String, String>) -> BTreeMap<String, String> {
    properties::of_serde(&parameters)
}

/// The format by the table's properties or its input format; if it is not ours, the name of the class.
#[pyfunction]
pub(crate) fn declared_format(input_format: Option<&str>, parameters: BTreeMap<String, String>) -> String {
    properties::declared_format(input_format, &parameters)
}

/// The view of a Hudi table that a definition shows; None if its table is not one of Hudi.
#[pyfunction]
pub(crate) fn hudi_view(
    input_format: Option<&str>,
    parameters: BTreeMap<String, String>,
    serde_properties: BTreeMap<String, String>,
) -> Option<&'static str> {
    properties::hudi_view(input_format, &parameters, &serde_properties)
}

/// Where a table's files are; None if it has no files.
#[pyfunction]
pub(crate) fn location_of_files(
    kind: &str,
    location: Option<&str>,
    parameters: BTreeMap<String, String>,
    serde_properties: BTreeMap<String, String>,
) -> Option<String> {
    properties::location_of_files(kind, location, &parameters, &serde_properties).map(str::to_owned)
}

/// Whether the metastore has the partitions of a partitioned table.
#[pyfunction]
pub(crate) fn partitions_are_registered(parameters: BTreeMap<String, String>) -> bool {
    properties::are_registered(&parameters)
}

/// Whether Hive matches a table's columns by position even in files that have names.
#[pyfunction]
pub(crate) fn match_by_position(parameters: BTreeMap<String, String>) -> bool {
    properties::is_by_position(&parameters)
}

/// Whether the outermost folders name a value of each key.
#[pyfunction]
pub(crate) fn are_folders_of(keys: Vec<String>, folders: Vec<String>) -> bool {
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    properties::are_folders_of(keys.iter().map(String::as_str), &folders)
}

/// Adds the functions of this module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(partition_values, module)?)?;
    module.add_function(wrap_pyfunction!(matching_rows, module)?)?;
    module.add_function(wrap_pyfunction!(serde_properties, module)?)?;
    module.add_function(wrap_pyfunction!(declared_format, module)?)?;
    module.add_function(wrap_pyfunction!(hudi_view, module)?)?;
    module.add_function(wrap_pyfunction!(location_of_files, module)?)?;
    module.add_function(wrap_pyfunction!(partitions_are_registered, module)?)?;
    module.add_function(wrap_pyfunction!(match_by_position, module)?)?;
    module.add_function(wrap_pyfunction!(are_folders_of, module)?)?;
    Ok(())
}
