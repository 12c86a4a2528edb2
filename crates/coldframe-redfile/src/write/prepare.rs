//! Arrays of other types than those that are written, as those.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field};
use coldframe_encoding::{Error, Result};

/// `array` as `target`, but that maps stay maps. A value that does not fit is an error.
pub(super) fn prepare(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let target = striped(array.data_type(), target);
    if array.data_type().equals_datatype(&target) {
        return Ok(array.clone());
    }
    let exactly = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, &target, &exactly)
        .map_err(|e| Error::schema(format!("values of {} as {target}: {e}", array.data_type())))
}

/// The type of the array that is striped: `target` with the names of `found`, and its maps.
fn striped(found: &DataType, target: &DataType) -> DataType {
    let item = |found: &Field, target: &Field| {
        let data_type = striped(found.data_type(), target.data_type());
        Arc::new(Field::new(found.name(), data_type, found.is_nullable()))
    };
    match (found, target) {
        (DataType::Map(found, sorted), DataType::List(target)) => DataType::Map(item(found, target), *sorted),
        (
            DataType::List(found) | DataType::LargeList(found) | DataType::FixedSizeList(found, _),
            DataType::List(target),
        ) => DataType::List(item(found, target)),
        (DataType::Struct(found), DataType::Struct(target)) => {
            DataType::Struct(found.iter().zip(target).map(|(f, t)| item(f, t)).collect())
        }
        _ => target.clone(),
    }
}
