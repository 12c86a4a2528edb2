//! The partition `record_index`: the location of each record of the data table.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder, TimestampMillisecondBuilder};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use coldframe_core::{Predicate, Result, arrow_error};

use super::{column, optional_field};
use crate::decode::KEY;
use crate::table::MetadataTable;

/// The column with the location.
const LOCATION: &str = "recordIndexMetadata";
/// The `fileIdEncoding` of file groups stored as text.
const TEXT: i32 = 1;

impl MetadataTable {
    /// The locations of the records with these keys: `key`, `partition`, `file_id`, `instant`, `position`.
    /// For a key that the table lacks there is no row. This is only for the partition `record_index`.
    pub fn locate(&self, keys: &[String]) -> Result<RecordBatch> {
        let wanted: ArrayRef = Arc::new(StringArray::from_iter_values(keys));
        let wanted = Predicate::In { column: KEY.to_owned(), values: wanted.into(), negated: false };
        let mut records = Locations::default();
        for batch in self.rows(&[KEY, LOCATION], Some(wanted))? {
            records.add(&batch)?;
        }
        records.finish()
    }
}

#[derive(Default)]
struct Locations {
    keys: StringBuilder,
    partitions: StringBuilder,
    file_ids: StringBuilder,
    instants: TimestampMillisecondBuilder,
    positions: Int64Builder,
}

impl Locations {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let keys: &StringArray = column(batch, KEY)?;
        let locations: &StructArray = column(batch, LOCATION)?;
        let mut partitions = optional_field::<StringArray>(locations, "partitionName")?;
        if partitions.is_none() {
            partitions = optional_field(locations, "partition")?;
        }
        let instants = optional_field::<Int64Array>(locations, "instantTime")?;
        let positions = optional_field::<Int64Array>(locations, "position")?;
        let groups = FileIds::new(locations)?;
        let text = |from: Option<&StringArray>, row| value(from, row, StringArray::value).map(str::to_owned);
        for row in (0..batch.num_rows()).filter(|row| locations.is_valid(*row)) {
            self.keys.append_value(keys.value(row));
            self.partitions.append_option(text(partitions, row));
            self.file_ids.append_option(groups.value(row));
            self.instants.append_option(value(instants, row, Int64Array::value));
            self.positions.append_option(value(positions, row, Int64Array::value));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<RecordBatch> {
        let time = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
        let schema = Schema::new(vec![
            Field::new("key", DataType::Utf8, true),
            Field::new("partition", DataType::Utf8, true),
            Field::new("file_id", DataType::Utf8, true),
            Field::new("instant", time.clone(), true),
            Field::new("position", DataType::Int64, true),
        ]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.keys.finish()),
            Arc::new(self.partitions.finish()),
            Arc::new(self.file_ids.finish()),
            Arc::new(self.instants.finish().with_data_type(time)),
            Arc::new(self.positions.finish()),
        ];
        RecordBatch::try_new(Arc::new(schema), columns).map_err(arrow_error)
    }
}

/// The file groups of records. Each is stored as a UUID in two halves and a number, or as text.
struct FileIds<'p> {
    encoding: Option<&'p Int32Array>,
    text: Option<&'p StringArray>,
    high: Option<&'p Int64Array>,
    low: Option<&'p Int64Array>,
    number: Option<&'p Int32Array>,
}

impl<'p> FileIds<'p> {
    fn new(locations: &'p StructArray) -> Result<Self> {
        Ok(Self {
            encoding: optional_field(locations, "fileIdEncoding")?,
            text: optional_field(locations, "fileId")?,
            high: optional_field(locations, "fileIdHighBits")?,
            low: optional_field(locations, "fileIdLowBits")?,
            number: optional_field(locations, "fileIndex")?,
        })
    }

    fn value(&self, row: usize) -> Option<String> {
        let text = || value(self.text, row, StringArray::value).map(str::to_owned);
        if value(self.encoding, row, Int32Array::value) == Some(TEXT) {
            return text();
        }
        let half = |half: Option<&Int64Array>| value(half, row, Int64Array::value).map(i64::cast_unsigned);
        let (Some(high), Some(low)) = (half(self.high), half(self.low)) else { return text() };
        let group = uuid(high, low);
        Some(match value(self.number, row, Int32Array::value) {
            Some(number) if number >= 0 => format!("{group}-{number}"),
            _ => group,
        })
    }
}

/// The value at a row, if there is one.
fn value<'a, A: Array, T>(from: Option<&'a A>, row: usize, get: impl Fn(&'a A, usize) -> T) -> Option<T> {
    from.filter(|array| array.is_valid(row)).map(|array| get(array, row))
}

fn uuid(high: u64, low: u64) -> String {
    let (time, middle, version) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
    let (clock, node) = (low >> 48, low & 0xffff_ffff_ffff);
    format!("{time:08x}-{middle:04x}-{version:04x}-{clock:04x}-{node:012x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_a_uuid_give_its_text() {
        let (high, low) = (0x9544_4cb1_dc99_490d, 0xacbc_9ac1_28b1_16f1);
        assert_eq!(uuid(high, low), "95444cb1-dc99-490d-acbc-9ac128b116f1");
        assert_eq!(uuid(0, 1), "00000000-0000-0000-0000-000000000001");
    }
}
