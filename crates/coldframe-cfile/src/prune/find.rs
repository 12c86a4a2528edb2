//! Finds the ordinal of an encoded key in a file sorted by key: the only key column of a table, or an index
//! of composite keys.
//!
//! ```text
//! key ──▶ value index: the last separator at most the key ──▶ data block, decoded once ──▶ binary search ──▶ ordinal
//! ```
//!
//! If keys are requested in order, each block is read once.
//!
//! What the value index says of a range is compared with the keys of the blocks at both ends: a row before the range
//! must have a smaller key, and a row behind it none of the range. Keys are sorted, so that proves the range.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::Array;
use bytes::Bytes;
use coldframe_core::{Damage, Error, ErrorContext, Result};
use coldframe_encoding::Cursor;

use super::key::encode;
use super::walk::Step;
use crate::encoding::{binary, prefix};
use crate::layout::block::{BlockPointer, DataBlock};
use crate::layout::types::Encoding;
use crate::open::CFile;
use crate::scan::column::ColumnScan;

/// The structure of errors for statements of the value index that the keys contradict.
pub const VALUE_INDEX: &str = "value index";

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

    fn last(&self) -> Option<&[u8]> {
        self.ends.len().checked_sub(1).and_then(|last| self.get(last))
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

    /// The ordinals from the block that may hold the smallest key to the block that may hold the largest. If the value
    /// index contradicts the keys there, the error's structure begins with "value index": the range must then be
    /// searched for in all rows.
    pub fn rows_between(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<Range<u64>> {
        let all = self.file.footer().num_values;
        // No value before a separator equals it, so values that equal the lower bound begin in its block or later.
        let behind = |key: &[u8]| self.index.partition_point(|(least, _)| least.as_slice() <= key);
        let first = lower.map_or(0, |lower| behind(lower).saturating_sub(1));
        let until = upper.map_or(self.index.len(), |upper| {
            self.index.partition_point(|(least, _)| least.as_slice() < upper).max(first + 1)
        });
        let start = if lower.is_none() { 0 } else { self.start_of(first)?.unwrap_or(all) };
        let end = self.start_of(until)?.unwrap_or(all);
        if start > end {
            return Err(self.lie(until));
        }
        if let (Some(lower), Some(before)) = (lower, start.checked_sub(1))
            && self.key_of(before, first.saturating_sub(1))?.as_slice() >= lower
        {
            return Err(self.lie(first));
        }
        if let Some(upper) = upper
            && end < all
            && self.key_of(end, until)?.as_slice() < upper
        {
            return Err(self.lie(until));
        }
        Ok(start..end)
    }

    /// The first ordinal of the block with index `at`; `None` if there is no such block.
    fn start_of(&self, at: usize) -> Result<Option<u64>> {
        let Some((_, pointer)) = self.index.get(at) else { return Ok(None) };
        let Some(blocks) = &self.located else {
            let block = self.contents(*pointer)?;
            let [_, ordinal, _, _] = Cursor::new(&block, pointer.offset).group_varint()?;
            return Ok(Some(ordinal.into()));
        };
        let block = located(blocks, *pointer).ok_or_else(|| self.lie(at))?;
        Ok(Some(block.rows.start))
    }

    /// The key of a row, which in an index of composite keys is in the block with index `at`.
    fn key_of(&self, row: u64, at: usize) -> Result<Vec<u8>> {
        let key = match &self.located {
            Some(blocks) => {
                let block = blocks.iter().find(|block| block.rows.contains(&row));
                self.keys_of(block.ok_or_else(|| self.lie(at))?, row..row + 1)?.get(0).map(<[u8]>::to_vec)
            }
            None => {
                let (_, pointer) = self.index.get(at).ok_or_else(|| self.lie(at))?;
                let keys = self.composite(*pointer)?;
                let place = row.checked_sub(keys.first).and_then(|place| usize::try_from(place).ok());
                place.and_then(|place| keys.get(place)).map(<[u8]>::to_vec)
            }
        };
        key.ok_or_else(|| self.lie(at))
    }

    fn lie(&self, at: usize) -> Error {
        let offset = self.index.get(at).or(self.index.last()).map_or(0, |(_, pointer)| pointer.offset);
        Error::corrupt("expected keys between the separators of the index, found others")
            .at(offset)
            .within(VALUE_INDEX)
    }

    /// The ordinal of a key; `None` if the file does not have it. If the index contradicts the keys, all blocks are read
    /// once, for an index that is right.
    pub fn find(&mut self, key: &[u8]) -> Result<Option<u64>> {
        match self.find_by_index(key) {
            Err(e) if e.is_damage() && e.structure().starts_with(VALUE_INDEX) => {
                self.reindex()?;
                self.find_by_index(key)
            }
            other => other,
        }
    }

    /// Replaces the index by the first key of each block.
    fn reindex(&mut self) -> Result<()> {
        let pointers: Vec<BlockPointer> = match &self.located {
            Some(blocks) => blocks.iter().map(|block| block.pointer).collect(),
            None => self.index.iter().map(|(_, pointer)| *pointer).collect(),
        };
        let mut index = Vec::with_capacity(pointers.len());
        let mut last: Option<Vec<u8>> = None;
        for (at, pointer) in pointers.into_iter().enumerate() {
            let keys = self.keys(pointer)?;
            let Some(first) = keys.get(0).map(<[u8]>::to_vec) else { continue };
            if last.is_some_and(|last| last > first) {
                return Err(self.lie(at));
            }
            last = keys.last().map(<[u8]>::to_vec);
            index.push((first, pointer));
        }
        (self.index, self.current) = (index, None);
        Ok(())
    }

    fn find_by_index(&mut self, key: &[u8]) -> Result<Option<u64>> {
        let behind = self.index.partition_point(|(least, _)| least.as_slice() <= key);
        // The first separator may be greater than the empty key, since no value comes before that separator.
        let Some(at) = behind.checked_sub(1) else { return Ok(None) };
        if self.current != Some(at) {
            self.current = None;
            self.keys = self.block(at)?;
            self.current = Some(at);
        }
        let place = self.keys.find(key);
        if place.is_none() {
            self.prove_absent(key, at)?;
        }
        Ok(place)
    }

    /// Fails if a block beside the one with index `at` may have a key that this block does not have.
    fn prove_absent(&self, key: &[u8], at: usize) -> Result<()> {
        let is_before = self.keys.get(0).is_some_and(|first| key < first);
        let is_behind = self.keys.last().is_some_and(|last| last < key);
        let beside = match at.checked_sub(1) {
            Some(before) if is_before => before,
            _ if is_behind && at + 1 < self.index.len() => at + 1,
            _ => return Ok(()),
        };
        match self.block(beside)?.find(key) {
            Some(_) => Err(self.lie(beside)),
            None => Ok(()),
        }
    }

    /// The keys of the block with index `at`, which lie between its separator and the next separator.
    fn block(&self, at: usize) -> Result<Keys> {
        let Some((least, pointer)) = self.index.get(at) else { return Ok(Keys::default()) };
        let keys = self.keys(*pointer)?;
        let first = keys.get(0).unwrap_or(least);
        let last = keys.last().unwrap_or(least);
        let next = self.index.get(at + 1).map(|(next, _)| next.as_slice());
        // No value precedes the first separator, so it may be greater than the empty key.
        if (at > 0 && first < least.as_slice()) || next.is_some_and(|next| last > next) {
            return Err(self.lie(at));
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

    /// The keys of a block.
    fn keys(&self, pointer: BlockPointer) -> Result<Keys> {
        match &self.located {
            Some(blocks) => self.column(blocks, pointer),
            None => self.composite(pointer).map_err(|e| e.at(pointer.offset)),
        }
    }

    /// The values of a block of a key column, as keys.
    fn column(&self, blocks: &[DataBlock], pointer: BlockPointer) -> Result<Keys> {
        let block = located(blocks, pointer).ok_or_else(|| {
            let e = "expected a data block of the positional index, found another block";
            Error::corrupt(e).at(pointer.offset)
        })?;
        self.keys_of(block, block.rows.clone())
    }

    /// The values of some rows of a block of a key column, as keys.
    fn keys_of(&self, block: &DataBlock, rows: Range<u64>) -> Result<Keys> {
        let pointer = block.pointer;
        let data_type = self.file.footer().data_type;
        let scan = ColumnScan::of_blocks(&self.file, vec![block.clone()], &data_type.arrow())?;
        let mut keys = Keys { first: rows.start, ..Keys::default() };
        let stored = self.file.source().read(pointer.range())?;
        let mut reader = scan.part(rows).open(vec![stored])?;
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

    /// The contents of a block of an index of composite keys.
    fn contents(&self, pointer: BlockPointer) -> Result<Bytes> {
        let format = self.file.format();
        format.limits.block("block of an index of keys", pointer.size.into())?;
        let stored = self.file.source().read(pointer.range())?;
        format.open_owned(&stored, pointer.offset)
    }

    /// Reads the keys of a block in an index of composite keys. Such a block stores its first ordinal.
    fn composite(&self, pointer: BlockPointer) -> Result<Keys> {
        let (format, block) = (self.file.format(), self.contents(pointer)?);
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

/// The block of a positional index that another index points to.
fn located(blocks: &[DataBlock], pointer: BlockPointer) -> Option<&DataBlock> {
    let at = blocks.partition_point(|block| block.pointer.offset < pointer.offset);
    blocks.get(at).filter(|block| block.pointer == pointer)
}
