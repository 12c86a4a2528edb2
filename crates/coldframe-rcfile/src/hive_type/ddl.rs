//! Reads Hive's types from the column list of a `CREATE TABLE`, and prints them.

use coldframe_core::types::ddl::{self, Kind, Type, quoted};
use coldframe_encoding::{Error, Limits, Result};

use super::{HiveType, MAX_CHAR_LENGTH, MAX_VARCHAR_LENGTH, decimal, map, structure, union};

/// Parses a column list such as ``"id bigint, `tags` array<string>"``.
pub fn parse_columns(text: &str, limits: &Limits) -> Result<Vec<(String, HiveType)>> {
    let columns = ddl::parse_columns(text, limits)?;
    columns.into_iter().map(|(name, of)| Ok((name, hive_type(text, of)?))).collect()
}

/// Parses one type such as `map<string,array<int>>`.
pub fn parse_type(text: &str, limits: &Limits) -> Result<HiveType> {
    hive_type(text, ddl::parse_type(text, limits)?)
}

/// Converts a type parsed from `text` to Hive's type.
fn hive_type(text: &str, of: Type) -> Result<HiveType> {
    let nested = |of: Type| hive_type(text, of);
    let made = match of.kind {
        Kind::Boolean => Ok(HiveType::Boolean),
        Kind::TinyInt => Ok(HiveType::TinyInt),
        Kind::SmallInt => Ok(HiveType::SmallInt),
        Kind::Int => Ok(HiveType::Int),
        Kind::BigInt => Ok(HiveType::BigInt),
        Kind::Float => Ok(HiveType::Float),
        Kind::Double => Ok(HiveType::Double),
        Kind::String => Ok(HiveType::String),
        Kind::Binary => Ok(HiveType::Binary),
        Kind::Date => Ok(HiveType::Date),
        Kind::Timestamp => Ok(HiveType::Timestamp),
        Kind::TimestampLocalTz => Ok(HiveType::TimestampLocalTz),
        Kind::IntervalYearMonth => Ok(HiveType::IntervalYearMonth),
        Kind::IntervalDayTime => Ok(HiveType::IntervalDayTime),
        Kind::Decimal { precision, scale } => {
            let narrow = |n| u8::try_from(n).unwrap_or(u8::MAX);
            decimal(narrow(precision), narrow(scale))
        }
        Kind::Varchar(n) => length("varchar", n, MAX_VARCHAR_LENGTH).map(HiveType::Varchar),
        Kind::Char(n) => length("char", n, MAX_CHAR_LENGTH).map(HiveType::Char),
        Kind::Array(element) => Ok(HiveType::Array(Box::new(nested(*element)?))),
        Kind::Map(key, value) => map(nested(*key)?, nested(*value)?),
        Kind::Struct(fields) => {
            let fields = fields.into_iter().map(|(name, of)| Ok((name, nested(of)?)));
            structure(fields.collect::<Result<_>>()?)
        }
        Kind::Union(branches) => union(branches.into_iter().map(nested).collect::<Result<_>>()?),
        Kind::Geometry | Kind::Geography => {
            Err(Error::schema("geometry and geography: Hive has no such types"))
        }
    };
    made.map_err(|e| ddl::error_at(text, of.at, e.reason()))
}

/// A length within Hive's limits.
fn length(of: &str, n: u32, max: u32) -> Result<u32> {
    if (1..=max).contains(&n) {
        return Ok(n);
    }
    Err(Error::schema(format!("{of}({n}): expected a length of 1..={max}")))
}

/// Prints a column list. All names are quoted, since the reserved words differ between readers.
pub fn print_columns<'a>(columns: impl IntoIterator<Item = (&'a str, &'a HiveType)>) -> String {
    let column = |(name, of): (&str, &HiveType)| format!("{} {}", quoted(name), print_type(of));
    columns.into_iter().map(column).collect::<Vec<_>>().join(", ")
}

fn print_type(of: &HiveType) -> String {
    match of {
        HiveType::Array(element) => format!("array<{}>", print_type(element)),
        HiveType::Map(key, value) => format!("map<{},{}>", print_type(key), print_type(value)),
        HiveType::Struct(fields) => {
            let fields = fields.iter().map(|(name, of)| format!("{}:{}", quoted(name), print_type(of)));
            format!("struct<{}>", fields.collect::<Vec<_>>().join(","))
        }
        HiveType::Union(branches) => {
            format!("uniontype<{}>", branches.iter().map(print_type).collect::<Vec<_>>().join(","))
        }
        primitive => primitive.to_string(),
    }
}
