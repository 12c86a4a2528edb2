//! Which data blocks hold a range of ordinals, or of keys.

use std::ops::Range;

use coldframe_core::{Error, ErrorContext, Result};

use super::walk::{IndexWalk, Step};
use crate::layout::block::BlockPointer;
use crate::open::CFile;

/// A data block and the ordinals it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataBlock {
    /// Where it stands.
    pub pointer: BlockPointer,
    /// Its ordinals.
    pub rows: Range<u64>,
}

impl DataBlock {
    /// Its name in errors.
    pub fn name(&self) -> String {
        format!("data block of ordinals {}..{}", self.rows.start, self.rows.end)
    }
}

/// Ordinals that no block gives.
#[derive(Clone, Debug)]
pub struct Lost {
    /// The ordinals.
    pub rows: Range<u64>,
    /// The bytes given up.
    pub bytes: Range<u64>,
    /// What was being read.
    pub structure: String,
    /// Why it cannot be.
    pub reason: String,
}

impl CFile {
    /// A walk over an index.
    pub fn walk(&self, root: BlockPointer) -> Result<IndexWalk<'_>> {
        IndexWalk::new(self.source().as_ref(), *self.format(), root, self.blocks_end())
    }

    /// The blocks that hold `rows`, by the positional index.
    pub fn blocks(&self, rows: Range<u64>) -> Result<Vec<DataBlock>> {
        self.find_blocks(rows, None)
    }

    /// The blocks that hold `rows` and can be found; what cannot goes to `lost`.
    pub fn blocks_lossy(&self, rows: Range<u64>, lost: &mut Vec<Lost>) -> Result<Vec<DataBlock>> {
        match self.find_blocks(rows.clone(), Some(lost)) {
            Err(e) if e.is_damage() => {
                let whole = 0..self.blocks_end();
                let (structure, reason) = (e.structure(), e.reason());
                lost.push(Lost { rows, bytes: whole, structure, reason });
                Ok(Vec::new())
            }
            other => other,
        }
    }

    fn find_blocks(&self, rows: Range<u64>, mut lost: Option<&mut Vec<Lost>>) -> Result<Vec<DataBlock>> {
        let all = self.footer().num_values;
        let rows = rows.start..rows.end.min(all);
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let root = self.footer().positional.ok_or_else(|| {
            Error::unsupported(
                "ordinals of a CFile without a positional index (an index, bloom or delta file)",
            )
        })?;
        let name = || "positional index";
        let mut walk = self.walk(root).within(name)?;
        if lost.is_some() {
            walk = walk.lossy();
        }
        if rows.start > 0 {
            let key = u32::try_from(rows.start).unwrap_or(u32::MAX).to_be_bytes();
            walk.seek(&key).within(name)?;
        }
        let mut steps: Vec<(u64, Step)> = Vec::new();
        let mut end = all;
        while let Some(step) = walk.step().within(name)? {
            let (Step::Block(key, _) | Step::Lost { key, .. }) = &step;
            let first = ordinal(key).within(name)?;
            let expected = match steps.last() {
                Some((previous, _)) => *previous + 1..all,
                None => 0..rows.start + 1,
            };
            if !expected.contains(&first) {
                let e = format!("expected an ordinal of {}..{}, found {first}", expected.start, expected.end);
                return Err(Error::corrupt(e).at(root.offset).within("positional index"));
            }
            if first >= rows.end {
                end = first;
                break;
            }
            steps.push((first, step));
        }
        let ends: Vec<u64> = steps.iter().skip(1).map(|(first, _)| *first).chain([end]).collect();
        let mut blocks = Vec::with_capacity(steps.len());
        for ((first, step), end) in steps.into_iter().zip(ends) {
            match step {
                Step::Block(_, pointer) => {
                    self.format().limits.unit_rows("data block", end - first)?;
                    blocks.push(DataBlock { pointer, rows: first..end });
                }
                Step::Lost { bytes, error, .. } => {
                    if let Some(lost) = lost.as_deref_mut() {
                        let rows = first.max(rows.start)..end.min(rows.end);
                        let structure = "positional index".to_owned();
                        lost.push(Lost { rows, bytes, structure, reason: error });
                    }
                }
            }
        }
        Ok(blocks)
    }

    /// All data blocks by the value index, for files without a positional one: delta files, indexes, blooms.
    pub fn blocks_by_value(&self) -> Result<Vec<BlockPointer>> {
        let name = || "value index";
        let root = self.footer().value.ok_or_else(|| Error::unsupported("a CFile without an index"))?;
        let mut walk = self.walk(root).within(name)?;
        let mut blocks = Vec::new();
        while let Some(step) = walk.step().within(name)? {
            if let Step::Block(_, pointer) = step {
                blocks.push(pointer);
            }
        }
        Ok(blocks)
    }

    /// The ordinals of the blocks that may hold values whose keys are `lower` or more and less than `upper`, by the
    /// value index; all ordinals where the file has none.
    pub fn rows_between(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<Range<u64>> {
        let all = 0..self.footer().num_values;
        let Some(root) = self.footer().value.filter(|_| self.footer().positional.is_some()) else {
            return Ok(all);
        };
        let name = || "value index";
        let mut walk = self.walk(root).within(name)?;
        if let Some(lower) = lower {
            // Equal values may begin in the block before the separator that equals them: there is no such block, since
            // a separator is more than all values before it.
            walk.seek(lower).within(name)?;
        }
        let (mut first, mut behind) = (None, None);
        while let Some(step) = walk.step().within(name)? {
            let Step::Block(key, pointer) = step else { continue };
            if first.is_some() && upper.is_some_and(|upper| key.as_slice() >= upper) {
                behind = Some(pointer.offset);
                break;
            }
            first.get_or_insert(pointer.offset);
            if upper.is_none() {
                break;
            }
        }
        let Some(first) = first else { return Ok(0..0) };
        let blocks = self.blocks(all.clone())?;
        let at = |offset: u64| blocks.iter().find(|b| b.pointer.offset >= offset).map(|b| b.rows.start);
        let start = at(first).unwrap_or(all.end);
        let end = behind.and_then(at).unwrap_or(all.end);
        Ok(start..end.max(start))
    }
}

/// The ordinal that a key of the positional index is.
fn ordinal(key: &[u8]) -> Result<u64> {
    let bytes = <[u8; 4]>::try_from(key)
        .map_err(|_| Error::corrupt(format!("expected an ordinal of 4 bytes, found {}", key.len())))?;
    Ok(u32::from_be_bytes(bytes).into())
}
