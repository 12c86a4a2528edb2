//! Writes the streams of a column's own values.
//!
//! | type | streams |
//! |---|---|
//! | boolean | DATA: bits |
//! | tinyint | DATA: bytes |
//! | smallint, int, bigint, date | DATA: signed integers |
//! | float, double | DATA: IEEE 754, little-endian |
//! | string | see [`super::text`] |
//! | binary | DATA: the bytes; LENGTH: unsigned integers |
//! | decimal | DATA, SECONDARY: signed integers, see [`super::decimal`] |
//! | timestamp | DATA: seconds since 2015, signed; SECONDARY: nanoseconds, see [`super::timestamp`] |
//! | list, map | LENGTH: unsigned integers |
//! | union | DATA: tags, bytes |

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, GenericByteArray, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};
use coldframe_encoding::{Error, Result};

use super::bloom::Bloom;
use super::byte_rle::{BitRle, ByteRle};
use super::decimal;
use super::integers::IntStream;
use super::options::{LastSecond, WriteOptions};
use super::schema::Kind;
use super::statistics::{OfType, Statistics, decimal_sum, range_of, sum_of, trimmed_decimal, widen};
use super::stream::{Codec, Stream};
use super::text::Text;
use super::timestamp;
use crate::layout::stripe::StreamKind;

/// The streams of a column except PRESENT.
#[derive(Debug)]
pub(super) enum Data {
    Nothing,
    Bits(BitRle, Stream),
    Bytes(ByteRle, Stream),
    Integers(IntStream),
    Floats(Stream),
    Text(Box<Text>),
    Binary(Stream, IntStream),
    Decimal(Stream, IntStream),
    Timestamp(IntStream, IntStream, LastSecond),
    Lengths(IntStream),
}

/// Where values are written: the codec, and the statistics and bloom filter that count them.
pub(super) struct Sinks<'a> {
    pub(super) codec: &'a mut Codec,
    pub(super) statistics: &'a mut Statistics,
    pub(super) bloom: Option<&'a mut Bloom>,
    /// Memory for integers.
    pub(super) integers: &'a mut Vec<i64>,
}

impl Data {
    pub(super) fn new(kind: &Kind, options: &WriteOptions) -> Self {
        let aligned = options.aligned();
        let integers = |signed| IntStream::new(signed, aligned);
        match kind {
            Kind::Struct(_) => Self::Nothing,
            Kind::Boolean => Self::Bits(BitRle::default(), Stream::default()),
            Kind::Byte | Kind::Union => Self::Bytes(ByteRle::default(), Stream::default()),
            Kind::Short | Kind::Int | Kind::Long | Kind::Date => Self::Integers(integers(true)),
            Kind::Float | Kind::Double => Self::Floats(Stream::default()),
            Kind::String(_) => Self::Text(Box::new(Text::new(options.dictionary_threshold, aligned))),
            Kind::Binary => Self::Binary(Stream::default(), integers(false)),
            Kind::Decimal(..) => Self::Decimal(Stream::default(), integers(true)),
            Kind::Timestamp(_) => Self::Timestamp(integers(true), integers(false), options.last_second),
            Kind::List | Kind::Map => Self::Lengths(integers(false)),
        }
    }

    /// `ColumnEncoding.kind`
    pub(super) fn encoding(&self) -> u32 {
        const DIRECT: u32 = 0;
        const DIRECT_V2: u32 = 2;
        const DICTIONARY_V2: u32 = 3;
        match self {
            Self::Nothing | Self::Bits(..) | Self::Bytes(..) | Self::Floats(_) => DIRECT,
            Self::Text(text) if text.has_dictionary() => DICTIONARY_V2,
            _ => DIRECT_V2,
        }
    }

    /// Appends the position of the next value.
    pub(super) fn position(&self, codec: &Codec, to: &mut Vec<u64>) {
        match self {
            Self::Nothing => {}
            Self::Bits(rle, stream) => {
                stream.position(codec, to);
                rle.pending(to);
            }
            Self::Bytes(rle, stream) => {
                stream.position(codec, to);
                to.push(rle.pending());
            }
            Self::Integers(stream) | Self::Lengths(stream) => stream.position(codec, to),
            Self::Floats(stream) => stream.position(codec, to),
            Self::Text(text) => text.position(codec, to),
            Self::Binary(data, integers) | Self::Decimal(data, integers) => {
                data.position(codec, to);
                integers.position(codec, to);
            }
            Self::Timestamp(seconds, nanos, _) => {
                seconds.position(codec, to);
                nanos.position(codec, to);
            }
        }
    }

