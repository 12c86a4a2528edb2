//! Reads `array`, `map`, `struct` and `uniontype`: values between separators.
//!
//! ```text
//! array       element ^B element ^B element          no bytes: no elements
//! map         key ^C value ^B key ^C value           an entry without ^C has the value null
//! struct      field ^B field                         missing fields are null, further ones are dropped
//! uniontype   tag ^B value
//! ```
//!
//! Each level uses the next separator (a map uses two). An entry whose key is null, does not parse or is repeated is
//! dropped. A union whose tag names no branch makes Hive throw an exception; this reader returns null. Each
//! level is split for the whole column at once, and its parts are decoded as a column. Sources: Hive's
//! `LazyArray`, `LazyMap`, `LazyStruct`, `LazyUnion`.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, UnionArray};
use arrow_buffer::{BooleanBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field};
use arrow_select::concat::concat;
use coldframe_encoding::{Error, Result};

use super::TextDecoder;
use super::cells::{Cell, CellParts, CellSource, Validity};
use super::fixed::Parse;
use super::integer::Integer;
use crate::hive_type::{HiveType, map_entries, struct_fields, union_fields};

impl TextDecoder {
    fn separator(&self, level: usize) -> Result<u8> {
        // The separators were checked when the decoder was created.
        self.options
            .separators
            .get(level)
            .copied()
            .ok_or_else(|| Error::unsupported("text nested this deeply"))
    }

    /// The end of the part of `data[start..end]` that begins at `start`: the first unescaped separator.
    #[inline]
    fn part_end(&self, data: &[u8], start: usize, end: usize, separator: u8) -> usize {
        let part = data.get(start..end).unwrap_or_default();
        let Some(escape) = self.options.escape else {
            return memchr::memchr(separator, part).map_or(end, |at| start + at);
        };
        let mut at = 0;
        while let Some(&byte) = part.get(at) {
            if byte == separator {
                return start + at;
            }
            // The separator is checked first: in Hive, too, it wins over an equal escape.
            at += if byte == escape && at + 1 < part.len() { 2 } else { 1 };
        }
        end
    }

    fn is_null(&self, cell: Option<Cell<'_>>) -> bool {
        cell.is_none_or(|c| c.len == self.options.null_format.len() && c.bytes() == self.options.null_format)
    }

