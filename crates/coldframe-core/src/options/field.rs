//! The types of options in a struct, and the kind of value of each type.

use coldframe_encoding::{Error, Result};

use super::{Kind, shown};
use crate::Value;

/// The type of an option.
pub trait Field: Sized {
    /// The kind of an option of this type, unless its declaration sets another.
    const KIND: Kind;

    /// Converts a value in normal form. The error does not contain the option's name.
    fn from_value(value: Value) -> Result<Self>;

    /// The option's value; `Null` if it has none.
    fn to_value(&self) -> Value;
}

#[cold]
fn mismatch(expected: &str, actual: &Value) -> Error {
    Error::invalid(format!("expected {expected}, found {}", shown(actual)))
}

impl Field for bool {
    const KIND: Kind = Kind::Flag;

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Bool(b) => Ok(b),
            other => Err(mismatch("true or false", &other)),
        }
    }

    fn to_value(&self) -> Value {
        Value::from(*self)
    }
}

macro_rules! integers {
    ($($type:ty: $least:expr, $most:expr;)*) => {$(
        impl Field for $type {
            const KIND: Kind = Kind::Int { least: $least, most: $most };

            fn from_value(value: Value) -> Result<Self> {
                let number = match &value {
                    Value::Int(i) => Self::try_from(*i).ok(),
                    Value::UInt(u) => Self::try_from(*u).ok(),
                    _ => None,
                };
                number.ok_or_else(|| mismatch("an integer that is in range", &value))
            }

            fn to_value(&self) -> Value {
                Value::from(*self)
            }
        }
    )*};
}

integers! {
    i32: -0x8000_0000, 0x7fff_ffff;
    i64: i64::MIN, 0x7fff_ffff_ffff_ffff;
    u32: 0, 0xffff_ffff;
    u64: 0, u64::MAX;
    usize: 0, u64::MAX;
}

impl Field for f64 {
    const KIND: Kind = Kind::Float { above: f64::NEG_INFINITY, below: f64::INFINITY };

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Float(f) => Ok(f),
            other => Err(mismatch("a number", &other)),
        }
    }

    fn to_value(&self) -> Value {
        Value::from(*self)
    }
}

impl Field for String {
    const KIND: Kind = Kind::Text;

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Str(text) => Ok(text),
            other => Err(mismatch("a string", &other)),
        }
    }

    fn to_value(&self) -> Value {
        Value::from(self.as_str())
    }
}

impl<T: Field> Field for Option<T> {
    const KIND: Kind = T::KIND;

    fn from_value(value: Value) -> Result<Self> {
        T::from_value(value).map(Some)
    }

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }
}

/// A list of names.
impl Field for Vec<String> {
    const KIND: Kind = Kind::Names;

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::List(names) => names.into_iter().map(String::from_value).collect(),
            other => Err(mismatch("names", &other)),
        }
    }

    fn to_value(&self) -> Value {
        match self.is_empty() {
            true => Value::Null,
            false => Value::List(self.iter().map(String::to_value).collect()),
        }
    }
}

/// A type of the values in an option that is a map.
trait Mapped: Sized {
    const BYTES: bool;
    const NULLS: bool;
    fn taken(value: Value) -> Result<Self>;
    fn given(&self) -> Value;
}

impl Mapped for String {
    const BYTES: bool = false;
    const NULLS: bool = false;

    fn taken(value: Value) -> Result<Self> {
        Self::from_value(value)
    }

    fn given(&self) -> Value {
        self.to_value()
    }
}

impl Mapped for Option<String> {
    const BYTES: bool = false;
    const NULLS: bool = true;

    fn taken(value: Value) -> Result<Self> {
        if value == Value::Null { Ok(None) } else { String::from_value(value).map(Some) }
    }

    fn given(&self) -> Value {
        self.to_value()
    }
}

/// Bytes, or text, of which the UTF-8 is used.
impl Mapped for Vec<u8> {
    const BYTES: bool = true;
    const NULLS: bool = false;