    /// Number of bytes of memory in use.
    pub(super) fn memory(&self, codec: &Codec) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Bits(_, stream) | Self::Bytes(_, stream) | Self::Floats(stream) => stream.memory(codec),
            Self::Integers(stream) | Self::Lengths(stream) => stream.memory(codec),
            Self::Text(text) => text.memory(codec),
            Self::Binary(data, integers) | Self::Decimal(data, integers) => {
                data.memory(codec) + integers.memory(codec)
            }
            Self::Timestamp(seconds, nanos, _) => seconds.memory(codec) + nanos.memory(codec),
        }
    }

    /// Ends the stripe's streams.
    pub(super) fn take(&mut self, codec: &mut Codec) -> Result<Vec<(StreamKind, Vec<u8>)>> {
        use StreamKind::{Data as Values, DictionaryData, Length, Secondary};
        Ok(match self {
            Self::Nothing => Vec::new(),
            Self::Bits(rle, stream) => {
                rle.flush(&mut stream.open);
                vec![(Values, stream.take(codec)?)]
            }
            Self::Bytes(rle, stream) => {
                rle.flush(&mut stream.open);
                vec![(Values, stream.take(codec)?)]
            }
            Self::Integers(stream) => vec![(Values, stream.take(codec)?)],
            Self::Lengths(stream) => vec![(Length, stream.take(codec)?)],
            Self::Floats(stream) => vec![(Values, stream.take(codec)?)],
            Self::Text(text) => {
                let mut streams = vec![(Values, text.data.take(codec)?), (Length, text.lengths.take(codec)?)];
                if text.has_dictionary() {
                    streams.push((DictionaryData, text.entries.take(codec)?));
                }
                text.clear();
                streams
            }
            Self::Binary(data, lengths) => vec![(Values, data.take(codec)?), (Length, lengths.take(codec)?)],
            Self::Decimal(data, scales) => {
                vec![(Values, data.take(codec)?), (Secondary, scales.take(codec)?)]
            }
            Self::Timestamp(seconds, nanos, _) => {
                vec![(Values, seconds.take(codec)?), (Secondary, nanos.take(codec)?)]
            }
        })
    }

    /// Appends the values of an array of a primitive type that are not null.
    pub(super) fn write(&mut self, array: &ArrayRef, sinks: Sinks<'_>) -> Result<()> {
        match self {
            Self::Bits(rle, stream) => write_bits(rle, stream, array, sinks),
            Self::Bytes(rle, stream) => {
                gather(array.as_primitive::<Int8Type>(), sinks.integers, i64::from);
                for value in array.as_primitive::<Int8Type>().iter().flatten() {
                    rle.write(value.cast_unsigned(), &mut stream.open);
                }
                stream.spill(sinks.codec)?;
                count_integers(sinks.integers, sinks.statistics, sinks.bloom);
                Ok(())
            }
            Self::Integers(stream) => {
                let integers = sinks.integers;
                match array.data_type() {
                    DataType::Int16 => gather(array.as_primitive::<Int16Type>(), integers, i64::from),
                    DataType::Int32 => gather(array.as_primitive::<Int32Type>(), integers, i64::from),
                    DataType::Date32 => gather(array.as_primitive::<Date32Type>(), integers, i64::from),
                    _ => gather(array.as_primitive::<Int64Type>(), integers, |v| v),
                }
                count_integers(integers, sinks.statistics, sinks.bloom);
                stream.write(integers, sinks.codec)
            }
            Self::Floats(stream) => match array.data_type() {
                DataType::Float32 => {
                    let mut values = Vec::with_capacity(array.len());
                    gather(array.as_primitive::<Float32Type>(), &mut values, |v| v);
                    stream.open.extend(values.iter().flat_map(|v| v.to_le_bytes()));
                    let wide: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
                    count_floats(&wide, sinks.statistics, sinks.bloom);
                    stream.spill(sinks.codec)
                }
                _ => {
                    let mut values = Vec::with_capacity(array.len());
                    gather(array.as_primitive::<Float64Type>(), &mut values, |v| v);
                    stream.open.extend(values.iter().flat_map(|v| v.to_le_bytes()));
                    count_floats(&values, sinks.statistics, sinks.bloom);
                    stream.spill(sinks.codec)
                }
            },
            Self::Text(text) => {
                let values = || bytes_of(array.as_string::<i32>());
                count_texts(values(), sinks.statistics, sinks.bloom);
                text.write(values(), sinks.codec)
            }
            Self::Binary(data, lengths) => write_binary(data, lengths, array, sinks),
            Self::Decimal(data, scales) => write_decimals(data, scales, array, sinks),
            Self::Timestamp(seconds, nanos, last) => write_timestamps(seconds, nanos, *last, array, sinks),
            Self::Nothing | Self::Lengths(_) => Ok(()),
        }
    }
}

