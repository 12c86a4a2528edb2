//! Decodes one unit of a rowset: reads base values, applies deltas, and drops rows that do not exist.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{FieldRef, Schema};
use arrow_select::concat::concat;
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use coldframe_core::format::DecodeUnit;
use coldframe_core::salvage::{Fate, Loss, Salvage};
use coldframe_core::{
    BatchIter, DamageLog, Error, ErrorContext, Fault, OnError, PlanRequest, Result, arrow_error,
};

use super::patch::Changes;
use super::source::{DeltaFile, Source};
use crate::rowset::Location;
use crate::schema::Column;
use crate::wal::Replayed;
use coldframe_cfile::layout::delta::{Delta, entries};
use coldframe_cfile::scan::column::{ColumnPart, ColumnScan};

/// A requested column of a unit.
pub(crate) struct ColumnInput {
    pub(crate) column: Arc<Column>,
    pub(crate) source: Source,
    /// Which of the unit's fetches are blocks of this column.
    pub(crate) fetched: Range<usize>,
    /// Set if the filter excludes null and every value of the column's dictionary. Then it has a `false` for
    /// each of them, first for null.
    pub(crate) excluded: Option<Arc<Vec<bool>>>,
}

/// The blocks of a delta file that a unit needs.
pub(crate) struct DeltaInput {
    /// The index of the delta file.
    pub(crate) file: usize,
    /// The indexes of the blocks in the file.
    pub(crate) blocks: Range<usize>,
    /// Which of the unit's fetches are these blocks.
    pub(crate) fetched: Range<usize>,
}

/// Decodes the rows of a unit.
pub(crate) struct DecodeRows {
    pub(crate) columns: Vec<ColumnInput>,
    pub(crate) deltas: Vec<DeltaInput>,
    pub(crate) delta_files: Arc<Vec<DeltaFile>>,
    /// What the write-ahead log adds to the rowset, and the rowset's id.
    pub(crate) log: (Arc<Replayed>, u64),
    pub(crate) rows: Range<u64>,
    pub(crate) request: PlanRequest,
    pub(crate) snapshot: Option<u64>,
    pub(crate) structure: String,
}

impl DecodeUnit for DecodeRows {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let rows = self.rows.clone();
        let max_rows = self.request.scan.batch_rows;
        match self.rows(rows.clone(), &bytes) {
            Err(e) if e.is_batch_too_long() && rows.end - rows.start > 1 => {
                Ok(Box::new(Pieces { unit: *self, bytes, pending: halves(&rows).into(), ready: None }))
            }
            other => {
                Ok(other?
                    .map_or_else(|| Box::new(std::iter::empty()) as BatchIter, |b| in_batches(b, max_rows)))
            }
        }
    }
}

/// Divides a range in two. The first half comes last, because `pending` is a stack.
fn halves(rows: &Range<u64>) -> [Range<u64>; 2] {
    let middle = rows.start + (rows.end - rows.start) / 2;
    [middle..rows.end, rows.start..middle]
}

/// A unit whose values may exceed one batch: it is divided until each piece fits in a batch.
struct Pieces {
    unit: DecodeRows,
    bytes: Vec<Bytes>,
    /// The ranges that are still to be decoded; the next range is the last in the list.
    pending: Vec<Range<u64>>,
    ready: Option<BatchIter>,
}

impl Iterator for Pieces {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.ready.as_mut().and_then(Iterator::next) {
                return Some(batch);
            }
            let rows = self.pending.pop()?;
            match self.unit.rows(rows.clone(), &self.bytes) {
                Ok(batch) => self.ready = batch.map(|b| in_batches(b, self.unit.request.scan.batch_rows)),
                Err(e) if e.is_batch_too_long() && rows.end - rows.start > 1 => {
                    self.pending.extend(halves(&rows))
                }
                Err(e) => {
                    self.pending.clear();
                    return Some(Err(e));
                }
            }
        }
    }
}

