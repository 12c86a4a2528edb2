//! The hashes of absent values.

use arrow_schema::DataType;
use coldframe_core::Error;

/// The hash of null, of any type.
pub(super) const NULL: u64 = 0xa076_1d64_78bd_642f;
/// The hash of a value that the target's type cannot hold. A written value has this hash only by chance.
pub(super) const LOST: u64 = 0x1d8e_4e27_c47d_124f;
/// The error for a pair of types that does not match.
pub(super) fn mismatch(actual: &DataType, target: &DataType) -> Error {
    Error::schema(format!("expected values for {target}, found {actual}"))
}
