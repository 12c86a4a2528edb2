//! Decodes decimals.
//!
//! ```text
//! DATA       unscaled values: zigzag varints of at most 128 bits
//! SECONDARY  the scale of each, in runs
//! ```
//!
//! ORC specification v1, "Decimal Columns"; files of the next version store decimals of at most 18 digits as
//! integers in the column's scale. Nearly all values are shorter than 64 bits and have the column's scale: a
//! run of equal scales takes one check, and lengths are checked before values are widened to 128 bits.

use arrow_array::types::Decimal128Type;
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::Field;
use coldframe_core::arrays::with_nulls;
use coldframe_core::{Error, ErrorContext, Result};
use coldframe_encoding::varint::unzigzag;

use super::input::Input;
use super::{
    ColumnReader, Malformed, MalformedValue, Present, Step, Validity, array, boxed, filtered, is_sparse,
    keep_dense, placed, primitive, rows_of, rows_of_kept,
};
use crate::layout::stripe::StreamKind;
use crate::layout::types::Column;
use crate::scan::rle::int::{IntRle, Version};
use crate::scan::stream::{ByteStream, StreamPosition};
use crate::scan::varint;
use crate::schema;

/// Number of values that are decoded together.
const BATCH: usize = 1024;

/// A reader of decimals.
pub(super) fn reader(input: &Input<'_>, column: &Column, field: &Field) -> Result<Box<dyn ColumnReader>> {
    let present = input.present(column.id)?;
    let (precision, scale) = schema::decimal(column)?;
    let data = if input.quirks.short_decimals && (1..=18).contains(&column.precision) {
        Unscaled::Integers(input.integers(column.id, StreamKind::Data, Version::V2, true)?)
    } else {
        let scales = input.integers(column.id, StreamKind::Secondary, input.version(column.id)?, true)?;
        Unscaled::Varints(input.bytes(column.id, StreamKind::Data)?, scales)
    };
    let limit = 10i128.checked_pow(precision.into()).unwrap_or(i128::MAX).unsigned_abs();
    let (scratch, nullable, malformed) = (vec![0; BATCH], field.is_nullable(), Vec::new());
    boxed(Decimals { present, data, precision, scale, limit, scratch, nullable, malformed })
}

/// How the unscaled values are stored.
enum Unscaled {
    /// As integers of 64 bits, in the column's scale.
    Integers(IntRle),
    /// As varints, each with a scale.
    Varints(ByteStream, IntRle),
}

struct Decimals {
    present: Present,
    data: Unscaled,
    precision: u8,
    scale: i8,
    /// Values must be less than ten to the precision.
    limit: u128,
    /// Memory for 64-bit values.
    scratch: Vec<u64>,
    /// A map's keys may not be null.
    nullable: bool,
    /// Rows of the last batch whose values have too many digits.
    malformed: Vec<usize>,
}

impl Decimals {
    /// Appends the values of a step. Returns whether none has too many digits.
    fn append(&mut self, step: Step, values: &mut Vec<i128>) -> Result<bool> {
        match &mut self.data {
            Unscaled::Integers(data) => {
                data.skip(step.pass).within(|| "DATA")?;
                integers(data, step.take, &mut self.scratch, values, self.limit)
            }
            Unscaled::Varints(data, scales) => {
                skip_varints(data, step.pass).within(|| "DATA")?;
                scales.skip(step.pass).within(|| "SECONDARY")?;
                let first = values.len();
                let is_short = varints(data, step.take, &mut self.scratch, values, self.limit);
                let is_short = is_short.within(|| "DATA")?;
                let values = values.get_mut(first..).unwrap_or_default();
                let unchanged = rescale(scales, values, self.scale).within(|| "SECONDARY")?;
                let limit = self.limit;
                // After rescaling, the values have other digits than the checked values.
                Ok(if unchanged { is_short } else { values.iter().all(|v| v.unsigned_abs() < limit) })
            }
        }
    }

