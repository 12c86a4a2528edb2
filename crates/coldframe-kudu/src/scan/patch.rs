//! Applies deltas to decoded arrays, in bulk.
//!
//! The deltas of a unit are gathered first: for each requested column the pairs of row and cell, in the order
//! in which they apply (for each row the last pair is valid); and for each row, whether it exists. Then each
//! column is patched once. Cells of a fixed width are written into the array's own buffer; unchanged strings
//! are copied in runs.

use std::sync::Arc;

use arrow_array::types::{BinaryType, ByteArrayType, Utf8Type};
use arrow_array::{Array, ArrayRef, BooleanArray, cast::AsArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, MutableBuffer, NullBuffer};
use arrow_data::ArrayDataBuilder;
use arrow_schema::DataType;
use coldframe_core::{Error, Result, arrow_error};

use crate::schema::{Column, arrow_width, check_cell, widen};
use coldframe_cfile::layout::delta::{ChangeType, Delta};
use coldframe_core::arrays::strings;
use coldframe_core::salvage::check_batch;

/// A row of the unit, and its new value, which may be null.
type RowCell<'a> = (u32, Option<&'a [u8]>);
type Cells<'c, 'a> = &'c [RowCell<'a>];

/// The effect of a unit's deltas on its rows.
pub(crate) struct Changes<'a> {
    first: u64,
    rows: usize,
    /// Maps a column's id to its position in `cells`. Ids are small, so this is a list.
    places: Vec<Option<usize>>,
    /// For each requested column: the changed rows and their cells.
    cells: Vec<Vec<RowCell<'a>>>,
    /// Which rows exist; `None` if all rows exist.
    present: Option<BooleanBufferBuilder>,
    /// The number of entries that [`Self::expect`] announced.
    expected: usize,
}

/// Column ids above this are refused: the list by id would be too large.
const MAX_NUMBERED: usize = 1 << 20;

impl<'a> Changes<'a> {
    /// An empty set of changes to the rows `first..first + rows` and the requested columns `columns`.
    pub(crate) fn new(first: u64, rows: usize, columns: &[Arc<Column>]) -> Result<Self> {
        let numbers = columns.iter().map(|c| usize::try_from(c.id).unwrap_or(0));
        let len = numbers.clone().max().map_or(0, |n| n + 1);
        if len > MAX_NUMBERED {
            return Err(Error::unsupported(format!("a column with the number {}", len - 1)));
        }
        let mut places = vec![None; len];
        for (place, number) in numbers.enumerate() {
            if let Some(slot) = places.get_mut(number) {
                *slot = Some(place);
            }
        }
        Ok(Self { first, rows, places, cells: vec![Vec::new(); columns.len()], present: None, expected: 0 })
    }

    /// Announces `entries` entries, so that each column that changes reserves room for all of them.
    pub(crate) fn expect(&mut self, entries: usize) {
        self.expected = entries.min(self.rows);
    }

    /// Applies an entry to a row of the unit.
    #[inline(always)]
    pub(crate) fn apply(&mut self, mut delta: Delta<'a>) -> Result<()> {
        let row = delta.row.wrapping_sub(self.first);
        let Ok(row) = u32::try_from(row) else { return Ok(()) };
        let index = usize::try_from(row).unwrap_or(usize::MAX);
        if index >= self.rows {
            return Ok(());
        }
        if delta.kind != ChangeType::Update {
            self.set_present(index, delta.kind == ChangeType::Reinsert);
        }
        while let Some((id, cell)) = delta.next_cell()? {
            let place = usize::try_from(id).ok().and_then(|id| self.places.get(id).copied().flatten());
            if let Some(cells) = place.and_then(|p| self.cells.get_mut(p)) {
                if cells.len() == cells.capacity() {
                    cells.reserve(self.expected.max(1));
                }
                cells.push((row, cell));
            }
        }
        Ok(())
    }

