//! Booleans, integers, floats, dates and decimals.

use std::marker::PhantomData;

use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};
use coldframe_core::{Error, ErrorContext, Result};

use super::input::Input;
use super::{ColumnReader, Present, array, boxed, dense, expand, primitive, to_rows};
use crate::rle::bytes::{BitRle, ByteRle};
use crate::rle::int::{IntRle, Version, Word};
use crate::stream::ByteStream;
use crate::stripe::StreamKind;
use crate::types::{Column, Kind};
use crate::{arrow, calendar};

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
    boxed(Integers::<W, A> { present, data, hybrid: false, types: PhantomData })
}

/// A reader of days.
pub(super) fn dates(input: &Input<'_>, column: &Column) -> Result<Box<dyn ColumnReader>> {
    let present = input.present(column.id)?;
    let data = input.integers(column.id, StreamKind::Data, input.version(column.id)?, true)?;
    boxed(Integers::<u32, Date32Type> { present, data, hybrid: input.dialect.hybrid, types: PhantomData })
}

impl<W, A> ColumnReader for Integers<W, A>
where
    W: Word + ArrowNativeType,
    A: ArrowPrimitiveType,
{
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        let mut values = vec![W::default(); rows];
        self.data.read(dense(&mut values, &validity)).within(|| "DATA")?;
        if self.hybrid {
            rebase(dense(&mut values, &validity));
        }
        to_rows(&mut values, &validity)?;
        Ok(array(primitive::<A, W>(values, validity.nulls)))
    }
}

/// Hybrid days as proleptic ones.
fn rebase<W: Word>(days: &mut [W]) {
    for day in days {
        let stored = u32::from_le_bytes(day.widen().to_le_bytes().first_chunk().copied().unwrap_or_default());
        let stored = stored.cast_signed();
        if stored < calendar::CUTOVER {
            *day = W::from_signed(calendar::to_proleptic(stored).into()).unwrap_or(*day);
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
        impl ColumnReader for Floats<$word, $arrow, $n> {
            fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
                let validity = self.present.read(rows, parent)?;
                let mut values: Vec<$word> = vec![0; rows];
                let mut rest = dense(&mut values, &validity);
                while !rest.is_empty() {
                    let (stored, _) = self.data.fill($n).within(|| "DATA")?.as_chunks::<$n>();
                    let n = stored.len().min(rest.len());
                    let (now, later) = rest.split_at_mut(n);
                    for (to, from) in now.iter_mut().zip(stored) {
                        *to = <$word>::from_le_bytes(*from);
                    }
                    if n == 0 {
                        return Err(self.data.ended("a number").within("DATA"));
                    }
                    self.data.consume(n * $n);
                    rest = later;
                }
                to_rows(&mut values, &validity)?;
                Ok(array(primitive::<$arrow, $word>(values, validity.nulls)))
            }
        }
    )*};
}

floats! {
    u32, Float32Type, 4;
    u64, Float64Type, 8;
}

/// A reader of decimals.
pub(super) fn decimals(input: &Input<'_>, column: &Column) -> Result<Box<dyn ColumnReader>> {
    let present = input.present(column.id)?;
    let (precision, scale) = arrow::decimal(column)?;
    let data = if input.dialect.short_decimals && (1..=18).contains(&column.precision) {
        Unscaled::Integers(input.integers(column.id, StreamKind::Data, Version::V2, true)?)
    } else {
        let scales = input.integers(column.id, StreamKind::Secondary, input.version(column.id)?, true)?;
        Unscaled::Varints(input.bytes(column.id, StreamKind::Data)?, scales)
    };
    let most = 10i128.checked_pow(precision.into()).unwrap_or(i128::MAX);
    boxed(Decimals { present, data, precision, scale, most })
}

/// How the digits are stored.
enum Unscaled {
    /// In 64 bits, of the column's scale.
    Integers(IntRle),
    /// As varints, and each one's scale.
    Varints(ByteStream, IntRle),
}

struct Decimals {
    present: Present,
    data: Unscaled,
    precision: u8,
    scale: i8,
    /// Less than ten to the precision is allowed.
    most: i128,
}

impl ColumnReader for Decimals {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        let mut values = vec![0i128; rows];
        let stored = dense(&mut values, &validity);
        match &mut self.data {
            Unscaled::Integers(data) => {
                let mut narrow = vec![0u64; stored.len()];
                data.read(&mut narrow).within(|| "DATA")?;
                for (to, from) in stored.iter_mut().zip(narrow) {
                    *to = from.cast_signed().into();
                }
            }
            Unscaled::Varints(data, scales) => {
                varints(data, stored).within(|| "DATA")?;
                let mut stated = vec![0u32; stored.len()];
                scales.read(&mut stated).within(|| "SECONDARY")?;
                rescale(stored, &stated, self.scale)?;
            }
        }
        let most = self.most;
        if stored.iter().fold(false, |bad, v| bad | (v.unsigned_abs() >= most.unsigned_abs())) {
            return Err(Error::corrupt(format!(
                "expected decimals of {} digits, found a longer one",
                self.precision
            )));
        }
        to_rows(&mut values, &validity)?;
        let decimals: PrimitiveArray<Decimal128Type> = primitive(values, validity.nulls);
        let typed = decimals.with_precision_and_scale(self.precision, self.scale);
        Ok(array(typed.map_err(coldframe_core::arrow_error)?))
    }
}