    /// The dense values of some steps, with memory for `rows` values, and whether none has too many digits.
    fn values(&mut self, steps: &[Step], rows: usize) -> Result<(Vec<i128>, bool)> {
        let (mut values, mut is_short) = (Vec::with_capacity(rows), true);
        for step in steps {
            is_short &= self.append(*step, &mut values)?;
        }
        Ok((values, is_short))
    }

    /// Dense values in `rows` rows with this validity.
    fn decimals(
        &mut self,
        (mut values, is_short): (Vec<i128>, bool),
        rows: usize,
        validity: Validity,
    ) -> Result<ArrayRef> {
        self.malformed.clear();
        if !is_short {
            if !self.nullable {
                return Err(Malformed::Digits(self.precision).to_error(0));
            }
            let is_long = |value: &mut i128| {
                let long = value.unsigned_abs() >= self.limit;
                *value = if long { 0 } else { *value };
                long
            };
            let long = values.iter_mut().map(is_long).enumerate().filter(|(_, long)| *long);
            let places: Vec<usize> = long.map(|(place, _)| place).collect();
            self.malformed = rows_of(&validity, &places);
        }
        let values = placed(values, rows, &validity)?;
        let nulls = with_nulls(validity.nulls, rows, &self.malformed);
        let decimals: PrimitiveArray<Decimal128Type> = primitive(values, nulls);
        let typed = decimals.with_precision_and_scale(self.precision, self.scale);
        Ok(array(typed.map_err(coldframe_core::arrow_error)?))
    }
}

impl ColumnReader for Decimals {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        let values = self.values(&validity.all(), rows)?;
        self.decimals(values, rows, validity)
    }

    fn read_kept(
        &mut self,
        rows: usize,
        parent: Option<&NullBuffer>,
        kept: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        let count = kept.count_set_bits();
        let values = if is_sparse(kept) {
            self.values(&validity.steps(kept), count)?
        } else {
            let (mut values, is_short) = self.values(&validity.all(), rows)?;
            if !is_short {
                return filtered(&self.decimals((values, is_short), rows, validity)?, kept);
            }
            keep_dense(&mut values, &validity, kept);
            (values, true)
        };
        let decimals = self.decimals(values, count, validity.of_kept(kept))?;
        self.malformed = rows_of_kept(&self.malformed, kept);
        Ok(decimals)
    }

    fn skip(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<()> {
        let count = self.present.read(rows, parent)?.valid;
        match &mut self.data {
            Unscaled::Integers(data) => data.skip(count).within(|| "DATA"),
            Unscaled::Varints(data, scales) => {
                skip_varints(data, count).within(|| "DATA")?;
                scales.skip(count).within(|| "SECONDARY")
            }
        }
    }

    fn positions(&self, into: &mut Vec<StreamPosition>) {
        self.present.positions(into);
        match &self.data {
            Unscaled::Integers(data) => into.push(data.position(StreamKind::Data)),
            Unscaled::Varints(data, scales) => {
                into.extend([data.position(StreamKind::Data, None), scales.position(StreamKind::Secondary)]);
            }
        }
    }

    fn malformed(&self, into: &mut Vec<MalformedValue>) {
        let why = Malformed::Digits(self.precision);
        into.extend(self.malformed.iter().map(|row| MalformedValue { row: *row, column: None, why }));
    }
}

/// Appends `count` integers. Returns whether all absolute values are less than `limit`.
fn integers(
    data: &mut IntRle,
    count: usize,
    scratch: &mut [u64],
    out: &mut Vec<i128>,
    limit: u128,
) -> Result<bool> {
    let mut largest = 0;
    let end = out.len() + count;
    while out.len() < end {
        let some = scratch.len().min(end - out.len());
        let scratch = scratch.get_mut(..some).unwrap_or_default();
        data.read(scratch).within(|| "DATA")?;
        largest = scratch.iter().fold(largest, |l, word| word.cast_signed().unsigned_abs().max(l));
        out.extend(scratch.iter().map(|word| i128::from(word.cast_signed())));
    }
    Ok(u128::from(largest) < limit)
}