    fn set_present(&mut self, row: usize, exists: bool) {
        if self.present.is_none() && exists {
            return;
        }
        let rows = self.rows;
        let present = self.present.get_or_insert_with(|| {
            let mut all = BooleanBufferBuilder::new(rows);
            all.append_n(rows, true);
            all
        });
        present.set_bit(row, exists);
    }

    /// The mask of rows that exist; `None` if all rows exist.
    pub(crate) fn take_present(&mut self) -> Option<BooleanArray> {
        self.present.take().map(|mut b| BooleanArray::new(b.finish(), None))
    }

    /// Whether any value of the requested column at `place` changes.
    pub(crate) fn touches(&self, place: usize) -> bool {
        self.cells.get(place).is_some_and(|cells| !cells.is_empty())
    }

    /// Applies the changes to `array`, which holds the requested column at `place`.
    pub(crate) fn patch(&self, place: usize, column: &Column, array: ArrayRef) -> Result<ArrayRef> {
        let Some(cells) = self.cells.get(place).filter(|c| !c.is_empty()) else { return Ok(array) };
        for (_, cell) in cells {
            match cell {
                Some(cell) => check_cell(column.data_type, cell),
                None if column.nullable => Ok(()),
                None => Err(Error::corrupt("expected a value of a column that is not nullable, found null")),
            }
            .map_err(|e| e.within(format!("delta of column `{}`", column.name)))?;
        }
        match array.data_type() {
            DataType::Boolean => patch_bits(&array, cells),
            DataType::Utf8 => patch_bytes::<Utf8Type>(&array, cells),
            DataType::Binary => patch_bytes::<BinaryType>(&array, cells),
            _ => patch_fixed(array, cells),
        }
    }
}

fn index(row: u32) -> usize {
    usize::try_from(row).unwrap_or(usize::MAX)
}

/// The null bitmap after the changes.
fn patch_nulls(nulls: Option<&NullBuffer>, rows: usize, cells: Cells<'_, '_>) -> Option<NullBuffer> {
    if nulls.is_none() && cells.iter().all(|(_, cell)| cell.is_some()) {
        return None;
    }
    let mut bits = BooleanBufferBuilder::new(rows);
    match nulls {
        Some(nulls) => bits.append_buffer(nulls.inner()),
        None => bits.append_n(rows, true),
    }
    for (row, cell) in cells {
        if index(*row) < rows {
            bits.set_bit(index(*row), cell.is_some());
        }
    }
    Some(NullBuffer::new(bits.finish())).filter(|n| n.null_count() > 0)
}

fn patch_bits(array: &ArrayRef, cells: Cells<'_, '_>) -> Result<ArrayRef> {
    let array = array.as_boolean();
    let mut bits = BooleanBufferBuilder::new(array.len());
    bits.append_buffer(array.values());
    for (row, cell) in cells {
        if index(*row) < array.len() {
            bits.set_bit(index(*row), cell.and_then(<[u8]>::first).is_some_and(|b| *b != 0));
        }
    }
    let values: BooleanBuffer = bits.finish();
    Ok(Arc::new(BooleanArray::new(values, patch_nulls(array.nulls(), array.len(), cells))))
}

