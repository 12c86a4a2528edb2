//! Scans and their rows.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_data::ArrayData;
use arrow_schema::{DataType, FieldRef};
use arrow_select::concat::concat_batches;
use coldframe_core::{Damage, DamageLog, OnError, Result, Scan, ScanReader, Split, TableFile};

/// The result of a scan: the batches up to its end or its error.
#[derive(Debug)]
pub struct Outcome {
    /// All batches as one valid batch.
    pub batch: RecordBatch,
    /// The recorded damage.
    pub damage: Vec<Damage>,
    /// The error that ended the scan, if any.
    pub error: Option<coldframe_core::Error>,
}

impl Outcome {
    /// The rows as sorted texts. Panics if an error ended the scan.
    pub fn sorted(&self) -> Vec<String> {
        assert!(self.error.is_none(), "{:?}", self.error);
        let mut rows = as_text(&self.batch);
        rows.sort();
        rows
    }
}

/// The rows of an undamaged table as sorted texts.
pub fn sorted(table: &dyn TableFile) -> Vec<String> {
    read(table, OnError::Raise).unwrap().sorted()
}

/// Reads all of `table`, with all columns.
pub fn read(table: &dyn TableFile, on_error: OnError) -> Result<Outcome> {
    scan(table, &Scan { on_error, ..Scan::default() }, None)
}

/// Scans `split` of `table`, or all of it. Checks that each batch is valid Arrow.
pub fn scan(table: &dyn TableFile, scan: &Scan, split: Option<&Split>) -> Result<Outcome> {
    let log = DamageLog::default();
    let splits = match split {
        Some(split) => vec![split.clone()],
        None => table.splits(u64::MAX)?,
    };
    let (mut batches, mut error, mut schema) = (Vec::new(), None, table.schema().clone());
    'all: for split in splits {
        let mut reader = ScanReader::try_new(table, scan, &split, log.clone())?;
        schema = reader.output_schema().clone();
        loop {
            match reader.next_batch() {
                Ok(Some(batch)) => {
                    assert!(batch.num_rows() <= scan.batch_rows, "a batch of {} rows", batch.num_rows());
                    assert_valid(&batch);
                    batches.push(batch);
                }
                Ok(None) => break,
                Err(e) => {
                    error = Some(e);
                    break 'all;
                }
            }
        }
    }
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let batch =
        if batches.len() == 1 { batches.pop().unwrap() } else { concat_batches(&schema, &batches).unwrap() };
    assert_eq!(batch.num_rows(), if batch.num_columns() == 0 { batch.num_rows() } else { rows });
    Ok(Outcome { batch, damage: log.records(), error })
}

/// Panics if `batch` is not valid Arrow: offsets, UTF-8, dictionary keys.
pub fn assert_valid(batch: &RecordBatch) {
    for (column, field) in batch.columns().iter().zip(batch.schema().fields()) {
        assert_eq!(column.data_type(), field.data_type());
        column.to_data().validate_full().unwrap_or_else(|e| panic!("column `{}`: {e}", field.name()));
    }
}

/// Each row as one text. Null is printed differently from every text.
pub fn as_text(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("\u{0}");
    let arrays: Vec<ArrayRef> =
        batch.columns().iter().map(|c| make_array(without_zones(c.to_data()))).collect();
    let columns: Vec<ArrayFormatter<'_>> =
        arrays.iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
    (0..batch.num_rows())
        .map(|row| columns.iter().map(|c| format!("{}\u{1}", c.value(row))).collect())
        .collect()
}

/// Removes the names of zones, because printing them needs an optional library.
fn without_zones(data: ArrayData) -> ArrayData {
    let data_type = zoneless(data.data_type());
    let children = data.child_data().iter().cloned().map(without_zones).collect();
    data.into_builder().data_type(data_type).child_data(children).build().unwrap()
}

fn zoneless(data_type: &DataType) -> DataType {
    let field =
        |f: &FieldRef| -> FieldRef { Arc::new(f.as_ref().clone().with_data_type(zoneless(f.data_type()))) };
    match data_type {
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, None),
        DataType::List(f) => DataType::List(field(f)),
        DataType::LargeList(f) => DataType::LargeList(field(f)),
        DataType::FixedSizeList(f, n) => DataType::FixedSizeList(field(f), *n),
        DataType::Map(f, sorted) => DataType::Map(field(f), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Union(fields, mode) => {
            DataType::Union(fields.iter().map(|(id, f)| (id, field(f))).collect(), *mode)
        }
        DataType::Dictionary(key, value) => DataType::Dictionary(key.clone(), Box::new(zoneless(value))),
        other => other.clone(),
    }
}

/// How many rows of `got` occur in `truth` in the same order. Rows of `truth` that do not match are skipped.
pub fn in_order(got: &[String], truth: &[String]) -> usize {
    let (mut at, mut count) = (0, 0);
    for row in got {
        if let Some(next) = truth[at..].iter().position(|t| t == row) {
            at += next + 1;
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_zones_are_not_printed() {
        use arrow_array::{StructArray, TimestampMillisecondArray};
        let at = TimestampMillisecondArray::from(vec![Some(1000), None]).with_timezone("America/New_York");
        let field = arrow_schema::Field::new("t", at.data_type().clone(), true);
        let nested = StructArray::from(vec![(Arc::new(field), Arc::new(at.clone()) as ArrayRef)]);
        let columns: [(&str, ArrayRef); 2] = [("a", Arc::new(at)), ("b", Arc::new(nested))];
        let text = as_text(&RecordBatch::try_from_iter(columns).unwrap());
        assert_eq!(text[0], "1970-01-01T00:00:01\u{1}{t: 1970-01-01T00:00:01}\u{1}");
    }

    #[test]
    fn rows_are_compared_in_order() {
        let text = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let truth = text(&["a", "b", "b", "c"]);
        assert_eq!(in_order(&text(&["a", "x", "b", "c"]), &truth), 3);
        assert_eq!(in_order(&text(&["c", "a"]), &truth), 1);
    }
}
