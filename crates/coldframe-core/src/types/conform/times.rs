//! Converts timestamps to another unit: nanoseconds are rounded down to microseconds, other conversions are
//! exact.

use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, Int64Array};
use arrow_schema::{ArrowError, DataType, TimeUnit};

use super::{Column, unfit};

/// Converts `array`, which has timestamps, to another unit. Zones are labels that do not change instants, so
/// only the numbers are converted.
pub(super) fn timestamps(
    array: &ArrayRef,
    unit: TimeUnit,
    zone: Option<&str>,
    target: &DataType,
    column: Column<'_>,
) -> Result<ArrayRef> {
    let own_type = array.data_type();
    let DataType::Timestamp(own, label) = own_type else { return Err(column.refused(target, own_type)) };
    if label.is_none() != zone.is_none() {
        return Err(Error::schema(format!(
            "column {column}: expected {target}, found {own_type} (an instant is not a wall clock time, which is \
             timestamp_ntz; of ORC, the option timestamps_in reads instants in a time zone)"
        )));
    }
    // Casting timestamps to integers and back keeps the numbers.
    let bare = arrow_cast::cast(array, &DataType::Int64).map_err(unfit)?;
    let counted = recounted(bare.as_primitive(), *own, unit).map_err(|reason| {
        Error::schema(format!("column {column}: {own_type} does not fit {target} ({reason})"))
    })?;
    arrow_cast::cast(&counted, target).map_err(unfit)
}

fn recounted(counts: &Int64Array, from: TimeUnit, to: TimeUnit) -> Result<Int64Array, ArrowError> {
    if from == TimeUnit::Nanosecond && to != TimeUnit::Nanosecond {
        // Rounds down, not towards zero, as Spark and Hive do for times before 1970.
        let floored = counts.unary::<_, Int64Type>(|count| count.div_euclid(1000));
        return recounted(&floored, TimeUnit::Microsecond, to);
    }
    let (from, to) = (per_second(from), per_second(to));
    if from == to {
        return Ok(counts.clone());
    }
    if from < to {
        let factor = to / from;
        return counts.try_unary(|count| count.mul_checked(factor));
    }
    let divisor = from / to;
    counts.try_unary(|count| match count % divisor {
        0 => Ok(count / divisor),
        _ => Err(ArrowError::CastError(format!("{count} would lose digits"))),
    })
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
