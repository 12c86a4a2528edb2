//! Finds the ordinal of an encoded key in a file sorted by key: the only key column of a table, or an index
//! of composite keys.
//!
//! ```text
//! key ──▶ value index: the last separator at most the key ──▶ data block, decoded once ──▶ binary search ──▶ ordinal
//! ```
//!
//! If keys are requested in order, each block is read once.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::Array;
use coldframe_core::{Damage, Error, ErrorContext, Result};

use super::key::encode;
use super::walk::Step;
use crate::encoding::{binary, prefix};
use crate::layout::block::{BlockPointer, DataBlock};
use crate::layout::types::Encoding;
use crate::open::CFile;
use crate::scan::column::ColumnScan;

const VALUE_INDEX: &str = "value index";

/// Finds keys in a file.
#[derive(Debug)]
pub struct KeyFinder {
    file: Arc<CFile>,
    /// For each block, its location and the smallest key that it may have.
    index: Vec<(Vec<u8>, BlockPointer)>,
    /// The blocks of a column, from its positional index; `None` for an index of composite keys.
    located: Option<Vec<DataBlock>>,
    /// The position in `index` of the decoded block.
    current: Option<usize>,
    keys: Keys,
}

/// The keys of a block.
#[derive(Debug, Default)]
struct Keys {
    first: u64,
    /// The start of each key, and the end of the last key.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Keys {
    fn get(&self, i: usize) -> Option<&[u8]> {
        let start = if i == 0 { 0 } else { *self.ends.get(i - 1)? };
        self.bytes.get(start..*self.ends.get(i)?)
    }

    fn find(&self, key: &[u8]) -> Option<u64> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle)? < key { low = middle + 1 } else { high = middle }
        }
        (self.get(low)? == key).then(|| self.first.saturating_add(low as u64))
    }
}

impl KeyFinder {
    /// Reads the index.
    pub fn new(file: Arc<CFile>) -> Result<Self> {
        let footer = file.footer();
        let root = footer.value.ok_or_else(|| Error::corrupt("expected a value index, found none"))?;
        let mut index = Vec::new();
        let mut walk = file.walk(root).within(|| "value index")?;
        while let Some(step) = walk.step().within(|| "value index")? {
            if let Step::Block(key, pointer) = step {
                index.push((key, pointer));
            }
        }
        let located = match footer.positional {
            Some(_) => Some(file.blocks(0..footer.num_values)?),
            None => None,
        };
        drop(walk);
        Ok(Self { file, index, located, current: None, keys: Keys::default() })
    }

    /// The ordinal of a key; `None` if the file does not have it.
    pub fn find(&mut self, key: &[u8]) -> Result<Option<u64>> {
        let behind = self.index.partition_point(|(least, _)| least.as_slice() <= key);
        // The first separator may be greater than the empty key, since no value comes before that separator.
        let Some(at) = behind.checked_sub(1) else { return Ok(None) };
        if self.current != Some(at) {
            self.current = None;
            self.keys = self.block(at)?;
            self.current = Some(at);
        }
        Ok(self.keys.find(key))
    }

    /// The keys of the block with index `at`, which lie between its separator and the next separator.
    fn block(&self, at: usize) -> Result<Keys> {
        let Some((least, pointer)) = self.index.get(at) else { return Ok(Keys::default()) };
        let pointer = *pointer;
        let keys = match &self.located {
            Some(blocks) => self.column(blocks, pointer)?,
            None => self.composite(pointer).map_err(|e| e.at(pointer.offset))?,
        };
        let first = keys.get(0).unwrap_or(least);
        let last = keys.ends.len().checked_sub(1).and_then(|last| keys.get(last)).unwrap_or(least);
        let next = self.index.get(at + 1).map(|(next, _)| next.as_slice());
        // No value precedes the first separator, so it may be greater than the empty key.
        if (at > 0 && first < least.as_slice()) || next.is_some_and(|next| last > next) {
            return Err(Error::corrupt("expected keys between the separators of the index, found others")
                .at(pointer.offset)
                .within(VALUE_INDEX));
        }
        Ok(keys)
    }

    /// The damage of blocks whose keys contradict the index. A scan reports blocks that cannot be read.
    pub(crate) fn contradictions(&self) -> Result<Vec<Damage>> {
        let mut damage = Vec::new();
        for (at, (_, pointer)) in self.index.iter().enumerate() {
            match self.block(at) {
                Err(e) if e.is_damage() && e.structure().starts_with(VALUE_INDEX) => {
                    damage.push(Damage::from_error(&e, pointer.range(), Some(0)));
                }
                Err(e) if !e.is_damage() => return Err(e),
                _ => {}
            }
        }
        Ok(damage)
    }

    /// The values of a block of a key column, as keys.
    fn column(&self, blocks: &[DataBlock], pointer: BlockPointer) -> Result<Keys> {
        let at = blocks.partition_point(|b| b.pointer.offset < pointer.offset);
        let block = blocks.get(at).filter(|b| b.pointer == pointer).ok_or_else(|| {
            let e = "expected a data block of the positional index, found another block";
            Error::corrupt(e).at(pointer.offset)
        })?;
        let data_type = self.file.footer().data_type;
        let Range { start, end } = block.rows;
        let scan = ColumnScan::of_blocks(&self.file, vec![block.clone()], &data_type.arrow())?;
        let part = scan.part(start..end);
        let stored = self.file.source().read(pointer.range())?;
        let mut reader = part.open(vec![stored])?;
        let mut keys = Keys { first: start, ..Keys::default() };
        while !reader.rows().is_empty() {
            let left = reader.rows().end - reader.rows().start;
            let values = reader.read_some(usize::try_from(left).unwrap_or(usize::MAX))?;
            for i in 0..values.len() {
                let key = encode(data_type, &values, i);
                let key =
                    key.ok_or_else(|| Error::corrupt("expected a key, found null").at(pointer.offset))?;
                keys.bytes.extend(key);
                keys.ends.push(keys.bytes.len());
            }
        }
        Ok(keys)
    }

    /// Reads the keys of a block in an index of composite keys. Such a block stores its first ordinal.
    fn composite(&self, pointer: BlockPointer) -> Result<Keys> {
        let format = self.file.format();
        format.limits.block("block of an index of keys", pointer.size.into())?;
        let stored = self.file.source().read(pointer.range())?;
        let block = format.open_owned(&stored, pointer.offset)?;
        let (mut data, mut offsets) = (Vec::new(), Vec::new());
        let max_bytes = usize::try_from(format.limits.max_block_bytes).unwrap_or(usize::MAX);
        let (head, base) = match self.file.footer().encoding {
            Encoding::Prefix => (prefix::decode(&block, max_bytes, &mut data, &mut offsets)?, 0),
            Encoding::Plain => {
                let head = binary::offsets(&block, &mut offsets)?;
                let first = offsets.first().map_or(0, |o| *o as usize);
                let end = offsets.last().map_or(first, |o| *o as usize);
                data.extend_from_slice(block.get(first..end).unwrap_or_default());
                (head, first)
            }
            other => return Err(Error::unsupported(format!("{other} in an index of keys"))),
        };
        let ends = offsets.iter().skip(1).map(|o| (*o as usize).saturating_sub(base)).collect();
        Ok(Keys { first: head.ordinal.into(), ends, bytes: data })
    }
}
