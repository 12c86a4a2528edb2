//! Look-ups of rows by key: one row, many rows, and ranges in either direction.
//!
//! A look-up uses the bloom filter and the index of each store file of one region. Afterwards the region
//! stays open for later look-ups.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{BinaryArray, BooleanArray, RecordBatch, UInt64Array};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;
use bytes::Bytes;
use coldframe_core::{DamageLog, Error, Notice, OnError, Result, TableFile, arrow_error};
use coldframe_hfile::{CellSink, Plain, RowOrder, RowQuery};

use crate::open::{CellRequest, OpenTable};
use crate::options::{Options, View};
use crate::regions::alive::Region;
use crate::regions::files::OpenRegion;
use crate::scan::feed::Cells;
use crate::scan::merge::{Scanning, visible_cells};
use crate::scan::plan::{RegionPlan, Rows, each_batch};
use crate::splits;
use crate::wal::edits::{self, Edits};

/// Maximum rows of a batch of a look-up.
const BATCH_ROWS: usize = 65536;
/// Maximum number of regions that stay open.
const OPEN_REGIONS: usize = 64;

/// The open regions of earlier look-ups, by index.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    open: Mutex<BTreeMap<usize, Arc<HeldRegion>>>,
    /// What scans of ranges met.
    scans: DamageLog,
}

/// An open region and its unflushed edits.
#[derive(Debug)]
struct HeldRegion {
    region: OpenRegion,
    edits: Vec<Edits>,
}

impl Lookups {
    /// Takes what look-ups and scans of ranges met since the last call.
    pub(crate) fn take_notices(&self) -> Vec<Notice> {
        let mut notices = self.scans.take_notices();
        for held in self.open.lock().unwrap_or_else(PoisonError::into_inner).values() {
            for file in &held.region.files {
                notices.extend(file.hfile.take_notices().into_iter().map(|notice| match notice {
                    Notice::WrongIndex(text) => {
                        Notice::WrongIndex(format!("store file {}: {text}", file.path))
                    }
                    other => other,
                }));
            }
        }
        notices
    }

    /// The cells that `query` selects.
    pub(crate) fn scan(
        &self,
        table: &Arc<OpenTable>,
        schema: &SchemaRef,
        query: &RowQuery,
    ) -> Result<RowScan> {
        RowScan::new(table, schema, query, self.scans.clone())
    }

    /// The visible cells of a row.
    pub(crate) fn get(&self, table: &OpenTable, schema: &SchemaRef, row: &[u8]) -> Result<Vec<RecordBatch>> {
        self.get_many(table, schema, &[row.to_vec()])
    }

    /// The visible cells of several rows, each row once, in the order of the table.
    pub(crate) fn get_many(
        &self,
        table: &OpenTable,
        schema: &SchemaRef,
        rows: &[Vec<u8>],
    ) -> Result<Vec<RecordBatch>> {
        if let Some(e) = table.first_missing(OnError::Raise) {
            return Err(e);
        }
        let order = table.order();
        let mut sorted: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        sorted.sort_unstable_by(|a, b| order.compare(a, b));
        sorted.dedup();
        let mut batches = Vec::new();
        let mut rest = sorted.as_slice();
        while let Some(first) = rest.first() {
            let Some((place, region)) = region_of(table, first, order) else {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            };
            let ends = |row: &&[u8]| region.upper().is_none_or(|upper| order.compare(row, upper).is_lt());
            let own = rest.iter().take_while(|row| ends(row)).count().max(1);
            let (of_region, others) = rest.split_at_checked(own).unwrap_or((rest, &[]));
            let held = self.held(table, place, region)?;
            let scanning = table.scanning(CellRequest {
                columns: schema.clone(),
                on_error: OnError::Raise,
                damage: DamageLog::default(),
                batch_rows: BATCH_ROWS,
            });
            for batch in visible_cells(scanning, cells(&held, of_region, order)?)? {
                batches.push(batch?);
            }
            rest = others;
        }
        if batches.is_empty() {
            batches.push(RecordBatch::new_empty(schema.clone()));
        }
        Ok(batches)
    }

    fn held(&self, table: &OpenTable, place: usize, region: &Region) -> Result<Arc<HeldRegion>> {
        if let Some(held) = self.open.lock().unwrap_or_else(PoisonError::into_inner).get(&place) {
            return Ok(held.clone());
        }
        let source = table.source();
        let open = source.shared.open(region)?;
        if let Some(damaged) = open.damaged.first() {
            return Err(damaged.fault.to_error());
        }
        let edits = match &source.logs {
            Some(logs) => logs.edits(region, &open, table.order(), OnError::Raise)?.0,
            None => Vec::new(),
        };
        let held = Arc::new(HeldRegion { region: open, edits });
        let mut all = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= OPEN_REGIONS {
            all.pop_first();
        }
        all.insert(place, held.clone());
        Ok(held)
    }
}