/// Appends `count` zigzag varints of at most 128 bits. Returns whether all absolute values are less than
/// `limit`.
fn varints(
    stream: &mut ByteStream,
    rows: usize,
    scratch: &mut [u64],
    out: &mut Vec<i128>,
    limit: u128,
) -> Result<bool> {
    let (mut largest, mut is_short) = (0, true);
    let end = out.len() + rows;
    while out.len() < end {
        let bytes = stream.fill(varint::LONGEST)?;
        let some = scratch.len().min(end - out.len());
        let (used, count) = varint::many(bytes, scratch.get_mut(..some).unwrap_or_default());
        if count > 0 {
            let decoded = scratch.get(..count).unwrap_or_default();
            largest = decoded.iter().fold(largest, |l, word| l.max(*word));
            out.extend(decoded.iter().map(|word| i128::from(unzigzag(*word))));
            stream.consume(used);
            continue;
        }
        let (value, used) = match varint::short(bytes) {
            Some((word, used)) => (i128::from(unzigzag(word)), used),
            None => match varint::long(bytes) {
                Some((word, used)) => ((word >> 1).cast_signed() ^ -((word & 1).cast_signed()), used),
                None => return Err(stream.ended("a varint of at most 128 bits")),
            },
        };
        is_short &= value.unsigned_abs() < limit;
        out.push(value);
        stream.consume(used);
    }
    Ok(is_short && unzigzag_bound(largest) < limit)
}

/// Skips `count` varints of at most 128 bits.
fn skip_varints(stream: &mut ByteStream, mut count: usize) -> Result<()> {
    while count > 0 {
        let (used, passed) = varint::skip(stream.fill(varint::LONGEST)?, count);
        if used == 0 {
            return Err(stream.ended("a varint of at most 128 bits"));
        }
        stream.consume(used);
        count -= passed;
    }
    Ok(())
}

/// The largest absolute value of any number whose zigzag is at most `word`.
fn unzigzag_bound(word: u64) -> u128 {
    u128::from(word).div_ceil(2)
}

/// Reads the scales of `values` and rescales them to `scale`. Returns whether all values had that scale.
fn rescale(scales: &mut IntRle, values: &mut [i128], scale: i8) -> Result<bool> {
    let scale = i32::from(scale);
    let mut own_scales = Vec::new();
    let (mut at, mut unchanged) = (0, true);
    while at < values.len() {
        let rest = values.get_mut(at..).unwrap_or_default();
        if let Some((own, n)) = scales.constant(rest.len())? {
            at += n;
            if own != i64::from(scale) {
                unchanged = false;
                let own = i32::try_from(own).map_err(|_| wrong_scale(scale, own))?;
                rest.iter_mut().take(n).try_for_each(|value| rescale_value(value, own, scale))?;
            }
            continue;
        }
        own_scales.resize(rest.len().min(BATCH), 0u32);
        scales.read(&mut own_scales)?;
        at += own_scales.len();
        if own_scales.iter().any(|own| own.cast_signed() != scale) {
            unchanged = false;
            rest.iter_mut()
                .zip(&own_scales)
                .try_for_each(|(v, own)| rescale_value(v, own.cast_signed(), scale))?;
        }
    }
    Ok(unchanged)
}

#[cold]
fn wrong_scale(scale: i32, actual: i64) -> Error {
    Error::corrupt(format!("expected a decimal of scale {scale}, found one of scale {actual}"))
}

