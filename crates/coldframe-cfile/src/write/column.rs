//! Collects the values of the current block until it is full.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use coldframe_core::{Error, Result};
use coldframe_encoding::codec::Compressor;
use coldframe_encoding::varint::put_uleb128;

use super::encode;
use crate::encoding::{Word, dict};
use crate::layout::types::{Encoding, Physical};

/// A block to write.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) bytes: Vec<u8>,
    /// The ordinal of the block's first row.
    pub(super) ordinal: u32,
    /// If keys are indexed: the last key before the block, and the block's first key.
    pub(super) keys: Option<(Vec<u8>, Vec<u8>)>,
}

/// The non-null values.
#[derive(Debug)]
enum Values {
    Bits(Vec<bool>),
    /// Values of a fixed size, little-endian, and that size.
    Fixed(Vec<u8>, usize),
    /// The bytes of all values, and the offset where each value ends.
    Bytes(Vec<u8>, Vec<usize>),
}

impl Values {
    fn clear(&mut self) {
        match self {
            Self::Bits(bits) => bits.clear(),
            Self::Fixed(bytes, _) => bytes.clear(),
            Self::Bytes(bytes, ends) => {
                bytes.clear();
                ends.clear();
            }
        }
    }
}

/// Values and their code words.
#[derive(Debug, Default)]
struct Codes {
    of: HashMap<Vec<u8>, u32>,
    values: Vec<Vec<u8>>,
    bytes: usize,
    /// Whether the dictionary accepts no more values.
    closed: bool,
}

/// A column being written.
#[derive(Debug)]
pub(super) struct ColumnBuffer {
    encoding: Encoding,
    nullable: bool,
    block_size: usize,
    values: Values,
    /// Which rows of the block are not null.
    validity: Vec<bool>,
    rows: usize,
    /// The ordinal of the block's first row.
    ordinal: u64,
    codes: Codes,
    /// The code words of the block's values.
    code_words: Vec<u32>,
    /// The last key before the block; `first` and `last` are the block's first and last key.
    before: Vec<u8>,
    first: Option<Vec<u8>>,
    last: Vec<u8>,
}

impl ColumnBuffer {
    pub(super) fn new(physical: Physical, encoding: Encoding, nullable: bool, block_size: usize) -> Self {
        let values = match physical {
            Physical::Bool => Values::Bits(Vec::new()),
            Physical::Fixed(size) => Values::Fixed(Vec::new(), size),
            Physical::Binary => Values::Bytes(Vec::new(), Vec::new()),
        };
        Self {
            encoding,
            nullable,
            block_size,
            values,
            validity: Vec::new(),
            rows: 0,
            ordinal: 0,
            codes: Codes::default(),
            code_words: Vec::new(),
            before: Vec::new(),
            first: None,
            last: Vec::new(),
        }
    }

