//! Converts Arrow arrays to the file's type: casts without loss, unpacks dictionaries, and divides long
//! arrays into pieces.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use arrow_select::take::take;
use coldframe_core::{Error, Result};

use crate::layout::types::KuduType;

/// Values are unpacked in pieces of this many bytes, since all values together may be too long for one array.
const PIECE: usize = 64 << 20;

/// The error for values that do not fit. The values come from the caller and not from a file, so this is no
/// damage.
fn unfit(e: ArrowError) -> Error {
    Error::schema(e.to_string())
}

/// Calls `append` with the values, piece by piece, in the Arrow type of the file's type.
pub(super) fn each_piece(
    values: &ArrayRef,
    data_type: KuduType,
    append: &mut dyn FnMut(&ArrayRef) -> Result<()>,
) -> Result<()> {
    if let Some(dictionary) = values.as_any_dictionary_opt() {
        let entries = normal(dictionary.values(), data_type)?;
        if entries.is_empty() {
            return append(&new_null_array(entries.data_type(), values.len()));
        }
        let lengths = lengths(&entries);
        let keys = dictionary.normalized_keys();
        let length = |row: usize| keys.get(row).and_then(|key| lengths.get(*key)).copied().unwrap_or(0);
        return pieces(values.len(), length, &mut |from, n| {
            append(&take(&entries, &dictionary.keys().slice(from, n), None).map_err(unfit)?)
        });
    }
    let lengths = match values.data_type() {
        DataType::LargeUtf8 | DataType::LargeBinary | DataType::Utf8View | DataType::BinaryView => {
            lengths(values)
        }
        _ => return append(&normal(values, data_type)?),
    };
    let length = |row: usize| lengths.get(row).copied().unwrap_or(0);
    pieces(values.len(), length, &mut |from, n| append(&normal(&values.slice(from, n), data_type)?))
}

/// Divides `rows` into pieces of at most [`PIECE`] bytes; a longer value is a piece by itself.
fn pieces(
    rows: usize,
    length: impl Fn(usize) -> usize,
    each: &mut dyn FnMut(usize, usize) -> Result<()>,
) -> Result<()> {
    let (mut from, mut bytes) = (0, 0usize);
    for row in 0..rows {
        let more = length(row);
        if bytes.saturating_add(more) > PIECE && row > from {
            each(from, row - from)?;
            (from, bytes) = (row, 0);
        }
        bytes = bytes.saturating_add(more);
    }
    if rows > from { each(from, rows - from) } else { Ok(()) }
}

/// The length of each value, for types of variable length.
fn lengths(values: &ArrayRef) -> Vec<usize> {
    fn of<T: AsRef<[u8]>>(values: impl Iterator<Item = Option<T>>) -> Vec<usize> {
        values.map(|value| value.map_or(0, |v| v.as_ref().len())).collect()
    }
    match values.data_type() {
        DataType::Utf8 => of(values.as_string::<i32>().iter()),
        DataType::LargeUtf8 => of(values.as_string::<i64>().iter()),
        DataType::Utf8View => of(values.as_string_view().iter()),
        DataType::Binary => of(values.as_binary::<i32>().iter()),
        DataType::LargeBinary => of(values.as_binary::<i64>().iter()),
        DataType::BinaryView => of(values.as_binary_view().iter()),
        _ => Vec::new(),
    }
}

/// Casts values to the Arrow type of the file's type; an error if a value would change.
fn normal(values: &ArrayRef, data_type: KuduType) -> Result<ArrayRef> {
    let to = match (data_type.arrow(), values.data_type()) {
        (DataType::Decimal128(..), own @ DataType::Decimal128(..)) => own.clone(),
        (own, _) => own,
    };
    if let (DataType::Timestamp(unit, _), KuduType::UnixtimeMicros) = (values.data_type(), data_type)
        && *unit != TimeUnit::Microsecond
    {
        return micros(values, *unit);
    }
    if *values.data_type() == to
        || matches!(values.data_type(), DataType::Timestamp(TimeUnit::Microsecond, _))
    {
        return Ok(values.clone());
    }
    let exact = arrow_cast::CastOptions { safe: false, ..Default::default() };
    arrow_cast::cast_with_options(values, &to, &exact).map_err(unfit)
}

/// Converts times to microseconds. It is an error if a time has finer digits or is out of range.
fn micros(values: &ArrayRef, unit: TimeUnit) -> Result<ArrayRef> {
    let exact = arrow_cast::CastOptions { safe: false, ..Default::default() };
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    let plain = arrow_cast::cast(values, &DataType::Timestamp(unit, None)).map_err(unfit)?;
    let cast = arrow_cast::cast_with_options(&plain, &micros, &exact).map_err(unfit)?;
    let back = arrow_cast::cast(&cast, plain.data_type()).map_err(unfit)?;
    if back.to_data() != plain.to_data() {
        return Err(Error::schema("expected times of whole microseconds, found finer times"));
    }
    Ok(cast)
}
