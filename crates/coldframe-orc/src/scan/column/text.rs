//! Strings and binary: direct, and by dictionary.
//!
//! ```text
//! direct      DATA the bytes of all values | LENGTH of each
//! dictionary  DATA the entry of each value | LENGTH of each entry | DICTIONARY_DATA the bytes of all entries
//! ```
//!
//! Text is checked once: all bytes of a batch together, or a dictionary's when a stripe begins.

use std::sync::{Arc, PoisonError};

use arrow_array::{ArrayRef, DictionaryArray, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};
use coldframe_core::{ErrorContext, Result, arrow_error};

use super::build::{self, take, total};
use super::dictionary::{Dictionaries, Dictionary};
use super::input::Input;
use super::{ColumnReader, Present, array, boxed, dense, primitive, to_rows};
use crate::layout::index::is_dictionary;
use crate::layout::stripe::StreamKind;
use crate::layout::types::Column;
use crate::scan::rle::int::IntRle;
use crate::scan::stream::ByteStream;

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
    boxed(ByDictionary { present, data, dictionary, scratch: Vec::new(), keyed })
}

/// The dictionary of a column, whatever the row group.
fn read_dictionary(input: &Input<'_>, column: &Column) -> Result<Dictionary> {
    let entries = u64::from(input.encoding(column.id).dictionary_size());
    let lengths = IntRle::new(input.whole(column.id, StreamKind::Length)?, input.version(column.id)?, false);
    Dictionary::read(entries, lengths, input.whole(column.id, StreamKind::DictionaryData)?, &input.limits)
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
                self.dictionary.values().clone(),
            );
            return Ok(array(keyed.map_err(arrow_error)?));
        }
        let bytes = self.dictionary.gather(stored)?;
        to_rows(&mut self.scratch, &validity)?;
        let text: StringArray = build::checked_strings(&self.scratch, bytes, validity.nulls)?;
        Ok(array(text))
    }
}
