//! Converts batches to plain arrays before any writer gets them.
//!
//! Arrow has several layouts for the same values. Dictionaries, run-end encoded arrays, views and extension
//! types become the plain arrays that every writer accepts, so a writer handles a single layout of text
//! instead of five. Plain arrays are larger, so a batch is first cut into pieces whose offsets stay below 2
//! GiB.
//! Types and values that no format can represent are refused, with the name of the column.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, TimestampMillisecondType, TimestampSecondType};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, DictionaryArray, FixedSizeListArray, GenericListArray, MapArray,
    OffsetSizeTrait, RecordBatch, RecordBatchOptions, StructArray, downcast_dictionary_array,
};
use arrow_buffer::{ArrowNativeType, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use coldframe_encoding::{Error, Result};

use crate::arrays::{span, window};
use crate::arrow_error;

/// The deepest nesting of columns that the readers of all formats accept.
const MAX_DEPTH: usize = 64;

/// Approximate size of a piece, far below the limit of 32-bit offsets.
const PIECE_BYTES: u64 = 256 << 20;

/// The prefix of metadata keys that mark an extension type.
const EXTENSION: &str = "ARROW:extension:";

/// Converts a stream of batches, and its schema, to plain types.
#[derive(Clone, Debug)]
pub struct Intake {
    plain: SchemaRef,
}

impl Intake {
    /// Creates the conversion for a stream with this schema. An error if no format can represent the schema.
    pub fn new(given: &Schema) -> Result<Self> {
        let fields = given
            .fields()
            .iter()
            .map(|f| plain_field(f, 1).map_err(|e| e.within(format!("column `{}`", f.name()))))
            .collect::<Result<Fields>>()?;
        let plain = Arc::new(Schema::new_with_metadata(fields, given.metadata().clone()));
        Ok(Self { plain })
    }

    /// The schema that the writer gets.
    pub fn schema(&self) -> &SchemaRef {
        &self.plain
    }

    /// The batch in plain arrays, lazily in as many pieces as necessary.
    pub fn pieces(&self, batch: &RecordBatch) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        let mut open = vec![batch.clone()];
        std::iter::from_fn(move || {
            let mut next = open.pop()?;
            while next.num_rows() > 1 && next.columns().iter().map(plain_bytes).sum::<u64>() > PIECE_BYTES {
                let half = next.num_rows() / 2;
                open.push(next.slice(half, next.num_rows() - half));
                next = next.slice(0, half);
            }
            Some(self.plain(&next))
        })
    }

    fn plain(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_columns() != self.plain.fields().len() {
            return Err(Error::schema(format!(
                "expected batches of {} columns, found {}",
                self.plain.fields().len(),
                batch.num_columns()
            )));
        }
        let columns = batch
            .columns()
            .iter()
            .zip(self.plain.fields())
            .map(|(array, field)| {
                let plain = plain(array, field.data_type())?;
                check_nulls(&plain, field, None)?;
                check_instants(&plain)?;
                Ok(plain)
            })
            .zip(self.plain.fields())
            .map(|(column, field)| column.map_err(|e: Error| e.within(format!("column `{}`", field.name()))))
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.plain.clone(), columns, &options)
            .map_err(|e| Error::schema(e.to_string()))
    }
}

fn plain_field(field: &FieldRef, depth: usize) -> Result<FieldRef> {
    if depth > MAX_DEPTH {
        return Err(Error::schema(format!("types nested deeper than {MAX_DEPTH}, which readers refuse")));
    }
    let data_type = plain_type(field.data_type(), depth)?;
    let extended = field.metadata().keys().any(|k| k.starts_with(EXTENSION));
    if &data_type == field.data_type() && !extended {
        return Ok(field.clone());
    }
    let mut metadata = field.metadata().clone();
    metadata.retain(|key, _| !key.starts_with(EXTENSION));
    Ok(Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata)))
}

fn plain_type(data_type: &DataType, depth: usize) -> Result<DataType> {
    let below = |f: &FieldRef| plain_field(f, depth + 1);
    Ok(match data_type {
        DataType::Dictionary(_, values) => plain_type(values, depth)?,
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type(), depth)?,
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(f) | DataType::ListView(f) => DataType::List(below(f)?),
        DataType::LargeList(f) | DataType::LargeListView(f) => DataType::LargeList(below(f)?),
        DataType::FixedSizeList(f, n) => DataType::FixedSizeList(below(f)?, *n),
        DataType::Map(f, sorted) => DataType::Map(below(f)?, *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(below).collect::<Result<_>>()?),
        other => other.clone(),
    })
}

