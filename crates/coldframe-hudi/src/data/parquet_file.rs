//! Base files and blocks of Parquet, by the crate `parquet`: a unit for each row group.

use std::io::Read;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::{Buf, Bytes};
use coldframe_core::{BatchIter, DecodeUnit, Error, Fetch, Limits, ReadAt, Result, Unit, arrow_error};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::reader::{ChunkReader, Length};

/// How many bytes at the end are read at once.
const TAIL: u64 = 64 << 10;

/// An open Parquet file.
#[derive(Clone, Debug)]
pub(crate) struct ParquetFile {
    source: Arc<dyn ReadAt>,
    metadata: ArrowReaderMetadata,
}

impl ParquetFile {
    /// Reads the footer.
    pub(crate) fn open(source: Arc<dyn ReadAt>, limits: &Limits) -> Result<Self> {
        let len = source.len();
        let start = len.saturating_sub(TAIL);
        let tail = source.read(start..len)?;
        if let Some((length, magic)) = tail.last_chunk::<8>().map(|end| end.split_at(4)) {
            let length = length.first_chunk::<4>().copied().map_or(0, u32::from_le_bytes);
            if magic == b"PAR1" {
                limits.metadata("Parquet footer", length.into())?;
            }
        }
        let file = Pieces { len, pieces: vec![(start, tail)], source: Some(source.clone()) };
        let metadata = guarded(|| ParquetMetaDataReader::new().parse_and_finish(&file))?;
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = guarded(|| ArrowReaderMetadata::try_new(Arc::new(metadata), options))?;
        limits.columns("Parquet file", metadata.parquet_schema().num_columns() as u64)?;
        Ok(Self { source, metadata })
    }

    /// The file's columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// A value that the writer put into the footer.
    pub(crate) fn key_value(&self, key: &str) -> Option<&str> {
        let pairs = self.metadata.metadata().file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
    }

    /// The units of the row groups that begin in `range`, with the columns of these names.
    pub(crate) fn units(
        &self,
        columns: &[String],
        range: &Range<u64>,
        batch_rows: usize,
    ) -> Result<Vec<Unit>> {
        let roots = self.schema().fields().iter().enumerate();
        let roots = roots.filter(|(_, f)| columns.contains(f.name())).map(|(i, _)| i);
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), roots);
        let mut units = Vec::new();
        for (number, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            let (mut bytes, mut fetch) = (u64::MAX..0, Vec::new());
            for (leaf, chunk) in group.columns().iter().enumerate() {
                let (start, length) = guarded(|| Ok(chunk.byte_range()))?;
                let chunk = start..start.saturating_add(length);
                if chunk.end > self.source.len() {
                    let (end, len) = (chunk.end, self.source.len());
                    return Err(Error::corrupt(format!(
                        "expected a column up to byte {end}, found the end at {len}"
                    ))
                    .within(format!("row group {number}")));
                }
                bytes = bytes.start.min(chunk.start)..bytes.end.max(chunk.end);
                if mask.leaf_included(leaf) {
                    fetch.push(Fetch { source: self.source.clone(), range: chunk });
                }
            }
            let bytes = bytes.start.min(bytes.end)..bytes.end;
            if !range.contains(&bytes.start) {
                continue;
            }
            let starts = fetch.iter().map(|f| f.range.start).collect();
            let decode = DecodeRowGroup {
                metadata: self.metadata.clone(),
                mask: mask.clone(),
                number,
                starts,
                len: self.source.len(),
                batch_rows,
            };
            units.push(Unit {
                fetch,
                bytes,
                rows: u64::try_from(group.num_rows()).ok(),
                structure: format!("row group {number}"),
                decode: Box::new(decode),
            });
        }
        Ok(units)
    }
}

struct DecodeRowGroup {
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    number: usize,
    starts: Vec<u64>,
    len: u64,
    batch_rows: usize,
}

impl DecodeUnit for DecodeRowGroup {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let Self { metadata, mask, number, starts, len, batch_rows } = *self;
        let file = Pieces { len, pieces: starts.into_iter().zip(bytes).collect(), source: None };
        let reader = guarded(|| {
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
                .with_row_groups(vec![number])
                .with_projection(mask)
                .with_batch_size(batch_rows)
                .build()
        })?;
        Ok(Box::new(Batches { reader: Some(reader) }))
    }
}

/// Batches up to the end, an error or a panic.
struct Batches {
    reader: Option<ParquetRecordBatchReader>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_mut()?;
        let next = catch_unwind(AssertUnwindSafe(|| reader.next()));
        match next {
            Ok(Some(Ok(batch))) => Some(Ok(batch)),
            Ok(None) => {
                self.reader = None;
                None
            }
            Ok(Some(Err(e))) => {
                self.reader = None;
                Some(Err(arrow_error(e)))
            }
            Err(_) => {
                self.reader = None;
                Some(Err(panicked()))
            }
        }
    }
}

fn panicked() -> Error {
    Error::corrupt("expected valid Parquet, found what its reader cannot handle")
}

/// Runs the crate's code, whose errors become ours, and panics as well.
fn guarded<T>(work: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| panicked())?.map_err(ours)
}

fn ours(e: ParquetError) -> Error {
    match e {
        ParquetError::NYI(what) => Error::unsupported(format!("Parquet: {what}")),
        ParquetError::External(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::corrupt(other.to_string()),
        },
        other => Error::corrupt(other.to_string()),
    }
}

/// Some ranges of a file in memory, and the file for the others.
struct Pieces {
    len: u64,
    pieces: Vec<(u64, Bytes)>,
    source: Option<Arc<dyn ReadAt>>,
}

impl Pieces {
    fn find(&self, start: u64, length: Option<usize>) -> parquet::errors::Result<Bytes> {
        for (at, bytes) in &self.pieces {
            let within = start.checked_sub(*at).and_then(|n| usize::try_from(n).ok());
            let Some(within) = within.filter(|n| *n <= bytes.len()) else { continue };
            let end = length.map_or(Some(bytes.len()), |length| within.checked_add(length));
            if let Some(end) = end.filter(|end| *end <= bytes.len() && within < bytes.len()) {
                return Ok(bytes.slice(within..end));
            }
        }
        let end = length.map_or(Some(self.len), |length| start.checked_add(length as u64));
        match (&self.source, end) {
            (Some(source), Some(end)) if end <= self.len => {
                source.read(start..end).map_err(|e| ParquetError::External(Box::new(e)))
            }
            _ if length == Some(0) => Ok(Bytes::new()),
            _ => Err(ParquetError::EOF(format!("expected bytes from {start}, found none"))),
        }
    }
}

impl Length for Pieces {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Pieces {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(Box::new(self.find(start, None)?.reader()))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.find(start, Some(length))
    }
}
