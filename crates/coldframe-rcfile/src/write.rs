//! Writes RCFiles as Hive's `RCFile.Writer` does.
//!
//! ```text
//! file       | header | row group .. |                    no row: the header is the file
//! row group  | [sync: ffffffff, 16 bytes] | record length i32 | key length i32 | compressed key length i32 |
//!            | key | column | column .. |
//! ```
//!
//! * A row group ends after the row with which its cells exceed `row_group_bytes` bytes, or with which it has
//!   `record_interval` rows.
//! * A sync marker precedes a row group that begins 2000 bytes or more after the last marker (or the start of the
//!   file), so not every row group has a marker.
//! * The record length is the sum of the *uncompressed* key and the columns on disk.
//! * Key and columns are each compressed separately.
//!
//! The layout of header and key is in [`header`] and [`key`]. Sources: Hive's `RCFile.Writer`, and the bytes of files
//! that it wrote.
//!
//! Only the current row group is held in memory.

mod header;
mod key;
mod options;
mod plain;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write;

use arrow_array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{DataType, Schema, SchemaRef};
use coldframe_core::BatchWriter;
use coldframe_core::writing::{Failed, check_column_count, unsuitable};
use coldframe_encoding::codec::Compressor;
use coldframe_encoding::codec::hadoop::HadoopCodec;
use coldframe_encoding::hash::sync_marker;
use coldframe_encoding::{Error, ErrorKind, Result};

pub use self::options::{Codec, Header, WriteOptions};
use crate::hive_type::HiveType;
use crate::layout::SYNC_INTERVAL;
use crate::layout::header::{Magic, SYNC_LEN};
use crate::serde::{ColumnEncoder, Serde, SerdeOptions, lazy_binary, text};

/// The maximum number of rows of a row group.
const MAX_GROUP_ROWS: usize = 1 << 24;

/// The checked options of a writer.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The SerDe that writes the cells.
    pub(crate) serde: Serde,
    /// The SerDe's settings. Arrays with any time unit are accepted.
    pub(crate) serde_options: SerdeOptions,
    /// Compression codec for keys and columns.
    pub(crate) codec: Option<HadoopCodec>,
    /// The codec's level; `None` for its default.
    pub(crate) compression_level: Option<i32>,
    /// The variant of the header.
    pub(crate) header: Magic,
    /// `hive.io.rcfile.record.buffer.size`: bytes of cells at which a row group is full. 4 MiB in Hive.
    pub(crate) row_group_bytes: usize,
    /// `hive.io.rcfile.record.interval`: rows at which a row group is full. Unlimited in Hive.
    pub(crate) record_interval: usize,
    /// Further metadata entries.
    pub(crate) metadata: BTreeMap<String, String>,
    /// Seed of the sync marker; if absent, the marker is random.
    pub(crate) sync_seed: Option<u64>,
    /// Hive types of the columns; by default those nearest to the Arrow types.
    pub(crate) types: Option<Vec<HiveType>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            serde: Serde::default(),
            serde_options: SerdeOptions::default(),
            codec: None,
            compression_level: None,
            header: Magic::default(),
            row_group_bytes: 4 << 20,
            record_interval: usize::try_from(i32::MAX).unwrap_or(usize::MAX),
            metadata: BTreeMap::new(),
            sync_seed: None,
            types: None,
        }
    }
}

/// The escape of a sync marker, in the position of a record length.
const SYNC_ESCAPE: [u8; 4] = [0xff; 4];

/// Number of rows that are encoded before the size of the row group is checked.
const ROWS_AT_ONCE: usize = 1024;

/// Writes one file.
pub(crate) struct Writer<W> {
    sink: W,
    position: u64,
    /// Where the last sync marker ended.
    last_sync: u64,
    sync: [u8; SYNC_LEN],
    schema: SchemaRef,
    columns: Vec<Column>,
    /// The number of rows in the current row group, and the bytes of their cells.
    rows: usize,
    bytes: usize,
    /// The number of rows at which a row group is full: as requested, but at most the number that readers
    /// accept, since empty cells fill no buffer.
    max_rows: usize,
    options: Settings,
    compressor: Compressor,
    failed: Failed,
}

