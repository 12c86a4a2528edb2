//! The frame around a footer's metadata.
//!
//! ```text
//! file | RED1 | row group ... | FileMetaData | length u32 LE | RED1 |
//! ```

/// The magic bytes.
pub(crate) const MAGIC: &[u8; 4] = b"RED1";
/// The length of the bytes after the metadata: the length of the metadata, and the magic bytes.
pub(crate) const FRAME_LEN: u64 = 8;
/// The metadata key that names the sync marker before each footer of a file.
pub(crate) const SYNC_KEY: &str = "coldframe.sync";
