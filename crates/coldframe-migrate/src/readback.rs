//! What a written Parquet file gives back, read by the `parquet` crate: another implementation than the C++ one that wrote it,
//! so that a fault of either is found. Checksums of pages are compared.
//!
//! ```text
//! ├── row group 0 ──┼── row group 1 ──┼ .. ┼ footer ┤
//!                    ▲ read whole by one call, however far away it lies; then its columns page by page
//! ```

use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatchReader;
use bytes::{Buf, Bytes};
use coldframe_core::{Error, ErrorKind, ReadAt, Result, arrow_error};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, Length};

use crate::Fingerprint;

/// Rows of a batch: what is in memory at a time, beside a row group as it is in the file and a page of each column.
const BATCH_ROWS: usize = 64 << 10;

/// Adds all rows of a file, whose columns must have the names of the fingerprint's target.
pub fn add_parquet(fingerprint: &mut Fingerprint, file: Arc<dyn ReadAt>) -> Result<()> {
    let file = Held { file, kept: Arc::default() };
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::default()).map_err(parquet_error)?;
    let names = |of: &arrow_schema::Schema| of.fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    let (expected, found) = (names(fingerprint.target()), names(metadata.schema()));
    if expected != found {
        return Err(Error::schema(format!("expected columns {expected:?}, found {found:?}")));
    }
    for (number, group) in metadata.metadata().row_groups().iter().enumerate() {
        file.keep(span(group)?)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone());
        let batches = builder
            .with_row_groups(vec![number])
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(parquet_error)?;
        debug_assert_eq!(names(&batches.schema()), found);
        for batch in batches {
            fingerprint.add(&batch.map_err(arrow_error)?)?;
        }
    }
    Ok(())
}

/// Where the columns of a row group lie.
fn span(group: &RowGroupMetaData) -> Result<Range<u64>> {
    let unsigned = |n: i64| u64::try_from(n).map_err(|_| Error::corrupt(format!("a place or length of {n}")));
    let (mut first, mut last) = (u64::MAX, 0);
    for column in group.columns() {
        let start = unsigned(column.dictionary_page_offset().unwrap_or(column.data_page_offset()))?;
        let len = unsigned(column.compressed_size())?;
        (first, last) = (first.min(start), last.max(start.saturating_add(len)));
    }
    Ok(first.min(last)..last)
}

/// A file of which one row group is in memory.
#[derive(Clone)]
struct Held {
    file: Arc<dyn ReadAt>,
    /// Offset and bytes.
    kept: Arc<Mutex<(u64, Bytes)>>,
}

/// What is read at once where nobody says how much is wanted.
const PIECE: u64 = 64 << 10;

impl Held {
    fn keep(&self, range: Range<u64>) -> Result<()> {
        if range.start >= range.end {
            return Ok(());
        }
        let bytes = self.file.read(range.clone())?;
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = (range.start, bytes);
        Ok(())
    }

    /// What is kept from an offset on.
    fn kept_from(&self, at: u64) -> Option<Bytes> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, bytes) = &*kept;
        let from = usize::try_from(at.checked_sub(*start)?).ok()?;
        (from < bytes.len()).then(|| bytes.slice(from..))
    }

    fn kept(&self, range: &Range<u64>) -> Option<Bytes> {
        let from = self.kept_from(range.start)?;
        let len = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        (len <= from.len()).then(|| from.slice(..len))
    }

    fn get(&self, range: Range<u64>) -> parquet::errors::Result<Bytes> {
        match self.kept(&range) {
            Some(bytes) => Ok(bytes),
            None => self.file.read(range).map_err(|e| ParquetError::External(Box::new(e))),
        }
    }
}

impl Length for Held {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Held {
    type T = Rest;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Rest> {
        Ok(Rest { file: self.clone(), at: start, piece: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.len());
        let end =
            end.ok_or_else(|| ParquetError::EOF(format!("{length} bytes at {start} of {}", self.len())))?;
        self.get(start..end)
    }
}

/// A file from an offset on.
struct Rest {
    file: Held,
    at: u64,
    piece: Bytes,
}

impl Read for Rest {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.piece.is_empty() {
            let end = self.file.len().min(self.at.saturating_add(PIECE));
            self.piece = match self.file.kept_from(self.at) {
                Some(kept) => kept,
                None if self.at < end => self.file.get(self.at..end).map_err(std::io::Error::other)?,
                None => return Ok(0),
            };
            self.at = self.at.saturating_add(self.piece.len() as u64);
        }
        let taken = out.len().min(self.piece.len());
        let Some(out) = out.get_mut(..taken) else { return Ok(0) };
        self.piece.copy_to_slice(out);
        Ok(taken)
    }
}

fn parquet_error(e: ParquetError) -> Error {
    match e {
        ParquetError::External(inner) => match inner.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(inner) => match inner.downcast::<std::io::Error>() {
                Ok(io) => Error::new(ErrorKind::Io(*io)),
                Err(other) => Error::corrupt(other.to_string()),
            },
        },
        other => Error::corrupt(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use arrow_array::{Int64Array, RecordBatch, StringArray};
    use arrow_schema::{DataType, Field, Schema};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    use super::*;

    /// A file in memory that counts how often it is read.
    #[derive(Debug)]
    struct Counted(Bytes, AtomicUsize);

    impl ReadAt for Counted {
        fn len(&self) -> u64 {
            self.0.as_ref().len() as u64
        }

        fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
            self.1.fetch_add(ranges.len(), Ordering::Relaxed);
            self.0.read_ranges(ranges)
        }
    }

    fn written() -> (RecordBatch, Vec<u8>) {
        let schema = Arc::new(Schema::new(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("s", DataType::Utf8, true),
        ]));
        let numbers = Int64Array::from_iter_values(0..30_000);
        let texts = StringArray::from_iter_values((0..30_000).map(|n| format!("text {}", n % 700)));
        let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(numbers), Arc::new(texts)]).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(10_000))
            .set_data_page_row_count_limit(1_000)
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        (batch, writer.into_inner().unwrap())
    }

    #[test]
    fn a_row_group_is_one_request() {
        let (batch, bytes) = written();
        let file = Arc::new(Counted(bytes.into(), AtomicUsize::new(0)));
        let mut found = Fingerprint::new(batch.schema());
        add_parquet(&mut found, file.clone()).unwrap();
        let mut expected = Fingerprint::new(batch.schema());
        expected.add(&batch).unwrap();
        assert_eq!(found.rows(), 30_000);
        assert_eq!(expected.differences(&found), Vec::<String>::new());
        // The footer takes two; each of the three row groups takes one.
        assert!(file.1.load(Ordering::Relaxed) <= 5, "{}", file.1.load(Ordering::Relaxed));
    }

    #[test]
    fn a_file_that_is_cut_is_an_error() {
        let (batch, bytes) = written();
        for len in [0, 3, 11, bytes.len() / 2, bytes.len() - 1] {
            let mut found = Fingerprint::new(batch.schema());
            let cut: Bytes = bytes[..len].to_vec().into();
            assert!(add_parquet(&mut found, Arc::new(cut)).is_err(), "{len}");
        }
    }
}
