//! Converts lists, maps and structs, and converts unions to the structs that represent them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::arrays::{self, window};
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListViewArray, Int32Array, ListArray, MapArray,
    OffsetSizeTrait, StructArray, UInt32Array, UnionArray,
};
use arrow_buffer::{ArrowNativeType, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use arrow_select::take::take;

use super::{Column, check_values, declared, retyped, unfit};

/// Fields are matched by name, in any order, or by position if a name occurs twice.
pub(super) fn structure(array: &ArrayRef, fields: &Fields, column: Column<'_>) -> Result<ArrayRef> {
    let structs = array.as_struct();
    let children = chosen(structs, fields, column)?;
    let children = children.into_iter().zip(fields).map(|(child, field)| {
        // The children are sliced like their parent, but without the parent's nulls, as the new parent
        // requires.
        retyped(child, field.data_type(), column.field(field.name()))
    });
    assembled(fields, children.collect::<Result<_>>()?, structs.nulls(), structs.len(), column)
}

/// The struct's children that the target has, in the target's order.
fn chosen<'a>(structs: &'a StructArray, fields: &Fields, column: Column<'_>) -> Result<Vec<&'a ArrayRef>> {
    let names: Vec<&str> = structs.fields().iter().map(|field| field.name().as_str()).collect();
    let wanted: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
    if names == wanted {
        return Ok(structs.columns().iter().collect());
    }
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        return Err(Error::schema(format!("column {column}: expected fields {wanted:?}, found {names:?}")));
    }
    let missing: Vec<&str> = wanted.iter().copied().filter(|name| !names.contains(name)).collect();
    if !missing.is_empty() {
        return Err(Error::schema(format!(
            "column {column}: fields {missing:?} are missing, found {names:?}"
        )));
    }
    Ok(wanted.iter().filter_map(|name| structs.column_by_name(name)).collect())
}

fn assembled(
    fields: &Fields,
    children: Vec<ArrayRef>,
    nulls: Option<&NullBuffer>,
    rows: usize,
    column: Column<'_>,
) -> Result<ArrayRef> {
    for (child, field) in children.iter().zip(fields) {
        check_values(child, field, nulls, column.field(field.name()))?;
    }
    let made = StructArray::try_new_with_length(fields.clone(), children, nulls.cloned(), rows);
    Ok(Arc::new(made.map_err(unfit)?))
}

/// Converts lists of any layout to lists with 32-bit offsets.
pub(super) fn list(array: &ArrayRef, child: &FieldRef, column: Column<'_>) -> Result<ArrayRef> {
    let (offsets, values) = elements(array, column)?;
    let values = declared(&values, child, column.field("element"))?;
    let made = ListArray::try_new(child.clone(), offsets, values, array.nulls().cloned());
    Ok(Arc::new(made.map_err(unfit)?))
}

/// The elements of the non-null lists, concatenated.
fn elements(array: &ArrayRef, column: Column<'_>) -> Result<(OffsetBuffer<i32>, ArrayRef)> {
    match array.data_type() {
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            let (start, length, offsets) = window(lists.offsets());
            let offsets = narrowed(offsets.iter().copied(), column)?;
            Ok((offsets, lists.values().slice(start, length)))
        }
        DataType::ListView(_) => viewed(array.as_list_view::<i32>(), column),
        DataType::LargeListView(_) => viewed(array.as_list_view::<i64>(), column),
        DataType::FixedSizeList(_, _) => fixed(array.as_fixed_size_list(), column),
        _ => {
            let lists = array.as_list::<i32>();
            let (start, length, offsets) = window(lists.offsets());
            Ok((offsets, lists.values().slice(start, length)))
        }
    }
}

/// Converts offsets, which must not decrease, to 32 bits.
fn narrowed(offsets: impl Iterator<Item = i64>, column: Column<'_>) -> Result<OffsetBuffer<i32>> {
    let narrow = offsets.map(|offset| i32::try_from(offset).map_err(|_| too_many(column)));
    arrays::offsets(narrow.collect::<Result<_>>()?)
}

fn too_many(column: Column<'_>) -> Error {
    Error::schema(format!("column {column}: lists with more elements than 32-bit offsets can address"))
}

/// Converts list views: lists whose elements may be at any position, in any order.
fn viewed<O: OffsetSizeTrait>(
    lists: &GenericListViewArray<O>,
    column: Column<'_>,
) -> Result<(OffsetBuffer<i32>, ArrayRef)> {
    let places = lists.offsets().iter().zip(lists.sizes()).map(|(at, n)| (at.as_usize(), n.as_usize()));
    gathered(places, lists.values(), lists.nulls(), column)
}

