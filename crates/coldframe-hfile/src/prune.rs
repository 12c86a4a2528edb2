//! Selects the blocks that may hold the requested cells, by the index and by bloom filters.

pub(crate) mod bloom;
pub(crate) mod cursor;
