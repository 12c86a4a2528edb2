//! Hive's types as a tree, and the conversions from and to Arrow types and text.
//!
//! An RCFile holds neither names nor types, so the user supplies a table's columns: as an Arrow schema
//! ([`HiveType::from_arrow`]) or as the column list of the table's `CREATE TABLE` ([`ddl::parse_columns`]).
//! Grammar and ranges: Apache Hive's `TypeInfoUtils`, `HiveDecimal`, `HiveVarchar` and `HiveChar`.

pub mod ddl;

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit, UnionFields, UnionMode};
use coldframe_core::options::TimestampUnit;
use coldframe_core::types::char_field;
use coldframe_core::types::ddl::Name;
use coldframe_encoding::{Error, Result};

/// Maximum number of digits of a `decimal`.
pub const MAX_DECIMAL_PRECISION: u8 = 38;

/// Maximum number of code points of a `varchar`.
pub const MAX_VARCHAR_LENGTH: u32 = 65535;

/// Maximum number of code points of a `char`.
pub const MAX_CHAR_LENGTH: u32 = 255;

/// Maximum number of branches of a `uniontype`: its tag is a signed byte.
pub const MAX_UNION_BRANCHES: usize = 128;

/// A Hive column type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HiveType {
    /// `boolean`
    Boolean,
    /// `tinyint`
    TinyInt,
    /// `smallint`
    SmallInt,
    /// `int`
    Int,
    /// `bigint`
    BigInt,
    /// `float`
    Float,
    /// `double`
    Double,
    /// `decimal(precision, scale)`
    Decimal {
        /// Total digits, 1..=38.
        precision: u8,
        /// Digits after the point, 0..=precision.
        scale: u8,
    },
    /// `string`
    String,
    /// `varchar(n)`: at most `n` code points.
    Varchar(u32),
    /// `char(n)`: blank-padded to `n` code points.
    Char(u32),
    /// `binary`
    Binary,
    /// `string`, whose bytes are returned as they are: they need not be UTF-8.
    StringBytes,
    /// `date`
    Date,
    /// `timestamp`: wall clock, no zone.
    Timestamp,
    /// `timestamp with local time zone`: an instant.
    TimestampLocalTz,
    /// `interval_year_month`: int32 months.
    IntervalYearMonth,
    /// `interval_day_time`: struct<seconds: int64, nanos: int32>.
    IntervalDayTime,
    /// `array<element>`
    Array(Box<HiveType>),
    /// `map<key, value>`
    Map(Box<HiveType>, Box<HiveType>),
    /// `struct<name: type, ...>`
    Struct(Vec<(String, HiveType)>),
    /// `uniontype<...>`
    Union(Vec<HiveType>),
}

impl HiveType {
    /// The Arrow type that decoders return for this type.
    pub fn to_arrow(&self, unit: TimestampUnit) -> DataType {
        let unit_of_time = match unit {
            TimestampUnit::Nanosecond => TimeUnit::Nanosecond,
            TimestampUnit::Microsecond => TimeUnit::Microsecond,
        };
        match self {
            Self::Boolean => DataType::Boolean,
            Self::TinyInt => DataType::Int8,
            Self::SmallInt => DataType::Int16,
            Self::Int | Self::IntervalYearMonth => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            // Both are at most 38, so the scale fits an i8.
            Self::Decimal { precision, scale } => {
                DataType::Decimal128(*precision, i8::try_from(*scale).unwrap_or(i8::MAX))
            }
            Self::String | Self::Varchar(_) | Self::Char(_) => DataType::Utf8,
            Self::Binary | Self::StringBytes => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(unit_of_time, None),
            Self::TimestampLocalTz => DataType::Timestamp(unit_of_time, Some("UTC".into())),
            Self::IntervalDayTime => DataType::Struct(interval_day_time_fields()),
            Self::Array(element) => {
                DataType::List(Arc::new(Field::new("item", element.to_arrow(unit), true)))
            }
            Self::Map(key, value) => DataType::Map(map_entries(key, value, unit), false),
            Self::Struct(fields) => DataType::Struct(struct_fields(fields, unit)),
            Self::Union(branches) => DataType::Union(union_fields(branches, unit), UnionMode::Sparse),
        }
    }

    /// The same type, with texts as their bytes.
    #[must_use]
    pub(crate) fn with_bytes(self) -> Self {
        let boxed = |of: Box<Self>| Box::new(of.with_bytes());
        match self {
            Self::String => Self::StringBytes,
            Self::Array(element) => Self::Array(boxed(element)),
            Self::Map(key, value) => Self::Map(boxed(key), boxed(value)),
            Self::Struct(fields) => {
                Self::Struct(fields.into_iter().map(|(name, of)| (name, of.with_bytes())).collect())
            }
            Self::Union(branches) => Self::Union(branches.into_iter().map(Self::with_bytes).collect()),
            other => other,
        }
    }