/// Keeps the rows that are set in `mask`, which has a bit for each row of the range. `before`: the mask that
/// has already been applied to the batch.
fn filter_rows(
    batch: RecordBatch,
    before: Option<BooleanArray>,
    mask: BooleanArray,
) -> Result<(RecordBatch, Option<BooleanArray>)> {
    let now = match &before {
        None => mask.clone(),
        Some(before) => {
            let left = arrow_select::filter::filter(&mask, before).map_err(arrow_error)?;
            left.as_any().downcast_ref::<BooleanArray>().cloned().unwrap_or_else(|| mask.clone())
        }
    };
    Ok((filter_record_batch(&batch, &now).map_err(arrow_error)?, Some(mask)))
}

pub(crate) fn in_batches(batch: RecordBatch, max_rows: usize) -> BatchIter {
    let rows = batch.num_rows();
    if rows <= max_rows {
        return Box::new(std::iter::once(Ok(batch)));
    }
    Box::new((0..rows).step_by(max_rows.max(1)).map(move |at| Ok(batch.slice(at, max_rows.min(rows - at)))))
}

impl DecodeRows {
    /// Decodes some rows of the unit. Losses are recorded only if this succeeds.
    fn rows(&self, rows: Range<u64>, bytes: &[Bytes]) -> Result<Option<RecordBatch>> {
        let count = usize::try_from(rows.end - rows.start)
            .map_err(|_| Error::invalid("the unit is larger than the address space"))?;
        let nullable = self.columns.iter().map(|c| c.column.nullable);
        let damage = DamageLog::default();
        let mut salvage = Salvage::new(self.request.scan.on_error, nullable, damage.clone());
        let batch = Rows { unit: self, rows, count }.decode(bytes, &mut salvage);
        let batch = batch.map_err(|e| self.request.scan.on_error.weigh(e))?;
        damage.records().into_iter().for_each(|record| self.request.damage.push(record));
        Ok(batch)
    }
}

/// A range of a unit while it is decoded.
struct Rows<'u> {
    unit: &'u DecodeRows,
    rows: Range<u64>,
    count: usize,
}

