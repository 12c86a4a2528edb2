//! One unit of a rowset: base values, deltas applied, rows that are not there left out.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{FieldRef, Schema};
use arrow_select::concat::concat;
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use coldframe_core::format::DecodeUnit;
use coldframe_core::{BatchIter, Damage, Error, ErrorContext, OnError, PlanRequest, Result, arrow_error};

use super::patch::Changes;
use super::source::{DeltaFile, Source};
use crate::rowset::Location;
use crate::schema::Column;
use coldframe_cfile::layout::delta::{Delta, entries};
use coldframe_cfile::prune::blocks::Lost;
use coldframe_cfile::scan::column::{ColumnPart, ColumnScan};

/// A wanted column of a unit.
pub(crate) struct ColumnInput {
    pub(crate) column: Arc<Column>,
    pub(crate) source: Source,
    /// Which of the unit's fetched ranges are its blocks.
    pub(crate) fetched: Range<usize>,
    /// Where no value of the column's dictionary passes the filter: for each of them, and for null, that it does not.
    pub(crate) excluded: Option<Arc<Vec<bool>>>,
}

/// The blocks of a delta file that a unit needs.
pub(crate) struct DeltaInput {
    /// Which of the files.
    pub(crate) file: usize,
    /// Which of its blocks.
    pub(crate) blocks: Range<usize>,
    /// Which of the unit's fetched ranges they are.
    pub(crate) fetched: Range<usize>,
}

/// Decodes a unit.
pub(crate) struct DecodeRows {
    pub(crate) columns: Vec<ColumnInput>,
    pub(crate) deltas: Vec<DeltaInput>,
    pub(crate) delta_files: Arc<Vec<DeltaFile>>,
    pub(crate) rows: Range<u64>,
    pub(crate) request: PlanRequest,
    pub(crate) snapshot: Option<u64>,
    pub(crate) structure: String,
}

/// Rows that are left out because something of them cannot be read.
struct Losses {
    first: u64,
    rows: usize,
    kept: Option<BooleanBufferBuilder>,
}

impl Losses {
    fn lose(&mut self, ordinals: &Range<u64>) {
        let place =
            |n: u64| usize::try_from(n.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.rows);
        let range = place(ordinals.start)..place(ordinals.end);
        let rows = self.rows;
        let kept = self.kept.get_or_insert_with(|| {
            let mut all = BooleanBufferBuilder::new(rows);
            all.append_n(rows, true);
            all
        });
        range.for_each(|row| kept.set_bit(row, false));
    }
}

impl DecodeUnit for DecodeRows {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let count = usize::try_from(self.rows.end - self.rows.start)
            .map_err(|_| Error::invalid("the unit is larger than the address space"))?;
        let mut losses = Losses { first: self.rows.start, rows: count, kept: None };
        let blocks = self.delta_blocks(&bytes, &mut losses)?;
        let columns: Vec<Arc<Column>> = self.columns.iter().map(|c| c.column.clone()).collect();
        let mut changes = Changes::new(self.rows.start, count, &columns)?;
        for (input, block) in &blocks {
            self.apply_block(input, block, &mut changes, &mut losses)?;
        }
        let present = changes.take_present();
        let batch = match self.filtered_out(&bytes, count, &changes, &mut losses)? {
            None => return Ok(Box::new(std::iter::empty())),
            Some(done) => self.batch(done, &bytes, count, &changes, &mut losses)?,
        };
        let kept = losses.kept.map(|mut b| BooleanArray::new(b.finish(), None));
        let batch = [present, kept]
            .into_iter()
            .flatten()
            .try_fold((batch, None), |(batch, before), mask| leave_out(batch, before, mask))?;
        Ok(in_batches(batch.0, self.request.scan.batch_rows))
    }
}

