//! The hash of each value of an array, as the target's type holds it.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RunArray, UnionArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields};
use coldframe_core::Result;
use coldframe_encoding::hash::city64;

use coldframe_encoding::hash::splitmix64;

use super::absent::{LOST, NULL, mismatch};
use super::numbers;

/// Where the hash of something nested begins.
const NESTED: u64 = 0x632b_e59b_d9b4_e019;

/// How many values are null, those of a dictionary's null entries too. The struct that stands for a union never is: the branch
/// of its tag may be.
pub(super) fn nulls(array: &ArrayRef) -> u64 {
    if matches!(array.data_type(), DataType::Union(_, _)) { 0 } else { array.logical_null_count() as u64 }
}

/// One hash for each value, nulls included.
pub(super) fn hashes(array: &dyn Array, target: &DataType) -> Result<Vec<u64>> {
    match array.data_type() {
        DataType::Null => Ok(vec![NULL; array.len()]),
        DataType::Dictionary(_, _) => dictionary(array, target),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(array, target),
            DataType::Int32 => runs::<Int32Type>(array, target),
            _ => runs::<Int64Type>(array, target),
        },
        _ => {
            let mut hashes = present(array, target)?;
            mark_nulls(&mut hashes, array.nulls());
            Ok(hashes)
        }
    }
}

fn mark_nulls(hashes: &mut [u64], nulls: Option<&NullBuffer>) {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return };
    for (hash, valid) in hashes.iter_mut().zip(nulls.iter()) {
        *hash = if valid { *hash } else { NULL };
    }
}

/// Each entry once, however often it stands there.
fn dictionary(array: &dyn Array, target: &DataType) -> Result<Vec<u64>> {
    let dictionary = array.as_any_dictionary();
    let entries = hashes(dictionary.values(), target)?;
    if entries.is_empty() {
        return Ok(vec![NULL; array.len()]);
    }
    let keys = dictionary.normalized_keys();
    let mut found: Vec<u64> = keys.iter().map(|key| entries.get(*key).copied().unwrap_or(NULL)).collect();
    mark_nulls(&mut found, dictionary.keys().nulls());
    Ok(found)
}

fn runs<T: arrow_array::types::RunEndIndexType>(array: &dyn Array, target: &DataType) -> Result<Vec<u64>> {
    let Some(runs) = array.as_any().downcast_ref::<RunArray<T>>() else {
        return Err(mismatch(array.data_type(), target));
    };
    let values = hashes(runs.values(), target)?;
    let value = |row| values.get(runs.get_physical_index(row)).copied().unwrap_or(NULL);
    Ok((0..array.len()).map(value).collect())
}

/// Of an array without its nulls: what they have is chance, the caller overwrites it.
fn present(array: &dyn Array, target: &DataType) -> Result<Vec<u64>> {
    match target {
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => bytes(array, target),
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::ListView(child)
        | DataType::LargeListView(child)
        | DataType::FixedSizeList(child, _) => list(array, child, target),
        DataType::Map(entries, _) => map(array, entries, target),
        DataType::Struct(fields) => match array.as_any().downcast_ref::<UnionArray>() {
            Some(union) => branches(union, fields, target),
            None => structure(array, fields, target),
        },
        _ => numbers::hashes(array, target),
    }
}

fn bytes(array: &dyn Array, target: &DataType) -> Result<Vec<u64>> {
    fn of<'a, B: AsRef<[u8]> + ?Sized + 'a>(values: impl Iterator<Item = Option<&'a B>>) -> Vec<u64> {
        values.map(|value| value.map_or(NULL, |bytes| city64(bytes.as_ref()))).collect()
    }
    Ok(match array.data_type() {
        DataType::Utf8 => of(array.as_string::<i32>().iter()),
        DataType::LargeUtf8 => of(array.as_string::<i64>().iter()),
        DataType::Utf8View => of(array.as_string_view().iter()),
        DataType::Binary => of(array.as_binary::<i32>().iter()),
        DataType::LargeBinary => of(array.as_binary::<i64>().iter()),
        DataType::BinaryView => of(array.as_binary_view().iter()),
        DataType::FixedSizeBinary(_) => of(array.as_fixed_size_binary().iter()),
        found => return Err(mismatch(found, target)),
    })
}

/// Elements count by their place in the list.
fn folded(elements: &[u64]) -> u64 {
    elements
        .iter()
        .fold(splitmix64(elements.len() as u64 ^ NESTED), |hash, element| splitmix64(hash ^ element))
}

/// From the offsets of lists and the hashes of the elements that they span, from the first on.
fn folds<'a>(offsets: impl Iterator<Item = (usize, usize)> + 'a, elements: &'a [u64]) -> Vec<u64> {
    offsets.map(|(start, end)| folded(elements.get(start..end).unwrap_or_default())).collect()
}

