//! Writes a table as a folder of files, in a folder for each combination of partition values.
//!
//! ```text
//! dt=2014-01-01/region=eu/part-0.orc        the file has neither dt nor region
//! dt=2014-01-01/region=__HIVE_DEFAULT_PARTITION__/part-0.orc
//! ```
//!
//! The layout is that of Hive and Spark, which [`crate::dataset::partition`] reads.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsStr;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader, StringArray, UInt32Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Schema, SchemaRef};
use coldframe_core::types::name;
use coldframe_core::writing::stream_error;
use coldframe_core::{Error, Result, WriteOptions, arrow_error};
use coldframe_store::{Mode, Store, to_text};

use super::partitions::{PartitionLimits, PartitionSink, write_partitions};
use super::{Dest, FileWriter, Written};
use crate::dataset::partition::{HIVE_NULL, folder_of};
use crate::format_named;

/// Writes all batches of `data` below a store's root, in a folder for each combination of values of the columns `keys`.
/// Returns the paths of the files below the root, in order. `tick` works as in [`write_file`](super::write_file). After an
/// error, some of the files may be there.
pub fn write_partitioned(
    data: &mut dyn RecordBatchReader,
    root: &Store,
    keys: &[String],
    format: &str,
    options: &WriteOptions,
    mut tick: impl FnMut(u64) -> Result<()>,
) -> Result<Vec<(String, Written)>> {
    let mut folders = Folders::new(&data.schema(), root, keys, format, options)?;
    let rows = Cell::new(0);
    let next = || {
        let batch = data.next().transpose().map_err(stream_error)?;
        rows.set(rows.get() + batch.as_ref().map_or(0, |batch| batch.num_rows() as u64));
        Ok(batch)
    };
    write_partitions(next, &mut folders, PartitionLimits::default(), || tick(rows.get()))?;
    folders.done.sort_by(|(path, _), (other, _)| path.cmp(other));
    Ok(folders.done)
}

/// The folders, which are numbered in the order of their first rows.
struct Folders<'a> {
    root: &'a Store,
    keys: &'a [String],
    format: &'a str,
    ending: &'static str,
    options: &'a WriteOptions,
    /// The numbers of the columns in files, and of the keys.
    own: Vec<usize>,
    of_keys: Vec<usize>,
    schema: SchemaRef,
    /// The folders' numbers by their values: see [`add_value`].
    numbers: HashMap<Vec<u8>, u32>,
    /// The values of a row, in a buffer that is used again.
    values: Vec<u8>,
    /// The folders, and the number of files in each.
    folders: Vec<(String, usize)>,
    done: Vec<(String, Written)>,
}

impl<'a> Folders<'a> {
    fn new(
        schema: &Schema,
        root: &'a Store,
        keys: &'a [String],
        format: &'a str,
        options: &'a WriteOptions,
    ) -> Result<Self> {
        let capabilities = format_named(format)?.capabilities();
        let ending = capabilities.endings.first().filter(|_| capabilities.written);
        let ending = *ending.ok_or_else(|| Error::unsupported(format!("writing {format:?}")))?;
        let of_keys = places_of(schema, keys)?;
        let own: Vec<usize> = (0..schema.fields().len()).filter(|at| !of_keys.contains(at)).collect();
        if own.is_empty() {
            return Err(Error::schema("partitioning by all columns: the files would have no columns"));
        }
        let schema = schema.project(&own).map_err(arrow_error)?.into();
        let (numbers, values, folders, done) = (HashMap::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(Self { root, keys, format, ending, options, own, of_keys, schema, numbers, values, folders, done })
    }

    /// The number of the folder for the values of some row.
    fn number(&mut self, values: &[Option<&str>]) -> Result<u32> {
        self.values.clear();
        values.iter().for_each(|value| add_value(&mut self.values, *value));
        if let Some(number) = self.numbers.get(&self.values) {
            return Ok(*number);
        }
        let mut pairs = Vec::with_capacity(values.len());
        for (key, value) in self.keys.iter().zip(values) {
            if value.is_some_and(|text| text.is_empty() || text == HIVE_NULL) {
                let what = format!("partitioning: {key}={:?}", value.unwrap_or_default());
                return Err(Error::schema(format!("{what}: this text would be read back as null")));
            }
            pairs.push((key.as_str(), value.unwrap_or(HIVE_NULL)));
        }
        let number = u32::try_from(self.folders.len()).map_err(|_| Error::invalid("too many partitions"))?;
        self.folders.push((folder_of(pairs), 0));
        self.numbers.insert(self.values.clone(), number);
        Ok(number)
    }
}

/// Adds a value to bytes that differ for different values: its length, then its text.
fn add_value(values: &mut Vec<u8>, value: Option<&str>) {
    let len = value.map_or(u64::MAX, |text| text.len() as u64);
    values.extend(len.to_le_bytes());
    values.extend(value.unwrap_or_default().as_bytes());
}

impl PartitionSink for Folders<'_> {
    type File = (String, FileWriter);

