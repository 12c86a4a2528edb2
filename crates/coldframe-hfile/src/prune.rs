//! Which blocks may hold what is asked for: the index from the root down, bloom filters.

pub(crate) mod bloom;
pub(crate) mod cursor;
