//! Rebuilds an index over all cells of a file that lost its trailer or its index and nothing else.
//!
//! ```text
//! | data block | data block .. | index and meta blocks .. | root index | file info | .. trailer
//! |<------ each block ends where the next one begins ------>|            |<-- the damage begins here or later
//! ```
//!
//! A table of many files must know for each file its range of rows, its age and which files it replaced. All
//! of that is known if every byte before the root index belongs to a block, every block can be read, and the
//! file info exists.

use coldframe_core::{Error, ErrorContext, Result};

use super::copies::Copies;
use super::walk::{BlockWalk, Step};
use crate::layout::block::BlockType;
use crate::layout::index::{BlockRef, IndexBlock};
use crate::open::{OpenParts, RawFile};
use crate::options::Options;

/// The bytes before the key of a plain cell: the lengths of key and value.
const BEFORE_KEY: usize = 8;

/// The file with an index, built by reading all its blocks. The damage to the trailer or the index is still
/// reported.
///
/// # Errors
///
/// Fails if cells may be missing, or if the file's age is unknown; the error names the reason.
pub(crate) fn indexed(raw: &RawFile, options: &Options) -> Result<RawFile> {
    let lost = || raw.damage.as_ref().map_or_else(|| Error::corrupt("damage"), |d| d.to_error());
    // Without the file info it is unknown which files this one replaced.
    if raw.info.0.is_empty() || raw.pairs || raw.context.major < 2 {
        return Err(lost());
    }
    let mut keys = Vec::new();
    let mut reader = raw.block_reader();
    let mut last_row: Option<Vec<u8>> = None;
    let (mut held, mut count) = (0_u64, 0_u64);
    for block in data_blocks(raw)?.ok_or_else(lost)? {
        let bytes = raw.source.read(block.offset..block.end())?;
        let cells = reader.cells(&bytes, block.offset, 0)?.bytes;
        let mut first = || -> Result<Vec<u8>> {
            let mut at = 0;
            let mut before = last_row.as_deref();
            while at < cells.len() {
                let (cell, end) = raw.context.layout.cell(&cells, at)?;
                if before.is_some_and(|last| raw.order.compare(last, cell.row).is_gt()) {
                    return Err(Error::corrupt("expected sorted rows"));
                }
                (before, at) = (Some(cell.row), end);
                count += 1;
            }
            let last = before.map(<[u8]>::to_vec);
            last_row = last;
            let len = cells.first_chunk::<4>().map_or(0, |len| u32::from_be_bytes(*len));
            let end = BEFORE_KEY.saturating_add(usize::try_from(len).unwrap_or(usize::MAX));
            Ok(cells.get(BEFORE_KEY..end).unwrap_or_default().to_vec())
        };
        let key = first().map_err(|e| Error::corrupt(e.reason()).at(block.offset)).within(|| "data block")?;
        // A block that compresses well may begin with a key of megabytes, so the keys are limited.
        held = held.saturating_add(key.len() as u64);
        raw.context.limits.decoded("the first keys of blocks", held, raw.source.len())?;
        keys.push((block, key));
    }
    if raw.damage.is_none() && count != raw.trailer.entry_count {
        let expected = raw.trailer.entry_count;
        return Err(Error::corrupt(format!("expected {expected} cells, found {count} in the data blocks")));
    }
    let parts = OpenParts {
        trailer: raw.trailer.clone(),
        info: raw.info.clone(),
        context: raw.context.as_ref().clone(),
        root: IndexBlock::of_keys(keys),
        meta: IndexBlock::default(),
        load_on_open: Vec::new(),
        ends: Vec::new(),
        damage: raw.damage.clone(),
        pairs: false,
    };
    Ok(RawFile::new(raw.source.clone(), parts, options))
}

/// All data blocks; `None` if one may be missing or duplicated.
fn data_blocks(raw: &RawFile) -> Result<Option<Vec<BlockRef>>> {
    let len = raw.source.len();
    let mut walk = BlockWalk::new(raw.source.clone(), raw.context.with_checksums, raw.context.limits, 0..len);
    let (mut blocks, mut copies) = (Vec::new(), Copies::default());
    while let Some(step) = walk.step()? {
        let Step::Block(offset, header) = step else { return Ok(None) };
        match header.block_type {
            BlockType::RootIndex | BlockType::FileInfo => return Ok(Some(blocks)),
            of if of.is_data() => {
                let Ok(size) = u32::try_from(header.block_len()) else { return Ok(None) };
                let block = BlockRef { offset, size };
                if copies.has(raw.source.as_ref(), block, &header)? {
                    return Ok(None);
                }
                blocks.push(block);
            }
            _ => {}
        }
    }
    Ok(None)
}
