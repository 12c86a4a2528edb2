//! Decodes the streams of a column to arrays.
//!
//! | module | holds |
//! |---|---|
//! | [`input`] | the streams of a stripe, opened where a row group begins |
//! | [`number`] | booleans, integers, floats, dates |
//! | [`decimal`] | decimals |
//! | [`timestamp`] | timestamps with and without time zone |
//! | [`text`], [`dictionary`] | strings and binary, direct and by dictionary |
//! | [`nested`] | struct, list, map, union |
//!
//! A stream contains no values for nulls or for rows whose parent is null. A reader decodes the dense values
//! into the front of an array's memory and spreads them over the rows.

mod decimal;
pub(crate) mod dictionary;
pub(crate) mod input;
mod nested;
mod number;
mod text;
mod timestamp;

use std::sync::Arc;

use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, BooleanBufferBuilder, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{Field, TimeUnit};
use arrow_select::filter::filter;
use coldframe_core::{Error, Result, arrow_error};
use coldframe_encoding::values::spread;

use self::input::Input;
pub(crate) use self::text::stored_dictionary;
use crate::layout::stripe::StreamKind;
use crate::layout::types::{Column, Kind};
use crate::scan::rle::bytes::BitRle;
use crate::scan::stream::StreamPosition;

/// Decodes one column of a stripe.
pub(crate) trait ColumnReader: Send + Sync {
    /// Reads the next `rows` rows. With `parent`, only its valid rows are stored; the others become null.
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef>;

    /// Reads the next `rows` rows, but returns only those that `kept` selects. Text is then copied for these alone.
    fn read_kept(
        &mut self,
        rows: usize,
        parent: Option<&NullBuffer>,
        kept: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        let array = self.read(rows, parent)?;
        filtered(&array, kept)
    }

    /// Skips `rows` rows; by default they are decoded and dropped.
    fn skip(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<()> {
        self.read(rows, parent).map(drop)
    }

    /// Adds the positions of the column and of nested columns in their streams.
    fn positions(&self, into: &mut Vec<StreamPosition>);

    /// Adds the values of the last read, including nested ones, that the column's type cannot hold.
    fn malformed(&self, into: &mut Vec<MalformedValue>) {
        let _ = into;
    }
}

/// A value that the column's type cannot hold. The reader returns null for it, or for its parent if it cannot be
/// null.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MalformedValue {
    /// The row in the last read.
    pub(crate) row: usize,
    /// The column of the value.
    pub(crate) column: Option<usize>,
    /// What is wrong with the value.
    pub(crate) why: Malformed,
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// It is not UTF-8.
    Text,
    /// The unit of its column cannot express this second.
    Second {
        /// The second since 1970.
        second: i64,
        /// Whether the column has instants rather than wall clocks.
        instant: bool,
        /// The unit.
        unit: TimeUnit,
    },
    /// It has more than this many digits.
    Digits(u8),
}

impl Malformed {
    /// The error of a plain read.
    pub(crate) fn to_error(self, row: u64) -> Error {
        match self {
            Self::Text => Error::corrupt(format!(
                "expected UTF-8, found other bytes in row {row}; declare the column as binary in `schema` to \
                 read its bytes unchanged"
            )),
            Self::Second { second, instant, unit } => {
                let what = if instant { "an instant" } else { "a timestamp" };
                if unit == TimeUnit::Microsecond {
                    return Error::corrupt(format!(
                        "expected {what} of 64 bits, found one at second {second}"
                    ));
                }
                Error::schema(format!(
                    "{what} at second {second} is outside 1677..2262, the range of nanoseconds; open with \
                     timestamp_unit=\"us\""
                ))
            }
            Self::Digits(digits) => Error::corrupt(format!(
                "expected decimals of {digits} digits, found a longer one in row {row}"
            )),
        }
    }
}

/// The rows of dense values.
fn rows_of(validity: &Validity, dense: &[usize]) -> Vec<usize> {
    match (&validity.nulls, dense) {
        (_, []) => Vec::new(),
        (None, dense) => dense.to_vec(),
        (Some(nulls), dense) => {
            let mut dense = dense.iter().copied().peekable();
            let rows = nulls.inner().set_indices().enumerate();
            rows.filter_map(|(place, row)| dense.next_if_eq(&place).map(|_| row)).collect()
        }
    }
}