impl<'u> Rows<'u> {
    fn decode(&self, bytes: &[Bytes], salvage: &mut Salvage) -> Result<Option<RecordBatch>> {
        let count = self.count;
        let blocks = self.delta_blocks(bytes, salvage)?;
        let columns: Vec<Arc<Column>> = self.unit.columns.iter().map(|c| c.column.clone()).collect();
        let mut changes = Changes::new(self.rows.start, count, &columns)?;
        for (input, block) in &blocks {
            self.apply_block(input, block, &mut changes, salvage)?;
        }
        self.apply_log(&mut changes, salvage)?;
        let present = changes.take_present();
        let Some(done) = self.filtered_out(bytes, &changes, salvage)? else { return Ok(None) };
        let batch = self.batch(done, bytes, &changes, salvage)?;
        let (batch, _) = [present, self.kept(salvage)]
            .into_iter()
            .flatten()
            .try_fold((batch, None), |(batch, before), mask| filter_rows(batch, before, mask))?;
        if batch.schema() == self.unit.request.decode {
            return Ok(Some(batch));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let (schema, columns) = (self.unit.request.decode.clone(), batch.columns().to_vec());
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(arrow_error).map(Some)
    }

    /// The mask of rows that are not lost; `None` if none is lost.
    fn kept(&self, salvage: &Salvage) -> Option<BooleanArray> {
        if salvage.is_whole() {
            return None;
        }
        let mut kept = BooleanBufferBuilder::new(self.count);
        for stretch in salvage.stretches(self.rows.clone()) {
            let rows = usize::try_from(stretch.rows.end - stretch.rows.start).unwrap_or(0);
            kept.append_n(rows, stretch.fate != Fate::Dropped);
        }
        Some(BooleanArray::new(kept.finish(), None))
    }

    fn tolerant(&self) -> bool {
        self.unit.request.scan.on_error != OnError::Raise
    }

    /// Returns the part of a column that covers these rows, and the bytes of its blocks.
    fn part(&self, scan: &ColumnScan, input: &ColumnInput, bytes: &[Bytes]) -> (ColumnPart, Vec<Bytes>) {
        let stored = bytes.get(input.fetched.clone()).unwrap_or_default();
        let whole = scan.part(self.unit.rows.clone());
        part_of(scan, &whole, stored, self.rows.clone())
    }

    /// The contents of all delta blocks, in the order in which they apply.
    fn delta_blocks(&self, bytes: &[Bytes], salvage: &mut Salvage) -> Result<Vec<(DeltaBlock<'u>, Bytes)>> {
        let mut all = Vec::new();
        for file in self.unit.delta_files.iter() {
            for loss in &file.losses {
                self.record_lost_entries(file, loss, salvage);
            }
        }
        for input in &self.unit.deltas {
            let Some(file) = self.unit.delta_files.get(input.file) else { continue };
            let stored = bytes.get(input.fetched.clone()).unwrap_or_default();
            for (index, stored) in input.blocks.clone().zip(stored) {
                let Some((_, pointer)) = file.blocks.get(index) else { continue };
                let block = DeltaBlock { file, index, at: pointer.offset };
                match file.opened.file.format().open_owned(stored, pointer.offset) {
                    Ok(contents) => all.push((block, contents)),
                    Err(e) => self.record_lost_deltas(&block, e, salvage)?,
                }
            }
        }
        Ok(all)
    }

    /// Records the rows that may have deltas in the blocks that a lost index block lists.
    fn record_lost_entries(&self, file: &DeltaFile, loss: &Loss, salvage: &mut Salvage) {
        let rows = loss.rows.start.max(self.rows.start)..loss.rows.end.min(self.rows.end);
        let place = &file.opened.place;
        if !rows.is_empty() {
            let (from, to) = (loss.bytes.start + place.offset, loss.bytes.end + place.offset);
            let structure = self.named(&rows, place, &loss.structure);
            salvage.lose_rows(Loss { rows, bytes: from..to, structure, reason: loss.reason.clone() });
        }
    }

    fn named(&self, rows: &Range<u64>, place: &Location, structure: &str) -> String {
        let unit = &self.unit.structure;
        let Range { start, end } = rows;
        format!("{unit}: {} in {}: ordinals {start}..{end}: {structure}", place.name, place.path)
    }

    /// Records the rows that may have deltas in a block that cannot be read.
    fn record_lost_deltas(&self, block: &DeltaBlock<'_>, e: Error, salvage: &mut Salvage) -> Result<()> {
        let rows = block.file.rows_of(block.index);
        let rows = rows.start.max(self.rows.start)..rows.end.min(self.rows.end);
        let e = self.unit.request.scan.on_error.weigh(e);
        let e = block.file.opened.place.explain(e.at(block.at).within("delta block"));
        if !self.tolerant() || !e.is_damage() {
            return Err(e);
        }
        // The block was fetched for other rows of the unit.
        if rows.is_empty() {
            return Ok(());
        }
        let path = &block.file.opened.place.path;
        let lost = format!("ordinals {}..{} of {path}", rows.start, rows.end);
        let e = e.within(lost).within(self.unit.structure.clone());
        let at = block.file.opened.place.offset.saturating_add(block.at);
        salvage.lose_rows(Loss::from_error(&e, at..at, rows));
        Ok(())
    }

    /// Applies the changes that were in the server's memory. They are newer than all flushed changes.
    fn apply_log<'a>(&'a self, changes: &mut Changes<'a>, salvage: &mut Salvage) -> Result<()> {
        let (log, rowset) = &self.unit.log;
        let counts = |time: u64| self.unit.snapshot.is_none_or(|snapshot| time < snapshot);
        if let Some(entries) = log.changes.get(rowset) {
            let entries = entries.of(&self.rows);
            changes.expect(entries.len());
            for delta in entries.filter(|delta| counts(delta.time)) {
                changes.apply(delta)?;
            }
        }
        for loss in log.lost_changes.get(rowset).into_iter().flatten().filter(|loss| counts(loss.since)) {
            let rows = loss.rows.start.max(self.rows.start)..loss.rows.end.min(self.rows.end);
            if !rows.is_empty() {
                salvage.lose_rows(loss.of(rows, &self.unit.structure));
            }
        }
        Ok(())
    }

