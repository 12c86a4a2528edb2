//! Exact evaluation of filters, the same for every format.

use arrow_arith::boolean;
use arrow_array::array::AnyDictionaryArray;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, Datum, RecordBatch, Scalar, downcast_integer,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_ord::cmp;
use arrow_schema::{DataType, TimeUnit};
use arrow_select::take::take;
use coldframe_encoding::{Error, Result};

use super::like::Pattern;
use super::trimmed::trim;
use super::{Members, Op, Predicate};
use crate::types::views;
use crate::{arrow_error, projection};

impl Predicate {
    /// The result for each row of `batch`; null if it is unknown, as in SQL.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        match self {
            Self::And(all) => fold(all, batch, true, boolean::and_kleene),
            Self::Or(any) => fold(any, batch, false, boolean::or_kleene),
            test => test.evaluate_test(batch),
        }
    }

    /// The result of a test of one column. It is a separate function, so that the recursion above needs
    /// little stack.
    #[inline(never)]
    fn evaluate_test(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        match self {
            Self::Compare { column, .. } | Self::In { column, .. } | Self::Like { column, .. } => {
                self.of_values(&projection::column(batch, column)?)
            }
            Self::Null { column, negated } => {
                let valid = match projection::validity(batch, column)? {
                    Some(nulls) => nulls.into_inner(),
                    None => BooleanBuffer::new_set(batch.num_rows()),
                };
                Ok(BooleanArray::new(if *negated { valid } else { !&valid }, None))
            }
            Self::Trimmed(test) => {
                let mut columns = Vec::new();
                test.columns(&mut columns);
                let path = columns.first().copied().unwrap_or_default();
                test.of_values(&trim(&projection::column(batch, path)?))
            }
            Self::And(_) | Self::Or(_) => self.evaluate(batch),
        }
    }

    /// The result of a comparison for each value of its column.
    fn of_values(&self, column: &ArrayRef) -> Result<BooleanArray> {
        match self {
            Self::Compare { op, value, negated, .. } => {
                let result = compare(column, *op, value, 0)?;
                if *negated { boolean::not(&result).map_err(arrow_error) } else { Ok(result) }
            }
            Self::In { values, negated, .. } => is_in(column, values, *negated),
            Self::Like { pattern, negated, .. } => like(column, pattern, *negated),
            _ => Err(Error::invalid("a filter that tests something other than the values of a column")),
        }
    }
}

type Combine = fn(&BooleanArray, &BooleanArray) -> Result<BooleanArray, arrow_schema::ArrowError>;

fn fold(parts: &[Predicate], batch: &RecordBatch, start: bool, combine: Combine) -> Result<BooleanArray> {
    let start = BooleanBuffer::collect_bool(batch.num_rows(), |_| start);
    let mut sum = BooleanArray::new(start, None);
    for part in parts {
        let result = part.evaluate(batch)?;
        sum = combine(&sum, &result).map_err(arrow_error)?;
    }
    Ok(sum)
}

/// `column op values[i]` for each row.
fn compare(column: &ArrayRef, op: Op, values: &ArrayRef, i: usize) -> Result<BooleanArray> {
    let value = values.slice(i, 1);
    if value.is_null(0) {
        return Ok(BooleanArray::new_null(column.len()));
    }
    if let Some(dictionary) = column.as_any_dictionary_opt().filter(|_| !is_dictionary(values)) {
        return by_entries(dictionary, |entries| compare(entries, op, values, i));
    }
    let (column, value) = same_type(column, &value)?;
    match column.data_type() {
        DataType::Float64 => {
            Ok(floats::<Float64Type>(&column, op, value.as_primitive::<Float64Type>().value(0)))
        }
        DataType::Float32 => {
            Ok(floats::<Float32Type>(&column, op, value.as_primitive::<Float32Type>().value(0)))
        }
        _ => numbers(&column, op, &value),
    }
}

fn by_arrow(column: &ArrayRef, op: Op, value: &ArrayRef) -> Result<BooleanArray> {
    let scalar = Scalar::new(value);
    let (l, r): (&dyn Datum, &dyn Datum) = (column, &scalar);
    let kernel = match op {
        Op::Eq => cmp::eq,
        Op::Ne => cmp::neq,
        Op::Lt => cmp::lt,
        Op::Le => cmp::lt_eq,
        Op::Gt => cmp::gt,
        Op::Ge => cmp::gt_eq,
    };
    kernel(l, r).map_err(arrow_error)
}

