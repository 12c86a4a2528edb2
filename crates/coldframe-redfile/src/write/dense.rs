//! The values of a leaf without its nulls, in PLAIN:
//!
//! | type | PLAIN |
//! |---|---|
//! | INT32, INT64, INT96, FLOAT, DOUBLE | 4, 8, 12, 4 or 8 bytes, little endian |
//! | BYTE_ARRAY | length u32 LE, the bytes |
//! | BOOLEAN | a bit, most significant bit of a byte first; here a byte 0 or 1, until the page is complete |

use std::borrow::Cow;
use std::ops::Range;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type, TimestampNanosecondType};
use arrow_schema::{DataType, TimeUnit};
use coldframe_encoding::{Error, Result};

/// Values in order, in PLAIN.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Dense<'a> {
    /// Values of `width` bytes.
    Fixed { width: usize, bytes: Cow<'a, [u8]> },
    /// Lengths and bytes alternating. `ends[i]` is the end of value `i`.
    Bytes { bytes: Vec<u8>, ends: Vec<usize> },
    /// A value takes one byte.
    Booleans(Vec<u8>),
}

impl Dense<'_> {
    /// The number of values.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Fixed { width, bytes } => bytes.len() / width,
            Self::Bytes { ends, .. } => ends.len(),
            Self::Booleans(values) => values.len(),
        }
    }

    /// The offset at which the first `values` values end.
    pub(super) fn end(&self, values: usize) -> usize {
        match self {
            Self::Fixed { width, .. } => values * width,
            Self::Bytes { ends, .. } => match values {
                0 => 0,
                n => ends.get(n - 1).copied().unwrap_or_default(),
            },
            Self::Booleans(_) => values,
        }
    }

    /// The bytes of all values.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Fixed { bytes, .. } => bytes,
            Self::Bytes { bytes, .. } | Self::Booleans(bytes) => bytes,
        }
    }
}

/// The values in `slots`; no value is null.
pub(super) fn gather<'a>(array: &'a dyn Array, slots: &[Range<usize>]) -> Result<Dense<'a>> {
    let count: usize = slots.iter().map(Range::len).sum();
    if let Some(width) = fixed_width(array.data_type()) {
        let values = fixed_bytes(array)?;
        let bytes = match (slots, values) {
            ([range], Cow::Borrowed(values)) => Cow::Borrowed(part(values, range, width)),
            (_, values) => {
                let mut bytes = Vec::with_capacity(count * width);
                slots.iter().for_each(|r| bytes.extend_from_slice(part(&values, r, width)));
                Cow::Owned(bytes)
            }
        };
        return Ok(Dense::Fixed { width, bytes });
    }
    match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().values();
            let slots = slots.iter().cloned().flatten();
            Ok(Dense::Booleans(slots.map(|i| u8::from(values.value(i))).collect()))
        }
        _ => byte_arrays(array, count, slots.iter().cloned().flatten()),
    }
}

fn part<'a>(values: &'a [u8], slots: &Range<usize>, width: usize) -> &'a [u8] {
    values.get(slots.start * width..slots.end * width).unwrap_or_default()
}

/// The values in the slots whose byte in `validity` is 1.
pub(super) fn gather_valid<'a>(
    array: &'a dyn Array,
    slots: &[Range<usize>],
    validity: &[u8],
) -> Result<Dense<'a>> {
    match fixed_width(array.data_type()) {
        Some(4) => return Ok(fixed_valid::<4>(&fixed_bytes(array)?, slots, validity)),
        Some(8) => return Ok(fixed_valid::<8>(&fixed_bytes(array)?, slots, validity)),
        Some(_) => return Ok(fixed_valid::<12>(&fixed_bytes(array)?, slots, validity)),
        None => {}
    }
    let valid = slots.iter().cloned().flatten().zip(validity).filter(|(_, v)| **v == 1).map(|(i, _)| i);
    match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().values();
            Ok(Dense::Booleans(valid.map(|i| u8::from(values.value(i))).collect()))
        }
        _ => byte_arrays(array, validity.len(), valid),
    }
}

/// Each value is written after the last valid one, and is overwritten by the next if it is not valid itself.
/// So there is no branch.
fn fixed_valid<const W: usize>(values: &[u8], slots: &[Range<usize>], validity: &[u8]) -> Dense<'static> {
    let (values, _) = values.as_chunks::<W>();
    let valid: usize = validity.iter().map(|v| usize::from(*v)).sum();
    let mut dense = vec![[0; W]; valid + 1];
    let mut next = 0;
    let mut validity = validity;
    for slots in slots {
        let (current, rest) = validity.split_at(slots.len().min(validity.len()));
        validity = rest;
        for (value, valid) in values.get(slots.clone()).unwrap_or_default().iter().zip(current) {
            if let Some(place) = dense.get_mut(next) {
                *place = *value;
            }
            next += usize::from(*valid);
        }
    }
    let mut bytes = dense.into_flattened();
    bytes.truncate(valid * W);
    Dense::Fixed { width: W, bytes: Cow::Owned(bytes) }
}

