//! Encodes values to cells, exactly as `LazyBinaryColumnarSerDe.serialize` writes them.
//!
//! The arrays of a batch are looked up once ([`TypedArray::new`]), then cells are written row by row. A value
//! that Hive cannot write or would change is an error: empty `binary` in a column, text longer than its type.
//! An empty `varchar` in a column is written as no bytes, as in Hive, and so it is read as null.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalYearMonthType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, BinaryArray, BooleanArray, PrimitiveArray, StringArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use coldframe_encoding::calendar::proleptic_to_hybrid;
use coldframe_encoding::varint::{put_hadoop_text, put_hadoop_vlong};
use coldframe_encoding::{Error, Result};

use super::cells::at;
use super::has_old_calendar;
use super::text::EMPTY_STRING;
use super::timestamp::{self, Clock};
use crate::hive_type::HiveType;
use crate::serde::bounds::{check_characters, check_digits, check_instant};
use crate::serde::{ColumnEncoder, HiveVersion, SerdeOptions};

pub(super) struct Encoder {
    hive_type: HiveType,
    rules: Rules,
}

/// Settings that depend on the version of Hive.
struct Rules {
    clock: Clock,
    hybrid_dates: bool,
    wraps_seconds: bool,
}

impl Encoder {
    pub(super) fn new(hive_type: HiveType, options: &SerdeOptions) -> Self {
        let rules = Rules {
            clock: Clock::new(options),
            hybrid_dates: has_old_calendar(options.hive_version),
            wraps_seconds: options.hive_version == HiveVersion::V0_8,
        };
        Self { hive_type, rules }
    }
}

impl ColumnEncoder for Encoder {
    fn encode(
        &self,
        array: &dyn Array,
        rows: Range<usize>,
        data: &mut Vec<u8>,
        lengths: &mut Vec<u32>,
    ) -> Result<()> {
        if rows.end > array.len() {
            return Err(Error::invalid(format!(
                "expected rows of an array of {} rows, found {rows:?}",
                array.len()
            )));
        }
        let source = TypedArray::new(&self.hive_type, array, &self.rules)?;
        lengths.reserve(rows.len());
        for row in rows {
            let start = data.len();
            if source.is_valid(row) {
                source.put_cell(row, data).map_err(|e| e.within(format!("row {row} to be written")))?;
            }
            let length = u32::try_from(data.len() - start);
            lengths.push(
                length
                    .map_err(|_| Error::invalid("expected a cell of less than 4 GiB, found a longer one"))?,
            );
        }
        Ok(())
    }
}

/// An array prepared for writing value by value.
struct TypedArray<'a> {
    nulls: Option<&'a NullBuffer>,
    kind: ArrayValues<'a>,
}