impl<W> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("position", &self.position)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    pub(crate) fn new(mut sink: W, schema: &Schema, options: Settings) -> Result<Self> {
        let columns = columns(schema, &options)?;
        let (count, limits) = (columns.len(), &options.serde_options.limits);
        if count == 0 {
            return Err(Error::schema("an RCFile needs at least one column"));
        }
        if count as u64 > limits.max_columns {
            let max = limits.max_columns;
            return Err(Error::schema(format!(
                "expected at most {max} columns, found {count}: the file could not be read back"
            )));
        }
        let max_rows = options.record_interval.min(MAX_GROUP_ROWS);
        let sync = sync_marker(options.sync_seed);
        let header = header::header(&options, columns.len(), sync)?;
        sink.write_all(&header)?;
        Ok(Self {
            sink,
            position: u64::try_from(header.len()).unwrap_or(u64::MAX),
            last_sync: 0,
            sync,
            schema: schema.clone().into(),
            columns,
            rows: 0,
            bytes: 0,
            max_rows,
            options,
            compressor: Compressor::new(),
            failed: Failed::default(),
        })
    }

    /// Appends rows.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.failed.check()?;
        let written = self.write_batch(batch);
        self.failed.keep(written)
    }

    fn write_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        check_column_count(batch, self.columns.len())?;
        let fields = self.schema.fields();
        let arrays = self.columns.iter().zip(batch.columns()).zip(fields).map(|((column, array), field)| {
            column.prepare(array).map_err(|e| e.within(format!("column {:?}", field.name())))
        });
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        for start in (0..batch.num_rows()).step_by(ROWS_AT_ONCE) {
            let end = batch.num_rows().min(start + ROWS_AT_ONCE);
            for ((column, array), field) in self.columns.iter_mut().zip(&arrays).zip(self.schema.fields()) {
                let encoded = column.encoder.encode(array, start..end, &mut column.data, &mut column.lengths);
                encoded.map_err(|e| e.within(format!("column {:?}", field.name())))?;
            }
            self.cut(end - start)?;
        }
        Ok(())
    }

    /// Adds the last `added` rows of the columns, and writes the row groups that are full.
    fn cut(&mut self, added: usize) -> Result<()> {
        let mut sizes = vec![0usize; added];
        for column in &self.columns {
            let lengths =
                column.lengths.get(column.lengths.len().saturating_sub(added)..).unwrap_or_default();
            for (size, length) in sizes.iter_mut().zip(lengths) {
                *size = size.saturating_add(usize::try_from(*length).unwrap_or(usize::MAX));
            }
        }
        for size in sizes {
            self.rows += 1;
            self.bytes = self.bytes.saturating_add(size);
            if self.bytes > self.options.row_group_bytes || self.rows >= self.max_rows {
                self.write_row_group()?;
            }
        }
        self.columns.iter_mut().for_each(Column::compact);
        Ok(())
    }

    /// Writes the next `self.rows` rows of the columns.
    fn write_row_group(&mut self) -> Result<()> {
        let mut key = key::Key::new(self.rows);
        let mut values = Vec::new();
        for column in &mut self.columns {
            let (cells, lengths) = column.next(self.rows)?;
            let plain = cells.len();
            let start = values.len();
            match self.options.codec {
                Some(codec) => {
                    codec.compress(
                        &mut self.compressor,
                        self.options.compression_level,
                        cells,
                        &mut values,
                    )?;
                }
                None => values.extend_from_slice(cells),
            }
            key.column(values.len() - start, plain, lengths)?;
            column.rows_written += self.rows;
            column.bytes_written += plain;
        }
        self.write_record(&key.bytes, &values)?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    fn write_record(&mut self, key: &[u8], values: &[u8]) -> Result<()> {
        let mut compressed = Vec::new();
        let stored_key = match self.options.codec {
            Some(codec) => {
                codec.compress(&mut self.compressor, self.options.compression_level, key, &mut compressed)?;
                &compressed
            }
            None => key,
        };
        if self.position >= self.last_sync + SYNC_INTERVAL {
            self.put(&SYNC_ESCAPE)?;
            self.put(&self.sync.clone())?;
            self.last_sync = self.position;
        }
        for length in [key.len().saturating_add(values.len()), key.len(), stored_key.len()] {
            self.put(&length_field(length)?)?;
        }
        self.put(stored_key)?;
        self.put(values)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write_all(bytes)?;
        self.position = self.position.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        Ok(())
    }

    /// Writes the last row group and flushes. Returns the sink and the file's length.
    pub(crate) fn finish(mut self) -> Result<(W, u64)> {
        self.failed.check()?;
        if self.rows > 0 {
            self.write_row_group()?;
        }
        self.sink.flush()?;
        Ok((self.sink, self.position))
    }
}

