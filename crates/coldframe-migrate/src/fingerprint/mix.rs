//! Words mixed, and the hashes of what is no value.

use arrow_schema::DataType;
use coldframe_core::Error;

/// Of null, in any type.
pub(super) const NULL: u64 = 0xa076_1d64_78bd_642f;
/// Of a value that the target's type has no form for. No value that was written has it but by chance.
pub(super) const LOST: u64 = 0x1d8e_4e27_c47d_124f;
/// The finaliser of splitmix64: each bit of the result is moved by each bit of the value.
#[inline]
pub(super) fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Why these two do not go together.
pub(super) fn mismatch(found: &DataType, target: &DataType) -> Error {
    Error::schema(format!("expected values for {target}, found {found}"))
}