enum ArrayValues<'a> {
    Boolean(&'a BooleanArray),
    TinyInt(&'a PrimitiveArray<Int8Type>),
    SmallInt(&'a PrimitiveArray<Int16Type>),
    Int(&'a [i32]),
    BigInt(&'a [i64]),
    Float(&'a [f32]),
    Double(&'a [f64]),
    Date(&'a [i32], bool),
    /// Values, precision and scale.
    Decimal(&'a [i128], u8, u8),
    /// Ticks, ticks per second, the file's clock, and whether the file has only 31 bits of seconds.
    Timestamp(&'a [i64], i64, Option<&'a Clock>, bool),
    IntervalDayTime(&'a [i64], &'a [i32]),
    String(&'a StringArray),
    Varchar(&'a StringArray, u32),
    Char(&'a StringArray, u32),
    Binary(&'a BinaryArray),
    List(&'a OffsetBuffer<i32>, Box<TypedArray<'a>>),
    Map(&'a OffsetBuffer<i32>, Box<TypedArray<'a>>, Box<TypedArray<'a>>),
    Struct(Vec<TypedArray<'a>>),
    /// Tags, offsets of a dense union, and the branches.
    Union(&'a [i8], Option<&'a [i32]>, Vec<TypedArray<'a>>),
}

impl<'a> TypedArray<'a> {
    fn new(hive_type: &HiveType, array: &'a dyn Array, rules: &'a Rules) -> Result<Self> {
        let kind = ArrayValues::new(hive_type, array, rules)?;
        let kind = kind.ok_or_else(|| {
            Error::schema(format!(
                "a column of Hive's {hive_type:?} cannot be written from Arrow's {}",
                array.data_type()
            ))
        })?;
        Ok(Self { nulls: array.nulls(), kind })
    }

    fn is_valid(&self, row: usize) -> bool {
        match &self.kind {
            // A union has no nulls of its own; Hive has no null inside one.
            ArrayValues::Union(tags, offsets, branches) => {
                branch(tags, *offsets, branches, row).is_some_and(|(_, source, i)| source.is_valid(i))
            }
            _ => self.nulls.is_none_or(|n| row < n.len() && n.is_valid(row)),
        }
    }

    /// Appends a non-null value as the cell of a column, without a length prefix.
    fn put_cell(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.kind {
            ArrayValues::String(array) => match array.value(row) {
                "" => out.push(EMPTY_STRING),
                text => out.extend_from_slice(text.as_bytes()),
            },
            ArrayValues::Varchar(array, limit) => {
                out.extend_from_slice(varchar(array.value(row), *limit)?.as_bytes())
            }
            ArrayValues::Char(array, n) => put_char(array.value(row), *n, out)?,
            ArrayValues::Binary(array) => match array.value(row) {
                [] => {
                    return Err(Error::invalid(
                        "LazyBinaryColumnarSerDe has no cell for an empty binary value",
                    ));
                }
                bytes => out.extend_from_slice(bytes),
            },
            ArrayValues::List(..)
            | ArrayValues::Map(..)
            | ArrayValues::Struct(_)
            | ArrayValues::Union(..) => self.put_nested(row, out)?,
            _ => self.put_number(row, out)?,
        }
        Ok(())
    }

    /// Appends a non-null value as an element inside another value.
    fn put_element(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.kind {
            ArrayValues::String(array) => put_hadoop_text(out, array.value(row).as_bytes()),
            ArrayValues::Varchar(array, limit) => {
                put_hadoop_text(out, varchar(array.value(row), *limit)?.as_bytes())
            }
            ArrayValues::Char(array, n) => {
                let mut padded = Vec::new();
                put_char(array.value(row), *n, &mut padded)?;
                put_hadoop_text(out, &padded);
            }
            ArrayValues::Binary(array) => put_hadoop_text(out, array.value(row)),
            ArrayValues::List(..)
            | ArrayValues::Map(..)
            | ArrayValues::Struct(_)
            | ArrayValues::Union(..) => {
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                self.put_nested(row, out)?;
                let size = i32::try_from(out.len() - start - 4);
                let size = size.map_err(|_| {
                    Error::invalid("expected a nested value of less than 2 GiB, found a longer one")
                })?;
                if let Some(place) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
                    *place = size.to_be_bytes();
                }
            }
            _ => self.put_number(row, out)?,
        }
        Ok(())
    }

    /// Appends a value that has the same form as a cell and as an element.
    fn put_number(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.kind {
            ArrayValues::Boolean(array) => out.push(array.value(row).into()),
            ArrayValues::TinyInt(array) => out.push(array.value(row).cast_unsigned()),
            ArrayValues::SmallInt(array) => out.extend_from_slice(&array.value(row).to_be_bytes()),
            ArrayValues::Int(values) => put_hadoop_vlong(out, get(values, row).into()),
            ArrayValues::BigInt(values) => put_hadoop_vlong(out, get(values, row)),
            ArrayValues::Float(values) => {
                let value = get(values, row);
                // Java writes every NaN as this NaN.
                let bits = if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() };
                out.extend_from_slice(&bits.to_be_bytes());
            }
            ArrayValues::Double(values) => {
                let value = get(values, row);
                let bits = if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() };
                out.extend_from_slice(&bits.to_be_bytes());
            }
            ArrayValues::Date(values, hybrid) => {
                let day = i64::from(get(values, row));
                put_hadoop_vlong(out, if *hybrid { hybrid_day(day)? } else { day });
            }
            ArrayValues::Decimal(values, precision, scale) => {
                check_digits(get(values, row), *precision)?;
                put_decimal(get(values, row), *scale, out);
            }
            ArrayValues::Timestamp(values, per_second, clock, wraps) => {
                let ticks = get(values, row);
                let seconds = ticks.div_euclid(*per_second);
                let nanos = ticks.rem_euclid(*per_second) * (1_000_000_000 / per_second);
                check_instant(seconds, nanos)?;
                let seconds = clock.map_or(seconds, |c| c.stored(seconds));
                if *wraps && !(0..1 << 31).contains(&seconds) {
                    return Err(Error::invalid(format!(
                        "the timestamp {seconds} s from 1970: Hive 0.8 has room for 1970 to 2038 only"
                    )));
                }
                timestamp::put(out, seconds, u32::try_from(nanos).unwrap_or(0));
            }
            ArrayValues::IntervalDayTime(seconds, nanos) => {
                put_hadoop_vlong(out, get(seconds, row));
                put_hadoop_vlong(out, get(nanos, row).into());
            }
            _ => {}
        }
        Ok(())
    }

    fn put_nested(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.kind {
            ArrayValues::List(offsets, element) => {
                let items = range(offsets, row);
                put_count(items.len(), out)?;
                put_bitmap(items.clone().map(|i| element.is_valid(i)), out);
                for i in items {
                    element.put_if_valid(i, out)?;
                }
            }
            ArrayValues::Map(offsets, key, value) => {
                let entries = range(offsets, row);
                put_count(entries.len(), out)?;
                put_bitmap(entries.clone().flat_map(|i| [key.is_valid(i), value.is_valid(i)]), out);
                for i in entries {
                    key.put_if_valid(i, out)?;
                    value.put_if_valid(i, out)?;
                }
            }
            ArrayValues::Struct(fields) => {
                for eight in fields.chunks(8) {
                    put_bitmap(eight.iter().map(|f| f.is_valid(row)), out);
                    for field in eight {
                        field.put_if_valid(row, out)?;
                    }
                }
            }
            ArrayValues::Union(tags, offsets, branches) => {
                if let Some((tag, source, i)) = branch(tags, *offsets, branches, row) {
                    out.push(tag);
                    source.put_if_valid(i, out)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn put_if_valid(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        if self.is_valid(row) { self.put_element(row, out) } else { Ok(()) }
    }
}

impl<'a> ArrayValues<'a> {
    /// The array with its values; `None` if it does not have the type.
    fn new(hive_type: &HiveType, array: &'a dyn Array, rules: &'a Rules) -> Result<Option<Self>> {
        Ok(match hive_type {
            HiveType::Boolean => array.as_boolean_opt().map(Self::Boolean),
            HiveType::TinyInt => array.as_primitive_opt::<Int8Type>().map(Self::TinyInt),
            HiveType::SmallInt => array.as_primitive_opt::<Int16Type>().map(Self::SmallInt),
            HiveType::Int => array.as_primitive_opt::<Int32Type>().map(|a| Self::Int(a.values())),
            HiveType::BigInt => array.as_primitive_opt::<Int64Type>().map(|a| Self::BigInt(a.values())),
            HiveType::Float => array.as_primitive_opt::<Float32Type>().map(|a| Self::Float(a.values())),
            HiveType::Double => array.as_primitive_opt::<Float64Type>().map(|a| Self::Double(a.values())),
            HiveType::Date => {
                array.as_primitive_opt::<Date32Type>().map(|a| Self::Date(a.values(), rules.hybrid_dates))
            }
            HiveType::IntervalYearMonth => months(array),
            HiveType::IntervalDayTime => day_time(array),
            HiveType::Decimal { precision, .. } => decimal(array, *precision),
            HiveType::Timestamp => ticks(array, Some(&rules.clock), rules.wraps_seconds),
            HiveType::TimestampLocalTz => ticks(array, None, false),
            HiveType::String => array.as_string_opt::<i32>().map(Self::String),
            HiveType::Varchar(n) => array.as_string_opt::<i32>().map(|a| Self::Varchar(a, *n)),
            HiveType::Char(n) => array.as_string_opt::<i32>().map(|a| Self::Char(a, *n)),
            HiveType::Binary => array.as_binary_opt::<i32>().map(Self::Binary),
            _ => Self::nested(hive_type, array, rules)?,
        })
    }

    fn nested(hive_type: &HiveType, array: &'a dyn Array, rules: &'a Rules) -> Result<Option<Self>> {
        let child = |t: &HiveType, a: &'a dyn Array| TypedArray::new(t, a, rules);
        Ok(match hive_type {
            HiveType::Array(element) => match array.as_list_opt::<i32>() {
                Some(list) => Some(Self::List(list.offsets(), Box::new(child(element, &**list.values())?))),
                None => None,
            },
            HiveType::Map(key, value) => match array.as_map_opt() {
                Some(map) => {
                    let keys = Box::new(child(key, &**map.keys())?);
                    Some(Self::Map(map.offsets(), keys, Box::new(child(value, &**map.values())?)))
                }
                None => None,
            },
            HiveType::Struct(fields) => match array.as_struct_opt() {
                Some(s) if s.num_columns() == fields.len() => {
                    let fields = fields.iter().zip(s.columns()).map(|((_, t), a)| child(t, &**a));
                    Some(Self::Struct(fields.collect::<Result<_>>()?))
                }
                _ => None,
            },
            HiveType::Union(branches) => match (array.as_union_opt(), array.data_type()) {
                (Some(union), DataType::Union(fields, _)) if is_numbered(fields, branches.len()) => {
                    let branches = (0..).zip(branches).map(|(id, t)| child(t, &**union.child(id)));
                    let offsets = union.offsets().map(|o| &**o);
                    Some(Self::Union(union.type_ids(), offsets, branches.collect::<Result<_>>()?))
                }
                _ => None,
            },
            _ => None,
        })
    }
}

/// Whether the ids of a union are 0, 1 .. as Hive's tags.
fn is_numbered(fields: &arrow_schema::UnionFields, branches: usize) -> bool {
    fields.len() == branches && fields.iter().zip(0i8..).all(|((id, _), n)| id == n)
}

/// The tag, the branch, and the row in it.
fn branch<'s, 'a>(
    tags: &[i8],
    offsets: Option<&[i32]>,
    branches: &'s [TypedArray<'a>],
    row: usize,
) -> Option<(u8, &'s TypedArray<'a>, usize)> {
    let tag = u8::try_from(*tags.get(row)?).ok()?;
    let row = match offsets {
        Some(offsets) => at(*offsets.get(row)?),
        None => row,
    };
    Some((tag, branches.get(usize::from(tag))?, row))
}

fn months<'a>(array: &'a dyn Array) -> Option<ArrayValues<'a>> {
    if let DataType::Interval(IntervalUnit::YearMonth) = array.data_type() {
        return array.as_primitive_opt::<IntervalYearMonthType>().map(|a| ArrayValues::Int(a.values()));
    }
    array.as_primitive_opt::<Int32Type>().map(|a| ArrayValues::Int(a.values()))
}

fn day_time<'a>(array: &'a dyn Array) -> Option<ArrayValues<'a>> {
    let columns = array.as_struct_opt()?.columns();
    let seconds = columns.first()?.as_primitive_opt::<Int64Type>()?;
    let nanos = columns.get(1)?.as_primitive_opt::<Int32Type>()?;
    Some(ArrayValues::IntervalDayTime(seconds.values(), nanos.values()))
}

fn decimal<'a>(array: &'a dyn Array, precision: u8) -> Option<ArrayValues<'a>> {
    let array = array.as_primitive_opt::<Decimal128Type>()?;
    Some(ArrayValues::Decimal(array.values(), precision, u8::try_from(array.scale()).ok()?))
}

fn ticks<'a>(array: &'a dyn Array, clock: Option<&'a Clock>, wraps: bool) -> Option<ArrayValues<'a>> {
    let DataType::Timestamp(unit, _) = array.data_type() else { return None };
    let (values, per_second) = match unit {
        TimeUnit::Second => (array.as_primitive_opt::<TimestampSecondType>()?.values(), 1),
        TimeUnit::Millisecond => (array.as_primitive_opt::<TimestampMillisecondType>()?.values(), 1_000),
        TimeUnit::Microsecond => (array.as_primitive_opt::<TimestampMicrosecondType>()?.values(), 1_000_000),
        TimeUnit::Nanosecond => {
            (array.as_primitive_opt::<TimestampNanosecondType>()?.values(), 1_000_000_000)
        }
    };
    Some(ArrayValues::Timestamp(values, per_second, clock, wraps))
}

/// The value at a row that is known to exist.
#[inline]
fn get<T: Copy + Default>(values: &[T], row: usize) -> T {
    values.get(row).copied().unwrap_or_default()
}

fn range(offsets: &OffsetBuffer<i32>, row: usize) -> Range<usize> {
    let end = offsets.get(row + 1).map_or(0, |o| at(*o));
    offsets.get(row).map_or(end, |o| at(*o))..end
}

fn put_count(count: usize, out: &mut Vec<u8>) -> Result<()> {
    let count =
        i32::try_from(count).map_err(|_| Error::invalid("an array or map of 2^31 elements or more"))?;
    put_hadoop_vlong(out, count.into());
    Ok(())
}

/// Appends one bit for each item, the lowest bit first.
fn put_bitmap(bits: impl Iterator<Item = bool>, out: &mut Vec<u8>) {
    let (mut byte, mut n) = (0u8, 0u32);
    for bit in bits {
        byte |= u8::from(bit) << (n % 8);
        n += 1;
        if n % 8 == 0 {
            out.push(byte);
            byte = 0;
        }
    }
    if n % 8 != 0 {
        out.push(byte);
    }
}

/// Appends the value with the smallest scale and the fewest bytes that hold it.
fn put_decimal(mut unscaled: i128, mut scale: u8, out: &mut Vec<u8>) {
    while scale > 0 && unscaled % 10 == 0 {
        unscaled /= 10;
        scale -= 1;
    }
    let bytes = unscaled.to_be_bytes();
    let redundant =
        if unscaled < 0 { unscaled.leading_ones() } else { unscaled.leading_zeros() }.saturating_sub(1) / 8;
    let bytes = bytes.get(usize::try_from(redundant).unwrap_or(0)..).unwrap_or_default();
    out.push(scale);
    put_hadoop_text(out, bytes);
}

/// The day in the hybrid calendar; an error if it exceeds 32 bits.
fn hybrid_day(day: i64) -> Result<i64> {
    let stored = proleptic_to_hybrid(day);
    if i32::try_from(stored).is_ok() {
        return Ok(stored);
    }
    Err(Error::invalid(format!("the day {day} from 1970: the calendar of Hive before 3 does not reach it")))
}

fn varchar(text: &str, limit: u32) -> Result<&str> {
    check_characters("varchar", limit, text).map(|()| text)
}

/// Pads with blanks to `n` code points; trailing blanks are not part of a `char`.
fn put_char(text: &str, n: u32, out: &mut Vec<u8>) -> Result<()> {
    let text = text.trim_end_matches(' ');
    check_characters("char", n, text)?;
    out.extend_from_slice(text.as_bytes());
    let missing = usize::try_from(n).unwrap_or(0).saturating_sub(text.chars().count());
    out.resize(out.len() + missing, b' ');
    Ok(())
}
