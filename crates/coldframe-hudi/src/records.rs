//! `decode="avro"`: reads an HFile of Hudi with an additional column `record`, in which the values are
//! decoded as structs.
//!
//! The schema is in the file info under `schema`. If a value cannot be decoded, only its row is lost.

use std::any::Any;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema as ArrowSchema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use coldframe_core::{
    BatchIter, Damage, DecodeUnit, Error, ErrorContext, Limits, Node, OnError, OpenOptions, Plan,
    PlanRequest, Proof, Result, Source, Split, TableFile, Unit, Value, arrow_error,
};

use crate::avro::Schema;
use crate::avro::columns::ColumnBuilder;
use coldframe_hfile::file_info::{self, FileInfo};
use coldframe_hfile::{HFile, View};

/// The name of the column of records.
const RECORD: &str = "record";
/// The column of the encoded values.
const VALUE: &str = "value";

/// An HFile with the records in its values.
#[derive(Debug)]
pub struct RecordFile {
    file: HFile,
    records: Records,
    schema: SchemaRef,
}

impl RecordFile {
    /// Reads the file's metadata and its schema.
    pub fn open(source: &Source, options: &OpenOptions) -> Result<Self> {
        let file = HFile::open(source, options)?;
        if file.view() == View::Cells {
            return Err(Error::unsupported("`decode=\"avro\"` with `view=\"cells\"`"));
        }
        let records = Records::new(file.raw().info(), options.limits)?;
        let schema = records.columns(file.schema())?;
        Ok(Self { file, records, schema })
    }
}

impl TableFile for RecordFile {
    fn format(&self) -> &'static str {
        self.file.format()
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn row_count(&self) -> Option<u64> {
        self.file.row_count()
    }

    fn counts_by_reading(&self) -> bool {
        self.file.counts_by_reading()
    }

    fn metadata(&self) -> Result<Value> {
        self.file.metadata()
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        self.file.splits(target)
    }

    fn byte_split(&self, bytes: std::ops::Range<u64>) -> Result<Split> {
        self.file.byte_split(bytes)
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        match self.records.inner(request, self.file.schema()) {
            Some(inner) => Ok(self.records.plan(self.file.plan(&inner, split)?, request.clone())),
            None => self.file.plan(request, split),
        }
    }

    fn statistics(&self) -> Result<Value> {
        self.file.statistics()
    }

    fn inspect(&self) -> Result<Node> {
        self.file.inspect()
    }

    fn proof(&self) -> Proof {
        self.file.proof()
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        self.file.verify_structure()
    }

    /// The HFile itself, for its look-ups.
    fn as_any(&self) -> &dyn Any {
        &self.file
    }
}

/// The schema of a file's values.
#[derive(Clone, Debug)]
struct Records {
    schema: Arc<Schema>,
    limits: Limits,
}

impl Records {
    /// Reads the schema from the file info.
    fn new(info: &FileInfo, limits: Limits) -> Result<Self> {
        let json = info.get(file_info::HUDI_SCHEMA).ok_or_else(|| {
            Error::schema("option `decode`: expected an Avro `schema` in the file info, found none")
        })?;
        let schema = Arc::new(Schema::parse(json, &limits).within(|| "file info")?);
        Ok(Self { schema, limits })
    }

    /// A file's columns and the column of records.
    fn columns(&self, schema: &SchemaRef) -> Result<SchemaRef> {
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(RECORD, self.schema.arrow(&self.limits)?, true)));
        Ok(Arc::new(ArrowSchema::new(fields)))
    }

    /// The request to the underlying file, for values instead of records. `None` if no record is requested.
    fn inner(&self, request: &PlanRequest, all: &SchemaRef) -> Option<PlanRequest> {
        let wanted = &request.decode;
        wanted.field_with_name(RECORD).ok()?;
        let needed = |f: &&Arc<Field>| {
            f.name() == VALUE || (f.name() != RECORD && wanted.field_with_name(f.name()).is_ok())
        };
        let fields: Vec<_> = all.fields().iter().filter(needed).cloned().collect();
        Some(PlanRequest { decode: Arc::new(ArrowSchema::new(fields)), ..request.clone() })
    }

    /// A plan whose units add the records.
    fn plan(&self, inner: Box<dyn Plan>, request: PlanRequest) -> Box<dyn Plan> {
        Box::new(RecordPlan { inner, records: self.clone(), request })
    }
}

struct RecordPlan {
    inner: Box<dyn Plan>,
    records: Records,
    request: PlanRequest,
}

impl Plan for RecordPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        let Some(unit) = self.inner.next_unit()? else { return Ok(None) };
        let decode = DecodeRecords {
            inner: unit.decode,
            records: self.records.clone(),
            request: self.request.clone(),
            place: unit.bytes.clone(),
        };
        Ok(Some(Unit { decode: Box::new(decode), ..unit }))
    }
}

struct DecodeRecords {
    inner: Box<dyn DecodeUnit>,
    records: Records,
    request: PlanRequest,
    place: std::ops::Range<u64>,
}

impl DecodeUnit for DecodeRecords {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let Self { inner, records, request, place } = *self;
        let field = request.decode.field_with_name(RECORD).map_err(arrow_error)?;
        let mut column = ColumnBuilder::new(&records.schema, field.data_type())?;
        let batches = inner.decode(bytes)?;
        Ok(Box::new(batches.map(move |batch| add_records(&batch?, &records, &request, &place, &mut column))))
    }
}

fn add_records(
    batch: &RecordBatch,
    records: &Records,
    request: &PlanRequest,
    place: &std::ops::Range<u64>,
    column: &mut ColumnBuilder,
) -> Result<RecordBatch> {
    let values = batch.column_by_name(VALUE).and_then(|v| v.as_binary_opt::<i32>());
    let values = values.ok_or_else(|| Error::schema("a decoded batch lacks the column `value`"))?;
    let mut kept = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        let result = column.push(&records.schema, value.unwrap_or_default(), &records.limits);
        let failed = result.map_err(|e| e.within(format!("Avro value {row} of the batch"))).err();
        kept.push(failed.is_none());
        match failed {
            Some(e) if request.scan.on_error != OnError::Raise && e.is_damage() => {
                request.damage.push(Damage::from_error(&e, place.clone(), Some(1)));
            }
            Some(e) => return Err(e),
            None => {}
        }
    }
    let array = column.finish()?;
    let batch = if kept.contains(&false) {
        filter_record_batch(batch, &BooleanArray::from(kept)).map_err(arrow_error)?
    } else {
        batch.clone()
    };
    let arrays = request.decode.fields().iter().map(|field| {
        let column = if field.name() == RECORD { Some(&array) } else { batch.column_by_name(field.name()) };
        column
            .cloned()
            .ok_or_else(|| Error::schema(format!("a decoded batch lacks the column `{}`", field.name())))
    });
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(request.decode.clone(), arrays, &options).map_err(arrow_error)
}
