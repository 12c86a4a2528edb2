//! Reads one file group: its base file alone, or merged with its logs.
//!
//! A group without logs has the units of its base file. With logs it is one unit, because each record of the logs may
//! change any row.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use arrow_select::interleave::interleave;
use bytes::Bytes;
use coldframe_core::{BatchIter, DecodeUnit, Error, ErrorContext, Fetch, Plan, Result, Unit, arrow_error};

use crate::data::conform::conform_batch;
use crate::data::files::Named;
use crate::data::history::History;
use crate::data::logs::LogContext;
use crate::data::merged::{Cells, Merged, OLDER, Outcome};
use crate::data::table_schema::COMMIT_TIME;

/// The last steps for merged rows before they are returned.
pub(crate) struct Finish {
    /// The columns to return.
    pub decode: SchemaRef,
    /// If the view shows only some instants: whether it shows the rows of an instant.
    pub instants: Option<Counts>,
    /// Columns that have one value in the whole group.
    pub constants: Vec<(String, ArrayRef)>,
}

impl Finish {
    fn apply(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = match &self.instants {
            None => batch,
            Some(instants) => written_by(batch, instants)?,
        };
        let columns = self.decode.fields().iter().map(|field| {
            if let Some((_, value)) = self.constants.iter().find(|(name, _)| name == field.name()) {
                let places = arrow_array::UInt32Array::from(vec![0; batch.num_rows()]);
                return arrow_select::take::take(value, &places, None).map_err(arrow_error);
            }
            let column = batch.column_by_name(field.name());
            column
                .cloned()
                .ok_or_else(|| Error::schema(format!("a decoded batch lacks the column `{}`", field.name())))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let fields = self.decode.fields().iter().zip(&columns);
        let fields = fields.map(|(f, c)| f.as_ref().clone().with_data_type(c.data_type().clone()));
        let schema = Arc::new(arrow_schema::Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(arrow_error)
    }
}

/// The rows that some instants wrote.
fn written_by(batch: RecordBatch, instants: &Counts) -> Result<RecordBatch> {
    let times = batch.column_by_name(COMMIT_TIME).and_then(|c| c.as_string_opt::<i32>());
    let times = times.ok_or_else(|| Error::schema("a decoded batch lacks the instants of its rows"))?;
    let keep: BooleanArray = times.iter().map(|time| Some(time.is_some_and(|time| instants(time)))).collect();
    filter_record_batch(&batch, &keep).map_err(arrow_error)
}

/// How the columns of a base file become those of the table.
pub(crate) struct Aligned {
    /// The columns that are decoded.
    pub schema: SchemaRef,
    /// Their names in older files.
    pub history: Arc<History>,
    /// The instant that wrote the file.
    pub instant: String,
    /// If only the rows of some instants are merged: whether those of an instant are.
    pub instants: Option<Counts>,
}

impl Aligned {
    /// The names of the columns in the file.
    pub(crate) fn names(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.filter_map(|f| self.history.name_in(f.name(), &self.instant)).collect()
    }

    fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let name_in = |name: &str| self.history.name_in(name, &self.instant);
        let batch = conform_batch(batch, &self.schema, &name_in)?;
        match &self.instants {
            Some(instants) => written_by(batch, instants),
            None => Ok(batch),
        }
    }
}

/// Units that are known.
#[derive(Default)]
pub(crate) struct SlicePlan {
    /// The units.
    pub units: VecDeque<Unit>,
    /// The number of units that pruning left out.
    pub pruned: u64,
}

impl Plan for SlicePlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        Ok(self.units.pop_front())
    }

    fn pruned(&self) -> u64 {
        self.pruned
    }
}

/// A unit that returns rows only after all of them were decoded: which rows of a damaged unit are saved must not
/// depend on the size of batches.
pub(crate) fn settled(unit: Unit) -> Unit {
    Unit { decode: Box::new(Settled(unit.decode)), ..unit }
}

struct Settled(Box<dyn DecodeUnit>);

impl DecodeUnit for Settled {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let batches = self.0.decode(bytes)?.collect::<Result<Vec<_>>>()?;
        Ok(Box::new(batches.into_iter().map(Ok)))
    }
}

/// A unit of a base file without logs.
pub(crate) fn plain_unit(unit: Unit, path: &str, aligned: Arc<Aligned>, finish: Arc<Finish>) -> Unit {
    let decode = Plain { inner: unit.decode, aligned, finish };
    Unit { structure: format!("{path}: {}", unit.structure), decode: Box::new(decode), ..unit }
}

struct Plain {
    inner: Box<dyn DecodeUnit>,
    aligned: Arc<Aligned>,
    finish: Arc<Finish>,
}

impl DecodeUnit for Plain {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let Self { inner, aligned, finish } = *self;
        let batches = inner.decode(bytes)?;
        Ok(Box::new(batches.map(move |batch| finish.apply(aligned.apply(&batch?)?))))
    }
}

/// Whether the blocks or the rows of an instant count.
pub(crate) type Counts = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A group with logs, and how it is decoded.
pub(crate) struct MergedUnit {
    /// How the logs are read.
    pub logs: Arc<LogContext>,
    /// The log files: source, length and path.
    pub files: Vec<(Fetch, String)>,
    /// Missing log files, and the commits whose blocks the logs must have.
    pub named: (Vec<Named>, Vec<Named>),
    /// The units of the base file, and its path.
    pub base: Option<(Vec<Unit>, String, Arc<Aligned>)>,
    /// Which blocks are valid.
    pub counts: Counts,
    /// What becomes of the rows.
    pub finish: Arc<Finish>,
    /// Maximum rows of a batch.
    pub batch_rows: usize,
}

