//! A file whose columns are converted to the types of its Hive table.
//!
//! ```text
//! table    id bigint    price varchar(3)    day date        schema, filters, projections
//!            ▲            ▲                   ▲
//!            │            │ Conversion        │ the same
//! file     id int       price double        day date        plan, pruning, decoding, damage
//! ```
//!
//! Only types and values change: splits, damage and stored statistics are those of the file. A filter prunes in the
//! file only if the conversions of its columns change no value and no order; the scan evaluates it on the converted
//! columns in any case.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{FieldRef, Schema, SchemaRef};
use bytes::Bytes;

use crate::types::hive::Conversion;
use crate::{
    BatchIter, ColumnExtremes, ColumnSummary, Damage, DecodeUnit, Error, Extremes, Matching, Node, Notice,
    Piece, Plan, PlanRequest, Predicate, Proof, Result, Split, StoredDictionary, TableFile, Unit, Value,
    arrow_error,
};

/// The conversions of a file's columns, by name. Columns that stay what they are have none.
pub type Conversions = BTreeMap<String, Conversion>;

/// A file with converted columns.
#[derive(Debug)]
pub struct Evolved {
    file: Arc<dyn TableFile>,
    /// The file's columns in their order, with the table's types.
    schema: SchemaRef,
    conversions: Arc<Conversions>,
}

impl Evolved {
    /// Converts columns of `file`. `columns`: the converted columns, under the file's names; the others stay.
    pub fn wrap(file: Arc<dyn TableFile>, columns: Vec<(FieldRef, Conversion)>) -> Arc<dyn TableFile> {
        if columns.is_empty() {
            return file;
        }
        let of_name = |own: &FieldRef| {
            let converted = columns.iter().find(|(field, _)| field.name() == own.name());
            converted.map_or_else(|| own.clone(), |(field, _)| field.clone())
        };
        let own = file.schema();
        let fields: Vec<FieldRef> = own.fields().iter().map(of_name).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, own.metadata().clone()));
        let named = columns.into_iter().map(|(field, conversion)| (field.name().clone(), conversion));
        Arc::new(Self { schema, conversions: Arc::new(named.collect()), file })
    }

    /// The filter as the file can evaluate it on its own columns; `None` if it cannot.
    fn in_file(&self, predicate: &Predicate) -> Option<Predicate> {
        let mut paths = Vec::new();
        predicate.columns(&mut paths);
        let keeps = |path: &&str| {
            let column = path.split('.').next().unwrap_or(path);
            [*path, column]
                .iter()
                .all(|name| self.conversions.get(*name).is_none_or(Conversion::keeps_filters))
        };
        if !paths.iter().all(keeps) {
            return None;
        }
        predicate.clone().bind(self.file.schema()).ok()
    }

    /// The columns that the file decodes for a request.
    fn own_columns(&self, decode: &SchemaRef) -> SchemaRef {
        let own = |field: &FieldRef| {
            let own = self.file.schema().fields().iter().find(|own| own.name() == field.name());
            own.filter(|_| self.conversions.contains_key(field.name())).unwrap_or(field).clone()
        };
        let fields: Vec<FieldRef> = decode.fields().iter().map(own).collect();
        Arc::new(Schema::new_with_metadata(fields, decode.metadata().clone()))
    }
}