fn is_dictionary(array: &ArrayRef) -> bool {
    matches!(array.data_type(), DataType::Dictionary(..))
}

/// Tests each entry of a dictionary once, and looks up the result for each row.
fn by_entries(
    dictionary: &dyn AnyDictionaryArray,
    test: impl FnOnce(&ArrayRef) -> Result<BooleanArray>,
) -> Result<BooleanArray> {
    let answers = take(&test(dictionary.values())?, dictionary.keys(), None).map_err(arrow_error)?;
    Ok(answers.as_boolean().clone())
}

/// Casts column and literal to a common type: the column's type if the literal was bound to it, otherwise a
/// wider type.
fn same_type(column: &ArrayRef, value: &ArrayRef) -> Result<(ArrayRef, ArrayRef)> {
    let (a, b) = (column.data_type(), value.data_type());
    if a == b {
        return Ok((column.clone(), value.clone()));
    }
    let wide = match (a, b) {
        (a, b) if a.is_floating() && b.is_floating() => DataType::Float64,
        (DataType::FixedSizeBinary(_), DataType::Binary) => DataType::Binary,
        (a, b) if views::view(b).as_ref() == Some(a) => a.clone(),
        (a, b) => {
            return Err(Error::schema(format!("a column of type {a} cannot be compared with {b}")));
        }
    };
    let cast = |x: &ArrayRef| arrow_cast::cast(x, &wide).map_err(arrow_error);
    Ok((cast(column)?, cast(value)?))
}

/// Compares floating point numbers as IEEE 754 does: false for NaN except with `<>`, and -0 equals 0. Arrow's
/// kernels use a total order instead.
fn floats<T: ArrowPrimitiveType<Native: PartialOrd>>(
    column: &ArrayRef,
    op: Op,
    value: T::Native,
) -> BooleanArray {
    let column = column.as_primitive::<T>();
    BooleanArray::new(compared(column.values(), op, value), column.nulls().cloned())
}

/// Compares integers, and types stored as integers: dates, times, decimals.
fn numbers(column: &ArrayRef, op: Op, value: &ArrayRef) -> Result<BooleanArray> {
    macro_rules! as_type {
        ($type:ty) => {{
            let (column, value) = (column.as_primitive::<$type>(), value.as_primitive::<$type>());
            Ok(BooleanArray::new(compared(column.values(), op, value.value(0)), column.nulls().cloned()))
        }};
    }
    downcast_integer! {
        column.data_type() => (as_type),
        DataType::Date32 => as_type!(Date32Type),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => as_type!(TimestampSecondType),
            TimeUnit::Millisecond => as_type!(TimestampMillisecondType),
            TimeUnit::Microsecond => as_type!(TimestampMicrosecondType),
            TimeUnit::Nanosecond => as_type!(TimestampNanosecondType),
        },
        DataType::Decimal128(..) => as_type!(Decimal128Type),
        _ => by_arrow(column, op, value),
    }
}

fn compared<N: PartialOrd + Copy>(values: &[N], op: Op, value: N) -> BooleanBuffer {
    match op {
        Op::Eq => bits_of(values, |v| *v == value),
        Op::Ne => bits_of(values, |v| *v != value),
        Op::Lt => bits_of(values, |v| *v < value),
        Op::Le => bits_of(values, |v| *v <= value),
        Op::Gt => bits_of(values, |v| *v > value),
        Op::Ge => bits_of(values, |v| *v >= value),
    }
}

/// The results of `test` as bits, computed 64 values at a time.
pub(super) fn bits_of<N>(values: &[N], test: impl Fn(&N) -> bool) -> BooleanBuffer {
    let (whole, rest) = values.as_chunks::<64>();
    let mut masks = Vec::with_capacity(values.len().div_ceil(64));
    masks.extend(whole.iter().map(|values| word_of(values, &test)));
    if !rest.is_empty() {
        masks.push(rest.iter().enumerate().fold(0, |word, (i, value)| word | u64::from(test(value)) << i));
    }
    BooleanBuffer::new(masks.into(), 0, values.len())
}

/// The bits of 64 values. The bits are computed as bytes first, which the compiler vectorises.
#[inline(always)]
fn word_of<N>(values: &[N; 64], test: impl Fn(&N) -> bool) -> u64 {
    /// Gathers the lowest bits of eight bytes in the top byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut answers = [0u8; 64];
    answers.iter_mut().zip(values).for_each(|(answer, value)| *answer = test(value).into());
    let (eights, _) = answers.as_chunks::<8>();
    eights
        .iter()
        .enumerate()
        .fold(0, |word, (i, eight)| word | (u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56) << (8 * i))
}

