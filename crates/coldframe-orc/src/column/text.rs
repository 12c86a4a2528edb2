//! Strings and binary: direct, and by dictionary.
//!
//! ```text
//! direct      DATA the bytes of all values | LENGTH of each
//! dictionary  DATA the entry of each value | LENGTH of each entry | DICTIONARY_DATA the bytes of all entries
//! ```
//!
//! Text is checked once: all bytes of a batch together, or a dictionary's when a stripe begins.

mod build;

use std::sync::{Arc, PoisonError};

use arrow_array::{ArrayRef, DictionaryArray, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};
use coldframe_core::{Error, ErrorContext, ErrorKind, Result, arrow_error};

use super::input::Input;
use super::{ColumnReader, Present, array, boxed, dense, primitive, to_rows};
use crate::index::is_dictionary;
use crate::rle::int::IntRle;
use crate::stream::ByteStream;
use crate::stripe::StreamKind;
use crate::types::Column;

/// Entries of at most so many bytes are copied as one word.
const WORD: usize = 16;

/// The entries of a stripe's dictionary.
#[derive(Debug)]
pub struct Dictionary {
    /// Where each begins, and its length.
    entries: Vec<(u32, u32)>,
    /// The first bytes of each, where none is longer.
    words: Vec<[u8; WORD]>,
    /// The bytes, UTF-8.
    bytes: Vec<u8>,
    /// The entries as an array, for those who want no copies.
    values: ArrayRef,
}

impl Dictionary {
    fn read(input: &Input<'_>, column: &Column) -> Result<Self> {
        let encoding = input.encoding(column.id);
        let entries = u64::from(encoding.dictionary_size());
        // An entry takes a bit of its length's run at least, a run four bytes for 512 of them.
        let entries = input.limits.block("a dictionary's entries", entries.saturating_mul(4))? / 4;
        let mut lengths =
            IntRle::new(input.whole(column.id, StreamKind::Length)?, input.version(column.id)?, false);
        let mut sizes = vec![0u32; entries];
        lengths.read(&mut sizes).within(|| "LENGTH")?;
        let mut data = input.whole(column.id, StreamKind::DictionaryData)?;
        let total = total(&sizes)?;
        let bytes = take(&mut data, total).within(|| "DICTIONARY_DATA")?;
        let mut at = 0;
        let mut place = |size: &u32| {
            at += size;
            (at - size, *size)
        };
        let entries: Vec<(u32, u32)> = sizes.iter().map(&mut place).collect();
        let word = |(start, length): &(u32, u32)| {
            let mut word = [0; WORD];
            let from = bytes.get(*start as usize..(start + length) as usize).unwrap_or_default();
            word.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            word
        };
        let short = sizes.iter().all(|size| *size as usize <= WORD);
        let words = if short { entries.iter().map(word).collect() } else { Vec::new() };
        let values = Arc::new(build::strings(&sizes, bytes.clone(), None)?);
        Ok(Self { entries, words, bytes, values })
    }

    /// The entries that `places` name, one behind the other; `places` become their lengths.
    fn gather(&self, places: &mut [u32]) -> Result<Vec<u8>> {
        let mut total = 0u64;
        let mut missing = None;
        for place in places.iter() {
            match self.entries.get(*place as usize) {
                Some((_, length)) => total += u64::from(*length),
                None => missing = Some(*place),
            }
        }
        if let Some(place) = missing {
            let found = self.entries.len();
            return Err(
                Error::corrupt(format!("expected one of {found} entries, found {place}")).within("DATA")
            );
        }
        let total = check_total(total)?;
        if self.words.is_empty() {
            Ok(self.copy_long(places, total))
        } else {
            Ok(self.copy_short(places, total))
        }
    }

    /// A copy of fixed size is one instruction; what is too much is written over by the next.
    fn copy_short(&self, places: &mut [u32], total: usize) -> Vec<u8> {
        let mut out = vec![0u8; total + WORD];
        let mut at = 0;
        for place in places {
            let index = *place as usize;
            let (Some(word), Some((_, length))) = (self.words.get(index), self.entries.get(index)) else {
                continue;
            };
            if let Some(to) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
                *to = *word;
            }
            at += *length as usize;
            *place = *length;
        }
        out.truncate(total);
        out
    }

    fn copy_long(&self, places: &mut [u32], total: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(total);
        for place in places {
            let (start, length) = self.entries.get(*place as usize).copied().unwrap_or_default();
            out.extend_from_slice(
                self.bytes.get(start as usize..(start + length) as usize).unwrap_or_default(),
            );
            *place = length;
        }
        out
    }
}

/// The sum of lengths, if an array can hold it.
fn total(lengths: &[u32]) -> Result<usize> {
    check_total(lengths.iter().map(|n| u64::from(*n)).sum())
}

