//! The scan of a rowset: what to read, units, deltas applied.

pub(crate) mod decode;
mod patch;
pub(crate) mod plan;
mod source;