    pub(super) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Records the key of a row that goes into the current block.
    fn record_key(&mut self, key: &[u8]) {
        self.first.get_or_insert_with(|| key.to_vec());
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    /// The bytes that count towards the block size.
    fn filled(&self) -> usize {
        match &self.values {
            Values::Bits(bits) => bits.len() / 8,
            Values::Fixed(bytes, _) => bytes.len(),
            Values::Bytes(..) if self.in_codes() => 4 * self.code_words.len(),
            Values::Bytes(bytes, ends) => bytes.len() + 4 * ends.len(),
        }
    }

    fn in_codes(&self) -> bool {
        self.encoding == Encoding::Dict && !self.codes.closed
    }

    /// The number of values, starting at `from`, that go into the current block; at least one.
    pub(super) fn room(&self, values: &ArrayRef, from: usize, max_rows: usize) -> Result<usize> {
        let left = values.len() - from;
        let spare = self.block_size.saturating_sub(self.filled());
        let n = match &self.values {
            Values::Bits(_) => spare.saturating_mul(8),
            Values::Fixed(_, size) => spare.div_ceil(*size),
            Values::Bytes(..) if self.in_codes() => spare.div_ceil(4).min(1024),
            Values::Bytes(..) => {
                let mut bytes = 0;
                let of = |i: usize| bytes_of(values, i).map(|b| b.len() + 4);
                let mut n = 0;
                while n < left && bytes < spare {
                    bytes += of(from + n)?;
                    n += 1;
                }
                n
            }
        };
        Ok(n.max(1).min(left).min(max_rows - self.rows))
    }

    /// Adds rows and returns the blocks that became full. `keys`: the rows' keys, if keys are indexed. The
    /// key of each row is recorded together with the row, since a block may end between any two rows.
    pub(super) fn append(
        &mut self,
        values: &ArrayRef,
        keys: &[Vec<u8>],
        compressor: &mut Compressor,
    ) -> Result<Vec<Finished>> {
        let mut full = Vec::new();
        let fixed = matches!(self.values, Values::Fixed(..));
        if fixed {
            self.append_fixed(values)?;
            keys.iter().for_each(|key| self.record_key(key));
        }
        for i in 0..if fixed { 0 } else { values.len() } {
            let valid = values.is_valid(i);
            if valid && self.in_codes() && !self.code(bytes_of(values, i)?) {
                // The dictionary is full: the block of code words ends before this value.
                full.extend(self.flush(compressor)?);
                self.codes.closed = true;
            }
            if valid && !self.in_codes() {
                self.push(values, i)?;
            }
            if let Some(key) = keys.get(i) {
                self.record_key(key);
            }
            if self.nullable {
                self.validity.push(valid);
            }
            self.rows += 1;
            // Once the dictionary is full, values take more than the room that their code words would take.
            if self.filled() >= self.block_size {
                full.extend(self.flush(compressor)?);
            }
        }
        if self.filled() >= self.block_size || self.rows >= super::MAX_ROWS {
            full.extend(self.flush(compressor)?);
        }
        Ok(full)
    }

    /// Appends the code word of a value; `false` if the value has no code word and the dictionary is full.
    fn code(&mut self, value: &[u8]) -> bool {
        if let Some(word) = self.codes.of.get(value) {
            self.code_words.push(*word);
            return true;
        }
        let size = value.len() + 5;
        if self.codes.bytes + size > self.block_size {
            return false;
        }
        let Ok(word) = u32::try_from(self.codes.values.len()) else { return false };
        self.codes.bytes += size;
        self.codes.of.insert(value.to_vec(), word);
        self.codes.values.push(value.to_vec());
        self.code_words.push(word);
        true
    }

    fn push(&mut self, values: &ArrayRef, i: usize) -> Result<()> {
        match &mut self.values {
            Values::Bits(bits) => bits.push(values.as_boolean().value(i)),
            Values::Bytes(bytes, ends) => {
                bytes.extend_from_slice(bytes_of(values, i)?);
                ends.push(bytes.len());
            }
            Values::Fixed(..) => return Err(Error::schema("expected fixed-size values in one call")),
        }
        Ok(())
    }

    /// Adds rows of fixed-size values.
    fn append_fixed(&mut self, values: &ArrayRef) -> Result<()> {
        let Values::Fixed(bytes, size) = &mut self.values else { return Ok(()) };
        let size = *size;
        let data = values.to_data();
        let width = if matches!(values.data_type(), DataType::Decimal128(..)) { 16 } else { size };
        let all = data.buffers().first().map(|b| b.as_slice()).unwrap_or_default();
        let from = data.offset().saturating_mul(width);
        let own = all.get(from..from + values.len() * width);
        let own = own.ok_or_else(|| Error::schema("expected values of fixed size"))?;
        if values.null_count() == 0 && width == size {
            bytes.extend_from_slice(own);
        } else {
            for (i, value) in own.chunks_exact(width).enumerate().filter(|(i, _)| values.is_valid(*i)) {
                let (low, spare) = value.split_at(size.min(width));
                let sign = if low.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 };
                if spare.iter().any(|b| *b != sign) {
                    return Err(Error::schema(format!(
                        "expected a decimal of {size} bytes, found a larger one (row {i})"
                    )));
                }
                bytes.extend_from_slice(low);
            }
        }
        if self.nullable {
            self.validity.extend((0..values.len()).map(|i| values.is_valid(i)));
        }
        self.rows += values.len();
        Ok(())
    }

    /// Ends the current block, if it has rows.
    pub(super) fn finish(&mut self, compressor: &mut Compressor) -> Result<Vec<Finished>> {
        self.flush(compressor).map(Vec::from_iter)
    }