fn check_total(total: u64) -> Result<usize> {
    usize::try_from(total).ok().filter(|_| i32::try_from(total).is_ok()).ok_or_else(|| {
        Error::new(ErrorKind::LimitExceeded {
            what: "a batch's text",
            asked: total,
            limit: i32::MAX.unsigned_abs().into(),
            option: "batch_size",
        })
    })
}

/// The next `n` bytes of a stream, which must be able to have them.
fn take(stream: &mut ByteStream, n: usize) -> Result<Vec<u8>> {
    let most = stream.most_left();
    if n > most {
        return Err(Error::corrupt(format!("expected {n} bytes, found at most {most}")).at(stream.offset()));
    }
    let mut out = Vec::with_capacity(n);
    stream.append(n, &mut out)?;
    Ok(out)
}

/// A reader of strings.
pub(super) fn strings(input: &Input<'_>, column: &Column, field: &Field) -> Result<Box<dyn ColumnReader>> {
    let present = input.present(column.id)?;
    let keyed = matches!(field.data_type(), DataType::Dictionary(..));
    if !is_dictionary(&input.encoding(column.id)) {
        let (data, lengths) = direct(input, column)?;
        return boxed(Direct {
            present,
            data,
            lengths,
            scratch: Vec::new(),
            form: if keyed { Form::Keyed } else { Form::Text },
        });
    }
    let held = |d: &super::input::Dictionaries| {
        d.lock().unwrap_or_else(PoisonError::into_inner).get(&column.id).cloned()
    };
    let dictionary = match held(input.dictionaries) {
        Some(dictionary) => dictionary,
        None => {
            let read = Arc::new(Dictionary::read(input, column)?);
            let mut all = input.dictionaries.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(column.id).or_insert(read).clone()
        }
    };
    let data = input.integers(column.id, StreamKind::Data, input.version(column.id)?, false)?;
    boxed(ByDictionary { present, data, dictionary, scratch: Vec::new(), keyed })
}

/// A reader of bytes.
pub(super) fn binary(input: &Input<'_>, column: &Column) -> Result<Box<dyn ColumnReader>> {
    let present = input.present(column.id)?;
    let (data, lengths) = direct(input, column)?;
    boxed(Direct { present, data, lengths, scratch: Vec::new(), form: Form::Binary })
}

fn direct(input: &Input<'_>, column: &Column) -> Result<(ByteStream, IntRle)> {
    let lengths = input.integers(column.id, StreamKind::Length, input.version(column.id)?, false)?;
    Ok((input.bytes(column.id, StreamKind::Data)?, lengths))
}

/// What direct values become.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Binary,
    Text,
    /// A dictionary of the batch's words.
    Keyed,
}

struct Direct {
    present: Present,
    data: ByteStream,
    lengths: IntRle,
    /// Memory for lengths.
    scratch: Vec<u32>,
    form: Form,
}

impl ColumnReader for Direct {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        self.scratch.resize(rows, 0);
        let stored = dense(&mut self.scratch, &validity);
        self.lengths.read(stored).within(|| "LENGTH")?;
        let total = total(stored)?;
        to_rows(&mut self.scratch, &validity)?;
        let bytes = take(&mut self.data, total).within(|| "DATA")?;
        if self.form == Form::Binary {
            return Ok(array(build::binary(&self.scratch, bytes, validity.nulls)?));
        }
        let text = build::strings(&self.scratch, bytes, validity.nulls)?;
        if self.form == Form::Text {
            return Ok(array(text));
        }
        let keyed = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        arrow_cast::cast(&text, &keyed).map_err(arrow_error)
    }
}

struct ByDictionary {
    present: Present,
    data: IntRle,
    dictionary: Arc<Dictionary>,
    /// Memory for places and lengths.
    scratch: Vec<u32>,
    keyed: bool,
}

impl ColumnReader for ByDictionary {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        self.scratch.resize(rows, 0);
        let stored = dense(&mut self.scratch, &validity);
        self.data.read(stored).within(|| "DATA")?;
        if self.keyed {
            to_rows(&mut self.scratch, &validity)?;
            let keys = primitive(std::mem::take(&mut self.scratch), validity.nulls);
            let keyed = DictionaryArray::<arrow_array::types::Int32Type>::try_new(
                keys,
                self.dictionary.values.clone(),
            );
            return Ok(array(keyed.map_err(arrow_error)?));
        }
        let bytes = self.dictionary.gather(stored)?;
        to_rows(&mut self.scratch, &validity)?;
        let text: StringArray = build::checked_strings(&self.scratch, bytes, validity.nulls)?;
        Ok(array(text))
    }
}
