//! Detects blocks that occur in a file twice, because a disk or a copying program wrote some sectors again.
//!
//! ```text
//! | data block 7 | data block 8 | data block 8 | data block 9 ..      an index would name it once
//! ```
//!
//! A walk over the blocks would return their cells twice. A header states the offset of the previous block
//! (`prevBlockOffset`), so equal blocks are copies. If the writer omits that offset, equal blocks are still
//! copies, because cells are sorted by key.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher};

use coldframe_core::{ReadAt, Result};

use crate::layout::block::Header;
use crate::layout::index::BlockRef;

/// The properties that copies share and most other blocks do not: the offset of the previous block, and the
/// length.
type CopyKey = (i64, u64);

/// The blocks seen so far.
#[derive(Default)]
pub(crate) struct Copies {
    /// The first block with each key; `None` once its bytes have been hashed.
    first: HashMap<CopyKey, Option<BlockRef>>,
    /// Hashes of the bytes of blocks, for keys that occur in several blocks.
    hashes: HashSet<(CopyKey, u64)>,
}

impl Copies {
    /// Whether a block has the same bytes as an earlier block.
    pub(crate) fn has(&mut self, source: &dyn ReadAt, block: BlockRef, header: &Header) -> Result<bool> {
        let key = (header.previous, header.block_len());
        match self.first.entry(key) {
            Entry::Vacant(free) => {
                free.insert(Some(block));
                return Ok(false);
            }
            Entry::Occupied(mut first) => {
                if let Some(first) = first.get_mut().take() {
                    self.hashes.insert((key, hash(source, first)?));
                }
            }
        }
        Ok(!self.hashes.insert((key, hash(source, block)?)))
    }
}

fn hash(source: &dyn ReadAt, block: BlockRef) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    hasher.write(&source.read(block.offset..block.end())?);
    Ok(hasher.finish())
}
