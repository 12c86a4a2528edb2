//! Hive's type `char(n)`, which Arrow does not have: a column of text is marked as one whose trailing blanks
//! do not count.

use arrow_schema::Field;

/// The key in a field's metadata for its Hive type (`char(4)`), if the Arrow type does not imply it.
pub const HIVE_TYPE: &str = "hive.type";

/// Marks a column of text as `char(length)`.
#[must_use]
pub fn char_field(field: Field, length: u32) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(HIVE_TYPE.to_owned(), format!("char({length})"));
    field.with_metadata(metadata)
}

/// Whether a column has the type `char`.
#[must_use]
pub fn is_char(field: &Field) -> bool {
    field.metadata().get(HIVE_TYPE).is_some_and(|kind| kind.starts_with("char("))
}
