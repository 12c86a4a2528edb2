//! Converts arrays to the types that are written.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, make_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field};
use coldframe_encoding::{Error, Result};

/// `array` cast to `target`, except that maps stay maps. A value that does not fit is an error.
pub(super) fn prepare(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let target = striped(array.data_type(), target);
    if array.data_type().equals_datatype(&target) {
        return Ok(array.clone());
    }
    let exactly = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, &target, &exactly)
        .map_err(|e| Error::schema(format!("values of {} as {target}: {e}", array.data_type())))
}

/// The length of the longest value that an array may have several times. It is needed because the size of a
/// dictionary, of runs or of views does not show the size of their values.
pub(super) fn longest_repeated(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Dictionary(..) => array.as_any_dictionary_opt().map_or(0, |d| longest(d.values())),
        DataType::RunEndEncoded(..) => {
            array.to_data().child_data().last().map_or(0, |values| longest(&make_array(values.clone())))
        }
        DataType::Utf8View | DataType::BinaryView => longest(array),
        DataType::Struct(_) => array.as_struct().columns().iter().map(|c| longest_repeated(c)).sum(),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let items = list.values().len().div_ceil(list.len().max(1));
            longest_repeated(list.values()).saturating_mul(items)
        }
        _ => 0,
    }
}

/// The longest byte array in an array.
fn longest(array: &dyn Array) -> usize {
    fn of<T: OffsetSizeTrait>(offsets: &[T]) -> usize {
        let lengths = offsets.iter().zip(offsets.iter().skip(1)).map(|(from, to)| (*to - *from).as_usize());
        lengths.max().unwrap_or_default()
    }
    let views = |views: &[u128]| {
        let lengths = views.iter().map(|v| usize::try_from(v & u128::from(u32::MAX)).unwrap_or_default());
        lengths.max().unwrap_or_default()
    };
    match array.data_type() {
        DataType::Utf8 => of(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => of(array.as_string::<i64>().value_offsets()),
        DataType::Binary => of(array.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => of(array.as_binary::<i64>().value_offsets()),
        DataType::Utf8View => views(array.as_string_view().views()),
        DataType::BinaryView => views(array.as_binary_view().views()),
        _ => 0,
    }
}

/// The type of the array that is converted to levels: `target` with the names and maps of `source`.
fn striped(source: &DataType, target: &DataType) -> DataType {
    let item = |source: &Field, target: &Field| {
        let data_type = striped(source.data_type(), target.data_type());
        Arc::new(Field::new(source.name(), data_type, source.is_nullable()))
    };
    match (source, target) {
        (DataType::Map(source, sorted), DataType::List(target)) => {
            DataType::Map(item(source, target), *sorted)
        }
        (
            DataType::List(source) | DataType::LargeList(source) | DataType::FixedSizeList(source, _),
            DataType::List(target),
        ) => DataType::List(item(source, target)),
        (DataType::Struct(source), DataType::Struct(target)) => {
            DataType::Struct(source.iter().zip(target).map(|(f, t)| item(f, t)).collect())
        }
        _ => target.clone(),
    }
}
