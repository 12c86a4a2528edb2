//! The hashes that stand for the absence of a value.

use arrow_schema::DataType;
use coldframe_core::Error;

/// Of null, of any type.
pub(super) const NULL: u64 = 0xa076_1d64_78bd_642f;
/// Of a value that the target's type cannot hold. A written value has this hash only by chance.
pub(super) const LOST: u64 = 0x1d8e_4e27_c47d_124f;
/// The error for a pair of types that does not match.
pub(super) fn mismatch(found: &DataType, target: &DataType) -> Error {
    Error::schema(format!("expected values for {target}, found {found}"))
}
