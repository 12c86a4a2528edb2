//! Reads the values of a page, which are PLAIN, or GROUP_VAR_INT that has been decoded.
//!
//! ```text
//! INT32 INT64 FLOAT DOUBLE | 4 or 8 bytes each, little endian; big endian in the first dialect |
//! INT96                    | 12 bytes |
//! BYTE_ARRAY               | length | bytes |     length: u32 LE, u32 BE or LEB128, as the dialect has it
//! BOOLEAN                  | a bit each, the highest of a byte first; a byte each in the first two dialects |
//! ```
//!
//! Values are dense, without nulls. Numbers of a leaf without repetition are put at their rows while they are
//! read; all other values are put at their rows when a column is assembled.

use arrow_buffer::{BooleanBufferBuilder, MutableBuffer};
use arrow_schema::DataType;
use bytes::{Buf as _, Bytes};
use coldframe_core::arrays::blocks::{BlockViews, Blocks};
use coldframe_encoding::values::spread_rows;
use coldframe_encoding::{Cursor, Error, Result, bits};

use crate::layout::dialect::{Dialect, LengthCoding};
use crate::layout::group_varint;
use crate::layout::levels::at_least;
use crate::layout::metadata::{GROUP_VAR_INT, PLAIN, Type};

/// The values of a column.
#[derive(Debug)]
pub(crate) enum Values {
    /// Values of fixed width, in native form.
    Fixed(MutableBuffer),
    /// Values of fixed width, in the buffer of a page and possibly unaligned.
    Shared(Bytes),
    /// Byte arrays.
    Arrays {
        /// The offset at which each value ends, after a leading 0.
        offsets: Vec<i32>,
        /// The bytes of the values.
        data: Vec<u8>,
    },
    /// Byte arrays as views.
    Views(Box<ViewedArrays>),
    /// Booleans, as bits.
    Booleans(BooleanBufferBuilder),
}

/// Byte arrays that stay in their pages.
#[derive(Debug, Default)]
pub(crate) struct ViewedArrays {
    pub(crate) column: BlockViews,
    pub(crate) pages: Blocks,
}

impl Values {
    /// An empty column of this type.
    pub(crate) fn new(physical: Type) -> Self {
        match physical {
            Type::Boolean => Self::Booleans(BooleanBufferBuilder::new(0)),
            Type::ByteArray => Self::Arrays { offsets: vec![0], data: Vec::new() },
            _ => Self::Fixed(MutableBuffer::new(0)),
        }
    }

    /// An empty column whose values become `data_type`.
    pub(crate) fn of_type(physical: Type, data_type: &DataType) -> Self {
        match data_type {
            DataType::Utf8View | DataType::BinaryView => Self::Views(Box::default()),
            _ => Self::new(physical),
        }
    }

    /// The memory that the values take.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Fixed(values) => values.len(),
            Self::Shared(values) => values.len(),
            Self::Arrays { offsets, data } => data.len().saturating_add(offsets.len().saturating_mul(4)),
            Self::Views(values) => {
                values.column.size().saturating_add(values.column.len().saturating_mul(size_of::<u128>()))
            }
            Self::Booleans(values) => values.len() / 8,
        }
    }
}

/// The number of bytes of a value, for types of fixed width.
pub(crate) fn fixed_width(physical: Type) -> Option<usize> {
    match physical {
        Type::Int32 | Type::Float => Some(4),
        Type::Int64 | Type::Double => Some(8),
        Type::Int96 => Some(12),
        Type::Boolean | Type::ByteArray => None,
    }
}

/// The unread values of a page.
#[derive(Clone, Debug)]
pub(crate) enum PageValues {
    /// Values of fixed width.
    Fixed {
        /// All remaining values.
        bytes: Bytes,
        /// The number of bytes of a value.
        width: usize,
        /// Whether the bytes of values must be swapped.
        big_endian: bool,
    },
    /// Byte arrays.
    Arrays {
        /// All remaining values, including lengths.
        bytes: Bytes,
        /// How a length is coded.
        lengths: LengthCoding,
    },
    /// Booleans as bits, least significant first.
    Booleans {
        /// All booleans of the page.
        bits: Vec<u8>,
        /// The number of booleans already read.
        at: usize,
    },
}

