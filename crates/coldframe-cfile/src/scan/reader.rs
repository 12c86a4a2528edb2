//! Decodes the fetched blocks of a column, some rows at a time.
//!
//! ```text
//! data block, nullable | rows varint | bitmap length varint | bitmap, run-length coded | values that are not null |
//! data block, else     | values |
//! ```
//!
//! Values that are not null are decoded to the start of the output, and then moved to their rows.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, make_array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer, NullBuffer, NullBufferBuilder};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use bytes::Bytes;
use coldframe_core::arrays::{reserve, strings};
use coldframe_core::{Error, ErrorContext, Result, arrow_error};
use coldframe_encoding::codec::Decompressor;
use coldframe_encoding::values::spread;
use coldframe_encoding::{Cursor, bits};

use super::context::ColumnContext;
use crate::encoding::bit_shuffle::{BitShuffle, Scratch};
use crate::encoding::dict::{self, Dictionary};
use crate::encoding::fixed::{Bits, Fixed};
use crate::encoding::rle::Rle;
use crate::encoding::{BlockHead, Word, binary, prefix};
use crate::layout::block::DataBlock;
use crate::layout::types::{Encoding, KuduType, Physical};

mod views;

/// Buffers that are reused from block to block.
#[derive(Debug, Default)]
struct Memory {
    decompressor: Decompressor,
    /// A block's decompressed contents.
    contents: Vec<u8>,
    shuffle: Scratch,
    /// Positions in the dictionary.
    places: Vec<u32>,
    /// The offsets of values, in a block of bytes.
    offsets: Vec<u32>,
    /// The values of a PREFIX block.
    data: Vec<u8>,
}

/// The values of a block, and the position in it.
#[derive(Debug)]
enum Values {
    Fixed(Fixed, usize),
    Bits(Bits),
    /// The index of the next offset, and where the values begin in the block; `None`: in the buffer's data.
    Binary(usize, Option<usize>),
    Codes(BitShuffle),
}

/// The current block.
#[derive(Debug)]
struct OpenBlock {
    block: DataBlock,
    /// The contents; `None` if they were decompressed into the buffer.
    contents: Option<Bytes>,
    /// Which rows are not null.
    validity: Option<BooleanBuffer>,
    values: Values,
    /// The next row, counted from the first row of the block.
    row: usize,
}

/// Rows of the current block.
struct Segment {
    rows: usize,
    /// The number of rows still requested, including the rows of the segment.
    left: usize,
    /// The number of non-null rows in the segment.
    dense: usize,
    /// Which rows of the segment are not null, from the first bit on; `None` if it has no nulls.
    validity: Option<Buffer>,
}

impl Segment {
    fn spread<T: Copy + Default>(&self, values: &mut [T]) -> Result<()> {
        match &self.validity {
            Some(bits) if self.dense < self.rows => spread(values, bits.as_slice()).map(drop),
            _ => Ok(()),
        }
    }
}

/// Decodes rows in order.
#[derive(Debug)]
pub struct ColumnReader {
    context: Arc<ColumnContext>,
    blocks: std::vec::IntoIter<(DataBlock, Bytes)>,
    current: Option<OpenBlock>,
    memory: Memory,
    /// The ordinals that have not been read yet.
    rows: Range<u64>,
}

impl ColumnReader {
    /// A reader of `rows`, given blocks and their stored bytes.
    pub fn new(
        context: Arc<ColumnContext>,
        blocks: Vec<DataBlock>,
        bytes: Vec<Bytes>,
        rows: Range<u64>,
    ) -> Result<Self> {
        if bytes.len() != blocks.len() {
            return Err(Error::invalid(format!(
                "expected {} fetched blocks, found {}",
                blocks.len(),
                bytes.len()
            )));
        }
        let blocks = blocks.into_iter().zip(bytes).collect::<Vec<_>>().into_iter();
        Ok(Self { context, blocks, current: None, memory: Memory::default(), rows })
    }

    /// The ordinals that have not been read yet.
    pub fn rows(&self) -> Range<u64> {
        self.rows.clone()
    }

    /// Skips `n` rows. Blocks without a requested row are not opened.
    pub fn skip(&mut self, n: usize) {
        self.rows.start = self.rows.start.saturating_add(n as u64).min(self.rows.end);
    }