/// The ranges that offsets stand for, counted from the first, and what they span.
fn spans<O: arrow_array::OffsetSizeTrait>(offsets: &[O]) -> (Vec<(usize, usize)>, usize, usize) {
    let first = offsets.first().map_or(0, |o| o.as_usize());
    let last = offsets.last().map_or(0, |o| o.as_usize());
    let pairs = offsets.iter().zip(offsets.get(1..).unwrap_or_default());
    let pairs = pairs.map(|(a, b)| (a.as_usize() - first, b.as_usize() - first)).collect();
    (pairs, first, last - first)
}

fn list(array: &dyn Array, child: &Field, target: &DataType) -> Result<Vec<u64>> {
    fn offset<O: arrow_array::OffsetSizeTrait>(array: &dyn Array, child: &DataType) -> Result<Vec<u64>> {
        let list = array.as_list::<O>();
        let (pairs, first, len) = spans(list.value_offsets());
        let elements = hashes(&list.values().slice(first, len), child)?;
        Ok(folds(pairs.into_iter(), &elements))
    }
    fn view<O: arrow_array::OffsetSizeTrait>(array: &dyn Array, child: &DataType) -> Result<Vec<u64>> {
        let list = array.as_list_view::<O>();
        let elements = hashes(list.values(), child)?;
        let places = list.value_offsets().iter().zip(list.value_sizes());
        Ok(folds(places.map(|(at, n)| (at.as_usize(), at.as_usize() + n.as_usize())), &elements))
    }
    let child = child.data_type();
    match array.data_type() {
        DataType::List(_) => offset::<i32>(array, child),
        DataType::LargeList(_) => offset::<i64>(array, child),
        DataType::ListView(_) => view::<i32>(array, child),
        DataType::LargeListView(_) => view::<i64>(array, child),
        DataType::FixedSizeList(_, _) => {
            let list = array.as_fixed_size_list();
            let elements = hashes(list.values(), child)?;
            let size = elements.len().checked_div(array.len()).unwrap_or(0);
            Ok((0..array.len())
                .map(|row| folded(elements.get(row * size..(row + 1) * size).unwrap_or_default()))
                .collect())
        }
        found => Err(mismatch(found, target)),
    }
}

fn map(array: &dyn Array, entries: &Field, target: &DataType) -> Result<Vec<u64>> {
    let (DataType::Map(_, _), DataType::Struct(fields)) = (array.data_type(), entries.data_type()) else {
        return Err(mismatch(array.data_type(), target));
    };
    let [key, value] = fields.as_ref() else { return Err(mismatch(array.data_type(), target)) };
    let map = array.as_map();
    let (pairs, first, len) = spans(map.value_offsets());
    let keys = hashes(&map.keys().slice(first, len), key.data_type())?;
    let values = hashes(&map.values().slice(first, len), value.data_type())?;
    let both: Vec<u64> =
        keys.iter().zip(&values).map(|(key, value)| splitmix64(splitmix64(NESTED ^ key) ^ value)).collect();
    Ok(folds(pairs.into_iter(), &both))
}

/// Fields by their names; one that is not there is null in each row.
fn structure(array: &dyn Array, fields: &Fields, target: &DataType) -> Result<Vec<u64>> {
    let DataType::Struct(own) = array.data_type() else {
        return Err(mismatch(array.data_type(), target));
    };
    let columns = array.as_struct();
    let same = own.len() == fields.len() && own.iter().zip(fields).all(|(a, b)| a.name() == b.name());
    if !same && own.iter().any(|field| fields.find(field.name()).is_none()) {
        return Err(mismatch(array.data_type(), target));
    }
    let mut rows = vec![NESTED; array.len()];
    for (place, field) in fields.iter().enumerate() {
        let column = if same { columns.columns().get(place) } else { columns.column_by_name(field.name()) };
        let hashes = match column {
            Some(column) => hashes(column, field.data_type())?,
            None => vec![NULL; array.len()],
        };
        rows.iter_mut().zip(&hashes).for_each(|(row, hash)| *row = splitmix64(*row ^ hash));
    }
    Ok(rows)
}

/// A union as the struct of a tag and a field for each branch, which stands for it where unions are unknown.
fn branches(union: &UnionArray, fields: &Fields, target: &DataType) -> Result<Vec<u64>> {
    let DataType::Union(own, _) = union.data_type() else {
        return Err(mismatch(union.data_type(), target));
    };
    if fields.len() != own.len() + 1 {
        return Err(mismatch(union.data_type(), target));
    }
    let ids = union.type_ids();
    let tag = |id: &i8| own.iter().position(|(code, _)| code == *id).map_or(LOST, |at| splitmix64(at as u64));
    let mut rows: Vec<u64> = ids.iter().map(|id| splitmix64(NESTED ^ tag(id))).collect();
    for ((code, _), field) in own.iter().zip(fields.iter().skip(1)) {
        let values = hashes(union.child(code), field.data_type())?;
        for (row, (hash, id)) in rows.iter_mut().zip(ids).enumerate() {
            let value = if *id == code { values.get(union.value_offset(row)).copied() } else { None };
            *hash = splitmix64(*hash ^ value.unwrap_or(NULL));
        }
    }
    Ok(rows)
}
