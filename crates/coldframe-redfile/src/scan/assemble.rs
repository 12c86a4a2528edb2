//! Builds Arrow arrays from levels and dense values.
//!
//! Dremel's record assembly is a state machine that goes from value to value and row to row. Arrow does not need rows:
//! an optional node needs a null bitmap, a repeated node needs offsets. Both come from the levels of any leaf
//! below the node in one pass without branches. With `r`, `d` the levels of an entry and `R`, `D` the levels
//! of the nearest enclosing repeated node (0 if there is none):
//!
//! ```text
//! the entry begins a slot of the node   r <= R and d >= D
//! an optional node is there             d >= its own definition level      one bit for each slot
//! an item of a repeated node            r <= its own repetition level and d >= its own definition level
//! a list's offset                       the items before its slot
//! a leaf's value is there               d = the leaf's definition level    dense values spread over slots
//! ```
//!
//! All leaves below a node must give the same bitmap and offsets for it, so bitmap and offsets are computed
//! from each leaf and compared.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeBinaryArray, ListArray, PrimitiveArray, StructArray,
    TimestampNanosecondArray, types,
};
use arrow_buffer::{
    BooleanBuffer, BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use arrow_schema::DataType;
use coldframe_core::arrays::{self, strings};
use coldframe_core::{Error, ErrorContext, Result, arrow_error};
use coldframe_encoding::values::spread;

use super::leaf::LeafData;
use crate::layout::levels;
use crate::layout::metadata::Repetition;
use crate::pages::plain::{Values, ViewedArrays, instant};
use crate::schema::{Node, NodeKind};

/// The nearest enclosing repeated node.
#[derive(Clone, Copy, Debug, Default)]
struct Around {
    repetition: u8,
    definition: u8,
}

/// Data of the leaves of a column, by their indexes in the schema.
pub(crate) type Leaves = std::collections::BTreeMap<usize, LeafData>;

/// The array of a column of `rows` rows.
pub(crate) fn column(node: &Node, leaves: &mut Leaves, rows: usize) -> Result<ArrayRef> {
    field(node, Around::default(), rows, leaves).within(|| format!("column `{}`", node.name))
}

/// The array of a node that occurs in `slots` slots.
fn field(node: &Node, around: Around, slots: usize, leaves: &mut Leaves) -> Result<ArrayRef> {
    match node.repetition {
        Repetition::Required => item(node, around, slots, None, leaves),
        Repetition::Optional => {
            let nulls = validity(node, around, slots, leaves)?;
            item(node, around, slots, nulls, leaves)
        }
        Repetition::Repeated => {
            let offsets = offsets(node, around, slots, leaves)?;
            let inside = Around { repetition: node.repetition_level, definition: node.definition };
            let items = offsets.last().unsigned_abs() as usize;
            let values = item(node, inside, items, None, leaves)?;
            let DataType::List(item) = node.field().data_type().clone() else { return Err(lacks(node)) };
            Ok(Arc::new(ListArray::try_new(item, offsets, values, None).map_err(arrow_error)?))
        }
    }
}

/// The array of the values of a node in `slots` slots; some slots may be null.
fn item(
    node: &Node,
    around: Around,
    slots: usize,
    nulls: Option<NullBuffer>,
    leaves: &mut Leaves,
) -> Result<ArrayRef> {
    if let Some((repeated, element)) = node.list_element() {
        let offsets = offsets(repeated, around, slots, leaves)?;
        let inside = Around { repetition: repeated.repetition_level, definition: repeated.definition };
        let items = offsets.last().unsigned_abs() as usize;
        let values = field(element, inside, items, leaves)?;
        let DataType::List(item) = node.item_type() else { return Err(lacks(node)) };
        return Ok(Arc::new(ListArray::try_new(item, offsets, values, nulls).map_err(arrow_error)?));
    }
    match &node.kind {
        NodeKind::Leaf(_, data_type) => {
            let data = leaves.remove(&node.leaves.start).ok_or_else(|| lacks(node))?;
            leaf(node, data_type, around, slots, nulls, data)
        }
        NodeKind::Group(children) => {
            let fields = children.iter().map(Node::field).collect();
            let arrays = children.iter().map(|c| field(c, around, slots, leaves)).collect::<Result<_>>()?;
            let array =
                StructArray::try_new_with_length(fields, arrays, nulls, slots).map_err(arrow_error)?;
            Ok(Arc::new(array))
        }
    }
}

#[cold]
fn lacks(node: &Node) -> Error {
    Error::schema(format!("`{}`: expected its leaves, found fewer", node.name))
}

/// The result of `of` for every leaf below `node`; all must be equal.
fn agreed<T: PartialEq>(node: &Node, leaves: &Leaves, of: impl Fn(&LeafData) -> Result<T>) -> Result<T> {
    let mut places = Vec::new();
    node.leaf_places(&mut places);
    let mut data = places.iter().map(|i| leaves.get(i).ok_or_else(|| lacks(node)));
    let first = of(data.next().ok_or_else(|| lacks(node))??)?;
    for other in data {
        if of(other?)? != first {
            return Err(Error::corrupt(format!(
                "expected the leaves of `{}` to agree on it, found that they differ",
                node.name
            )));
        }
    }
    Ok(first)
}

/// Which slots of an optional node are not null.
fn validity(node: &Node, around: Around, slots: usize, leaves: &Leaves) -> Result<Option<NullBuffer>> {
    let bits = agreed(node, leaves, |data| {
        let slot_levels = slot_levels(data, around);
        check_slots(slot_levels.len(), slots)?;
        Ok(at_least(&slot_levels, node.definition))
    })?;
    let nulls = NullBuffer::new(bits);
    Ok((nulls.null_count() > 0).then_some(nulls))
}

fn check_slots(actual: usize, expected: usize) -> Result<()> {
    if actual == expected {
        return Ok(());
    }
    Err(Error::corrupt(format!("expected levels of {expected} slots, found {actual}")))
}

/// The definition levels of the entries that begin a slot.
fn slot_levels(data: &LeafData, around: Around) -> std::borrow::Cow<'_, [u8]> {
    let levels = data.levels.definition.as_slice();
    if data.levels.repetition.is_empty() {
        return levels.into();
    }
    let mut slots = vec![0; levels.len()];
    let mut n = 0;
    for (d, r) in levels.iter().zip(&data.levels.repetition) {
        if let Some(place) = slots.get_mut(n) {
            *place = *d;
        }
        n += usize::from((*r <= around.repetition) & (*d >= around.definition));
    }
    slots.truncate(n);
    slots.into()
}