impl TableFile for Evolved {
    fn format(&self) -> &'static str {
        self.file.format()
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn has_placeholder_names(&self) -> bool {
        self.file.has_placeholder_names()
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

    fn notices(&self) -> Result<Vec<Notice>> {
        self.file.notices()
    }

    fn notices_by_reading(&self) -> Result<Vec<Notice>> {
        self.file.notices_by_reading()
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        self.file.splits(target)
    }

    fn matching_splits(&self, target: u64, filter: &Predicate) -> Result<Option<Matching>> {
        match self.in_file(filter) {
            Some(filter) => self.file.matching_splits(target, &filter),
            None => Ok(None),
        }
    }

    fn recorded(&self, splits: &[Split]) -> Result<Vec<Vec<Piece>>> {
        self.file.recorded(splits)
    }

    fn byte_split(&self, bytes: std::ops::Range<u64>) -> Result<Split> {
        self.file.byte_split(bytes)
    }

    fn decodes_views(&self) -> bool {
        self.file.decodes_views()
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        let mut own = request.clone();
        own.decode = self.own_columns(&request.decode);
        own.scan.predicate = request.scan.predicate.as_ref().and_then(|predicate| self.in_file(predicate));
        // Without its filter, a limit would end the file's part of the scan too early.
        own.scan.limit = request.scan.limit.filter(|_| request.scan.predicate.is_none());
        let converter = Arc::new(Converter {
            conversions: self.conversions.clone(),
            output: self.output(&request.decode),
        });
        Ok(Box::new(ConvertingPlan { plan: self.file.plan(&own, split)?, converter }))
    }

    fn proposal(&self) -> Result<Option<Value>> {
        self.file.proposal()
    }

    fn statistics(&self) -> Result<Value> {
        self.file.statistics()
    }

    fn lengths(&self, tick: &mut dyn FnMut(u64) -> Result<()>) -> Result<Value> {
        self.file.lengths(tick)
    }

    fn dictionaries(&self, column: &str, with: &mut dyn FnMut(StoredDictionary) -> Result<()>) -> Result<()> {
        self.file.dictionaries(column, with)
    }

    /// None: the file's extremes are those of its own values, before the conversion.
    fn split_statistics(&self, _: &Split) -> Result<Value> {
        Ok(Value::Null)
    }

    fn column_summaries(&self, split: &Split) -> Result<Vec<Vec<ColumnSummary>>> {
        let mut units = self.file.column_summaries(split)?;
        for unit in &mut units {
            unit.retain(|column| !self.conversions.contains_key(&column.name));
        }
        Ok(units)
    }

    fn extremes(&self, split: &Split, columns: &[String], by_unit: bool) -> Result<Option<Vec<Extremes>>> {
        let converted: Vec<Option<&Conversion>> =
            columns.iter().map(|name| self.conversions.get(name)).collect();
        // A value that does not fit is null: then the number of values is known only from the rows.
        if !converted.iter().flatten().all(|conversion| conversion.keeps_filters()) {
            return Ok(None);
        }
        let Some(mut units) = self.file.extremes(split, columns, by_unit)? else { return Ok(None) };
        for unit in &mut units {
            for (ColumnExtremes { ends, .. }, conversion) in unit.columns.iter_mut().zip(&converted) {
                if let (Some(own), Some(conversion)) = (ends.as_ref(), conversion) {
                    *ends = Some(conversion.convert(own)?);
                }
            }
        }
        Ok(Some(units))
    }

    fn inspect(&self) -> Result<Node> {
        self.file.inspect()
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        self.file.verify_structure()
    }

    fn proof(&self) -> Proof {
        self.file.proof()
    }

    /// The file itself: methods that only its format has return unconverted values.
    fn as_any(&self) -> &dyn Any {
        self.file.as_any()
    }
}

impl Evolved {
    /// The columns of converted batches: whole columns where they are converted.
    fn output(&self, decode: &SchemaRef) -> SchemaRef {
        let whole = |field: &FieldRef| {
            let whole = self.schema.fields().iter().find(|whole| whole.name() == field.name());
            whole.filter(|_| self.conversions.contains_key(field.name())).unwrap_or(field).clone()
        };
        let fields: Vec<FieldRef> = decode.fields().iter().map(whole).collect();
        Arc::new(Schema::new_with_metadata(fields, decode.metadata().clone()))
    }
}

/// Converts the batches of a scan.
struct Converter {
    conversions: Arc<Conversions>,
    output: SchemaRef,
}

impl Converter {
    fn convert(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let converted = |(array, field): (&ArrayRef, &FieldRef)| {
            let Some(conversion) = self.conversions.get(field.name()) else { return Ok(array.clone()) };
            let named = |e: Error| e.within(format!("column {}", field.name()));
            let made = conversion.convert(array).map_err(named)?;
            if made.data_type() == field.data_type() {
                return Ok(made);
            }
            cast(&made, field.data_type()).map_err(arrow_error).map_err(named)
        };
        let columns =
            batch.columns().iter().zip(self.output.fields()).map(converted).collect::<Result<Vec<_>>>()?;
        // A column may still have another layout than requested, such as strings that are no views.
        let fields = columns.iter().zip(self.output.fields());
        let fields: Vec<FieldRef> = fields
            .map(|(array, field)| Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone())))
            .collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, self.output.metadata().clone()));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(arrow_error)
    }
}

struct ConvertingPlan {
    plan: Box<dyn Plan>,
    converter: Arc<Converter>,
}

impl Plan for ConvertingPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        let unit = self.plan.next_unit()?;
        Ok(unit.map(|unit| {
            let decode = Box::new(ConvertingUnit { decode: unit.decode, converter: self.converter.clone() });
            Unit { decode, ..unit }
        }))
    }

    fn pruned(&self) -> u64 {
        self.plan.pruned()
    }
}

struct ConvertingUnit {
    decode: Box<dyn DecodeUnit>,
    converter: Arc<Converter>,
}

impl DecodeUnit for ConvertingUnit {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let Self { decode, converter } = *self;
        let batches = decode.decode(bytes)?;
        Ok(Box::new(batches.map(move |batch| converter.convert(&batch?))))
    }
}
