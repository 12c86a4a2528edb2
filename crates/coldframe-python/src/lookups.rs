//! Look-ups for which each format has its own implementation.

use coldframe::cfile::CFileTable;
use pyo3::prelude::*;

use crate::error::to_python;
use crate::file::RawFile;
use crate::hfile::{Key, hfile};

/// What a filter states of a key: for a Kudu bloom file, of an encoded key; for an HFile, of a row, of a column in it,
/// or of a row with a deleted family.
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
    let says = py.detach(|| match delete_family {
        true => table.might_delete_family(&row.0),
        false => table.might_contain(&row.0, qualifier),
    });
    says.map_err(|e| to_python(file.0.named(e)))
}
