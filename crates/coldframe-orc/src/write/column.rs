//! Writes one column of the tree: its validity, streams, row index, and child columns.
//!
//! ```text
//! PRESENT            a bit for each value of the parent: 1 for not null; omitted if the stripe has no null
//! ROW_INDEX          for each row group: positions in PRESENT, then in the other streams; statistics
//! BLOOM_FILTER_UTF8  a filter for each row group
//! ```
//!
//! A column in a list, map, struct or union has values only where its parent has values, so all other rows
//! are filtered out of arrays before they are written.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array, UnionArray};
use arrow_buffer::NullBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;
use arrow_select::filter::filter;
use arrow_select::take::take;
use coldframe_encoding::{Error, Result};

use super::bloom::Bloom;
use super::byte_rle::BitRle;
use super::leaf::{Data, Sinks};
use super::options::WriteOptions;
use super::schema::{ColumnType, Kind};
use super::statistics::{OfType, Statistics, widen};
use super::stream::{Codec, Stream};
use crate::layout::proto;
use crate::layout::stripe::StreamKind;

/// The bytes of a stream of the stripe.
#[derive(Debug)]
pub(super) struct StoredStream {
    pub(super) column: u32,
    pub(super) kind: StreamKind,
    pub(super) bytes: Vec<u8>,
}

/// The finished streams of a stripe, its row indexes and encodings.
#[derive(Debug, Default)]
pub(super) struct StripeParts {
    pub(super) index: Vec<StoredStream>,
    pub(super) data: Vec<StoredStream>,
    pub(super) encodings: Vec<proto::ColumnEncoding>,
    pub(super) statistics: Vec<proto::ColumnStatistics>,
}

/// A row group in the index.
#[derive(Debug, Default)]
struct Entry {
    present: Vec<u64>,
    data: Vec<u64>,
    statistics: proto::ColumnStatistics,
}

/// One column with its child columns.
#[derive(Debug)]
pub(super) struct Column {
    id: u32,
    path: String,
    kind: Kind,
    nullable: bool,
    bits: BitRle,
    present: Stream,
    data: Data,
    children: Vec<Column>,
    group: Statistics,
    stripe: Statistics,
    file: Statistics,
    /// The row groups of the stripe; the current row group is the last.
    entries: Vec<Entry>,
    bloom: Option<Bloom>,
}

/// State that all columns share while values are written.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) codec: Codec,
    pub(super) integers: Vec<i64>,
}

impl Column {
    pub(super) fn new(of: &ColumnType, options: &WriteOptions) -> Self {
        let statistics = Statistics::new(match &of.kind {
            Kind::Boolean => OfType::Boolean(0),
            Kind::Byte | Kind::Short | Kind::Int | Kind::Long => OfType::Integer(None, 0),
            Kind::Float | Kind::Double => OfType::Double(None, 0.0),
            Kind::String(_) => OfType::Text(None, 0),
            Kind::Binary => OfType::Binary(0),
            Kind::Decimal(_, scale) => OfType::Decimal(None, Some(0), *scale),
            Kind::Date => OfType::Date(None),
            Kind::Timestamp(_) => OfType::Timestamp(None),
            Kind::List | Kind::Map => OfType::Collection(None, 0),
            Kind::Struct(_) | Kind::Union => OfType::Nothing,
        });
        let bloom = options.bloom_filter_columns.contains(&of.path);
        Self {
            id: of.id,
            path: of.path.clone(),
            kind: of.kind.clone(),
            nullable: of.nullable,
            bits: BitRle::default(),
            present: Stream::default(),
            data: Data::new(&of.kind, options),
            children: of.children.iter().map(|c| Self::new(c, options)).collect(),
            group: statistics.clone(),
            stripe: statistics.clone(),
            file: statistics,
            entries: Vec::new(),
            bloom: bloom.then(|| Bloom::new(options.row_index_stride, options.bloom_filter_fpp)),
        }
    }

    /// Begins a row group.
    pub(super) fn begin_group(&mut self, codec: &Codec) {
        let mut entry = Entry::default();
        self.present.position(codec, &mut entry.present);
        self.bits.pending(&mut entry.present);
        self.data.position(codec, &mut entry.data);
        self.entries.push(entry);
        self.children.iter_mut().for_each(|c| c.begin_group(codec));
    }