/// Writes cells into the values' buffer: in place if the array owns it alone, else into a copy.
fn patch_fixed(array: ArrayRef, cells: Cells<'_, '_>) -> Result<ArrayRef> {
    let (data_type, rows) = (array.data_type().clone(), array.len());
    let width = arrow_width(&data_type)
        .ok_or_else(|| Error::unsupported(format!("changed values of type {data_type}")))?;
    let nulls = patch_nulls(array.nulls(), rows, cells);
    let data = array.to_data();
    drop(array);
    let (start, end) = (data.offset().saturating_mul(width), (data.offset() + rows).saturating_mul(width));
    let buffer = data.buffers().first().cloned().unwrap_or_default();
    let whole = data.offset() == 0 && buffer.len() >= end;
    drop(data);
    let mut values: MutableBuffer = match if whole { buffer.into_mutable() } else { Err(buffer) } {
        Ok(mutable) => mutable,
        Err(shared) => {
            let mut copy = MutableBuffer::new(end.saturating_sub(start));
            copy.extend_from_slice(shared.as_slice().get(start..end).unwrap_or_default());
            copy
        }
    };
    let slots = values.as_slice_mut();
    for (row, cell) in cells {
        let at = index(*row).saturating_mul(width);
        let (Some(slot), Some(cell)) = (slots.get_mut(at..at.saturating_add(width)), cell) else { continue };
        if cell.len() == width {
            slot.copy_from_slice(cell);
        } else {
            slot.iter_mut().zip(widen(cell, width)).for_each(|(s, b)| *s = b);
        }
    }
    let data = ArrayDataBuilder::new(data_type).len(rows).add_buffer(values.into()).nulls(nulls);
    Ok(arrow_array::make_array(data.build().map_err(arrow_error)?))
}

/// Copies the unchanged values in runs.
fn patch_bytes<T: ByteArrayType<Offset = i32>>(array: &ArrayRef, cells: Cells<'_, '_>) -> Result<ArrayRef> {
    let array = array.as_bytes::<T>();
    // Only the last cell of each row is kept; a stable sort by row preserves the order of a row's cells.
    let mut sorted: Vec<RowCell<'_>> = Vec::new();
    let last = if cells.is_sorted_by_key(|(row, _)| *row) {
        cells
    } else {
        sorted.extend_from_slice(cells);
        sorted.sort_by_key(|(row, _)| *row);
        &sorted
    };
    let (offsets, values) = (array.value_offsets(), array.value_data());
    let added: usize = last.iter().filter_map(|(_, c)| c.map(<[u8]>::len)).sum();
    let all = values.len().saturating_add(added);
    check_batch("changed values", array.len(), all as u64)?;
    let mut out: Vec<u8> = Vec::with_capacity(all);
    let mut ends: Vec<i32> = Vec::with_capacity(array.len() + 1);
    ends.push(0);
    let mut at = 0;
    let mut cells = last.iter().peekable();
    while let Some((row, cell)) = cells.next() {
        if cells.peek().is_some_and(|(next, _)| next == row) || index(*row) >= array.len() {
            continue;
        }
        copy_run(offsets.get(at..=index(*row)), values, &mut out, &mut ends)?;
        out.extend_from_slice(cell.unwrap_or_default());
        ends.push(end_of(&out)?);
        at = index(*row) + 1;
    }
    copy_run(offsets.get(at..), values, &mut out, &mut ends)?;
    let nulls = patch_nulls(array.nulls(), array.len(), last);
    strings(ends, out, nulls, T::DATA_TYPE == DataType::Utf8).map_err(|e| e.within("changed values"))
}

fn end_of(out: &[u8]) -> Result<i32> {
    i32::try_from(out.len()).map_err(|_| Error::batch_too_long("changed values", out.len() as u64))
}

/// Appends the values from the first to the last of `offsets` to `out`, and their ends to `ends`.
fn copy_run(offsets: Option<&[i32]>, values: &[u8], out: &mut Vec<u8>, ends: &mut Vec<i32>) -> Result<()> {
    let Some([first, rest @ ..]) = offsets else { return Ok(()) };
    let Some(last) = rest.last() else { return Ok(()) };
    let place = |o: i32| usize::try_from(o).unwrap_or(usize::MAX);
    let moved = end_of(out)?.checked_sub(*first);
    let moved = moved.ok_or_else(|| Error::batch_too_long("changed values", out.len() as u64))?;
    out.extend_from_slice(values.get(place(*first)..place(*last)).unwrap_or_default());
    end_of(out)?;
    ends.extend(rest.iter().map(|end| end.wrapping_add(moved)));
    Ok(())
}
