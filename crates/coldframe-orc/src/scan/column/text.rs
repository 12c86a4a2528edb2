//! Strings and binary: direct, and by dictionary.
//!
//! ```text
//! direct      DATA the bytes of all values | LENGTH of each
//! dictionary  DATA the entry of each value | LENGTH of each entry | DICTIONARY_DATA the bytes of all entries
//! ```
//!
//! Text is checked once: all bytes of a batch together, or a dictionary's when a stripe begins.

use std::sync::{Arc, PoisonError};

use arrow_array::{ArrayRef, DictionaryArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};
use coldframe_core::arrays::{Words, binary_of_lengths, text_of_lengths};
use coldframe_core::{ErrorContext, Result, arrow_error};

use super::dictionary::{self, Dictionaries, Most};
use super::input::{Bound, Input};
use super::{ColumnReader, Present, array, boxed, dense, primitive, to_rows};
use crate::layout::index::is_dictionary;
use crate::layout::stripe::StreamKind;
use crate::layout::types::Column;
use crate::scan::rle::int::IntRle;
use crate::scan::stream::{ByteStream, Stand};

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
            bound: input.bound(),
            form: if keyed { Form::Keyed } else { Form::Text },
        });
    }
    let held = |d: &Dictionaries| d.lock().unwrap_or_else(PoisonError::into_inner).get(&column.id).cloned();
    let dictionary = match held(input.dictionaries) {
        Some(dictionary) => dictionary,
        None => {
            let read = Arc::new(read_dictionary(input, column)?);
            let mut all = input.dictionaries.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(column.id).or_insert(read).clone()
        }
    };
    let data = input.integers(column.id, StreamKind::Data, input.version(column.id)?, false)?;
    boxed(ByDictionary { present, data, dictionary, scratch: Vec::new(), bound: input.bound(), keyed })
}

/// The dictionary of a column, whatever the row group.
fn read_dictionary(input: &Input<'_>, column: &Column) -> Result<Words> {
    let entries = u64::from(input.encoding(column.id).dictionary_size());
    let lengths = IntRle::new(input.whole(column.id, StreamKind::Length)?, input.version(column.id)?, false);
    let most = Most { rows: input.rows, repeated: column.repeated, file_len: input.file_len };
    let data = input.whole(column.id, StreamKind::DictionaryData)?;
    dictionary::read(entries, lengths, data, &input.limits, most)
}

/// A reader of bytes.
pub(super) fn binary(input: &Input<'_>, column: &Column) -> Result<Box<dyn ColumnReader>> {
    let present = input.present(column.id)?;
    let (data, lengths) = direct(input, column)?;
    boxed(Direct { present, data, lengths, scratch: Vec::new(), bound: input.bound(), form: Form::Binary })
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
    bound: Bound,
    form: Form,
}

impl ColumnReader for Direct {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        self.scratch.resize(rows, 0);
        let stored = dense(&mut self.scratch, &validity);
        self.lengths.read(stored).within(|| "LENGTH")?;
        let total: u64 = stored.iter().map(|length| u64::from(*length)).sum();
        self.bound.check("the text of a batch", rows, total)?;
        to_rows(&mut self.scratch, &validity)?;
        let bytes = self.data.take(total).within(|| "DATA")?;
        if self.form == Form::Binary {
            return Ok(array(binary_of_lengths(&self.scratch, bytes, validity.nulls)?));
        }
        let text = text_of_lengths(&self.scratch, bytes, validity.nulls)?;
        if self.form == Form::Text {
            return Ok(array(text));
        }
        let keyed = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        arrow_cast::cast(&text, &keyed).map_err(arrow_error)
    }

    fn stands(&self, into: &mut Vec<Stand>) {
        self.present.stands(into);
        into.extend([self.data.stand(StreamKind::Data), self.lengths.stand(StreamKind::Length)]);
    }
}

struct ByDictionary {
    present: Present,
    data: IntRle,
    dictionary: Arc<Words>,
    /// Memory for places and lengths.
    scratch: Vec<u32>,
    bound: Bound,
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
            let keyed =
                DictionaryArray::<arrow_array::types::Int32Type>::try_new(keys, self.dictionary.values());
            return Ok(array(keyed.map_err(arrow_error)?));
        }
        let gathered = self.dictionary.gather_of(stored, self.bound.rows(rows)).within(|| "DATA")?;
        let total = stored.iter().map(|length| u64::from(*length)).sum();
        self.bound.check("the text of a batch", rows, total)?;
        to_rows(&mut self.scratch, &validity)?;
        Ok(array(gathered.text(&self.scratch, validity.nulls)?))
    }

    fn stands(&self, into: &mut Vec<Stand>) {
        self.present.stands(into);
        into.push(self.data.stand(StreamKind::Data));
    }
}