impl PageValues {
    /// Reads the `count` values that `bytes` consists of.
    pub(crate) fn new(
        dialect: Dialect,
        physical: Type,
        encoding: i32,
        bytes: Bytes,
        count: usize,
    ) -> Result<Self> {
        let big_endian = dialect.big_endian();
        match (encoding, physical) {
            (PLAIN, Type::ByteArray) => Ok(Self::Arrays { bytes, lengths: dialect.lengths() }),
            (PLAIN, Type::Boolean) if dialect.byte_booleans() => {
                check_len(bytes.len(), count)?;
                Ok(Self::Booleans { bits: pack_bytes(&bytes)?, at: 0 })
            }
            (PLAIN, Type::Boolean) => {
                check_len(bytes.len(), bits::packed_len(count, 1))?;
                Ok(Self::Booleans { bits: bytes.iter().map(|b| b.reverse_bits()).collect(), at: 0 })
            }
            (PLAIN, fixed) => {
                let width = fixed_width(fixed).unwrap_or(1);
                check_len(bytes.len(), count.saturating_mul(width))?;
                Ok(Self::Fixed { bytes, width, big_endian: big_endian && width < 12 })
            }
            (GROUP_VAR_INT, Type::Int32) => {
                let mut values = Vec::new();
                group_varint::decode_i32(&bytes, count, &mut values)?;
                Ok(Self::decoded(values.iter().flat_map(|v| v.to_ne_bytes()).collect(), 4))
            }
            (GROUP_VAR_INT, Type::Int64) => {
                let mut values = Vec::new();
                group_varint::decode_i64(&bytes, count, &mut values)?;
                Ok(Self::decoded(values.iter().flat_map(|v| v.to_ne_bytes()).collect(), 8))
            }
            (other, _) => Err(Error::corrupt(format!(
                "expected an encoding that {} has, found number {other}",
                physical.name()
            ))),
        }
    }

    fn decoded(bytes: Vec<u8>, width: usize) -> Self {
        Self::Fixed { bytes: bytes.into(), width, big_endian: false }
    }

    /// Appends the next `n` values to `out`.
    pub(crate) fn read(&mut self, n: usize, out: &mut Values) -> Result<()> {
        match (self, out) {
            (Self::Fixed { bytes, width, big_endian }, Values::Fixed(out)) => {
                let len = n.saturating_mul(*width);
                let part = bytes.get(..len).ok_or_else(ended)?;
                match (*big_endian, *width) {
                    (true, 8) => swap_into::<8>(part, out),
                    (true, _) => swap_into::<4>(part, out),
                    _ => out.extend_from_slice(part),
                }
                bytes.advance(len);
                Ok(())
            }
            (Self::Arrays { bytes, lengths }, Values::Arrays { offsets, data }) => {
                let read = match lengths {
                    LengthCoding::LittleEndian => read_arrays(bytes, n, u32::from_le_bytes, offsets, data),
                    LengthCoding::BigEndian => read_arrays(bytes, n, u32::from_be_bytes, offsets, data),
                    LengthCoding::Varint => read_varint_arrays(bytes, n, offsets, data),
                }?;
                bytes.advance(read);
                Ok(())
            }
            (Self::Arrays { bytes, lengths }, Values::Views(out)) => {
                let read = match lengths {
                    LengthCoding::LittleEndian => view_arrays(bytes, n, fixed(u32::from_le_bytes), out),
                    LengthCoding::BigEndian => view_arrays(bytes, n, fixed(u32::from_be_bytes), out),
                    LengthCoding::Varint => view_arrays(bytes, n, varint, out),
                }?;
                bytes.advance(read);
                Ok(())
            }
            (Self::Booleans { bits, at }, Values::Booleans(out)) => {
                let end = *at + n;
                if end.div_ceil(8) > bits.len() {
                    return Err(ended());
                }
                out.append_packed_range(*at..end, bits);
                *at = end;
                Ok(())
            }
            _ => Err(Error::corrupt("expected values of one type, found pages of two")),
        }
    }

    /// Appends a row of `width` bytes for each of `levels`: the next value if the level is `max`, else zeros.
    /// This is for values of fixed width in native byte order.
    pub(crate) fn read_rows(&mut self, levels: &[u8], max: u8, out: &mut Values) -> Result<()> {
        let (Self::Fixed { bytes, width, .. }, Values::Fixed(out)) = (self, out) else {
            return Err(Error::corrupt("expected values of one type, found pages of two"));
        };
        let read = match *width {
            4 => spread_bytes::<4>(bytes, levels, max, out),
            8 => spread_bytes::<8>(bytes, levels, max, out),
            _ => None,
        };
        bytes.advance(read.ok_or_else(ended)?);
        Ok(())
    }

    /// Replaces `out` by the next `n` values; values whose stored form equals their form in memory are not
    /// copied.
    pub(crate) fn read_shared(&mut self, n: usize, out: &mut Values) -> Result<()> {
        match self {
            Self::Fixed { bytes, width, big_endian: false } => {
                let len = n.saturating_mul(*width);
                if len > bytes.len() {
                    return Err(ended());
                }
                *out = Values::Shared(bytes.split_to(len));
                Ok(())
            }
            _ => self.read(n, out),
        }
    }

