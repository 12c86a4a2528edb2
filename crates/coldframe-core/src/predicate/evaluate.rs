//! Which rows pass: exact, the same for every format.

use arrow_arith::boolean;
use arrow_array::array::AnyDictionaryArray;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, Datum, RecordBatch, Scalar};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_ord::cmp;
use arrow_schema::DataType;
use arrow_select::take::take;
use coldframe_encoding::{Error, Result};

use super::like::Pattern;
use super::{Members, Op, Predicate};
use crate::types::views;
use crate::{arrow_error, projection};

impl Predicate {
    /// One value a row of `batch`; null where it cannot be told, as in SQL.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        match self {
            Self::Compare { column, op, value, negated } => {
                let result = compare(&projection::column(batch, column)?, *op, value, 0)?;
                if *negated { boolean::not(&result).map_err(arrow_error) } else { Ok(result) }
            }
            Self::In { column, values, negated } => {
                let column = projection::column(batch, column)?;
                is_in(&column, values, *negated)
            }
            Self::Null { column, negated } => {
                let column = projection::column(batch, column)?;
                let test = if *negated { boolean::is_not_null } else { boolean::is_null };
                test(&column).map_err(arrow_error)
            }
            Self::Like { column, pattern, negated } => {
                like(&projection::column(batch, column)?, pattern, *negated)
            }
            Self::And(all) => fold(all, batch, true, boolean::and_kleene),
            Self::Or(any) => fold(any, batch, false, boolean::or_kleene),
        }
    }
}

type Combine = fn(&BooleanArray, &BooleanArray) -> Result<BooleanArray, arrow_schema::ArrowError>;

fn fold(parts: &[Predicate], batch: &RecordBatch, start: bool, combine: Combine) -> Result<BooleanArray> {
    let start = BooleanBuffer::collect_bool(batch.num_rows(), |_| start);
    parts.iter().try_fold(BooleanArray::new(start, None), |sum, p| {
        combine(&sum, &p.evaluate(batch)?).map_err(arrow_error)
    })
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
        _ => {
            let scalar = Scalar::new(value);
            let (l, r): (&dyn Datum, &dyn Datum) = (&column, &scalar);
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
    }
}

fn is_dictionary(array: &ArrayRef) -> bool {
    matches!(array.data_type(), DataType::Dictionary(..))
}

/// The answers for the entries of a dictionary, at the rows that have them: a test of plain values costs no more than that.
fn by_entries(
    dictionary: &dyn AnyDictionaryArray,
    test: impl FnOnce(&ArrayRef) -> Result<BooleanArray>,
) -> Result<BooleanArray> {
    let answers = take(&test(dictionary.values())?, dictionary.keys(), None).map_err(arrow_error)?;
    Ok(answers.as_boolean().clone())
}

/// Both in one type: the column's where the literal could be bound to it, else a wider one.
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

/// IEEE comparison: false for NaN but for `<>`, and -0 equals 0. Arrow's own kernels order floats totally.
fn floats<T: ArrowPrimitiveType<Native: PartialOrd>>(
    column: &ArrayRef,
    op: Op,
    value: T::Native,
) -> BooleanArray {
    let column = column.as_primitive::<T>();
    let values: &[T::Native] = column.values();
    let bits = match op {
        Op::Eq => bits_of(values, |v| *v == value),
        Op::Ne => bits_of(values, |v| *v != value),
        Op::Lt => bits_of(values, |v| *v < value),
        Op::Le => bits_of(values, |v| *v <= value),
        Op::Gt => bits_of(values, |v| *v > value),
        Op::Ge => bits_of(values, |v| *v >= value),
    };
    BooleanArray::new(bits, column.nulls().cloned())
}

/// A bit for each value, a word at a time.
fn bits_of<N>(values: &[N], test: impl Fn(&N) -> bool) -> BooleanBuffer {
    let word = |values: &[N]| {
        values.iter().enumerate().fold(0u64, |word, (i, value)| word | u64::from(test(value)) << i)
    };
    let words: Vec<u64> = values.chunks(64).map(word).collect();
    BooleanBuffer::new(words.into(), 0, values.len())
}

/// Membership, as SQL has it: null for a null, and for what is not found where null is in the set.
fn is_in(column: &ArrayRef, values: &Members, negated: bool) -> Result<BooleanArray> {
    if let Some(dictionary) = column.as_any_dictionary_opt().filter(|_| !is_dictionary(values)) {
        return by_entries(dictionary, |entries| is_in(entries, values, negated));
    }
    let found = members(column, values)?;
    let mut known = column.logical_nulls();
    if values.null_count() > 0 {
        known = NullBuffer::union(known.as_ref(), Some(&NullBuffer::new(found.clone())));
    }
    Ok(BooleanArray::new(if negated { !&found } else { found }, known))
}

/// A few values are compared one by one, which is fast; more are looked up.
const FEW: usize = 8;

/// Which rows have a value of the set; what stands for a null is of no account.
fn members(column: &ArrayRef, values: &Members) -> Result<BooleanBuffer> {
    if column.data_type() != values.data_type() {
        let (column, values) = same_type(column, values)?;
        return members(&column, &Members::new(&values));
    }
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        let plain =
            Members::new(&arrow_cast::cast(&**values, dictionary.values().data_type()).map_err(arrow_error)?);
        let words = members(dictionary.values(), &plain)?;
        let at = dictionary.normalized_keys();
        return Ok(BooleanBuffer::collect_bool(column.len(), |i| {
            at.get(i).is_some_and(|word| *word < words.len() && words.value(*word))
        }));
    }
    if (values.len() > FEW || column.data_type().is_floating())
        && let Some(found) = values.find_in(column)
    {
        return Ok(found);
    }
    let mut found = BooleanBuffer::new_unset(column.len());
    for i in (0..values.len()).filter(|i| values.is_valid(*i)) {
        let result = compare(column, Op::Eq, values, i)?;
        let hit = match result.nulls().map(NullBuffer::inner) {
            Some(valid) => result.values() & valid,
            None => result.values().clone(),
        };
        found = &found | &hit;
    }
    Ok(found)
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