    pub(super) fn list<S: CellSource>(
        &self,
        element: &HiveType,
        source: &S,
        level: usize,
    ) -> Result<ArrayRef> {
        let separator = self.separator(level)?;
        // An extended boolean depends on the values before it.
        let most = if self.options.extended_boolean { usize::MAX } else { PARTS_AT_ONCE };
        let mut parts = CellParts::new(source.data(), source.len().min(most));
        let mut rows = Rows::new(source.len());
        let (mut decoded, mut arrays) = (0, Vec::new());
        for ((start, end), cell) in source.ranges().zip(source.cells()) {
            let null = self.is_null(cell);
            if !null && start < end {
                let mut at = start;
                loop {
                    let part_end = self.part_end(source.data(), at, end, separator);
                    parts.push(at, part_end);
                    if parts.len() >= most {
                        arrays.push(self.values(element, &parts, level + 1)?);
                        decoded += parts.len();
                        parts.clear();
                    }
                    if part_end >= end {
                        break;
                    }
                    at = part_end + 1;
                }
            }
            rows.end(!null, decoded + parts.len())?;
        }
        arrays.push(self.values(element, &parts, level + 1)?);
        let values = joined(&arrays)?;
        let field = Arc::new(Field::new("item", element.to_arrow(self.unit), true));
        let (offsets, nulls) = rows.finish();
        Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls).map_err(unexpected)?))
    }

    pub(super) fn map<S: CellSource>(
        &self,
        key: &HiveType,
        value: &HiveType,
        source: &S,
        level: usize,
    ) -> Result<ArrayRef> {
        let (separator, key_separator) = (self.separator(level)?, self.separator(level + 1)?);
        let mut keys = CellParts::new(source.data(), source.len());
        let mut values = CellParts::new(source.data(), source.len());
        let mut rows = Rows::new(source.len());
        for ((start, end), cell) in source.ranges().zip(source.cells()) {
            let null = self.is_null(cell);
            if !null && start < end {
                let mut at = start;
                loop {
                    let entry_end = self.part_end(source.data(), at, end, separator);
                    let key_end = self.part_end(source.data(), at, entry_end, key_separator);
                    keys.push(at, key_end);
                    if key_end < entry_end {
                        values.push(key_end + 1, entry_end);
                    } else {
                        values.push_missing();
                    }
                    if entry_end >= end {
                        break;
                    }
                    at = entry_end + 1;
                }
            }
            rows.end(!null, keys.len())?;
        }
        let key_array = self.values(key, &keys, level + 2)?;
        let keep = first_of_each_key(&key_array.to_data(), &rows.offsets);
        let (keys, values) = match keep.count_set_bits() == keep.len() {
            true => (key_array, self.values(value, &values, level + 2)?),
            false => {
                rows.keep(&keep)?;
                (
                    self.values(key, &keys.filter(&keep), level + 2)?,
                    self.values(value, &values.filter(&keep), level + 2)?,
                )
            }
        };
        let entries = map_entries(key, value, self.unit);
        let DataType::Struct(fields) = entries.data_type().clone() else {
            return Err(Error::schema("map entries that are not a struct"));
        };
        let entry_array = StructArray::try_new(fields, vec![keys, values], None).map_err(unexpected)?;
        let (offsets, nulls) = rows.finish();
        Ok(Arc::new(MapArray::try_new(entries, offsets, entry_array, nulls, false).map_err(unexpected)?))
    }

    pub(super) fn structure<S: CellSource>(
        &self,
        fields: &[(String, HiveType)],
        source: &S,
        level: usize,
    ) -> Result<ArrayRef> {
        let separator = self.separator(level)?;
        let mut columns: Vec<_> =
            fields.iter().map(|_| CellParts::new(source.data(), source.len())).collect();
        let mut validity = Validity::with_capacity(source.len());
        let last = fields.len().saturating_sub(1);
        for ((start, end), cell) in source.ranges().zip(source.cells()) {
            let null = self.is_null(cell);
            validity.push(!null);
            let mut at = (!null).then_some(start);
            for (i, column) in columns.iter_mut().enumerate() {
                let Some(part_start) = at else {
                    column.push_missing();
                    continue;
                };
                let takes_rest = i == last && self.options.last_takes_rest;
                let part_end =
                    if takes_rest { end } else { self.part_end(source.data(), part_start, end, separator) };
                column.push(part_start, part_end);
                at = (part_end < end).then_some(part_end + 1);
            }
        }
        let arrays = fields
            .iter()
            .zip(&columns)
            .map(|((_, t), parts)| self.values(t, parts, level + 1))
            .collect::<Result<Vec<_>>>()?;
        let nulls = validity.finish();
        let array =
            StructArray::try_new_with_length(struct_fields(fields, self.unit), arrays, nulls, source.len());
        Ok(Arc::new(array.map_err(unexpected)?))
    }

    pub(super) fn union<S: CellSource>(
        &self,
        branches: &[HiveType],
        source: &S,
        level: usize,
    ) -> Result<ArrayRef> {
        let separator = self.separator(level)?;
        let mut columns: Vec<_> =
            branches.iter().map(|_| CellParts::new(source.data(), source.len())).collect();
        let mut ids = Vec::with_capacity(source.len());
        for ((start, end), cell) in source.ranges().zip(source.cells()) {
            let tag_end = self.part_end(source.data(), start, end, separator);
            let selected = cell.filter(|_| !self.is_null(cell) && tag_end < end).and_then(|cell| {
                let tag = Integer::<i8>::new().parse(Cell { rest: cell.rest, len: tag_end - start })?;
                usize::try_from(tag).ok().filter(|t| *t < branches.len()).map(|index| (tag, index))
            });
            ids.push(selected.map_or(0, |(tag, _)| tag));
            for (i, column) in columns.iter_mut().enumerate() {
                match selected {
                    Some((_, index)) if index == i => column.push(tag_end + 1, end),
                    _ => column.push_missing(),
                }
            }
        }
        let arrays = branches
            .iter()
            .zip(&columns)
            .map(|(t, parts)| self.values(t, parts, level + 1))
            .collect::<Result<Vec<_>>>()?;
        let fields = union_fields(branches, self.unit);
        let array = UnionArray::try_new(fields, ScalarBuffer::from(ids), None, arrays);
        Ok(Arc::new(array.map_err(unexpected)?))
    }
}

