//! Builds the B-tree of an index while data blocks are written.

use coldframe_core::Result;
use coldframe_encoding::varint::put_uleb128;
use prost::Message;

use crate::layout::block::BlockPointer;
use crate::layout::proto::IndexBlockTrailer;

/// An index block ends once it exceeds this size and has at least two entries.
const BLOCK_BYTES: usize = 32 << 10;

/// The current block of a level.
#[derive(Debug, Default)]
struct Level {
    entries: Vec<u8>,
    offsets: Vec<u32>,
    first: Vec<u8>,
}

impl Level {
    fn add(&mut self, key: &[u8], to: BlockPointer) {
        if self.offsets.is_empty() {
            self.first = key.to_vec();
        }
        self.offsets.push(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        put_uleb128(&mut self.entries, key.len() as u64);
        self.entries.extend_from_slice(key);
        put_uleb128(&mut self.entries, to.offset);
        put_uleb128(&mut self.entries, to.size.into());
    }

    fn is_full(&self) -> bool {
        self.entries.len() + 4 * self.offsets.len() + 16 > BLOCK_BYTES && self.offsets.len() > 1
    }

    /// Returns the block's bytes and its first key, and empties the level.
    fn finish(&mut self, leaf: bool) -> (Vec<u8>, Vec<u8>) {
        let Self { entries: mut block, offsets, first } = std::mem::take(self);
        let count = i32::try_from(offsets.len()).unwrap_or(i32::MAX);
        block.extend(offsets.iter().flat_map(|o| o.to_le_bytes()));
        let trailer =
            IndexBlockTrailer { num_entries: Some(count), block_type: Some(if leaf { 0 } else { 1 }) };
        let trailer = trailer.encode_to_vec();
        block.extend_from_slice(&trailer);
        block.extend(u32::try_from(trailer.len()).unwrap_or(0).to_le_bytes());
        (block, first)
    }
}

/// An index being built: one current block per level, leaves first.
#[derive(Debug)]
pub(super) struct IndexBuilder(Vec<Level>);

impl IndexBuilder {
    pub(super) fn new() -> Self {
        Self(vec![Level::default()])
    }

    /// Adds a data block. `put` writes a full index block and returns its location.
    pub(super) fn add(
        &mut self,
        key: &[u8],
        to: BlockPointer,
        put: &mut dyn FnMut(&[u8]) -> Result<BlockPointer>,
    ) -> Result<()> {
        let (mut key, mut to) = (key.to_vec(), to);
        for depth in 0.. {
            if depth == self.0.len() {
                self.0.push(Level::default());
            }
            let Some(level) = self.0.get_mut(depth) else { break };
            level.add(&key, to);
            if !level.is_full() {
                break;
            }
            let (block, first) = level.finish(depth == 0);
            (key, to) = (first, put(&block)?);
        }
        Ok(())
    }

    /// Writes the current blocks, the root last.
    pub(super) fn finish(
        mut self,
        put: &mut dyn FnMut(&[u8]) -> Result<BlockPointer>,
    ) -> Result<BlockPointer> {
        let mut depth = 0;
        loop {
            let last = depth + 1 >= self.0.len();
            let Some(level) = self.0.get_mut(depth) else { return put(&[]) };
            if last {
                let (block, _) = level.finish(depth == 0);
                return put(&block);
            }
            if !level.offsets.is_empty() {
                let (block, first) = level.finish(depth == 0);
                let to = put(&block)?;
                if let Some(above) = self.0.get_mut(depth + 1) {
                    above.add(&first, to);
                }
            }
            depth += 1;
        }
    }
}
