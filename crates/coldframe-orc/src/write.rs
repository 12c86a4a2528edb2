//! Writes ORC files of version 0.12, as Java's writer does.
//!
//! ```text
//! file    | "ORC" | stripe .. | metadata | footer | postscript | its length u8 |
//! stripe  | index streams | data streams | footer |
//! ```
//!
//! * Streams are collected in memory; a stripe ends at `stripe_size` bytes. The size is checked every
//!   [`ROWS_BETWEEN_CHECKS`] rows, and memory is counted as Java counts it, so stripes are as large as
//!   Java's.
//! * A row group ends after `row_index_stride` rows; the positions of all streams, statistics and bloom
//!   filters are stored.
//! * Times are in UTC and days proleptic Gregorian, as the footer states.
//! * `Footer.writer` is Java's number: readers decide by it which statistics to trust, and this writer
//!   computes them as Java does. `softwareVersion` has the true name.
//!
//! ORC specification v1, "File Tail", "Stripes"; Java's `WriterImpl` and `PhysicalFsWriter`.
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | the options by name |
//! | [`schema`] | the ORC types of an Arrow schema |
//! | [`column`] | the tree of columns: nulls, nesting, row indexes |
//! | [`leaf`], [`text`], [`decimal`], [`timestamp`] | the streams of each type |
//! | [`stream`] | chunks and positions |
//! | [`integers`], [`int_rle`], [`byte_rle`] | run lengths |
//! | [`statistics`], [`bloom`] | statistics and bloom filters, by which readers prune |

mod bloom;
mod byte_rle;
mod column;
mod decimal;
mod int_rle;
mod integers;
mod leaf;
mod options;
mod schema;
mod statistics;
mod stream;
mod text;
mod timestamp;

use std::io::Write;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;
use bytes::Bytes;
use coldframe_core::BatchWriter;
use coldframe_core::writing::{Failed, check_column_count};
use coldframe_encoding::{Error, Result};

pub use self::options::{Codec as CodecOption, EncodingStrategy, LastSecond, WriteOptions};

use self::column::{Column, Shared, StoredStream, StripeParts};
use self::schema::{ColumnType, Kind};
use self::stream::Codec;
use crate::layout::proto;

/// Number of rows after which the writer checks whether the stripe is full. Java's `orc.rows.between.memory.checks`.
pub(crate) const ROWS_BETWEEN_CHECKS: usize = 5000;

const MAGIC: &[u8; 3] = b"ORC";
/// `PostScript.writerVersion` of Java's writer since 1.6.
const WRITER_VERSION: u32 = 9;
const PROLEPTIC: u32 = 2;

