//! A cache of decoded blocks for look-ups, whose size in bytes is limited.
//!
//! The blocks form a ring in insertion order. Eviction passes over a block once if it has been used since the
//! last pass, and drops it the next time (the clock algorithm). So a hit only sets a flag.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use coldframe_core::{Error, Result};

use crate::layout::cell::{Cell, CellLayout};
use crate::layout::index::IndexBlock;
use crate::layout::key_prefixes::KeyPrefixes;
use crate::layout::order::RowOrder;

/// A data block prepared for searching.
#[derive(Debug)]
pub(crate) struct SearchBlock {
    /// The block's cells in plain form.
    pub bytes: Bytes,
    /// The offset of each cell.
    starts: Vec<u32>,
    layout: CellLayout,
    order: RowOrder,
    /// Prefixes of the rows for faster searches; built when the block is used for the second time. The inner
    /// `None` means that the rows are not in byte order.
    prefixes: OnceLock<Option<KeyPrefixes>>,
    /// Whether the block's rows have been compared with the index.
    proved: AtomicBool,
}

impl SearchBlock {
    /// Finds the cells of a block.
    pub(crate) fn new(bytes: Bytes, layout: CellLayout, order: RowOrder) -> Result<Self> {
        // Most cells take at least some tens of bytes.
        let mut starts = Vec::with_capacity(bytes.len() / 64);
        let mut at = 0;
        while at < bytes.len() {
            let (_, end) = layout.cell(&bytes, at)?;
            starts.push(u32::try_from(at).unwrap_or(u32::MAX)); // no block is that long
            at = end;
        }
        let (prefixes, proved) = (OnceLock::new(), AtomicBool::new(false));
        Ok(Self { bytes, starts, layout, order, prefixes, proved })
    }

    /// The number of cells.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Cell `i`.
    #[inline]
    pub(crate) fn cell(&self, i: usize) -> Result<Option<Cell<'_>>> {
        let Some(at) = self.starts.get(i) else { return Ok(None) };
        self.layout.cell(&self.bytes, *at as usize).map(|(cell, _)| Some(cell))
    }

    /// The block's first and last row.
    pub(crate) fn rows(&self) -> Option<(&[u8], &[u8])> {
        self.starts.first().zip(self.starts.last()).map(|(first, last)| (self.row(*first), self.row(*last)))
    }

    /// Compares the block's rows with what the index states: the least row of the block and, if known, of the
    /// next block.
    pub(crate) fn prove(&self, least: &[u8], next: Option<&[u8]>) -> Result<()> {
        if self.proved.load(Ordering::Relaxed) {
            return Ok(());
        }
        if let Some((first, last)) = self.rows()
            && (self.order.compare(first, least).is_lt()
                || next.is_some_and(|next| self.order.compare(last, next).is_gt()))
        {
            let to = next.map_or_else(String::new, |next| format!(" to \"{}\"", next.escape_ascii()));
            return Err(Error::corrupt(format!(
                "expected rows from \"{}\"{to}, as the index states, found \"{}\" to \"{}\" (a read of the whole file \
                 needs no index)",
                least.escape_ascii(),
                first.escape_ascii(),
                last.escape_ascii()
            )));
        }
        self.proved.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The first cell, starting at `from`, whose row is not before `row`.
    pub(crate) fn lower_bound(&self, from: usize, row: &[u8]) -> usize {
        let behind = self.starts.get(from..).unwrap_or_default();
        match self.prefixes.get() {
            Some(Some(prefixes)) => {
                prefixes.lower_bound(from, row, |i| self.starts.get(i).map_or(&[], |at| self.row(*at)))
            }
            _ => {
                let before = |at: &u32| self.order.compare(self.row(*at), row).is_lt();
                from + behind.partition_point(before)
            }
        }
    }

    /// Prepares faster searches, in a block that is used more than once.
    pub(crate) fn prepare(&self) {
        self.prefixes.get_or_init(|| {
            let rows = self.starts.iter().map(|at| self.row(*at));
            KeyPrefixes::new(rows).filter(|_| self.order == RowOrder::Bytes)
        });
    }

    /// The row of the cell at offset `at`, which has been parsed before.
    #[inline]
    fn row(&self, at: u32) -> &[u8] {
        let key = self.bytes.get((at as usize).saturating_add(8)..).unwrap_or_default();
        crate::layout::cell::row_of(key).unwrap_or_default()
    }

    fn size(&self) -> u64 {
        (self.bytes.len() as u64).saturating_add(self.starts.len() as u64 * 13)
    }
}

/// An entry of the cache.
#[derive(Clone, Debug)]
pub(crate) enum Cached {
    /// An index block.
    Index(Arc<IndexBlock>),
    /// A data block.
    Cells(Arc<SearchBlock>),
    /// The bits of a bloom filter chunk.
    Bloom(Bytes),
}

impl Cached {
    fn size(&self) -> u64 {
        128 + match self {
            Self::Index(block) => block.size(),
            Self::Cells(block) => block.size(),
            Self::Bloom(bits) => bits.len() as u64,
        }
    }
}

/// A cache of limited size in bytes, whose keys are the offsets of blocks.
#[derive(Debug)]
pub(crate) struct BlockCache {
    state: Mutex<State>,
    capacity: u64,
}

#[derive(Debug, Default)]
struct State {
    blocks: HashMap<u64, (Cached, bool)>,
    ring: VecDeque<u64>,
    bytes: u64,
}

impl BlockCache {
    /// A cache of at most `capacity` bytes.
    pub(crate) fn new(capacity: u64) -> Self {
        Self { state: Mutex::default(), capacity }
    }

    /// The block at `offset`, if it is cached.
    pub(crate) fn get(&self, offset: u64) -> Option<Cached> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (block, used) = state.blocks.get_mut(&offset)?;
        *used = true;
        Some(block.clone())
    }

    /// Adds a block. A block larger than the cache is not added.
    pub(crate) fn insert(&self, offset: u64, block: Cached) {
        let size = block.size();
        if size > self.capacity {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { blocks, ring, bytes } = &mut *state;
        match blocks.insert(offset, (block, false)) {
            Some((old, _)) => *bytes -= old.size(),
            None => ring.push_back(offset),
        }
        *bytes += size;
        while *bytes > self.capacity {
            let Some(oldest) = ring.pop_front() else { break };
            match blocks.get_mut(&oldest) {
                Some((_, used)) if *used => {
                    *used = false;
                    ring.push_back(oldest);
                }
                _ => *bytes -= blocks.remove(&oldest).map_or(0, |(old, _)| old.size()),
            }
        }
    }

    /// Bytes in use.
    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_blocks_stay_and_the_size_is_bounded() {
        let cache = BlockCache::new(128 * 4 + 400);
        let bits = |n: u8| Cached::Bloom(Bytes::from(vec![n; 100]));
        for n in 0..4 {
            cache.insert(n.into(), bits(n));
        }
        assert!(cache.get(0).is_some());
        cache.insert(4, bits(4));
        assert!(cache.get(0).is_some() && cache.get(1).is_none());
        for n in 5..100 {
            cache.insert(n.into(), bits(n));
            assert!(cache.bytes() <= 128 * 4 + 400);
        }
        cache.insert(1000, Cached::Bloom(Bytes::from(vec![0; 5000])));
        assert!(cache.get(1000).is_none());
    }
}
