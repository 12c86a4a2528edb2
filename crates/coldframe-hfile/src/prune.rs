//! Selects the blocks that may hold the requested cells, using the index and bloom filters.

pub(crate) mod bloom;
pub(crate) mod cursor;
pub(crate) mod prove;
