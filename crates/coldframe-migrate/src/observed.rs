//! Statistics of decoded columns, of the same kinds that files store. With them, decoded values are compared
//! with the values that the writer of the file had.
//!
//! | type | statistics |
//! |---|---|
//! | each | number of non-null values |
//! | integers | smallest, largest, sum |
//! | floats, decimals, dates | smallest, largest |
//! | booleans | number of true values |
//! | texts, bytes | total length in bytes |

use std::collections::{BTreeMap, HashMap};

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use arrow_select::take::take;
use coldframe_core::{Result, arrow_error};

use crate::fingerprint::Ends;
use crate::fingerprint::extremes::{extremes, merged};

/// The statistics of a column.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ObservedColumn {
    /// The number of non-null values.
    pub values: u64,
    /// The smallest and the largest number or date.
    pub ends: Ends,
    /// Whether there is a NaN. NaN has no order: if there is a NaN, neither extreme is certain.
    pub has_nan: bool,
    /// The sum of integers.
    pub sum: Option<i128>,
    /// The total length of texts and blobs in bytes.
    pub bytes: Option<u64>,
    /// The number of true booleans.
    pub trues: Option<u64>,
}

/// The observed columns by name, with statistics if any batch had the column.
#[derive(Clone, Debug)]
pub struct Observed(BTreeMap<String, Option<ObservedColumn>>);

impl Observed {
    /// Observes the columns of these names only.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| (name, None)).collect())
    }

    /// Adds the next rows. Skips columns that share a name, and unions, which have no nulls of their own.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let schema = batch.schema();
        let mut named: HashMap<&str, Option<&ArrayRef>> = HashMap::new();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            named.entry(field.name()).and_modify(|known| *known = None).or_insert(Some(column));
        }
        for (name, seen) in &mut self.0 {
            if let Some(Some(column)) = named.get(name.as_str())
                && !matches!(column.data_type(), DataType::Union(_, _))
            {
                seen.get_or_insert_default().add(column)?;
            }
        }
        Ok(())
    }

    /// The statistics of the columns that were seen.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &ObservedColumn)> {
        self.0.iter().filter_map(|(name, seen)| Some((name.as_str(), seen.as_ref()?)))
    }
}

impl ObservedColumn {
    fn add(&mut self, column: &ArrayRef) -> Result<()> {
        if let Some(dictionary) = column.as_any_dictionary_opt() {
            let plain = take(dictionary.values(), dictionary.keys(), None).map_err(arrow_error)?;
            return self.add(&plain);
        }
        let present = column.len().saturating_sub(column.logical_null_count());
        self.values += present as u64;
        if present == 0 {
            return Ok(());
        }
        match column.data_type() {
            DataType::Boolean => {
                *self.trues.get_or_insert_default() += column.as_boolean().true_count() as u64
            }
            DataType::Utf8 => self.add_bytes::<Utf8Type>(column),
            DataType::LargeUtf8 => self.add_bytes::<LargeUtf8Type>(column),
            DataType::Binary => self.add_bytes::<BinaryType>(column),
            DataType::LargeBinary => self.add_bytes::<LargeBinaryType>(column),
            kind if kind.is_numeric() || *kind == DataType::Date32 => {
                self.ends = merged(self.ends.take(), extremes(column, kind)?);
                self.add_sum(column);
                self.has_nan |= has_nan(column);
            }
            _ => {}
        }
        Ok(())
    }

    fn add_bytes<T: ByteArrayType>(&mut self, column: &ArrayRef) {
        let array = column.as_bytes::<T>();
        let bytes: usize = match array.nulls() {
            // The values under nulls are arbitrary and are ignored.
            Some(nulls) if nulls.null_count() > 0 => {
                nulls.valid_indices().map(|row| array.value_length(row).as_usize()).sum()
            }
            _ => {
                array.value_offsets().last().map_or(0, |end| end.as_usize())
                    - array.value_offsets().first().map_or(0, |start| start.as_usize())
            }
        };
        *self.bytes.get_or_insert_default() += bytes as u64;
    }