    fn apply_block<'a>(
        &self,
        block: &DeltaBlock<'_>,
        contents: &'a [u8],
        changes: &mut Changes<'a>,
        salvage: &mut Salvage,
    ) -> Result<()> {
        let mut apply = || -> Result<()> {
            let mut places = Vec::new();
            let entries = entries(contents, block.at, &mut places)?;
            changes.expect(entries.len());
            for entry in entries {
                let delta = Delta::parse(entry, block.at)?;
                let counts = match self.unit.snapshot {
                    None => !block.file.undo,
                    Some(snapshot) => (delta.time >= snapshot) == block.file.undo,
                };
                if counts && self.rows.contains(&delta.row) {
                    changes.apply(delta)?;
                }
            }
            Ok(())
        };
        match apply() {
            Ok(()) => Ok(()),
            Err(e) => self.record_lost_deltas(block, e, salvage),
        }
    }

    /// Whether the dictionary of a column excludes every row. Rows whose codes cannot be read are not
    /// excluded, so that decoding them reports the reason.
    fn excluded_by_dictionary(&self, bytes: &[Bytes], changes: &Changes<'_>) -> bool {
        self.unit.columns.iter().enumerate().any(|(place, input)| {
            let (Some(keep), Source::File { scan, .. }) = (&input.excluded, &input.source) else {
                return false;
            };
            if changes.touches(place) {
                return false;
            }
            let (part, stored) = self.part(scan, input, bytes);
            let read = part.open(stored).and_then(|mut r| r.read_where(self.count, keep));
            read.is_ok_and(|(_, which)| which.len() == self.count && which.count_set_bits() == 0)
        })
    }

    /// Decodes the columns that the filter reads; `None` if no row passes, so no other column needs decoding.
    fn filtered_out(
        &self,
        bytes: &[Bytes],
        changes: &Changes<'_>,
        salvage: &mut Salvage,
    ) -> Result<Option<Vec<Option<ArrayRef>>>> {
        if self.excluded_by_dictionary(bytes, changes) {
            return Ok(None);
        }
        let mut done: Vec<Option<ArrayRef>> = vec![None; self.unit.columns.len()];
        let Some(predicate) = &self.unit.request.scan.predicate else { return Ok(Some(done)) };
        let mut names = Vec::new();
        predicate.columns(&mut names);
        if names.is_empty() || self.unit.columns.iter().all(|c| names.contains(&c.column.name.as_str())) {
            return Ok(Some(done));
        }
        let (mut fields, mut arrays): (Vec<FieldRef>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        for (place, (input, slot)) in self.unit.columns.iter().zip(&mut done).enumerate() {
            let field = self.unit.request.decode.fields().get(place);
            if let Some(field) = field.filter(|_| names.contains(&input.column.name.as_str())) {
                let array = self.column(place, input, bytes, changes, salvage)?;
                fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
                arrays.push(array.clone());
                *slot = Some(array);
            }
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(arrow_error)?;
        Ok((predicate.evaluate(&batch)?.true_count() > 0).then_some(done))
    }

    fn batch(
        &self,
        mut done: Vec<Option<ArrayRef>>,
        bytes: &[Bytes],
        changes: &Changes<'_>,
        salvage: &mut Salvage,
    ) -> Result<RecordBatch> {
        let mut arrays = Vec::with_capacity(self.unit.columns.len());
        for (place, input) in self.unit.columns.iter().enumerate() {
            let array = match done.get_mut(place).and_then(Option::take) {
                Some(array) => array,
                None => self.column(place, input, bytes, changes, salvage)?,
            };
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.count));
        // Until lost rows are dropped, they are null, even in columns that are not nullable.
        let decode = &self.unit.request.decode;
        let schema = if salvage.is_whole() { decode.clone() } else { nullable(decode) };
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options).map_err(arrow_error)?;
        Ok(batch)
    }

    /// Decodes a column and applies all deltas.
    fn column(
        &self,
        place: usize,
        input: &ColumnInput,
        bytes: &[Bytes],
        changes: &Changes<'_>,
        salvage: &mut Salvage,
    ) -> Result<ArrayRef> {
        let base = match &input.source {
            Source::Default => input.column.defaults(self.count)?,
            Source::Lost => return Ok(new_null_array(&input.column.arrow, self.count)),
            Source::File { scan, place: location, losses } => {
                let (part, stored) = self.part(scan, input, bytes);
                match part.open(stored.clone()).and_then(|mut r| r.read(self.count)) {
                    Ok(array) => array,
                    Err(e) if self.tolerant() && Fault::is(&e) => {
                        let column = DamagedColumn { scan, part, stored, location, index: losses };
                        self.salvage(place, input, &column, salvage)?
                    }
                    Err(e) => return Err(location.explain(e)),
                }
            }
        };
        changes.patch(place, &input.column, base)
    }

    /// Decodes the values that can be read, with nulls in place of the other values.
    fn salvage(
        &self,
        place: usize,
        input: &ColumnInput,
        damaged: &DamagedColumn<'_>,
        salvage: &mut Salvage,
    ) -> Result<ArrayRef> {
        let mut pieces: Vec<ArrayRef> = Vec::new();
        let mut at = self.rows.start;
        let width = |rows: &Range<u64>| usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(0);
        for loss in damaged.losses() {
            let Range { start, end } = loss.rows;
            if at < start {
                pieces.push(damaged.read(at..start)?);
            }
            pieces.push(new_null_array(&input.column.arrow, width(&loss.rows)));
            at = end;
            let offset = damaged.location.offset;
            salvage.lose(
                place,
                Loss {
                    structure: self.named(&loss.rows, damaged.location, &loss.structure),
                    bytes: loss.bytes.start + offset..loss.bytes.end + offset,
                    ..loss
                },
            );
        }
        if at < self.rows.end {
            pieces.push(damaged.read(at..self.rows.end)?);
        }
        let pieces: Vec<&dyn arrow_array::Array> = pieces.iter().map(AsRef::as_ref).collect();
        concat(&pieces).map_err(arrow_error).within(|| format!("column `{}`", input.column.name))
    }
}

