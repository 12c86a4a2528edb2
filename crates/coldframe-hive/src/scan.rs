//! The units of one file of an ACID table: read with the identity columns, returned without them.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StructArray, new_null_array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use coldframe_core::filter::keep_rows;
use coldframe_core::{
    BatchIter, Damage, DamageLog, DecodeUnit, Error, OnError, Plan, PlanRequest, Predicate, Result, Scan,
    Split, Unit, arrow_error,
};

use crate::events::{Events, IDENTITY};
use crate::part::OpenFile;

/// How the rows of a file are identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// By the identity columns, in ACID files.
    Identified,
    /// By number, for plain files.
    Counted {
        /// The number of the next unit's first row.
        next: i64,
    },
    /// Not at all, because no event refers to any of the rows.
    AllLive,
}

/// Plans one file's units.
pub(crate) struct AcidPlan {
    inner: Box<dyn Plan>,
    context: Arc<Shared>,
    /// For [`Rows::Counted`]: the number of the next unit's first row.
    next: i64,
    /// Where the split ends.
    end: u64,
}

/// State shared by all units of the file.
struct Shared {
    /// The columns to return.
    schema: SchemaRef,
    events: Arc<Events>,
    rows: Rows,
    write_id: i64,
    bucket: i32,
    statement: i32,
    /// Whether lost events may concern all rows of a plain file.
    in_doubt: bool,
    on_error: OnError,
    damage: DamageLog,
    path: String,
}

impl AcidPlan {
    /// Plans `split` of `part`. `numbered`: whether the row numbers of a plain file are known.
    pub(crate) fn new(
        part: &OpenFile,
        split: &Split,
        request: &PlanRequest,
        events: Arc<Events>,
        (rows, numbered): (Rows, bool),
    ) -> Result<Self> {
        let inner_schema = match rows {
            Rows::Identified => identified(part, &request.decode),
            Rows::Counted { .. } | Rows::AllLive => plain(part, &request.decode),
        };
        let predicate = request.scan.predicate.clone();
        let (predicate, on_error) = match rows {
            Rows::Identified => (predicate.map(below_row), request.scan.on_error),
            // To count the rows, all of them are needed, so no damage may be skipped.
            Rows::Counted { .. } => (None, OnError::Raise),
            Rows::AllLive => (predicate, request.scan.on_error),
        };
        let has_all = predicate.as_ref().is_none_or(|p| has_columns(part, p));
        let inner_request = PlanRequest {
            scan: Scan {
                columns: None,
                // The filter is used for pruning only if the file has all of its columns, since a missing
                // column is null in all rows.
                predicate: predicate.filter(|_| has_all),
                limit: None,
                batch_rows: request.scan.batch_rows,
                on_error,
                doubtful: false,
                prune: request.scan.prune,
                threads: request.scan.threads,
                strings: None,
            },
            decode: Arc::new(Schema::new(inner_schema)),
            damage: request.damage.within(&part.data.path),
        };
        let (write, bucket) = (part.data.write_id, part.data.bucket);
        let in_doubt = rows != Rows::Identified && (!numbered || events.is_in_doubt(write, bucket));
        let next = if let Rows::Counted { next } = rows { next } else { 0 };
        let context = Shared {
            schema: request.decode.clone(),
            events,
            rows,
            write_id: part.data.write_id,
            bucket: part.data.bucket,
            statement: part.data.statement,
            in_doubt,
            on_error: request.scan.on_error,
            damage: request.damage.clone(),
            path: part.data.path.clone(),
        };
        let inner_split = Split { part: 0, range: split.range.clone(), rows: None };
        Ok(Self {
            inner: part.file.plan(&inner_request, &inner_split)?,
            context: Arc::new(context),
            next,
            end: split.range.end,
        })
    }
}

/// The columns to read from an ACID file: the identity columns, and the requested fields of `row`.
fn identified(part: &OpenFile, wanted: &SchemaRef) -> Vec<Field> {
    let schema = part.file.schema();
    let mut fields: Vec<Field> =
        IDENTITY.iter().filter_map(|name| schema.field_with_name(name).ok().cloned()).collect();
    if let Ok(row) = schema.field_with_name("row")
        && let DataType::Struct(own) = row.data_type()
    {
        let kept: Fields = own.iter().filter_map(|f| wanted_field(f, wanted)).collect();
        if !kept.is_empty() {
            fields.push(row.clone().with_data_type(DataType::Struct(kept)));
        }
    }
    fields
}

