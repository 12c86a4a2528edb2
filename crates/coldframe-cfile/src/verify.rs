//! Verifies the parts of a file that a scan does not read.

use coldframe_core::{Damage, Error, Result};

use crate::inspect::tree;
use crate::layout::block::BlockPointer;
use crate::layout::bloom::BloomBlock;
use crate::open::{CFile, Purpose};

/// Checks the value index of a file that has both indexes, the blocks of a bloom file, and the bytes that
/// belong to no block.
pub(crate) fn contradictions(file: &CFile, kind: Purpose) -> Result<Vec<Damage>> {
    let mut damage = Vec::new();
    for node in tree(file, kind)?.children.iter().filter(|n| n.name == "unknown") {
        let e = Error::corrupt(format!(
            "expected a block of an index, found {} bytes outside any block",
            node.bytes.end - node.bytes.start
        ));
        damage.push(Damage::from_error(&e.within("unknown bytes"), node.bytes.clone(), None));
    }
    if file.footer().value.is_some() {
        let blocks = match file.blocks_by_value() {
            Ok(blocks) => blocks,
            Err(e) if e.is_damage() => {
                damage.push(Damage::from_error(&e, 0..file.blocks_end(), None));
                Vec::new()
            }
            Err(e) => return Err(e),
        };
        if kind == Purpose::Bloom {
            check_blooms(file, blocks, &mut damage)?;
        }
    }
    Ok(damage)
}

fn check_blooms(file: &CFile, blocks: Vec<BlockPointer>, damage: &mut Vec<Damage>) -> Result<()> {
    for pointer in blocks {
        let stored = file.source().read(pointer.range())?;
        let contents = file.format().open_owned(&stored, pointer.offset);
        let parsed = contents.and_then(|c| BloomBlock::parse(&c, pointer.offset).map(drop));
        match parsed {
            Ok(()) => {}
            Err(e) if e.is_damage() => {
                damage.push(Damage::from_error(&e.within("bloom block"), pointer.range(), None));
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
