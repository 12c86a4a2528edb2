//! Decodes booleans, integers, floats and dates.

use std::marker::PhantomData;

use arrow_array::types::{Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};
use coldframe_core::{ErrorContext, Result};
use coldframe_encoding::calendar;

use super::input::Input;
use super::{
    ColumnReader, Present, Step, Validity, array, boxed, dense, expand, kept_places, kept_values, placed,
    primitive, to_rows,
};
use crate::layout::stripe::StreamKind;
use crate::layout::types::{Column, Kind};
use crate::scan::rle::bytes::{BitRle, ByteRle};
use crate::scan::rle::int::{IntRle, Word};
use crate::scan::stream::{ByteStream, StreamPosition};

pub(super) fn reader(input: &Input<'_>, column: &Column) -> Result<Box<dyn ColumnReader>> {
    let present = input.present(column.id)?;
    match column.kind {
        Kind::Boolean => boxed(Booleans { present, data: input.bits(column.id, StreamKind::Data)? }),
        Kind::Byte => boxed(Bytes { present, data: input.byte_runs(column.id, StreamKind::Data)? }),
        Kind::Short => integers::<u16, Int16Type>(input, column, present),
        Kind::Int => integers::<u32, Int32Type>(input, column, present),
        Kind::Long => integers::<u64, Int64Type>(input, column, present),
        Kind::Float => floats::<u32, Float32Type, 4>(input, column, present),
        _ => floats::<u64, Float64Type, 8>(input, column, present),
    }
}

struct Booleans {
    present: Present,
    data: BitRle,
}

impl ColumnReader for Booleans {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        let bits = self.data.read(validity.valid).within(|| "DATA")?;
        let bits = match &validity.nulls {
            None => BooleanBuffer::new(Buffer::from_vec(bits), 0, rows),
            Some(nulls) => expand(&bits, nulls),
        };
        Ok(array(BooleanArray::new(bits, validity.nulls)))
    }

    fn skip(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<()> {
        let validity = self.present.read(rows, parent)?;
        self.data.skip(validity.valid).within(|| "DATA")
    }

    fn positions(&self, into: &mut Vec<StreamPosition>) {
        self.present.positions(into);
        into.push(self.data.position(StreamKind::Data));
    }
}

struct Bytes {
    present: Present,
    data: ByteRle,
}

impl ColumnReader for Bytes {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        let mut values = vec![0u8; rows];
        self.data.read(dense(&mut values, &validity)).within(|| "DATA")?;
        to_rows(&mut values, &validity)?;
        Ok(array(primitive::<Int8Type, _>(values, validity.nulls)))
    }

    fn skip(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<()> {
        let validity = self.present.read(rows, parent)?;
        self.data.skip(validity.valid).within(|| "DATA")
    }

    fn positions(&self, into: &mut Vec<StreamPosition>) {
        self.present.positions(into);
        into.push(self.data.position(StreamKind::Data));
    }
}

struct Integers<W, A> {
    present: Present,
    data: IntRle,
    hybrid: bool,
    types: PhantomData<fn() -> (W, A)>,
}

