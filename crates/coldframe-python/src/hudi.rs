//! Queries of a Hudi table's metadata partitions: files, column statistics, record locations.

use std::path::PathBuf;

use coldframe::Error;
use coldframe::hudi::{self, MetadataTable};
use coldframe::store::StoreFolder;
use pyo3::prelude::*;

use crate::error::to_python;
use crate::file::RawFile;
use crate::predicate::PyCondition;
use crate::scan::RawBatch;
use crate::store::PyStore;

fn table(file: &RawFile) -> PyResult<&MetadataTable> {
    let table = file.0.table.as_any().downcast_ref();
    table.ok_or_else(|| file.raise(Error::unsupported("expected a Hudi metadata table, found a single file")))
}

/// The partitions of the metadata table in a folder of the store.
#[pyfunction]
pub(crate) fn hudi_partitions(py: Python<'_>, store: &PyStore, path: PathBuf) -> PyResult<Vec<String>> {
    let path = store.path(path)?;
    let names = py.detach(|| hudi::partitions(&StoreFolder::new(store.0.below(&path)?)));
    names.map_err(to_python)
}

/// The files of the data table, of one partition or of all, according to the metadata's partition `files`.
#[pyfunction]
#[pyo3(signature = (files, partition=None, *, all_versions=false))]
pub(crate) fn hudi_files(
    py: Python<'_>,
    files: &RawFile,
    partition: Option<&str>,
    all_versions: bool,
) -> PyResult<RawBatch> {
    let table = table(files)?;
    py.detach(|| table.data_files(partition, all_versions)).map(RawBatch).map_err(|e| files.raise(e))
}

/// The statistics of columns of the data table's files, according to the metadata's partition `column_stats`.
#[pyfunction]
#[pyo3(signature = (stats, columns=None))]
pub(crate) fn hudi_column_stats(
    py: Python<'_>,
    stats: &RawFile,
    columns: Option<Vec<String>>,
) -> PyResult<RawBatch> {
    let table = table(stats)?;
    py.detach(|| table.column_stats(columns.as_deref())).map(RawBatch).map_err(|e| stats.raise(e))
}

/// The files of the data table that may hold rows that pass, according to the partitions `files` and
/// `column_stats`.
#[pyfunction]
pub(crate) fn hudi_prune(
    py: Python<'_>,
    files: &RawFile,
    stats: &RawFile,
    condition: &PyCondition,
    partition: Option<&str>,
) -> PyResult<RawBatch> {
    let (listing, statistics) = (table(files)?, table(stats)?);
    let columns: Vec<String> = condition.0.columns().into_iter().map(str::to_owned).collect();
    let live = py.detach(|| listing.data_files(partition, false)).map_err(|e| files.raise(e))?;
    let pruned = py.detach(|| hudi::prune(&live, &statistics.column_stats(Some(&columns))?, &condition.0));
    pruned.map(RawBatch).map_err(|e| stats.raise(e))
}

/// The locations of the records with these keys, according to the metadata's partition `record_index`.
#[pyfunction]
pub(crate) fn hudi_locate(py: Python<'_>, index: &RawFile, keys: Vec<String>) -> PyResult<RawBatch> {
    let table = table(index)?;
    py.detach(|| table.locate(&keys)).map(RawBatch).map_err(|e| index.raise(e))
}
