//! The types of cells, as in HBase's `KeyValue.Type`.

/// A value is stored.
pub const PUT: u8 = 4;
/// Deletes the cell with exactly this timestamp.
pub const DELETE: u8 = 8;
/// Deletes a family's cells with exactly this timestamp.
pub const DELETE_FAMILY_VERSION: u8 = 10;
/// Deletes a column's cells up to this timestamp.
pub const DELETE_COLUMN: u8 = 12;
/// Deletes a family's cells up to this timestamp.
pub const DELETE_FAMILY: u8 = 14;

/// The name of a type.
pub fn type_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0 => "Minimum",
        PUT => "Put",
        DELETE => "Delete",
        DELETE_FAMILY_VERSION => "DeleteFamilyVersion",
        DELETE_COLUMN => "DeleteColumn",
        DELETE_FAMILY => "DeleteFamily",
        255 => "Maximum",
        _ => return None,
    })
}
