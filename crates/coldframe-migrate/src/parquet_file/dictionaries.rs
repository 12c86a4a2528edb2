//! Decides by the first rows of a file which columns may have large dictionaries.
//!
//! ```text
//! 20,000 texts in 1,000,000 rows     a dictionary of 400 kB, and 15 bits a row: 2.0 bytes instead of 6.6
//! as many texts as rows              a dictionary would repeat all of them
//! ```
//!
//! Integers compress nearly as well without a dictionary, so theirs stay small.

use std::collections::HashSet;

use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use coldframe::Result;

use crate::fingerprint::row_hashes;

/// The largest dictionary of a column whose values repeat: the usual size.
pub(super) const LARGE: usize = 1 << 20;

/// How many rows are looked at, at most.
const SAMPLE: usize = 20_000;
/// Fewer values say nothing about a whole column chunk.
const LEAST: usize = 4096;

/// The columns of text, bytes or floating-point numbers whose values repeat: fewer than 85 of 100 values in the first
/// rows are different ones. At the size of the sample, this is so for about 60,000 different values.
pub(super) fn repetitive(first: &RecordBatch) -> Result<Vec<String>> {
    let sample = first.slice(0, first.num_rows().min(SAMPLE));
    let mut names = Vec::new();
    for (place, field) in first.schema().fields().iter().enumerate() {
        let values = sample.num_rows() - sample.column(place).null_count();
        if !gains(field.data_type()) || values < LEAST {
            continue;
        }
        let column = sample.project(&[place]).map_err(coldframe::arrow_error)?;
        let different: HashSet<u64> = row_hashes(&column, column.schema_ref())?.into_iter().collect();
        if different.len() * 100 < values * 85 {
            names.push(field.name().clone());
        }
    }
    Ok(names)
}

/// Whether values of a type take fewer bytes with a large dictionary.
fn gains(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => true,
        DataType::Dictionary(_, values) => gains(values),
        kind => kind.is_floating(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn columns_repeat_or_do_not() {
        let rows = 30_000u32;
        let text = |distinct: u32| -> ArrayRef {
            Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("text {}", row % distinct))))
        };
        let floats = |distinct: u32| -> ArrayRef {
            Arc::new((0..rows).map(|row| Some(f64::from(row % distinct))).collect::<Float64Array>())
        };
        let few = StringArray::from_iter((0..rows).map(|row| (row % 10 == 0).then_some("text")));
        let batch = RecordBatch::try_from_iter([
            ("repeats", text(9000)),
            ("different", text(rows)),
            ("prices", floats(3000)),
            ("measures", floats(rows)),
            (
                "numbers",
                Arc::new((0..rows).map(|row| i64::from(row % 9)).collect::<Int64Array>()) as ArrayRef,
            ),
            ("few", Arc::new(few) as ArrayRef),
        ])
        .unwrap();
        assert_eq!(repetitive(&batch).unwrap(), ["repeats", "prices"]);
        assert_eq!(repetitive(&batch.slice(0, 100)).unwrap(), [""; 0]);
    }
}
