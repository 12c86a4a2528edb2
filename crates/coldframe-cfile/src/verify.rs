//! Verifies the parts of a file that a scan does not read.

use std::sync::Arc;

use coldframe_core::{Damage, Error, Result};

use crate::inspect::tree;
use crate::layout::block::BlockPointer;
use crate::layout::bloom::BloomBlock;
use crate::open::{CFile, Purpose};
use crate::prune::find::KeyFinder;

/// Checks the value index of a file with both indexes against its keys, bloom blocks, and bytes outside any block.
pub(crate) fn contradictions(file: &Arc<CFile>, kind: Purpose) -> Result<Vec<Damage>> {
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
        } else if kind == Purpose::Column && damage.is_empty() {
            damage.extend(
                KeyFinder::new(file.clone())
                    .and_then(|finder| finder.contradictions())
                    .or_else(|e| if e.is_damage() { Ok(Vec::new()) } else { Err(e) })?,
            );
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
