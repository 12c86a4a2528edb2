//! Reads `decimal`: VInt scale, VInt length, and the unscaled value in that many bytes.
//!
//! Hive writes the smallest scale and the fewest bytes that hold the value, so `1.50` is `01 01 0f`. Reading rescales
//! the value to the column's scale, rounding half up if digits are dropped; a value that then has more digits than the
//! precision is null (`HiveDecimalWritable.mutateEnforcePrecisionScale`).

use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use coldframe_encoding::{Cursor, Error, Result};

use super::cells::{CellError, Run, Values};
use super::framing::Framing;
use super::vint::word_before;

/// Hive's `HiveDecimal.MAX_SCALE`.
const MAX_SCALE: usize = 38;

pub(super) struct Decimal {
    data_type: DataType,
    scale: u8,
    /// The first value with too many digits.
    limit: u128,
    /// `limit`, saturated to 64 bits.
    short_limit: u64,
    /// The multiplier for a value of each stored scale; 0 if that needs more than a 64-bit multiplication.
    factors: [i64; MAX_SCALE + 1],
}

impl Decimal {
    pub(super) fn new(precision: u8, scale: u8) -> Result<Self> {
        let wrong =
            || Error::schema(format!("expected a decimal of at most 38 digits, found ({precision},{scale})"));
        if precision == 0 || precision > 38 || scale > precision {
            return Err(wrong());
        }
        let limit = 10u128.checked_pow(precision.into()).ok_or_else(wrong)?;
        let short_limit = u64::try_from(limit).unwrap_or(u64::MAX);
        let mut factors = [0; MAX_SCALE + 1];
        for (stored, factor) in factors.iter_mut().enumerate() {
            let zeros = usize::from(scale).checked_sub(stored).and_then(|n| u32::try_from(n).ok());
            *factor = zeros.and_then(|n| 10i64.checked_pow(n)).unwrap_or(0);
        }
        let arrow_scale = i8::try_from(scale).map_err(|_| wrong())?;
        Ok(Self {
            data_type: DataType::Decimal128(precision, arrow_scale),
            scale,
            limit,
            short_limit,
            factors,
        })
    }

    /// The value of a cell at `data[start..end]` whose unscaled value has at most 8 bytes and whose scale is at most
    /// the column's.
    #[inline]
    fn short(&self, data: &[u8], start: usize, end: usize) -> Option<i128> {
        let [scale, length] = *data.get(start..)?.first_chunk()?;
        let bytes = end.wrapping_sub(start).wrapping_sub(2);
        let factor = *self.factors.get(usize::from(scale))?;
        let unused = u32::try_from(64usize.wrapping_sub(bytes.wrapping_mul(8)) & 63).unwrap_or(0);
        let unscaled = (word_before(data, end) << unused).cast_signed() >> unused;
        let (value, overflow) = unscaled.overflowing_mul(factor);
        let wrong = (usize::from(length) != bytes)
            | (bytes.wrapping_sub(1) > 7)
            | (factor == 0)
            | overflow
            | (value.unsigned_abs() >= self.short_limit);
        if wrong { None } else { Some(value.into()) }
    }

    /// The value of any cell; `None` if it does not fit the type.
    fn any(&self, mut cell: Cursor<'_>) -> Result<Option<i128>> {
        let scale = cell.hadoop_vint()?;
        let Some(scale) = usize::try_from(scale).ok().filter(|s| *s <= MAX_SCALE) else {
            return Err(Error::corrupt(format!(
                "expected a decimal's scale of 0 to {MAX_SCALE}, found {scale}"
            )));
        };
        let bytes = cell.hadoop_text()?;
        cell.finish()?;
        let Some(unscaled) = big_endian(bytes)? else { return Ok(None) };
        let shift = usize::from(self.scale).abs_diff(scale);
        let Some(power) = u32::try_from(shift).ok().and_then(|n| 10i128.checked_pow(n)) else {
            return Ok(None);
        };
        let value = if scale <= usize::from(self.scale) {
            unscaled.checked_mul(power)
        } else {
            Some(half_up(unscaled, power))
        };
        Ok(value.filter(|v| v.unsigned_abs() < self.limit))
    }
}

/// The number in these bytes; `None` if it needs more than 128 bits.
fn big_endian(bytes: &[u8]) -> Result<Option<i128>> {
    let Some(first) = bytes.first() else {
        return Err(Error::corrupt("expected the bytes of a decimal, found none"));
    };
    let fill = if *first >= 128 { 0xff } else { 0 };
    let significant = bytes.len().min(16);
    let (extension, low) = bytes.split_at_checked(bytes.len() - significant).unwrap_or_default();
    let sign_agrees = low.first().is_some_and(|b| (*b >= 128) == (fill == 0xff));
    if extension.iter().any(|b| *b != fill) || !sign_agrees {
        return Ok(None);
    }
    let mut wide = [fill; 16];
    wide.iter_mut().rev().zip(low.iter().rev()).for_each(|(to, from)| *to = *from);
    Ok(Some(i128::from_be_bytes(wide)))
}

/// `value / power`, rounding halves away from zero.
fn half_up(value: i128, power: i128) -> i128 {
    let (quotient, rest) = (value / power, value % power);
    if rest.unsigned_abs() * 2 >= power.unsigned_abs() { quotient + value.signum() } else { quotient }
}

impl Values for Decimal {
    fn framing(&self) -> Framing {
        Framing::Decimal
    }

    fn decode(&self, run: &Run<'_>) -> Result<ArrayRef, CellError> {
        let data = run.data.as_slice();
        let mut values: Vec<i128> = Vec::with_capacity(run.len());
        let mut unusual = Vec::new();
        // `extend` knows the length, so the loop does not check the capacity.
        values.extend(run.places().enumerate().map(|(i, (start, end))| {
            if start == end {
                return 0;
            }
            self.short(data, start, end).unwrap_or_else(|| {
                unusual.push(i);
                0
            })
        }));
        let mut misfits = Vec::new();
        for i in unusual {
            let cell = run.cell(i);
            match self.any(Cursor::new(cell, 0)).map_err(|e| CellError::new(i, e))? {
                Some(value) => values.get_mut(i).into_iter().for_each(|v| *v = value),
                None => misfits.push(i),
            }
        }
        let nulls = with_nulls(run, &misfits);
        let array = Decimal128Array::new(values.into(), nulls).with_data_type(self.data_type.clone());
        Ok(Arc::new(array))
    }
}

/// The nulls of the run, and more nulls at `more`.
fn with_nulls(run: &Run<'_>, more: &[usize]) -> Option<NullBuffer> {
    if more.is_empty() {
        return run.nulls.clone();
    }
    let mut valid: Vec<bool> = (0..run.len()).map(|i| !run.is_null(i)).collect();
    for i in more {
        if let Some(v) = valid.get_mut(*i) {
            *v = false;
        }
    }
    Some(NullBuffer::from(valid))
}