    /// The next `n` rows. If they exceed a batch, fails with an error for which [`Error::is_batch_too_long`] is true; the
    /// reader is then unusable, and reading fewer rows needs a new reader.
    pub fn read(&mut self, n: usize) -> Result<ArrayRef> {
        let array = self.read_some(n)?;
        if array.len() < n {
            return Err(Error::batch_too_long("the values of a batch", self.batch_bytes().saturating_add(1)));
        }
        Ok(array)
    }

    /// The next `n` rows, or fewer (at least one) if their values would exceed a batch.
    pub fn read_some(&mut self, n: usize) -> Result<ArrayRef> {
        let left = self.rows.end - self.rows.start;
        if n as u64 > left {
            return Err(Error::invalid(format!("expected to read at most {left} rows, found {n}")));
        }
        match self.context.data_type.physical() {
            Physical::Bool => self.read_bits(n),
            Physical::Fixed(1) => self.read_fixed::<u8>(n),
            Physical::Fixed(2) => self.read_fixed::<u16>(n),
            Physical::Fixed(4) => self.read_fixed::<u32>(n),
            Physical::Fixed(8) => self.read_fixed::<u64>(n),
            Physical::Fixed(_) => self.read_fixed::<i128>(n),
            Physical::Binary => match self.context.to.clone() {
                DataType::Dictionary(_, value) => self.read_dictionary(n, &value),
                DataType::Utf8View => self.read_views(n, true),
                DataType::BinaryView => self.read_views(n, false),
                to => {
                    let (offsets, data, nulls) = self.read_binary(n)?;
                    strings(offsets, data, nulls, to == DataType::Utf8)
                }
            },
        }
    }

    fn read_fixed<T: Word>(&mut self, n: usize) -> Result<ArrayRef> {
        let mut values = vec![T::default(); n];
        let mut nulls = NullBufferBuilder::new(n);
        let mut rest = values.as_mut_slice();
        let limit = self.context.decimal_limit();
        while !rest.is_empty() {
            let segment = self.next_segment(rest.len(), &mut nulls)?;
            let (now, later) = rest.split_at_mut(segment.rows);
            let dense = now.get_mut(..segment.dense).unwrap_or_default();
            self.in_block(|values, bytes, memory| match values {
                Values::Fixed(block, _) => {
                    block.decode(bytes, dense, &mut memory.shuffle)?;
                    limit.map_or(Ok(()), |limit| check_decimals(dense, limit))
                }
                _ => Err(wrong_encoding()),
            })?;
            segment.spread(now)?;
            rest = later;
        }
        primitive(values, nulls.finish(), self.context.data_type, &self.context.to)
    }

    fn read_bits(&mut self, n: usize) -> Result<ArrayRef> {
        let mut out = BooleanBufferBuilder::new(n);
        let mut nulls = NullBufferBuilder::new(n);
        while out.len() < n {
            let segment = self.next_segment(n - out.len(), &mut nulls)?;
            if segment.dense == segment.rows {
                self.in_block(|values, bytes, _| match values {
                    Values::Bits(block) => block.decode(bytes, segment.rows, &mut out),
                    _ => Err(wrong_encoding()),
                })?;
                continue;
            }
            let mut dense = BooleanBufferBuilder::new(segment.dense);
            self.in_block(|values, bytes, _| match values {
                Values::Bits(block) => block.decode(bytes, segment.dense, &mut dense),
                _ => Err(wrong_encoding()),
            })?;
            let mut wide = vec![0u8; segment.rows];
            let front = wide.get_mut(..segment.dense).unwrap_or_default();
            bits::unpack(bits::BitOrder::Lsb, 1, dense.as_slice(), front)?;
            segment.spread(&mut wide)?;
            for eight in wide.chunks(8) {
                let byte = eight.iter().rev().fold(0u8, |b, bit| b << 1 | bit);
                out.append_packed_range(0..eight.len(), &[byte]);
            }
        }
        Ok(Arc::new(BooleanArray::new(out.finish(), nulls.finish())))
    }

    fn batch_bytes(&self) -> u64 {
        self.context.format.limits.batch_bytes()
    }

    /// The number of code words to replace at once, so that their values do not exceed a batch.
    fn step(&self) -> usize {
        let longest = self.context.dictionary.as_deref().map_or(0, Dictionary::longest).max(1);
        usize::try_from(self.batch_bytes() / longest).unwrap_or(usize::MAX).max(1)
    }

