//! Encodes arrays to the cells that `ColumnarSerDe` writes.
//!
//! Null is the null format at every level, also within a list: Hive reads a list of one null as null, and a list of one
//! empty string as an empty list. The encoder refuses values that would be read as other values, although
//! Hive writes them: text equal to the null format, an unescaped separator. Sources: Hive's
//! `LazySimpleSerDe.serialize` and `LazyUtils.writePrimitiveUTF8`.

use std::collections::HashSet;
use std::io::Write as _;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{
    Array, BinaryArray, BooleanArray, ListArray, MapArray, PrimitiveArray, StringArray, StructArray,
    UnionArray,
};
use arrow_schema::{DataType, TimeUnit};
use base64::display::Base64Display;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use coldframe_encoding::{Error, Result, java_text};

use super::options::TextOptions;
use super::print;
use super::strings::{CharLimit, shaped};
use crate::hive_type::HiveType;
use crate::serde::bounds::{check_characters, check_digits};
use crate::serde::{ColumnEncoder, HiveVersion, SerdeOptions};

/// The encoder for a column of type `hive_type`, for arrays of the type that [`HiveType::to_arrow`] gives;
/// timestamps may have any unit.
pub(crate) fn encoder(hive_type: &HiveType, options: &SerdeOptions) -> Result<Box<dyn ColumnEncoder>> {
    options.limits.depth("type tree", hive_type.depth())?;
    let text = TextOptions::from(options);
    text.check_nesting(hive_type)?;
    let mut needs_escape = [false; 256];
    let crlf = if text.escape_crlf { b"\r\n".as_slice() } else { &[] };
    for byte in text.separators.iter().chain(&text.escape).chain(crlf) {
        if let Some(flag) = needs_escape.get_mut(usize::from(*byte)) {
            *flag = text.escape.is_some();
        }
    }
    let version = options.hive_version;
    Ok(Box::new(TextEncoder {
        hive_type: hive_type.clone(),
        context: Context { options: text, needs_escape, version },
    }))
}

struct TextEncoder {
    hive_type: HiveType,
    context: Context,
}

struct Context {
    options: TextOptions,
    needs_escape: [bool; 256],
    version: HiveVersion,
}

impl ColumnEncoder for TextEncoder {
    fn encode(
        &self,
        array: &dyn Array,
        rows: Range<usize>,
        data: &mut Vec<u8>,
        lengths: &mut Vec<u32>,
    ) -> Result<()> {
        if rows.start > rows.end || rows.end > array.len() {
            return Err(Error::invalid(format!(
                "expected rows of an array of {} rows, found {rows:?}",
                array.len()
            )));
        }
        let column = TypedArray::new(&self.hive_type, array)?;
        lengths.reserve(rows.len());
        for row in rows {
            let start = data.len();
            self.context
                .write(&column, row, 1, data)
                .map_err(|e| e.within(format!("row {row} to be written")))?;
            let length = u32::try_from(data.len() - start).map_err(|_| {
                Error::invalid(format!(
                    "expected a cell of less than 4 GiB, found {} bytes",
                    data.len() - start
                ))
            })?;
            lengths.push(length);
        }
        Ok(())
    }
}