/// Converts `array` to the type that [`plain_type`] returned for its type.
fn plain(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    let items = |values: &ArrayRef, field: &FieldRef| plain(values, field.data_type());
    match (array.data_type(), to) {
        (DataType::Dictionary(_, values), _) => plain(&cast(array, values)?, to),
        (DataType::RunEndEncoded(_, values), _) => plain(&cast(array, values.data_type())?, to),
        (DataType::List(_), DataType::List(f)) => list::<i32>(array.as_list(), f),
        (DataType::LargeList(_), DataType::LargeList(f)) => list::<i64>(array.as_list(), f),
        (DataType::ListView(f), DataType::List(_)) => plain(&cast(array, &DataType::List(f.clone()))?, to),
        (DataType::LargeListView(f), DataType::LargeList(_)) => {
            plain(&cast(array, &DataType::LargeList(f.clone()))?, to)
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(f, n)) => {
            let from = array.as_fixed_size_list();
            let made =
                FixedSizeListArray::try_new(f.clone(), *n, items(from.values(), f)?, from.nulls().cloned());
            Ok(Arc::new(made.map_err(arrow_error)?))
        }
        (DataType::Map(..), DataType::Map(f, sorted)) => {
            let from: &MapArray = array.as_map();
            let (start, length, offsets) = window(from.offsets());
            let entries: ArrayRef = Arc::new(from.entries().slice(start, length));
            let entries = items(&entries, f)?.as_struct().clone();
            let made = MapArray::try_new(f.clone(), offsets, entries, from.nulls().cloned(), *sorted);
            Ok(Arc::new(made.map_err(arrow_error)?))
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let from = array.as_struct();
            let children =
                from.columns().iter().zip(fields).map(|(c, f)| items(c, f)).collect::<Result<_>>()?;
            let made =
                StructArray::try_new_with_length(fields.clone(), children, from.nulls().cloned(), from.len());
            Ok(Arc::new(made.map_err(arrow_error)?))
        }
        _ => cast(array, to),
    }
}

/// A list array with plain values; elements outside the slice are dropped.
fn list<O: OffsetSizeTrait>(from: &GenericListArray<O>, field: &FieldRef) -> Result<ArrayRef> {
    let (start, length, offsets) = window(from.offsets());
    let values = plain(&from.values().slice(start, length), field.data_type())?;
    let made = GenericListArray::<O>::try_new(field.clone(), offsets, values, from.nulls().cloned());
    Ok(Arc::new(made.map_err(arrow_error)?))
}

fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    arrow_cast::cast(array, to)
        .map_err(|e| Error::schema(format!("values of {} as {to}: {e}", array.data_type())))
}

/// An error for a null in a field that is not nullable, unless the enclosing value is null as well.
fn check_nulls(array: &ArrayRef, field: &Field, around: Option<&NullBuffer>) -> Result<()> {
    let nulls = NullBuffer::union(around, array.logical_nulls().as_ref());
    if !field.is_nullable() && array.null_count() > 0 {
        let denied =
            (0..array.len()).find(|i| array.is_null(*i) && around.is_none_or(|around| around.is_valid(*i)));
        if let Some(row) = denied {
            return Err(Error::schema(format!(
                "expected a value in each row of `{}`, which is declared not nullable, found a null in row {row} \
                 of a batch",
                field.name()
            )));
        }
    }
    match (array.data_type(), field.data_type()) {
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let children = array.as_struct().columns().iter().zip(fields);
            children.into_iter().try_for_each(|(child, field)| check_nulls(child, field, nulls.as_ref()))
        }
        (DataType::List(_), DataType::List(f)) => check_items(array.as_list::<i32>().values(), f),
        (DataType::LargeList(_), DataType::LargeList(f)) => check_items(array.as_list::<i64>().values(), f),
        _ => Ok(()),
    }
}

/// Also refuses nulls among the items of lists that are null themselves; such nulls are rare.
fn check_items(values: &ArrayRef, field: &Field) -> Result<()> {
    if field.is_nullable() && !values.data_type().is_nested() {
        return Ok(());
    }
    check_nulls(values, field, None)
}

