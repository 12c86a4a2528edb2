//! The bytes of a file as plain structs: header, record header, key. Nothing here reads a file or knows a type.

pub mod header;
pub(crate) mod key;
pub(crate) mod row_group;

pub use header::Header;

/// Distance from the end of one sync marker after which writers insert the next.
pub(crate) const SYNC_INTERVAL: u64 = 2000;