/// How many elements are decoded at once, so that the places of a long list's elements take little memory.
const PARTS_AT_ONCE: usize = 1 << 20;

/// One array of the values of all arrays.
fn joined(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    match arrays {
        [array] => Ok(array.clone()),
        _ => {
            let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
            concat(&arrays).map_err(unexpected)
        }
    }
}

#[cold]
fn unexpected(e: ArrowError) -> Error {
    Error::corrupt(format!("nested text: {e}"))
}

/// Offsets and validity of lists and maps.
struct Rows {
    offsets: Vec<i32>,
    validity: Validity,
}

impl Rows {
    fn new(len: usize) -> Self {
        let mut offsets = Vec::with_capacity(len + 1);
        offsets.push(0);
        Self { offsets, validity: Validity::with_capacity(len) }
    }

    fn end(&mut self, valid: bool, elements: usize) -> Result<()> {
        let end = i32::try_from(elements)
            .map_err(|_| Error::unsupported("a row group with more than 2^31 elements in a column"))?;
        self.offsets.push(end);
        self.validity.push(valid);
        Ok(())
    }

    /// Counts only the elements that are kept.
    fn keep(&mut self, keep: &BooleanBuffer) -> Result<()> {
        let (mut kept, mut seen) = (0i32, 0usize);
        for offset in self.offsets.iter_mut().skip(1) {
            let end = usize::try_from(*offset).map_err(|_| Error::corrupt("negative offset"))?;
            let surviving = keep.slice(seen, end - seen).count_set_bits();
            kept += i32::try_from(surviving).map_err(|_| Error::corrupt("more elements than were read"))?;
            seen = end;
            *offset = kept;
        }
        Ok(())
    }

    fn finish(self) -> (OffsetBuffer<i32>, Option<arrow_buffer::NullBuffer>) {
        (OffsetBuffer::new(self.offsets.into()), self.validity.finish())
    }
}

/// Marks the entries whose key is not null and not a repetition in the same map.
fn first_of_each_key(keys: &ArrayData, offsets: &[i32]) -> BooleanBuffer {
    let mut keep = Validity::with_capacity(keys.len());
    let mut seen: HashSet<&[u8]> = HashSet::new();
    for row in offsets.windows(2) {
        let &[start, end] = row else { continue };
        let entries = usize::try_from(start).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
        // Most maps are small: a linear search is faster than hashing.
        let hashed = entries.len() > 16;
        seen.clear();
        for i in entries.clone() {
            let is_first = match key_bytes(keys, i).filter(|_| !keys.is_null(i)) {
                Some(key) if hashed => seen.insert(key),
                Some(key) => (entries.start..i).all(|j| keys.is_null(j) || key_bytes(keys, j) != Some(key)),
                None => !keys.is_null(i),
            };
            keep.push(is_first);
        }
    }
    keep.into_bits()
}

/// The bytes of a key, which are equal if and only if the keys are equal; `None` for a type whose keys are
/// not compared.
fn key_bytes(keys: &ArrayData, i: usize) -> Option<&[u8]> {
    match keys.data_type() {
        DataType::Utf8 | DataType::Binary => {
            let [offsets, values] = keys.buffers() else { return None };
            let offsets = offsets.typed_data::<i32>();
            let at = |i: usize| offsets.get(i).and_then(|o| usize::try_from(*o).ok());
            values.as_slice().get(at(i)?..at(i + 1)?)
        }
        DataType::Boolean => {
            let byte = keys.buffers().first()?.get(i / 8)?;
            Some(if byte >> (i % 8) & 1 == 1 { &[1] } else { &[0] })
        }
        other => {
            let width = other.primitive_width()?;
            keys.buffers().first()?.get(i * width..(i + 1) * width)
        }
    }
}
