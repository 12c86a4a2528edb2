//! Reads `array`, `map`, `struct`, `uniontype`: the elements are gathered into cells, which the element types
//! decode.

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, MapArray, StructArray, UnionArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field, FieldRef, Fields, UnionFields};
use coldframe_encoding::{Cursor, Error, Limits, Result};

use super::cells::{CellError, Elements, Run, Values, at};
use super::framing::Framing;
use super::{elements, values};
use crate::hive_type::{HiveType, map_entries, struct_fields, union_fields};
use crate::serde::SerdeOptions;
use crate::serde::expansion::element_bytes;

pub(super) struct List {
    field: FieldRef,
    element: Box<dyn Values>,
    element_bytes: u64,
    limits: Limits,
}

impl List {
    pub(super) fn new(element: &HiveType, options: &SerdeOptions) -> Result<Self> {
        let field = Arc::new(Field::new("item", element.to_arrow(options.timestamp_unit), true));
        let (element_bytes, limits) = (element_bytes(element), options.limits);
        Ok(Self { field, element: values(element, options)?, element_bytes, limits })
    }

    fn gather(&self, mut cell: Cursor<'_>, elements: &mut Elements) -> Result<()> {
        let (count, bits) = counted(&mut cell, 1)?;
        let framing = self.element.framing();
        for i in 0..count {
            match bit(bits, i) {
                true => elements.push(framing.take(&mut cell)?),
                false => elements.push_null(),
            }
        }
        check_end_of_list(&cell, count)
    }
}

impl Values for List {
    fn framing(&self) -> Framing {
        Framing::Size
    }

    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        elements::check(run, self.element_bytes, &self.limits).map_err(|e| CellError::new(0, e))?;
        let mut elements = Elements::with_capacity(run.len(), run.bytes().len());
        let offsets = gather_lists(run, |cell| {
            self.gather(cell, &mut elements)?;
            Ok(elements.len())
        })?;
        let items = elements.decode(&*self.element).map_err(|e| outer(&offsets, e))?;
        let list = ListArray::try_new(self.field.clone(), offsets, items, run.nulls.clone());
        Ok(Arc::new(list.map_err(impossible)?))
    }
}

pub(super) struct Map {
    entries: FieldRef,
    key: Box<dyn Values>,
    value: Box<dyn Values>,
}

impl Map {
    pub(super) fn new(key: &HiveType, value: &HiveType, options: &SerdeOptions) -> Result<Self> {
        let entries = map_entries(key, value, options.timestamp_unit);
        Ok(Self { entries, key: values(key, options)?, value: values(value, options)? })
    }

    /// Leaves out entries whose key is null, as Hive does.
    fn gather(&self, mut cell: Cursor<'_>, keys: &mut Elements, elements: &mut Elements) -> Result<()> {
        let (count, bits) = counted(&mut cell, 2)?;
        let (key_framing, framing) = (self.key.framing(), self.value.framing());
        for i in 0..count {
            let key = if bit(bits, 2 * i) { Some(key_framing.take(&mut cell)?) } else { None };
            let value = if bit(bits, 2 * i + 1) { Some(framing.take(&mut cell)?) } else { None };
            if let Some(key) = key {
                keys.push(key);
                match value {
                    Some(value) => elements.push(value),
                    None => elements.push_null(),
                }
            }
        }
        check_end_of_list(&cell, count)
    }
}

impl Values for Map {
    fn framing(&self) -> Framing {
        Framing::Size
    }

    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        let mut keys = Elements::with_capacity(run.len(), run.bytes().len() / 2);
        let mut elements = Elements::with_capacity(run.len(), run.bytes().len() / 2);
        let offsets = gather_lists(run, |cell| {
            self.gather(cell, &mut keys, &mut elements)?;
            Ok(keys.len())
        })?;
        let keys = keys.decode(&*self.key).map_err(|e| outer(&offsets, e))?;
        if let Some(i) = keys.nulls().and_then(|n| (0..n.len()).find(|i| n.is_null(*i))) {
            // Only a decimal that does not fit its type can be null here.
            return Err(outer(
                &offsets,
                CellError::new(i, Error::corrupt("a map's key does not fit its type")),
            ));
        }
        let elements = elements.decode(&*self.value).map_err(|e| outer(&offsets, e))?;
        let fields = match self.entries.data_type() {
            arrow_schema::DataType::Struct(fields) => fields.clone(),
            _ => Fields::empty(),
        };
        let entries = StructArray::try_new(fields, vec![keys, elements], None).map_err(impossible)?;
        let map = MapArray::try_new(self.entries.clone(), offsets, entries, run.nulls.clone(), false);
        Ok(Arc::new(map.map_err(impossible)?))
    }
}

pub(super) struct Struct {
    fields: Fields,
    children: Vec<Box<dyn Values>>,
}

impl Struct {
    pub(super) fn new(fields: &[(String, HiveType)], options: &SerdeOptions) -> Result<Self> {
        let children = fields.iter().map(|(_, t)| values(t, options)).collect::<Result<_>>()?;
        Ok(Self { fields: struct_fields(fields, options.timestamp_unit), children })
    }

    fn gather(&self, mut cell: Cursor<'_>, elements: &mut [Elements]) -> Result<()> {
        let mut bits = cell.u8()?;
        for (i, (child, elements)) in self.children.iter().zip(elements).enumerate() {
            if i > 0 && i % 8 == 0 {
                // A struct that was written with fewer fields ends here.
                bits = if cell.is_empty() { 0 } else { cell.u8()? };
            }
            if bits >> (i % 8) & 1 == 1 {
                elements.push(child.framing().take(&mut cell)?);
            } else {
                elements.push_null();
            }
        }
        Ok(())
    }
}