    /// Ends a row group.
    pub(super) fn end_group(&mut self, codec: &mut Codec) -> Result<()> {
        if let Data::Text(text) = &mut self.data {
            text.end_group(codec)?;
        }
        self.stripe.add(&self.group);
        if let Some(entry) = self.entries.last_mut() {
            entry.statistics = self.group.to_proto();
        }
        self.group.clear();
        if let Some(bloom) = &mut self.bloom {
            bloom.end_group();
        }
        self.children.iter_mut().try_for_each(|c| c.end_group(codec))
    }

    /// Number of bytes of memory in use.
    pub(super) fn memory(&self, codec: &Codec) -> usize {
        let own = self.present.memory(codec) + self.data.memory(codec);
        own + self.children.iter().map(|c| c.memory(codec)).sum::<usize>()
    }

    /// Appends the rows of a batch to the root.
    pub(super) fn write_rows(
        &mut self,
        columns: &[ArrayRef],
        rows: usize,
        context: &mut Shared,
    ) -> Result<()> {
        self.group.values += rows as u64;
        let columns = self.children.iter_mut().zip(columns);
        columns.into_iter().try_for_each(|(child, array)| child.write(array, context))
    }

    fn write(&mut self, array: &ArrayRef, context: &mut Shared) -> Result<()> {
        let path = &self.path;
        if !self.nullable && array.logical_null_count() > 0 {
            let nulls = array.logical_null_count();
            let message = format!("expected values in a column that is not nullable, found {nulls} nulls");
            return Err(Error::invalid(message).within(format!("column {path:?}")));
        }
        let most = rows_at_once(array);
        if array.len() > most {
            let starts = (0..array.len()).step_by(most);
            let mut parts = starts.map(|start| array.slice(start, most.min(array.len() - start)));
            return parts.try_for_each(|part| self.write(&part, context));
        }
        let mut array = plain(array).map_err(|e| e.within(format!("column {path:?}")))?;
        if let Kind::String(length) = self.kind {
            array = super::text::fitted(array, length);
        }
        self.write_present(&array);
        self.present.spill(&mut context.codec)?;
        match &self.kind {
            Kind::Struct(_) => self.write_struct(&array, context),
            Kind::List => self.write_list(&array, context),
            Kind::Map => self.write_map(&array, context),
            Kind::Union => self.write_union(array.as_union(), context),
            _ => {
                let sinks = Sinks {
                    codec: &mut context.codec,
                    statistics: &mut self.group,
                    bloom: self.bloom.as_mut(),
                    integers: &mut context.integers,
                };
                let path = &self.path;
                self.data.write(&array, sinks).map_err(|e| e.within(format!("column {path:?}")))
            }
        }
    }

    fn write_present(&mut self, array: &ArrayRef) {
        let nulls = array.null_count();
        self.group.values += (array.len() - nulls) as u64;
        match array.nulls().filter(|_| nulls > 0) {
            None => self.bits.write_true(array.len(), &mut self.present.open),
            Some(nulls) => {
                self.group.has_null = true;
                self.bits.write(nulls.iter(), &mut self.present.open);
            }
        }
    }

    fn write_struct(&mut self, array: &ArrayRef, context: &mut Shared) -> Result<()> {
        let valid = valid_rows(array);
        for (child, values) in self.children.iter_mut().zip(array.as_struct().columns()) {
            match &valid {
                None => child.write(values, context)?,
                Some(valid) => child.write(&filtered(values, valid)?, context)?,
            }
        }
        Ok(())
    }

    fn write_list(&mut self, array: &ArrayRef, context: &mut Shared) -> Result<()> {
        let list = array.as_list::<i32>();
        let full = self.write_lengths(list.value_offsets(), list.nulls(), context)?;
        let array = if full { array.clone() } else { without_nulls(array)? };
        let list = array.as_list::<i32>();
        let (start, length) = offset_range(list.value_offsets());
        let values = list.values().slice(start, length);
        self.children.iter_mut().try_for_each(|c| c.write(&values, context))
    }

    fn write_map(&mut self, array: &ArrayRef, context: &mut Shared) -> Result<()> {
        let map = array.as_map();
        let full = self.write_lengths(map.value_offsets(), map.nulls(), context)?;
        let array = if full { array.clone() } else { without_nulls(array)? };
        let map = array.as_map();
        let (start, length) = offset_range(map.value_offsets());
        let columns = map.entries().columns();
        let mut columns = self.children.iter_mut().zip(columns);
        columns.try_for_each(|(child, values)| child.write(&values.slice(start, length), context))
    }

