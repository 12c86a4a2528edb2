//! Look-ups for which each format has its own implementation.

use coldframe::cfile::CFileTable;
use pyo3::prelude::*;

use crate::error::to_python;
use crate::file::RawFile;
use crate::hfile::{Key, hfile};

/// False only if a bloom filter shows that a key is absent. For a Kudu bloom file it is an encoded key; for
/// an HFile it is a row, a column of a row, or a row with a deleted family.
#[pyfunction]
#[pyo3(signature = (file, row, qualifier=None, delete_family=false))]
pub(crate) fn might_contain(
    py: Python<'_>,
    file: &RawFile,
    row: Key,
    qualifier: Option<Key>,
    delete_family: bool,
) -> PyResult<bool> {
    let table = file.0.table.as_any();
    if let (Some(cfile), None, false) = (table.downcast_ref::<CFileTable>(), &qualifier, delete_family) {
        return py.detach(|| cfile.might_contain(&row.0)).map_err(|e| file.raise(e));
    }
    let table = hfile(&file.0, "might_contain")?;
    let qualifier = qualifier.as_ref().map(|q| q.0.as_slice());
    let result = py.detach(|| match delete_family {
        true => table.might_delete_family(&row.0),
        false => table.might_contain(&row.0, qualifier),
    });
    result.map_err(|e| to_python(file.0.named(e)))
}
