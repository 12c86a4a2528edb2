//! What trailer and file info say of all blocks.

use coldframe_encoding::Limits;

use crate::layout::cell::CellLayout;
use crate::layout::codec::{Codec, DataKey};

/// What the file says of all its blocks.
#[derive(Clone, Debug)]
pub struct BlockContext {
    /// The major version.
    pub major: u32,
    /// Whether headers have checksum fields.
    pub with_checksums: bool,
    /// The codec.
    pub codec: Codec,
    /// The key of an encrypted file.
    pub key: Option<DataKey>,
    /// Whether checksums are compared.
    pub verify: bool,
    /// Bytes of the file: what metadata becomes is bounded by them.
    pub(crate) file_len: u64,
    /// Bounds.
    pub limits: Limits,
    /// What cells have behind their values.
    pub layout: CellLayout,
    /// Whether the tags of encoded blocks are by dictionary.
    pub compressed_tags: bool,
}
