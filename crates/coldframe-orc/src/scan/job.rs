//! Defines the input of the decoder: the columns of a scan, and for each stripe its runs of rows and the
//! parts of streams that they need.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use bytes::Bytes;
use coldframe_core::{DamageLog, Error, OnError, PlanRequest, Result};

use crate::layout::index::{Positions, is_dictionary};
use crate::layout::proto::{self, ColumnStatistics};
use crate::layout::stripe::{StreamKind, Stripe, StripeLayout};
use crate::layout::types::Kind;
use crate::open::Shape;

/// State shared by all stripes of a scan.
#[derive(Clone)]
pub(crate) struct ScanShared {
    /// The open file.
    pub(crate) shape: Arc<Shape>,
    /// The columns to decode, with their fields.
    pub(crate) columns: Vec<(usize, FieldRef)>,
    /// The schema of these columns, followed by the row numbers if requested.
    pub(crate) schema: SchemaRef,
    /// All columns whose streams are needed.
    pub(crate) needed: Vec<usize>,
    /// Maximum rows of a batch.
    pub(crate) batch_rows: usize,
    /// Maximum rows of any batch, by the bytes of a row.
    pub(crate) most_rows: usize,
    /// Maximum number of threads.
    pub(crate) threads: usize,
    /// What to do about damage.
    pub(crate) on_error: OnError,
    /// Whether only doubtful rows are returned.
    pub(crate) doubtful: bool,
    /// Records damage.
    pub(crate) damage: DamageLog,
}

impl ScanShared {
    /// Prepares the scan of a request.
    pub(crate) fn new(shape: Arc<Shape>, request: &PlanRequest) -> Result<Self> {
        let mut columns = Vec::with_capacity(request.decode.fields().len());
        let mut needed = Vec::new();
        if let Some(root) = shape.tree.root() {
            let numbers = shape.options.row_numbers.as_ref();
            let decode = request.decode.fields().iter();
            let stored = decode.filter(|field| Some(field.name()) != numbers);
            if root.kind == Kind::Struct {
                needed.push(root.id);
                let mut rest = root.children.iter().zip(&root.field_names);
                for field in stored.filter(|_| !root.children.is_empty()) {
                    let child = rest.find(|(_, name)| *name == field.name());
                    let (id, _) =
                        child.ok_or_else(|| Error::schema(format!("no column `{}`", field.name())))?;
                    columns.push((*id, field.clone()));
                }
            } else {
                columns.extend(stored.map(|field| (root.id, field.clone())));
            }
        }
        add_all(&shape, &columns, &mut needed)?;
        let tree = &shape.tree;
        let row = |id: &usize| tree.get(*id).filter(|c| !c.repeated).map_or(0, |c| c.kind.bytes());
        let row = needed.iter().map(row).fold(1, u64::saturating_add);
        let most = usize::try_from(shape.options.limits.batch_bytes() / row).unwrap_or(usize::MAX);
        Ok(Self {
            columns,
            schema: request.decode.clone(),
            needed,
            // Use fewer rows if the fixed-width values alone would exceed a batch's size.
            batch_rows: request.scan.batch_rows.min(most).max(1),
            most_rows: most.max(1),
            threads: request.scan.threads,
            on_error: request.scan.on_error,
            doubtful: request.scan.doubtful,
            damage: request.damage.clone(),
            shape,
        })
    }
}

impl ScanShared {
    /// The scan of some of its columns.
    pub(crate) fn only(&self, columns: Vec<(usize, FieldRef)>, schema: SchemaRef) -> Result<Self> {
        let root = self.shape.tree.root().filter(|root| root.kind == Kind::Struct);
        let mut needed: Vec<usize> = root.into_iter().map(|root| root.id).collect();
        add_all(&self.shape, &columns, &mut needed)?;
        Ok(Self { columns, schema, needed, ..self.clone() })
    }
}

/// Testing a dictionary's entries instead of rows pays off with at most one entry for this many rows of a
/// batch: each batch tests all entries.
const ROWS_OF_ENTRY: usize = 2;

