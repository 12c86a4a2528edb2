//! Operations that only CFiles have: seeks by ordinal, look-ups by value, and queries of bloom files.

use coldframe::Error;
use coldframe::cfile::CFileTable;
use pyo3::prelude::*;

use crate::capsule::import_array;
use crate::file::RawFile;
use crate::scan::RawBatch;

fn table(file: &RawFile) -> PyResult<&CFileTable> {
    let table = file.0.table.as_any().downcast_ref::<CFileTable>();
    table.ok_or_else(|| {
        let format = file.0.table.format();
        file.raise(Error::unsupported(format!(
            "seeks and look-ups by ordinal or value need a CFile: this is a {format} file"
        )))
    })
}

/// The split that begins with an ordinal, as (part, start, stop).
#[pyfunction]
pub(crate) fn seek_ordinal(file: &RawFile, ordinal: u64) -> PyResult<(u32, u64, u64)> {
    let split = table(file)?.seek(ordinal).map_err(|e| file.raise(e))?;
    Ok((split.part, split.range.start, split.range.end))
}

/// The rows whose value equals the one in `value`.
#[pyfunction]
pub(crate) fn lookup_value(py: Python<'_>, file: &RawFile, value: &Bound<'_, PyAny>) -> PyResult<RawBatch> {
    let value = import_array(value)?;
    let table = table(file)?;
    py.detach(|| table.lookup(&value)).map(RawBatch).map_err(|e| file.raise(e))
}

/// Whether a bloom file may have an encoded key: false only if the file certainly does not have the key.
#[pyfunction]
pub(crate) fn might_contain_key(py: Python<'_>, file: &RawFile, key: Vec<u8>) -> PyResult<bool> {
    let table = table(file)?;
    py.detach(|| table.might_contain(&key)).map_err(|e| file.raise(e))
}
