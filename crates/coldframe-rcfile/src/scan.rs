//! Scans the row groups of a byte range, and decodes their columns to Arrow.

pub(crate) mod columns;
mod decode;
pub(crate) mod plan;
pub(crate) mod scout;
