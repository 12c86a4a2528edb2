//! Reads and writes the cells of `ColumnarSerDe`: text, with separators between the parts of nested values.
//!
//! ```text
//! bigint 42 | string ^A is no separator here | array<map<string,int>> k ^D 1 ^C l ^D 2 ^B m ^D 3 | null \N
//! ```
//!
//! A cell equal to `serialization.null.format` (`\N`) is null at every level; so is text that does not parse as its
//! type. The accepted text depends on the version of Hive: the module of each type says how. Separators, null
//! format and escapes are SerDe properties: see [`TextOptions`]. Sources: Apache Hive's packages
//! `serde2.lazy` and `serde2.columnar`, releases 2.3, 3.1 and 4.1.

mod boolean;
mod cells;
mod date_time;
mod decimal;
mod digits;
mod encode;
mod fixed;
mod float;
mod formats;
mod instant;
mod integer;
mod interval;
mod nested;
mod options;
mod print;
mod scanner;
mod strings;
mod zoned;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, Int64Builder};
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{ArrayRef, PrimitiveArray, StructArray, new_null_array};
use arrow_buffer::ArrowNativeType;
use coldframe_core::Changes;
use coldframe_encoding::{Error, Result};

pub(crate) use self::encode::encoder;
pub(crate) use self::options::TextOptions;

use self::cells::{CellSource, Validity};
use self::fixed::{Parse, boolean, primitive};
use self::formats::Formats;
use self::strings::CharLimit;
use super::{Cells, ColumnDecoder, HiveVersion, SerdeOptions, TimestampUnit, expansion};
use crate::hive_type::{HiveType, interval_day_time_fields};

/// Whether a value of this type may depend on earlier cells in its row group, so that the whole group must be
/// decoded together: an extended boolean keeps the last value when a word is not a boolean.
pub(crate) fn depends_on_earlier_rows<'a>(
    types: impl IntoIterator<Item = &'a HiveType>,
    options: &SerdeOptions,
) -> bool {
    TextOptions::from(options).extended_boolean
        && types.into_iter().any(|hive_type| hive_type.contains(&HiveType::Boolean))
}

/// Elements that together take at most this much memory are decoded without being counted first.
const UNCOUNTED_BYTES: u64 = 32 << 20;

/// A decoder of a text column of type `hive_type`.
pub(crate) fn decoder(hive_type: &HiveType, options: &SerdeOptions) -> Result<Box<dyn ColumnDecoder>> {
    options.limits.depth("type tree", hive_type.depth())?;
    let text = TextOptions::from(options);
    text.check_nesting(hive_type)?;
    let mut separated = Vec::new();
    expansion::separated(hive_type, 1, &mut separated);
    Ok(Box::new(TextDecoder {
        hive_type: hive_type.clone(),
        separated,
        formats: Formats::compile(&text.timestamp_formats, options.hive_version)?,
        options: text,
        version: options.hive_version,
        session_zone: options.timezone,
        unit: options.timestamp_unit,
        changes: options.changes.clone(),
    }))
}

struct TextDecoder {
    hive_type: HiveType,
    /// For each level of separators, the bytes of the elements that one separator may begin.
    separated: Vec<u64>,
    options: TextOptions,
    formats: Formats,
    version: HiveVersion,
    session_zone: Option<chrono_tz::Tz>,
    unit: TimestampUnit,
    changes: Changes,
}

impl ColumnDecoder for TextDecoder {
    fn element_bytes(&self, cells: &Cells) -> u64 {
        let place = cells.offsets.first().as_usize()..cells.offsets.last().as_usize();
        let bytes = cells.data.get(place).unwrap_or_default();
        let most = self.separated.iter().max().copied().unwrap_or(0).saturating_mul(bytes.len() as u64);
        // Elements that together take so few bytes need not be counted.
        if cells.nulled || most <= UNCOUNTED_BYTES {
            return 0;
        }
        let levels = self.separated.iter().zip(&self.options.separators).filter(|(cost, _)| **cost > 0);
        levels
            .map(|(cost, separator)| {
                cost.saturating_mul(memchr::memchr_iter(*separator, bytes).count() as u64)
            })
            .fold(0, u64::saturating_add)
    }

    fn decode(&self, cells: &Cells) -> Result<ArrayRef> {
        if cells.nulled {
            return Ok(new_null_array(&self.hive_type.to_arrow(self.unit), cells.len()));
        }
        self.values(&self.hive_type, cells, 1)
    }
}