    fn add_sum(&mut self, column: &ArrayRef) {
        let sum = match column.data_type() {
            DataType::Int8 => sum::<Int8Type>(column),
            DataType::Int16 => sum::<Int16Type>(column),
            DataType::Int32 => sum::<Int32Type>(column),
            DataType::Int64 => sum::<Int64Type>(column),
            DataType::UInt8 => sum::<UInt8Type>(column),
            DataType::UInt16 => sum::<UInt16Type>(column),
            DataType::UInt32 => sum::<UInt32Type>(column),
            DataType::UInt64 => sum::<UInt64Type>(column),
            _ => return,
        };
        *self.sum.get_or_insert_default() += sum;
    }
}

/// The sum of an array's values always fits in 128 bits.
fn sum<T: arrow_array::ArrowNumericType>(column: &ArrayRef) -> i128
where
    i128: From<T::Native>,
{
    let array = column.as_primitive::<T>();
    match array.nulls() {
        Some(nulls) if nulls.null_count() > 0 => {
            nulls.valid_indices().map(|row| i128::from(array.value(row))).sum()
        }
        _ => array.values().iter().map(|value| i128::from(*value)).sum(),
    }
}

fn has_nan(column: &ArrayRef) -> bool {
    fn any<T: arrow_array::ArrowNumericType>(column: &ArrayRef, is_nan: impl Fn(T::Native) -> bool) -> bool {
        let array = column.as_primitive::<T>();
        array.values().iter().any(|v| is_nan(*v)) && array.iter().flatten().any(is_nan)
    }
    match column.data_type() {
        DataType::Float16 => any::<Float16Type>(column, |v| v.is_nan()),
        DataType::Float32 => any::<Float32Type>(column, |v| v.is_nan()),
        DataType::Float64 => any::<Float64Type>(column, |v| v.is_nan()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BooleanArray, DictionaryArray, Float64Array, Int64Array, StringArray};

    use super::*;
    use crate::fingerprint::Extreme;

    fn batch_of(array: impl Array + 'static) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable([("x", Arc::new(array) as ArrayRef, true)]).unwrap()
    }

    fn seen(batches: &[RecordBatch]) -> ObservedColumn {
        let mut observed = Observed::new(["x".to_owned(), "y".to_owned()]);
        batches.iter().for_each(|batch| observed.add(batch).unwrap());
        let columns: Vec<_> = observed.columns().collect();
        assert_eq!(columns.len(), 1, "y was not seen");
        columns[0].1.clone()
    }

    #[test]
    fn the_statistics_of_batches_are_added_up() {
        let big = batch_of(Int64Array::from(vec![Some(i64::MAX), None, Some(i64::MAX)]));
        let small = batch_of(Int64Array::from(vec![Some(-7), Some(i64::MAX), None]).slice(0, 1));
        let column = seen(&[big, batch_of(Int64Array::from(vec![None])), small]);
        assert_eq!((column.values, column.sum), (3, Some(2 * i128::from(i64::MAX) - 7)));
        assert_eq!(column.ends, Some((Extreme::Whole(-7), Extreme::Whole(i64::MAX.into()))));
    }

    #[test]
    fn values_under_nulls_are_ignored() {
        let texts = StringArray::from(vec![Some("ab"), None, Some("cde"), Some("f")]);
        assert_eq!(seen(&[batch_of(texts.clone())]).bytes, Some(6));
        assert_eq!(seen(&[batch_of(texts.slice(1, 2))]).bytes, Some(3));
        assert_eq!(seen(&[batch_of(texts.slice(2, 2))]).bytes, Some(4));
        let entries: DictionaryArray<Int32Type> = [Some("ab"), None, Some("ab")].into_iter().collect();
        let column = seen(&[batch_of(entries)]);
        assert_eq!((column.values, column.bytes), (2, Some(4)));
        let column = seen(&[batch_of(BooleanArray::from(vec![Some(true), None, Some(false)]))]);
        assert_eq!((column.values, column.trues), (2, Some(1)));
    }

    #[test]
    fn nan_is_recorded() {
        let column = seen(&[
            batch_of(Float64Array::from(vec![1.0, f64::NAN])),
            batch_of(Float64Array::from(vec![-0.0])),
        ]);
        assert!(column.has_nan);
        assert!(!seen(&[batch_of(Float64Array::from(vec![1.0]))]).has_nan);
    }

    #[test]
    fn columns_that_share_a_name_are_skipped() {
        let column = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("x", column()), ("x", column())]).unwrap();
        let mut observed = Observed::new(["x".to_owned()]);
        observed.add(&batch).unwrap();
        assert_eq!(observed.columns().count(), 0);
    }
}