    /// Writes the lengths of the lists or maps that are not null. Returns whether all lists or maps that are
    /// null are empty.
    fn write_lengths(
        &mut self,
        offsets: &[i32],
        nulls: Option<&NullBuffer>,
        context: &mut Shared,
    ) -> Result<bool> {
        let Data::Lengths(stream) = &mut self.data else { return Ok(true) };
        context.integers.clear();
        let lengths = offsets.windows(2).enumerate().filter_map(|(i, pair)| match pair {
            [start, end] if nulls.is_none_or(|n| n.is_valid(i)) => Some(i64::from(end - start)),
            _ => None,
        });
        context.integers.extend(lengths);
        stream.write(&context.integers, &mut context.codec)?;
        let total: i64 = context.integers.iter().sum();
        if let OfType::Collection(range, sum) = &mut self.group.of_type {
            for length in &context.integers {
                let length = length.unsigned_abs();
                widen(range, Some(&(length, length)));
                *sum += length;
            }
        }
        Ok(usize::try_from(total).is_ok_and(|total| total == offset_range(offsets).1))
    }

    fn write_union(&mut self, array: &UnionArray, context: &mut Shared) -> Result<()> {
        let Data::Bytes(rle, stream) = &mut self.data else { return Ok(()) };
        let DataType::Union(fields, _) = array.data_type() else { return Ok(()) };
        let ids: Vec<i8> = fields.iter().map(|(id, _)| id).collect();
        let mut tags = [0u8; 256];
        for (tag, id) in (0u8..).zip(&ids) {
            if let Some(place) = tags.get_mut(usize::from(id.cast_unsigned())) {
                *place = tag;
            }
        }
        for id in array.type_ids() {
            let tag = tags.get(usize::from(id.cast_unsigned())).copied().unwrap_or_default();
            rle.write(tag, &mut stream.open);
        }
        stream.spill(&mut context.codec)?;
        for (child, id) in self.children.iter_mut().zip(ids) {
            let values = match array.offsets() {
                None => {
                    let chosen: BooleanArray = array.type_ids().iter().map(|t| Some(*t == id)).collect();
                    filtered(array.child(id), &chosen)?
                }
                Some(offsets) => {
                    let chosen = array.type_ids().iter().zip(offsets.iter()).filter(|(t, _)| **t == id);
                    let places: UInt32Array =
                        chosen.map(|(_, offset)| u32::try_from(*offset).unwrap_or_default()).collect();
                    take(array.child(id), &places, None).map_err(|e| Error::schema(e.to_string()))?
                }
            };
            child.write(&values, context)?;
        }
        Ok(())
    }

    /// Ends the stripe.
    pub(super) fn finish_stripe(&mut self, codec: &mut Codec, to: &mut StripeParts) -> Result<()> {
        let mut entries = std::mem::take(&mut self.entries);
        if let Data::Text(text) = &mut self.data {
            for (entry, position) in entries.iter_mut().zip(text.finish(codec)?) {
                entry.data = position;
            }
        }
        let has_present = self.stripe.has_null;
        self.bits.flush(&mut self.present.open);
        let present = self.present.take(codec)?;
        to.encodings.push(self.encoding());
        let data = self.data.take(codec)?;
        let present = has_present.then_some((StreamKind::Present, present));
        for (kind, bytes) in present.into_iter().chain(data) {
            self.stripe.bytes_on_disk += bytes.len() as u64;
            to.data.push(StoredStream { column: self.id, kind, bytes });
        }
        to.statistics.push(self.stripe.to_proto());
        self.file.add(&self.stripe);
        self.stripe.clear();
        if !entries.is_empty() {
            let entry = entries.into_iter().map(|e| proto::RowIndexEntry {
                positions: e.present.into_iter().filter(|_| has_present).chain(e.data).collect(),
                statistics: Some(e.statistics),
            });
            let index = proto::encode(&proto::RowIndex { entry: entry.collect() });
            self.put_index(StreamKind::RowIndex, &index, codec, to)?;
        }
        if let Some(bloom) = &mut self.bloom {
            let filters = proto::encode(&bloom.take());
            self.put_index(StreamKind::BloomFilterUtf8, &filters, codec, to)?;
        }
        self.children.iter_mut().try_for_each(|c| c.finish_stripe(codec, to))
    }