/// Filters by `mask`, which counts the rows before any mask was applied; `before` is the mask that was.
fn leave_out(
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

fn in_batches(batch: RecordBatch, most: usize) -> BatchIter {
    let rows = batch.num_rows();
    if rows <= most {
        return Box::new(std::iter::once(Ok(batch)));
    }
    Box::new((0..rows).step_by(most.max(1)).map(move |at| Ok(batch.slice(at, most.min(rows - at)))))
}

impl DecodeRows {
    fn tolerant(&self) -> bool {
        self.request.scan.on_error != OnError::Raise
    }

    /// The contents of all delta blocks, in the order in which they apply.
    fn delta_blocks<'d>(
        &'d self,
        bytes: &[Bytes],
        losses: &mut Losses,
    ) -> Result<Vec<(DeltaBlock<'d>, Bytes)>> {
        let mut all = Vec::new();
        for input in &self.deltas {
            let Some(file) = self.delta_files.get(input.file) else { continue };
            let stored = bytes.get(input.fetched.clone()).unwrap_or_default();
            for (index, stored) in input.blocks.clone().zip(stored) {
                let Some((_, pointer)) = file.blocks.get(index) else { continue };
                let block = DeltaBlock { file, index, at: pointer.offset };
                match file.opened.file.format().open_owned(stored, pointer.offset) {
                    Ok(contents) => all.push((block, contents)),
                    Err(e) => self.lose_deltas(&block, e, losses)?,
                }
            }
        }
        Ok(all)
    }

    /// A delta block that cannot be read leaves the rows unknown that it may be about.
    fn lose_deltas(&self, block: &DeltaBlock<'_>, e: Error, losses: &mut Losses) -> Result<()> {
        let rows = block.file.rows_of(block.index);
        let rows = rows.start.max(self.rows.start)..rows.end.min(self.rows.end);
        let e = block.file.opened.place.explain(e.at(block.at).within("delta block"));
        if !self.tolerant() || !e.is_damage() {
            return Err(e);
        }
        let e = e.within(format!("ordinals {}..{}", rows.start, rows.end)).within(self.structure.clone());
        let at = block.file.opened.place.offset.saturating_add(block.at);
        let lost = rows.end.saturating_sub(rows.start);
        self.request.damage.push(Damage::from_error(&e, at..at, Some(lost)));
        losses.lose(&rows);
        Ok(())
    }

    fn apply_block<'a>(
        &self,
        block: &DeltaBlock<'_>,
        contents: &'a [u8],
        changes: &mut Changes<'a>,
        losses: &mut Losses,
    ) -> Result<()> {
        let mut apply = || -> Result<()> {
            let mut places = Vec::new();
            let entries = entries(contents, block.at, &mut places)?;
            changes.expect(entries.len());
            for entry in entries {
                let delta = Delta::parse(entry, block.at)?;
                let counts = match self.snapshot {
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
            Err(e) => self.lose_deltas(block, e, losses),
        }
    }

    /// Whether all rows have code words of a dictionary none of whose values passes the filter. What cannot be read is not
    /// excluded: decoding it says why.
    fn excluded_by_dictionary(&self, bytes: &[Bytes], count: usize, changes: &Changes<'_>) -> bool {
        self.columns.iter().enumerate().any(|(place, input)| {
            let (Some(keep), Source::File { scan, .. }) = (&input.excluded, &input.source) else {
                return false;
            };
            let stored = bytes.get(input.fetched.clone()).unwrap_or_default().to_vec();
            let read = || scan.part(self.rows.clone()).open(stored)?.read_where(count, keep);
            !changes.touches(place) && read().is_ok_and(|(_, which)| which.count_set_bits() == 0)
        })
    }

    /// The columns that the filter reads, if a row passes it; `None` if none does, so that no other column has to be decoded.
    fn filtered_out(
        &self,
        bytes: &[Bytes],
        count: usize,
        changes: &Changes<'_>,
        losses: &mut Losses,
    ) -> Result<Option<Vec<Option<ArrayRef>>>> {
        if self.excluded_by_dictionary(bytes, count, changes) {
            return Ok(None);
        }
        let mut done: Vec<Option<ArrayRef>> = vec![None; self.columns.len()];
        let Some(predicate) = &self.request.scan.predicate else { return Ok(Some(done)) };
        let mut names = Vec::new();
        predicate.columns(&mut names);
        if names.is_empty() || self.columns.iter().all(|c| names.contains(&c.column.name.as_str())) {
            return Ok(Some(done));
        }
        let (mut fields, mut arrays): (Vec<FieldRef>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        for (place, (input, slot)) in self.columns.iter().zip(&mut done).enumerate() {
            let field = self.request.decode.fields().get(place);
            if let Some(field) = field.filter(|_| names.contains(&input.column.name.as_str())) {
                let array = self.column(place, input, bytes, count, changes, losses)?;
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
        count: usize,
        changes: &Changes<'_>,
        losses: &mut Losses,
    ) -> Result<RecordBatch> {
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (place, input) in self.columns.iter().enumerate() {
            let array = match done.get_mut(place).and_then(Option::take) {
                Some(array) => array,
                None => self.column(place, input, bytes, count, changes, losses)?,
            };
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        // Rows that are lost may stand as nulls where there can be none; they are left out at once.
        let schema =
            if losses.kept.is_some() { nullable(&self.request.decode) } else { self.request.decode.clone() };
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options).map_err(arrow_error)?;
        Ok(batch)
    }

    /// A column's values after all deltas.
    fn column(
        &self,
        place: usize,
        input: &ColumnInput,
        bytes: &[Bytes],
        count: usize,
        changes: &Changes<'_>,
        losses: &mut Losses,
    ) -> Result<ArrayRef> {
        let base = match &input.source {
            Source::Default => input.column.defaults(count)?,
            Source::Lost => return Ok(new_null_array(&input.column.arrow, count)),
            Source::File { scan, place } => {
                let stored = bytes.get(input.fetched.clone()).unwrap_or_default();
                let read = scan.part(self.rows.clone()).open(stored.to_vec()).and_then(|mut r| r.read(count));
                match read {
                    Ok(array) => array,
                    Err(e) if self.tolerant() && e.is_damage() => {
                        self.salvage(scan, place, input, stored, losses)?
                    }
                    Err(e) => return Err(place.explain(e)),
                }
            }
        };
        changes.patch(place, &input.column, base)
    }

    /// The values that can be read, with nulls in place of those that cannot.
    fn salvage(
        &self,
        scan: &ColumnScan,
        place: &Location,
        input: &ColumnInput,
        stored: &[Bytes],
        losses: &mut Losses,
    ) -> Result<ArrayRef> {
        let part = scan.part(self.rows.clone());
        let lost = part.survey(stored);
        let filled = self.request.scan.on_error == OnError::Null && input.column.nullable;
        let mut pieces: Vec<ArrayRef> = Vec::new();
        let mut at = self.rows.start;
        let width = |rows: &Range<u64>| usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(0);
        for Lost { rows, bytes, structure, reason } in lost {
            let good = at..rows.start;
            at = rows.end;
            if !good.is_empty() {
                pieces.push(piece(scan, &part, stored, good).map_err(|e| place.explain(e))?);
            }
            pieces.push(new_null_array(&input.column.arrow, width(&rows)));
            if !filled {
                losses.lose(&rows);
            }
            // What the index does not lead to was recorded when the index was read.
            if !bytes.is_empty() {
                let ordinals = format!("ordinals {}..{}", rows.start, rows.end);
                self.request.damage.push(Damage {
                    bytes: bytes.start + place.offset..bytes.end + place.offset,
                    rows_lost: Some(if filled { 0 } else { rows.end.saturating_sub(rows.start) }),
                    structure: format!(
                        "{}: {} in {}: {ordinals}: {structure}",
                        self.structure, place.name, place.path
                    ),
                    reason,
                });
            }
        }
        if at < self.rows.end {
            pieces.push(piece(scan, &part, stored, at..self.rows.end).map_err(|e| place.explain(e))?);
        }
        let pieces: Vec<&dyn arrow_array::Array> = pieces.iter().map(AsRef::as_ref).collect();
        concat(&pieces).map_err(arrow_error).within(|| format!("column `{}`", input.column.name))
    }
}

/// A delta block, for errors.
struct DeltaBlock<'a> {
    file: &'a DeltaFile,
    index: usize,
    at: u64,
}

/// The values of `rows`, whose blocks are some of those of `whole`.
fn piece(scan: &ColumnScan, whole: &ColumnPart, stored: &[Bytes], rows: Range<u64>) -> Result<ArrayRef> {
    let count = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
    let part = scan.part(rows);
    let first = part.blocks().first().map_or(0, |b| b.pointer.offset);
    let skip = whole.blocks().iter().take_while(|b| b.pointer.offset < first).count();
    let bytes = stored.iter().skip(skip).take(part.blocks().len()).cloned().collect();
    part.open(bytes)?.read(count)
}

fn nullable(schema: &Schema) -> Arc<Schema> {
    let fields = schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