/// Creates a reader of `column` with the children that `field` has.
pub(crate) fn reader(input: &Input<'_>, column: &Column, field: &Field) -> Result<Box<dyn ColumnReader>> {
    let reader: Result<Box<dyn ColumnReader>> = match column.kind {
        Kind::Boolean | Kind::Byte | Kind::Short | Kind::Int | Kind::Long | Kind::Float | Kind::Double => {
            number::reader(input, column)
        }
        Kind::Date => number::dates(input, column),
        Kind::Decimal => decimal::reader(input, column, field),
        Kind::String | Kind::Varchar | Kind::Char => text::strings(input, column, field),
        Kind::Binary | Kind::Geometry | Kind::Geography => text::binary(input, column, field),
        Kind::Timestamp | Kind::TimestampInstant => timestamp::reader(input, column, field),
        Kind::Struct => nested::structs(input, column, field),
        Kind::List => nested::lists(input, column, field),
        Kind::Map => nested::maps(input, column, field),
        Kind::Union => nested::unions(input, column, field),
    };
    let reader = reader.map_err(|e| e.within(name(column)))?;
    Ok(Box::new(Named { reader, id: column.id, name: name(column) }))
}

/// The name of a column in errors.
pub(crate) fn name(column: &Column) -> String {
    format!("column {} `{}`", column.id, column.path)
}

/// Adds its column's name to errors.
struct Named {
    reader: Box<dyn ColumnReader>,
    id: usize,
    name: String,
}

impl ColumnReader for Named {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        self.reader.read(rows, parent).map_err(|e| e.within(self.name.clone()))
    }

    fn read_kept(
        &mut self,
        rows: usize,
        parent: Option<&NullBuffer>,
        kept: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        self.reader.read_kept(rows, parent, kept).map_err(|e| e.within(self.name.clone()))
    }

    fn skip(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<()> {
        self.reader.skip(rows, parent).map_err(|e| e.within(self.name.clone()))
    }

    fn positions(&self, into: &mut Vec<StreamPosition>) {
        let first = into.len();
        self.reader.positions(into);
        for position in into.iter_mut().skip(first).filter(|position| position.column.is_none()) {
            position.column = Some(self.id);
        }
    }

    fn malformed(&self, into: &mut Vec<MalformedValue>) {
        let first = into.len();
        self.reader.malformed(into);
        for malformed in into.iter_mut().skip(first).filter(|malformed| malformed.column.is_none()) {
            malformed.column = Some(self.id);
        }
    }
}

/// Which rows have values.
struct Present(Option<BitRle>);

/// The number of rows, and how many of them have values.
struct Validity {
    nulls: Option<NullBuffer>,
    valid: usize,
}

impl Present {
    fn positions(&self, into: &mut Vec<StreamPosition>) {
        into.extend(self.0.as_ref().map(|bits| bits.position(StreamKind::Present)));
    }

    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<Validity> {
        let parent = parent.filter(|p| p.null_count() > 0);
        let stored = parent.map_or(rows, |p| rows - p.null_count());
        let Some(bits) = &mut self.0 else {
            return Ok(Validity { nulls: parent.cloned(), valid: stored });
        };
        let own = bits.read(stored)?;
        let own = match parent {
            None => BooleanBuffer::new(Buffer::from_vec(own), 0, rows),
            Some(parent) => expand(&own, parent),
        };
        let nulls = NullBuffer::new(own);
        let valid = rows - nulls.null_count();
        Ok(Validity { nulls: Some(nulls).filter(|n| n.null_count() > 0), valid })
    }
}

/// Spreads bits over the valid rows of `parent`; the others are zero.
fn expand(bits: &[u8], parent: &NullBuffer) -> BooleanBuffer {
    let mut out = vec![0u8; parent.len().div_ceil(8)];
    for (place, row) in parent.inner().set_indices().enumerate() {
        let bit = bits.get(place / 8).map_or(0, |b| b >> (place % 8) & 1);
        if let Some(byte) = out.get_mut(row / 8) {
            *byte |= bit << (row % 8);
        }
    }
    BooleanBuffer::new(Buffer::from_vec(out), 0, parent.len())
}

/// Dense `values`, moved to their rows.
fn placed<T: Copy + Default>(mut values: Vec<T>, rows: usize, validity: &Validity) -> Result<Vec<T>> {
    if validity.nulls.is_some() {
        values.resize(rows, T::default());
    }
    to_rows(&mut values, validity)?;
    Ok(values)
}

