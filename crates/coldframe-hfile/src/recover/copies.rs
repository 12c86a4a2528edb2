//! Blocks that stand in a file twice, as where a disk or a copying program has written some sectors again.
//!
//! ```text
//! | data block 7 | data block 8 | data block 8 | data block 9 ..      an index would name it once
//! ```
//!
//! Whoever finds blocks by walking would give their cells twice. A header says where the block before it stood
//! (`prevBlockOffset`), so equal blocks are copies; of writers that leave it out, cells have their keys in order.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher};

use coldframe_core::{ReadAt, Result};

use crate::layout::block::Header;
use crate::layout::index::BlockRef;

/// What two copies have in common and most other blocks have not: the block before, the length.
type Look = (i64, u64);

/// The blocks that were seen.
#[derive(Default)]
pub(crate) struct Copies {
    /// The first block of each look, until its bytes have been looked at.
    first: HashMap<Look, Option<BlockRef>>,
    /// Hashes of bytes, of looks that several blocks have.
    hashes: HashSet<(Look, u64)>,
}

impl Copies {
    /// Whether a block has the same bytes as one before it.
    pub(crate) fn has(&mut self, source: &dyn ReadAt, block: BlockRef, header: &Header) -> Result<bool> {
        let look = (header.previous, header.block_len());
        match self.first.entry(look) {
            Entry::Vacant(free) => {
                free.insert(Some(block));
                return Ok(false);
            }
            Entry::Occupied(mut first) => {
                if let Some(first) = first.get_mut().take() {
                    self.hashes.insert((look, hash(source, first)?));
                }
            }
        }
        Ok(!self.hashes.insert((look, hash(source, block)?)))
    }
}

fn hash(source: &dyn ReadAt, block: BlockRef) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    hasher.write(&source.read(block.offset..block.end())?);
    Ok(hasher.finish())
}
