//! What a written Parquet file gives back, read by the `parquet` crate: another implementation than the C++ one that wrote it,
//! so that a fault of either is found. Checksums of pages are compared.

use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatchReader;
use coldframe_core::{Error, ErrorKind, Result, arrow_error};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;

use crate::Fingerprint;

/// Rows of a batch: what is in memory at a time, beside a page of each column.
const BATCH_ROWS: usize = 64 << 10;

/// Adds all rows of the file at `path`, whose columns must have the names of the fingerprint's target.
pub fn add_parquet(fingerprint: &mut Fingerprint, path: &Path) -> Result<()> {
    read(fingerprint, path).map_err(|e| e.in_file(path.display().to_string()))
}

fn read(fingerprint: &mut Fingerprint, path: &Path) -> Result<()> {
    let file = File::open(path).map_err(|e| Error::new(ErrorKind::Io(e)))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(parquet_error)?;
    let batches = builder.with_batch_size(BATCH_ROWS).build().map_err(parquet_error)?;
    let schema = batches.schema();
    let names = |of: &arrow_schema::Schema| of.fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    let (expected, found) = (names(fingerprint.target()), names(&schema));
    if expected != found {
        return Err(Error::schema(format!("expected columns {expected:?}, found {found:?}")));
    }
    for batch in batches {
        fingerprint.add(&batch.map_err(arrow_error)?)?;
    }
    Ok(())
}

fn parquet_error(e: ParquetError) -> Error {
    match e {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => Error::new(ErrorKind::Io(*io)),
            Err(other) => Error::corrupt(other.to_string()),
        },
        other => Error::corrupt(other.to_string()),
    }
}
