//! The values in a filter, before the type of the column is known.

use std::fmt;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Float32Type, Float64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, TimeUnit};

use super::number::Number;

/// A value in a filter.
#[derive(Clone, Debug)]
pub enum Literal {
    /// No value.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer or a decimal number, exact.
    Number(Number),
    /// A double.
    Float(f64),
    /// Text. For a column of dates or timestamps, the text is parsed as a date or a timestamp.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Days since 1970.
    Date(i64),
    /// A timestamp. If it has a zone, it cannot be compared with a column
    /// without a zone.
    Instant {
        /// Nanoseconds since 1970, in UTC if `zoned`, otherwise on the wall clock of the column.
        nanos: i128,
        /// Whether the value has a zone.
        zoned: bool,
    },
    /// A value of another type, as an array of length 1; it must be cast to the column's type.
    Array(ArrayRef),
    /// A value that cannot be compared with any column, in the caller's words.
    Other(String),
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Text(a), Self::Text(b)) | (Self::Other(a), Self::Other(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Date(a), Self::Date(b)) => a == b,
            (Self::Instant { nanos: a, zoned: x }, Self::Instant { nanos: b, zoned: y }) => a == b && x == y,
            (Self::Array(a), Self::Array(b)) => a.to_data() == b.to_data(),
            _ => false,
        }
    }
}

impl Literal {
    /// The value at index `i` of an array.
    #[must_use]
    pub fn from_array(array: &ArrayRef, i: usize) -> Self {
        if i >= array.len() || array.is_null(i) {
            return Self::Null;
        }
        let text = || array_value_to_string(array, i).unwrap_or_default();
        let instant =
            |count: i64, nanos: i128| Self::Instant { nanos: i128::from(count) * nanos, zoned: false };
        match array.data_type() {
            DataType::Boolean => Self::Bool(array.as_boolean().value(i)),
            t if t.is_integer() || t.is_decimal() => {
                Number::parse(&text()).map_or_else(|| Self::Other(text()), Self::Number)
            }
            DataType::Float64 => Self::Float(array.as_primitive::<Float64Type>().value(i)),
            DataType::Float32 => Self::Float(array.as_primitive::<Float32Type>().value(i).into()),
            DataType::Utf8 => Self::Text(array.as_string::<i32>().value(i).to_owned()),
            DataType::LargeUtf8 => Self::Text(array.as_string::<i64>().value(i).to_owned()),
            DataType::Utf8View => Self::Text(array.as_string_view().value(i).to_owned()),
            DataType::Binary => Self::Bytes(array.as_binary::<i32>().value(i).to_vec()),
            DataType::LargeBinary => Self::Bytes(array.as_binary::<i64>().value(i).to_vec()),
            DataType::BinaryView => Self::Bytes(array.as_binary_view().value(i).to_vec()),
            DataType::FixedSizeBinary(_) => Self::Bytes(array.as_fixed_size_binary().value(i).to_vec()),
            DataType::Date32 => Self::Date(array.as_primitive::<Date32Type>().value(i).into()),
            DataType::Date64 => instant(array.as_primitive::<Date64Type>().value(i), 1_000_000),
            DataType::Timestamp(unit, _) => {
                let count = match unit {
                    TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(i),
                    TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(i),
                    TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().value(i),
                    TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().value(i),
                };
                instant(count, nanoseconds(*unit))
            }
            DataType::Dictionary(_, values) => match arrow_cast::cast(&array.slice(i, 1), values) {
                Ok(plain) => Self::from_array(&plain, 0),
                Err(e) => Self::Other(e.to_string()),
            },
            DataType::Float16 => match arrow_cast::cast(&array.slice(i, 1), &DataType::Float64) {
                Ok(wide) => Self::from_array(&wide, 0),
                Err(e) => Self::Other(e.to_string()),
            },
            _ => Self::Array(array.slice(i, 1)),
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(v) => write!(f, "{v}"),
            Self::Number(v) => write!(f, "{v}"),
            Self::Float(v) => write!(f, "{v:e}"),
            Self::Text(v) => write!(f, "'{}'", v.replace('\'', "''")),
            Self::Bytes(v) => {
                f.write_str("X'")?;
                v.iter().try_for_each(|b| write!(f, "{b:02x}"))?;
                f.write_str("'")
            }
            Self::Date(v) => write!(f, "the date of day {v}"),
            Self::Instant { nanos, zoned } => {
                write!(f, "the timestamp {nanos} ns{}", if *zoned { " UTC" } else { "" })
            }
            Self::Array(v) => {
                write!(f, "{} {}", v.data_type(), array_value_to_string(v, 0).unwrap_or_default())
            }
            Self::Other(v) => f.write_str(v),
        }
    }
}

/// The number of nanoseconds in a unit.
pub(super) fn nanoseconds(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}
