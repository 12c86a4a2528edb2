//! Checks that all writers make before they accept a batch.

mod intake;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use coldframe_encoding::{Error, ErrorKind, Result};

pub use intake::Intake;

/// The error for data that cannot be written. It is not damage, because no file exists yet.
pub fn unsuitable(e: Error) -> Error {
    if e.is_confined() { schema(&e) } else { e }
}

/// The error for values that a writer refuses. The writer's options were checked before, so it is the data
/// that is invalid.
pub fn unfit(e: Error) -> Error {
    if matches!(e.kind(), ErrorKind::InvalidArgument(_)) { schema(&e) } else { unsuitable(e) }
}

fn schema(e: &Error) -> Error {
    let (structure, schema) = (e.structure(), Error::schema(e.reason()));
    if structure.is_empty() { schema } else { schema.within(structure) }
}

/// An error of the stream that supplies the data to be written.
pub fn stream_error(e: ArrowError) -> Error {
    match e {
        ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => Error::new(ErrorKind::Foreign(other)),
        },
        ArrowError::CDataInterface(message) => Error::new(ErrorKind::Foreign(message.into())),
        e => Error::schema(e.to_string()),
    }
}

/// Whether a write failed. If a writer continued after a part is missing, the file would be corrupt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failed(bool);

impl Failed {
    /// An error if an earlier write failed.
    pub fn check(self) -> Result<()> {
        if self.0 {
            return Err(Error::invalid("an earlier write to this file failed, so it is incomplete"));
        }
        Ok(())
    }

    /// Returns `written`, and remembers whether it failed.
    pub fn keep<T>(&mut self, written: Result<T>) -> Result<T> {
        self.0 |= written.is_err();
        written
    }
}

/// An error if `batch` does not have `expected` columns.
pub fn check_column_count(batch: &RecordBatch, expected: usize) -> Result<()> {
    let actual = batch.num_columns();
    if actual == expected {
        return Ok(());
    }
    Err(Error::schema(format!("expected batches of {expected} columns, found {actual}")))
}