    /// The page's buffer, if it is not shared; only its capacity is reused.
    pub(crate) fn into_memory(self) -> Vec<u8> {
        match self {
            Self::Fixed { bytes, .. } | Self::Arrays { bytes, .. } if bytes.is_empty() => bytes.into(),
            _ => Vec::new(),
        }
    }

    /// Skips the next `n` values.
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        match self {
            Self::Fixed { bytes, width, .. } => {
                let len = n.saturating_mul(*width);
                if len > bytes.len() {
                    return Err(ended());
                }
                bytes.advance(len);
            }
            Self::Arrays { bytes, lengths } => {
                let mut c = Cursor::new(bytes, 0);
                for _ in 0..n {
                    let len = match lengths {
                        LengthCoding::LittleEndian => c.u32_le()?.into(),
                        LengthCoding::BigEndian => c.u32_be()?.into(),
                        LengthCoding::Varint => c.uleb128()?,
                    };
                    c.skip(usize::try_from(len).unwrap_or(usize::MAX))?;
                }
                let read = bytes.len() - c.remaining();
                bytes.advance(read);
            }
            Self::Booleans { bits, at } => {
                if (*at + n).div_ceil(8) > bits.len() {
                    return Err(ended());
                }
                *at += n;
            }
        }
        Ok(())
    }

    /// Skips the next `n` values. Each of them must be a valid `data_type`: text is UTF-8, a timestamp is in
    /// Arrow's range.
    pub(crate) fn check(&mut self, n: usize, physical: Type, data_type: &DataType) -> Result<()> {
        match data_type {
            DataType::Utf8 | DataType::Utf8View => {
                let mut values = Values::new(physical);
                self.read(n, &mut values)?;
                match &values {
                    Values::Arrays { offsets, data } => check_text(offsets, data),
                    _ => Ok(()),
                }
            }
            DataType::Timestamp(..) => {
                if let Self::Fixed { bytes, .. } = &*self {
                    bytes.as_chunks::<12>().0.iter().take(n).try_for_each(|v| instant(v).map(drop))?;
                }
                self.skip(n)
            }
            _ => self.skip(n),
        }
    }

    /// Checks that no bytes follow the last value.
    pub(crate) fn finish(&self) -> Result<()> {
        let left = match self {
            Self::Fixed { bytes, .. } | Self::Arrays { bytes, .. } => bytes.len(),
            Self::Booleans { .. } => 0,
        };
        if left == 0 {
            return Ok(());
        }
        Err(Error::corrupt(format!("expected the page's end after its values, found {left} more bytes")))
    }
}

/// Checks that each value is UTF-8 by itself.
pub(crate) fn check_text(offsets: &[i32], data: &[u8]) -> Result<()> {
    let at = |offset: &i32| offset.unsigned_abs() as usize;
    let whole = simdutf8::basic::from_utf8(data);
    if whole.is_ok_and(|text| offsets.iter().all(|o| text.is_char_boundary(at(o)))) {
        return Ok(());
    }
    let mut values = offsets.iter().zip(offsets.iter().skip(1));
    let is_text = |(from, to): (&i32, &i32)| {
        data.get(at(from)..at(to)).is_some_and(|v| simdutf8::basic::from_utf8(v).is_ok())
    };
    match values.position(|value| !is_text(value)) {
        Some(i) => Err(Error::corrupt(format!("expected UTF-8, found other bytes in value {i}"))),
        None => Ok(()),
    }
}

/// Converts an INT96 as Hive and Impala used it later, which is nanoseconds of the day and then the Julian
/// day, to nanoseconds since 1970.
pub(crate) fn instant(value: &[u8; 12]) -> Result<i64> {
    const EPOCH: i64 = 2_440_588;
    const DAY: i64 = 86_400_000_000_000;
    let [a, b, c, d, e, f, g, h, day @ ..] = *value;
    let day = i32::from_le_bytes(day);
    let nanos = i64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let days = i64::from(day) - EPOCH;
    let instant = days.checked_mul(DAY).and_then(|start| start.checked_add(nanos));
    // The first day begins before the smallest timestamp.
    let wide = || i64::try_from(i128::from(days) * i128::from(DAY) + i128::from(nanos)).ok();
    instant.or_else(wide).ok_or_else(|| {
        Error::corrupt(format!("expected a timestamp between 1677 and 2262, found Julian day {day}"))
    })
}

