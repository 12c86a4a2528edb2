//! A scan: the row groups of a byte range, and their columns as Arrow.

pub(crate) mod columns;
mod decode;
pub(crate) mod plan;
pub(crate) mod scout;