/// For each level, a bit that is set if the level is at least `least`.
fn at_least(levels: &[u8], least: u8) -> BooleanBuffer {
    let mut out = MutableBuffer::new(levels.len().div_ceil(64) * 8);
    levels.chunks(64).for_each(|some| out.push(levels::at_least(some, least)));
    BooleanBuffer::new(out.into(), 0, levels.len())
}

/// Where each slot's items begin.
fn offsets(node: &Node, around: Around, slots: usize, leaves: &Leaves) -> Result<OffsetBuffer<i32>> {
    let offsets = agreed(node, leaves, |data| {
        let mut offsets = vec![0i32; slots.saturating_add(1)];
        let (lists, items) = (around.definition, node.definition);
        let actual = match (lists, data.max_repetition == node.repetition_level) {
            // Every row has a slot, and every entry may be an item, so half of the comparisons are not
            // needed.
            (0, true) => fill_offsets(data, &mut offsets, |_, r| r == 0, |d, _| d >= items),
            _ => fill_offsets(
                data,
                &mut offsets,
                |d, r| (r <= around.repetition) & (d >= lists),
                |d, r| (r <= node.repetition_level) & (d >= items),
            ),
        };
        check_slots(actual, slots)?;
        Ok(offsets)
    })?;
    if offsets.last().is_some_and(|n| *n < 0) || !offsets.is_sorted() {
        return Err(Error::batch_too_long("the items of a column's lists", 1 << 31));
    }
    arrays::offsets(offsets)
}