impl<W: Write + Send> BatchWriter for Writer<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        Self::write(self, batch)
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        Self::finish(*self).map(|(_, length)| length)
    }
}

/// The cells of one column that are not yet written, and the cells of the last row group.
struct Column {
    encoder: Box<dyn ColumnEncoder>,
    /// The type that arrays are cast to first, if the encoder does not accept theirs.
    cast: Option<DataType>,
    data: Vec<u8>,
    lengths: Vec<u32>,
    /// The number of rows already written, and the bytes of their cells.
    rows_written: usize,
    bytes_written: usize,
}

impl Column {
    fn new(hive_type: &HiveType, array_type: &DataType, options: &Settings) -> Result<Self> {
        let serde_options = &options.serde_options;
        let encoder = match options.serde {
            Serde::Binary => lazy_binary::encoder(hive_type, serde_options)?,
            Serde::Text => text::encoder(hive_type, serde_options)?,
        };
        let (data, lengths) = (Vec::new(), Vec::new());
        let mut column = Self { encoder, cast: None, data, lengths, rows_written: 0, bytes_written: 0 };
        let empty = new_empty_array(array_type);
        if let Err(e) = column.encoder.encode(&empty, 0..0, &mut column.data, &mut column.lengths) {
            let target = plain::data_type(hive_type, array_type, serde_options.timestamp_unit);
            if !matches!(e.kind(), ErrorKind::Schema(_)) || !can_cast_types(array_type, &target) {
                return Err(e);
            }
            column.cast = Some(target);
        }
        Ok(column)
    }

    /// The array in the form that the encoder accepts; an error names the first unsuitable value.
    fn prepare(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let Some(target) = &self.cast else { return Ok(array.clone()) };
        let exactly = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(array, target, &exactly).map_err(|e| {
            let rows: Vec<usize> = (1..=array.len()).collect();
            let fails = |n: &usize| cast_with_options(&array.slice(0, *n), target, &exactly).is_err();
            let row = rows.partition_point(|n| !fails(n));
            let actual = array.data_type();
            Error::invalid(format!("a value of {actual} as {target}: {e}"))
                .within(format!("row {row} to be written"))
        })
    }

    /// The cells of the next `rows` rows, and their lengths.
    fn next(&self, rows: usize) -> Result<(&[u8], &[u32])> {
        let lengths = self.lengths.get(self.rows_written..self.rows_written + rows).unwrap_or_default();
        let bytes: u64 = lengths.iter().map(|n| u64::from(*n)).sum();
        if i32::try_from(bytes).is_err() {
            return Err(Error::invalid(format!(
                "a row group with {bytes} bytes in one column: the maximum is 2 GiB"
            )));
        }
        let end = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(self.bytes_written);
        Ok((self.data.get(self.bytes_written..end).unwrap_or_default(), lengths))
    }

    /// Removes the written cells.
    fn compact(&mut self) {
        self.lengths.drain(..self.rows_written.min(self.lengths.len()));
        self.data.drain(..self.bytes_written.min(self.data.len()));
        (self.rows_written, self.bytes_written) = (0, 0);
    }
}

fn columns(schema: &Schema, options: &Settings) -> Result<Vec<Column>> {
    let types = match &options.types {
        Some(types) => types.clone(),
        None => schema.fields().iter().map(|f| hive_type(f)).collect::<Result<_>>()?,
    };
    if types.len() != schema.fields().len() {
        let (expected, actual) = (schema.fields().len(), types.len());
        return Err(Error::schema(format!("expected Hive types for {expected} columns, found {actual}")));
    }
    let columns = types.iter().zip(schema.fields()).map(|(hive_type, field)| {
        let column = Column::new(hive_type, field.data_type(), options);
        column.map_err(|e| unsuitable(e).within(format!("column {:?}", field.name())))
    });
    columns.collect()
}

fn hive_type(field: &arrow_schema::Field) -> Result<HiveType> {
    HiveType::from_arrow(field.data_type()).map_err(|e| e.within(format!("column {:?}", field.name())))
}

fn length_field(length: usize) -> Result<[u8; 4]> {
    let length = i32::try_from(length).map_err(|_| {
        Error::invalid(format!(
            "a row group of {length} bytes: the maximum is 2 GiB (option `row_group_bytes`)"
        ))
    });
    length.map(i32::to_be_bytes)
}
