//! What all writers see to before they take a batch.

use arrow_array::RecordBatch;
use coldframe_encoding::{Error, Result};

/// Whether a file could not be written: what follows a part that is missing would be in the wrong place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failed(bool);

impl Failed {
    /// An error if something failed before.
    pub fn check(self) -> Result<()> {
        if self.0 {
            return Err(Error::invalid("this file could not be written before; it is incomplete"));
        }
        Ok(())
    }

    /// Hands `written` on, and keeps whether it failed.
    pub fn keep<T>(&mut self, written: Result<T>) -> Result<T> {
        self.0 |= written.is_err();
        written
    }
}

/// An error unless `batch` has `expected` columns.
pub fn check_column_count(batch: &RecordBatch, expected: usize) -> Result<()> {
    let found = batch.num_columns();
    if found == expected {
        return Ok(());
    }
    Err(Error::schema(format!("expected batches of {expected} columns, found {found}")))
}
