//! Decodes strings and binary, stored directly or with a dictionary.
//!
//! ```text
//! direct      DATA the bytes of all values | LENGTH of each
//! dictionary  DATA the entry of each value | LENGTH of each entry | DICTIONARY_DATA the bytes of all entries
//! ```
//!
//! Text is checked once: all bytes of a batch together, or a dictionary when its stripe begins. A value that
//! is not UTF-8 does not affect others: the reader reports it ([`ColumnReader::malformed`]), and the decoder
//! of the batch decides about its row.

use std::sync::{Arc, PoisonError};

use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, BinaryArray, DictionaryArray, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field};
use bytes::Bytes;
use coldframe_core::arrays::{TextDictionary, binary_of_lengths, readable_text, views, with_nulls};
use coldframe_core::{Error, ErrorContext, Result, arrow_error};

use super::dictionary::{self, Dictionaries, Dictionary, EntryLimit};
use super::input::{Bound, Input};
use super::{
    ColumnReader, Malformed, MalformedValue, Present, Validity, array, boxed, dense, filtered, is_sparse,
    keep, keep_dense, primitive, rows_of_kept, to_rows,
};
use crate::layout::index::is_dictionary;
use crate::layout::stripe::StreamKind;
use crate::layout::types::Column;
use crate::scan::rle::int::IntRle;
use crate::scan::stream::{ByteStream, StreamPosition};

/// A reader of strings.
pub(super) fn strings(input: &Input<'_>, column: &Column, field: &Field) -> Result<Box<dyn ColumnReader>> {
    if is_dictionary(&input.encoding(column.id)) {
        return by_dictionary(input, column, field, true);
    }
    let present = input.present(column.id)?;
    let (data, lengths) = direct(input, column)?;
    boxed(Direct {
        present,
        data,
        lengths,
        scratch: Vec::new(),
        bound: input.bound(),
        form: Form::of(field),
        nullable: field.is_nullable(),
        malformed: Vec::new(),
    })
}

/// Creates a reader of text or bytes with a dictionary.
fn by_dictionary(
    input: &Input<'_>,
    column: &Column,
    field: &Field,
    is_text: bool,
) -> Result<Box<dyn ColumnReader>> {
    let (form, nullable) = (Form::of(field), field.is_nullable() || !is_text);
    let present = input.present(column.id)?;
    let cached = |d: &Dictionaries| d.lock().unwrap_or_else(PoisonError::into_inner).get(&column.id).cloned();
    let dictionary = match cached(input.dictionaries) {
        Some(dictionary) => dictionary,
        None => {
            let read = Arc::new(read_dictionary(input, column, is_text)?);
            let mut all = input.dictionaries.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(column.id).or_insert(read).clone()
        }
    };
    let data = input.integers(column.id, StreamKind::Data, input.version(column.id)?, false)?;
    let (scratch, bound) = (Vec::new(), input.bound());
    boxed(ByDictionary { present, data, dictionary, scratch, bound, form, nullable, malformed: Vec::new() })
}

/// The dictionary of a column, which every row group needs.
fn read_dictionary(input: &Input<'_>, column: &Column, is_text: bool) -> Result<Dictionary> {
    let entries = u64::from(input.encoding(column.id).dictionary_size());
    let lengths = IntRle::new(input.whole(column.id, StreamKind::Length)?, input.version(column.id)?, false);
    let limit = EntryLimit { rows: input.rows, repeated: column.repeated, file_len: input.file_len };
    let data = input.whole(column.id, StreamKind::DictionaryData)?;
    dictionary::read(entries, lengths, data, &input.limits, limit, is_text)
}

/// The dictionary of a column as bytes.
pub(crate) fn stored_dictionary(input: &Input<'_>, column: &Column) -> Result<BinaryArray> {
    match read_dictionary(input, column, false)? {
        Dictionary::Bytes(values) => Ok(values),
        Dictionary::Text(..) => Err(Error::invalid("a dictionary of text where bytes were requested")),
    }
}