/// The unit of a group with logs.
pub(crate) fn merged_unit(merged: MergedUnit, structure: String) -> Unit {
    let mut fetch: Vec<Fetch> = merged.files.iter().map(|(fetch, _)| fetch.clone()).collect();
    let mut end = fetch.iter().map(|f| f.range.end).fold(0, u64::max);
    if let Some((units, ..)) = &merged.base {
        fetch.extend(units.iter().flat_map(|unit| unit.fetch.iter().cloned()));
        end = units.iter().map(|unit| unit.bytes.end).fold(end, u64::max);
    }
    Unit { fetch, bytes: 0..end, rows: None, structure, decode: Box::new(merged) }
}

impl DecodeUnit for MergedUnit {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let Self { logs, files, named, base, counts, finish, batch_rows } = *self;
        let mut bytes = bytes.into_iter();
        let files: Vec<(Bytes, String)> =
            files.into_iter().map(|(_, path)| (bytes.next().unwrap_or_default(), path)).collect();
        let merged = logs.merged(&files, (&named.0, &named.1), &*counts)?;
        drop(files);
        let mut rows = MergedRows {
            units: VecDeque::new(),
            current: None,
            aligned: None,
            path: String::new(),
            logs,
            merged,
            rest: None,
            finish,
            batch_rows: batch_rows.max(1),
            is_done: false,
        };
        if let Some((units, path, aligned)) = base {
            (rows.path, rows.aligned) = (path, Some(aligned));
            for unit in units {
                let own = bytes.by_ref().take(unit.fetch.len()).collect();
                rows.units.push_back((unit, own));
            }
        }
        Ok(Box::new(rows))
    }
}

/// The rows of the base file, merged, then the records that it does not have.
struct MergedRows {
    units: VecDeque<(Unit, Vec<Bytes>)>,
    current: Option<BatchIter>,
    aligned: Option<Arc<Aligned>>,
    path: String,
    logs: Arc<LogContext>,
    merged: Merged,
    rest: Option<VecDeque<Cells>>,
    finish: Arc<Finish>,
    batch_rows: usize,
    is_done: bool,
}

impl Iterator for MergedRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let next = self.step();
        if !matches!(next, Ok(Some(_))) {
            self.is_done = true;
        }
        next.transpose()
    }
}

impl MergedRows {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.current.as_mut().and_then(Iterator::next) {
                let aligned = self.aligned.clone();
                let batch = match (batch.within(|| self.path.clone())?, aligned) {
                    (batch, Some(aligned)) => aligned.apply(&batch)?,
                    (batch, None) => batch,
                };
                let merged = merge_batch(&self.logs, &mut self.merged, batch)?;
                return self.finish.apply(merged).map(Some);
            }
            let Some((unit, bytes)) = self.units.pop_front() else { break };
            let place = format!("{}: {}", self.path, unit.structure);
            self.current = Some(unit.decode.decode(bytes).within(|| place)?);
        }
        let rest = self.rest.get_or_insert_with(|| self.merged.rest().into());
        let count = rest.len().min(self.batch_rows);
        if count == 0 {
            return Ok(None);
        }
        let cells: Vec<Cells> = rest.drain(..count).collect();
        let batch = gather(&self.merged.records, &cells)?;
        self.finish.apply(batch).map(Some)
    }
}

/// Replaces base rows by the merged records of their keys; drops those that are deleted.
fn merge_batch(logs: &LogContext, merged: &mut Merged, base: RecordBatch) -> Result<RecordBatch> {
    if merged.is_empty() {
        return Ok(base);
    }
    let keys = logs.keys.of(&base)?;
    let mut hits = Vec::new();
    for (row, key) in keys.iter().enumerate() {
        if let Some(place) = key.and_then(|key| merged.find(key.as_bytes())) {
            hits.push((row, place));
        }
    }
    if hits.is_empty() {
        return Ok(base);
    }
    let orders = logs.orders(&base)?;
    let mut hits = hits.into_iter().peekable();
    let mut rows: Vec<(usize, Option<Cells>)> = Vec::with_capacity(base.num_rows());
    for row in 0..base.num_rows() {
        let Some((_, place)) = hits.next_if(|(hit, _)| *hit == row) else {
            rows.push((row, None));
            continue;
        };
        let Some(order) = orders.get(row) else { continue };
        match merged.meet(place, order, &base, row) {
            Outcome::Base => rows.push((row, None)),
            Outcome::Cells(cells) => rows.push((row, Some(cells))),
            Outcome::Deleted => {}
        }
    }
    let records = &merged.records;
    let columns = base.columns().iter().enumerate().map(|(column, values)| {
        let own = records.column(column);
        let places = rows.iter().map(|(row, cells)| match cells.as_ref().map(|cells| cells.at(column)) {
            None | Some(OLDER) => (0, *row),
            Some(at) => (1, usize::try_from(at).unwrap_or(usize::MAX)),
        });
        let places: Vec<(usize, usize)> = places.collect();
        interleave(&[values.as_ref(), own.as_ref()], &places).map_err(arrow_error)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(base.schema(), columns, &options).map_err(arrow_error)
}

/// Records of the logs that no base row has.
fn gather(records: &RecordBatch, cells: &[Cells]) -> Result<RecordBatch> {
    let columns = records.columns().iter().enumerate().map(|(column, values)| {
        let null = new_null_array(values.data_type(), 1);
        let places = cells.iter().map(|cells| match cells.at(column) {
            OLDER => (1, 0),
            at => (0, usize::try_from(at).unwrap_or(usize::MAX)),
        });
        let places: Vec<(usize, usize)> = places.collect();
        interleave(&[values.as_ref(), null.as_ref()], &places).map_err(arrow_error)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(cells.len()));
    RecordBatch::try_new_with_options(records.schema(), columns, &options).map_err(arrow_error)
}