/// Fills `offsets` with the number of items before each slot, and after the last; returns the number of
/// slots.
#[inline(always)]
fn fill_offsets(
    data: &LeafData,
    offsets: &mut [i32],
    begins_slot: impl Fn(u8, u8) -> bool,
    is_item: impl Fn(u8, u8) -> bool,
) -> usize {
    let (mut slot, mut items) = (0usize, 0i32);
    for (d, r) in data.levels.definition.iter().zip(&data.levels.repetition) {
        // The entry after the last slot is the end. Further slots are counted, and are an error later.
        if let Some(place) = offsets.get_mut(slot) {
            *place = items;
        }
        slot += usize::from(begins_slot(*d, *r));
        items = items.wrapping_add(i32::from(is_item(*d, *r)));
    }
    if let Some(last) = offsets.last_mut() {
        *last = items;
    }
    slot
}

/// The array of a leaf.
fn leaf(
    node: &Node,
    data_type: &DataType,
    around: Around,
    slots: usize,
    nulls: Option<NullBuffer>,
    data: LeafData,
) -> Result<ArrayRef> {
    let optional = node.repetition == Repetition::Optional;
    let present = if optional {
        nulls.as_ref().map(|n| n.inner().clone())
    } else if node.definition > around.definition {
        // The leaf is required, but in an optional group: slots in which the group is null have no value.
        let levels = slot_levels(&data, around);
        check_slots(levels.len(), slots)?;
        Some(at_least(&levels, node.definition)).filter(|bits| bits.count_set_bits() < slots)
    } else {
        None
    };
    // Values that were put at their rows when they were read have one element per slot.
    let present = present.as_ref().filter(|_| !data.spread);
    match (data.values, data_type) {
        (Values::Booleans(mut values), _) => {
            let values = spread_bits(values.finish(), present, slots)?;
            Ok(Arc::new(BooleanArray::new(values, nulls)))
        }
        (Values::Views(values), _) => views(*values, data_type, present, slots, nulls),
        (Values::Arrays { offsets, data }, _) => arrays(offsets, data, data_type, present, slots, nulls),
        (values, DataType::Int32) => primitive::<types::Int32Type>(values, present, slots, nulls),
        (values, DataType::Int64) => primitive::<types::Int64Type>(values, present, slots, nulls),
        (values, DataType::Float32) => primitive::<types::Float32Type>(values, present, slots, nulls),
        (values, DataType::Float64) => primitive::<types::Float64Type>(values, present, slots, nulls),
        (Values::Fixed(values), other) => int96(values.as_slice(), other, present, slots, nulls),
        (Values::Shared(values), other) => int96(&values, other, present, slots, nulls),
    }
}

/// The bits of a bitmap without an offset, as `spread` needs them.
fn bytes_of(bits: &BooleanBuffer) -> &[u8] {
    bits.values()
}

fn primitive<T: arrow_array::ArrowPrimitiveType>(
    values: Values,
    present: Option<&BooleanBuffer>,
    slots: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let width = size_of::<T::Native>();
    let values: Buffer = match values {
        Values::Fixed(mut values) => {
            check_values(values.len() / width, present, slots)?;
            if let Some(present) = present {
                values.resize(slots * width, 0);
                spread(values.typed_data_mut::<T::Native>(), bytes_of(present))?;
            }
            values.into()
        }
        // A page without levels: each slot has a value.
        Values::Shared(values) => {
            check_values(values.len() / width, None, slots)?;
            let aligned = values.as_ptr().align_offset(align_of::<T::Native>()) == 0;
            if aligned { Buffer::from(values) } else { Buffer::from_slice_ref(&*values) }
        }
        _ => return Err(Error::corrupt("expected numbers, found pages of another type")),
    };
    let values = ScalarBuffer::new(values, 0, slots);
    Ok(Arc::new(PrimitiveArray::<T>::try_new(values, nulls).map_err(arrow_error)?))
}

