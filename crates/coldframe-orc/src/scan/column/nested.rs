//! Decodes struct, list, map and union.
//!
//! ```text
//! struct     PRESENT, children with a value for each row that is not null
//! list, map  PRESENT, LENGTH of each, children with the values of all one behind the other
//! union      PRESENT, DATA the tag of each in runs of bytes, children with a value for each row of their tag
//! ```

use std::ops::Range;

use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, UnionArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields, UnionFields};
use coldframe_core::arrays::{offsets, with_nulls};
use coldframe_core::{Error, ErrorContext, Result, arrow_error};

use super::input::{Bound, Input};
use super::{
    ColumnReader, MalformedValue, Present, Validity, array, boxed, column, dense, places_in_kept, reader,
    to_rows,
};
use crate::layout::stripe::StreamKind;
use crate::layout::types::{Column, Kind};
use crate::scan::ranges::VALUES;
use crate::scan::rle::bytes::ByteRle;
use crate::scan::rle::int::IntRle;
use crate::scan::stream::StreamPosition;

/// Number of bytes that are counted for an element besides its values, to limit the number of elements.
const ELEMENT: u64 = 1;

/// The children of the struct `of` that `fields` names, in order; names may repeat.
pub(super) fn children<'a>(
    input: &Input<'a>,
    of: &'a Column,
    fields: &Fields,
) -> Result<Vec<(&'a Column, FieldRef)>> {
    let mut rest = of.children.iter().zip(&of.field_names);
    let mut find = |field: &FieldRef| {
        let (id, _) = rest
            .find(|(_, name)| *name == field.name())
            .ok_or_else(|| Error::schema(format!("no column `{}` in {}", field.name(), super::name(of))))?;
        Ok((column(input, *id)?, field.clone()))
    };
    fields.iter().map(&mut find).collect()
}

fn mismatch(column: &Column, field: &Field) -> Error {
    Error::schema(format!("expected a {}, found a request for {}", column.kind.name(), field.data_type()))
}

fn child<'a>(input: &Input<'a>, of: &Column, place: usize) -> Result<&'a Column> {
    column(input, of.children.get(place).copied().unwrap_or(usize::MAX))
}

struct Structs {
    present: Present,
    fields: Fields,
    children: Vec<Box<dyn ColumnReader>>,
    /// Whether the fields have values for the struct's nulls, too: see [`crate::scan::superfluous`].
    superfluous: bool,
}

pub(super) fn structs(input: &Input<'_>, of: &Column, field: &Field) -> Result<Box<dyn ColumnReader>> {
    let DataType::Struct(fields) = field.data_type() else { return Err(mismatch(of, field)) };
    let mut readers = Vec::with_capacity(fields.len());
    let tree = input.tree;
    let owner = tree.get(of.id).ok_or_else(|| mismatch(of, field))?;
    for (column, field) in children(input, owner, fields)? {
        readers.push(reader(input, column, &field)?);
    }
    let is_inside =
        |outer: &Column| outer.id > 0 && outer.kind == Kind::Struct && outer.children.contains(&of.id);
    let superfluous = input.superfluous && tree.columns().iter().any(is_inside);
    boxed(Structs { present: input.present(of.id)?, fields: fields.clone(), children: readers, superfluous })
}

impl Structs {
    fn structs(&self, columns: Vec<ArrayRef>, nulls: Option<NullBuffer>, rows: usize) -> Result<ArrayRef> {
        let structs = StructArray::try_new_with_length(self.fields.clone(), columns, nulls, rows);
        Ok(array(structs.map_err(arrow_error)?))
    }
}

impl ColumnReader for Structs {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let Validity { nulls, .. } = self.present.read(rows, parent)?;
        let stored = if self.superfluous { parent } else { nulls.as_ref() };
        let columns = self.children.iter_mut().map(|c| c.read(rows, stored)).collect::<Result<Vec<_>>>()?;
        self.structs(columns, nulls, rows)
    }

    fn read_kept(
        &mut self,
        rows: usize,
        parent: Option<&NullBuffer>,
        kept: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        let stored = if self.superfluous { parent } else { validity.nulls.as_ref() };
        let children = self.children.iter_mut();
        let columns = children.map(|c| c.read_kept(rows, stored, kept)).collect::<Result<Vec<_>>>()?;
        self.structs(columns, validity.of_kept(kept).nulls, kept.count_set_bits())
    }

    fn skip(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<()> {
        let Validity { nulls, .. } = self.present.read(rows, parent)?;
        let stored = if self.superfluous { parent } else { nulls.as_ref() };
        self.children.iter_mut().try_for_each(|child| child.skip(rows, stored))
    }

    fn positions(&self, into: &mut Vec<StreamPosition>) {
        self.present.positions(into);
        self.children.iter().for_each(|child| child.positions(into));
    }

    fn malformed(&self, into: &mut Vec<MalformedValue>) {
        self.children.iter().for_each(|child| child.malformed(into));
    }
}