/// A column in which some rows cannot be read.
struct DamagedColumn<'a> {
    scan: &'a ColumnScan,
    part: ColumnPart,
    stored: Vec<Bytes>,
    location: &'a Location,
    /// Rows whose blocks the index does not list.
    index: &'a [Loss],
}

impl DamagedColumn<'_> {
    /// The lost rows. If the index has caused a loss, its reason is given.
    fn losses(&self) -> Vec<Loss> {
        let mut all = Vec::new();
        for loss in self.part.survey(&self.stored) {
            let mut at = loss.rows.start;
            for known in self.index.iter().filter(|_| loss.bytes.is_empty()) {
                let rows = known.rows.start.max(at)..known.rows.end.min(loss.rows.end);
                if !rows.is_empty() {
                    if at < rows.start {
                        all.push(Loss { rows: at..rows.start, ..loss.clone() });
                    }
                    at = rows.end;
                    all.push(Loss { rows, ..known.clone() });
                }
            }
            if at < loss.rows.end {
                all.push(Loss { rows: at..loss.rows.end, ..loss });
            }
        }
        all
    }

    fn read(&self, rows: Range<u64>) -> Result<ArrayRef> {
        let count = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
        let (part, stored) = part_of(self.scan, &self.part, &self.stored, rows);
        part.open(stored)?.read(count).map_err(|e| self.location.explain(e))
    }
}

/// A delta block, with its location for errors.
struct DeltaBlock<'a> {
    file: &'a DeltaFile,
    index: usize,
    at: u64,
}

/// The part of `whole` that covers `rows`, with the bytes of its blocks.
fn part_of(
    scan: &ColumnScan,
    whole: &ColumnPart,
    stored: &[Bytes],
    rows: Range<u64>,
) -> (ColumnPart, Vec<Bytes>) {
    let part = scan.part(rows);
    let first = part.blocks().first().map_or(0, |b| b.pointer.offset);
    let skip = whole.blocks().iter().take_while(|b| b.pointer.offset < first).count();
    let stored = stored.iter().skip(skip).take(part.blocks().len()).cloned().collect();
    (part, stored)
}

pub(crate) fn nullable(schema: &Schema) -> Arc<Schema> {
    let fields = schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
