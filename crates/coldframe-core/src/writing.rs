//! What all writers see to before they take a batch.

mod intake;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use coldframe_encoding::{Error, ErrorKind, Result};

pub use intake::Intake;

/// What went wrong with data to be written, as an error of that data: no file is corrupt, there is none yet.
pub fn unsuitable(e: Error) -> Error {
    if e.is_damage() { schema(&e) } else { e }
}

/// What a writer says of values: it got its options before, so that what is invalid is the data.
pub fn unfit(e: Error) -> Error {
    if matches!(e.kind(), ErrorKind::InvalidArgument(_)) { schema(&e) } else { unsuitable(e) }
}

fn schema(e: &Error) -> Error {
    let (structure, schema) = (e.structure(), Error::schema(e.reason()));
    if structure.is_empty() { schema } else { schema.within(structure) }
}

/// An error of the stream that data to be written comes from.
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
