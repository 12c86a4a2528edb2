//! Scans: the files and units of a rowset, applying deltas; and the rows of a server's memory.

pub(crate) mod decode;
pub(crate) mod memory;
mod patch;
pub(crate) mod plan;
pub(crate) mod source;