    fn read_binary(&mut self, n: usize) -> Result<(Vec<i32>, Vec<u8>, Option<NullBuffer>)> {
        let mut offsets = Vec::with_capacity(n + 1);
        offsets.push(0);
        let mut data = Vec::new();
        let mut nulls = NullBufferBuilder::new(n);
        let step = self.step();
        while offsets.len() <= n && (data.len() as u64) < self.batch_bytes() {
            let segment = self.next_segment((n + 1 - offsets.len()).min(step), &mut nulls)?;
            let dictionary = self.context.dictionary.clone();
            self.in_block(|values, bytes, memory| match values {
                Values::Codes(block) => {
                    let dictionary = dictionary.as_deref().ok_or_else(no_dictionary)?;
                    places(block, bytes, memory, &segment)?;
                    dictionary.gather(&memory.places, segment.left, &mut offsets, &mut data)
                }
                Values::Binary(next, from) => {
                    let values = if from.is_some() { bytes } else { &memory.data };
                    let ends = memory.offsets.get(*next..).unwrap_or_default();
                    *next += segment.dense;
                    append(ends, from.unwrap_or(0), values, &segment, &mut offsets, &mut data)
                }
                _ => Err(wrong_encoding()),
            })?;
        }
        Ok((offsets, data, nulls.finish()))
    }

    /// Returns the rows among the next `n` (or fewer, as in [`Self::read_some`]) that can pass a filter, and which rows these
    /// are. `keep`: whether each position in the dictionary (0 is null) passes. Values in blocks without code words are all
    /// returned.
    pub fn read_where(&mut self, n: usize, keep: &[bool]) -> Result<(ArrayRef, BooleanBuffer)> {
        let (mut offsets, mut data) = (vec![0], Vec::new());
        let (mut selected, mut valid) = (BooleanBufferBuilder::new(n), BooleanBufferBuilder::new(0));
        let mut nulls = NullBufferBuilder::new(0);
        let step = self.step();
        while selected.len() < n && (data.len() as u64) < self.batch_bytes() {
            let segment = self.next_segment((n - selected.len()).min(step), &mut nulls)?;
            let dictionary = self.context.dictionary.clone();
            self.in_block(|values, bytes, memory| match values {
                Values::Codes(block) => {
                    let dictionary = dictionary.as_deref().ok_or_else(no_dictionary)?;
                    places(block, bytes, memory, &segment)?;
                    dictionary.check(&memory.places)?;
                    let passes = |place: &u32| keep.get(*place as usize).copied().unwrap_or(true);
                    memory.places.iter().for_each(|p| selected.append(passes(p)));
                    memory.places.retain(passes);
                    memory.places.iter().for_each(|p| valid.append(*p != 0));
                    dictionary.gather(&memory.places, segment.left, &mut offsets, &mut data)
                }
                Values::Binary(next, from) => {
                    let values = if from.is_some() { bytes } else { &memory.data };
                    let ends = memory.offsets.get(*next..).unwrap_or_default();
                    *next += segment.dense;
                    selected.append_n(segment.rows, true);
                    match &segment.validity {
                        Some(bits) => valid.append_packed_range(0..segment.rows, bits.as_slice()),
                        None => valid.append_n(segment.rows, true),
                    }
                    append(ends, from.unwrap_or(0), values, &segment, &mut offsets, &mut data)
                }
                _ => Err(wrong_encoding()),
            })?;
        }
        let nulls = Some(NullBuffer::new(valid.finish())).filter(|n| n.null_count() > 0);
        let array = strings(offsets, data, nulls, self.context.to == DataType::Utf8)?;
        Ok((array, selected.finish()))
    }

