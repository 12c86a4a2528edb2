//! Keeps the rows that pass a filter, and frees the memory of the other rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, FieldRef};

use crate::arrays::chosen::chosen;
use crate::projection::prune;
use crate::types::views::without_views;
use crate::{Result, arrow_error};

/// Views are copied if less than 1/`FEW` of the rows pass.
const FEW: usize = 4;

/// The rows of `batch` whose bits are set in `passes`. If few rows pass, the values of views are copied, so
/// that they do not keep whole blocks in memory.
pub fn keep_rows(batch: &RecordBatch, passes: BooleanBuffer) -> Result<RecordBatch> {
    let left = chosen(batch, passes)?;
    if left.num_rows() < batch.num_rows() / FEW { compacted(&left) } else { Ok(left) }
}

/// The same batch, with views whose buffers hold only their values.
fn compacted(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    let compact = |(array, field): (&ArrayRef, &FieldRef)| -> Result<ArrayRef> {
        Ok(match array.data_type() {
            DataType::Utf8View => Arc::new(array.as_string_view().gc()),
            DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
            _ => match without_views(field) {
                Some(plain) => prune(&prune(array, plain.data_type())?, array.data_type())?,
                None => array.clone(),
            },
        })
    };
    let columns = batch.columns().iter().zip(schema.fields()).map(compact).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(arrow_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BooleanArray, ListArray, StringArray, StringViewArray};
    use arrow_buffer::OffsetBuffer;
    use arrow_schema::Field;
    use arrow_select::filter::filter_record_batch;

    #[test]
    fn few_rows_do_not_keep_the_blocks_of_all_rows() {
        let rows = 1000;
        let values: Vec<String> = (0..rows).map(|i| format!("a long value with the number {i}")).collect();
        let text: ArrayRef = Arc::new(StringViewArray::from(&StringArray::from(values)));
        let item = Arc::new(Field::new_list_field(DataType::Utf8View, true));
        let lists = ListArray::new(item, OffsetBuffer::from_lengths(vec![1; rows]), text.clone(), None);
        let batch =
            RecordBatch::try_from_iter([("text", text), ("lists", Arc::new(lists) as ArrayRef)]).unwrap();
        let passes: BooleanBuffer = (0..rows).map(|i| i % 100 == 0).collect();
        let kept = keep_rows(&batch, passes.clone()).unwrap();
        assert_eq!(kept, filter_record_batch(&batch, &BooleanArray::new(passes, None)).unwrap());
        let held = |text: &StringViewArray| text.data_buffers().iter().map(|b| b.len()).sum::<usize>();
        let lists: &ListArray = kept.column(1).as_list();
        assert!(held(kept.column(0).as_string_view()) < 400 && held(lists.values().as_string_view()) < 400);
    }
}
