//! The checks of `verify` other than decoding.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{Damage, Error, ErrorContext, Result};

use crate::cache::SearchBlock;
use crate::layout::cell::Cell;
use crate::layout::content::BlockReader;
use crate::layout::index::BlockRef;
use crate::open::RawFile;
use crate::prune::bloom::{Bloom, Which};
use crate::prune::cursor::IndexCursor;
use crate::recover::walk::{BlockWalk, Step};

/// Checks blocks that a scan does not read (with their checksums), bytes that belong to no block, counts, and what the
/// index and the bloom filter state of the cells.
pub(crate) fn verify(file: &Arc<RawFile>) -> Result<Vec<Damage>> {
    let mut damage = if file.check().is_ok() { contradictions(file)? } else { Vec::new() };
    let mut note = |e: &Error, range: Range<u64>| damage.push(Damage::from_error(e, range, Some(0)));
    if let Err(e) = file.check() {
        let at = e.offset().unwrap_or(0);
        note(&e, at..file.source.len());
    }
    let mut reader = file.block_reader();
    if file.context.major == 1 {
        for block in file.meta.blocks() {
            if let Err(e) = content(file, &mut reader, block) {
                note(&e, file.range_of(block));
            }
        }
        return Ok(damage);
    }
    let context = &file.context;
    let end = file.trailer_start();
    let mut walk = BlockWalk::new(file.source.clone(), context.with_checksums, context.limits, 0..end);
    while let Some(step) = walk.step()? {
        match step {
            // The scan reads the data blocks, up to the last data block according to the trailer.
            Step::Block(offset, header) if header.block_type.is_data() => {
                let last = file.trailer.last_data_block;
                if file.damage.is_none() && last.is_none_or(|last| offset > last) {
                    let last = last.map_or_else(|| "none".to_owned(), |at| at.to_string());
                    let message = format!("expected the last data block at {last}, found one at {offset}");
                    note(&Error::corrupt(message).at(offset).within("trailer"), offset..offset);
                }
            }
            Step::Block(offset, header) => {
                let size = u32::try_from(header.block_len()).unwrap_or(u32::MAX);
                let block = BlockRef { offset, size };
                if let Err(e) = content(file, &mut reader, block) {
                    note(&e, offset..offset.saturating_add(header.block_len()));
                }
            }
            Step::Damage(range, e) => note(&e, range),
        }
    }
    Ok(damage)
}

/// Blocks whose cells contradict the index or the bloom filter. The scan reports blocks that cannot be read.
fn contradictions(file: &Arc<RawFile>) -> Result<Vec<Damage>> {
    let mut damage = Vec::new();
    let mut reader = file.block_reader();
    let bloom = unless_damaged(Bloom::open(file, Which::General))?.flatten();
    let mut cursor = IndexCursor::new(file.clone());
    while let Some(entry) = unless_damaged(cursor.next_entry())?.flatten() {
        let block = entry.block;
        let mut read = || {
            let bytes = reader.cells(&file.read(block)?, block.offset, block.size)?.bytes;
            SearchBlock::new(bytes, file.context.layout, file.order)
        };
        let Some(cells) = unless_damaged(read())? else { continue };
        let index = cells.prove(entry.row(), cursor.peek_row()).within(|| "data index");
        let filter = match &bloom {
            Some(bloom) => excluded(file, &mut reader, bloom, &cells),
            None => Ok(()),
        };
        for checked in [index, filter] {
            match checked.map_err(|e| e.at(block.offset)) {
                Ok(()) => {}
                Err(e) if e.is_damage() => {
                    damage.push(Damage::from_error(&e, file.range_of(block), Some(0)));
                }
                Err(e) => return Err(e),
            }
        }
    }
    Ok(damage)
}

/// Fails if the bloom filter excludes a cell that the block has.
fn excluded(file: &RawFile, reader: &mut BlockReader, bloom: &Bloom, cells: &SearchBlock) -> Result<()> {
    let of_rows = bloom.filters_rows();
    let mut before: Option<Cell<'_>> = None;
    for i in 0..cells.len() {
        let Some(cell) = cells.cell(i)? else { break };
        let is_known = before
            .is_some_and(|before| before.row == cell.row && (of_rows || before.qualifier == cell.qualifier));
        if !is_known && !bloom.might_contain(file, reader, cell.row, Some(cell.qualifier))? {
            let row = cell.row.escape_ascii();
            let message = format!("expected row \"{row}\", which a block has, found it excluded");
            return Err(Error::corrupt(message).within("bloom filter"));
        }
        before = Some(cell);
    }
    Ok(())
}

/// `None` for damage.
fn unless_damaged<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.is_damage() => Ok(None),
        Err(e) => Err(e),
    }
}

fn content(file: &RawFile, reader: &mut BlockReader, block: BlockRef) -> Result<Bytes> {
    let bytes = file.read(block).at(block.offset)?;
    reader.content(&bytes, block.offset, block.size).map(|(_, content)| content)
}