/// An error for a timestamp that readers could not return: they all use microseconds or a finer unit.
fn check_instants(array: &ArrayRef) -> Result<()> {
    let (worst, unit, most) = match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            (farthest::<TimestampSecondType>(array), "s", i64::MAX / 1_000_000)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            (farthest::<TimestampMillisecondType>(array), "ms", i64::MAX / 1_000)
        }
        DataType::Struct(_) => return array.as_struct().columns().iter().try_for_each(check_instants),
        DataType::List(_) => return check_instants(array.as_list::<i32>().values()),
        DataType::LargeList(_) => return check_instants(array.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => return check_instants(array.as_fixed_size_list().values()),
        DataType::Map(..) => return array.as_map().entries().columns().iter().try_for_each(check_instants),
        _ => return Ok(()),
    };
    match worst.filter(|v| v.unsigned_abs() > most.unsigned_abs()) {
        None => Ok(()),
        Some(value) => Err(Error::schema(format!(
            "expected timestamps that fit 64 bits in microseconds, found {value} {unit} since 1970"
        ))),
    }
}

/// The value that is farthest from zero.
fn farthest<T: ArrowPrimitiveType<Native = i64>>(array: &ArrayRef) -> Option<i64> {
    array.as_primitive::<T>().iter().flatten().max_by_key(|v| v.unsigned_abs())
}

/// Approximate bytes of an array's values in plain layout.
fn plain_bytes(array: &ArrayRef) -> u64 {
    let rows = array.len() as u64;
    let average = |values: &ArrayRef, wanted: u64| match values.len() as u64 {
        0 => 0,
        all => plain_bytes(values) / all * wanted,
    };
    match array.data_type() {
        DataType::Utf8 => text_bytes(array.as_string::<i32>().offsets()),
        DataType::LargeUtf8 => text_bytes(array.as_string::<i64>().offsets()),
        DataType::Binary => text_bytes(array.as_binary::<i32>().offsets()),
        DataType::LargeBinary => text_bytes(array.as_binary::<i64>().offsets()),
        DataType::Utf8View => array.as_string_view().lengths().map(u64::from).sum(),
        DataType::BinaryView => array.as_binary_view().lengths().map(u64::from).sum(),
        DataType::Dictionary(..) => downcast_dictionary_array!(
            array => dictionary_bytes(array),
            _ => 0
        ),
        DataType::RunEndEncoded(..) => run_values(array).map_or(0, |values| longest(&values) * rows),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let (start, length) = span(list.offsets());
            plain_bytes(&list.values().slice(start, length))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let (start, length) = span(list.offsets());
            plain_bytes(&list.values().slice(start, length))
        }
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            average(list.values(), list.sizes().iter().map(|n| n.as_usize() as u64).sum())
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            average(list.values(), list.sizes().iter().map(|n| n.as_usize() as u64).sum())
        }
        DataType::FixedSizeList(..) => plain_bytes(array.as_fixed_size_list().values()),
        DataType::Map(..) => {
            let map = array.as_map();
            let (start, length) = span(map.offsets());
            let entries: ArrayRef = Arc::new(map.entries().slice(start, length));
            plain_bytes(&entries)
        }
        DataType::Struct(_) => array.as_struct().columns().iter().map(plain_bytes).sum(),
        other => other.primitive_width().map_or(0, |width| width as u64 * rows),
    }
}

fn text_bytes<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> u64 {
    span(offsets).1 as u64
}

fn dictionary_bytes<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>) -> u64 {
    let values = array.values();
    let sizes: Vec<u64> = (0..values.len()).map(|i| plain_bytes(&values.slice(i, 1))).collect();
    array.keys_iter().flatten().filter_map(|key| sizes.get(key)).sum()
}

/// The size of the longest value, for layouts in which several rows share a value.
fn longest(values: &ArrayRef) -> u64 {
    (0..values.len()).map(|i| plain_bytes(&values.slice(i, 1))).max().unwrap_or(0)
}

fn run_values(array: &ArrayRef) -> Option<ArrayRef> {
    use arrow_array::RunArray;
    use arrow_array::types::{Int16Type, Int32Type, Int64Type};
    let any = array.as_any();
    let of = |values: &ArrayRef| values.clone();
    any.downcast_ref::<RunArray<Int16Type>>()
        .map(|a| of(a.values()))
        .or_else(|| any.downcast_ref::<RunArray<Int32Type>>().map(|a| of(a.values())))
        .or_else(|| any.downcast_ref::<RunArray<Int64Type>>().map(|a| of(a.values())))
}

#[cfg(test)]
mod tests;