/// The values that are not null.
fn gather<T: ArrowPrimitiveType, O>(
    array: &PrimitiveArray<T>,
    to: &mut Vec<O>,
    of: impl Fn(T::Native) -> O + Copy,
) {
    to.clear();
    let values = array.values();
    match array.nulls().filter(|n| n.null_count() > 0) {
        None => to.extend(values.iter().map(|v| of(*v))),
        Some(nulls) => {
            for (start, end) in nulls.valid_slices() {
                to.extend(values.get(start..end).unwrap_or_default().iter().map(|v| of(*v)));
            }
        }
    }
}

/// The values that are not null.
fn bytes_of<T: arrow_array::types::ByteArrayType<Offset = i32>>(
    array: &GenericByteArray<T>,
) -> impl Iterator<Item = &[u8]> {
    let (data, nulls) = (array.value_data(), array.nulls());
    let value = move |(i, pair): (usize, &[i32])| {
        let [start, end] = pair else { return None };
        let bytes = data.get(usize::try_from(*start).ok()?..usize::try_from(*end).ok()?)?;
        nulls.is_none_or(|n| n.is_valid(i)).then_some(bytes)
    };
    array.value_offsets().windows(2).enumerate().filter_map(value)
}

fn write_bits(rle: &mut BitRle, stream: &mut Stream, array: &ArrayRef, sinks: Sinks<'_>) -> Result<()> {
    let array = array.as_boolean();
    match array.nulls().filter(|n| n.null_count() > 0) {
        None => rle.write(array.values().iter(), &mut stream.open),
        Some(_) => rle.write(array.iter().flatten(), &mut stream.open),
    }
    if let OfType::Boolean(count) = &mut sinks.statistics.of_type {
        *count += array.true_count() as u64;
    }
    stream.spill(sinks.codec)
}

fn count_integers(values: &[i64], statistics: &mut Statistics, bloom: Option<&mut Bloom>) {
    let own_range = range_of(values);
    match &mut statistics.of_type {
        OfType::Integer(range, sum) => {
            widen(range, own_range.as_ref());
            *sum += sum_of(values, own_range);
        }
        OfType::Date(range) => widen(range, own_range.as_ref()),
        _ => {}
    }
    if let Some(bloom) = bloom {
        values.iter().for_each(|v| bloom.add_number(*v));
    }
}

fn count_floats(values: &[f64], statistics: &mut Statistics, bloom: Option<&mut Bloom>) {
    if let OfType::Double(range, sum) = &mut statistics.of_type {
        let added: f64 = values.iter().sum();
        let own_range = if added.is_nan() {
            range_of(&values.iter().copied().filter(|v| !v.is_nan()).collect::<Vec<_>>())
        } else {
            range_of(values)
        };
        widen(range, own_range.as_ref());
        *sum += added;
    }
    if let Some(bloom) = bloom {
        values.iter().for_each(|v| bloom.add_number(canonical(*v).to_bits().cast_signed()));
    }
}

/// The one NaN that Java writes.
fn canonical(value: f64) -> f64 {
    if value.is_nan() { f64::from_bits(0x7ff8_0000_0000_0000) } else { value }
}