/// Brings values of the scales `stated` to one.
fn rescale(values: &mut [i128], stated: &[u32], scale: i8) -> Result<()> {
    let scale = i32::from(scale);
    if stated.iter().all(|s| s.cast_signed() == scale) {
        return Ok(());
    }
    for (value, stated) in values.iter_mut().zip(stated) {
        let stated = stated.cast_signed();
        let digits = scale.abs_diff(stated);
        let power = 10i128.checked_pow(digits);
        let scaled = if stated <= scale {
            power.and_then(|p| value.checked_mul(p)).or((*value == 0).then_some(0))
        } else {
            power.filter(|p| *value % p == 0).map(|p| *value / p).or((*value == 0).then_some(0))
        };
        *value = scaled.ok_or_else(|| {
            Error::corrupt(format!("expected a decimal of scale {scale}, found {value} of scale {stated}"))
        })?;
    }
    Ok(())
}

/// Fills `out` with zigzag varints of at most 128 bits.
fn varints(stream: &mut ByteStream, out: &mut [i128]) -> Result<()> {
    /// Bytes of the longest one.
    const MOST: usize = 19;
    let mut out = out.iter_mut();
    loop {
        let bytes = stream.fill(MOST)?;
        let mut at = 0;
        // While the longest one fits in what is at hand, or nothing more comes.
        let last = bytes.len() < MOST;
        while at + MOST <= bytes.len() || last {
            let Some(to) = out.next() else {
                stream.consume(at);
                return Ok(());
            };
            let rest = bytes.get(at..).unwrap_or_default();
            let Some((value, used)) = short_varint(rest).or_else(|| long_varint(rest)) else {
                return Err(stream.ended("a varint of at most 128 bits"));
            };
            *to = value;
            at += used;
        }
        stream.consume(at);
    }
}

/// A varint of at most eight bytes, from one word: its groups of seven bits are pushed together pair by pair.
#[inline]
fn short_varint(bytes: &[u8]) -> Option<(i128, usize)> {
    let word = u64::from_le_bytes(*bytes.first_chunk()?);
    let ends = !word & 0x8080_8080_8080_8080;
    if ends == 0 {
        return None;
    }
    let bits = ends.trailing_zeros() + 1;
    let x = word & (u64::MAX >> (64 - bits)) & 0x7f7f_7f7f_7f7f_7f7f;
    let x = (x & 0x007f_007f_007f_007f) | (x & 0x7f00_7f00_7f00_7f00) >> 1;
    let x = (x & 0x0000_3fff_0000_3fff) | (x & 0x3fff_0000_3fff_0000) >> 2;
    let x = (x & 0x0fff_ffff) | (x & 0x0fff_ffff_0000_0000) >> 4;
    Some((coldframe_encoding::varint::unzigzag(x).into(), (bits / 8) as usize))
}

fn long_varint(bytes: &[u8]) -> Option<(i128, usize)> {
    let mut value = 0u128;
    for (i, byte) in bytes.iter().take(19).enumerate() {
        value |= u128::from(byte & 0x7f) << (7 * i);
        if *byte < 0x80 {
            return Some(((value >> 1).cast_signed() ^ -((value & 1).cast_signed()), i + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_varint_decoders_agree() {
        for shift in 0..62 {
            let value = (0x1234_5678_9abc_def1u64 >> shift).cast_signed();
            for value in [value, -value] {
                let mut bytes = Vec::new();
                coldframe_encoding::varint::put_zigzag(&mut bytes, value);
                let used = bytes.len();
                bytes.resize(used + 19, 0xff);
                assert_eq!(long_varint(&bytes), Some((value.into(), used)));
                assert!(short_varint(&bytes).is_none_or(|found| found == (value.into(), used)));
                assert_eq!(short_varint(&bytes).is_some(), used <= 8);
            }
        }
    }

    #[test]
    fn scales_are_brought_to_the_columns() {
        let mut values = [15, 1500, 0];
        rescale(&mut values, &[1, 3, 60], 2).unwrap();
        assert_eq!(values, [150, 150, 0]);
        assert!(rescale(&mut [1], &[3], 2).is_err());
    }
}
