//! Where the metadata of a file stands.

pub mod footer;
pub mod summary;
