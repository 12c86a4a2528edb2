//! Parses the bytes of a file into plain structs: header, record header, key. This module neither reads files
//! nor knows types.

pub(crate) mod header;
pub(crate) mod key;
pub(crate) mod row_group;

pub(crate) use header::Header;

/// Minimum distance from the end of one sync marker to the next: writers insert a marker only after this many
/// bytes.
pub(crate) const SYNC_INTERVAL: u64 = 2000;