fn count_texts<'v>(
    values: impl Iterator<Item = &'v [u8]>,
    statistics: &mut Statistics,
    mut bloom: Option<&mut Bloom>,
) {
    let OfType::Text(range, sum) = &mut statistics.of_type else { return };
    let mut own_range: Option<(&[u8], &[u8])> = None;
    for value in values {
        *sum += value.len() as u64;
        if let Some(bloom) = bloom.as_mut() {
            bloom.add_bytes(value);
        }
        own_range = Some(match own_range {
            None => (value, value),
            Some((min, max)) if value < min => (value, max),
            Some((min, max)) if value > max => (min, value),
            Some(same) => same,
        });
    }
    let own_range = own_range.map(|(min, max)| (min.to_vec(), max.to_vec()));
    widen(range, own_range.as_ref());
}

fn write_binary(
    data: &mut Stream,
    lengths: &mut IntStream,
    array: &ArrayRef,
    mut sinks: Sinks<'_>,
) -> Result<()> {
    sinks.integers.clear();
    for value in bytes_of(array.as_binary::<i32>()) {
        data.open.extend_from_slice(value);
        sinks.integers.push(i64::try_from(value.len()).unwrap_or(i64::MAX));
        if let Some(bloom) = sinks.bloom.as_mut() {
            bloom.add_bytes(value);
        }
    }
    if let OfType::Binary(sum) = &mut sinks.statistics.of_type {
        *sum += sinks.integers.iter().sum::<i64>().cast_unsigned();
    }
    lengths.write(sinks.integers, sinks.codec)?;
    data.spill(sinks.codec)
}

fn write_decimals(
    data: &mut Stream,
    scales: &mut IntStream,
    array: &ArrayRef,
    mut sinks: Sinks<'_>,
) -> Result<()> {
    let mut values = Vec::with_capacity(array.len());
    gather(array.as_primitive::<Decimal128Type>(), &mut values, |v| v);
    let OfType::Decimal(range, sum, scale) = &mut sinks.statistics.of_type else { return Ok(()) };
    widen(range, range_of(&values).as_ref());
    *sum = values.iter().fold(*sum, |sum, v| sum.and_then(|sum| decimal_sum(sum, *v)));
    if let Some(bloom) = sinks.bloom.as_mut() {
        values.iter().for_each(|v| bloom.add_bytes(trimmed_decimal(*v, *scale).as_bytes()));
    }
    sinks.integers.clear();
    decimal::put(&values, *scale, &mut data.open, sinks.integers);
    scales.write(sinks.integers, sinks.codec)?;
    data.spill(sinks.codec)
}

fn write_timestamps(
    seconds: &mut IntStream,
    nanos: &mut IntStream,
    last: LastSecond,
    array: &ArrayRef,
    mut sinks: Sinks<'_>,
) -> Result<()> {
    let mut values = Vec::with_capacity(array.len());
    let unit = match array.data_type() {
        DataType::Timestamp(unit, _) => *unit,
        other => return Err(Error::schema(format!("expected timestamps, found {other}"))),
    };
    match unit {
        TimeUnit::Second => gather(array.as_primitive::<TimestampSecondType>(), &mut values, |v| v),
        TimeUnit::Millisecond => gather(array.as_primitive::<TimestampMillisecondType>(), &mut values, |v| v),
        TimeUnit::Microsecond => gather(array.as_primitive::<TimestampMicrosecondType>(), &mut values, |v| v),
        TimeUnit::Nanosecond => gather(array.as_primitive::<TimestampNanosecondType>(), &mut values, |v| v),
    }
    if let OfType::Timestamp(range) = &mut sinks.statistics.of_type {
        let own_range = range_of(&values)
            .map(|(min, max)| (timestamp::milliseconds(min, unit), timestamp::milliseconds(max, unit)));
        widen(range, own_range.as_ref());
    }
    if let Some(bloom) = sinks.bloom.as_mut() {
        values.iter().for_each(|v| bloom.add_number(timestamp::milliseconds(*v, unit).0));
    }
    let mut fractions = Vec::with_capacity(values.len());
    sinks.integers.clear();
    for value in values {
        let (second, fraction) = timestamp::stored(value, unit, last)?;
        sinks.integers.push(second);
        fractions.push(fraction);
    }
    seconds.write(sinks.integers, sinks.codec)?;
    nanos.write(&fractions, sinks.codec)
}