/// [`PageValues::read_rows`] for values of `W` bytes; returns the number of bytes read, or `None` if there
/// are too few.
fn spread_bytes<const W: usize>(
    bytes: &[u8],
    levels: &[u8],
    max: u8,
    out: &mut MutableBuffer,
) -> Option<usize> {
    let mut at = 0;
    let dense = bytes.as_chunks::<W>().0;
    // Rows are first built in a block that stays in the L1 cache, so that the column's memory is written only
    // once.
    let mut block = [[0; W]; 64];
    for levels in levels.chunks(block.len()) {
        let rows = block.get_mut(..levels.len())?;
        at += spread_rows(dense.get(at..)?, at_least(levels, max), rows, [0; W])?;
        out.extend_from_slice(rows.as_flattened());
    }
    Some(at * W)
}

#[cold]
#[inline(never)]
fn ended() -> Error {
    Error::corrupt("expected more values, found the end of the page")
}

fn check_len(actual: usize, expected: usize) -> Result<()> {
    if actual == expected {
        return Ok(());
    }
    Err(Error::corrupt(format!("expected values of {expected} bytes, found {actual}")))
}

/// Converts booleans of one byte each to bits.
fn pack_bytes(bytes: &[u8]) -> Result<Vec<u8>> {
    if let Some(other) = bytes.iter().find(|b| **b > 1) {
        return Err(Error::corrupt(format!("expected a boolean of 0 or 1, found {other}")));
    }
    Ok(bytes.chunks(8).map(|c| c.iter().rev().fold(0, |bits, b| bits << 1 | b)).collect())
}

fn swap_into<const W: usize>(bytes: &[u8], out: &mut MutableBuffer) {
    let mut block = [0; 1024];
    for part in bytes.chunks(block.len()) {
        let Some(to) = block.get_mut(..part.len()) else { return };
        to.copy_from_slice(part);
        for value in to.as_chunks_mut::<W>().0 {
            value.reverse();
        }
        out.extend_from_slice(to);
    }
}

/// Appends views of `n` byte arrays; returns the bytes they take. `length` returns the length of the byte
/// array at the front, and how many bytes that length takes.
#[inline(always)]
fn view_arrays(
    bytes: &Bytes,
    n: usize,
    length: impl Fn(&[u8]) -> Result<(usize, usize)>,
    ViewedArrays { column, pages }: &mut ViewedArrays,
) -> Result<usize> {
    pages.enter(bytes);
    column.reserve((0, n.min(bytes.len())));
    let mut at = 0usize;
    for _ in 0..n {
        let (len, size) = length(bytes.get(at..).unwrap_or_default())?;
        let from = at.saturating_add(size);
        at = from.saturating_add(len);
        column.push(bytes.get(from..at).ok_or_else(ended)?, pages);
    }
    Ok(at)
}

/// Reads a length of four bytes.
#[inline(always)]
fn fixed(length: impl Fn([u8; 4]) -> u32) -> impl Fn(&[u8]) -> Result<(usize, usize)> {
    move |bytes| Ok((length(*bytes.first_chunk().ok_or_else(ended)?) as usize, 4))
}

fn varint(bytes: &[u8]) -> Result<(usize, usize)> {
    let mut c = Cursor::new(bytes, 0);
    let len = c.uleb128()?;
    Ok((usize::try_from(len).unwrap_or(usize::MAX), bytes.len() - c.remaining()))
}

/// The number of bytes that are copied at a time, if source and target have that many bytes.
const WIDE: usize = 32;

/// Reads `n` byte arrays with four-byte lengths; returns the bytes they take.
///
/// The first loop reads the lengths; each length determines the position of the next. The values are copied
/// afterwards, independently of each other.
#[inline(always)]
fn read_arrays(
    bytes: &[u8],
    n: usize,
    length: impl Fn([u8; 4]) -> u32,
    offsets: &mut Vec<i32>,
    data: &mut Vec<u8>,
) -> Result<usize> {
    let first = offsets.len();
    offsets.reserve(n.min(bytes.len() / 4));
    let (start, mut at) = (data.len(), 0usize);
    let mut end = start;
    for _ in 0..n {
        let prefix = bytes.get(at..).and_then(|b| b.first_chunk()).ok_or_else(ended)?;
        let len = length(*prefix) as usize;
        at = at.saturating_add(4).saturating_add(len);
        end = end.saturating_add(len);
        // If a length goes beyond the page, this is detected at the next length or after the loop; until then
        // only `end` is wrong.
        offsets.push(i32::try_from(end).map_err(|_| too_long(end, at, bytes))?);
    }
    if at > bytes.len() {
        return Err(ended());
    }
    data.resize(end, 0);
    let (mut from, mut to) = (4, start);
    for end in offsets.get(first..).unwrap_or_default() {
        let end = end.unsigned_abs() as usize;
        let len = end - to;
        copy(bytes, from, data, to, len);
        from += len + 4;
        to = end;
    }
    Ok(at)
}

