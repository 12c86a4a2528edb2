//! Ordering values: which of two records with one key is the newer one.

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time64MicrosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use coldframe_core::{Error, Result};

/// An ordering value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Order {
    /// None, or the number 0, which means none in a delete: the order of the writes decides.
    Natural,
    /// An integer, a boolean, a date or a time.
    Int(i64),
    /// A floating point number.
    Float(f64),
    /// Digits and how many of them follow the point.
    Decimal(i128, i8),
    /// Text.
    Text(Box<str>),
    /// Bytes.
    Bytes(Box<[u8]>),
    /// The values of several columns.
    Several(Box<[Order]>),
}

/// A record that is deleted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Delete {
    /// Its key.
    pub key: Vec<u8>,
    /// The ordering value; `Natural` always deletes.
    pub order: Order,
}

impl Delete {
    /// A delete without an ordering value.
    pub(crate) fn of_key(key: Vec<u8>) -> Self {
        Self { key, order: Order::Natural }
    }
}

impl Order {
    /// How two values compare; `None` if they are of different kinds, or one is missing.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => Some(a.total_cmp(b)),
            (Self::Decimal(a, x), Self::Decimal(b, y)) => Some(decimals((*a, *x), (*b, *y))),
            // Java compares texts by UTF-16 units.
            (Self::Text(a), Self::Text(b)) => Some(a.encode_utf16().cmp(b.encode_utf16())),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Several(a), Self::Several(b)) if a.len() == b.len() => {
                let each = a.iter().zip(b).map(|(a, b)| a.compare(b));
                let mut all = Ordering::Equal;
                for order in each {
                    all = all.then(order?);
                }
                Some(all)
            }
            _ => None,
        }
    }

    /// Whether this value is greater than another of the same kind.
    pub(crate) fn exceeds(&self, other: &Self) -> bool {
        self.compare(other) == Some(Ordering::Greater)
    }
}

fn decimals((a, x): (i128, i8), (b, y): (i128, i8)) -> Ordering {
    let scaled = |value: i128, by: i8| {
        let factor = u32::try_from(by.max(0)).ok().and_then(|by| 10_i128.checked_pow(by));
        factor.and_then(|factor| value.checked_mul(factor))
    };
    match (scaled(a, y.saturating_sub(x)), scaled(b, x.saturating_sub(y))) {
        (Some(a), Some(b)) => a.cmp(&b),
        // If one value has no room for the other's digits, its size alone makes it the larger one.
        (None, _) => a.cmp(&0),
        (_, None) => 0.cmp(&b),
    }
}

/// The ordering values of all rows of some columns.
pub(crate) fn orders(columns: &[&ArrayRef], rows: usize) -> Result<Vec<Order>> {
    match columns {
        [] => Ok(vec![Order::Natural; rows]),
        [only] => (0..rows).map(|row| of(only, row)).collect(),
        several => (0..rows)
            .map(|row| {
                let values = several.iter().map(|column| of(column, row));
                Ok(Order::Several(values.collect::<Result<_>>()?))
            })
            .collect(),
    }
}

/// The ordering value in one row of a column.
fn of(column: &ArrayRef, row: usize) -> Result<Order> {
    if column.is_null(row) {
        return Ok(Order::Natural);
    }
    macro_rules! value {
        ($kind:ty) => {
            column.as_primitive::<$kind>().value(row)
        };
    }
    Ok(match column.data_type() {
        DataType::Null => Order::Natural,
        DataType::Boolean => Order::Int(column.as_boolean().value(row).into()),
        DataType::Int8 => Order::Int(value!(Int8Type).into()),
        DataType::Int16 => Order::Int(value!(Int16Type).into()),
        DataType::Int32 => Order::Int(value!(Int32Type).into()),
        DataType::Int64 => Order::Int(value!(Int64Type)),
        DataType::Float32 => Order::Float(value!(Float32Type).into()),
        DataType::Float64 => Order::Float(value!(Float64Type)),
        DataType::Date32 => Order::Int(value!(Date32Type).into()),
        DataType::Time32(TimeUnit::Millisecond) => Order::Int(value!(Time32MillisecondType).into()),
        DataType::Time64(TimeUnit::Microsecond) => Order::Int(value!(Time64MicrosecondType)),
        DataType::Timestamp(TimeUnit::Second, _) => Order::Int(value!(TimestampSecondType)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => Order::Int(value!(TimestampMillisecondType)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => Order::Int(value!(TimestampMicrosecondType)),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Order::Int(value!(TimestampNanosecondType)),
        DataType::Decimal128(_, scale) => Order::Decimal(value!(Decimal128Type), *scale),
        DataType::Utf8 => Order::Text(column.as_string::<i32>().value(row).into()),
        DataType::Binary => Order::Bytes(column.as_binary::<i32>().value(row).into()),
        other => return Err(Error::unsupported(format!("an ordering column of type {other}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_kind_compare() {
        assert!(Order::Int(2).exceeds(&Order::Int(1)) && !Order::Int(1).exceeds(&Order::Int(1)));
        assert!(Order::Decimal(15, 1).exceeds(&Order::Decimal(149, 2)));
        assert!(!Order::Decimal(15, 1).exceeds(&Order::Decimal(150, 2)));
        assert!(Order::Text("b".into()).exceeds(&Order::Text("ab".into())));
        assert_eq!(Order::Natural.compare(&Order::Int(1)), None);
        assert_eq!(Order::Text("1".into()).compare(&Order::Int(1)), None);
        let pair = |a, b| Order::Several([Order::Int(a), Order::Text(b)].into());
        assert!(pair(1, "b".into()).exceeds(&pair(1, "a".into())));
        assert!(!pair(1, "b".into()).exceeds(&pair(2, "a".into())));
    }
}
