//! The units of a scan: runs of data blocks with their ordinals, or blocks of a file without ordinals.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, new_null_array};
use arrow_select::concat::concat;
use coldframe_core::{ColumnBounds, Fetch, OnError, Plan, PlanRequest, Predicate, Result, Unit, arrow_error};

use super::column::ColumnScan;
use super::decode::{DecodeBlocks, DecodeColumn, ScanContext};
use crate::encoding::dict::Dictionary;
use crate::layout::block::BlockPointer;
use crate::layout::block::DataBlock;
use crate::open::{CFile, ORDINAL, Purpose, VALUE};
use coldframe_core::salvage::Loss;

/// Maximum stored bytes of a unit that has more than one block.
const UNIT_BYTES: u64 = 2 << 20;
/// Maximum rows of a unit that has more than one block.
const UNIT_ROWS: u64 = 1 << 20;

/// Plans runs of data blocks.
pub(crate) struct ColumnPlan {
    scan: Arc<ScanContext>,
    column: ColumnScan,
    units: VecDeque<Range<u64>>,
    /// Whether values are read, or only ordinals.
    values: bool,
}

impl ColumnPlan {
    /// Plans `rows`, which are in `blocks`. `lost`: the rows for which the index lists no block.
    pub(crate) fn new(
        scan: ScanContext,
        file: &CFile,
        blocks: Vec<DataBlock>,
        rows: Range<u64>,
        lost: Vec<Loss>,
        request: &PlanRequest,
    ) -> Result<Self> {
        let raise = request.scan.on_error == OnError::Raise;
        let may_match = |block: &DataBlock| match &request.scan.predicate {
            Some(p) if raise => p.may_match(&|column| (column == ORDINAL).then(|| bounds(&block.rows))),
            _ => true,
        };
        let mut units: VecDeque<Range<u64>> = VecDeque::new();
        let mut bytes = 0u64;
        for block in blocks.iter().filter(|b| may_match(b)) {
            let part = block.rows.start.max(rows.start)..block.rows.end.min(rows.end);
            bytes = bytes.saturating_add(block.pointer.size.into());
            match units.back_mut() {
                Some(unit)
                    if unit.end == part.start
                        && bytes <= UNIT_BYTES
                        && part.end - unit.start <= UNIT_ROWS =>
                {
                    unit.end = part.end;
                }
                _ => {
                    bytes = block.pointer.size.into();
                    units.push_back(part);
                }
            }
        }
        if !raise {
            cover(&mut units, &rows);
        }
        let values = request.decode.column_with_name(VALUE).is_some();
        let to = match request.decode.field_with_name(VALUE) {
            Ok(field) => field.data_type().clone(),
            Err(_) => file.footer().data_type.arrow(),
        };
        let dictionary = match file.dictionary() {
            _ if !values || blocks.is_empty() => None,
            // If the dictionary is lost, blocks of code words are lost too, but blocks of values are not.
            Err(e) if !raise && e.is_damage() => None,
            other => other?,
        };
        let keep = match (&request.scan.predicate, &dictionary) {
            (Some(predicate), Some(dictionary)) if raise && to == *dictionary.values().data_type() => {
                keep(predicate, dictionary)?
            }
            _ => None,
        };
        let scan = scan.with_keep(keep);
        let column = ColumnScan::with_dictionary(file, blocks, &to, dictionary)?;
        Ok(Self { scan: Arc::new(scan.with_lost(lost)), column, units, values })
    }
}

/// Which values of the dictionary (null first) pass a filter on the value column alone.
fn keep(predicate: &Predicate, dictionary: &Dictionary) -> Result<Option<Vec<bool>>> {
    let mut columns = Vec::new();
    predicate.columns(&mut columns);
    if columns.iter().any(|column| *column != VALUE) {
        return Ok(None);
    }
    let values = dictionary.values();
    let null = new_null_array(values.data_type(), 1);
    let all = concat(&[null.as_ref(), values.as_ref()]).map_err(arrow_error)?;
    let batch = RecordBatch::try_from_iter_with_nullable([(VALUE, all, true)]).map_err(arrow_error)?;
    let passes = predicate.evaluate(&batch)?;
    Ok(Some(passes.iter().map(|p| p == Some(true)).collect()))
}

/// The bounds of the ordinals of a block.
fn bounds(rows: &Range<u64>) -> ColumnBounds {
    let bound =
        |n: u64| -> Option<ArrayRef> { Some(Arc::new(Int64Array::from(vec![i64::try_from(n).ok()?]))) };
    let (min, max) = (bound(rows.start), bound(rows.end.saturating_sub(1)));
    ColumnBounds { min, max, has_null: Some(false), has_value: Some(true) }
}

/// Extends units over rows for which there is no block, so that each row is either read or recorded as lost.
fn cover(units: &mut VecDeque<Range<u64>>, rows: &Range<u64>) {
    let starts: Vec<u64> = units.iter().skip(1).map(|u| u.start).chain([rows.end]).collect();
    for (unit, end) in units.iter_mut().zip(starts) {
        unit.end = end;
    }
    match units.front_mut() {
        Some(first) => first.start = rows.start,
        None if !rows.is_empty() => units.push_back(rows.clone()),
        None => {}
    }
}

impl Plan for ColumnPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        let Some(rows) = self.units.pop_front() else { return Ok(None) };
        let part = self.column.part(rows.clone());
        let fetch = if self.values { part.fetch() } else { Vec::new() };
        let start = part.blocks().first().map_or(0, |b| b.pointer.offset);
        let end = part.blocks().last().map_or(start, |b| b.pointer.range().end);
        Ok(Some(Unit {
            fetch,
            bytes: start..end.max(start),
            rows: Some(rows.end - rows.start),
            structure: format!("ordinals {}..{}", rows.start, rows.end),
            decode: Box::new(DecodeColumn { scan: self.scan.clone(), part, values: self.values }),
        }))
    }
}

/// Plans the blocks of a file without ordinals.
pub(crate) struct BlockPlan {
    scan: Arc<ScanContext>,
    file: Arc<CFile>,
    kind: Purpose,
    blocks: VecDeque<(usize, BlockPointer)>,
}

impl BlockPlan {
    /// A plan over numbered blocks.
    pub(crate) fn new(
        scan: Arc<ScanContext>,
        file: Arc<CFile>,
        kind: Purpose,
        blocks: VecDeque<(usize, BlockPointer)>,
    ) -> Self {
        Self { scan, file, kind, blocks }
    }
}

impl Plan for BlockPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        let Some((number, block)) = self.blocks.pop_front() else { return Ok(None) };
        Ok(Some(Unit {
            fetch: vec![Fetch { source: self.file.source().clone(), range: block.range() }],
            bytes: block.range(),
            rows: None,
            structure: format!("data block {number}"),
            decode: Box::new(DecodeBlocks {
                scan: self.scan.clone(),
                format: *self.file.format(),
                encoding: self.file.footer().encoding,
                kind: self.kind,
                block,
            }),
        }))
    }
}
