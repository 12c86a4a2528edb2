//! Converts values to another type of the same family, if all values are preserved.
//!
//! Arrow's kernels cut off fractions and round decimals without an error. So unless a conversion is a plain
//! widening, its result is converted back and compared. Three conversions may round, because the target type
//! is inexact or coarser: double to float, decimals to floats, floats to decimals.

use std::sync::Arc;

use crate::arrays::window;
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Float64Type,
};
use arrow_array::{Array, ArrayRef, GenericBinaryArray, GenericStringArray, OffsetSizeTrait, PrimitiveArray};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, TimeUnit};

use super::Column;

/// Types whose values have the same meaning.
#[derive(Clone, Copy, PartialEq)]
enum Family {
    Bytes,
    Numbers,
    Dates,
    Times,
    Durations,
}

impl Family {
    fn of(kind: &DataType) -> Option<Self> {
        match kind {
            DataType::FixedSizeBinary(_) => Some(Self::Bytes),
            kind if kind.is_string() || kind.is_binary() => Some(Self::Bytes),
            kind if kind.is_numeric() => Some(Self::Numbers),
            DataType::Date32 | DataType::Date64 => Some(Self::Dates),
            DataType::Time32(_) | DataType::Time64(_) => Some(Self::Times),
            DataType::Duration(_) => Some(Self::Durations),
            _ => None,
        }
    }
}

/// Converts `array` to a type that differs from its own.
pub(super) fn cast(array: &ArrayRef, target: &DataType, column: Column<'_>) -> Result<ArrayRef> {
    let own = array.data_type();
    let family = Family::of(own).filter(|family| Family::of(target) == Some(*family));
    let made = match family {
        Some(Family::Bytes) => bytes(array, target),
        Some(_) => exact(array, target),
        None => return Err(column.refused(target, own)),
    };
    made.map_err(|reason| {
        Error::schema(format!("column {column}: expected {target}, found {own} ({reason})"))
    })
}

/// Runs Arrow's cast. A value that does not fit is an error, and does not become null.
fn kernel(array: &dyn Array, target: &DataType) -> Result<ArrayRef, ArrowError> {
    cast_with_options(array, target, &CastOptions { safe: false, ..CastOptions::default() })
}

fn changed() -> ArrowError {
    ArrowError::CastError("a value would change".into())
}

fn exact(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    let own = array.data_type();
    if own.is_floating() && target.is_integer() {
        check_whole(array)?;
        return kernel(array, target);
    }
    if own.is_decimal() && target.is_decimal() {
        return rescaled(array, target);
    }
    checked(array, target)
}

fn checked(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    let (own, made) = (array.data_type(), kernel(array, target)?);
    // If the conversion back fails because a value does not fit, the first conversion was not exact either.
    let same = !may_round(own, target) || kernel(&made, own).is_ok_and(|back| &back == array);
    if same { Ok(made) } else { Err(changed()) }
}

/// Converts decimals to another width or scale. The kernel panics or wraps if a value has more digits than
/// its type allows, and the bytes under a null are arbitrary.
fn rescaled(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    fn settled<T: DecimalType>(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let decimals = array.as_primitive::<T>();
        decimals.validate_decimal_precision(decimals.precision())?;
        if decimals.null_count() == 0 {
            return Ok(array.clone());
        }
        let zeroed: PrimitiveArray<T> = decimals.iter().collect();
        Ok(Arc::new(zeroed.with_data_type(array.data_type().clone())))
    }
    let settled = match array.data_type() {
        DataType::Decimal32(_, _) => settled::<Decimal32Type>(array)?,
        DataType::Decimal64(_, _) => settled::<Decimal64Type>(array)?,
        DataType::Decimal128(_, _) => settled::<Decimal128Type>(array)?,
        _ => settled::<Decimal256Type>(array)?,
    };
    checked(&settled, target)
}

/// An error if a number has a fraction, or is NaN or infinite. (Converting back would distinguish -0.0.)
fn check_whole(array: &ArrayRef) -> Result<(), ArrowError> {
    let wide = kernel(array, &DataType::Float64)?;
    let whole = wide.as_primitive::<Float64Type>().iter().flatten().all(|value| value == value.trunc());
    if whole { Ok(()) } else { Err(changed()) }
}

/// Whether the kernel may change a value.
fn may_round(own: &DataType, target: &DataType) -> bool {
    use DataType::*;
    match (own, target) {
        (Int8 | UInt8, Float16 | Float32 | Float64) => false,
        (Int16 | UInt16, Float32 | Float64) => false,
        (Int32 | UInt32, Float64) => false,
        (own, target) if own.is_integer() && target.is_floating() => true,
        (own, target) if own.is_floating() || target.is_floating() => false,
        (Date64, Date32) => true,
        _ => match (digits(own), digits(target)) {
            (Some(own), Some(target)) => target < own,
            _ => false,
        },
    }
}

/// The number of decimal digits after the point, for a decimal; for times, the number of digits of a second's
/// fraction in their unit.
fn digits(kind: &DataType) -> Option<i8> {
    use DataType::*;
    match kind {
        Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => {
            Some(*scale)
        }
        kind if kind.is_integer() => Some(0),
        Time32(unit) | Time64(unit) | Duration(unit) => Some(match unit {
            TimeUnit::Second => 0,
            TimeUnit::Millisecond => 3,
            TimeUnit::Microsecond => 6,
            TimeUnit::Nanosecond => 9,
        }),
        _ => None,
    }
}

/// Converts text and bytes to another layout; bytes that become text must be UTF-8.
fn bytes(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    let own = array.data_type();
    match (own, target) {
        // Arrow converts between these types only by way of plain binary.
        (DataType::FixedSizeBinary(_), target) if target.is_string() => {
            bytes(&kernel(array, &DataType::Binary)?, target)
        }
        (own, DataType::FixedSizeBinary(_)) if own.is_string() || *own == DataType::BinaryView => {
            kernel(&kernel(array, &DataType::Binary)?, target)
        }
        (DataType::Binary, DataType::Utf8) => text::<i32>(array),
        (DataType::LargeBinary, DataType::LargeUtf8) => text::<i64>(array),
        (own, target) if own.is_binary() && target.is_string() => lenient_text(array, target),
        _ => kernel(array, target),
    }
}

/// Bytes as text without a copy, checked all at once. Bytes outside the slice are not checked.
fn text<O: OffsetSizeTrait>(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let binary: &GenericBinaryArray<O> = array.as_binary();
    let (start, length, offsets) = window(binary.offsets());
    let values = binary.values().slice_with_length(start, length);
    match GenericStringArray::<O>::try_new(offsets, values, binary.nulls().cloned()) {
        Ok(text) => Ok(Arc::new(text)),
        Err(_) => lenient_text(array, &GenericStringArray::<O>::DATA_TYPE),
    }
}

/// Bytes as text, checked value by value: the bytes under nulls need not be UTF-8.
fn lenient_text(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    let made = arrow_cast::cast(array, target)?;
    if made.null_count() == array.null_count() {
        return Ok(made);
    }
    Err(ArrowError::CastError("a value is not UTF-8".into()))
}