impl ScanShared {
    /// The scan for a stripe whose strings are only tested, of which about `rows` rows are tested together. Strings
    /// with a small dictionary are decoded to an Arrow dictionary, without a copy of the value for each row. Its
    /// batches are large, since each tests all entries. `None` if there are no such columns.
    pub(crate) fn keyed(&self, layout: &StripeLayout, rows: usize) -> Option<Self> {
        let rows = rows.min(self.most_rows);
        let most = rows / ROWS_OF_ENTRY;
        let is_keyed = |(id, field): &(usize, FieldRef)| {
            let encoding = layout.encoding(*id);
            let is_small = usize::try_from(encoding.dictionary_size()).is_ok_and(|size| size <= most);
            *field.data_type() == DataType::Utf8 && is_dictionary(&encoding) && is_small
        };
        if !self.columns.iter().any(is_keyed) {
            return None;
        }
        let kind = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let keyed = |column: &(usize, FieldRef)| match is_keyed(column) {
            true => (column.0, Arc::new(Field::clone(&column.1).with_data_type(kind.clone()))),
            false => column.clone(),
        };
        let columns: Vec<(usize, FieldRef)> = self.columns.iter().map(keyed).collect();
        let numbers = self.schema.fields().iter().skip(columns.len());
        let fields: Fields = columns.iter().map(|(_, field)| field).chain(numbers).cloned().collect();
        let (schema, batch_rows) = (Arc::new(Schema::new(fields)), self.batch_rows.max(rows));
        Some(Self { columns, schema, batch_rows, ..self.clone() })
    }
}

/// Adds the ids of columns and of the nested columns that their fields have.
fn add_all(shape: &Shape, columns: &[(usize, FieldRef)], needed: &mut Vec<usize>) -> Result<()> {
    columns.iter().try_for_each(|(id, field)| add_needed(shape, *id, field.data_type(), needed))
}

/// Adds `id` and the nested columns that `data_type` has.
fn add_needed(shape: &Shape, id: usize, data_type: &DataType, needed: &mut Vec<usize>) -> Result<()> {
    let Some(column) = shape.tree.get(id) else {
        return Err(Error::corrupt(format!("expected a type {id}, found none")));
    };
    needed.push(id);
    let child = |place: usize| column.children.get(place).copied().unwrap_or(usize::MAX);
    match data_type {
        DataType::Struct(fields) => {
            let mut rest = column.children.iter().zip(&column.field_names);
            for field in fields {
                let child = rest.find(|(_, name)| *name == field.name());
                let (id, _) = child.ok_or_else(|| Error::schema(format!("no column `{}`", field.name())))?;
                add_needed(shape, *id, field.data_type(), needed)?;
            }
            Ok(())
        }
        DataType::List(item) => add_needed(shape, child(0), item.data_type(), needed),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => fields
                .iter()
                .enumerate()
                .try_for_each(|(i, f)| add_needed(shape, child(i), f.data_type(), needed)),
            _ => Ok(()),
        },
        DataType::Union(fields, _) => fields
            .iter()
            .enumerate()
            .try_for_each(|(i, (_, f))| add_needed(shape, child(i), f.data_type(), needed)),
        _ => Ok(()),
    }
}

/// Consecutive rows of a stripe: whole row groups, or the first rows of the stripe.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Which rows of the stripe are decoded.
    pub(crate) rows: Range<u64>,
    /// The position of the first row; `None` for the stripe's start.
    pub(crate) positions: Option<Arc<Positions>>,
    /// Which of these rows are returned.
    pub(crate) wanted: Range<u64>,
    /// If a filter has been tested: which of these rows passed, the only ones to return; `None` for all.
    pub(crate) kept: Option<BooleanBuffer>,
}

impl Run {
    /// Rows that are all returned.
    pub(crate) fn new(rows: Range<u64>, positions: Option<Arc<Positions>>) -> Self {
        Self { wanted: rows.clone(), rows, positions, kept: None }
    }
}

