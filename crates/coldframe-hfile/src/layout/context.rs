//! Properties of all blocks that follow from the trailer and the file info.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coldframe_core::Checksums;
use coldframe_encoding::{Error, Limits, Result};

use crate::layout::block::Header;
use crate::layout::cell::CellLayout;
use crate::layout::codec::{Codec, DataKey};
use crate::layout::index::IndexBlock;

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
    /// Whether blocks with checksums were read, and whether blocks without checksums were read.
    pub(crate) met: Arc<Met>,
}

/// The blocks of a file that were read so far: blocks of one writer agree, but each header states its own
/// checksums.
#[derive(Debug, Default)]
pub(crate) struct Met {
    summed: AtomicBool,
    unsummed: AtomicBool,
}

impl Met {
    /// Records a block with or without checksums.
    pub(crate) fn note(&self, summed: bool) {
        let flag = if summed { &self.summed } else { &self.unsummed };
        flag.store(true, Ordering::Relaxed);
    }
}

impl BlockContext {
    /// Whether checksums are compared in all blocks that were read so far.
    pub fn are_checked(&self) -> bool {
        self.verify && self.checksums() == Checksums::All
    }

    /// Which of the blocks that were read so far have checksums.
    pub(crate) fn checksums(&self) -> Checksums {
        match (self.met.summed.load(Ordering::Relaxed), self.met.unsummed.load(Ordering::Relaxed)) {
            _ if !self.with_checksums => Checksums::None,
            (_, false) => Checksums::All,
            (true, true) => Checksums::Some,
            (false, true) => Checksums::None,
        }
    }
}

impl BlockContext {
    /// Fails if the stored bytes of a block cannot have the decompressed size that its header states.
    pub(crate) fn check_raw(&self, header: &Header) -> Result<()> {
        let most = self.codec.max_expansion(header.stored);
        if header.raw as u64 <= most {
            return Ok(());
        }
        Err(Error::corrupt(format!("expected a block of at most {most} bytes, found one of {}", header.raw)))
    }

    /// Fails if the entries of an index block could take more memory than a file of this length may use.
    pub(crate) fn check_index(&self, header: &Header) -> Result<()> {
        self.check_raw(header)?;
        IndexBlock::check_size(header.raw, &self.limits, self.file_len)
    }
}
