//! Writes Parquet files with the `parquet` crate, row group by row group, with a checksum on each page:
//! without checksums, three of four cases of damage give wrong values without an error.
//!
//! ```text
//! PAR1 ├─ row group 0 ─┼─ row group 1 ─┼ .. ├─ footer ─┤ len u32 │ PAR1
//!       │ chunk of column 0 │ chunk of column 1 │ ..
//!         └ [dictionary page] data page data page ..    each: header with CRC-32, data
//! ```
//!
//! The encoded pages of one row group, and for each column the page being built, are in memory.

mod dictionaries;
mod ids;
mod pages;

use std::collections::BTreeMap;
use std::io::BufWriter;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use coldframe::{Error, Result, Value, Written, store::Upload};
use parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;

use pages::RowGroupPages;

/// Maximum rows of a row group.
const ROW_GROUP_ROWS: usize = 1 << 20;

/// The largest dictionary of a column chunk; larger chunks are written without a dictionary. With a quarter
/// of the usual size, writing takes a third less time, and files are a tenth smaller, except for columns whose
/// values repeat ([`dictionaries`]).
const DICTIONARY_BYTES: usize = 256 << 10;

/// How Parquet files are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParquetOptions {
    /// The codec of all pages.
    pub compression: Compression,
    /// The approximate size of a row group in Arrow's memory.
    pub row_group_bytes: u64,
    /// Maximum rows of a row group (a batch may exceed it).
    pub row_group_rows: usize,
    /// The ids of all fields, those of a field before those inside it; none if empty.
    pub field_ids: Vec<i32>,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        Self {
            compression: Compression::ZSTD(ZstdLevel::default()),
            row_group_bytes: 64 << 20,
            row_group_rows: ROW_GROUP_ROWS,
            field_ids: Vec::new(),
        }
    }
}

impl ParquetOptions {
    /// Parses the options `codec`, `row_group_bytes`, `row_group_rows` and `field_ids` (`"1,2,7"`).
    pub fn from_options(options: &BTreeMap<String, Value>) -> Result<Self> {
        let mut parsed = Self::default();
        for (name, value) in options {
            match (name.as_str(), value) {
                ("codec", Value::Str(codec)) => parsed.compression = compression(codec)?,
                ("row_group_bytes", Value::Int(bytes)) if *bytes > 0 => {
                    parsed.row_group_bytes = bytes.unsigned_abs()
                }
                ("row_group_rows", Value::Int(rows)) if *rows > 0 => {
                    parsed.row_group_rows = usize::try_from(*rows).unwrap_or(usize::MAX);
                }
                ("field_ids", Value::Str(ids)) => {
                    let ids = ids.split(',').filter(|id| !id.is_empty()).map(str::parse);
                    parsed.field_ids = ids.collect::<std::result::Result<_, _>>().map_err(|_| {
                        Error::invalid(format!(
                            "an option for Parquet: expected field_ids as numbers, found {value:?}"
                        ))
                    })?;
                }
                _ => {
                    return Err(Error::invalid(format!(
                        "an option for Parquet: expected codec, row_group_bytes, row_group_rows or field_ids, found {name}={value:?}"
                    )));
                }
            }
        }
        Ok(parsed)
    }

    /// The crate's properties; columns in `repetitive` may have large dictionaries.
    fn properties(&self, repetitive: Vec<String>) -> WriterProperties {
        let properties = WriterProperties::builder()
            .set_compression(self.compression)
            .set_dictionary_page_size_limit(DICTIONARY_BYTES)
            .set_max_row_group_row_count(None)
            // Statistics for each column chunk are exact, since Delta and Iceberg tables use them.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_statistics_truncate_length(None)
            .set_offset_index_disabled(true)
            // Names the parts of lists and maps as the specification does.
            .set_coerce_types(true)
            .set_created_by(format!("coldframe {}", env!("CARGO_PKG_VERSION")));
        let with_large = |properties: WriterPropertiesBuilder, name: String| {
            properties.set_column_dictionary_page_size_limit(vec![name].into(), dictionaries::LARGE)
        };
        repetitive.into_iter().fold(properties, with_large).build()
    }
}

/// Parses a codec's usual name.
fn compression(name: &str) -> Result<Compression> {
    match name {
        "none" => Ok(Compression::UNCOMPRESSED),
        "snappy" => Ok(Compression::SNAPPY),
        "gzip" => Ok(Compression::GZIP(GzipLevel::default())),
        "zstd" => Ok(Compression::ZSTD(ZstdLevel::default())),
        other => Err(Error::invalid(format!(
            "a codec for Parquet: expected none, snappy, gzip or zstd, found {other}"
        ))),
    }
}

type Out = BufWriter<Box<dyn Upload>>;

/// A file being written. If it is dropped before it is finished, no file appears.
pub(crate) struct ParquetFile {
    /// Where the file goes, until its first rows decide how it is written.
    out: Option<Out>,
    writer: Option<Writer>,
    /// The columns as they are written.
    columns: SchemaRef,
    schema: SchemaRef,
    options: ParquetOptions,
    pages: RowGroupPages,
    group: Option<Group>,
    /// The number of row groups written.
    groups: usize,
    rows: u64,
    url: String,
}

/// The file's writer, which makes those of its row groups.
struct Writer {
    file: SerializedFileWriter<Out>,
    factory: ArrowRowGroupWriterFactory,
}

