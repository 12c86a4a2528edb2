//! The values of a set, sorted and in a hash table, so that a large set costs no more per row than a small
//! one.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, downcast_primitive_array};
use arrow_buffer::{BooleanBuffer, ToByteSlice};
use arrow_ord::sort::sort;
use arrow_schema::{DataType, SortOptions};

type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// The values of a set in ascending order, nulls last. Clones share the values and the hash table.
#[derive(Clone, Debug)]
pub struct Members(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    values: ArrayRef,
    sorted: bool,
    table: OnceLock<Option<HashSet<Box<[u8]>>>>,
}

impl Members {
    /// The values of `array`, in any order.
    pub fn new(array: &ArrayRef) -> Self {
        let options = SortOptions { descending: false, nulls_first: false };
        let (values, sorted) = match sort(array, Some(options)) {
            Ok(values) => (values, true),
            Err(_) => (array.clone(), false),
        };
        Self(Arc::new(Inner { values, sorted, table: OnceLock::new() }))
    }

    /// Whether the values are sorted.
    pub(super) fn is_sorted(&self) -> bool {
        self.0.sorted
    }

    /// Which values of `column` are in the set, whatever the result for nulls; `None` for types whose bytes
    /// cannot be compared. NaN equals itself, and 0.0 differs from -0.0.
    pub(super) fn find_in(&self, column: &ArrayRef) -> Option<BooleanBuffer> {
        let table = self.0.table.get_or_init(|| table(&self.0.values)).as_ref()?;
        let mut hits = Vec::with_capacity(column.len());
        each(column, &mut |_, bytes| hits.push(table.contains(bytes))).then(|| hits.into())
    }
}

impl Deref for Members {
    type Target = ArrayRef;

    fn deref(&self) -> &ArrayRef {
        &self.0.values
    }
}

impl From<ArrayRef> for Members {
    fn from(array: ArrayRef) -> Self {
        Self::new(&array)
    }
}

fn table(values: &ArrayRef) -> Option<HashSet<Box<[u8]>>> {
    let mut table = HashSet::with_capacity(values.len());
    each(values, &mut |i, bytes| {
        if values.is_valid(i) {
            table.insert(bytes.into());
        }
    })
    .then_some(table)
}

/// Calls `see` with each index and the bytes of its value, which are arbitrary for nulls. `false` for types
/// whose bytes cannot be compared.
fn each(array: &ArrayRef, see: &mut dyn FnMut(usize, &[u8])) -> bool {
    macro_rules! bytes {
        ($array:expr) => {{
            let array = $array;
            (0..array.len()).for_each(|i| see(i, array.value(i).as_ref()));
        }};
    }
    macro_rules! floats {
        ($kind:ty, $nan:expr) => {
            for (i, v) in array.as_primitive::<$kind>().values().iter().enumerate() {
                see(i, if v.is_nan() { $nan } else { *v }.to_byte_slice());
            }
        };
    }
    match array.data_type() {
        DataType::Boolean => {
            let array = array.as_boolean();
            (0..array.len()).for_each(|i| see(i, &[u8::from(array.value(i))]));
        }
        DataType::Float16 => floats!(Float16Type, Half::NAN),
        DataType::Float32 => floats!(Float32Type, f32::NAN),
        DataType::Float64 => floats!(Float64Type, f64::NAN),
        DataType::Utf8 => bytes!(array.as_string::<i32>()),
        DataType::LargeUtf8 => bytes!(array.as_string::<i64>()),
        DataType::Utf8View => bytes!(array.as_string_view()),
        DataType::Binary => bytes!(array.as_binary::<i32>()),
        DataType::LargeBinary => bytes!(array.as_binary::<i64>()),
        DataType::BinaryView => bytes!(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => bytes!(array.as_fixed_size_binary()),
        _ => downcast_primitive_array!(
            array => {
                for (i, v) in array.values().iter().enumerate() {
                    see(i, v.to_byte_slice());
                }
            },
            _ => return false
        ),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Decimal128Array, Float64Array, Int32Array, NullArray, StringArray};

    fn find(values: ArrayRef, column: &ArrayRef) -> Vec<bool> {
        Members::new(&values).find_in(column).unwrap().iter().collect()
    }

    #[test]
    fn values_are_looked_up_by_their_bytes() {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![Some(3), None, Some(-1)]));
        assert!(find(Arc::new(Int32Array::from(vec![Some(-1), None])), &column)[2]);
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", ""]));
        assert_eq!(find(Arc::new(StringArray::from(vec!["", "b"])), &texts), [false, true, true]);
        let money: ArrayRef = Arc::new(Decimal128Array::from(vec![1, 2]));
        assert_eq!(find(Arc::new(Decimal128Array::from(vec![2])), &money), [false, true]);
    }

    #[test]
    fn floats_match_as_in_pyarrow() {
        let other_nan = f64::from_bits(f64::NAN.to_bits() | 1);
        let column: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, other_nan, 1.0]));
        let set = |v: f64| find(Arc::new(Float64Array::from(vec![v])), &column);
        assert_eq!(set(0.0), [true, false, false, false]);
        assert_eq!(set(-0.0), [false, true, false, false]);
        assert_eq!(set(f64::NAN), [false, false, true, false]);
    }

    #[test]
    fn types_that_cannot_be_compared_by_bytes_have_no_table() {
        let nulls: ArrayRef = Arc::new(NullArray::new(2));
        assert!(Members::new(&nulls).find_in(&nulls).is_none());
    }
}