fn check_values(actual: usize, present: Option<&BooleanBuffer>, slots: usize) -> Result<()> {
    let expected = present.map_or(slots, BooleanBuffer::count_set_bits);
    if actual == expected {
        return Ok(());
    }
    Err(Error::corrupt(format!("expected {expected} values, found {actual}")))
}

fn spread_copy<T: Copy + Default>(
    values: &[T],
    present: Option<&BooleanBuffer>,
    slots: usize,
) -> Result<Vec<T>> {
    check_values(values.len(), present, slots)?;
    let mut values = values.to_vec();
    if let Some(present) = present {
        values.resize(slots, T::default());
        spread(&mut values, bytes_of(present))?;
    }
    Ok(values)
}

fn spread_bits(
    values: BooleanBuffer,
    present: Option<&BooleanBuffer>,
    slots: usize,
) -> Result<BooleanBuffer> {
    check_values(values.len(), present, slots)?;
    let Some(present) = present else { return Ok(values) };
    let mut out = BooleanBufferBuilder::new(slots);
    out.append_n(slots, false);
    for (slot, value) in present.set_indices().zip(values.iter()) {
        out.set_bit(slot, value);
    }
    Ok(out.finish())
}

/// Byte arrays: a slot without a value begins and ends where the next value begins.
fn arrays(
    mut offsets: Vec<i32>,
    data: Vec<u8>,
    data_type: &DataType,
    present: Option<&BooleanBuffer>,
    slots: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    check_values(offsets.len().saturating_sub(1), present, slots)?;
    if let Some(present) = present {
        let mut spread = Vec::with_capacity(slots + 1);
        spread.push(0);
        let mut ends = offsets.iter().skip(1);
        let mut at = 0;
        for word in present.bit_chunks().iter_padded() {
            let n = (slots + 1 - spread.len()).min(64);
            for i in 0..n {
                if word >> i & 1 == 1 {
                    at = ends.next().copied().unwrap_or(at);
                }
                spread.push(at);
            }
        }
        offsets = spread;
    }
    strings(offsets, data, nulls, *data_type == DataType::Utf8)
}

/// Byte arrays as views: a slot without a value has an empty view.
fn views(
    values: ViewedArrays,
    data_type: &DataType,
    present: Option<&BooleanBuffer>,
    slots: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let ViewedArrays { mut column, mut pages } = values;
    check_values(column.len(), present, slots)?;
    if let Some(present) = present {
        column.spread(bytes_of(present), slots)?;
    }
    pages.weigh(column.long());
    Ok(match data_type {
        DataType::Utf8View => Arc::new(column.text(&pages, nulls)?),
        _ => Arc::new(column.binary(&pages, nulls)?),
    })
}

/// INT96 as its bytes, or as Hive and Impala later used it: nanoseconds of the day, then the Julian day.
fn int96(
    values: &[u8],
    data_type: &DataType,
    present: Option<&BooleanBuffer>,
    slots: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let values = spread_copy(values.as_chunks::<12>().0, present, slots)?;
    if *data_type == DataType::FixedSizeBinary(12) {
        let bytes = Buffer::from_vec(values.as_flattened().to_vec());
        return Ok(Arc::new(FixedSizeBinaryArray::try_new(12, bytes, nulls).map_err(arrow_error)?));
    }
    let mut out = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        // Null slots may hold zeros, which are not a valid Arrow timestamp.
        let valid = nulls.as_ref().is_none_or(|n| n.is_valid(i)) && present.is_none_or(|p| p.value(i));
        out.push(if valid { instant(value)? } else { 0 });
    }
    Ok(Arc::new(TimestampNanosecondArray::try_new(out.into(), nulls).map_err(arrow_error)?))
}

#[cfg(test)]
mod tests;