/// A reader of bytes.
pub(super) fn binary(input: &Input<'_>, column: &Column, field: &Field) -> Result<Box<dyn ColumnReader>> {
    // Text that the user declared as bytes may have a dictionary.
    if is_dictionary(&input.encoding(column.id)) {
        return by_dictionary(input, column, field, false);
    }
    let present = input.present(column.id)?;
    let (data, lengths) = direct(input, column)?;
    let (scratch, bound, malformed) = (Vec::new(), input.bound(), Vec::new());
    let form = if *field.data_type() == DataType::BinaryView { Form::BinaryView } else { Form::Binary };
    boxed(Direct { present, data, lengths, scratch, bound, form, nullable: true, malformed })
}

fn direct(input: &Input<'_>, column: &Column) -> Result<(ByteStream, IntRle)> {
    let lengths = input.integers(column.id, StreamKind::Length, input.version(column.id)?, false)?;
    Ok((input.bytes(column.id, StreamKind::Data)?, lengths))
}

/// The Arrow form of the values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Binary,
    BinaryView,
    Text,
    TextView,
    /// The values are an Arrow dictionary.
    Keyed,
}

impl Form {
    fn of(field: &Field) -> Self {
        match field.data_type() {
            DataType::BinaryView => Self::BinaryView,
            DataType::Utf8View => Self::TextView,
            DataType::Dictionary(..) => Self::Keyed,
            _ => Self::Text,
        }
    }
}

struct Direct {
    present: Present,
    data: ByteStream,
    lengths: IntRle,
    /// Memory for lengths.
    scratch: Vec<u32>,
    bound: Bound,
    form: Form,
    /// A map's keys may not be null.
    nullable: bool,
    /// Rows of the last batch whose values are not UTF-8.
    malformed: Vec<usize>,
}

impl Direct {
    /// Views of the values whose lengths are in `scratch`.
    fn views(&mut self, bytes: Bytes, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        if self.form == Form::BinaryView {
            return Ok(array(views::binary(&self.scratch, bytes.into(), nulls)?));
        }
        let (text, malformed) = views::text(&self.scratch, bytes.into(), nulls, self.nullable)?;
        self.malformed = malformed;
        Ok(array(text))
    }

    /// The bytes of the rows that `kept` selects, and passes over the others. `scratch` has the length of each row.
    fn bytes_of_kept(&mut self, kept: &BooleanBuffer) -> Result<Vec<u8>> {
        let lengths = self.scratch.as_slice();
        let total = |from: usize, to: usize| -> u64 {
            lengths.get(from..to).unwrap_or_default().iter().map(|length| u64::from(*length)).sum()
        };
        let of_kept = kept.set_slices().map(|(from, to)| total(from, to)).sum();
        self.bound.check("the text of a batch", of_kept, || self.data.max_remaining() as u64)?;
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let (mut bytes, mut row) = (Vec::with_capacity(size(of_kept)), 0);
        for (from, to) in kept.set_slices() {
            self.data.skip(size(total(row, from))).within(|| "DATA")?;
            self.data.append(size(total(from, to)), &mut bytes).within(|| "DATA")?;
            row = to;
        }
        self.data.skip(size(total(row, lengths.len()))).within(|| "DATA")?;
        Ok(bytes)
    }
}