/// An array and its parts, by its Hive type.
enum TypedArray<'a> {
    Boolean(&'a BooleanArray),
    TinyInt(&'a PrimitiveArray<Int8Type>),
    SmallInt(&'a PrimitiveArray<Int16Type>),
    Int(&'a PrimitiveArray<Int32Type>),
    BigInt(&'a PrimitiveArray<Int64Type>),
    Float(&'a PrimitiveArray<Float32Type>),
    Double(&'a PrimitiveArray<Float64Type>),
    /// Values, precision and scale.
    Decimal(&'a PrimitiveArray<Decimal128Type>, u8, u8),
    String(&'a StringArray, CharLimit),
    Binary(&'a BinaryArray),
    Date(&'a PrimitiveArray<Date32Type>),
    Time {
        values: Times<'a>,
        zoned: bool,
    },
    YearMonth(&'a PrimitiveArray<Int32Type>),
    DayTime(&'a StructArray, &'a PrimitiveArray<Int64Type>, &'a PrimitiveArray<Int32Type>),
    List(&'a ListArray, Box<TypedArray<'a>>),
    Map(&'a MapArray, Box<TypedArray<'a>>, Box<TypedArray<'a>>),
    Struct(&'a StructArray, Vec<TypedArray<'a>>),
    Union(&'a UnionArray, Vec<TypedArray<'a>>),
}

enum Times<'a> {
    Seconds(&'a PrimitiveArray<TimestampSecondType>),
    Millis(&'a PrimitiveArray<TimestampMillisecondType>),
    Micros(&'a PrimitiveArray<TimestampMicrosecondType>),
    Nanos(&'a PrimitiveArray<TimestampNanosecondType>),
}

impl Times<'_> {
    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Seconds(a) => a.is_null(row),
            Self::Millis(a) => a.is_null(row),
            Self::Micros(a) => a.is_null(row),
            Self::Nanos(a) => a.is_null(row),
        }
    }

    /// Seconds since 1970-01-01 and nanoseconds.
    fn value(&self, row: usize) -> (i64, i64) {
        let (value, per_second) = match self {
            Self::Seconds(a) => (a.value(row), 1),
            Self::Millis(a) => (a.value(row), 1_000),
            Self::Micros(a) => (a.value(row), 1_000_000),
            Self::Nanos(a) => (a.value(row), 1_000_000_000),
        };
        (value.div_euclid(per_second), value.rem_euclid(per_second) * (1_000_000_000 / per_second))
    }
}

impl<'a> TypedArray<'a> {
    fn new(hive_type: &HiveType, array: &'a dyn Array) -> Result<Self> {
        let mismatch = || {
            Error::schema(format!(
                "an array of {} cannot be written as Hive's {hive_type}",
                array.data_type()
            ))
        };
        fn primitive<T: ArrowPrimitiveType>(array: &dyn Array) -> Option<&PrimitiveArray<T>> {
            array.as_primitive_opt()
        }
        let boxed = |t: &HiveType, a: &'a dyn Array| Self::new(t, a).map(Box::new);
        match hive_type {
            HiveType::Boolean => array.as_boolean_opt().map(Self::Boolean),
            HiveType::TinyInt => primitive(array).map(Self::TinyInt),
            HiveType::SmallInt => primitive(array).map(Self::SmallInt),
            HiveType::Int => primitive(array).map(Self::Int),
            HiveType::BigInt => primitive(array).map(Self::BigInt),
            HiveType::Float => primitive(array).map(Self::Float),
            HiveType::Double => primitive(array).map(Self::Double),
            HiveType::Decimal { precision, scale } => primitive::<Decimal128Type>(array)
                .filter(|a| u8::try_from(a.scale()).is_ok_and(|s| s == *scale))
                .map(|a| Self::Decimal(a, *precision, *scale)),
            HiveType::String => array.as_string_opt().map(|a| Self::String(a, CharLimit::AsIs)),
            HiveType::Varchar(n) => array.as_string_opt().map(|a| Self::String(a, CharLimit::AtMost(*n))),
            HiveType::Char(n) => array.as_string_opt().map(|a| Self::String(a, CharLimit::Padded(*n))),
            HiveType::Binary => array.as_binary_opt().map(Self::Binary),
            // Only readers have this type.
            HiveType::StringBytes => None,
            HiveType::Date => primitive(array).map(Self::Date),
            HiveType::Timestamp => times(array).map(|values| Self::Time { values, zoned: false }),
            HiveType::TimestampLocalTz => times(array).map(|values| Self::Time { values, zoned: true }),
            HiveType::IntervalYearMonth => primitive(array).map(Self::YearMonth),
            HiveType::IntervalDayTime => array.as_struct_opt().and_then(|a| {
                let [seconds, nanos] = a.columns() else { return None };
                Some(Self::DayTime(a, primitive(seconds)?, primitive(nanos)?))
            }),
            HiveType::Array(element) => match array.as_list_opt::<i32>() {
                Some(list) => Some(Self::List(list, boxed(element, list.values())?)),
                None => None,
            },
            HiveType::Map(key, value) => match array.as_map_opt() {
                Some(map) => Some(Self::Map(map, boxed(key, map.keys())?, boxed(value, map.values())?)),
                None => None,
            },
            HiveType::Struct(fields) => {
                match array.as_struct_opt().filter(|a| a.num_columns() == fields.len()) {
                    Some(array) => {
                        let columns = fields.iter().zip(array.columns()).map(|((_, t), a)| Self::new(t, a));
                        Some(Self::Struct(array, columns.collect::<Result<_>>()?))
                    }
                    None => None,
                }
            }
            HiveType::Union(branches) => match array.as_union_opt() {
                Some(array) => Some(Self::Union(array, union_columns(branches, array)?)),
                None => None,
            },
        }
        .ok_or_else(mismatch)
    }

    fn is_nested(&self) -> bool {
        matches!(self, Self::List(..) | Self::Map(..) | Self::Struct(..) | Self::Union(..))
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Boolean(a) => a.is_null(row),
            Self::TinyInt(a) => a.is_null(row),
            Self::SmallInt(a) => a.is_null(row),
            Self::Int(a) | Self::YearMonth(a) => a.is_null(row),
            Self::BigInt(a) => a.is_null(row),
            Self::Float(a) => a.is_null(row),
            Self::Double(a) => a.is_null(row),
            Self::Decimal(a, ..) => a.is_null(row),
            Self::String(a, _) => a.is_null(row),
            Self::Binary(a) => a.is_null(row),
            Self::Date(a) => a.is_null(row),
            Self::Time { values, .. } => values.is_null(row),
            Self::DayTime(a, seconds, nanos) => a.is_null(row) || seconds.is_null(row) || nanos.is_null(row),
            Self::List(a, _) => a.is_null(row),
            Self::Map(a, ..) => a.is_null(row),
            Self::Struct(a, _) => a.is_null(row),
            // For a null, a union writes the null of its branch after the tag.
            Self::Union(..) => false,
        }
    }
}

fn times(array: &dyn Array) -> Option<Times<'_>> {
    let DataType::Timestamp(unit, _) = array.data_type() else { return None };
    match unit {
        TimeUnit::Second => array.as_primitive_opt().map(Times::Seconds),
        TimeUnit::Millisecond => array.as_primitive_opt().map(Times::Millis),
        TimeUnit::Microsecond => array.as_primitive_opt().map(Times::Micros),
        TimeUnit::Nanosecond => array.as_primitive_opt().map(Times::Nanos),
    }
}

fn union_columns<'a>(branches: &[HiveType], array: &'a UnionArray) -> Result<Vec<TypedArray<'a>>> {
    let DataType::Union(fields, _) = array.data_type() else {
        return Err(Error::schema(format!("expected a union array, found {}", array.data_type())));
    };
    let ids: Vec<i8> = fields.iter().map(|(id, _)| id).collect();
    if ids.len() != branches.len() || ids.iter().zip(0i8..).any(|(id, expected)| *id != expected) {
        return Err(Error::schema(format!(
            "expected a union with {} ids from 0, found {ids:?}",
            branches.len()
        )));
    }
    branches.iter().zip(ids).map(|(t, id)| TypedArray::new(t, array.child(id))).collect()
}

impl Context {
    fn separator(&self, level: usize) -> Result<u8> {
        // The separators were checked when the encoder was created.
        self.options
            .separators
            .get(level)
            .copied()
            .ok_or_else(|| Error::unsupported("text nested this deeply"))
    }

    fn write(&self, column: &TypedArray<'_>, row: usize, level: usize, out: &mut Vec<u8>) -> Result<()> {
        if column.is_null(row) {
            out.extend_from_slice(&self.options.null_format);
            return Ok(());
        }
        let start = out.len();
        self.write_value(column, row, level, out)?;
        let cell = out.get(start..).unwrap_or_default();
        if cell == self.options.null_format {
            return Err(Error::invalid(format!(
                "expected a value whose text is not the null format `{}`: it would be read as null",
                cell.escape_ascii()
            )));
        }
        if level > 1 && !column.is_nested() {
            self.check_part(column, cell, level)?;
        }
        Ok(())
    }

    /// An error for a part of a nested value that contains one of the surrounding separators.
    fn check_part(&self, column: &TypedArray<'_>, cell: &[u8], level: usize) -> Result<()> {
        if self.options.escape.is_some() && matches!(column, TypedArray::String(..)) {
            return Ok(());
        }
        let around = self.options.separators.get(1..level).unwrap_or_default();
        match cell.iter().find(|b| around.contains(b)) {
            None => Ok(()),
            Some(byte) => Err(Error::invalid(format!(
                "expected a part of a nested value without separators, found byte 0x{byte:02x}: it would be read as \
                 two parts (text can be escaped with the SerDe property `escape.delim`)"
            ))),
        }
    }

    fn write_value(
        &self,
        column: &TypedArray<'_>,
        row: usize,
        level: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match column {
            TypedArray::Boolean(a) => out.extend_from_slice(if a.value(row) { b"true" } else { b"false" }),
            TypedArray::TinyInt(a) => print::integer(a.value(row).into(), out),
            TypedArray::SmallInt(a) => print::integer(a.value(row).into(), out),
            TypedArray::Int(a) => print::integer(a.value(row).into(), out),
            TypedArray::BigInt(a) => print::integer(a.value(row), out),
            TypedArray::Float(a) => java_text::print_float(a.value(row), out),
            TypedArray::Double(a) => java_text::print_double(a.value(row), out),
            TypedArray::Decimal(a, precision, scale) => {
                check_digits(a.value(row), *precision)?;
                print::decimal(a.value(row), *scale, out);
            }
            TypedArray::String(a, shape) => self.string(a.value(row), *shape, out)?,
            TypedArray::Binary(a) => self.binary(a.value(row), out),
            TypedArray::Date(a) => print::date(a.value(row), self.version, out)?,
            TypedArray::Time { values, zoned: false } => {
                print::timestamp(values.value(row), self.version, out)?
            }
            TypedArray::Time { values, zoned: true } => print::instant(values.value(row), out)?,
            TypedArray::YearMonth(a) => print::year_month(a.value(row), out),
            TypedArray::DayTime(_, seconds, nanos) => {
                print::day_time(seconds.value(row), nanos.value(row), out)
            }
            TypedArray::List(a, values) => {
                self.list(values, range(a.value_offsets(), row)?, level, out)?;
            }
            TypedArray::Map(a, keys, values) => {
                self.map(keys, values, range(a.value_offsets(), row)?, level, out)?;
            }
            TypedArray::Struct(_, fields) => {
                let separator = self.separator(level)?;
                for (i, field) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(separator);
                    }
                    self.write(field, row, level + 1, out)?;
                }
            }
            TypedArray::Union(a, branches) => {
                let id = a.type_id(row);
                let branch = usize::try_from(id).ok().and_then(|i| branches.get(i));
                let branch = branch
                    .ok_or_else(|| Error::schema(format!("expected the id of a union branch, found {id}")))?;
                print::integer(id.into(), out);
                out.push(self.separator(level)?);
                self.write(branch, a.value_offset(row), level + 1, out)?;
            }
        }
        Ok(())
    }

    fn list(
        &self,
        values: &TypedArray<'_>,
        rows: Range<usize>,
        level: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let separator = self.separator(level)?;
        let (first, start, empty) = (rows.start, out.len(), rows.is_empty());
        for row in rows {
            if row > first {
                out.push(separator);
            }
            self.write(values, row, level + 1, out)?;
        }
        if !empty && out.len() == start {
            return Err(Error::invalid(
                "expected a list whose only element is not empty: it would be read as a list without elements",
            ));
        }
        Ok(())
    }

    fn map(
        &self,
        keys: &TypedArray<'_>,
        values: &TypedArray<'_>,
        rows: Range<usize>,
        level: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (separator, key_separator) = (self.separator(level)?, self.separator(level + 1)?);
        let first = rows.start;
        let mut seen = HashSet::new();
        for row in rows {
            if row > first {
                out.push(separator);
            }
            let start = out.len();
            self.write(keys, row, level + 2, out)?;
            let key = out.get(start..).unwrap_or_default();
            if keys.is_null(row) || !seen.insert(key.to_vec()) {
                return Err(Error::invalid(format!(
                    "expected a map with distinct keys that are not null, found `{}`: its entry would not be read",
                    key.escape_ascii()
                )));
            }
            out.push(key_separator);
            self.write(values, row, level + 2, out)?;
        }
        Ok(())
    }

    fn string(&self, text: &str, shape: CharLimit, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        match shape {
            CharLimit::AsIs => {}
            CharLimit::AtMost(n) => check_characters("varchar", n, text)?,
            // Trailing blanks are not part of a `char`.
            CharLimit::Padded(n) => check_characters("char", n, text.trim_end_matches(' '))?,
        }
        shaped(text, shape, out);
        let Some(escape) = self.options.escape else { return Ok(()) };
        let needs_escape = |b: &u8| self.needs_escape.get(usize::from(*b)).copied().unwrap_or(false);
        if !out.iter().skip(start).any(needs_escape) {
            return Ok(());
        }
        for byte in out.split_off(start) {
            match byte {
                _ if !needs_escape(&byte) => out.push(byte),
                b'\r' => out.extend([escape, b'r']),
                b'\n' => out.extend([escape, b'n']),
                _ => out.extend([escape, byte]),
            }
        }
        Ok(())
    }

    /// Base64; since Hive 4 without padding.
    fn binary(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let engine = if self.version >= HiveVersion::V4_1 { &STANDARD_NO_PAD } else { &STANDARD };
        // Writing to a `Vec` cannot fail.
        let _ = write!(out, "{}", Base64Display::new(bytes, engine));
    }
}

fn range(offsets: &[i32], row: usize) -> Result<Range<usize>> {
    let at = |i: usize| offsets.get(i).and_then(|o| usize::try_from(*o).ok());
    match (at(row), at(row + 1)) {
        (Some(start), Some(end)) => Ok(start..end),
        _ => Err(Error::invalid("a list array without offsets for its rows")),
    }
}