    /// Returns code words unchanged; values of blocks without code words are appended to the dictionary.
    fn read_dictionary(&mut self, n: usize, to: &DataType) -> Result<ArrayRef> {
        let dictionary = self.context.dictionary.clone();
        let known = dictionary.as_deref().map_or(0, Dictionary::len);
        let mut keys: Vec<i32> = Vec::with_capacity(n);
        let (mut offsets, mut data) = (vec![0], Vec::new());
        let mut nulls = NullBufferBuilder::new(n);
        while keys.len() < n && (data.len() as u64) < self.batch_bytes() {
            let segment = self.next_segment(n - keys.len(), &mut nulls)?;
            self.in_block(|values, bytes, memory| match values {
                Values::Codes(block) => {
                    places(block, bytes, memory, &segment)?;
                    dictionary.as_deref().ok_or_else(no_dictionary)?.check(&memory.places)?;
                    keys.extend(
                        memory.places.iter().map(|p| i32::try_from(p.saturating_sub(1)).unwrap_or(0)),
                    );
                    Ok(())
                }
                Values::Binary(next, from) => {
                    let first = known + offsets.len() - 1;
                    let values = if from.is_some() { bytes } else { &memory.data };
                    let ends = memory.offsets.get(*next..).unwrap_or_default();
                    *next += segment.dense;
                    append(ends, from.unwrap_or(0), values, &segment, &mut offsets, &mut data)?;
                    let more = first..first + segment.rows;
                    keys.extend(more.map(|k| i32::try_from(k).unwrap_or(i32::MAX)));
                    Ok(())
                }
                _ => Err(wrong_encoding()),
            })?;
        }
        let text = *to == DataType::Utf8;
        let more = || strings(offsets.clone(), data.clone(), None, text);
        let values = match dictionary.as_deref() {
            Some(known) if offsets.len() == 1 => known.values().clone(),
            Some(known) => concat(&[known.values().as_ref(), more()?.as_ref()]).map_err(arrow_error)?,
            None => more()?,
        };
        let values = if values.data_type() == to {
            values
        } else {
            arrow_cast::cast(&values, to).map_err(arrow_error)?
        };
        let keys = Int32Array::new(keys.into(), nulls.finish());
        Ok(Arc::new(DictionaryArray::try_new(keys, values).map_err(arrow_error)?))
    }

    /// Calls `f` with the values and contents of the current block.
    fn in_block(&mut self, f: impl FnOnce(&mut Values, &[u8], &mut Memory) -> Result<()>) -> Result<()> {
        let Some(open) = &mut self.current else { return Err(wrong_encoding()) };
        match &open.contents {
            Some(bytes) => f(&mut open.values, bytes, &mut self.memory),
            None => {
                // The contents are moved out for the call, since the decoders borrow the other buffers.
                let contents = std::mem::take(&mut self.memory.contents);
                let done = f(&mut open.values, &contents, &mut self.memory);
                self.memory.contents = contents;
                done
            }
        }
        .within(|| open.block.name())
        .map_err(|e| e.at(open.block.pointer.offset))
    }

    /// The next rows of one block, at most `max_rows`; opens the block if necessary. Appends to `nulls` which
    /// of the rows are null.
    fn next_segment(&mut self, max_rows: usize, nulls: &mut NullBufferBuilder) -> Result<Segment> {
        let at = self.rows.start;
        if self.current.as_ref().is_none_or(|open| !open.block.rows.contains(&at)) {
            self.current = None;
            let next = self.blocks.find(|(block, _)| block.rows.end > at);
            let Some((block, stored)) = next.filter(|(block, _)| block.rows.start <= at) else {
                return Err(Error::corrupt(format!("expected a data block of ordinal {at}, found none")));
            };
            let (name, offset) = (block.name(), block.pointer.offset);
            let open = self.open_block(block, &stored).within(|| name).map_err(|e| e.at(offset))?;
            self.current = Some(open);
        }
        let Some(open) = &self.current else { return Err(wrong_encoding()) };
        let row = usize::try_from(at - open.block.rows.start).unwrap_or(usize::MAX);
        if let Some(passed) = row.checked_sub(open.row).filter(|n| *n > 0) {
            let rows = open.row..open.row + passed;
            let dense = match &open.validity {
                Some(bits) => bits.slice(rows.start, passed).count_set_bits(),
                None => passed,
            };
            self.in_block(|values, bytes, _| match values {
                Values::Fixed(block, size) => block.skip(bytes, dense, *size),
                Values::Bits(block) => block.skip(bytes, dense),
                Values::Codes(block) => block.skip(bytes, dense),
                Values::Binary(next, _) => {
                    *next += dense;
                    Ok(())
                }
            })?;
        }
        let Some(open) = &mut self.current else { return Err(wrong_encoding()) };
        let in_block = usize::try_from(open.block.rows.end - at).unwrap_or(usize::MAX);
        let rows = max_rows.min(in_block);
        open.row = row + rows;
        self.rows.start += rows as u64;
        let Some(validity) = &open.validity else {
            nulls.append_n_non_nulls(rows);
            return Ok(Segment { rows, left: max_rows, dense: rows, validity: None });
        };
        let bits = validity.slice(row, rows);
        let dense = bits.count_set_bits();
        if dense == rows {
            nulls.append_n_non_nulls(rows);
            return Ok(Segment { rows, left: max_rows, dense, validity: None });
        }
        nulls.append_buffer(&NullBuffer::new(bits.clone()));
        Ok(Segment { rows, left: max_rows, dense, validity: Some(bits.sliced()) })
    }