fn byte_arrays(
    array: &dyn Array,
    count: usize,
    slots: impl Iterator<Item = usize>,
) -> Result<Dense<'static>> {
    let (offsets, data): (&[i32], &[u8]) = match array.data_type() {
        DataType::Binary => (array.as_binary::<i32>().value_offsets(), array.as_binary::<i32>().value_data()),
        DataType::Utf8 => (array.as_string::<i32>().value_offsets(), array.as_string::<i32>().value_data()),
        other => return Err(unsupported_type(other)),
    };
    let bound = |i: usize| offsets.get(i).and_then(|o| usize::try_from(*o).ok()).unwrap_or_default();
    let mut ends = Vec::with_capacity(count);
    let mut bytes = Vec::new();
    // Short values are copied as one fixed-length piece; the next value overwrites the excess.
    let mut end = 0;
    for i in slots {
        let (start, stop) = (bound(i), bound(i + 1));
        let length = stop.saturating_sub(start);
        if bytes.len() < end + length + 4 + PIECE {
            bytes.resize((bytes.len() * 2).max(end + length + 4 + PIECE).max(count * 16), 0);
        }
        let place = bytes.get_mut(end..).unwrap_or_default();
        if let Some((head, place)) = place.split_first_chunk_mut::<4>() {
            *head = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes(); // offsets are 31 bits wide
            match (place.first_chunk_mut::<PIECE>(), data.get(start..).and_then(<[u8]>::first_chunk::<PIECE>))
            {
                (Some(to), Some(from)) if length <= PIECE => *to = *from,
                _ => {
                    let from = data.get(start..stop).unwrap_or_default();
                    place.get_mut(..length).unwrap_or_default().copy_from_slice(from);
                }
            }
        }
        end += 4 + length;
        ends.push(end);
    }
    bytes.truncate(end);
    Ok(Dense::Bytes { bytes, ends })
}

/// The longest value that is copied with this fixed length.
const PIECE: usize = 32;

/// The bytes of a value, for the fixed-width types.
fn fixed_width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Int32 | DataType::Float32 => Some(4),
        DataType::Int64 | DataType::Float64 => Some(8),
        DataType::FixedSizeBinary(12) | DataType::Timestamp(TimeUnit::Nanosecond, _) => Some(12),
        _ => None,
    }
}

/// Arrow's buffers hold values in the form of PLAIN.
const _: () = assert!(cfg!(target_endian = "little"), "values are copied as they are in memory");

/// The values of a fixed-width array in PLAIN, from its first slot on.
fn fixed_bytes(array: &dyn Array) -> Result<Cow<'_, [u8]>> {
    Ok(Cow::Borrowed(match array.data_type() {
        DataType::Int32 => array.as_primitive::<Int32Type>().values().inner().as_slice(),
        DataType::Int64 => array.as_primitive::<Int64Type>().values().inner().as_slice(),
        DataType::Float32 => array.as_primitive::<Float32Type>().values().inner().as_slice(),
        DataType::Float64 => array.as_primitive::<Float64Type>().values().inner().as_slice(),
        DataType::FixedSizeBinary(12) => array.as_fixed_size_binary().value_data(),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let values = array.as_primitive::<TimestampNanosecondType>().values();
            return Ok(Cow::Owned(values.iter().flat_map(|v| int96(*v)).collect()));
        }
        other => return Err(unsupported_type(other)),
    }))
}

/// Nanoseconds of the day, then the Julian day, as Impala and Hive wrote it in Parquet.
fn int96(nanoseconds: i64) -> [u8; 12] {
    const DAY: i64 = 86_400_000_000_000;
    const JULIAN_EPOCH: i64 = 2_440_588;
    let day = nanoseconds.div_euclid(DAY) + JULIAN_EPOCH; // between 2_333_836 and 2_547_340
    let mut bytes = [0; 12];
    let (time, date) = bytes.split_at_mut(8);
    time.copy_from_slice(&nanoseconds.rem_euclid(DAY).to_le_bytes());
    date.copy_from_slice(day.to_le_bytes().first_chunk::<4>().unwrap_or(&[0; 4]));
    bytes
}

fn unsupported_type(data_type: &DataType) -> Error {
    Error::schema(format!("expected a type that Redfile has, found {data_type}"))
}
