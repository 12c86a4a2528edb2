//! The hash of each value of an array, in the target's type.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, ByteArrayType, Int16Type, Int32Type, Int64Type, LargeBinaryType, LargeUtf8Type,
    RunEndIndexType, Utf8Type,
};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RunArray, UnionArray};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::{DataType, Field, Fields};
use coldframe_core::Result;
use coldframe_encoding::hash::city64;

use coldframe_encoding::hash::splitmix64;

use super::absent::{LOST, NULL, mismatch};
use super::numbers;

/// The initial hash of a nested value.
const NESTED: u64 = 0x632b_e59b_d9b4_e019;

/// The number of nulls, including references to a dictionary's null entries. The struct that replaces a union is
/// never null, although its branch may be.
pub(super) fn nulls(array: &ArrayRef) -> u64 {
    if matches!(array.data_type(), DataType::Union(_, _)) { 0 } else { array.logical_null_count() as u64 }
}

/// One hash per value, nulls included.
fn hashes(array: &dyn Array, target: &DataType) -> Result<Vec<u64>> {
    let mut hashes = Vec::with_capacity(array.len());
    hash_into(array, target, &mut hashes)?;
    Ok(hashes)
}

/// Like [`hashes`], but overwrites `out`.
pub(super) fn hash_into(array: &dyn Array, target: &DataType, out: &mut Vec<u64>) -> Result<()> {
    out.clear();
    match array.data_type() {
        DataType::Null => out.resize(array.len(), NULL),
        DataType::Dictionary(_, _) => dictionary(array, target, out)?,
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(array, target, out)?,
            DataType::Int32 => runs::<Int32Type>(array, target, out)?,
            _ => runs::<Int64Type>(array, target, out)?,
        },
        _ => {
            present(array, target, out)?;
            mark_nulls(out, array.nulls());
        }
    }
    Ok(())
}

fn mark_nulls(hashes: &mut [u64], nulls: Option<&NullBuffer>) {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return };
    let chunks = nulls.inner().bit_chunks();
    for (hashes, valid) in hashes.chunks_mut(64).zip(chunks.iter_padded()) {
        if valid != u64::MAX {
            for (place, hash) in hashes.iter_mut().enumerate() {
                *hash = if valid >> place & 1 == 1 { *hash } else { NULL };
            }
        }
    }
}

/// Hashes each entry once.
fn dictionary(array: &dyn Array, target: &DataType, out: &mut Vec<u64>) -> Result<()> {
    let dictionary = array.as_any_dictionary();
    let entries = hashes(dictionary.values(), target)?;
    if entries.is_empty() {
        out.resize(array.len(), NULL);
        return Ok(());
    }
    out.extend(dictionary.normalized_keys().iter().map(|key| entries.get(*key).copied().unwrap_or(NULL)));
    mark_nulls(out, dictionary.keys().nulls());
    Ok(())
}

fn runs<T: RunEndIndexType>(array: &dyn Array, target: &DataType, out: &mut Vec<u64>) -> Result<()> {
    let Some(runs) = array.as_any().downcast_ref::<RunArray<T>>() else {
        return Err(mismatch(array.data_type(), target));
    };
    let values = hashes(runs.values(), target)?;
    let value = |row| values.get(runs.get_physical_index(row)).copied().unwrap_or(NULL);
    out.extend((0..array.len()).map(value));
    Ok(())
}

/// Hashes an array whose nulls have arbitrary values; the caller overwrites those hashes.
fn present(array: &dyn Array, target: &DataType, out: &mut Vec<u64>) -> Result<()> {
    match target {
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => bytes(array, target, out),
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::ListView(child)
        | DataType::LargeListView(child)
        | DataType::FixedSizeList(child, _) => list(array, child, target, out),
        DataType::Map(entries, _) => map(array, entries, target, out),
        DataType::Struct(fields) => match array.as_any().downcast_ref::<UnionArray>() {
            Some(union) => branches(union, fields, target, out),
            None => structure(array, fields, target, out),
        },
        _ => numbers::hashes(array, target, out),
    }
}

fn bytes(array: &dyn Array, target: &DataType, out: &mut Vec<u64>) -> Result<()> {
    fn of<'a, B: AsRef<[u8]> + ?Sized + 'a>(values: impl Iterator<Item = Option<&'a B>>, out: &mut Vec<u64>) {
        out.extend(values.map(|value| value.map_or(NULL, |bytes| city64(bytes.as_ref()))));
    }
    fn texts<T: ByteArrayType>(array: &dyn Array, out: &mut Vec<u64>) {
        let array = array.as_bytes::<T>();
        let (bytes, offsets) = (array.value_data(), array.value_offsets());
        let ends = offsets.get(1..).unwrap_or_default();
        // This is inlined: with a call for each value, a row of two texts takes a tenth longer.
        let value = |(from, to): (&T::Offset, &T::Offset)| bytes.get(from.as_usize()..to.as_usize());
        out.extend(offsets.iter().zip(ends).map(|place| value(place).map_or(NULL, city64)));
    }
    match array.data_type() {
        DataType::Utf8 => texts::<Utf8Type>(array, out),
        DataType::LargeUtf8 => texts::<LargeUtf8Type>(array, out),
        DataType::Utf8View => of(array.as_string_view().iter(), out),
        DataType::Binary => texts::<BinaryType>(array, out),
        DataType::LargeBinary => texts::<LargeBinaryType>(array, out),
        DataType::BinaryView => of(array.as_binary_view().iter(), out),
        DataType::FixedSizeBinary(_) => of(array.as_fixed_size_binary().iter(), out),
        actual => return Err(mismatch(actual, target)),
    }
    Ok(())
}