fn integers<W, A>(input: &Input<'_>, column: &Column, present: Present) -> Result<Box<dyn ColumnReader>>
where
    W: Word + ArrowNativeType,
    A: ArrowPrimitiveType,
{
    let data = input.integers(column.id, StreamKind::Data, input.version(column.id)?, true)?;
    let data = data.wrapping(input.quirks.wrapped_integers);
    boxed(Integers::<W, A> { present, data, hybrid: false, types: PhantomData })
}

/// A reader of days.
pub(super) fn dates(input: &Input<'_>, column: &Column) -> Result<Box<dyn ColumnReader>> {
    let present = input.present(column.id)?;
    let data = input.integers(column.id, StreamKind::Data, input.version(column.id)?, true)?;
    boxed(Integers::<u32, Date32Type> { present, data, hybrid: input.quirks.hybrid, types: PhantomData })
}

impl<W: Word, A> Integers<W, A> {
    /// The dense values of some steps, with memory for `rows` values.
    fn values(&mut self, steps: &[Step], rows: usize) -> Result<Vec<W>> {
        let mut values = Vec::with_capacity(rows);
        for step in steps {
            self.data.skip(step.pass).within(|| "DATA")?;
            self.data.append::<W>(step.take, &mut values).within(|| "DATA")?;
        }
        if self.hybrid {
            rebase(&mut values);
        }
        Ok(values)
    }
}

impl<W, A> ColumnReader for Integers<W, A>
where
    W: Word + ArrowNativeType,
    A: ArrowPrimitiveType,
{
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        let values = self.values(&validity.all(), rows)?;
        Ok(array(primitive::<A, W>(placed(values, rows, &validity)?, validity.nulls)))
    }

    fn read_kept(
        &mut self,
        rows: usize,
        parent: Option<&NullBuffer>,
        kept: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        let values = kept_values(&validity, kept, |steps, rows| self.values(steps, rows))?;
        let (rows, validity) = (kept.count_set_bits(), validity.of_kept(kept));
        Ok(array(primitive::<A, W>(placed(values, rows, &validity)?, validity.nulls)))
    }

    fn skip(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<()> {
        let validity = self.present.read(rows, parent)?;
        self.data.skip(validity.valid).within(|| "DATA")
    }

    fn positions(&self, into: &mut Vec<StreamPosition>) {
        self.present.positions(into);
        into.push(self.data.position(StreamKind::Data));
    }
}

/// Converts hybrid days to proleptic days.
fn rebase<W: Word>(days: &mut [W]) {
    for day in days {
        let stored = u32::from_le_bytes(day.widen().to_le_bytes().first_chunk().copied().unwrap_or_default());
        let stored = stored.cast_signed();
        if i64::from(stored) < calendar::CUTOVER {
            *day = W::from_signed(calendar::hybrid_to_proleptic(stored.into())).unwrap_or(*day);
        }
    }
}

struct Floats<W, A, const N: usize> {
    present: Present,
    data: ByteStream,
    types: PhantomData<fn() -> (W, A)>,
}

fn floats<W, A, const N: usize>(
    input: &Input<'_>,
    column: &Column,
    present: Present,
) -> Result<Box<dyn ColumnReader>>
where
    W: Word + ArrowNativeType,
    A: ArrowPrimitiveType,
    Floats<W, A, N>: ColumnReader,
{
    let data = input.bytes(column.id, StreamKind::Data)?;
    boxed(Floats::<W, A, N> { present, data, types: PhantomData })
}

macro_rules! floats {
    ($($word:ty, $arrow:ty, $n:literal;)*) => {$(
        impl Floats<$word, $arrow, $n> {
            /// The dense values of some steps, with memory for `rows` values.
            fn values(&mut self, steps: &[Step], rows: usize) -> Result<Vec<$word>> {
                let mut values: Vec<$word> = Vec::with_capacity(rows);
                for step in steps {
                    self.data.skip(step.pass.saturating_mul($n)).within(|| "DATA")?;
                    let end = values.len() + step.take;
                    while values.len() < end {
                        let (stored, _) = self.data.fill($n).within(|| "DATA")?.as_chunks::<$n>();
                        let n = stored.len().min(end - values.len());
                        if n == 0 {
                            return Err(self.data.ended("a number").within("DATA"));
                        }
                        values.extend(stored.iter().take(n).map(|bytes| <$word>::from_le_bytes(*bytes)));
                        self.data.consume(n * $n);
                    }
                }
                Ok(values)
            }

            /// The dense values of the rows that `kept` selects; the others are not copied.
            fn kept_values(&mut self, validity: &Validity, kept: &BooleanBuffer) -> Result<Vec<$word>> {
                let mut places = kept_places(validity, kept).into_iter().peekable();
                let mut values: Vec<$word> = Vec::with_capacity(kept.count_set_bits());
                let mut first = 0;
                while first < validity.valid {
                    let (stored, _) = self.data.fill($n).within(|| "DATA")?.as_chunks::<$n>();
                    let n = stored.len().min(validity.valid - first);
                    if n == 0 {
                        return Err(self.data.ended("a number").within("DATA"));
                    }
                    let inside = std::iter::from_fn(|| places.next_if(|place| place - first < n));
                    let of = |place: usize| stored.get(place - first).map(|bytes| <$word>::from_le_bytes(*bytes));
                    values.extend(inside.filter_map(of));
                    self.data.consume(n * $n);
                    first += n;
                }
                Ok(values)
            }
        }

        impl ColumnReader for Floats<$word, $arrow, $n> {
            fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
                let validity = self.present.read(rows, parent)?;
                let values = self.values(&validity.all(), rows)?;
                let values = placed(values, rows, &validity)?;
                Ok(array(primitive::<$arrow, $word>(values, validity.nulls)))
            }

            fn read_kept(
                &mut self,
                rows: usize,
                parent: Option<&NullBuffer>,
                kept: &BooleanBuffer,
            ) -> Result<ArrayRef> {
                let validity = self.present.read(rows, parent)?;
                let values = self.kept_values(&validity, kept)?;
                let (rows, validity) = (kept.count_set_bits(), validity.of_kept(kept));
                let values = placed(values, rows, &validity)?;
                Ok(array(primitive::<$arrow, $word>(values, validity.nulls)))
            }

            fn skip(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<()> {
                let validity = self.present.read(rows, parent)?;
                self.data.skip(validity.valid.saturating_mul($n)).within(|| "DATA")
            }

            fn positions(&self, into: &mut Vec<StreamPosition>) {
                self.present.positions(into);
                into.push(self.data.position(StreamKind::Data, None));
            }
        }
    )*};
}

floats! {
    u32, Float32Type, 4;
    u64, Float64Type, 8;
}
