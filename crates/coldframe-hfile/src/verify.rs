//! The checks of `verify` other than decoding.

use std::ops::Range;

use bytes::Bytes;
use coldframe_core::{Damage, Error, ErrorContext, Result};

use crate::layout::content::BlockReader;
use crate::layout::index::BlockRef;
use crate::open::RawFile;
use crate::recover::walk::{BlockWalk, Step};

/// Checks the blocks that a scan does not read, with their checksums, and looks for bytes that belong to no
/// block and for wrong counts.
pub(crate) fn verify(file: &RawFile) -> Result<Vec<Damage>> {
    let mut damage = Vec::new();
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
            // Data blocks up to the last one according to the trailer are read by the scan.
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

fn content(file: &RawFile, reader: &mut BlockReader, block: BlockRef) -> Result<Bytes> {
    let bytes = file.read(block).at(block.offset)?;
    reader.content(&bytes, block.offset, block.size).map(|(_, content)| content)
}