impl ColumnReader for Direct {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        self.scratch.resize(rows, 0);
        let stored = dense(&mut self.scratch, &validity);
        self.lengths.read(stored).within(|| "LENGTH")?;
        let total: u64 = stored.iter().map(|length| u64::from(*length)).sum();
        self.bound.check("the text of a batch", total, || self.data.max_remaining() as u64)?;
        to_rows(&mut self.scratch, &validity)?;
        if matches!(self.form, Form::TextView | Form::BinaryView) {
            let bytes = self.data.share(total).within(|| "DATA")?;
            return self.views(bytes, validity.nulls);
        }
        let bytes = self.data.share_much(total).within(|| "DATA")?;
        if self.form == Form::Binary {
            return Ok(array(binary_of_lengths(&self.scratch, bytes.into(), validity.nulls)?));
        }
        let (text, malformed) = readable_text(&self.scratch, bytes.into(), validity.nulls, self.nullable)?;
        self.malformed = malformed;
        if self.form != Form::Keyed {
            return Ok(array(text));
        }
        let keyed = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        arrow_cast::cast(&text, &keyed).map_err(arrow_error)
    }

    fn read_kept(
        &mut self,
        rows: usize,
        parent: Option<&NullBuffer>,
        kept: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        if self.form != Form::Text {
            let array = self.read(rows, parent)?;
            return filtered(&array, kept);
        }
        let validity = self.present.read(rows, parent)?;
        self.scratch.resize(rows, 0);
        self.lengths.read(dense(&mut self.scratch, &validity)).within(|| "LENGTH")?;
        to_rows(&mut self.scratch, &validity)?;
        let bytes = self.bytes_of_kept(kept)?;
        keep(&mut self.scratch, kept);
        let nulls = validity.of_kept(kept).nulls;
        let (text, malformed) = readable_text(&self.scratch, bytes.into(), nulls, self.nullable)?;
        self.malformed = rows_of_kept(&malformed, kept);
        Ok(array(text))
    }

    fn skip(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<()> {
        let validity = self.present.read(rows, parent)?;
        self.scratch.resize(rows, 0);
        let stored = dense(&mut self.scratch, &validity);
        self.lengths.read(stored).within(|| "LENGTH")?;
        let total: u64 = stored.iter().map(|length| u64::from(*length)).sum();
        self.data.skip(usize::try_from(total).unwrap_or(usize::MAX)).within(|| "DATA")
    }

    fn positions(&self, into: &mut Vec<StreamPosition>) {
        self.present.positions(into);
        into.extend([self.data.position(StreamKind::Data, None), self.lengths.position(StreamKind::Length)]);
    }

    fn malformed(&self, into: &mut Vec<MalformedValue>) {
        into.extend(self.malformed.iter().map(|row| MalformedValue {
            row: *row,
            column: None,
            why: Malformed::Text,
        }));
    }
}

struct ByDictionary {
    present: Present,
    data: IntRle,
    dictionary: Arc<Dictionary>,
    /// Memory for places and lengths.
    scratch: Vec<u32>,
    bound: Bound,
    form: Form,
    /// A map's keys may not be null.
    nullable: bool,
    /// Rows of the last batch whose values are not UTF-8.
    malformed: Vec<usize>,
}

impl ByDictionary {
    /// The values of the entries in `scratch`: as text, as views, or as a dictionary with keys.
    fn text(&mut self, entries: &TextDictionary, rows: usize, validity: &Validity) -> Result<ArrayRef> {
        let malformed = if self.nullable { self.malformed.as_slice() } else { &[] };
        let nulls = with_nulls(validity.nulls.clone(), rows, malformed);
        if self.form == Form::TextView {
            let (stored, validity) = (dense(&mut self.scratch, validity), validity.nulls.as_ref());
            return Ok(array(entries.views_of(stored, rows, validity, nulls).within(|| "DATA")?));
        }
        if self.form == Form::Keyed {
            to_rows(&mut self.scratch, validity)?;
            let keys = primitive(std::mem::take(&mut self.scratch), nulls);
            let keyed = DictionaryArray::<Int32Type>::try_new(keys, entries.values());
            return Ok(array(keyed.map_err(arrow_error)?));
        }
        let stored = dense(&mut self.scratch, validity);
        let gathered =
            entries.gather_of(stored, self.bound.rows(rows), &self.bound.limits).within(|| "DATA")?;
        self.bound.check("the text of a batch", gathered.total(), || u64::MAX)?;
        to_rows(&mut self.scratch, validity)?;
        Ok(array(gathered.text(&self.scratch, nulls)?))
    }
}