/// Writes one file.
pub(crate) struct Writer<W> {
    sink: W,
    position: u64,
    schema: Schema,
    root: Column,
    context: Shared,
    /// Number of rows in the current stripe.
    rows: u64,
    /// The number of rows in the stripe's last row group.
    group_rows: usize,
    /// Number of rows since the last check of its size.
    rows_since_check: usize,
    footer: proto::Footer,
    metadata: proto::Metadata,
    has_times: bool,
    options: WriteOptions,
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

/// The ORC types of a schema, as the footer stores them.
pub(crate) fn types_of(schema: &Schema) -> Result<Vec<proto::Type>> {
    Ok(ColumnType::of(schema, &[])?.all().iter().map(|t| t.to_proto()).collect())
}

impl<W: Write> Writer<W> {
    /// Writes the magic bytes.
    pub(crate) fn new(mut sink: W, schema: &Schema, options: WriteOptions) -> Result<Self> {
        options.check()?;
        let root = ColumnType::of(schema, &options.lengths()?)?;
        let types = root.all();
        check_blooms(&types, &options)?;
        let block = options
            .compression_block_size
            .unwrap_or_else(|| estimated_block_size(options.stripe_size, types.len()));
        let item = |(name, value): &(String, Vec<u8>)| proto::UserMetadataItem {
            name: Some(name.clone()),
            value: Some(value.clone()),
        };
        let footer = proto::Footer {
            header_length: Some(MAGIC.len() as u64),
            types: types.iter().map(|t| t.to_proto()).collect(),
            metadata: options.metadata.iter().map(item).collect(),
            number_of_rows: Some(0),
            row_index_stride: Some(u32::try_from(options.row_index_stride).unwrap_or(u32::MAX)),
            writer: Some(0),
            calendar: Some(PROLEPTIC),
            software_version: Some(concat!("coldframe-", env!("CARGO_PKG_VERSION")).to_owned()),
            ..Default::default()
        };
        let context = Shared {
            codec: Codec::new(options.codec.algorithm(), options.compression_level, block),
            integers: Vec::new(),
        };
        sink.write_all(MAGIC)?;
        Ok(Self {
            sink,
            position: MAGIC.len() as u64,
            has_times: types.iter().any(|t| matches!(t.kind, Kind::Timestamp(_))),
            schema: schema.clone(),
            root: Column::new(&root, &options),
            context,
            rows: 0,
            group_rows: 0,
            rows_since_check: 0,
            footer,
            metadata: proto::Metadata::default(),
            options,
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
        let (fields, columns) = (self.schema.fields(), batch.columns());
        check_column_count(batch, fields.len())?;
        for (field, array) in fields.iter().zip(columns) {
            let (expected, actual) = (field.data_type(), array.data_type());
            if !expected.equals_datatype(actual) {
                let e = Error::schema(format!("expected {expected}, found {actual}"));
                return Err(e.within(format!("column {:?}", field.name())));
            }
        }
        let mut start = 0;
        while start < batch.num_rows() {
            let rows = self.rows_at_once().min(batch.num_rows() - start);
            let part: Vec<ArrayRef> = columns.iter().map(|c| c.slice(start, rows)).collect();
            self.write_rows(&part, rows)?;
            start += rows;
        }
        Ok(())
    }

    /// Number of rows up to the next check, or to the end of the row group or stripe.
    fn rows_at_once(&self) -> usize {
        let in_stripe = usize::try_from(self.options.stripe_rows - self.rows).unwrap_or(usize::MAX);
        let in_group = match self.options.row_index_stride {
            0 => usize::MAX,
            stride => stride - self.group_rows,
        };
        (ROWS_BETWEEN_CHECKS - self.rows_since_check).min(in_group).min(in_stripe)
    }

    fn write_rows(&mut self, columns: &[ArrayRef], rows: usize) -> Result<()> {
        if self.group_rows == 0 && self.options.row_index_stride > 0 {
            self.root.begin_group(&self.context.codec);
        }
        self.root.write_rows(columns, rows, &mut self.context)?;
        self.rows += rows as u64;
        self.group_rows += rows;
        self.rows_since_check += rows;
        if self.group_rows == self.options.row_index_stride {
            self.root.end_group(&mut self.context.codec)?;
            self.group_rows = 0;
        }
        let is_full = self.rows_since_check >= ROWS_BETWEEN_CHECKS && {
            self.rows_since_check = 0;
            self.root.memory(&self.context.codec) > self.options.stripe_size
        };
        if is_full || self.rows >= self.options.stripe_rows {
            self.write_stripe()?;
        }
        Ok(())
    }

    /// Writes the current stripe.
    fn write_stripe(&mut self) -> Result<()> {
        if self.group_rows > 0 {
            self.root.end_group(&mut self.context.codec)?;
        }
        let mut parts = StripeParts::default();
        self.root.finish_stripe(&mut self.context.codec, &mut parts)?;
        let StripeParts { index, data, encodings, statistics } = parts;
        let stream = |s: &StoredStream| proto::Stream {
            kind: Some(s.kind.number()),
            column: Some(s.column),
            length: Some(s.bytes.len() as u64),
        };
        let footer = proto::StripeFooter {
            streams: index.iter().chain(&data).map(stream).collect(),
            columns: encodings,
            writer_timezone: self.has_times.then(|| "UTC".to_owned()),
            encryption: Vec::new(),
        };
        let footer = self.context.codec.whole(&proto::encode(&footer))?;
        let length = |streams: &[StoredStream]| streams.iter().map(|s| s.bytes.len() as u64).sum();
        self.footer.stripes.push(proto::StripeInformation {
            offset: Some(self.position),
            index_length: Some(length(&index)),
            data_length: Some(length(&data)),
            footer_length: Some(footer.len() as u64),
            number_of_rows: Some(self.rows),
            ..Default::default()
        });
        self.metadata
            .stripe_stats
            .push(proto::StripeStatistics { col_stats: statistics.iter().map(encoded).collect() });
        for stream in index.iter().chain(&data) {
            self.put(&stream.bytes)?;
        }
        self.put(&footer)?;
        let rows = self.footer.number_of_rows.unwrap_or(0) + self.rows;
        self.footer.number_of_rows = Some(rows);
        (self.rows, self.group_rows, self.rows_since_check) = (0, 0, 0);
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write_all(bytes)?;
        self.position = self.position.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Writes the last stripe and the tail, and flushes. Returns the sink and the file's length.
    pub(crate) fn finish(mut self) -> Result<(W, u64)> {
        self.failed.check()?;
        if self.rows > 0 {
            self.write_stripe()?;
        }
        self.footer.content_length = Some(self.position);
        let mut statistics = Vec::new();
        self.root.file_statistics(&mut statistics);
        self.footer.statistics = statistics.iter().map(encoded).collect();
        let metadata = self.context.codec.whole(&proto::encode(&self.metadata))?;
        let footer = self.context.codec.whole(&proto::encode(&self.footer))?;
        let is_compressed = self.options.codec != CodecOption::None;
        let postscript = proto::encode(&proto::PostScript {
            footer_length: Some(footer.len() as u64),
            compression: Some(self.options.codec.stored()),
            compression_block_size: is_compressed.then_some(self.context.codec.block as u64),
            version: vec![0, 12],
            metadata_length: Some(metadata.len() as u64),
            writer_version: Some(WRITER_VERSION),
            stripe_statistics_length: None,
            magic: Some("ORC".to_owned()),
        });
        let length = u8::try_from(postscript.len())
            .map_err(|_| Error::invalid(format!("a postscript of {} bytes", postscript.len())))?;
        for part in [metadata, footer, postscript, vec![length]] {
            self.put(&part)?;
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

/// The statistics as the footer stores them.
fn encoded(statistics: &proto::ColumnStatistics) -> Bytes {
    proto::encode(statistics).into()
}

/// The block size for which a stripe has twenty blocks of each column, as in Java.
fn estimated_block_size(stripe_size: usize, columns: usize) -> usize {
    let size = stripe_size / (20 * columns.max(1));
    size.clamp(4 << 10, 256 << 10).next_power_of_two()
}

fn check_blooms(types: &[&ColumnType], options: &WriteOptions) -> Result<()> {
    for name in &options.bloom_filter_columns {
        let column = types.iter().find(|t| t.path == *name && t.id > 0);
        let column =
            column.ok_or_else(|| Error::not_found(format!("column {name:?} of `bloom_filter_columns`")))?;
        if matches!(column.kind, Kind::Boolean | Kind::Struct(_) | Kind::List | Kind::Map | Kind::Union) {
            return Err(Error::invalid(format!(
                "option `bloom_filter_columns`: the type of column {name:?} has no bloom filters"
            )));
        }
    }
    if options.row_index_stride == 0 && !options.bloom_filter_columns.is_empty() {
        return Err(Error::invalid("option `bloom_filter_columns` needs a `row_index_stride`"));
    }
    Ok(())
}
