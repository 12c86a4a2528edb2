//! Finds out what statistics and bloom filters guarantee, and so which stripes and row groups a filter must
//! read.
//!
//! | module | holds |
//! |---|---|
//! | [`bounds`] | smallest and largest value, nulls |
//! | [`bloom`] | bloom filters |
//! | [`filter`] | a filter evaluated on both |
//! | [`checks`] | bounds and bloom filters, compared with values |
//! | [`stripes`] | stripes and row groups of a scan |

pub(crate) mod bloom;
pub(crate) mod bounds;
pub(crate) mod checks;
pub(crate) mod filter;
pub(crate) mod stripes;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_schema::TimeUnit;

/// The file's type of the column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// The form that the Arrow type states.
    Plain,
    /// A text padded with blanks to this many characters.
    Char(usize),
    /// A decimal of format 1.9999: a 64-bit integer.
    Decimal64,
    /// A date; before 1582, its day number is of the hybrid calendar.
    HybridDate,
    /// A wall clock that the reader turns into an instant: statistics are of the wall clock.
    WallClock,
}

/// Value `i` of a timestamp array in nanoseconds.
fn nanoseconds(values: &ArrayRef, unit: TimeUnit, i: usize) -> Option<i128> {
    Some(match unit {
        TimeUnit::Second => {
            i128::from(values.as_primitive_opt::<TimestampSecondType>()?.value(i)) * 1_000_000_000
        }
        TimeUnit::Millisecond => {
            i128::from(values.as_primitive_opt::<TimestampMillisecondType>()?.value(i)) * 1_000_000
        }
        TimeUnit::Microsecond => {
            i128::from(values.as_primitive_opt::<TimestampMicrosecondType>()?.value(i)) * 1000
        }
        TimeUnit::Nanosecond => values.as_primitive_opt::<TimestampNanosecondType>()?.value(i).into(),
    })
}
