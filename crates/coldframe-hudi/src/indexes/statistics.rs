//! The partition `column_stats`: one record for each column of each file.
//!
//! ```text
//! minValue, maxValue    a union with a wrapper for each type: struct<member0: struct<value: boolean>, member1: struct<value: int>, ..>
//! ```

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use coldframe_core::predicate::{ColumnBounds, Condition};
use coldframe_core::{Op, Predicate, Result, TableFile as _, arrow_error};

use super::{column, missing, stored};
use crate::table::MetadataTable;

/// The column with the statistics.
const STATISTICS: &str = "ColumnStatsMetadata";
/// The names of the statistics: our name, and the name in Hudi.
const FIELDS: [(&str, &str); 7] = [
    ("file", "fileName"),
    ("column", "columnName"),
    ("min", "minValue"),
    ("max", "maxValue"),
    ("values", "valueCount"),
    ("nulls", "nullCount"),
    ("bytes", "totalSize"),
];

impl MetadataTable {
    /// The statistics of these columns of all files, or of all columns: `file`, `column`, `min`, `max`, `values`, `nulls`,
    /// `bytes`. The bounds are as stored: structs of which one field is set. This is only for the partition
    /// `column_stats`.
    pub fn column_stats(&self, columns: Option<&[String]>) -> Result<RecordBatch> {
        let no: ArrayRef = Arc::new(BooleanArray::from(vec![false]));
        let mut tests = vec![Predicate::compare(format!("{STATISTICS}.isDeleted"), Op::Eq, no)];
        if let Some(columns) = columns {
            let names: ArrayRef = Arc::new(StringArray::from_iter_values(columns));
            let column = format!("{STATISTICS}.columnName");
            tests.push(Predicate::In { column, values: names.into(), negated: false });
        }
        let schema = self.statistics_schema()?;
        let batches = self.rows(&[STATISTICS], Some(Predicate::And(tests)))?;
        let batches = batches.iter().map(|batch| {
            let within: &StructArray = column(batch, STATISTICS)?;
            let columns = FIELDS.iter().map(|(_, name)| stored(within, name));
            RecordBatch::try_new(schema.clone(), columns.collect::<Result<_>>()?).map_err(arrow_error)
        });
        let batches = batches.collect::<Result<Vec<_>>>()?;
        concat_batches(&schema, &batches).map_err(arrow_error)
    }

    fn statistics_schema(&self) -> Result<SchemaRef> {
        let within = self.schema().field_with_name(STATISTICS).map_err(|_| missing(STATISTICS))?;
        let DataType::Struct(fields) = within.data_type() else { return Err(missing(STATISTICS)) };
        let fields = FIELDS.iter().map(|(name, stored_name)| {
            let (_, field) = fields.find(stored_name).ok_or_else(|| missing(stored_name))?;
            Ok(Field::new(*name, field.data_type().clone(), true))
        });
        Ok(Arc::new(Schema::new(fields.collect::<Result<Vec<_>>>()?)))
    }
}

/// Selects the files that may hold rows that pass `condition`. `files`: as [`MetadataTable::data_files`]
/// returns them. `statistics`: as [`MetadataTable::column_stats`] returns them.
///
/// Files without statistics are kept. If one file of a group is kept, the whole group is kept, because any of
/// its files may hold the newest version of a row.
pub fn prune(files: &RecordBatch, statistics: &RecordBatch, condition: &Condition) -> Result<RecordBatch> {
    let statistics = Statistics::new(statistics)?;
    let partitions = column::<StringArray>(files, "partition")?;
    let (ids, names) = (column::<StringArray>(files, "file_id")?, column::<StringArray>(files, "name")?);
    let group = |row: usize| (partitions.value(row), ids.value(row));
    let may_match = |row: &usize| {
        let file = names.value(*row);
        condition.may_match(&|column| statistics.bounds(file, column))
    };
    let kept: BTreeSet<(&str, &str)> = (0..files.num_rows()).filter(may_match).map(group).collect();
    let mask: BooleanArray = (0..files.num_rows()).map(|row| Some(kept.contains(&group(row)))).collect();
    filter_record_batch(files, &mask).map_err(arrow_error)
}

/// Statistics by file and column.
struct Statistics<'b> {
    rows: HashMap<(&'b str, &'b str), usize>,
    min: &'b StructArray,
    max: &'b StructArray,
    values: &'b Int64Array,
    nulls: &'b Int64Array,
}

impl<'b> Statistics<'b> {
    fn new(batch: &'b RecordBatch) -> Result<Self> {
        let (files, columns) =
            (column::<StringArray>(batch, "file")?, column::<StringArray>(batch, "column")?);
        let names = files.iter().zip(columns);
        let rows = names.enumerate().filter_map(|(row, (file, column))| Some(((file?, column?), row)));
        Ok(Self {
            rows: rows.collect(),
            min: column(batch, "min")?,
            max: column(batch, "max")?,
            values: column(batch, "values")?,
            nulls: column(batch, "nulls")?,
        })
    }

    fn bounds(&self, file: &str, column: &str) -> Option<ColumnBounds> {
        let row = *self.rows.get(&(file, column))?;
        let count = |counts: &Int64Array| counts.is_valid(row).then(|| counts.value(row));
        let (values, nulls) = (count(self.values), count(self.nulls));
        Some(ColumnBounds {
            min: unwrapped(self.min, row),
            max: unwrapped(self.max, row),
            has_null: nulls.map(|nulls| nulls != 0),
            has_value: values.zip(nulls).map(|(values, nulls)| values != nulls),
        })
    }
}

/// The value in a union of wrappers; one of the wrappers is set.
fn unwrapped(union: &StructArray, row: usize) -> Option<ArrayRef> {
    if union.is_null(row) {
        return None;
    }
    let set = union.columns().iter().find(|member| member.is_valid(row))?;
    match set.as_struct_opt() {
        Some(wrapper) => unwrapped(wrapper, row),
        None => Some(set.slice(row, 1)),
    }
}