/// A stripe, and the parts of it to read.
#[derive(Clone)]
pub(crate) struct StripeJob {
    /// The stripe.
    pub(crate) stripe: Stripe,
    /// Its footer.
    pub(crate) layout: StripeLayout,
    /// The runs of rows to decode.
    pub(crate) runs: VecDeque<Run>,
    /// The rows to decode as single row groups, if a scout may exclude some of them.
    pub(crate) candidates: VecDeque<Run>,
    /// The positions and statistics of its row groups; `None` if the stripe is read from its start without them, and
    /// until [`super::decode::StripeBatches::locate`] reads them.
    pub(crate) groups: Option<Arc<Groups>>,
    /// The same for a scout's columns.
    pub(crate) of_scout: Option<Arc<Groups>>,
    /// Parts of streams to fetch with the unit.
    pub(crate) parts: Vec<PartPlan>,
    /// The streams that are read when a row group needs them; `None` if all are fetched.
    pub(crate) deferred: Option<DeferredStreams>,
}

/// The row groups of a stripe, as [`super::groups`] reads them from footer and indexes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    /// In order; the first begins with the stripe.
    pub(crate) runs: Vec<Run>,
    /// For each column of the scan, whether the index states where the row groups begin in all of its streams.
    pub(crate) located: Vec<bool>,
    /// The statistics of each row group as stored, by column.
    pub(super) of_groups: HashMap<usize, Vec<Option<Bytes>>>,
    /// The statistics of the whole stripe as stored, by column.
    pub(super) of_stripe: HashMap<usize, Bytes>,
}

impl Groups {
    /// The statistics of a column in a row group. The only row group is the stripe.
    pub(crate) fn statistics(&self, column: usize, group: usize) -> Option<ColumnStatistics> {
        let of_group = self.of_groups.get(&column).and_then(|all| all.get(group)?.as_ref());
        match of_group {
            Some(stored) => proto::statistics(stored),
            None if self.runs.len() == 1 => self.of_stripe(column),
            None => None,
        }
    }

    /// The statistics of a column in the whole stripe.
    pub(crate) fn of_stripe(&self, column: usize) -> Option<ColumnStatistics> {
        self.of_stripe.get(&column).and_then(proto::statistics)
    }

    /// The number of the row group that holds a row.
    pub(crate) fn holding(&self, row: u64) -> usize {
        self.runs.partition_point(|group| group.rows.start <= row).saturating_sub(1)
    }

    /// Where a row group begins; `None` for the stripe's start.
    pub(crate) fn begin(&self, group: usize) -> Option<&Arc<Positions>> {
        self.runs.get(group).and_then(|run| run.positions.as_ref())
    }
}

/// Streams that are read only for row groups with a row that passes the filter.
#[derive(Clone)]
pub(crate) struct DeferredStreams {
    /// Their columns.
    pub(crate) columns: Vec<usize>,
    /// The largest parts that may be read.
    pub(crate) parts: Vec<PartPlan>,
}

/// Part of a stream to fetch.
#[derive(Clone, Debug)]
pub(crate) struct PartPlan {
    /// The column of the stream.
    pub(crate) column: usize,
    /// The kind of the stream.
    pub(crate) kind: StreamKind,
    /// The offset of the part in the stream.
    pub(crate) start: u64,
    /// Whether the part is the whole stream, which every row group needs.
    pub(crate) whole: bool,
    /// The bytes of the part in the file.
    pub(crate) bytes: Range<u64>,
}

/// Stored bytes of each column to decode, including nested columns.
pub(crate) fn stored_bytes(scan: &ScanShared, job: &StripeJob) -> Vec<u64> {
    let tree = &scan.shape.tree;
    // Sums over the columns up to each one: the bytes of a column are the difference of two sums.
    let mut sums = vec![0u64; tree.columns().len() + 1];
    for part in job.parts.iter().chain(job.deferred.iter().flat_map(|deferred| &deferred.parts)) {
        if let Some(sum) = sums.get_mut(part.column + 1) {
            *sum += part.bytes.end - part.bytes.start;
        }
    }
    let mut all = 0u64;
    for sum in &mut sums {
        all = all.saturating_add(*sum);
        *sum = all;
    }
    let before = |id: usize| sums.get(id).copied().unwrap_or(all);
    let end = |id: usize| tree.get(id).map_or(id, |column| column.end);
    scan.columns.iter().map(|(id, _)| before(end(*id)).saturating_sub(before(*id))).collect()
}