    fn partitions(&mut self, batch: &RecordBatch) -> Result<UInt32Array> {
        let columns = batch.project(&self.of_keys).map_err(arrow_error)?;
        let texts = columns.columns().iter().map(texts_of).collect::<Result<Vec<_>>>()?;
        let mut numbers: Vec<u32> = Vec::with_capacity(batch.num_rows());
        let (mut values, mut before): (Vec<Option<&str>>, Vec<Option<&str>>) = Default::default();
        for row in 0..batch.num_rows() {
            values.clear();
            values.extend(texts.iter().map(|text| text.is_valid(row).then(|| text.value(row))));
            let number = match numbers.last() {
                Some(number) if values == before => *number,
                _ => self.number(&values)?,
            };
            numbers.push(number);
            std::mem::swap(&mut values, &mut before);
        }
        Ok(numbers.into())
    }

    fn begin(&mut self, partition: u32) -> Result<Self::File> {
        let known = usize::try_from(partition).ok().and_then(|at| self.folders.get_mut(at));
        let (folder, files) = known.ok_or_else(|| Error::invalid(format!("no partition {partition}")))?;
        let path = format!("{folder}/part-{files}.{}", self.ending);
        *files += 1;
        let dest = Dest::below(self.root, &to_text(OsStr::new(&path)), Mode::New)?;
        Ok((path, FileWriter::create(&self.schema, &dest, self.format, self.options)?))
    }

    fn write(&mut self, (_, file): &mut Self::File, rows: &RecordBatch) -> Result<bool> {
        file.write(&rows.project(&self.own).map_err(arrow_error)?)?;
        Ok(false)
    }

    fn finish(&mut self, _: u32, (path, file): Self::File) -> Result<()> {
        self.done.push((path, file.finish()?));
        Ok(())
    }
}

/// The numbers of the key columns.
fn places_of(schema: &Schema, keys: &[String]) -> Result<Vec<usize>> {
    let mut places = Vec::with_capacity(keys.len());
    for key in keys {
        let mut named = schema.fields().iter().enumerate().filter(|(_, field)| field.name() == key);
        let (first, second) = (named.next(), named.next());
        let Some((place, field)) = first.filter(|(place, _)| second.is_none() && !places.contains(place))
        else {
            return Err(Error::schema(format!("partitioning: {key:?} must be one column of the data")));
        };
        check_type(key, field.data_type())?;
        places.push(place);
    }
    Ok(places)
}

fn check_type(key: &str, kind: &DataType) -> Result<()> {
    let plain = if let DataType::Dictionary(_, values) = kind { values } else { kind };
    let is_named = plain.is_integer()
        || plain.is_decimal()
        || matches!(
            plain,
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Boolean
                | DataType::Date32
                | DataType::Date64
        );
    if is_named {
        return Ok(());
    }
    let what = format!("partitioning by {key:?}, a {}", name(kind));
    let why = "only texts, integers, decimals, dates and booleans can be names of directories";
    Err(Error::unsupported(format!("{what}: {why}")))
}

fn texts_of(column: &ArrayRef) -> Result<StringArray> {
    let is_time = matches!(column.data_type(), DataType::Date64)
        || matches!(column.data_type(), DataType::Dictionary(_, values) if **values == DataType::Date64);
    // As text, Date64 has a time of day.
    let days = if is_time { cast(column, &DataType::Date32) } else { Ok(column.clone()) };
    let texts = days.and_then(|days| cast(&days, &DataType::Utf8)).map_err(arrow_error)?;
    Ok(texts.as_string::<i32>().clone())
}

#[cfg(test)]
mod tests;