fn fixed(lists: &FixedSizeListArray, column: Column<'_>) -> Result<(OffsetBuffer<i32>, ArrayRef)> {
    let size = lists.value_length().as_usize();
    if lists.null_count() > 0 {
        let places = (0..lists.len()).map(|row| (row * size, size));
        return gathered(places, lists.values(), lists.nulls(), column);
    }
    let offsets = (0..=lists.len()).map(|row| i64::try_from(row * size).unwrap_or(i64::MAX));
    Ok((narrowed(offsets, column)?, lists.values().clone()))
}

/// The elements of the non-null lists at these positions (each a start and a length), in the order of the
/// lists.
fn gathered(
    places: impl Iterator<Item = (usize, usize)> + Clone,
    values: &ArrayRef,
    nulls: Option<&NullBuffer>,
    column: Column<'_>,
) -> Result<(OffsetBuffer<i32>, ArrayRef)> {
    let places = places.enumerate().map(|(row, (at, length))| {
        let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
        (at, if is_null { 0 } else { length })
    });
    // Several views may contain the same elements, so the result can be larger than the input. The elements
    // of the result are counted before memory is allocated.
    let mut end = 0_i32;
    let ends = places.clone().map(|(at, length)| {
        let beyond = at.checked_add(length).is_none_or(|end| end > values.len()) && length > 0;
        let next = i32::try_from(length).ok().and_then(|length| end.checked_add(length));
        end = next.filter(|_| !beyond).ok_or_else(|| too_many(column))?;
        Ok(end)
    });
    let offsets = std::iter::once(Ok(0)).chain(ends).collect::<Result<Vec<i32>>>()?;
    let indices = places.flat_map(|(at, length)| at as u64..(at + length) as u64);
    let indices = arrow_array::UInt64Array::from_iter_values(indices);
    Ok((arrays::offsets(offsets)?, take(values, &indices, None).map_err(unfit)?))
}

pub(super) fn map(
    array: &ArrayRef,
    entries: &FieldRef,
    sorted: bool,
    target: &DataType,
    column: Column<'_>,
) -> Result<ArrayRef> {
    let maps = array.as_map();
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(column.refused(target, array.data_type()));
    };
    let [key, value] = fields.as_ref() else { return Err(column.refused(target, array.data_type())) };
    let (start, length, offsets) = window(maps.offsets());
    let part = |values: &ArrayRef, field: &Field, name| {
        declared(&values.slice(start, length), field, column.field(name))
    };
    let children = vec![part(maps.keys(), key, "key")?, part(maps.values(), value, "value")?];
    let pairs = StructArray::try_new_with_length(fields.clone(), children, None, length).map_err(unfit)?;
    let made = MapArray::try_new(entries.clone(), offsets, pairs, maps.nulls().cloned(), sorted);
    Ok(Arc::new(made.map_err(unfit)?))
}

/// Converts a union to a struct of a tag, which is the number of the branch, and a field for each branch.
pub(super) fn branches(
    array: &ArrayRef,
    fields: &Fields,
    target: &DataType,
    column: Column<'_>,
) -> Result<ArrayRef> {
    let refused = || column.refused(target, array.data_type());
    let union = array.as_union();
    let DataType::Union(own, _) = array.data_type() else { return Err(refused()) };
    let Some((tag, rest)) = fields.split_first().filter(|(_, rest)| rest.len() == own.len()) else {
        return Err(refused());
    };
    let number = |id: &i8| own.iter().position(|(code, _)| code == *id).and_then(|at| i32::try_from(at).ok());
    let tags: ArrayRef = Arc::new(union.type_ids().iter().map(number).collect::<Int32Array>());
    let mut children = vec![retyped(&tags, tag.data_type(), column.field(tag.name()))?];
    for ((code, _), field) in own.iter().zip(rest) {
        children.push(branch(union, code, field, column.field(field.name()))?);
    }
    assembled(fields, children, None, union.len(), column)
}

/// The values of a branch in the rows that have this branch, and nulls in all other rows. Values that belong
/// to no row are not converted.
fn branch(union: &UnionArray, code: i8, field: &Field, column: Column<'_>) -> Result<ArrayRef> {
    let values = union.child(code);
    let mut places = Vec::new(); // of the values that belong to a row
    let mut rows = Vec::with_capacity(union.len()); // the index in `places` of each row's value
    for (row, id) in union.type_ids().iter().enumerate() {
        let place = union.value_offset(row);
        let known = u32::try_from(places.len()).ok();
        match (*id == code, known) {
            (false, _) => rows.push(None),
            (true, Some(_)) if place < values.len() => {
                rows.push(known);
                places.push(place as u64);
            }
            (true, _) => {
                let count = values.len();
                let message = format!(
                    "column {column}: expected a union's branch of more than {place} values, found {count}"
                );
                return Err(Error::schema(message));
            }
        }
    }
    let values = take(values, &arrow_array::UInt64Array::from(places), None).map_err(unfit)?;
    let values = retyped(&values, field.data_type(), column)?;
    take(&values, &UInt32Array::from(rows), None).map_err(unfit)
}