/// Membership as in SQL: null for a null row, and for a value outside a set that contains null.
fn is_in(column: &ArrayRef, values: &Members, negated: bool) -> Result<BooleanArray> {
    if let Some(dictionary) = column.as_any_dictionary_opt().filter(|_| !is_dictionary(values)) {
        return by_entries(dictionary, |entries| is_in(entries, values, negated));
    }
    let members = members(column, values)?;
    let mut known = column.logical_nulls();
    if values.null_count() > 0 {
        known = NullBuffer::union(known.as_ref(), Some(&NullBuffer::new(members.clone())));
    }
    Ok(BooleanArray::new(if negated { !&members } else { members }, known))
}

/// Sets of at most this many values are compared value by value; larger sets use a hash table.
const FEW: usize = 8;

/// Which rows have a value that is in the set; arbitrary for null rows.
fn members(column: &ArrayRef, values: &Members) -> Result<BooleanBuffer> {
    if column.data_type() != values.data_type() {
        let (column, values) = same_type(column, values)?;
        return members(&column, &Members::new(&values));
    }
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        let plain =
            Members::new(&arrow_cast::cast(&**values, dictionary.values().data_type()).map_err(arrow_error)?);
        let entries = members(dictionary.values(), &plain)?;
        let at = dictionary.normalized_keys();
        return Ok(BooleanBuffer::collect_bool(column.len(), |i| {
            at.get(i).is_some_and(|word| *word < entries.len() && entries.value(*word))
        }));
    }
    if (values.len() > FEW || column.data_type().is_floating())
        && let Some(hits) = values.find_in(column)
    {
        return Ok(hits);
    }
    let mut hits = BooleanBuffer::new_unset(column.len());
    for i in (0..values.len()).filter(|i| values.is_valid(*i)) {
        let result = compare(column, Op::Eq, values, i)?;
        let hit = match result.nulls().map(NullBuffer::inner) {
            Some(valid) => result.values() & valid,
            None => result.values().clone(),
        };
        hits = &hits | &hit;
    }
    Ok(hits)
}

fn like(column: &ArrayRef, pattern: &Pattern, negated: bool) -> Result<BooleanArray> {
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        return by_entries(dictionary, |entries| like(entries, pattern, negated));
    }
    let test = |text: Option<&str>| text.map(|t| pattern.matches(t) != negated);
    Ok(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().iter().map(test).collect(),
        DataType::LargeUtf8 => column.as_string::<i64>().iter().map(test).collect(),
        DataType::Utf8View => column.as_string_view().iter().map(test).collect(),
        other => return Err(Error::schema(format!("'like' needs a string column, not one of type {other}"))),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use arrow_array::types::{Int8Type, Int64Type, UInt32Type};
    use arrow_array::{ArrowNativeTypeOp, PrimitiveArray};

    /// Compares negative, positive, extreme and equal numbers, with nulls, in arrays of more and of fewer
    /// than 64 values.
    fn check<T: ArrowPrimitiveType>(data_type: &DataType) {
        let some = [T::Native::MIN_TOTAL_ORDER, T::Native::ZERO, T::Native::ONE, T::Native::MAX_TOTAL_ORDER];
        for rows in [0, 1, 63, 64, 65, 200] {
            let values = some.iter().cycle().enumerate().take(rows);
            let column: PrimitiveArray<T> = values.map(|(i, v)| Some(*v).filter(|_| i % 7 != 3)).collect();
            let column: ArrayRef = Arc::new(column.with_data_type(data_type.clone()));
            for value in some {
                let value = PrimitiveArray::<T>::from_value(value, 1).with_data_type(data_type.clone());
                let value: ArrayRef = Arc::new(value);
                for op in [Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge] {
                    let actual = numbers(&column, op, &value).unwrap();
                    assert_eq!(actual, by_arrow(&column, op, &value).unwrap(), "{data_type} {op:?} {rows}");
                }
            }
        }
    }

    #[test]
    fn numbers_compare_as_in_arrow() {
        check::<Int8Type>(&DataType::Int8);
        check::<UInt32Type>(&DataType::UInt32);
        check::<Int64Type>(&DataType::Int64);
        check::<Date32Type>(&DataType::Date32);
        check::<Decimal128Type>(&DataType::Decimal128(38, 2));
        check::<TimestampMicrosecondType>(&DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
        check::<TimestampNanosecondType>(&DataType::Timestamp(TimeUnit::Nanosecond, None));
    }
}