/// Folds the elements' hashes in order.
fn folded(elements: &[u64]) -> u64 {
    elements
        .iter()
        .fold(splitmix64(elements.len() as u64 ^ NESTED), |hash, element| splitmix64(hash ^ element))
}

/// Folds the hashes of each list's elements. `offsets` count from the first element; `elements` has the
/// hashes.
fn folds(offsets: impl Iterator<Item = (usize, usize)>, elements: &[u64], out: &mut Vec<u64>) {
    out.extend(offsets.map(|(start, end)| folded(elements.get(start..end).unwrap_or_default())));
}

/// The ranges between offsets, relative to the first offset; the first offset; the number of elements.
fn spans<O: OffsetSizeTrait>(offsets: &[O]) -> (Vec<(usize, usize)>, usize, usize) {
    let first = offsets.first().map_or(0, |o| o.as_usize());
    let last = offsets.last().map_or(0, |o| o.as_usize());
    let pairs = offsets.iter().zip(offsets.get(1..).unwrap_or_default());
    let pairs = pairs.map(|(a, b)| (a.as_usize() - first, b.as_usize() - first)).collect();
    (pairs, first, last - first)
}

fn list(array: &dyn Array, child: &Field, target: &DataType, out: &mut Vec<u64>) -> Result<()> {
    fn offset<O: OffsetSizeTrait>(array: &dyn Array, child: &DataType, out: &mut Vec<u64>) -> Result<()> {
        let list = array.as_list::<O>();
        let (pairs, first, len) = spans(list.value_offsets());
        let elements = hashes(&list.values().slice(first, len), child)?;
        folds(pairs.into_iter(), &elements, out);
        Ok(())
    }
    fn view<O: OffsetSizeTrait>(array: &dyn Array, child: &DataType, out: &mut Vec<u64>) -> Result<()> {
        let list = array.as_list_view::<O>();
        let elements = hashes(list.values(), child)?;
        let places = list.value_offsets().iter().zip(list.value_sizes());
        folds(places.map(|(at, n)| (at.as_usize(), at.as_usize() + n.as_usize())), &elements, out);
        Ok(())
    }
    let child = child.data_type();
    match array.data_type() {
        DataType::List(_) => offset::<i32>(array, child, out),
        DataType::LargeList(_) => offset::<i64>(array, child, out),
        DataType::ListView(_) => view::<i32>(array, child, out),
        DataType::LargeListView(_) => view::<i64>(array, child, out),
        DataType::FixedSizeList(_, _) => {
            let elements = hashes(array.as_fixed_size_list().values(), child)?;
            let size = elements.len().checked_div(array.len()).unwrap_or(0);
            folds((0..array.len()).map(|row| (row * size, (row + 1) * size)), &elements, out);
            Ok(())
        }
        actual => Err(mismatch(actual, target)),
    }
}

fn map(array: &dyn Array, entries: &Field, target: &DataType, out: &mut Vec<u64>) -> Result<()> {
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
    folds(pairs.into_iter(), &both, out);
    Ok(())
}

/// Hashes fields by name; a missing field is null in each row.
fn structure(array: &dyn Array, fields: &Fields, target: &DataType, rows: &mut Vec<u64>) -> Result<()> {
    let DataType::Struct(own) = array.data_type() else {
        return Err(mismatch(array.data_type(), target));
    };
    let columns = array.as_struct();
    let same = own.len() == fields.len() && own.iter().zip(fields).all(|(a, b)| a.name() == b.name());
    if !same && own.iter().any(|field| fields.find(field.name()).is_none()) {
        return Err(mismatch(array.data_type(), target));
    }
    rows.resize(array.len(), NESTED);
    for (place, field) in fields.iter().enumerate() {
        let column = if same { columns.columns().get(place) } else { columns.column_by_name(field.name()) };
        let hashes = match column {
            Some(column) => hashes(column, field.data_type())?,
            None => vec![NULL; array.len()],
        };
        rows.iter_mut().zip(&hashes).for_each(|(row, hash)| *row = splitmix64(*row ^ hash));
    }
    Ok(())
}

/// Hashes a union like the struct that replaces it in formats without unions: a tag, and a field for each branch.
fn branches(union: &UnionArray, fields: &Fields, target: &DataType, rows: &mut Vec<u64>) -> Result<()> {
    let DataType::Union(own, _) = union.data_type() else {
        return Err(mismatch(union.data_type(), target));
    };
    if fields.len() != own.len() + 1 {
        return Err(mismatch(union.data_type(), target));
    }
    let ids = union.type_ids();
    let tag = |id: &i8| own.iter().position(|(code, _)| code == *id).map_or(LOST, |at| splitmix64(at as u64));
    rows.extend(ids.iter().map(|id| splitmix64(NESTED ^ tag(id))));
    for ((code, _), field) in own.iter().zip(fields.iter().skip(1)) {
        let values = hashes(union.child(code), field.data_type())?;
        for (row, (hash, id)) in rows.iter_mut().zip(ids).enumerate() {
            let value = if *id == code { values.get(union.value_offset(row)).copied() } else { None };
            *hash = splitmix64(*hash ^ value.unwrap_or(NULL));
        }
    }
    Ok(())
}