/// The row group being filled.
struct Group {
    columns: Vec<ArrowColumnWriter>,
    rows: usize,
    /// The size of the rows in Arrow's memory.
    bytes: u64,
}

impl ParquetFile {
    /// Begins a file with the columns of a schema; errors name it `url`.
    pub(crate) fn begin(
        schema: &SchemaRef,
        upload: Box<dyn Upload>,
        url: &str,
        options: ParquetOptions,
    ) -> Result<Self> {
        let url = url.to_owned();
        let columns = match options.field_ids.as_slice() {
            [] => schema.clone(),
            ids => ids::numbered(schema, ids)?,
        };
        let converted = ArrowSchemaConverter::new().with_coerce_types(true).convert(&columns);
        converted.map_err(|e| unwritten(e).in_file(url.clone()))?;
        Ok(Self {
            out: Some(BufWriter::with_capacity(1 << 20, upload)),
            writer: None,
            columns,
            schema: schema.clone(),
            options,
            pages: RowGroupPages::default(),
            group: None,
            groups: 0,
            rows: 0,
            url,
        })
    }

    /// The writer, made with the first rows if there are any.
    fn writer(&mut self, first: Option<&RecordBatch>) -> parquet::errors::Result<&mut Writer> {
        if let Some(out) = self.out.take() {
            let repetitive = first.map_or(Ok(Vec::new()), dictionaries::repetitive);
            let repetitive = repetitive.map_err(|e| ParquetError::External(Box::new(e)))?;
            let with = ArrowWriterOptions::new()
                .with_properties(self.options.properties(repetitive))
                .with_page_store_factory(Arc::new(self.pages.clone()));
            let writer = ArrowWriter::try_new_with_options(out, self.columns.clone(), with);
            let (file, factory) = writer.and_then(ArrowWriter::into_serialized_writer)?;
            // The page stores that the Arrow writer has created for the next row group stay empty.
            self.pages.take();
            self.writer = Some(Writer { file, factory });
        }
        self.writer.as_mut().ok_or_else(|| ParquetError::General("a file that could not be begun".to_owned()))
    }

    /// Adds rows of the schema.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.add(batch).map_err(|e| unwritten(e).in_file(self.url.clone()))
    }

    fn add(&mut self, batch: &RecordBatch) -> parquet::errors::Result<()> {
        if batch.schema_ref().fields() != self.schema.fields() {
            let (expected, actual) = (&self.schema, batch.schema());
            return Err(ParquetError::General(format!("expected batches of {expected}, found {actual}")));
        }
        let groups = self.groups;
        let mut group = match self.group.take() {
            Some(group) => group,
            None => {
                let columns = self.writer(Some(batch))?.factory.create_column_writers(groups)?;
                Group { columns, rows: 0, bytes: 0 }
            }
        };
        let mut columns = group.columns.iter_mut();
        for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
            for leaf in compute_leaves(field, array)? {
                let too_few = || ParquetError::General("more leaves than columns".to_owned());
                columns.next().ok_or_else(too_few)?.write(&leaf)?;
            }
        }
        group.rows += batch.num_rows();
        group.bytes =
            group.bytes.saturating_add(batch.columns().iter().map(|array| sliced_bytes(array)).sum());
        self.rows += batch.num_rows() as u64;
        let is_full =
            group.rows >= self.options.row_group_rows || group.bytes >= self.options.row_group_bytes;
        self.group = Some(group);
        if is_full { self.end_group() } else { Ok(()) }
    }

    fn end_group(&mut self) -> parquet::errors::Result<()> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let mut closed = Vec::with_capacity(group.columns.len());
        for column in group.columns {
            closed.push(column.close()?);
        }
        let stored = self.pages.take();
        let mut writer = self.writer(None)?.file.next_row_group()?;
        for (mut chunk, pages) in closed.into_iter().zip(stored) {
            let close = pages.described(chunk.close_mut())?;
            writer.append_column(&pages, close)?;
        }
        writer.close()?;
        self.groups += 1;
        Ok(())
    }

    /// The size of the complete row groups so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, |writer| writer.file.bytes_written() as u64)
    }

    /// Completes the file, which makes it visible.
    pub(crate) fn finish(mut self) -> Result<Written> {
        let url = std::mem::take(&mut self.url);
        let named = |e: Error| e.in_file(url.clone());
        self.end_group().map_err(|e| named(unwritten(e)))?;
        self.writer(None).map_err(|e| named(unwritten(e)))?;
        let Some(writer) = self.writer else { return Err(named(Error::invalid("a file without a writer"))) };
        let out = writer.file.into_inner().map_err(|e| named(unwritten(e)))?;
        let upload = out.into_inner().map_err(|e| named(e.into_error().into()))?;
        let stat = upload.finish().map_err(named)?;
        Ok(Written { rows: self.rows, bytes: stat.len, etag: stat.etag })
    }
}

/// The size of an array's own values, without the rest of the buffers that it slices.
pub(crate) fn sliced_bytes(array: &dyn Array) -> u64 {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()) as u64
}

/// The error of a failed write: either the store failed, or Parquet cannot represent the data.
fn unwritten(e: ParquetError) -> Error {
    match e {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => (*io).into(),
            Err(other) => Error::schema(other.to_string()),
        },
        ParquetError::NYI(what) => Error::unsupported(format!("Parquet: {what}")),
        other => Error::schema(other.to_string()),
    }
}
