//! Properties that trailer and file info set for all blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coldframe_core::Checksums;
use coldframe_encoding::Limits;

use crate::layout::cell::CellLayout;
use crate::layout::codec::{Codec, DataKey};

/// Properties of all blocks of a file.
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
    /// Whether checksums are verified.
    pub verify: bool,
    /// The length of the file. It bounds the memory of metadata.
    pub(crate) file_len: u64,
    /// The limits on memory.
    pub limits: Limits,
    /// Which parts follow the values of cells.
    pub layout: CellLayout,
    /// Whether encoded blocks store tags through a dictionary.
    pub compressed_tags: bool,
    /// Whether blocks were met that have checksums, and that have none.
    pub(crate) met: Arc<Met>,
}

/// The blocks of a file that were met so far: those of one writer agree, but a block's header says it for itself.
#[derive(Debug, Default)]
pub(crate) struct Met {
    summed: AtomicBool,
    unsummed: AtomicBool,
}

impl Met {
    /// Notes a block with checksums, or one without.
    pub(crate) fn note(&self, summed: bool) {
        let flag = if summed { &self.summed } else { &self.unsummed };
        flag.store(true, Ordering::Relaxed);
    }
}

impl BlockContext {
    /// Whether checksums are compared in all blocks that were met so far.
    pub fn are_checked(&self) -> bool {
        self.verify && self.checksums() == Checksums::All
    }

    /// Which of the blocks that were met so far have checksums.
    pub(crate) fn checksums(&self) -> Checksums {
        match (self.met.summed.load(Ordering::Relaxed), self.met.unsummed.load(Ordering::Relaxed)) {
            _ if !self.with_checksums => Checksums::None,
            (_, false) => Checksums::All,
            (true, true) => Checksums::Some,
            (false, true) => Checksums::None,
        }
    }
}