impl TextDecoder {
    /// The decoder of a column whose separators begin at `level`.
    fn values<S: CellSource>(&self, hive_type: &HiveType, source: &S, level: usize) -> Result<ArrayRef> {
        let null_format = self.options.null_format.as_slice();
        Ok(match hive_type {
            HiveType::Boolean => {
                let make = || boolean::Boolean::new(self.options.extended_boolean);
                Arc::new(boolean(source, null_format, make))
            }
            HiveType::TinyInt => {
                Arc::new(primitive::<Int8Type, _, _>(source, null_format, integer::Integer::new)?)
            }
            HiveType::SmallInt => {
                Arc::new(primitive::<Int16Type, _, _>(source, null_format, integer::Integer::new)?)
            }
            HiveType::Int => {
                Arc::new(primitive::<Int32Type, _, _>(source, null_format, integer::Integer::new)?)
            }
            HiveType::BigInt => {
                Arc::new(primitive::<Int64Type, _, _>(source, null_format, integer::Integer::new)?)
            }
            HiveType::Float => {
                Arc::new(primitive::<Float32Type, _, _>(source, null_format, float::Float::new)?)
            }
            HiveType::Double => {
                Arc::new(primitive::<Float64Type, _, _>(source, null_format, float::Float::new)?)
            }
            HiveType::Decimal { precision, scale } => {
                let make = || decimal::Decimal::new(*precision, *scale, self.version);
                let array: PrimitiveArray<Decimal128Type> = primitive(source, null_format, make)?;
                Arc::new(array.with_data_type(hive_type.to_arrow(self.unit)))
            }
            HiveType::Date => Arc::new(primitive::<Date32Type, _, _>(source, null_format, || {
                date_time::Date::new(self.version)
            })?),
            HiveType::Timestamp => {
                let make = || date_time::Timestamp::new(self.version, self.range(), &self.formats);
                self.time(hive_type, source, make)?
            }
            HiveType::TimestampLocalTz => {
                self.time(hive_type, source, || zoned::Zoned::new(self.session_zone, self.range()))?
            }
            HiveType::IntervalYearMonth => {
                Arc::new(primitive::<Int32Type, _, _>(source, null_format, || interval::YearMonth)?)
            }
            HiveType::IntervalDayTime => self.interval_day_time(source)?,
            HiveType::String => self.string(source, CharLimit::AsIs)?,
            HiveType::Varchar(n) => self.string(source, CharLimit::AtMost(*n))?,
            HiveType::Char(n) => self.string(source, CharLimit::Padded(*n))?,
            HiveType::Binary => strings::binary(source, null_format, self.version)?,
            HiveType::StringBytes => strings::bytes(source, &self.options)?,
            HiveType::Array(element) => self.list(element, source, level)?,
            HiveType::Map(key, value) => self.map(key, value, source, level)?,
            HiveType::Struct(fields) => self.structure(fields, source, level)?,
            HiveType::Union(branches) => self.union(branches, source, level)?,
        })
    }

    fn string<S: CellSource>(&self, source: &S, shape: CharLimit) -> Result<ArrayRef> {
        strings::string(source, &self.options, shape, &self.changes)
    }

    fn range(&self) -> instant::Range {
        instant::Range::new(self.unit, self.changes.clone())
    }

    fn time<S: CellSource, P: Parse<Value = i64>>(
        &self,
        hive_type: &HiveType,
        source: &S,
        make: impl Fn() -> P,
    ) -> Result<ArrayRef> {
        let data_type = hive_type.to_arrow(self.unit);
        let null_format = self.options.null_format.as_slice();
        Ok(match self.unit {
            TimestampUnit::Nanosecond => {
                let array: PrimitiveArray<TimestampNanosecondType> = primitive(source, null_format, make)?;
                Arc::new(array.with_data_type(data_type))
            }
            TimestampUnit::Microsecond => {
                let array: PrimitiveArray<TimestampMicrosecondType> = primitive(source, null_format, make)?;
                Arc::new(array.with_data_type(data_type))
            }
        })
    }

    fn interval_day_time<S: CellSource>(&self, source: &S) -> Result<ArrayRef> {
        let mut seconds = Int64Builder::with_capacity(source.len());
        let mut nanos = Int32Builder::with_capacity(source.len());
        let mut validity = Validity::with_capacity(source.len());
        for cell in source.cells() {
            let value = cell
                .filter(|c| c.bytes() != self.options.null_format)
                .and_then(|c| interval::DayTime.parse(c));
            validity.push(value.is_some());
            seconds.append_option(value.map(|v| v.0));
            nanos.append_option(value.map(|v| v.1));
        }
        let columns: Vec<ArrayRef> = vec![Arc::new(seconds.finish()), Arc::new(nanos.finish())];
        let array = StructArray::try_new(interval_day_time_fields(), columns, validity.finish());
        Ok(Arc::new(array.map_err(|e| Error::corrupt(e.to_string()))?))
    }
}
