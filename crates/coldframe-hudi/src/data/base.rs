//! Base files: Parquet, ORC and HFile, as units whose batches have the file's own columns.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Fields, Schema as ArrowSchema};
use bytes::Bytes;
use coldframe_core::{
    BatchIter, ColumnBounds, DecodeUnit, Error, Fetch, OpenOptions, PlanRequest, ReadAt, Result, Scan, Split,
    TableFile, Unit,
};
use coldframe_hfile::file_info;
use coldframe_orc::OrcFile;

use crate::avro::Schema;
use crate::avro::columns::ColumnBuilder;
use crate::data::bootstrap;
use crate::data::logs::hfile_values;
use crate::data::parquet_file::ParquetFile;
use crate::data::table_schema::META;

/// An open base file.
#[derive(Clone, Debug)]
pub(crate) enum Base {
    /// Parquet.
    Parquet(ParquetFile),
    /// ORC.
    Orc(Box<OrcFile>),
    /// HFile, whose values are records.
    HFile(Arc<dyn ReadAt>, coldframe_hfile::Options),
    /// The meta columns of a bootstrapped table, and the file of the source with the others.
    Bootstrapped(Box<Base>, Box<Base>),
}

impl Base {
    /// Opens a base file; its format follows from the end of its name.
    pub(crate) fn open(path: &str, source: Arc<dyn ReadAt>, options: &OpenOptions) -> Result<Self> {
        if source.is_empty() {
            return Err(Error::corrupt("expected a base file, found an empty file"));
        }
        let plain = OpenOptions { extra: Default::default(), schema: None, ..options.clone() };
        match path.rsplit('.').next().unwrap_or_default() {
            "parquet" => Ok(Self::Parquet(ParquetFile::open(source, &options.limits)?)),
            "orc" => {
                let given = coldframe_orc::OpenOptions {
                    timestamp_unit: coldframe_core::options::TimestampUnit::Microsecond,
                    ..Default::default()
                };
                let options = coldframe_orc::Options::new(&given, &plain);
                Ok(Self::Orc(Box::new(OrcFile::open(source, options)?)))
            }
            "hfile" => Ok(Self::HFile(source, coldframe_hfile::Options::new(&plain)?)),
            other => Err(Error::unsupported(format!("base files of the format {other:?} in a Hudi table"))),
        }
    }

    /// The units that begin in `range`, with the columns of these names.
    pub(crate) fn units(
        &self,
        columns: &[String],
        range: &Range<u64>,
        request: &PlanRequest,
    ) -> Result<Vec<Unit>> {
        Ok(self.units_of(columns, range, request, &|_, _| None)?.0)
    }

    /// The units that may have rows which pass the request's filter, and the number of units left out. `bounds`:
    /// the bounds of a column of the table in a row group.
    pub(crate) fn units_of(
        &self,
        columns: &[String],
        range: &Range<u64>,
        request: &PlanRequest,
        bounds: &dyn Fn(usize, &str) -> Option<ColumnBounds>,
    ) -> Result<(Vec<Unit>, u64)> {
        let units = match self {
            Self::Bootstrapped(meta, source) => {
                if !range.contains(&0) {
                    return Ok((Vec::new(), 0));
                }
                let (whole, meta_columns) = (0..u64::MAX, META.map(str::to_owned));
                // The number of rows comes from the meta columns, even if no column is requested.
                let meta = meta.units(&meta_columns, &whole, request)?;
                vec![bootstrap::zipped(meta, source.units(columns, &whole, request)?)]
            }
            Self::Parquet(file) => {
                let filter = request.scan.predicate.as_ref();
                let may_match =
                    |group: usize| filter.is_none_or(|f| f.may_match(&|column| bounds(group, column)));
                return file.units_of(columns, range, request.scan.batch_rows, &may_match);
            }
            Self::Orc(file) => {
                let fields = file.schema().fields().iter().filter(|f| columns.contains(f.name())).cloned();
                let scan = Scan {
                    batch_rows: request.scan.batch_rows,
                    threads: request.scan.threads,
                    ..Scan::default()
                };
                let decode = Arc::new(ArrowSchema::new(fields.collect::<Fields>()));
                let request = PlanRequest { scan, decode, damage: request.damage.clone() };
                let split = Split { part: 0, range: range.clone(), rows: None };
                let mut plan = file.plan(&request, &split)?;
                let mut units = Vec::new();
                while let Some(unit) = plan.next_unit()? {
                    units.push(unit);
                }
                units
            }
            Self::HFile(source, options) => {
                let whole = 0..source.len();
                if !range.contains(&0) {
                    return Ok((Vec::new(), 0));
                }
                let decode = DecodeHFile { columns: columns.to_vec(), options: options.clone() };
                vec![Unit {
                    fetch: vec![Fetch { source: source.clone(), range: whole.clone() }],
                    bytes: whole,
                    rows: None,
                    structure: "HFile".to_owned(),
                    decode: Box::new(decode),
                }]
            }
        };
        Ok((units, 0))
    }

    /// The bounds of a column in a row group, as values of the type `to`, if they are known.
    pub(crate) fn bounds(&self, group: usize, column: &str, to: &DataType) -> Option<ColumnBounds> {
        match self {
            Self::Parquet(file) => file.bounds(group, column, to),
            Self::Orc(_) | Self::HFile(..) | Self::Bootstrapped(..) => None,
        }
    }

    /// The Avro schema of the file's records, if it has it.
    pub(crate) fn avro_schema(&self) -> Result<Option<String>> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::Bootstrapped(_, source) => source.avro_schema(),
            Self::Parquet(file) => Ok(file.key_value("parquet.avro.schema").map(str::to_owned)),
            Self::Orc(file) => Ok(file.user_metadata("orc.avro.schema").map(text)),
            Self::HFile(source, options) => {
                let raw = coldframe_hfile::open(source.clone(), options)?;
                Ok(raw.info().get(file_info::HUDI_SCHEMA).map(text))
            }
        }
    }
}

struct DecodeHFile {
    columns: Vec<String>,
    options: coldframe_hfile::Options,
}

impl DecodeUnit for DecodeHFile {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let content = bytes.into_iter().next().unwrap_or_default();
        let limits = self.options.limits;
        let raw = Arc::new(coldframe_hfile::open(Arc::new(content), &self.options)?);
        let json = raw.info().get(file_info::HUDI_SCHEMA).map(<[u8]>::to_vec);
        let Some(json) = json else {
            return match raw.trailer().entry_count {
                0 => Ok(Box::new(std::iter::empty())),
                _ => Err(Error::corrupt("expected an Avro `schema` in the file info, found none")),
            };
        };
        let schema = Schema::parse(&json, &limits)?;
        let DataType::Struct(fields) = schema.arrow(&limits)? else {
            return Err(Error::corrupt("expected a record as the schema of a base file"));
        };
        let kept: Fields = fields.iter().filter(|f| self.columns.contains(f.name())).cloned().collect();
        let mut column = ColumnBuilder::new(&schema, &DataType::Struct(kept))?;
        for value in hfile_values(raw)? {
            column.push(&schema, &value, &limits)?;
        }
        let array = column.finish()?;
        let batch = RecordBatch::from(array.as_struct().clone());
        Ok(Box::new(std::iter::once(Ok(batch))))
    }
}
