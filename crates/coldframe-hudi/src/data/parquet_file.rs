//! Base files and blocks of Parquet, by the crate `parquet`: a unit for each row group.

use std::io::Read;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use bytes::{Buf, Bytes};
use coldframe_core::{
    BatchIter, ColumnBounds, DecodeUnit, Error, Fetch, Limits, ReadAt, Result, Unit, arrow_error,
};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::reader::{ChunkReader, Length};

use crate::data::conform::conform;

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
        Ok(self.units_of(columns, range, batch_rows, &|_| true)?.0)
    }

    /// The units of those row groups that `may_match` selects by number, and how many it excludes.
    pub(crate) fn units_of(
        &self,
        columns: &[String],
        range: &Range<u64>,
        batch_rows: usize,
        may_match: &dyn Fn(usize) -> bool,
    ) -> Result<(Vec<Unit>, u64)> {
        let roots = self.schema().fields().iter().enumerate();
        let roots = roots.filter(|(_, f)| columns.contains(f.name())).map(|(i, _)| i);
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), roots);
        let (mut units, mut pruned) = (Vec::new(), 0);
        for (number, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            let (mut first, mut end, mut fetch) = (u64::MAX, 0, Vec::new());
            for (leaf, chunk) in group.columns().iter().enumerate() {
                let (start, length) = guarded(|| Ok(chunk.byte_range()))?;
                let chunk = start..start.saturating_add(length);
                if chunk.end > self.source.len() {
                    let (last, len) = (chunk.end, self.source.len());
                    return Err(Error::corrupt(format!(
                        "expected a column up to byte {last}, found the end at {len}"
                    ))
                    .within(format!("row group {number}")));
                }
                (first, end) = (first.min(chunk.start), end.max(chunk.end));
                if mask.leaf_included(leaf) {
                    fetch.push(Fetch { source: self.source.clone(), range: chunk });
                }
            }
            let bytes = first.min(end)..end;
            if !range.contains(&bytes.start) {
                continue;
            }
            if !may_match(number) {
                pruned += 1;
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
        Ok((units, pruned))
    }

    /// The bounds of a column in a row group, as values of the type `to`; `None` where they are unknown, or not in the order
    /// of that type's values.
    pub(crate) fn bounds(&self, group: usize, column: &str, to: &DataType) -> Option<ColumnBounds> {
        let (at, field) = self.schema().column_with_name(column)?;
        let own = field.data_type();
        let times = |of: &DataType| matches!(of, DataType::Timestamp(..));
        let keeps_order = own == to && !own.is_floating() && !own.is_nested()
            || own.is_integer() && to.is_integer()
            || times(own) && times(to);
        if !keeps_order {
            return None;
        }
        let group = self.metadata.metadata().row_groups().get(group)?;
        let leaf = (0..self.metadata.parquet_schema().num_columns())
            .find(|leaf| self.metadata.parquet_schema().get_column_root_idx(*leaf) == at)?;
        let statistics = group.columns().get(leaf)?.statistics()?;
        // The deprecated fields were not always written in the order of the values.
        if statistics.is_min_max_deprecated() && !own.is_integer() {
            return None;
        }
        let schema = self.metadata.parquet_schema();
        let find = || {
            let converter = StatisticsConverter::try_new(column, self.schema(), schema)?;
            let group = || std::iter::once(group);
            Ok((converter.row_group_mins(group())?, converter.row_group_maxes(group())?))
        };
        let (min, max) = guarded(find).ok()?;
        let known = |bound: ArrayRef| {
            let bound = conform(&bound, to).ok()?;
            (bound.len() == 1 && bound.null_count() == 0).then_some(bound)
        };
        let nulls = statistics.null_count_opt();
        Some(ColumnBounds {
            min: known(min),
            max: known(max),
            has_null: nulls.map(|nulls| nulls > 0),
            has_value: nulls.map(|nulls| u64::try_from(group.num_rows()).is_ok_and(|rows| nulls < rows)),
        })
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

/// Runs code of the crate `parquet`: its errors and panics become errors of ours.
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