impl Validity {
    /// The validity of the rows that `kept` selects.
    fn of_kept(&self, kept: &BooleanBuffer) -> Self {
        let count = kept.count_set_bits();
        let Some(nulls) = &self.nulls else { return Self { nulls: None, valid: count } };
        let nulls = NullBuffer::new(kept_bits(nulls.inner(), kept));
        let valid = count - nulls.null_count();
        Self { nulls: Some(nulls).filter(|nulls| nulls.null_count() > 0), valid }
    }
}

/// The bits of `bits` in the rows that `kept` selects. Of each word, only the ones are visited, or only the zeros.
fn kept_bits(bits: &BooleanBuffer, kept: &BooleanBuffer) -> BooleanBuffer {
    let mut out = BooleanBufferBuilder::new(kept.count_set_bits());
    let words = bits.bit_chunks().iter_padded().zip(kept.bit_chunks().iter_padded());
    for (bits, kept) in words.filter(|(_, kept)| *kept != 0) {
        let count = kept.count_ones();
        let is_mostly_set = (bits & kept).count_ones() * 2 > count;
        let mut visited = if is_mostly_set { !bits & kept } else { bits & kept };
        let mut together = 0u64;
        while visited != 0 {
            let lower = (visited & visited.wrapping_neg()) - 1;
            together |= 1 << (kept & lower).count_ones();
            visited &= visited - 1;
        }
        let together = if is_mostly_set { !together } else { together };
        out.append_packed_range(0..count as usize, &together.to_le_bytes());
    }
    out.finish()
}

/// Up to this many values between two kept ones, decoding them costs no more than skipping: a run of values has no more.
const APART: usize = 512;

/// Whether the rows that `kept` selects are so far apart that the values between them are skipped.
fn is_sparse(kept: &BooleanBuffer) -> bool {
    let most = kept.len() / APART;
    kept.set_slices().take(most + 1).count() <= most
}

/// Values that are passed over, and then values that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    pass: usize,
    take: usize,
}

impl Validity {
    /// All values, in one step.
    fn all(&self) -> [Step; 1] {
        [Step { pass: 0, take: self.valid }]
    }

    /// The steps to the values of the rows that `kept` selects, and past the last value.
    fn steps(&self, kept: &BooleanBuffer) -> Vec<Step> {
        let values = |from: usize, to: usize| match &self.nulls {
            Some(nulls) => nulls.inner().slice(from, to - from).count_set_bits(),
            None => to - from,
        };
        let (mut steps, mut row) = (Vec::new(), 0);
        for (from, to) in kept.set_slices() {
            steps.push(Step { pass: values(row, from), take: values(from, to) });
            row = to;
        }
        steps.push(Step { pass: values(row, kept.len()), take: 0 });
        steps
    }
}

/// The rows of `array` that `kept` selects.
fn filtered(array: &ArrayRef, kept: &BooleanBuffer) -> Result<ArrayRef> {
    filter(array, &BooleanArray::new(kept.clone(), None)).map_err(arrow_error)
}

/// The rows at these places among the rows that `kept` selects.
fn rows_of_kept(places: &[usize], kept: &BooleanBuffer) -> Vec<usize> {
    if places.is_empty() {
        return Vec::new();
    }
    let rows = kept.set_indices().enumerate();
    rows.filter(|(place, _)| places.binary_search(place).is_ok()).map(|(_, row)| row).collect()
}

/// The places of these rows among the rows that `kept` selects.
fn places_in_kept(rows: &[usize], kept: &BooleanBuffer) -> Vec<usize> {
    if rows.is_empty() {
        return Vec::new();
    }
    let places = kept.set_indices().enumerate();
    places.filter(|(_, row)| rows.binary_search(row).is_ok()).map(|(place, _)| place).collect()
}

/// The dense values of the rows that `kept` selects. `values` reads those of some steps, with memory for so many.
fn kept_values<T: Copy>(
    validity: &Validity,
    kept: &BooleanBuffer,
    values: impl FnOnce(&[Step], usize) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    if is_sparse(kept) {
        return values(&validity.steps(kept), kept.count_set_bits());
    }
    let mut all = values(&validity.all(), validity.valid)?;
    keep_dense(&mut all, validity, kept);
    Ok(all)
}

