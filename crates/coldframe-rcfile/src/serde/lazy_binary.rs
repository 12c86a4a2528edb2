//! Reads and writes the cells of `LazyBinaryColumnarSerDe`, the SerDe of RCFile tables since Hive 0.12.
//!
//! An empty cell is null. Otherwise the bytes of the cell are the value, without a length prefix:
//!
//! ```text
//! boolean, tinyint            | 1 byte |
//! smallint, float, double     | 2, 4, 8 bytes, big-endian |
//! int, bigint, date, months   | Hadoop VInt |
//! decimal                     | VInt scale | VInt n | n bytes, two's complement, big-endian |
//! timestamp                   | 4 bytes | [VInt nanos] | [VInt seconds >> 31] |   see `timestamp`
//! interval_day_time           | VInt seconds | VInt nanos |
//! string, char, varchar       | UTF-8 |            the empty string of a `string` is the one byte bf
//! binary                      | bytes |
//! array                       | VInt n | bitmap of n bits | elements |
//! map                         | VInt n | bitmap of 2n bits: key, value, key .. | key, value, key .. |
//! struct                      | bitmap of 8 fields | 8 fields | bitmap | fields .. |
//! uniontype                   | tag byte | element |
//! ```
//!
//! Bitmaps are LSB first; a set bit is a value that is not null; a null takes no further space. A value inside an
//! array, map, struct or union must say where it ends: strings and binary have a VInt length prefix, and nested
//! arrays, maps, structs and unions a 4-byte length. A struct that was written with fewer fields than the type has
//! ends early, and the rest is null; one written with more fields has extra bytes, which are ignored.
//!
//! Sources: Hive's `LazyBinaryColumnarSerDe`, `LazyBinaryColumnarStruct`, `LazyBinarySerDe`, `LazyBinaryUtils`,
//! `TimestampWritable`(`V2`), and the bytes of files that Hive 0.8 to 4.1, Spark and Trino wrote.
//!
//! Hive checks little when it reads: if a cell contradicts its type, Hive throws an exception, continues into
//! the next cell or returns a wrong value. Here such a value is an error that names the row. A decimal that
//! does not fit its type is null, as in Hive.
//!
//! A whole column is decoded at a time, also for nested types: a nested type gathers the bytes of its
//! elements into cells of their own (`cells::Elements`), and the element's type decodes those.

mod cells;
mod decimal;
mod elements;
mod encode;
mod fixed;
mod framing;
mod nested;
mod text;
mod timestamp;
mod vint;

#[cfg(test)]
mod tests;

use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_schema::DataType;
use coldframe_encoding::{Error, Result};

use self::cells::{Run, Values};
use self::elements::ListBytes;
use super::{Cells, ColumnDecoder, ColumnEncoder, HiveVersion, SerdeOptions};
use crate::hive_type::HiveType;

/// The decoder for the cells of a column of type `hive_type`.
pub(crate) fn decoder(hive_type: &HiveType, options: &SerdeOptions) -> Result<Box<dyn ColumnDecoder>> {
    options.limits.depth("type tree", hive_type.depth())?;
    let data_type = hive_type.to_arrow(options.timestamp_unit);
    Ok(Box::new(Decoder { values: values(hive_type, options)?, data_type, lists: ListBytes::new(hive_type) }))
}

/// The encoder for the cells of a column of type `hive_type`.
///
/// It takes arrays of the type that [`HiveType::to_arrow`] gives; timestamps may have any unit.
pub(crate) fn encoder(hive_type: &HiveType, options: &SerdeOptions) -> Result<Box<dyn ColumnEncoder>> {
    options.limits.depth("type tree", hive_type.depth())?;
    Ok(Box::new(encode::Encoder::new(hive_type.clone(), options)))
}

/// Hive before 3 stores timestamps as instants and dates as days of the hybrid calendar, which is Julian before
/// 1582-10-15.
fn has_old_calendar(version: HiveVersion) -> bool {
    version <= HiveVersion::V2_3
}

struct Decoder {
    values: Box<dyn Values>,
    lists: ListBytes,
    data_type: DataType,
}

impl ColumnDecoder for Decoder {
    /// The lists of a single row are measured when they are decoded.
    fn element_bytes(&self, cells: &Cells) -> u64 {
        let several = !cells.nulled && cells.offsets.len() > 2;
        match Run::of_column(&cells.data, &cells.offsets) {
            Ok(run) if several => self.lists.most(&run),
            _ => 0,
        }
    }

    fn decode(&self, cells: &Cells) -> Result<ArrayRef> {
        let rows = cells.offsets.len().saturating_sub(1);
        if cells.nulled {
            return Ok(new_null_array(&self.data_type, rows));
        }
        let run = Run::of_column(&cells.data, &cells.offsets)?;
        let array = self.values.decode(&run).map_err(|e| e.in_row(cells.first_row))?;
        if array.len() == rows && array.data_type() == &self.data_type {
            return Ok(array);
        }
        let (actual, expected) = (array.data_type(), &self.data_type);
        Err(Error::schema(format!(
            "expected {rows} values of {expected}, decoded {} of {actual}",
            array.len()
        )))
    }
}

/// The decoder for the cells of a type.
fn values(hive_type: &HiveType, options: &SerdeOptions) -> Result<Box<dyn Values>> {
    Ok(match hive_type {
        HiveType::Boolean => Box::new(fixed::Boolean),
        HiveType::TinyInt => Box::new(fixed::TinyInt),
        HiveType::SmallInt => Box::new(fixed::SmallInt),
        HiveType::Float => Box::new(fixed::Float),
        HiveType::Double => Box::new(fixed::Double),
        HiveType::Int | HiveType::IntervalYearMonth => Box::new(vint::Int),
        HiveType::BigInt => Box::new(vint::BigInt),
        HiveType::Date => Box::new(vint::Date { hybrid: has_old_calendar(options.hive_version) }),
        HiveType::IntervalDayTime => Box::new(vint::IntervalDayTime),
        HiveType::Decimal { precision, scale } => Box::new(decimal::Decimal::new(*precision, *scale)?),
        HiveType::Timestamp => Box::new(timestamp::Timestamp::wall_clock(options)),
        HiveType::TimestampLocalTz => Box::new(timestamp::Timestamp::instant(options)),
        HiveType::String => Box::new(text::Text::new(text::CharLimit::AsIs, &options.changes)),
        HiveType::Varchar(n) => Box::new(text::Text::new(text::CharLimit::AtMost(*n), &options.changes)),
        HiveType::Char(n) => Box::new(text::Text::new(text::CharLimit::Padded(*n), &options.changes)),
        HiveType::Binary => Box::new(text::Binary),
        HiveType::StringBytes => Box::new(text::StringBytes),
        HiveType::Array(element) => Box::new(nested::List::new(element, options)?),
        HiveType::Map(key, value) => Box::new(nested::Map::new(key, value, options)?),
        HiveType::Struct(fields) => Box::new(nested::Struct::new(fields, options)?),
        HiveType::Union(branches) => Box::new(nested::Union::new(branches, options)?),
    })
}
