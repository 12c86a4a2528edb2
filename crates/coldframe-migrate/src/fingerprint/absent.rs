//! The hashes of what is no value.

use arrow_schema::DataType;
use coldframe_core::Error;

/// Of null, in any type.
pub(super) const NULL: u64 = 0xa076_1d64_78bd_642f;
/// Of a value that the target's type has no form for. No value that was written has it but by chance.
pub(super) const LOST: u64 = 0x1d8e_4e27_c47d_124f;
/// Why these two do not go together.
pub(super) fn mismatch(found: &DataType, target: &DataType) -> Error {
    Error::schema(format!("expected values for {target}, found {found}"))
}