    fn flush(&mut self, compressor: &mut Compressor) -> Result<Option<Finished>> {
        if self.rows == 0 {
            return Ok(None);
        }
        let ordinal = u32::try_from(self.ordinal).unwrap_or(u32::MAX);
        let mut out = Vec::new();
        if self.nullable {
            let mut bitmap = Vec::new();
            encode::bitmap(&self.validity, &mut bitmap);
            put_uleb128(&mut out, self.rows as u64);
            put_uleb128(&mut out, bitmap.len() as u64);
            out.extend_from_slice(&bitmap);
        }
        self.encode(ordinal, compressor, &mut out)?;
        let keys = self.first.take().map(|first| (std::mem::take(&mut self.before), first));
        self.before.clone_from(&self.last);
        self.ordinal += self.rows as u64;
        self.rows = 0;
        self.validity.clear();
        self.code_words.clear();
        self.values.clear();
        Ok(Some(Finished { bytes: out, ordinal, keys }))
    }

    fn encode(&self, ordinal: u32, compressor: &mut Compressor, out: &mut Vec<u8>) -> Result<()> {
        match &self.values {
            Values::Bits(bits) if self.encoding == Encoding::Plain => encode::plain_bits(bits, ordinal, out),
            Values::Bits(bits) => encode::rle_bits(bits, ordinal, out),
            Values::Fixed(bytes, 1) => fixed::<u8>(bytes, self.encoding, ordinal, compressor, out)?,
            Values::Fixed(bytes, 2) => fixed::<u16>(bytes, self.encoding, ordinal, compressor, out)?,
            Values::Fixed(bytes, 4) if self.encoding == Encoding::GroupVarint => {
                encode::group_varint(&from_le_bytes(bytes), ordinal, out);
            }
            Values::Fixed(bytes, 4) => fixed::<u32>(bytes, self.encoding, ordinal, compressor, out)?,
            Values::Fixed(bytes, 8) => fixed::<u64>(bytes, self.encoding, ordinal, compressor, out)?,
            Values::Fixed(bytes, _) => fixed::<i128>(bytes, self.encoding, ordinal, compressor, out)?,
            Values::Bytes(..) if self.in_codes() => {
                out.extend(dict::CODE_WORDS.to_le_bytes());
                encode::bit_shuffle_narrow(&self.code_words, ordinal, compressor, out)?;
            }
            Values::Bytes(bytes, ends) => {
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let values = starts.zip(ends).map(|(from, to)| bytes.get(from..*to).unwrap_or_default());
                let values: Vec<&[u8]> = values.collect();
                match self.encoding {
                    Encoding::Prefix => encode::prefix(&values, ordinal, out),
                    Encoding::Dict => {
                        out.extend(dict::VALUES.to_le_bytes());
                        encode::plain_bytes(&values, ordinal, out);
                    }
                    _ => encode::plain_bytes(&values, ordinal, out),
                }
            }
        }
        Ok(())
    }

    /// The dictionary, if the encoding has one.
    pub(super) fn dictionary_block(&self) -> Option<Vec<u8>> {
        let values: Vec<&[u8]> = self.codes.values.iter().map(Vec::as_slice).collect();
        (self.encoding == Encoding::Dict).then(|| {
            let mut out = Vec::new();
            encode::plain_bytes(&values, 0, &mut out);
            out
        })
    }
}

fn from_le_bytes<T: Word>(bytes: &[u8]) -> Vec<T> {
    let mut values = vec![T::default(); bytes.len() / T::SIZE];
    T::read(bytes, &mut values);
    values
}

fn fixed<T: Word + PartialEq>(
    bytes: &[u8],
    encoding: Encoding,
    ordinal: u32,
    compressor: &mut Compressor,
    out: &mut Vec<u8>,
) -> Result<()> {
    let values: Vec<T> = from_le_bytes(bytes);
    match encoding {
        Encoding::BitShuffle => return encode::bit_shuffle(&values, ordinal, compressor, out),
        Encoding::Rle => encode::rle(&values, ordinal, out),
        _ => encode::plain(&values, ordinal, out),
    }
    Ok(())
}

/// The bytes of a text or binary value; empty for a null.
fn bytes_of(values: &ArrayRef, i: usize) -> Result<&[u8]> {
    match values.data_type() {
        _ if values.is_null(i) => Ok(&[]),
        DataType::Utf8 => Ok(values.as_string::<i32>().value(i).as_bytes()),
        DataType::Binary => Ok(values.as_binary::<i32>().value(i)),
        other => Err(Error::schema(format!("expected text or bytes, found {other}"))),
    }
}
