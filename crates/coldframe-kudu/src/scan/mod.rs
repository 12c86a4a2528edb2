//! The scan of a rowset: what to read, units, deltas applied; the scan of what a server had in memory.

pub(crate) mod decode;
pub(crate) mod memory;
mod patch;
pub(crate) mod plan;
pub(crate) mod source;