    /// A nullable field of the type. A `char` is known as such by its metadata.
    pub fn to_field(&self, name: &str, unit: TimestampUnit) -> Field {
        let field = Field::new(name, self.to_arrow(unit), true);
        match self {
            Self::Char(length) => char_field(field, *length),
            _ => field,
        }
    }

    /// The Hive type for the values of an Arrow type; an error where Hive has none (unsigned integers, times,
    /// durations ...).
    pub fn from_arrow(data_type: &DataType) -> Result<Self> {
        Ok(match data_type {
            DataType::Boolean => Self::Boolean,
            DataType::Int8 => Self::TinyInt,
            DataType::Int16 => Self::SmallInt,
            DataType::Int32 => Self::Int,
            DataType::Int64 => Self::BigInt,
            DataType::Float16 | DataType::Float32 => Self::Float,
            DataType::Float64 => Self::Double,
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => decimal_from_arrow(*precision, *scale)?,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::String,
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Self::Binary,
            DataType::Date32 | DataType::Date64 => Self::Date,
            DataType::Timestamp(_, None) => Self::Timestamp,
            DataType::Timestamp(_, Some(_)) => Self::TimestampLocalTz,
            DataType::Interval(IntervalUnit::YearMonth) => Self::IntervalYearMonth,
            DataType::Dictionary(_, values) => Self::from_arrow(values)?,
            DataType::RunEndEncoded(_, values) => Self::from_arrow(values.data_type())?,
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => Self::Array(Box::new(Self::from_arrow(item.data_type())?)),
            DataType::Map(entries, _) => map_from_arrow(entries)?,
            DataType::Struct(fields) if *fields == interval_day_time_fields() => Self::IntervalDayTime,
            DataType::Struct(fields) => struct_from_arrow(fields)?,
            DataType::Union(branches, _) => union_from_arrow(branches)?,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                return Err(Error::schema(format!(
                    "Hive has no unsigned integers: cast {data_type} to a signed type that holds its values"
                )));
            }
            other => return Err(Error::schema(format!("Hive has no type for Arrow's {other}"))),
        })
    }

    /// Levels of nesting: 1 for a primitive, one more for each array, map, struct or union around it.
    pub fn depth(&self) -> u64 {
        let inner = match self {
            Self::Array(element) => element.depth(),
            Self::Map(key, value) => key.depth().max(value.depth()),
            Self::Struct(fields) => fields.iter().map(|(_, t)| t.depth()).max().unwrap_or(0),
            Self::Union(branches) => branches.iter().map(Self::depth).max().unwrap_or(0),
            _ => 0,
        };
        inner + 1
    }

    /// Whether `wanted` matches this type or a type nested in it.
    pub fn contains(&self, wanted: &Self) -> bool {
        self == wanted
            || match self {
                Self::Array(element) => element.contains(wanted),
                Self::Map(key, value) => key.contains(wanted) || value.contains(wanted),
                Self::Struct(fields) => fields.iter().any(|(_, t)| t.contains(wanted)),
                Self::Union(branches) => branches.iter().any(|t| t.contains(wanted)),
                _ => false,
            }
    }

    /// Whether the type has no nested types. (A map's key must be primitive.)
    pub fn is_primitive(&self) -> bool {
        !matches!(self, Self::Array(_) | Self::Map(..) | Self::Struct(_) | Self::Union(_))
    }
}

/// `seconds: int64, nanos: int32`, the fields of an `interval_day_time`; both have the interval's sign.
pub fn interval_day_time_fields() -> Fields {
    Fields::from(vec![
        Field::new("seconds", DataType::Int64, true),
        Field::new("nanos", DataType::Int32, true),
    ])
}

/// The `entries` field of a map: `key` never null, `value` nullable.
pub fn map_entries(key: &HiveType, value: &HiveType, unit: TimestampUnit) -> FieldRef {
    let fields = Fields::from(vec![
        Field::new("key", key.to_arrow(unit), false),
        Field::new("value", value.to_arrow(unit), true),
    ]);
    Arc::new(Field::new("entries", DataType::Struct(fields), false))
}

/// The fields of a struct: all nullable.
pub fn struct_fields(fields: &[(String, HiveType)], unit: TimestampUnit) -> Fields {
    fields.iter().map(|(name, t)| t.to_field(name, unit)).collect()
}

/// The branches of a union: `f0`, `f1` ... with ids 0, 1 ...
pub fn union_fields(branches: &[HiveType], unit: TimestampUnit) -> UnionFields {
    let ids = 0..=i8::MAX;
    ids.zip(branches)
        .map(|(id, t)| (id, Arc::new(Field::new(format!("f{id}"), t.to_arrow(unit), true))))
        .collect()
}

