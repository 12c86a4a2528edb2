//! Plans one split: a range of ordinals of a rowset, divided into units with a limited number of rows and
//! bytes.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, new_null_array};
use arrow_select::concat::concat;
use coldframe_cfile::prune::key::{KeyBounds, KeyColumn};
use coldframe_core::{
    Damage, Error, ErrorContext, Fault, Fetch, OnError, Plan, PlanRequest, Predicate, Result, Unit,
    arrow_error,
};

use super::decode::{ColumnInput, DecodeRows, DeltaInput};
use super::source::{DeltaFile, Source, column_source, delta_files};
use crate::prune::rows::key_rows;
use crate::rowset::{Reading, row_count};
use crate::schema::Column;
use crate::tablet::{RowSet, Tablet};
use crate::wal::{LogLoss, Replayed, TabletLog};

/// Maximum number of rows of a unit, small enough that its arrays stay in the processor's cache and their
/// memory is reused.
const UNIT_ROWS: u64 = 1 << 16;
/// If the batch size is less than this, units are no larger than a batch, since small batches are usually
/// requested because values are large.
const FEW_ROWS: u64 = 1 << 10;
/// Maximum stored bytes of a unit; a single row may take more.
const UNIT_BYTES: u64 = 8 << 20;

/// The units of one split.
pub(crate) struct RowSetPlan {
    tablet: Arc<Tablet>,
    rowset: RowSet,
    request: PlanRequest,
    reading: Reading,
    columns: Vec<Arc<Column>>,
    /// The columns of the primary key, with the names that the filter uses.
    key: Vec<Arc<Column>>,
    /// The ordinals of the split, which [`Self::start`] narrows.
    rows: Range<u64>,
    log: Arc<TabletLog>,
    opened: Option<OpenRowSet>,
}

struct OpenRowSet {
    log: Arc<Replayed>,
    sources: Vec<Source>,
    /// For each column, set if the filter excludes all values of its dictionary. See
    /// [`ColumnInput::excluded`].
    excluded: Vec<Option<Arc<Vec<bool>>>>,
    deltas: Arc<Vec<DeltaFile>>,
}

impl RowSetPlan {
    /// Plans the ordinals `rows` of a rowset. Reads nothing before the first unit is requested. `columns`:
    /// the columns to decode, in the order of the opened table. `key`: the columns of the primary key. The
    /// names of these columns are the table's names, since the tablet's own schema may be older and use other
    /// names.
    pub(crate) fn new(
        tablet: Arc<Tablet>,
        rowset: RowSet,
        (columns, key): (Vec<Arc<Column>>, Vec<Arc<Column>>),
        request: PlanRequest,
        reading: Reading,
        rows: Range<u64>,
        log: Arc<TabletLog>,
    ) -> Self {
        Self { tablet, rowset, request, reading, columns, key, rows, log, opened: None }
    }

    fn tolerant(&self) -> bool {
        self.request.scan.on_error != OnError::Raise
    }

    fn explain(&self, e: Error) -> Error {
        e.within(format!("rowset {}", self.rowset.id)).within(format!("tablet {}", self.tablet.id))
    }