/// Rescales a value from scale `own` to `scale`.
fn rescale_value(value: &mut i128, own: i32, scale: i32) -> Result<()> {
    let power = 10i128.checked_pow(scale.abs_diff(own));
    let scaled = if own <= scale {
        power.and_then(|p| value.checked_mul(p))
    } else {
        power.filter(|p| *value % p == 0).map(|p| *value / p)
    };
    let scaled = scaled.or((*value == 0).then_some(0));
    *value = scaled.ok_or_else(|| match own <= scale {
        true => {
            Error::corrupt(format!("expected a decimal that has room for scale {scale}, found one too long"))
        }
        false => wrong_scale(scale, own.into()),
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::compression::Compression;
    use crate::layout::proto::PostScript;
    use coldframe_encoding::varint::put_zigzag;

    fn stream(bytes: Vec<u8>) -> ByteStream {
        let plain = Compression::new(&PostScript::default(), &coldframe_encoding::Limits::default()).unwrap();
        ByteStream::new(bytes.into(), 0, plain)
    }

    #[test]
    fn values_of_all_lengths_are_decoded_and_checked() {
        let values: Vec<i64> = (0..3000)
            .map(|n| (0x1234_5678_9abc_def1i64 >> (n % 62)) * if n % 3 == 0 { -1 } else { 1 })
            .collect();
        let mut bytes = Vec::new();
        values.iter().for_each(|v| put_zigzag(&mut bytes, *v));
        let largest = values.iter().map(|v| v.unsigned_abs()).max().unwrap();
        for (limit, expected) in [(largest.into(), false), (u128::from(largest) + 1, true)] {
            let mut decoded = Vec::new();
            let mut stream = stream(bytes.clone());
            let is_short = varints(&mut stream, values.len(), &mut [0; BATCH], &mut decoded, limit).unwrap();
            assert_eq!((is_short, decoded.len()), (expected, values.len()));
            assert!(decoded.iter().zip(&values).all(|(actual, value)| *actual == i128::from(*value)));
            assert!(varints(&mut stream, 1, &mut [0; BATCH], &mut decoded, limit).is_err());
        }
        for skipped in [0, 1, 7, 64, 1000, values.len() - 1] {
            let mut stream = stream(bytes.clone());
            skip_varints(&mut stream, skipped).unwrap();
            let mut decoded = Vec::new();
            varints(&mut stream, 1, &mut [0; BATCH], &mut decoded, u128::MAX).unwrap();
            assert_eq!(decoded, [i128::from(values[skipped])]);
            assert!(skip_varints(&mut stream, values.len() - skipped).is_err());
        }
        // The limit is exact for short values, too.
        for (value, limit, expected) in
            [(99, 100, true), (-99, 100, true), (100, 100, false), (-100, 100, false)]
        {
            let mut bytes = Vec::new();
            (0..200).for_each(|_| put_zigzag(&mut bytes, value));
            let is_short = varints(&mut stream(bytes), 128, &mut [0; BATCH], &mut Vec::new(), limit).unwrap();
            assert_eq!(is_short, expected, "{value}");
        }
    }

    /// Scales in runs of one value and of several.
    fn scales(runs: &[u8]) -> IntRle {
        IntRle::new(stream(runs.to_vec()), Version::V2, true)
    }

    #[test]
    fn values_are_rescaled_to_the_columns_scale() {
        // DIRECT, 8 bits: 1, 3, 60; SHORT_REPEAT: 2 three times, 3 three times.
        let mut runs = scales(&[0x4e, 2, 2, 6, 120, 0x00, 4, 0x00, 6]);
        let mut values = [15, 1500, 0, 7, 8, 9, 10, 20, 30];
        assert!(!rescale(&mut runs, &mut values, 2).unwrap());
        assert_eq!(values, [150, 150, 0, 7, 8, 9, 1, 2, 3]);
        let mut values = [7, 8, 9];
        assert!(rescale(&mut scales(&[0x00, 4]), &mut values, 2).unwrap());
        assert_eq!(values, [7, 8, 9]);
        assert!(rescale(&mut scales(&[0x00, 6]), &mut [1, 1, 1], 2).is_err());
        assert!(rescale(&mut scales(&[0x00, 6]), &mut [0; 4], 2).is_err());
    }
}