/// Copies `len` bytes, which exist in source and target. A short value is one wide copy, whose excess is overwritten.
#[inline(always)]
fn copy(bytes: &[u8], from: usize, data: &mut [u8], to: usize, len: usize) {
    if len <= WIDE
        && let Some(wide) = bytes.get(from..).and_then(|b| b.first_chunk::<WIDE>())
        && let Some(place) = data.get_mut(to..).and_then(|d| d.first_chunk_mut::<WIDE>())
    {
        *place = *wide;
    } else if let (Some(value), Some(place)) = (bytes.get(from..from + len), data.get_mut(to..to + len)) {
        place.copy_from_slice(value);
    }
}

fn read_varint_arrays(bytes: &[u8], n: usize, offsets: &mut Vec<i32>, data: &mut Vec<u8>) -> Result<usize> {
    let mut c = Cursor::new(bytes, 0);
    for _ in 0..n {
        data.extend_from_slice(c.uleb128_bytes()?);
        offsets.push(i32::try_from(data.len()).map_err(|_| too_long(data.len(), 0, bytes))?);
    }
    Ok(bytes.len() - c.remaining())
}

/// The error for more bytes than one batch can hold, or for lengths that go beyond the page.
#[cold]
#[inline(never)]
fn too_long(bytes: usize, at: usize, page: &[u8]) -> Error {
    if at > page.len() {
        return ended();
    }
    Error::batch_too_long("the byte arrays of a column", bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrays(dialect: Dialect, bytes: &'static [u8], n: usize) -> Result<(Vec<i32>, Vec<u8>)> {
        let mut page = PageValues::new(dialect, Type::ByteArray, PLAIN, Bytes::from_static(bytes), n)?;
        let mut out = Values::new(Type::ByteArray);
        page.clone().skip(n)?;
        page.read(n, &mut out)?;
        page.finish()?;
        let Values::Arrays { offsets, data } = out else { panic!("{out:?}") };
        Ok((offsets, data))
    }

    #[test]
    fn byte_arrays_in_three_codings_are_read() {
        let expected = (vec![0, 2, 2, 3], b"abc".to_vec());
        assert_eq!(arrays(Dialect::RedelmA, b"\0\0\0\x02ab\0\0\0\0\0\0\0\x01c", 3).unwrap(), expected);
        assert_eq!(arrays(Dialect::RedelmB, b"\x02ab\0\x01c", 3).unwrap(), expected);
        assert_eq!(arrays(Dialect::RedelmF, b"\x02\0\0\0ab\0\0\0\0\x01\0\0\0c", 3).unwrap(), expected);
        assert!(arrays(Dialect::RedelmF, b"\x02\0\0\0ab\0\0\0\0\x01\0\0\0c", 2).is_err());
        assert!(arrays(Dialect::RedelmF, b"\x02\0\0\0ab\0\0\0\0\x01\0\0\0", 3).is_err());
        assert!(arrays(Dialect::RedelmF, b"\xff\xff\xff\xffab", 1).is_err());
    }

    #[test]
    fn numbers_in_both_orders_and_booleans_in_both_sizes_are_read() {
        let read = |dialect, physical, bytes: &'static [u8], n| {
            let mut out = Values::new(physical);
            PageValues::new(dialect, physical, PLAIN, Bytes::from_static(bytes), n)?.read(n, &mut out)?;
            Ok::<_, Error>(out)
        };
        for (dialect, bytes) in [(Dialect::RedelmA, b"\0\0\0\x07"), (Dialect::RedelmC, b"\x07\0\0\0")] {
            let Values::Fixed(out) = read(dialect, Type::Int32, bytes, 1).unwrap() else { panic!() };
            assert_eq!(out.typed_data::<i32>(), [7]);
        }
        for (dialect, bytes) in [(Dialect::RedelmB, &b"\x01\0\x01"[..]), (Dialect::RedelmF, b"\xa0")] {
            let Values::Booleans(mut out) = read(dialect, Type::Boolean, bytes, 3).unwrap() else { panic!() };
            assert_eq!(out.finish().iter().collect::<Vec<_>>(), [true, false, true]);
        }
        assert!(read(Dialect::RedelmB, Type::Boolean, b"\x02", 1).is_err());
        assert!(read(Dialect::RedelmF, Type::Int64, b"1234567", 1).is_err());
    }
}