/// The places of the values of the rows that `kept` selects, among the dense values.
fn kept_places(validity: &Validity, kept: &BooleanBuffer) -> Vec<usize> {
    let Some(nulls) = &validity.nulls else { return kept.set_indices().collect() };
    let mut places = Vec::with_capacity(kept.count_set_bits().min(validity.valid));
    let mut before = 0;
    let words = nulls.inner().bit_chunks().iter_padded().zip(kept.bit_chunks().iter_padded());
    for (valid, kept) in words {
        let mut wanted = valid & kept;
        while wanted != 0 {
            let lower = (wanted & wanted.wrapping_neg()) - 1;
            places.push(before + (valid & lower).count_ones() as usize);
            wanted &= wanted - 1;
        }
        before += valid.count_ones() as usize;
    }
    places
}

/// Of dense values, those of the rows that `kept` selects, dense again.
fn keep_dense<T: Copy>(values: &mut Vec<T>, validity: &Validity, kept: &BooleanBuffer) {
    if validity.nulls.is_none() {
        return keep(values, kept);
    }
    keep_at(values, kept_places(validity, kept).into_iter());
}

/// Moves the values of the rows that `kept` selects to the front, and drops the others.
fn keep<T: Copy>(values: &mut Vec<T>, kept: &BooleanBuffer) {
    keep_at(values, kept.set_indices());
}

/// Moves the values at these rising places to the front, and drops the others.
fn keep_at<T: Copy>(values: &mut Vec<T>, places: impl Iterator<Item = usize>) {
    let mut count = 0;
    for place in places {
        if let Some(value) = values.get(place).copied()
            && let Some(to) = values.get_mut(count)
        {
            *to = value;
            count += 1;
        }
    }
    values.truncate(count);
}

/// Moves dense values at the front of `values` to their rows.
fn to_rows<T: Copy + Default>(values: &mut [T], validity: &Validity) -> Result<()> {
    if let Some(nulls) = &validity.nulls {
        spread(values, nulls.validity())?;
    }
    Ok(())
}

/// An array with `values` as its memory.
fn primitive<A: ArrowPrimitiveType, W: ArrowNativeType>(
    values: Vec<W>,
    nulls: Option<NullBuffer>,
) -> PrimitiveArray<A> {
    let rows = values.len();
    PrimitiveArray::new(ScalarBuffer::new(Buffer::from_vec(values), 0, rows), nulls)
}

/// The front of `values`, which the dense values fill.
fn dense<'a, T>(values: &'a mut [T], validity: &Validity) -> &'a mut [T] {
    values.get_mut(..validity.valid).unwrap_or_default()
}

/// The column `id` of a file's tree.
fn column<'a>(input: &Input<'a>, id: usize) -> Result<&'a Column> {
    input.tree.get(id).ok_or_else(|| Error::corrupt(format!("expected a type {id}, found none")))
}

fn boxed(reader: impl ColumnReader + 'static) -> Result<Box<dyn ColumnReader>> {
    Ok(Box::new(reader))
}

fn array(array: impl arrow_array::Array + 'static) -> ArrayRef {
    Arc::new(array)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any rows, valid or not, kept or not, cut anywhere: as a loop over them has it.
        #[test]
        fn kept_rows_have_their_values_and_nulls(
            rows in proptest::collection::vec((prop_oneof![4 => Just(true), 1 => Just(false)], any::<bool>()), 0..400),
            few: bool,
            cut in 0usize..70,
        ) {
            let rows: Vec<(bool, bool)> = rows.iter().map(|(valid, kept)| (*valid != few, *kept)).collect();
            let cut = cut.min(rows.len());
            let of = |bit: fn(&(bool, bool)) -> bool| {
                let all: BooleanBuffer = rows.iter().map(bit).collect();
                all.slice(cut, rows.len() - cut)
            };
            let (valid, kept) = (of(|row| row.0), of(|row| row.1));
            let rows = &rows[cut..];
            let expected: BooleanBuffer = rows.iter().filter(|row| row.1).map(|row| row.0).collect();
            prop_assert_eq!(kept_bits(&valid, &kept), expected);

            let count = valid.count_set_bits();
            let validity = Validity { nulls: Some(NullBuffer::new(valid)), valid: count };
            let dense = rows.iter().filter(|row| row.0).enumerate();
            let places: Vec<usize> = dense.filter(|(_, row)| row.1).map(|(place, _)| place).collect();
            prop_assert_eq!(kept_places(&validity, &kept), places.clone());
            let mut values: Vec<usize> = (0..count).collect();
            keep_dense(&mut values, &validity, &kept);
            prop_assert_eq!(values, places);
        }
    }
}