/// The region to which a row belongs.
fn region_of<'f>(table: &'f OpenTable, row: &[u8], order: RowOrder) -> Option<(usize, &'f Region)> {
    let after = table.regions.partition_point(|r| order.compare(&r.start, row).is_le());
    let place = after.checked_sub(1)?;
    let region = table.regions.get(place)?;
    region.upper().is_none_or(|upper| order.compare(row, upper).is_lt()).then_some((place, region))
}

/// The cells of several rows, which are sorted, file by file.
fn cells(held: &HeldRegion, rows: &[&[u8]], order: RowOrder) -> Result<Vec<Cells>> {
    let mut all = Vec::with_capacity(held.region.files.len());
    for file in &held.region.files {
        let mut plain = Plain::new(edits::LAYOUT);
        for row in rows {
            let before = order.compare(row, &file.lower).is_lt();
            if before || file.upper.as_ref().is_some_and(|upper| order.compare(row, upper).is_ge()) {
                continue;
            }
            file.hfile.find(row, |cell| plain.cell(cell)).map_err(|e| file.named(e))?;
        }
        if !plain.bytes.is_empty() {
            all.push(Cells::from_look_up(file, Bytes::from(plain.bytes)));
        }
    }
    for edits in &held.edits {
        let of_row = |row: &[u8]| edits.of_rows(order, row, Some(&[row, &[0]].concat()));
        let cells = rows.iter().map(|row| of_row(row)).collect::<Vec<_>>().concat();
        if !cells.is_empty() {
            all.push(Cells::edits(edits.family, Bytes::from(cells)));
        }
    }
    Ok(all)
}

/// A scan of a range of rows.
pub struct RowScan {
    table: Arc<OpenTable>,
    scanning: Arc<Scanning>,
    families: Vec<bool>,
    /// Families, or families with qualifiers; empty means all.
    columns: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    reverse: bool,
    /// The parts that remain to be read, in that order.
    parts: VecDeque<(Arc<Region>, Rows)>,
    ready: VecDeque<RecordBatch>,
}

impl std::fmt::Debug for RowScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowScan").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl RowScan {
    fn new(table: &Arc<OpenTable>, schema: &SchemaRef, query: &RowQuery, damage: DamageLog) -> Result<Self> {
        if let Some(e) = table.first_missing(OnError::Raise) {
            return Err(e);
        }
        let mut options: Options = table.options.clone();
        if let Some(max_versions) = query.max_versions {
            if options.view == View::Pivot && max_versions != 1 {
                return Err(Error::invalid("`max_versions`: a wide table has one version"));
            }
            if options.view != View::Pivot {
                options.versions = max_versions;
                if options.view == View::Latest {
                    options.view = View::Versions;
                }
            }
        }
        options.time_range = query.time_range.or(options.time_range);
        if options.view == View::Pivot && !query.columns.is_empty() {
            return Err(Error::invalid(
                "`columns`: a wide table has the columns of the option `columns` of `open`",
            ));
        }
        let request = CellRequest {
            columns: schema.clone(),
            on_error: OnError::Raise,
            damage,
            batch_rows: query.batch_rows.max(1),
        };
        let column = |name: &String| match name.split_once(':') {
            Some((family, qualifier)) => (family.as_bytes().to_vec(), Some(qualifier.as_bytes().to_vec())),
            None => (name.as_bytes().to_vec(), None),
        };
        let columns: Vec<_> = query.columns.iter().map(column).collect();
        let is_requested =
            |name: &str| columns.is_empty() || columns.iter().any(|(family, _)| family == name.as_bytes());
        Ok(Self {
            scanning: table.scanning_by(&options, request),
            families: table.shared.families.iter().map(|f| is_requested(&f.name)).collect(),
            parts: parts(table, query)?,
            reverse: query.reverse,
            columns,
            ready: VecDeque::new(),
            table: table.clone(),
        })
    }

    /// The columns of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.scanning.columns
    }

    fn read(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            let Some((region, rows)) = self.parts.pop_front() else { return Ok(None) };
            let mut plan = RegionPlan::new(
                self.table.source(),
                region,
                self.scanning.clone(),
                self.families.clone(),
                rows,
            );
            let columns = &self.columns;
            let mut batches = Vec::new();
            each_batch(&mut plan, |batch| {
                let batch = of_columns(batch, columns)?;
                if batch.num_rows() > 0 {
                    batches.push(batch);
                }
                Ok(())
            })?;
            if self.reverse {
                batches = backward(&batches, self.scanning.wide.is_some())?;
            }
            self.ready.extend(batches);
        }
    }
}

