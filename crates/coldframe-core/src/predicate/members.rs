//! The values of a set, sorted and in a table, so that a large set costs no more per row than a small one.
//!
//! ```text
//! integers    hash of the value -> a bit     almost all values that are not in the set end here
//!             the sorted values              a search, where the bit is set
//! others      hash table of their bytes
//! ```

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float16Type, Float32Type, Float64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, downcast_integer, downcast_primitive_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, ToByteSlice};
use arrow_ord::sort::sort;
use arrow_schema::{DataType, SortOptions, TimeUnit};

use super::evaluate::bits_of;

type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// The values of a set in ascending order, nulls last. Clones share the values and the hash table.
#[derive(Clone, Debug)]
pub struct Members(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    values: ArrayRef,
    sorted: bool,
    table: OnceLock<Option<Table>>,
}

#[derive(Debug)]
enum Table {
    Integers(Integers),
    Bytes(HashSet<Box<[u8]>>),
}

/// A set of integers, and of types stored as integers.
#[derive(Debug)]
struct Integers {
    /// A bit for each hash.
    bits: Vec<u64>,
    /// How many bits of the product of a value do not belong to its hash.
    shift: u32,
    sorted: Vec<usize>,
}

impl Integers {
    /// Bits for each value: one value in 16 that is not in the set is searched for.
    const SPARSE: usize = 16;
    /// 2 to the power of 64, divided by the golden ratio: it spreads adjacent values.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

    fn new(mut values: Vec<usize>) -> Self {
        values.sort_unstable();
        values.dedup();
        let bits = values.len().saturating_mul(Self::SPARSE).clamp(64, 1 << 30).next_power_of_two();
        let mut new = Self { bits: vec![0; bits / 64], shift: 64 - bits.trailing_zeros(), sorted: values };
        for value in &new.sorted {
            let (word, bit) = place(*value, new.shift);
            new.bits.get_mut(word).into_iter().for_each(|word| *word |= 1 << bit);
        }
        new
    }

    #[inline(always)]
    fn has(&self, value: usize) -> bool {
        let (word, bit) = place(value, self.shift);
        self.bits.get(word).is_some_and(|word| word >> bit & 1 == 1)
            && self.sorted.binary_search(&value).is_ok()
    }
}

/// The word and the bit of a value.
#[inline(always)]
fn place(value: usize, shift: u32) -> (usize, u32) {
    let hash = (value as u64).wrapping_mul(Integers::SPREAD) >> shift;
    (usize::try_from(hash / 64).unwrap_or(usize::MAX), u32::from(hash.to_le_bytes()[0]) % 64)
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
        match self.0.table.get_or_init(|| table(&self.0.values)).as_ref()? {
            Table::Integers(set) => integers_in(column, set),
            Table::Bytes(table) => {
                let mut hits = Vec::with_capacity(column.len());
                each(column, &mut |_, bytes| hits.push(table.contains(bytes))).then(|| hits.into())
            }
        }
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

/// Applies a macro to the type of an array of integers, or of a type stored as integers of at most 64 bits; `None` for
/// other types.
macro_rules! of_integers {
    ($array:expr, $with:ident) => {
        downcast_integer! {
            $array.data_type() => ($with),
            DataType::Date32 => $with!(Date32Type),
            DataType::Timestamp(unit, _) => match unit {
                TimeUnit::Second => $with!(TimestampSecondType),
                TimeUnit::Millisecond => $with!(TimestampMillisecondType),
                TimeUnit::Microsecond => $with!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => $with!(TimestampNanosecondType),
            },
            _ => None,
        }
    };
}

/// Which values are in the set. All have the type of its values, so different values are different words.
fn integers_in(array: &ArrayRef, set: &Integers) -> Option<BooleanBuffer> {
    macro_rules! test {
        ($type:ty) => {
            Some(bits_of(array.as_primitive::<$type>().values(), |value| set.has(value.as_usize())))
        };
    }
    of_integers!(array, test)
}

fn integers(values: &ArrayRef) -> Option<Integers> {
    macro_rules! collect {
        ($type:ty) => {
            Some(array_words(values.as_primitive::<$type>()))
        };
    }
    // A word must hold any of these values.
    if size_of::<usize>() < size_of::<u64>() {
        return None;
    }
    let words: Option<Vec<usize>> = of_integers!(values, collect);
    words.map(Integers::new)
}

fn array_words<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Vec<usize> {
    array.iter().flatten().map(|value| value.as_usize()).collect()
}

fn table(values: &ArrayRef) -> Option<Table> {
    if let Some(integers) = integers(values) {
        return Some(Table::Integers(integers));
    }
    let mut table = HashSet::with_capacity(values.len());
    each(values, &mut |i, bytes| {
        if values.is_valid(i) {
            table.insert(bytes.into());
        }
    })
    .then_some(Table::Bytes(table))
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
    use arrow_array::{Decimal128Array, Float64Array, Int32Array, Int64Array, NullArray, StringArray};
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn integers_are_looked_up_as_in_a_list(
            set in proptest::collection::vec(prop_oneof![-9i64..9, any::<i64>()], 0..300),
            others in proptest::collection::vec(prop_oneof![-9i64..9, any::<i64>()], 0..200),
        ) {
            let all: Vec<i64> = set.iter().copied().chain(others).chain([i64::MIN, -1, 0, i64::MAX]).collect();
            let expected: Vec<bool> = all.iter().map(|value| set.contains(value)).collect();
            let column: ArrayRef = Arc::new(Int64Array::from(all));
            prop_assert_eq!(find(Arc::new(Int64Array::from(set)), &column), expected);
        }
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
