//! What only a CFile can do: seeks by ordinal, look-ups by value, the question to a bloom file. What tables a data
//! directory holds.

use std::collections::BTreeMap;

use coldframe::cfile::CFileTable;
use coldframe::{Error, OpenOptions, Source, kudu};
use pyo3::prelude::*;

use crate::capsule::import_array;
use crate::error::to_python;
use crate::file::RawFile;
use crate::scan::RawBatch;
use crate::{keys, source};

fn table(file: &RawFile) -> PyResult<&CFileTable> {
    let table = file.0.table.as_any().downcast_ref::<CFileTable>();
    table.ok_or_else(|| {
        let format = file.0.table.format();
        file.raise(Error::unsupported(format!(
            "seeks and look-ups in a CFile's way: this is a {format} file"
        )))
    })
}

/// The rows from an ordinal on as (part, start, stop).
#[pyfunction]
pub(crate) fn seek_ordinal(file: &RawFile, ordinal: u64) -> PyResult<(u32, u64, u64)> {
    let split = table(file)?.seek(ordinal).map_err(|e| file.raise(e))?;
    Ok((split.part, split.range.start, split.range.end))
}

/// The rows whose value is the one in `value`.
#[pyfunction]
pub(crate) fn lookup_value(py: Python<'_>, file: &RawFile, value: &Bound<'_, PyAny>) -> PyResult<RawBatch> {
    let value = import_array(value)?;
    let table = table(file)?;
    py.detach(|| table.lookup(&value)).map(RawBatch).map_err(|e| file.raise(e))
}

/// False only if an encoded key is not in a bloom file.
#[pyfunction]
pub(crate) fn might_contain_key(py: Python<'_>, file: &RawFile, key: Vec<u8>) -> PyResult<bool> {
    let table = table(file)?;
    py.detach(|| table.might_contain(&key)).map_err(|e| file.raise(e))
}

/// The ids and names of the tables of a Kudu data directory.
#[pyfunction]
#[pyo3(signature = (path, *, storage_options=None, verify_checksums=true, keys=None))]
pub(crate) fn kudu_tables(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    storage_options: Option<BTreeMap<String, String>>,
    verify_checksums: bool,
    keys: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<(String, String)>> {
    let (keys, key_source) = keys.map_or_else(|| Ok((BTreeMap::new(), None)), keys::from_python)?;
    let options =
        OpenOptions { skip_checksums: !verify_checksums, keys, key_source, ..OpenOptions::default() };
    let source = source::from_python(path, &storage_options.unwrap_or_default(), None)?;
    py.detach(|| match &source {
        Source::Folder { path, folder } => {
            kudu::tables(folder, path, &options).map_err(|e| e.in_file(&**path))
        }
        Source::File { path, .. } => {
            Err(Error::unsupported("tables of a file: expected a data directory of Kudu's").in_file(&**path))
        }
    })
    .map_err(to_python)
}