/// The part that lists and maps share: nulls and lengths.
struct Lengths {
    present: Present,
    lengths: IntRle,
    /// The minimum number of bytes of an element.
    element: u64,
    /// The maximum number of elements that the streams of nested columns can hold.
    most: u64,
    bound: Bound,
    /// The offsets of the elements of each row of the last read.
    offsets: OffsetBuffer<i32>,
}

impl Lengths {
    fn new(input: &Input<'_>, of: &Column) -> Result<Self> {
        let lengths = input.integers(of.id, StreamKind::Length, input.version(of.id)?, false)?;
        let element =
            of.children.iter().map(|id| input.tree.row_bytes(*id)).fold(ELEMENT, u64::saturating_add);
        let (present, bound) = (input.present(of.id)?, input.bound());
        let stored = |id: usize| {
            let streams = VALUES.iter().filter_map(|kind| input.layout.stream(id, *kind));
            streams.map(|stream| stream.bytes.end - stream.bytes.start).sum()
        };
        // Structs without nulls have no streams.
        let has_streams = |id: &usize| input.tree.get(*id).is_some_and(|column| column.kind != Kind::Struct);
        let nested = (of.id + 1..of.end).filter(has_streams);
        let most = nested.map(|id| input.compression.most_values(stored(id))).max().unwrap_or(u64::MAX);
        Ok(Self { present, lengths, element, most, bound, offsets: OffsetBuffer::new_empty() })
    }

    fn positions(&self, into: &mut Vec<StreamPosition>) {
        self.present.positions(into);
        into.push(self.lengths.position(StreamKind::Length));
    }

    /// Reads the nulls, the offsets and the number of elements.
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<(Validity, usize)> {
        let validity = self.present.read(rows, parent)?;
        let mut lengths = vec![0u32; rows];
        self.lengths.read(dense(&mut lengths, &validity)).within(|| "LENGTH")?;
        to_rows(&mut lengths, &validity)?;
        let total: u64 = lengths.iter().map(|n| u64::from(*n)).sum();
        let bytes = |elements: u64| elements.saturating_mul(self.element);
        self.bound.check("the elements of a batch", bytes(total), || bytes(self.most))?;
        self.offsets = offsets_of(&lengths, total)?;
        Ok((validity, usize::try_from(total).unwrap_or(usize::MAX)))
    }

    /// Of the rows that were read last, those that `kept` selects: their nulls, their offsets among the elements that are
    /// kept, and which elements these are.
    fn of_kept(&self, validity: &Validity, total: usize, kept: &BooleanBuffer) -> Result<Kept> {
        let mut elements = vec![0u64; total.div_ceil(WORD)];
        let mut ends = Vec::with_capacity(kept.count_set_bits() + 1);
        ends.push(0);
        for (from, to) in kept.set_slices() {
            let of_rows = self.offsets.get(from..=to).unwrap_or_default();
            let (Some(first), Some(last)) = (of_rows.first(), of_rows.last()) else { continue };
            let place = |at: i32| usize::try_from(at).unwrap_or(total);
            set_bits(&mut elements, place(*first)..place(*last));
            let before = ends.last().copied().unwrap_or(0);
            ends.extend(of_rows.iter().skip(1).map(|end| before + (end - first)));
        }
        let elements = BooleanBuffer::new(Buffer::from_vec(elements), 0, total);
        Ok(Kept { nulls: validity.of_kept(kept).nulls, offsets: offsets(ends)?, elements })
    }

    /// The malformed values in the elements, by row.
    fn malformed(&self, elements: &dyn ColumnReader, into: &mut Vec<MalformedValue>) {
        let first = into.len();
        elements.malformed(into);
        for malformed in into.iter_mut().skip(first) {
            malformed.row = row_of(&self.offsets, malformed.row);
        }
    }
}

/// The offsets of lists with these lengths, `total` together. Arrow's constructor tests each addition.
fn offsets_of(lengths: &[u32], total: u64) -> Result<OffsetBuffer<i32>> {
    if i32::try_from(total).is_err() {
        return Err(Error::corrupt(format!("expected fewer than 2^31 elements in a batch, found {total}")));
    }
    let mut at = 0u32;
    let ends = lengths.iter().map(|length| {
        at = at.wrapping_add(*length);
        at.cast_signed()
    });
    let mut all = Vec::with_capacity(lengths.len() + 1);
    all.push(0);
    all.extend(ends);
    offsets(all)
}