impl Values for Struct {
    fn framing(&self) -> Framing {
        Framing::Size
    }

    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        let share = run.bytes().len() / self.children.len().max(1);
        let mut elements: Vec<Elements> =
            self.children.iter().map(|_| Elements::with_capacity(run.len(), share)).collect();
        for (i, cell) in run.cells().enumerate() {
            if run.is_null(i) {
                elements.iter_mut().for_each(Elements::push_null);
            } else {
                self.gather(Cursor::new(cell, 0), &mut elements).map_err(|e| CellError::new(i, e))?;
            }
        }
        let arrays = elements.into_iter().zip(&self.children).map(|(e, child)| e.decode(&**child));
        let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        let array =
            StructArray::try_new_with_length(self.fields.clone(), arrays, run.nulls.clone(), run.len());
        Ok(Arc::new(array.map_err(impossible)?))
    }
}

pub(super) struct Union {
    fields: UnionFields,
    branches: Vec<Box<dyn Values>>,
}

impl Union {
    pub(super) fn new(branches: &[HiveType], options: &SerdeOptions) -> Result<Self> {
        let fields = union_fields(branches, options.timestamp_unit);
        let branches = branches.iter().map(|t| values(t, options)).collect::<Result<_>>()?;
        Ok(Self { fields, branches })
    }

    /// Splits a cell into tag and element; `None` if nothing follows the tag.
    fn split<'a>(&self, mut cell: Cursor<'a>) -> Result<(i8, Option<&'a [u8]>)> {
        let tag = cell.u8()?;
        let Some(branch) = self.branches.get(usize::from(tag)) else {
            let n = self.branches.len();
            return Err(Error::corrupt(format!(
                "expected a tag of 0 to {}, found {tag}",
                n.saturating_sub(1)
            )));
        };
        let element = if cell.is_empty() { None } else { Some(branch.framing().take(&mut cell)?) };
        cell.finish()?;
        Ok((i8::try_from(tag).unwrap_or(i8::MAX), element))
    }
}

impl Values for Union {
    fn framing(&self) -> Framing {
        Framing::Size
    }

    /// Arrow's unions have no nulls, so a null becomes a null of the first branch.
    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        let mut tags: Vec<i8> = Vec::with_capacity(run.len());
        let mut elements: Vec<Elements> =
            self.branches.iter().map(|_| Elements::with_capacity(run.len(), 0)).collect();
        for (i, cell) in run.cells().enumerate() {
            let (tag, element) = match run.is_null(i) {
                true => (0, None),
                false => self.split(Cursor::new(cell, 0)).map_err(|e| CellError::new(i, e))?,
            };
            tags.push(tag);
            for (branch, elements) in (0..).zip(&mut elements) {
                match element {
                    Some(bytes) if branch == tag => elements.push(bytes),
                    _ => elements.push_null(),
                }
            }
        }
        let arrays = elements.into_iter().zip(&self.branches).map(|(e, branch)| e.decode(&**branch));
        let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        let array = UnionArray::try_new(self.fields.clone(), tags.into(), None, arrays);
        Ok(Arc::new(array.map_err(impossible)?))
    }
}

/// Reads the count at the start of a list or map, and its bitmap of `bits_each` bits for each element.
fn counted<'a>(cell: &mut Cursor<'a>, bits_each: usize) -> Result<(usize, &'a [u8])> {
    let count = cell.hadoop_vint()?;
    let Ok(count) = usize::try_from(count) else {
        return Err(Error::corrupt(format!("expected a count of 0 or more, found {count}")));
    };
    let bits = cell.take(count.saturating_mul(bits_each).div_ceil(8))?;
    Ok((count, bits))
}

/// Checks that nothing follows the elements. After an empty list Trino writes a bitmap byte, which Hive ignores.
fn check_end_of_list(cell: &Cursor<'_>, count: usize) -> Result<()> {
    if count == 0 { Ok(()) } else { cell.finish() }
}

fn bit(bits: &[u8], i: usize) -> bool {
    bits.get(i / 8).is_some_and(|b| b >> (i % 8) & 1 == 1)
}

/// Gathers the elements of each non-null cell; `gather` returns the total so far.
fn gather_lists(
    run: &Run<'_>,
    mut gather: impl FnMut(Cursor<'_>) -> Result<usize>,
) -> Result<OffsetBuffer<i32>, CellError> {
    let mut offsets = Vec::with_capacity(run.len() + 1);
    let mut end = 0i32;
    offsets.push(end);
    for (i, cell) in run.cells().enumerate() {
        if !run.is_null(i) {
            let gathered = gather(Cursor::new(cell, 0)).map_err(|e| CellError::new(i, e))?;
            let too_many = || Error::corrupt(format!("{gathered} elements are too many for one row group"));
            end = i32::try_from(gathered).map_err(|_| CellError::new(i, too_many()))?;
        }
        offsets.push(end);
    }
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

/// Turns the error of an element into an error of the list that contains it.
fn outer(offsets: &OffsetBuffer<i32>, e: CellError) -> CellError {
    let starts_before = offsets.partition_point(|o| at(*o) <= e.index);
    CellError { index: starts_before.saturating_sub(1), error: e.error }
}

/// The error if Arrow refuses arrays that have the right lengths and types.
#[cold]
fn impossible(e: ArrowError) -> CellError {
    CellError::new(0, Error::schema(e.to_string()))
}
