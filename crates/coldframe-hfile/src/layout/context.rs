//! Properties of all blocks that follow from the trailer and the file info.

use coldframe_encoding::Limits;

use crate::layout::cell::CellLayout;
use crate::layout::codec::{Codec, DataKey};

/// Properties of all blocks of a file.
#[derive(Clone, Debug)]
pub struct BlockContext {
    /// The major version of the format.
    pub major: u32,
    /// Whether the headers of blocks have checksum fields.
    pub with_checksums: bool,
    /// The codec that compresses the blocks.
    pub codec: Codec,
    /// The key of an encrypted file.
    pub key: Option<DataKey>,
    /// Whether checksums are verified.
    pub verify: bool,
    /// The length of the file. The memory for metadata is limited in proportion to it.
    pub(crate) file_len: u64,
    /// The limits on memory.
    pub limits: Limits,
    /// Which parts follow the values of cells.
    pub layout: CellLayout,
    /// Whether encoded blocks store tags through a dictionary.
    pub compressed_tags: bool,
}