    /// Opens the files that the split needs; `false` if no part of it can be read.
    fn start(&mut self) -> Result<bool> {
        let all = match row_count(&self.tablet, &self.rowset, &self.reading) {
            Ok(rows) => rows,
            Err(e) => return self.skip_rowset(e, None),
        };
        self.rows = self.rows.start.min(all)..self.rows.end.min(all);
        if let Some(predicate) = &self.request.scan.predicate {
            let key = self.key.iter();
            let key = key.map(|c| KeyColumn { name: &c.name, data_type: c.data_type, arrow: &c.arrow });
            let key: Vec<KeyColumn<'_>> = key.collect();
            let bounds = KeyBounds::new(predicate, &key);
            match key_rows(&self.tablet, &self.rowset, &bounds, self.rows.clone(), &self.reading) {
                Ok(rows) => self.rows = rows,
                // If the index cannot be read, nothing is pruned.
                Err(e) if Fault::is(&e) && self.tolerant() => {}
                Err(e) => return Err(e),
            }
        }
        if self.rows.is_empty() {
            return Ok(false);
        }
        let log = self.log.replayed()?;
        self.check_log(&log)?;
        let deltas = match delta_files(&self.tablet, &self.rowset, self.tolerant(), &self.reading) {
            Ok(deltas) => Arc::new(deltas),
            // If deltas are lost, the current values of all rows are unknown.
            Err(e) => return self.skip_rowset(e, Some(self.rows.end - self.rows.start)),
        };
        let mut sources = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let rows = (all, &self.rows);
            let source =
                column_source(&self.tablet, &self.rowset, column, rows, &self.request, &self.reading)?;
            let Some(source) = source else { return Ok(false) };
            sources.push(source);
        }
        let excluded =
            self.columns.iter().zip(&sources).map(|(column, source)| self.excluded(column, source));
        let excluded = excluded.collect::<Result<_>>()?;
        self.opened = Some(OpenRowSet { log, sources, excluded, deltas });
        Ok(true)
    }

    /// Under `raise`, it is an error if the state of rows is unknown because of a hole in the log.
    fn check_log(&self, log: &Replayed) -> Result<()> {
        let counts = |loss: &&LogLoss| {
            let known = self.reading.snapshot.is_some_and(|snapshot| loss.since >= snapshot);
            !known && loss.rows.start < self.rows.end && self.rows.start < loss.rows.end
        };
        let mut losses = log.lost_changes.get(&self.rowset.id).into_iter().flatten();
        match losses.find(counts).filter(|_| !self.tolerant()) {
            None => Ok(()),
            Some(loss) => Err(loss.to_error(&format!("ordinals {}..{}", self.rows.start, self.rows.end))),
        }
    }

    /// Set if the filter's conditions on this column alone exclude null and every value of the column's
    /// dictionary. Then it has a `false` for each of them, first for null.
    fn excluded(&self, column: &Column, source: &Source) -> Result<Option<Arc<Vec<bool>>>> {
        let (Some(predicate), Source::File { scan, .. }) = (&self.request.scan.predicate, source) else {
            return Ok(None);
        };
        let Some(dictionary) = &scan.context().dictionary else { return Ok(None) };
        let parts = if let Predicate::And(all) = predicate {
            all.as_slice()
        } else {
            std::slice::from_ref(predicate)
        };
        let own = |p: &&Predicate| {
            let mut names = Vec::new();
            p.columns(&mut names);
            !names.is_empty() && names.iter().all(|name| *name == column.name)
        };
        let own: Vec<Predicate> = parts.iter().filter(own).cloned().collect();
        let values = dictionary.values();
        if own.is_empty() || *values.data_type() != column.arrow {
            return Ok(None);
        }
        let null = new_null_array(values.data_type(), 1);
        let all = concat(&[null.as_ref(), values.as_ref()]).map_err(arrow_error)?;
        let batch = RecordBatch::try_from_iter_with_nullable([(column.name.as_str(), all, true)]);
        let passes = Predicate::And(own).evaluate(&batch.map_err(arrow_error)?)?;
        Ok((passes.true_count() == 0).then(|| Arc::new(vec![false; passes.len()])))
    }

    fn skip_rowset(&self, e: Error, rows: Option<u64>) -> Result<bool> {
        let e = self.request.scan.on_error.weigh(e);
        if !self.tolerant() || !e.is_damage() {
            return Err(e);
        }
        let range = &self.rows;
        let e = self.explain(e.within(format!("ordinals {}..{}", range.start, range.end)));
        let rows = rows.or(self.rowset.live_rows.filter(|_| range.start == 0));
        self.request.damage.push(Damage::from_error(&e, 0..0, rows));
        Ok(false)
    }

    /// The end of the unit that starts at `start`.
    fn unit_end(&self, opened: &OpenRowSet, start: u64) -> u64 {
        let batch = u64::try_from(self.request.scan.batch_rows).unwrap_or(u64::MAX);
        let mut rows = if batch < FEW_ROWS { batch.max(1) } else { UNIT_ROWS };
        loop {
            let end = start.saturating_add(rows).min(self.rows.end);
            if rows == 1 || stored_bytes(opened, start..end) <= UNIT_BYTES {
                return end;
            }
            rows /= 2;
        }
    }

    fn unit(&self, opened: &OpenRowSet, rows: Range<u64>) -> Result<Unit> {
        let mut fetch: Vec<Fetch> = Vec::new();
        let mut columns = Vec::with_capacity(self.columns.len());
        for ((column, source), excluded) in self.columns.iter().zip(&opened.sources).zip(&opened.excluded) {
            let from = fetch.len();
            if let Source::File { scan, .. } = source {
                fetch.extend(scan.part(rows.clone()).fetch());
            }
            columns.push(ColumnInput {
                column: column.clone(),
                source: source.clone(),
                fetched: from..fetch.len(),
                excluded: excluded.clone(),
            });
        }
        let mut deltas = Vec::new();
        for (file, delta) in opened.deltas.iter().enumerate() {
            let blocks = delta.part(&rows);
            let from = fetch.len();
            let source = delta.opened.file.source();
            let pointers = delta.blocks.get(blocks.clone()).unwrap_or_default();
            fetch.extend(pointers.iter().map(|(_, p)| Fetch { source: source.clone(), range: p.range() }));
            deltas.push(DeltaInput { file, blocks, fetched: from..fetch.len() });
        }
        let count = rows.end - rows.start;
        self.reading.limits.backed_rows("a unit", count)?;
        let structure = format!(
            "tablet {}: rowset {}: ordinals {}..{}",
            self.tablet.id, self.rowset.id, rows.start, rows.end
        );
        let decode = DecodeRows {
            columns,
            deltas,
            delta_files: opened.deltas.clone(),
            log: (opened.log.clone(), self.rowset.id),
            rows,
            request: self.request.clone(),
            snapshot: self.reading.snapshot,
            structure: structure.clone(),
        };
        Ok(Unit { fetch, bytes: 0..0, rows: Some(count), structure, decode: Box::new(decode) })
    }
}

/// The stored bytes of the blocks of `rows`.
fn stored_bytes(opened: &OpenRowSet, rows: Range<u64>) -> u64 {
    let of = |source: &Source| match source {
        Source::File { scan, .. } => {
            let from = scan.blocks().partition_point(|b| b.rows.end <= rows.start);
            let blocks = scan.blocks().iter().skip(from).take_while(|b| b.rows.start < rows.end);
            blocks.map(|b| u64::from(b.pointer.size)).sum()
        }
        Source::Default | Source::Lost => 0,
    };
    opened.sources.iter().map(of).sum()
}

impl Plan for RowSetPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        if self.opened.is_none() {
            if self.rows.is_empty() {
                return Ok(None);
            }
            let started = self.start().map_err(|e| self.explain(e))?;
            if !started {
                self.rows.start = self.rows.end;
                return Ok(None);
            }
        }
        let Some(opened) = &self.opened else { return Ok(None) };
        if self.rows.is_empty() {
            return Ok(None);
        }
        let end = self.unit_end(opened, self.rows.start);
        let rows = self.rows.start..end;
        let unit = self.unit(opened, rows).within(|| format!("rowset {}", self.rowset.id))?;
        self.rows.start = end;
        Ok(Some(unit))
    }
}