    fn open_block(&mut self, block: DataBlock, stored: &Bytes) -> Result<OpenBlock> {
        let context = self.context.clone();
        let memory = &mut self.memory;
        let contents = context.format.open(
            stored,
            block.pointer.offset,
            &mut memory.decompressor,
            &mut memory.contents,
        )?;
        let decompressed = std::mem::take(&mut memory.contents);
        let bytes: &[u8] = contents.as_deref().unwrap_or(&decompressed);
        let opened = open_values(&context, &block, bytes, memory);
        // Views refer to the block's bytes, so these are not in a reused buffer.
        let is_kept = matches!(context.to, DataType::Utf8View | DataType::BinaryView);
        let contents = match contents {
            None if is_kept => Some(Bytes::from(decompressed)),
            contents => {
                self.memory.contents = decompressed;
                contents
            }
        };
        let (values, validity) = opened?;
        Ok(OpenBlock { block, contents, validity, values, row: 0 })
    }
}

#[cold]
#[inline(never)]
fn wrong_encoding() -> Error {
    Error::corrupt("expected a block of the column's encoding, found another encoding")
}

#[cold]
#[inline(never)]
fn no_dictionary() -> Error {
    Error::corrupt("expected a dictionary, found none")
}

/// Parses the headers of a block.
fn open_values(
    context: &ColumnContext,
    block: &DataBlock,
    bytes: &[u8],
    memory: &mut Memory,
) -> Result<(Values, Option<BooleanBuffer>)> {
    let rows = block.row_count()?;
    let (mut start, mut count, mut validity) = (0, rows, None);
    if context.nullable {
        let mut cursor = Cursor::new(bytes, 0);
        let stored = cursor.uleb128()?;
        if stored != rows as u64 {
            return Err(Error::corrupt(format!("expected {rows} rows, found {stored}")));
        }
        let bitmap = cursor.uleb128_bytes()?;
        start = bytes.len() - cursor.remaining();
        let mut out = BooleanBufferBuilder::new(rows);
        Rle::new(0).decode_bits(bitmap, rows, &mut out).within(|| "bitmap")?;
        let bits = out.finish();
        count = bits.count_set_bits();
        validity = (count < rows).then_some(bits);
    }
    let (head, values) = values_at(context, bytes, start, memory)?;
    head.check(block.rows.start, count)?;
    Ok((values, validity))
}

/// Parses the header of the encoded values that begin at byte `start`.
fn values_at(
    context: &ColumnContext,
    bytes: &[u8],
    start: usize,
    memory: &mut Memory,
) -> Result<(BlockHead, Values)> {
    let block = bytes.get(start..).unwrap_or_default();
    match (context.data_type.physical(), context.encoding) {
        (Physical::Fixed(size), encoding) => {
            let (head, block) = Fixed::new(encoding, bytes, start, size)?;
            Ok((head, Values::Fixed(block, size)))
        }
        (Physical::Bool, encoding) => {
            Bits::new(encoding, bytes, start).map(|(head, block)| (head, Values::Bits(block)))
        }
        (Physical::Binary, Encoding::Plain) => {
            Ok((binary::offsets(block, &mut memory.offsets)?, Values::Binary(0, Some(start))))
        }
        (Physical::Binary, Encoding::Prefix) => {
            let max_bytes = usize::try_from(context.format.limits.max_block_bytes).unwrap_or(usize::MAX);
            let max_bytes = max_bytes.min(u32::MAX as usize);
            let head = prefix::decode(block, max_bytes, &mut memory.data, &mut memory.offsets)?;
            Ok((head, Values::Binary(0, None)))
        }
        (Physical::Binary, Encoding::Dict) => match Cursor::new(block, 0).u32_le()? {
            dict::CODE_WORDS => {
                let (head, block) = BitShuffle::new(bytes, start + 4, 4)?;
                Ok((head, Values::Codes(block)))
            }
            dict::VALUES => {
                let plain = block.get(4..).unwrap_or_default();
                Ok((binary::offsets(plain, &mut memory.offsets)?, Values::Binary(0, Some(start + 4))))
            }
            other => Err(Error::corrupt(format!("expected a mode of 1 or 2, found {other}"))),
        },
        (Physical::Binary, other) => Err(Error::unsupported(format!("{other} of bytes"))),
    }
}

