//! Deleted rows.

use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int64Array};
use coldframe::Error;
use coldframe::dataset::Positions;
use pyo3::prelude::*;

use crate::capsule::{import_array, import_batch};
use crate::error::to_python;
use crate::scan::RawBatch;

/// The numbers of the deleted rows of a file.
#[pyclass(module = "coldframe._coldframe", frozen)]
#[derive(Default)]
pub(crate) struct RawPositions(Mutex<Positions>);

impl RawPositions {
    fn get(&self) -> MutexGuard<'_, Positions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl RawPositions {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds numbers, an array of int64, of the delete file `path`.
    fn add(&self, py: Python<'_>, numbers: &Bound<'_, PyAny>, path: &str) -> PyResult<()> {
        let numbers = import_array(numbers)?;
        let numbers = numbers_in(&numbers)?;
        py.detach(|| self.get().add(numbers, path)).map_err(to_python)
    }

    /// Adds the numbers of a deletion vector, which lies at `offset` of a file.
    fn add_vector(&self, py: Python<'_>, vector: &[u8], path: &str, offset: u64) -> PyResult<()> {
        py.detach(|| self.get().add_vector(vector, path, offset)).map_err(to_python)
    }

    /// The rows of a batch that are not deleted; None if all rows stay. `numbers`: the column of ascending row numbers.
    fn remaining(
        &self,
        py: Python<'_>,
        batch: &Bound<'_, PyAny>,
        numbers: &str,
    ) -> PyResult<Option<RawBatch>> {
        let batch = import_batch(batch)?;
        let lacking = || to_python(Error::schema(format!("expected a column '{}'", numbers.escape_debug())));
        let column = numbers_in(batch.column_by_name(numbers).ok_or_else(lacking)?)?;
        let left = py.detach(|| self.get().remaining(&batch, column)).map_err(to_python)?;
        Ok(left.map(RawBatch))
    }
}

fn numbers_in(array: &dyn Array) -> PyResult<&Int64Array> {
    let actual = array.data_type();
    let wrong = || to_python(Error::schema(format!("expected numbers of rows as int64, found {actual}")));
    array.as_primitive_opt::<Int64Type>().ok_or_else(wrong)
}
