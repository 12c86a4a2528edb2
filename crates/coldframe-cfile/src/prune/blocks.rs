//! Finds the data blocks for a range of ordinals or of keys.

use std::ops::Range;

use coldframe_core::salvage::Loss;
use coldframe_core::{Error, ErrorContext, Result};

use super::walk::{IndexWalk, Step};
use crate::layout::block::{BlockPointer, DataBlock};
use crate::open::{CFile, Located};

/// The name of the index in errors.
const POSITIONAL: &str = "positional index";
const VALUE_INDEX: &str = "value index";

impl CFile {
    /// Starts a walk over an index.
    pub fn walk(&self, root: BlockPointer) -> Result<IndexWalk<'_>> {
        IndexWalk::new(self.source().as_ref(), *self.format(), root, self.blocks_end())
    }

    fn positional_root(&self) -> Result<BlockPointer> {
        let what = "ordinals of a CFile without a positional index (an index, bloom or delta file)";
        self.footer().positional.ok_or_else(|| Error::unsupported(what))
    }

    /// The blocks that hold `rows`, from the positional index.
    pub fn blocks(&self, rows: Range<u64>) -> Result<Vec<DataBlock>> {
        let all = self.footer().num_values;
        let rows = rows.start..rows.end.min(all);
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        self.blocks_in(rows, all).within(|| POSITIONAL)
    }

    fn blocks_in(&self, rows: Range<u64>, all: u64) -> Result<Vec<DataBlock>> {
        let root = self.positional_root()?;
        let mut walk = self.walk(root)?;
        if rows.start > 0 {
            let key = u32::try_from(rows.start).unwrap_or(u32::MAX).to_be_bytes();
            walk.seek(&key)?;
        }
        let mut blocks: Vec<DataBlock> = Vec::new();
        let mut end = all;
        while let Some(step) = walk.step()? {
            let Step::Block(key, pointer) = step else { continue };
            let first = ordinal(&key)?;
            let expected = match blocks.last() {
                Some(last) => last.rows.start + 1..all,
                None => 0..rows.start + 1,
            };
            if !expected.contains(&first) {
                let e = format!("expected an ordinal in {}..{}, found {first}", expected.start, expected.end);
                return Err(Error::corrupt(e).at(root.offset));
            }
            if let Some(last) = blocks.last_mut() {
                last.rows.end = first;
            }
            if first >= rows.end {
                end = first;
                break;
            }
            blocks.push(DataBlock { pointer, rows: first..all });
        }
        if let Some(last) = blocks.last_mut() {
            last.rows.end = end;
        }
        for block in &blocks {
            block.row_count()?;
        }
        Ok(blocks)
    }

    /// The blocks of `rows` that the index lists; rows for which no block can be found are added to `lost`.
    /// Losses do not depend on the requested rows: the whole index is walked, once per open file.
    pub fn blocks_lossy(&self, rows: Range<u64>, lost: &mut Vec<Loss>) -> Result<Vec<DataBlock>> {
        let located = self.located(|| self.locate_all())?;
        let clipped = |all: &Range<u64>| all.start.max(rows.start)..all.end.min(rows.end);
        for loss in &located.lost {
            let rows = clipped(&loss.rows);
            if !rows.is_empty() {
                lost.push(Loss { rows, ..loss.clone() });
            }
        }
        let from = located.blocks.partition_point(|b| b.rows.end <= rows.start);
        let to = located.blocks.partition_point(|b| b.rows.start < rows.end);
        Ok(located.blocks.get(from..to.max(from)).unwrap_or_default().to_vec())
    }

    fn locate_all(&self) -> Result<Located> {
        let all = self.footer().num_values;
        let mut located = Located::default();
        if all == 0 {
            return Ok(located);
        }
        match self.locate(all, &mut located).within(|| POSITIONAL) {
            Err(e) if e.is_damage() => {
                let lost = vec![Loss::from_error(&e, 0..self.blocks_end(), 0..all)];
                Ok(Located { blocks: Vec::new(), lost })
            }
            other => other.map(|()| located),
        }
    }

    /// Each step of the index begins at the ordinal at which the previous step ends. If the ordinal of a step
    /// is unknown, or not greater than the previous ordinal, it is also unknown where the previous step ends:
    /// both steps are lost.
    fn locate(&self, all: u64, located: &mut Located) -> Result<()> {
        let mut walk = self.walk(self.positional_root()?)?.lossy();
        let mut spans = Spans { located, all, open: None };
        while let Some(step) = walk.step()? {
            match step {
                Step::Index { .. } => {}
                Step::Block(key, pointer) => match ordinal(&key) {
                    Ok(first) => spans.begin(Some(first), Span::Block(pointer)),
                    Err(e) => spans.begin(None, Span::Lost(pointer.range(), e.reason())),
                },
                Step::Lost { key, bytes, error } => {
                    let first = key.and_then(|key| ordinal(&key).ok());
                    spans.begin(first, Span::Lost(bytes, error));
                }
            }
        }
        spans.finish();
        for block in &located.blocks {
            block.row_count()?;
        }
        Ok(())
    }

    /// All data blocks of the value index, for files without a positional index: delta files, indexes, bloom files.
    pub fn blocks_by_value(&self) -> Result<Vec<BlockPointer>> {
        let mut blocks = Vec::new();
        self.each_by_value(false, |step| {
            if let Step::Block(_, pointer) = step {
                blocks.push(pointer);
            }
        })?;
        Ok(blocks)
    }

    /// The same for an index that may be damaged; parts that cannot be read are added to `lost`, with an
    /// unknown number of rows.
    pub(crate) fn blocks_by_value_lossy(&self, lost: &mut Vec<Loss>) -> Result<Vec<BlockPointer>> {
        let mut blocks = Vec::new();
        let done = self.each_by_value(true, |step| match step {
            Step::Block(_, pointer) => blocks.push(pointer),
            Step::Lost { bytes, error, .. } if lost.last().is_none_or(|l: &Loss| l.bytes != bytes) => {
                lost.push(Loss { rows: 0..0, bytes, structure: VALUE_INDEX.to_owned(), reason: error });
            }
            _ => {}
        });
        match done {
            Err(e) if e.is_damage() => lost.push(Loss::from_error(&e, 0..self.blocks_end(), 0..0)),
            other => other?,
        }
        Ok(blocks)
    }

    fn each_by_value(&self, lossy: bool, mut visit: impl FnMut(Step)) -> Result<()> {
        let name = || VALUE_INDEX;
        let root = self.footer().value.ok_or_else(|| Error::unsupported("a CFile without a value index"))?;
        let mut walk = self.walk(root).within(name)?;
        if lossy {
            walk = walk.lossy();
        }
        while let Some(step) = walk.step().within(name)? {
            visit(step);
        }
        Ok(())
    }

    /// The ordinals of the blocks that may hold values with keys from `lower` (included) to `upper`
    /// (excluded), according to the value index; all ordinals if the file has no value index.
    pub fn rows_between(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<Range<u64>> {
        let all = 0..self.footer().num_values;
        let Some(root) = self.footer().value.filter(|_| self.footer().positional.is_some()) else {
            return Ok(all);
        };
        let name = || "value index";
        let mut walk = self.walk(root).within(name)?;
        if let Some(lower) = lower {
            // A separator is greater than all values before it, so values that equal it cannot begin in an earlier block.
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

/// The ordinal in a key of the positional index.
fn ordinal(key: &[u8]) -> Result<u64> {
    let bytes = <[u8; 4]>::try_from(key)
        .map_err(|_| Error::corrupt(format!("expected an ordinal of 4 bytes, found {}", key.len())))?;
    Ok(u32::from_be_bytes(bytes).into())
}

/// What is known about a range of ordinals.
enum Span {
    Block(BlockPointer),
    Lost(Range<u64>, String),
}

/// Turns index steps into blocks and losses.
struct Spans<'a> {
    located: &'a mut Located,
    all: u64,
    open: Option<(u64, Span)>,
}

impl Spans<'_> {
    fn begin(&mut self, first: Option<u64>, span: Span) {
        let least = self.open.as_ref().map_or(0, |(first, _)| first + 1);
        match (first.filter(|first| (least..self.all).contains(first)), &mut self.open) {
            (Some(first), _) => {
                self.close(first);
                self.open = Some((first, span));
            }
            (None, Some((_, open))) => {
                if let Span::Block(pointer) = open {
                    *open = match span {
                        Span::Lost(bytes, reason) => Span::Lost(bytes, reason),
                        Span::Block(_) => Span::Lost(
                            pointer.range(),
                            "expected ascending ordinals, found a smaller ordinal".to_owned(),
                        ),
                    };
                }
            }
            // This is before the first block whose ordinal is known.
            (None, None) => {
                let lost = match span {
                    Span::Lost(bytes, reason) => Span::Lost(bytes, reason),
                    Span::Block(to) => {
                        Span::Lost(to.range(), "expected an ordinal below the number of values".to_owned())
                    }
                };
                self.open = Some((0, lost));
            }
        }
    }

    fn close(&mut self, end: u64) {
        match self.open.take() {
            Some((first, Span::Block(pointer))) => {
                self.located.blocks.push(DataBlock { pointer, rows: first..end });
            }
            Some((first, Span::Lost(bytes, reason))) => self.lose(first..end, bytes, reason),
            // The first block does not begin at the first value.
            None if end > 0 => {
                self.lose(0..end, 0..0, "no data block in the index has these ordinals".to_owned());
            }
            None => {}
        }
    }

    fn lose(&mut self, rows: Range<u64>, bytes: Range<u64>, reason: String) {
        match self.located.lost.last_mut() {
            Some(last) if last.rows.end == rows.start && last.bytes == bytes => last.rows.end = rows.end,
            _ => self.located.lost.push(Loss { rows, bytes, structure: POSITIONAL.to_owned(), reason }),
        }
    }

    fn finish(mut self) {
        let end = self.all;
        self.close(end);
    }
}