    fn put_index(
        &self,
        kind: StreamKind,
        bytes: &[u8],
        codec: &mut Codec,
        to: &mut StripeParts,
    ) -> Result<()> {
        to.index.push(StoredStream { column: self.id, kind, bytes: codec.whole(bytes)? });
        Ok(())
    }

    fn encoding(&self) -> proto::ColumnEncoding {
        let dictionary = match &self.data {
            Data::Text(text) => text.dictionary_size(),
            _ => None,
        };
        proto::ColumnEncoding {
            kind: Some(self.data.encoding()),
            dictionary_size: dictionary,
            bloom_encoding: self.bloom.is_some().then_some(1),
        }
    }

    /// The file's statistics for this column and its children.
    pub(super) fn file_statistics(&self, to: &mut Vec<proto::ColumnStatistics>) {
        to.push(self.file.to_proto());
        self.children.iter().for_each(|c| c.file_statistics(to));
    }
}

/// Which rows are not null, if there are nulls.
fn valid_rows(array: &ArrayRef) -> Option<BooleanArray> {
    array.nulls().filter(|n| n.null_count() > 0).map(|n| BooleanArray::new(n.inner().clone(), None))
}

fn filtered(array: &ArrayRef, chosen: &BooleanArray) -> Result<ArrayRef> {
    filter(array, chosen).map_err(|e| Error::schema(e.to_string()))
}

fn without_nulls(array: &ArrayRef) -> Result<ArrayRef> {
    valid_rows(array).map_or_else(|| Ok(array.clone()), |valid| filtered(array, &valid))
}

/// Start and length of the range that offsets enclose.
fn offset_range(offsets: &[i32]) -> (usize, usize) {
    let at = |offset: Option<&i32>| offset.and_then(|o| usize::try_from(*o).ok()).unwrap_or_default();
    let (start, end) = (at(offsets.first()), at(offsets.last()));
    (start, end.saturating_sub(start))
}

/// The number of rows that are converted to plain arrays at once: a plain array repeats the values that a
/// dictionary or run stores once, and it holds fewer values than the layouts with 64-bit offsets.
fn rows_at_once(array: &ArrayRef) -> usize {
    const MAX_BYTES: usize = 64 << 20;
    let longest = match array.data_type() {
        DataType::Dictionary(..) => longest(array.as_any_dictionary().values()),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => array.as_run_opt::<Int16Type>().map_or(0, |runs| longest(runs.values())),
            DataType::Int32 => array.as_run_opt::<Int32Type>().map_or(0, |runs| longest(runs.values())),
            _ => array.as_run_opt::<Int64Type>().map_or(0, |runs| longest(runs.values())),
        },
        DataType::LargeUtf8 | DataType::LargeBinary | DataType::Utf8View | DataType::BinaryView => {
            longest(array)
        }
        _ => 0,
    };
    (MAX_BYTES / longest.max(1)).max(1)
}

/// The length of the longest text; 0 for fixed-size values.
fn longest(values: &ArrayRef) -> usize {
    fn of<'v, V: AsRef<[u8]> + 'v>(values: impl Iterator<Item = Option<V>>) -> usize {
        values.flatten().map(|v| v.as_ref().len()).max().unwrap_or(0)
    }
    match values.data_type() {
        DataType::Utf8 => of(values.as_string::<i32>().iter().map(|v| v.map(str::as_bytes))),
        DataType::LargeUtf8 => of(values.as_string::<i64>().iter().map(|v| v.map(str::as_bytes))),
        DataType::Utf8View => of(values.as_string_view().iter().map(|v| v.map(str::as_bytes))),
        DataType::Binary => of(values.as_binary::<i32>().iter()),
        DataType::LargeBinary => of(values.as_binary::<i64>().iter()),
        DataType::BinaryView => of(values.as_binary_view().iter()),
        _ => 0,
    }
}

/// The array in the layout that the writer uses for its type; its children are not converted.
fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    let target = match array.data_type() {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::RunEndEncoded(_, values) => values.data_type().clone(),
        DataType::Float16 => DataType::Float32,
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Date64 => DataType::Date32,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal256(precision, scale) => DataType::Decimal128(*precision, *scale),
        DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => DataType::List(Arc::clone(item)),
        _ => return Ok(array.clone()),
    };
    let exactly = CastOptions { safe: false, ..CastOptions::default() };
    let cast = cast_with_options(array, &target, &exactly);
    plain(&cast.map_err(|e| Error::invalid(format!("values of {} as {target}: {e}", array.data_type())))?)
}
