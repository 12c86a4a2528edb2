//! The types of cells.

/// A value.
pub(crate) const PUT: u8 = 4;
/// Deletes the cell of exactly this time.
pub(crate) const DELETE: u8 = 8;
/// Deletes a family's cells of exactly this time.
pub(crate) const DELETE_FAMILY_VERSION: u8 = 10;
/// Deletes a column's cells of this time and before.
pub(crate) const DELETE_COLUMN: u8 = 12;
/// Deletes a family's cells of this time and before.
pub(crate) const DELETE_FAMILY: u8 = 14;