fn plain(part: &OpenFile, wanted: &SchemaRef) -> Vec<Field> {
    let own = part.file.schema().fields();
    own.iter().filter_map(|f| wanted_field(f, wanted)).collect()
}

/// The file's field with only the requested children.
fn wanted_field(own: &Field, wanted: &SchemaRef) -> Option<Field> {
    let (_, field) = wanted.column_with_name(own.name())?;
    Some(own.clone().with_data_type(field.data_type().clone()))
}

/// The filter with its columns renamed to children of `row`.
fn below_row(predicate: Predicate) -> Predicate {
    predicate.rename(&|column| format!("row.{column}"))
}

/// Whether the file has every column of the filter.
fn has_columns(part: &OpenFile, predicate: &Predicate) -> bool {
    let mut columns = Vec::new();
    predicate.columns(&mut columns);
    columns.iter().all(|c| {
        coldframe_core::Projection::resolve(part.file.schema(), Some(&[(*c).to_owned()]), &[]).is_ok()
    })
}

impl Plan for AcidPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        let next = self.numbered_unit();
        let (unit, first, expected) = match next.map_err(|e| self.context.on_error.weigh(e)) {
            Ok(Some(unit)) => unit,
            Ok(None) => return Ok(None),
            // Since the number of lost rows is unknown, it is also unknown which of the later rows are
            // deleted.
            Err(e) if self.context.on_error != OnError::Raise && e.is_damage() => {
                let from = e.offset().unwrap_or(self.end).min(self.end);
                let e = e.within(self.context.path.clone());
                self.context.damage.push(Damage::from_error(&e, from..self.end, None));
                return Ok(None);
            }
            Err(e) => return Err(e.in_file(self.context.path.clone())),
        };
        let structure = format!("{}: {}", self.context.path, unit.structure);
        let (inner, context, place) = (unit.decode, self.context.clone(), structure.clone());
        let decode = LiveRows { inner, context, first, expected, place };
        Ok(Some(Unit { decode: Box::new(decode), structure, ..unit }))
    }
}

impl AcidPlan {
    /// The next unit, the number of its first row, and its row count if rows are counted.
    fn numbered_unit(&mut self) -> Result<Option<(Unit, i64, Option<i64>)>> {
        let Some(unit) = self.inner.next_unit()? else { return Ok(None) };
        let first = self.next;
        if !matches!(self.context.rows, Rows::Counted { .. }) {
            return Ok(Some((unit, first, None)));
        }
        let rows = unit.rows.and_then(|n| i64::try_from(n).ok()).ok_or_else(|| {
            Error::unsupported("deletes of rows in a plain file whose stripes state no number of rows")
        })?;
        self.next = first
            .checked_add(rows)
            .ok_or_else(|| Error::corrupt("expected at most 2^63 rows, found more"))?;
        Ok(Some((unit, first, Some(rows))))
    }
}

struct LiveRows {
    inner: Box<dyn DecodeUnit>,
    context: Arc<Shared>,
    first: i64,
    /// How many rows the unit must have, so that the row numbers after it are right.
    expected: Option<i64>,
    /// The unit's name in damage records.
    place: String,
}

impl DecodeUnit for LiveRows {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let Self { inner, context, first, expected, place } = *self;
        // A file whose rows are counted is read under `raise`; here the caller's `on_error` is applied to its
        // damage.
        let batches = inner.decode(bytes).map_err(|e| context.on_error.weigh(e))?;
        // The rows are counted as the consumer takes batches, possibly from several threads in turn.
        let seen = Arc::new(Mutex::new((0i64, 0u64)));
        let (total, shared) = (seen.clone(), context.clone());
        let lives = batches.map(move |batch| {
            let batch = batch.map_err(|e| context.on_error.weigh(e))?;
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let at = first.saturating_add(seen.0);
            seen.0 = seen.0.saturating_add(i64::try_from(batch.num_rows()).unwrap_or(i64::MAX));
            let (live, in_doubt) = context.live(&batch, at)?;
            seen.1 = seen.1.saturating_add(in_doubt);
            Ok(live)
        });
        let check = std::iter::once_with(move || {
            let (rows, in_doubt) = *total.lock().unwrap_or_else(PoisonError::into_inner);
            shared.record_doubt(in_doubt, &place);
            let differs = expected.filter(|e| *e != rows);
            differs.map(|e| Err(Error::corrupt(format!("expected {e} rows, found {rows}"))))
        });
        Ok(Box::new(lives.chain(check.flatten())))
    }
}