/// The next code words as positions in the dictionary; 0 for null.
fn places(block: &mut BitShuffle, bytes: &[u8], memory: &mut Memory, segment: &Segment) -> Result<()> {
    let mut places = std::mem::take(&mut memory.places);
    places.clear();
    places.resize(segment.rows, 0);
    let dense = places.get_mut(..segment.dense).unwrap_or_default();
    let decoded = block.decode(bytes, dense, &mut memory.shuffle);
    // A code word of 2^32 - 1 becomes an invalid position, not 0, which means null.
    dense.iter_mut().for_each(|p| *p = p.checked_add(1).unwrap_or(u32::MAX));
    let spread = segment.spread(&mut places);
    memory.places = places;
    decoded.and(spread)
}

/// Appends contiguous values. `ends` begins with the first value's start, relative to `base` in `values`.
fn append(
    ends: &[u32],
    base: usize,
    values: &[u8],
    segment: &Segment,
    offsets: &mut Vec<i32>,
    data: &mut Vec<u8>,
) -> Result<()> {
    let Some(ends) = ends.get(..=segment.dense) else {
        return Err(Error::corrupt("expected more values, found the block's end"));
    };
    let (first, last) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
    let bytes = values.get(base + first as usize..base + last as usize);
    let bytes = bytes.ok_or_else(|| Error::corrupt("expected values inside the block"))?;
    let start = data.len();
    let end = start + bytes.len();
    if end > i32::MAX as usize {
        return Err(Error::batch_too_long("the values of a batch", end as u64));
    }
    reserve(data, bytes.len(), segment.rows, segment.left);
    data.extend_from_slice(bytes);
    // The total was checked to fit in 31 bits.
    let shift = i32::try_from(start).unwrap_or(0);
    let place = |end: &u32| shift.wrapping_add((end - first).cast_signed());
    match &segment.validity {
        None => offsets.extend(ends.iter().skip(1).map(place)),
        Some(bits) => {
            // A null row ends where the previous row ends. The loop has no branch, because nulls are hard to
            // predict.
            let mut passed = 0;
            offsets.extend((0..segment.rows).map(|row| {
                let valid = bits.as_slice().get(row / 8).map_or(0, |b| b >> (row % 8) & 1);
                passed += usize::from(valid);
                place(ends.get(passed).unwrap_or(&last))
            }));
        }
    }
    Ok(())
}

/// Fails if a decimal has more digits than its type.
fn check_decimals<T: Word>(values: &[T], limit: i128) -> Result<()> {
    if !T::exceed(values, limit) {
        return Ok(());
    }
    let value = values.iter().map(|value| value.sign_extend());
    let value = value.filter(|value| value.unsigned_abs() >= limit.unsigned_abs()).take(1).sum::<i128>();
    Err(Error::corrupt(format!("expected decimals between -{limit} and {limit}, found {value}")))
}

/// Turns values into an array of the requested type.
fn primitive<T: Word>(
    values: Vec<T>,
    nulls: Option<NullBuffer>,
    from: KuduType,
    to: &DataType,
) -> Result<ArrayRef> {
    let rows = values.len();
    let buffer = match from {
        KuduType::Decimal32 | KuduType::Decimal64 => {
            Buffer::from_vec(values.into_iter().map(Word::sign_extend).collect::<Vec<i128>>())
        }
        _ => T::buffer(values),
    };
    let data = ArrayData::builder(to.clone()).len(rows).nulls(nulls).add_buffer(buffer);
    Ok(make_array(data.build().map_err(arrow_error)?))
}