    fn taken(value: Value) -> Result<Self> {
        match value {
            Value::Str(text) => Ok(text.into_bytes()),
            Value::Bytes(bytes) => Ok(bytes),
            other => Err(mismatch("text or bytes", &other)),
        }
    }

    fn given(&self) -> Value {
        Value::text_or_bytes(self)
    }
}

impl Mapped for Option<Vec<u8>> {
    const BYTES: bool = true;
    const NULLS: bool = true;

    fn taken(value: Value) -> Result<Self> {
        if value == Value::Null { Ok(None) } else { Vec::taken(value).map(Some) }
    }

    fn given(&self) -> Value {
        self.as_ref().map_or(Value::Null, Mapped::given)
    }
}

/// Values by names, in the order given.
impl<T: Mapped> Field for Vec<(String, T)> {
    const KIND: Kind = Kind::Map { bytes: T::BYTES, nulls: T::NULLS };

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Map(pairs) => pairs.into_iter().map(|(key, v)| Ok((key, T::taken(v)?))).collect(),
            other => Err(mismatch("a mapping", &other)),
        }
    }

    fn to_value(&self) -> Value {
        match self.is_empty() {
            true => Value::Null,
            false => Value::map(self.iter().map(|(key, v)| (key.as_str(), v.given()))),
        }
    }
}

/// A point in time as the user gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Time {
    /// A number in the format's unit.
    Number(i128),
    /// Text such as `2020-01-31T12:00:00+01:00`, UTC if it names no zone.
    Text(String),
}

impl From<&str> for Time {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for Time {
    fn from(number: i64) -> Self {
        Self::Number(number.into())
    }
}

impl From<u64> for Time {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl Field for Time {
    const KIND: Kind = Kind::Time;

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Int(number) => Ok(Self::Number(number.into())),
            Value::UInt(number) => Ok(Self::Number(number.into())),
            Value::Str(text) => Ok(Self::Text(text)),
            other => Err(mismatch("a date and time, or a number", &other)),
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Number(number) => match i64::try_from(*number) {
                Ok(number) => Value::Int(number),
                Err(_) => u64::try_from(*number).map_or(Value::Null, Value::UInt),
            },
        }
    }
}

/// A range of times that includes the first time and excludes the second.
impl Field for (Time, Time) {
    const KIND: Kind = Kind::TimeRange;

    fn from_value(value: Value) -> Result<Self> {
        let ends = match value {
            Value::List(ends) => <[Value; 2]>::try_from(ends).map_err(Value::List),
            other => Err(other),
        };
        let [from, to] = ends.map_err(|other| mismatch("two times", &other))?;
        Ok((Time::from_value(from)?, Time::from_value(to)?))
    }

    fn to_value(&self) -> Value {
        Value::List(vec![self.0.to_value(), self.1.to_value()])
    }
}

crate::choices! {
    /// Unit of the Arrow timestamps of a format that stores nanoseconds.
    #[derive(Default)]
    pub enum TimestampUnit {
        /// Nanoseconds: exact, for the years 1677 to 2262.
        #[default]
        Nanosecond = "ns",
        /// Microseconds: for all years, but finer digits are lost.
        Microsecond = "us",
    }
}

impl From<TimestampUnit> for arrow_schema::TimeUnit {
    fn from(unit: TimestampUnit) -> Self {
        match unit {
            TimestampUnit::Nanosecond => Self::Nanosecond,
            TimestampUnit::Microsecond => Self::Microsecond,
        }
    }
}

crate::choices! {
    /// How strings and binary values are laid out in Arrow.
    #[derive(Default)]
    pub enum Strings {
        /// Contiguous bytes with offsets.
        #[default]
        Plain = "plain",
        /// Views of 16 bytes, which hold a short value or the position of a long value in the decoded blocks.
        View = "view",
    }
}

/// Bytes, given as bytes or as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Field for Bytes {
    const KIND: Kind = Kind::Bytes;

    fn from_value(value: Value) -> Result<Self> {
        Vec::taken(value).map(Self)
    }

    fn to_value(&self) -> Value {
        Value::text_or_bytes(&self.0)
    }
}
