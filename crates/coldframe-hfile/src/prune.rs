//! Finds the blocks that may hold the requested cells: the index from the root down, and bloom filters.

pub(crate) mod bloom;
pub(crate) mod cursor;
