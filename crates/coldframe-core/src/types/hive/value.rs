//! A value that is converted.

use super::number::Number;

/// A value of a file's column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Boolean(bool),
    Integer(i64),
    /// The value as a double, and whether the column is a float.
    Float(f64, bool),
    Decimal(Number),
    /// Of a `string`.
    Text(&'a str),
    /// Of a `char`, without its padding, or a `varchar`.
    Character(&'a str),
    Bytes(&'a [u8]),
    /// Days since 1970-01-01.
    Date(i32),
    Time(Time),
}

/// A timestamp: of a wall clock, or an instant in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    /// Seconds since 1970-01-01, rounded down.
    pub(super) seconds: i64,
    /// 0..=999,999,999
    pub(super) nanos: u32,
}
