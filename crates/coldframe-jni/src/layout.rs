//! The memory addresses of a batch's values, as a list of numbers for `io.coldframe.spark.NativeVector`.
//!
//! ```text
//! batch     number, rows, bytes, then its columns
//! column    nulls, address of validity bits (0: no null), its first bit, address of values, first bit or bytes' address, children ..
//!
//!           values of numbers, dates, decimals    at the column's first row
//!           bits of booleans                      and the bit of the first row
//!           text, bytes                           offsets (int32) at the first row, and the base address of the bytes
//!           lists, maps                           offsets (int32) at the first row; children begin at their first value
//!           structs                               0; children begin at the same row
//! ```
//! The addresses are valid until the batch is released. Types are not written: both sides know them from the schema.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Time64NanosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use coldframe::{Error, Result};

/// Adds a batch's rows, bytes and columns to `into`.
pub fn write(batch: &RecordBatch, into: &mut Vec<i64>) -> Result<()> {
    into.push(count(batch.num_rows())?);
    into.push(count(batch.get_array_memory_size())?);
    batch.columns().iter().try_for_each(|column| array(column.as_ref(), into))
}

fn count(of: usize) -> Result<i64> {
    i64::try_from(of).map_err(|_| Error::invalid("a count of more than 63 bits"))
}

/// An address as a Java long with the same bits.
fn address<T>(of: *const T) -> i64 {
    i64::from_ne_bytes((of as usize as u64).to_ne_bytes())
}

fn nulls(of: Option<&NullBuffer>, into: &mut Vec<i64>) -> Result<()> {
    match of.filter(|nulls| nulls.null_count() > 0) {
        None => into.extend([0, 0, 0]),
        Some(nulls) => {
            let bits = nulls.inner();
            into.extend([count(nulls.null_count())?, address(bits.values().as_ptr()), count(bits.offset())?]);
        }
    }
    Ok(())
}

fn numbers<T: ArrowPrimitiveType>(of: &dyn Array, into: &mut Vec<i64>) {
    into.extend([address(of.as_primitive::<T>().values().as_ptr()), 0]);
}

fn array(of: &dyn Array, into: &mut Vec<i64>) -> Result<()> {
    if matches!(of.data_type(), DataType::Null) {
        // If all values are null, Java reads no validity bits.
        into.extend([count(of.len())?, 0, 0, 0, 0]);
        return Ok(());
    }
    nulls(of.nulls(), into)?;
    match of.data_type() {
        DataType::Boolean => {
            let bits = of.as_boolean().values();
            into.extend([address(bits.values().as_ptr()), count(bits.offset())?]);
        }
        DataType::Int8 => numbers::<Int8Type>(of, into),
        DataType::Int16 => numbers::<Int16Type>(of, into),
        DataType::Int32 => numbers::<Int32Type>(of, into),
        DataType::Int64 => numbers::<Int64Type>(of, into),
        DataType::Float32 => numbers::<Float32Type>(of, into),
        DataType::Float64 => numbers::<Float64Type>(of, into),
        DataType::Date32 => numbers::<Date32Type>(of, into),
        DataType::Decimal128(..) => numbers::<Decimal128Type>(of, into),
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers::<TimestampMicrosecondType>(of, into),
        DataType::Duration(TimeUnit::Microsecond) => numbers::<DurationMicrosecondType>(of, into),
        DataType::Time64(TimeUnit::Nanosecond) => numbers::<Time64NanosecondType>(of, into),
        DataType::Utf8 => {
            let text = of.as_string::<i32>();
            into.extend([address(text.value_offsets().as_ptr()), address(text.value_data().as_ptr())]);
        }
        DataType::Binary => {
            let bytes = of.as_binary::<i32>();
            into.extend([address(bytes.value_offsets().as_ptr()), address(bytes.value_data().as_ptr())]);
        }
        DataType::List(_) => {
            let list = of.as_list::<i32>();
            into.extend([address(list.value_offsets().as_ptr()), 0]);
            array(list.values().as_ref(), into)?;
        }
        DataType::Map(..) => {
            let map = of.as_map();
            into.extend([address(map.value_offsets().as_ptr()), 0]);
            array(map.keys().as_ref(), into)?;
            array(map.values().as_ref(), into)?;
        }
        DataType::Struct(_) => {
            into.extend([0, 0]);
            of.as_struct().columns().iter().try_for_each(|child| array(child.as_ref(), into))?;
        }
        other => return Err(Error::unsupported(format!("batches of {other} in the JVM"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type as Ints;
    use arrow_array::{ArrayRef, BooleanArray, Int32Array, ListArray, NullArray, StringArray};

    use super::*;

    #[test]
    fn addresses_of_a_slice_begin_at_its_first_row() {
        let numbers = Int32Array::from(vec![Some(1), None, Some(3), Some(4)]);
        let text = StringArray::from(vec!["a", "bc", "def", ""]);
        let truth = BooleanArray::from(vec![true, false, true, true]);
        let lists =
            ListArray::from_iter_primitive::<Ints, _, _>(vec![Some(vec![Some(1)]), None, Some(vec![]), None]);
        let nothing = NullArray::new(4);
        let columns: [(&str, ArrayRef); 5] = [
            ("n", Arc::new(numbers.clone())),
            ("s", Arc::new(text.clone())),
            ("b", Arc::new(truth)),
            ("l", Arc::new(lists)),
            ("z", Arc::new(nothing)),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap().slice(1, 2);
        let mut into = Vec::new();
        write(&batch, &mut into).unwrap();
        assert_eq!(into.len(), 2 + 4 * 5 + 5 + 5);
        assert_eq!(into[0], 2);
        // One null in two rows; validity bits and values begin at the second row.
        assert_eq!((into[2], into[4]), (1, 1));
        assert_eq!(into[5], address(numbers.values().as_ptr()) + 4);
        assert_eq!(into[7..10], [0, 0, 0]);
        assert_eq!(into[10], address(text.value_offsets().as_ptr()) + 4);
        assert_eq!(into[11], address(text.value_data().as_ptr()));
        assert_eq!(into[16], 1, "the bit of the first row");
        assert_eq!((into[17], into[27]), (1, 2));
    }
}
