//! The selected rows of a batch.
//!
//! ```text
//! passes   1 0 1 0 0 1
//! values   "ab" "c" "de" "f" "" "xyz"
//! chosen   "ab"     "de"        "xyz"      each copy is 16 or 32 bytes long, then cut to the value's length
//! ```
//!
//! Arrow's filter calls `memcpy` for each string, with a length that differs from row to row: filtering half
//! of a table's rows took longer than reading all of them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;
use arrow_select::filter::{FilterBuilder, FilterPredicate};
use coldframe_encoding::{Error, Result};

use super::{checked_text, offsets, place};
use crate::arrow_error;

/// The rows of `batch` whose bits are set.
pub fn chosen(batch: &RecordBatch, passes: BooleanBuffer) -> Result<RecordBatch> {
    let count = passes.count_set_bits();
    let mask = BooleanArray::new(passes, None);
    let predicate = FilterBuilder::new(&mask).optimize().build();
    let mut places = Vec::new();
    let choose = |column: &ArrayRef| -> Result<ArrayRef> {
        // If nearly all rows pass, Arrow copies whole runs of rows.
        let is_scattered = count > 0 && count < mask.len() / 5 * 4;
        if !is_scattered || !matches!(column.data_type(), DataType::Utf8 | DataType::Binary) {
            return predicate.filter(column).map_err(arrow_error);
        }
        if places.is_empty() {
            places.extend(mask.values().set_indices());
        }
        let nulls = column.nulls().map(|nulls| filtered(nulls, &predicate)).transpose()?;
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        if let Some(text) = column.as_string_opt::<i32>() {
            let (ends, bytes) = gather(text.value_offsets(), text.value_data(), &places)?;
            return Ok(Arc::new(checked_text(offsets(ends)?, bytes.into(), nulls)?));
        }
        let binary = column.as_binary::<i32>();
        let (ends, bytes) = gather(binary.value_offsets(), binary.value_data(), &places)?;
        let array = BinaryArray::try_new(offsets(ends)?, Buffer::from_vec(bytes), nulls);
        Ok(Arc::new(array.map_err(arrow_error)?))
    };
    let columns = batch.columns().iter().map(choose).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options).map_err(arrow_error)
}

fn filtered(nulls: &NullBuffer, predicate: &FilterPredicate) -> Result<NullBuffer> {
    let valid = predicate.filter(&BooleanArray::new(nulls.inner().clone(), None)).map_err(arrow_error)?;
    Ok(NullBuffer::new(valid.as_boolean().values().clone()))
}

/// The values at the indexes `places`: their offsets and their bytes.
fn gather(from: &[i32], bytes: &[u8], places: &[usize]) -> Result<(Vec<i32>, Vec<u8>)> {
    let mut ends = Vec::with_capacity(places.len() + 1);
    let (mut end, mut longest) = (0, 0);
    ends.push(end);
    for at in places {
        let [from, to] = value(from, *at)?;
        // These values are a subset of values whose offsets fitted in 32 bits.
        end += to - from;
        longest = longest.max(to - from);
        ends.push(end);
    }
    let bytes = match longest {
        ..=16 => copied::<16>(from, bytes, places, place(end)),
        17..=32 => copied::<32>(from, bytes, places, place(end)),
        _ => copied::<0>(from, bytes, places, place(end)),
    };
    let bytes = bytes?;
    if bytes.len() != place(end) {
        return Err(Error::invalid(format!("expected values of {end} bytes, found {}", bytes.len())));
    }
    Ok((ends, bytes))
}

/// The bytes of the values. Values have at most `N` bytes or, if `N` is 0, any length. Copies `N` bytes per
/// value and cuts off the excess.
fn copied<const N: usize>(from: &[i32], bytes: &[u8], places: &[usize], total: usize) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(total + N);
    for at in places {
        let [from, to] = value(from, *at)?;
        let rest = bytes.get(place(from)..).unwrap_or_default();
        let length = place(to - from);
        match rest.first_chunk::<N>().filter(|_| N > 0) {
            Some(chunk) => {
                let end = out.len() + length;
                out.extend_from_slice(chunk);
                out.truncate(end);
            }
            None => out.extend_from_slice(rest.get(..length).unwrap_or_default()),
        }
    }
    Ok(out)
}

/// The start and end of the value at index `at`.
#[inline(always)]
fn value(offsets: &[i32], at: usize) -> Result<[i32; 2]> {
    let ends = offsets.get(at..).and_then(<[i32]>::first_chunk::<2>);
    ends.copied()
        .ok_or_else(|| Error::invalid("expected the index of a row in the batch, found a larger one"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int32Array, StringArray};
    use arrow_select::filter::filter_record_batch;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_equal_the_rows_of_arrows_filter(
            rows in proptest::collection::vec((proptest::option::of("[a-zä]{0,20}"), any::<bool>()), 0..90),
            long: bool,
            skip in 0usize..5,
        ) {
            let mut texts: Vec<_> = rows.iter().map(|(text, _)| text.clone()).collect();
            if let (Some(first), true) = (texts.first_mut(), long) {
                *first = Some("long ".repeat(20));
            }
            let text = StringArray::from(texts.clone());
            let binary = BinaryArray::from_iter(texts.iter().map(|text| text.as_ref().map(String::as_bytes)));
            let number: Int32Array = (0..i32::try_from(rows.len()).unwrap()).collect();
            let batch = RecordBatch::try_from_iter_with_nullable([
                ("text", Arc::new(text) as ArrayRef, true),
                ("number", Arc::new(number), true),
                ("binary", Arc::new(binary), true),
            ])
            .unwrap();
            let skip = skip.min(rows.len());
            let batch = batch.slice(skip, rows.len() - skip);
            let passes: BooleanBuffer = rows.iter().skip(skip).map(|(_, passes)| *passes).collect();
            let expected = filter_record_batch(&batch, &BooleanArray::new(passes.clone(), None)).unwrap();
            let rows_chosen = chosen(&batch, passes).unwrap();
            for column in rows_chosen.columns() {
                column.to_data().validate_full().unwrap();
            }
            prop_assert_eq!(rows_chosen, expected);
        }
    }
}