/// Bits of a word.
const WORD: usize = 64;

/// Sets bits, which are few as a rule: the elements of a row.
fn set_bits(words: &mut [u64], bits: Range<usize>) {
    let mut from = bits.start;
    while from < bits.end {
        let end = (from / WORD * WORD + WORD).min(bits.end);
        if let Some(word) = words.get_mut(from / WORD) {
            *word |= (u64::MAX >> (WORD - (end - from))) << (from % WORD);
        }
        from = end;
    }
}

/// The lists or maps that a filter keeps.
struct Kept {
    nulls: Option<NullBuffer>,
    offsets: OffsetBuffer<i32>,
    /// Which of all elements are theirs.
    elements: BooleanBuffer,
}

/// The row that contains an element.
fn row_of(offsets: &OffsetBuffer<i32>, element: usize) -> usize {
    let begins = offsets.partition_point(|begin| usize::try_from(*begin).is_ok_and(|begin| begin <= element));
    begins.saturating_sub(1)
}

struct Lists {
    lengths: Lengths,
    item: FieldRef,
    child: Box<dyn ColumnReader>,
}

pub(super) fn lists(input: &Input<'_>, of: &Column, field: &Field) -> Result<Box<dyn ColumnReader>> {
    let DataType::List(item) = field.data_type() else { return Err(mismatch(of, field)) };
    let child = reader(input, child(input, of, 0)?, item)?;
    boxed(Lists { lengths: Lengths::new(input, of)?, item: item.clone(), child })
}

impl ColumnReader for Lists {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let (Validity { nulls, .. }, total) = self.lengths.read(rows, parent)?;
        let values = self.child.read(total, None)?;
        let lists = ListArray::try_new(self.item.clone(), self.lengths.offsets.clone(), values, nulls);
        Ok(array(lists.map_err(arrow_error)?))
    }

    fn read_kept(
        &mut self,
        rows: usize,
        parent: Option<&NullBuffer>,
        kept: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        let (validity, total) = self.lengths.read(rows, parent)?;
        let Kept { nulls, offsets, elements } = self.lengths.of_kept(&validity, total, kept)?;
        let values = self.child.read_kept(total, None, &elements)?;
        let lists = ListArray::try_new(self.item.clone(), offsets, values, nulls);
        Ok(array(lists.map_err(arrow_error)?))
    }

    fn skip(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<()> {
        let (_, total) = self.lengths.read(rows, parent)?;
        self.child.skip(total, None)
    }

    fn positions(&self, into: &mut Vec<StreamPosition>) {
        self.lengths.positions(into);
        self.child.positions(into);
    }

    fn malformed(&self, into: &mut Vec<MalformedValue>) {
        self.lengths.malformed(self.child.as_ref(), into);
    }
}

struct Maps {
    lengths: Lengths,
    entries: FieldRef,
    fields: Fields,
    key: Box<dyn ColumnReader>,
    value: Box<dyn ColumnReader>,
}

pub(super) fn maps(input: &Input<'_>, of: &Column, field: &Field) -> Result<Box<dyn ColumnReader>> {
    let DataType::Map(entries, _) = field.data_type() else { return Err(mismatch(of, field)) };
    let DataType::Struct(fields) = entries.data_type() else { return Err(mismatch(of, field)) };
    let [key, value] = fields.as_ref() else { return Err(mismatch(of, field)) };
    boxed(Maps {
        lengths: Lengths::new(input, of)?,
        entries: entries.clone(),
        fields: fields.clone(),
        key: reader(input, child(input, of, 0)?, key)?,
        value: reader(input, child(input, of, 1)?, value)?,
    })
}

impl Maps {
    /// The maps over keys and values.
    fn maps(
        &self,
        keys: ArrayRef,
        values: ArrayRef,
        offsets: OffsetBuffer<i32>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let count = keys.len();
        let entries = StructArray::try_new_with_length(self.fields.clone(), vec![keys, values], None, count)
            .map_err(arrow_error)?;
        let maps = MapArray::try_new(self.entries.clone(), offsets, entries, nulls, false);
        Ok(array(maps.map_err(arrow_error)?))
    }

    /// The rows with a malformed key among `keys`, which were read last. A key cannot be null, so its map becomes null.
    fn malformed_rows(&self, keys: &ArrayRef) -> Result<Vec<usize>> {
        if keys.null_count() > 0 {
            return Err(Error::unsupported("a map with a null key, which Arrow cannot hold"));
        }
        let mut malformed = Vec::new();
        self.lengths.malformed(self.key.as_ref(), &mut malformed);
        Ok(malformed.into_iter().map(|malformed| malformed.row).collect())
    }
}