fn decimal_from_arrow(precision: u8, scale: i8) -> Result<HiveType> {
    let scale = u8::try_from(scale)
        .map_err(|_| Error::schema(format!("decimal with negative scale {scale}: Hive has none")))?;
    decimal(precision, scale)
}

/// A decimal type within Hive's limits.
pub(crate) fn decimal(precision: u8, scale: u8) -> Result<HiveType> {
    if (1..=MAX_DECIMAL_PRECISION).contains(&precision) && scale <= precision {
        return Ok(HiveType::Decimal { precision, scale });
    }
    Err(Error::schema(format!(
        "decimal({precision},{scale}): expected a precision of 1..={MAX_DECIMAL_PRECISION} and a scale of 0..=precision"
    )))
}

fn map_from_arrow(entries: &Field) -> Result<HiveType> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(Error::schema(format!("map whose entries are {}, not a struct", entries.data_type())));
    };
    let [key, value] = fields.as_ref() else {
        return Err(Error::schema(format!("map whose entries have {} fields, not 2", fields.len())));
    };
    map(HiveType::from_arrow(key.data_type())?, HiveType::from_arrow(value.data_type())?)
}

/// A map type with a key that Hive allows.
pub(crate) fn map(key: HiveType, value: HiveType) -> Result<HiveType> {
    if !key.is_primitive() {
        return Err(Error::schema(format!("map with the key {key}: Hive's keys are primitive types")));
    }
    Ok(HiveType::Map(Box::new(key), Box::new(value)))
}

fn struct_from_arrow(fields: &Fields) -> Result<HiveType> {
    let fields = fields.iter().map(|f| Ok((f.name().clone(), HiveType::from_arrow(f.data_type())?)));
    structure(fields.collect::<Result<_>>()?)
}

/// A struct type; an error if it has no fields.
pub(crate) fn structure(fields: Vec<(String, HiveType)>) -> Result<HiveType> {
    if fields.is_empty() {
        return Err(Error::schema("struct without fields: Hive has none"));
    }
    Ok(HiveType::Struct(fields))
}

fn union_from_arrow(branches: &UnionFields) -> Result<HiveType> {
    for (expected, (id, field)) in (0i8..=i8::MAX).zip(branches.iter()) {
        if id != expected {
            return Err(Error::schema(format!(
                "union branch `{}` has the id {id}, expected {expected}: Hive counts its branches from 0",
                field.name()
            )));
        }
    }
    union(branches.iter().map(|(_, f)| HiveType::from_arrow(f.data_type())).collect::<Result<_>>()?)
}

/// A union type with at most as many branches as its tag can number.
pub(crate) fn union(branches: Vec<HiveType>) -> Result<HiveType> {
    if branches.is_empty() || branches.len() > MAX_UNION_BRANCHES {
        return Err(Error::schema(format!(
            "uniontype with {} branches: expected 1..={MAX_UNION_BRANCHES}",
            branches.len()
        )));
    }
    Ok(HiveType::Union(branches))
}

/// Hive's own spelling, as `DESCRIBE` prints it and [`ddl::parse_type`] reads it.
impl fmt::Display for HiveType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("boolean"),
            Self::TinyInt => f.write_str("tinyint"),
            Self::SmallInt => f.write_str("smallint"),
            Self::Int => f.write_str("int"),
            Self::BigInt => f.write_str("bigint"),
            Self::Float => f.write_str("float"),
            Self::Double => f.write_str("double"),
            Self::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
            Self::String | Self::StringBytes => f.write_str("string"),
            Self::Varchar(n) => write!(f, "varchar({n})"),
            Self::Char(n) => write!(f, "char({n})"),
            Self::Binary => f.write_str("binary"),
            Self::Date => f.write_str("date"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::TimestampLocalTz => f.write_str("timestamp with local time zone"),
            Self::IntervalYearMonth => f.write_str("interval_year_month"),
            Self::IntervalDayTime => f.write_str("interval_day_time"),
            Self::Array(element) => write!(f, "array<{element}>"),
            Self::Map(key, value) => write!(f, "map<{key},{value}>"),
            Self::Struct(fields) => {
                f.write_str("struct<")?;
                for (i, (name, t)) in fields.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    write!(f, "{comma}{}:{t}", Name(name))?;
                }
                f.write_str(">")
            }
            Self::Union(branches) => {
                f.write_str("uniontype<")?;
                for (i, t) in branches.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    write!(f, "{comma}{t}")?;
                }
                f.write_str(">")
            }
        }
    }
}

#[cfg(test)]
mod tests;