impl Iterator for RowScan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.read().transpose();
        if matches!(batch, Some(Err(_))) {
            self.parts.clear();
        }
        batch
    }
}

/// The parts of regions in a range of rows. The parts are small, because a scan holds a whole part in memory.
fn parts(table: &OpenTable, query: &RowQuery) -> Result<VecDeque<(Arc<Region>, Rows)>> {
    let order = table.order();
    let (mut start, mut stop) = (query.start.clone().unwrap_or_default(), query.stop.clone());
    if let Some(prefix) = &query.prefix {
        start = start.max(prefix.clone());
        let end = coldframe_hfile::successor(prefix);
        stop = match (stop, end) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    let mut parts = VecDeque::new();
    for region in &table.regions {
        let outside = stop.as_ref().is_some_and(|stop| order.compare(&region.start, stop).is_ge())
            || region.upper().is_some_and(|upper| order.compare(upper, &start).is_le());
        if outside {
            continue;
        }
        let mut lower = region.start.clone();
        if order.compare(&start, &lower).is_gt() {
            lower.clone_from(&start);
        }
        let mut upper = region.upper().map(<[u8]>::to_vec);
        if let Some(stop) = &stop
            && upper.as_ref().is_none_or(|upper| order.compare(stop, upper).is_lt())
        {
            upper = Some(stop.clone());
        }
        for row in splits::fine_cuts(&table.shared, region)? {
            let inside = order.compare(&row, &lower).is_gt()
                && upper.as_ref().is_none_or(|upper| order.compare(&row, upper).is_lt());
            if inside {
                let lower = std::mem::replace(&mut lower, row.clone());
                parts.push_back((region.clone(), Rows { lower, upper: Some(row), first: false }));
            }
        }
        parts.push_back((region.clone(), Rows { lower, upper, first: false }));
    }
    if query.reverse {
        parts = parts.into_iter().rev().collect();
    }
    Ok(parts)
}

fn bytes_of(batch: &RecordBatch, name: &str) -> Result<BinaryArray> {
    let missing = || Error::schema(format!("expected the column `{name}`"));
    let column = batch.column_by_name(name).ok_or_else(missing)?;
    let plain = arrow_cast::cast(column, &DataType::Binary).map_err(arrow_error)?;
    plain.as_binary_opt().cloned().ok_or_else(missing)
}

/// Keeps only the cells of the given columns.
fn of_columns(batch: RecordBatch, columns: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<RecordBatch> {
    if columns.iter().all(|(_, qualifier)| qualifier.is_none()) {
        return Ok(batch); // the families were filtered before
    }
    let (families, qualifiers) = (bytes_of(&batch, "family")?, bytes_of(&batch, "qualifier")?);
    let is_requested = |i: usize| {
        let named = |(family, qualifier): &(Vec<u8>, Option<Vec<u8>>)| {
            family == families.value(i) && qualifier.as_ref().is_none_or(|q| q == qualifiers.value(i))
        };
        Some(columns.iter().any(named))
    };
    let kept: BooleanArray = (0..batch.num_rows()).map(is_requested).collect();
    filter_record_batch(&batch, &kept).map_err(arrow_error)
}

/// The rows of the batches in reverse order; the cells of each row stay in their order. `wide`: whether each
/// row is a single record.
fn backward(batches: &[RecordBatch], wide: bool) -> Result<Vec<RecordBatch>> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let all = arrow_select::concat::concat_batches(first.schema_ref(), batches).map_err(arrow_error)?;
    let rows = if wide { None } else { Some(bytes_of(&all, "row")?) };
    let mut order: Vec<u64> = Vec::with_capacity(all.num_rows());
    let mut end = all.num_rows();
    while end > 0 {
        let mut start = end - 1;
        while let Some(rows) = &rows
            && start > 0
            && rows.value(start - 1) == rows.value(start)
        {
            start -= 1;
        }
        order.extend(start as u64..end as u64);
        end = start;
    }
    let taken = take_record_batch(&all, &UInt64Array::from(order)).map_err(arrow_error)?;
    Ok(vec![taken])
}
