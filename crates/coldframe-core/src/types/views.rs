//! Converts the types of strings and binary values between Arrow's views and the plain layout.
//!
//! ```text
//! plain   offsets | 0 | 3 | 22 |          bytes   | o n e s e v e n t e e n ... |
//! view    | 3 | o n e |                           a value of at most 12 bytes is in its view
//!         | 19 | s e v e | block 0 | byte 1234 |  a longer value lies in any block
//! ```
//!
//! This applies to columns and to values inside structs, lists and maps; dictionaries and unions are
//! unchanged.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use crate::options::Strings;

/// The columns of `schema` with strings and binary values in this layout.
pub fn laid_out(schema: &SchemaRef, strings: Strings) -> SchemaRef {
    let leaf = match strings {
        Strings::Plain => plain,
        Strings::View => view,
    };
    match of_fields(schema.fields(), leaf) {
        Some(fields) => Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
        None => schema.clone(),
    }
}

/// The field with views; `None` if the field has no plain strings or binary values.
pub(crate) fn with_views(field: &FieldRef) -> Option<FieldRef> {
    of_field(field, view)
}

/// The field without views; `None` if the field has no views.
pub fn without_views(field: &FieldRef) -> Option<FieldRef> {
    of_field(field, plain)
}

/// The layout that a consumer with this schema wants: views if any column has views, else plain if any column
/// has strings or binary values, else `None`.
pub fn asked(schema: &Schema) -> Option<Strings> {
    let has = |leaf| of_fields(schema.fields(), leaf).is_some();
    if has(plain) { Some(Strings::View) } else { has(view).then_some(Strings::Plain) }
}

/// The view for a plain type.
pub fn view(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 => Some(DataType::Utf8View),
        DataType::Binary | DataType::LargeBinary => Some(DataType::BinaryView),
        _ => None,
    }
}

/// The plain type for a view.
fn plain(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Utf8View => Some(DataType::Utf8),
        DataType::BinaryView => Some(DataType::Binary),
        _ => None,
    }
}

type Leaf = fn(&DataType) -> Option<DataType>;

/// The fields with the types that `leaf` returns. `None` if `leaf` returns `None` for all fields.
fn of_fields(fields: &Fields, leaf: Leaf) -> Option<Fields> {
    let made: Vec<Option<FieldRef>> = fields.iter().map(|field| of_field(field, leaf)).collect();
    if made.iter().all(Option::is_none) {
        return None;
    }
    Some(made.into_iter().zip(fields).map(|(made, field)| made.unwrap_or_else(|| field.clone())).collect())
}

fn of_field(field: &FieldRef, leaf: Leaf) -> Option<FieldRef> {
    let kind = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(of_fields(fields, leaf)?),
        DataType::List(item) => DataType::List(of_field(item, leaf)?),
        DataType::LargeList(item) => DataType::LargeList(of_field(item, leaf)?),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(of_field(item, leaf)?, *length),
        DataType::Map(entries, sorted) => DataType::Map(of_field(entries, leaf)?, *sorted),
        kind => leaf(kind)?,
    };
    Some(Arc::new(Field::clone(field).with_data_type(kind)))
}