/// The rows whose entry is one of `entries`, the malformed entries.
fn malformed_rows(stored: &[u32], entries: &[usize], validity: &Validity) -> Vec<usize> {
    if entries.is_empty() {
        return Vec::new();
    }
    let is_malformed = |entry: &u32| entries.binary_search(&(*entry as usize)).is_ok();
    let rows = |rows: &mut dyn Iterator<Item = usize>| {
        rows.zip(stored).filter(|(_, entry)| is_malformed(entry)).map(|(row, _)| row).collect()
    };
    match &validity.nulls {
        Some(nulls) => rows(&mut nulls.inner().set_indices()),
        None => rows(&mut (0..stored.len())),
    }
}

/// The entries at `places`, where valid.
fn bytes_of(
    entries: &BinaryArray,
    places: Vec<u32>,
    nulls: Option<NullBuffer>,
    bound: &Bound,
) -> Result<ArrayRef> {
    let places = UInt32Array::new(places.into(), nulls);
    let mut total = 0;
    for place in places.iter().flatten() {
        if place as usize >= entries.len() {
            let count = entries.len();
            return Err(Error::corrupt(format!("expected one of {count} entries, found {place}")));
        }
        total += u64::from(entries.value_length(place as usize).unsigned_abs());
    }
    bound.check("the bytes of a batch", total, || u64::MAX)?;
    arrow_select::take::take(entries, &places, None).map_err(arrow_error)
}

impl ColumnReader for ByDictionary {
    fn read(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let validity = self.present.read(rows, parent)?;
        self.scratch.resize(rows, 0);
        let stored = dense(&mut self.scratch, &validity);
        self.data.read(stored).within(|| "DATA")?;
        let dictionary = self.dictionary.clone();
        match dictionary.as_ref() {
            Dictionary::Text(entries, malformed_entries) => {
                self.malformed = malformed_rows(stored, malformed_entries, &validity);
                self.text(entries, rows, &validity)
            }
            Dictionary::Bytes(entries) => {
                to_rows(&mut self.scratch, &validity)?;
                let places = std::mem::take(&mut self.scratch);
                let bytes = bytes_of(entries, places, validity.nulls, &self.bound).within(|| "DATA")?;
                if self.form == Form::BinaryView {
                    return arrow_cast::cast(&bytes, &DataType::BinaryView).map_err(arrow_error);
                }
                Ok(bytes)
            }
        }
    }

    fn read_kept(
        &mut self,
        rows: usize,
        parent: Option<&NullBuffer>,
        kept: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        let dictionary = self.dictionary.clone();
        let entries = match dictionary.as_ref() {
            Dictionary::Text(entries, malformed) if malformed.is_empty() => entries,
            _ => {
                let array = self.read(rows, parent)?;
                return filtered(&array, kept);
            }
        };
        let validity = self.present.read(rows, parent)?;
        if is_sparse(kept) {
            self.scratch.clear();
            for step in validity.steps(kept) {
                self.data.skip(step.pass).within(|| "DATA")?;
                self.data.append(step.take, &mut self.scratch).within(|| "DATA")?;
            }
        } else {
            self.scratch.resize(validity.valid, 0);
            self.data.read(&mut self.scratch).within(|| "DATA")?;
            keep_dense(&mut self.scratch, &validity, kept);
        }
        let count = kept.count_set_bits();
        self.scratch.resize(count, 0);
        self.malformed.clear();
        self.text(entries, count, &validity.of_kept(kept))
    }

    fn skip(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<()> {
        let validity = self.present.read(rows, parent)?;
        self.data.skip(validity.valid).within(|| "DATA")
    }

    fn positions(&self, into: &mut Vec<StreamPosition>) {
        self.present.positions(into);
        into.push(self.data.position(StreamKind::Data));
    }

    fn malformed(&self, into: &mut Vec<MalformedValue>) {
        into.extend(self.malformed.iter().map(|row| MalformedValue {
            row: *row,
            column: None,
            why: Malformed::Text,
        }));
    }
}