impl Shared {
    /// The live rows of a batch with the requested columns, and how many rows were dropped because they are in doubt.
    fn live(&self, batch: &RecordBatch, first: i64) -> Result<(RecordBatch, u64)> {
        let known = self.known(batch)?;
        let batch = known.as_ref().unwrap_or(batch);
        let keep: Option<BooleanArray> = match self.rows {
            Rows::Identified => Some(self.events.live(batch, self.statement)?),
            Rows::Counted { .. } => {
                let rows = batch.num_rows();
                Some(self.events.live_plain(self.write_id, self.bucket, self.statement, first, rows))
            }
            Rows::AllLive => None,
        };
        let live = keep.as_ref().map_or(batch.num_rows(), BooleanArray::true_count);
        let doubt = match self.rows {
            Rows::Identified => self.events.in_doubt(batch)?,
            _ => self.in_doubt.then(|| BooleanArray::from(vec![true; batch.num_rows()])),
        };
        let keep = match (keep, doubt) {
            (Some(keep), Some(doubt)) => Some(BooleanArray::from(keep.values() & &!doubt.values())),
            (None, Some(doubt)) => Some(BooleanArray::from(!doubt.values())),
            (keep, None) => keep,
        };
        let batch = self.own_columns(batch)?;
        let batch = match keep.filter(|k| k.true_count() < k.len()) {
            Some(keep) => keep_rows(&batch, keep.values().clone())?,
            None => batch,
        };
        let lost = live.saturating_sub(batch.num_rows());
        Ok((batch, lost as u64))
    }

    /// Records rows that were dropped because they are in doubt.
    fn record_doubt(&self, rows: u64, place: &str) {
        if rows > 0 {
            self.damage.push(Damage {
                bytes: 0..0,
                rows_lost: Some(rows),
                structure: place.to_owned(),
                reason: "expected readable events for these rows, found damaged files that may hold deletes or updates of them"
                    .to_owned(),
            });
        }
    }

    /// Drops rows whose identity was lost and became null, since it is unknown whether they were deleted.
    /// `None` if no identity was lost.
    fn known(&self, batch: &RecordBatch) -> Result<Option<RecordBatch>> {
        if self.rows != Rows::Identified || self.on_error != OnError::Null {
            return Ok(None);
        }
        let columns = IDENTITY.iter().filter_map(|name| batch.column_by_name(name));
        let nulls = columns.fold(None, |all, column| NullBuffer::union(all.as_ref(), column.nulls()));
        let Some(nulls) = nulls.filter(|n| n.null_count() > 0) else { return Ok(None) };
        self.damage.push(Damage {
            bytes: 0..0,
            rows_lost: Some(nulls.null_count() as u64),
            structure: format!("{}: identities of rows", self.path),
            reason:
                "expected the identity of each row, found it lost: whether the row was deleted is unknown"
                    .to_owned(),
        });
        let known = BooleanArray::new(nulls.into_inner(), None);
        filter_record_batch(batch, &known).map(Some).map_err(arrow_error)
    }

    fn own_columns(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let row = match self.rows {
            Rows::Identified => batch.column_by_name("row").and_then(|c| c.as_struct_opt()),
            _ => None,
        };
        let columns: Vec<ArrayRef> = self
            .schema
            .fields()
            .iter()
            .map(|field| {
                let column = match (self.rows, row) {
                    (Rows::Identified, Some(row)) => child(row, field.name()),
                    (Rows::Identified, None) => Ok(None),
                    _ => Ok(batch.column_by_name(field.name()).cloned()),
                };
                Ok(column?.unwrap_or_else(|| new_null_array(field.data_type(), batch.num_rows())))
            })
            .collect::<Result<_>>()?;
        // A file may return more children of a struct than were requested, so the types come from the arrays.
        let fields: Vec<Field> = self
            .schema
            .fields()
            .iter()
            .zip(&columns)
            .map(|(f, c)| f.as_ref().clone().with_data_type(c.data_type().clone()))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
            .map_err(arrow_error)
    }
}

/// A column from the struct `row`. A deleted row has no values, so its columns are null.
fn child(row: &StructArray, name: &str) -> Result<Option<ArrayRef>> {
    let Some(child) = row.column_by_name(name) else { return Ok(None) };
    let Some(outer) = row.nulls().filter(|n| n.null_count() > 0) else { return Ok(Some(child.clone())) };
    if matches!(child.data_type(), DataType::Union(..) | DataType::Null) {
        return Ok(Some(child.clone()));
    }
    let nulls = NullBuffer::union(Some(outer), child.nulls());
    let data = child.to_data().into_builder().nulls(nulls).build().map_err(arrow_error)?;
    Ok(Some(arrow_array::make_array(data)))
}