impl ColumnReader for Maps {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let (Validity { nulls, .. }, total) = self.lengths.read(rows, parent)?;
        let keys = self.key.read(total, None)?;
        let nulls = with_nulls(nulls, rows, &self.malformed_rows(&keys)?);
        let values = self.value.read(total, None)?;
        self.maps(keys, values, self.lengths.offsets.clone(), nulls)
    }

    fn read_kept(
        &mut self,
        rows: usize,
        parent: Option<&NullBuffer>,
        kept: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        let (validity, total) = self.lengths.read(rows, parent)?;
        let Kept { nulls, offsets, elements } = self.lengths.of_kept(&validity, total, kept)?;
        let keys = self.key.read_kept(total, None, &elements)?;
        let malformed = places_in_kept(&self.malformed_rows(&keys)?, kept);
        let nulls = with_nulls(nulls, kept.count_set_bits(), &malformed);
        let values = self.value.read_kept(total, None, &elements)?;
        self.maps(keys, values, offsets, nulls)
    }

    fn skip(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<()> {
        let (_, total) = self.lengths.read(rows, parent)?;
        self.key.skip(total, None)?;
        self.value.skip(total, None)
    }

    fn positions(&self, into: &mut Vec<StreamPosition>) {
        self.lengths.positions(into);
        self.key.positions(into);
        self.value.positions(into);
    }

    fn malformed(&self, into: &mut Vec<MalformedValue>) {
        self.lengths.malformed(self.key.as_ref(), into);
        self.lengths.malformed(self.value.as_ref(), into);
    }
}

struct Unions {
    present: Present,
    tags: ByteRle,
    fields: UnionFields,
    children: Vec<Box<dyn ColumnReader>>,
}

pub(super) fn unions(input: &Input<'_>, of: &Column, field: &Field) -> Result<Box<dyn ColumnReader>> {
    let DataType::Union(fields, _) = field.data_type() else { return Err(mismatch(of, field)) };
    let mut children = Vec::with_capacity(fields.len());
    for (place, (_, field)) in fields.iter().enumerate() {
        children.push(reader(input, child(input, of, place)?, field)?);
    }
    let tags = input.byte_runs(of.id, StreamKind::Data)?;
    boxed(Unions { present: input.present(of.id)?, tags, fields: fields.clone(), children })
}

impl ColumnReader for Unions {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        let mut tags = vec![0u8; rows];
        let stored = dense(&mut tags, &validity);
        self.tags.read(stored).within(|| "DATA")?;
        let count = self.children.len();
        if let Some(tag) = stored.iter().find(|tag| usize::from(**tag) >= count) {
            return Err(Error::corrupt(format!("expected one of {count} tags, found {tag}")).within("DATA"));
        }
        to_rows(&mut tags, &validity)?;
        if count == 0 && rows > 0 {
            return Err(Error::unsupported("a union without children"));
        }
        let mut columns = Vec::with_capacity(count);
        for (tag, child) in self.children.iter_mut().enumerate() {
            let own = tags.iter().map(|t| usize::from(*t) == tag).collect::<BooleanBuffer>();
            let own = match &validity.nulls {
                None => own,
                Some(nulls) => &own & nulls.inner(),
            };
            columns.push(child.read(rows, Some(&NullBuffer::new(own)))?);
        }
        let tags = ScalarBuffer::<i8>::new(Buffer::from_vec(tags), 0, rows);
        let unions = UnionArray::try_new(self.fields.clone(), tags, None, columns);
        Ok(array(unions.map_err(arrow_error)?))
    }

    fn positions(&self, into: &mut Vec<StreamPosition>) {
        self.present.positions(into);
        into.push(self.tags.position(StreamKind::Data));
        self.children.iter().for_each(|child| child.positions(into));
    }

    fn malformed(&self, into: &mut Vec<MalformedValue>) {
        self.children.iter().for_each(|child| child.malformed(into));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_set_within_and_across_words() {
        for bits in [0..0, 0..1, 5..64, 63..65, 64..128, 3..200, 199..200, 250..256] {
            let mut words = [0u64; 4];
            set_bits(&mut words, bits.clone());
            let set = BooleanBuffer::new(Buffer::from_vec(words.to_vec()), 0, 256);
            assert!((0..256).all(|bit| set.value(bit) == bits.contains(&bit)), "{bits:?}");
        }
    }
}
