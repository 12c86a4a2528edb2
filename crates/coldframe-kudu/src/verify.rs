//! Verifies what a scan of the latest rows does not read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use coldframe_cfile::CFileTable;
use coldframe_core::{Damage, Error, Fault, Result, TableFile, scan};

use crate::inspect::{Block, blocks, options};
use crate::open::LocatedTable;

/// Reports containers with unreadable metadata, contradictions in the column files, and damage in all other files.
pub(crate) fn damage(table: &LocatedTable) -> Result<Vec<Damage>> {
    let mut all = Vec::new();
    for server in &table.servers {
        all.extend(server.store.containers()?.faults.iter().map(|fault| fault.damage.clone()));
    }
    for log in &table.logs {
        // Damage that cost rows has been reported by the scan.
        all.extend(log.summary()?.harmless.iter().map(|what| what.damage.clone()));
    }
    for block in blocks(table) {
        match check(table, &block) {
            Ok((path, offset, damage)) => all.extend(damage.into_iter().map(|d| Damage {
                bytes: d.bytes.start + offset..d.bytes.end + offset,
                rows_lost: None,
                structure: format!("{} in {path}: {}", block.name, d.structure),
                reason: d.reason,
            })),
            // Damage to blocks that the scan reads has been reported by the scan.
            Err(e) if Fault::is(&e) && block.scanned => {}
            Err(e) if Fault::is(&e) => {
                all.push(Damage::from_error(&e.within(block.name), 0..0, None));
            }
            Err(e) => return Err(e),
        }
    }
    Ok(all)
}

fn check(table: &LocatedTable, block: &Block<'_>) -> Result<(String, u64, Vec<Damage>)> {
    let open = block.tablet.server.store.open(block.id)?;
    let file = CFileTable::open(open.bytes, options(table))?;
    let damage = if block.scanned {
        file.verify_structure()?
    } else {
        scan::verify(&file, |_| Ok::<(), Error>(()))?.damage
    };
    Ok((open.path, open.offset, damage))
}

/// The blocks of the newest rows that are missing or cut, as their index and the lengths of files show.
pub(crate) fn missing_blocks(table: &LocatedTable) -> Result<Vec<Damage>> {
    let (mut all, mut lengths) = (Vec::new(), HashMap::new());
    for block in blocks(table).into_iter().filter(|block| block.scanned) {
        let store = &block.tablet.server.store;
        let known = match lengths.entry(Arc::as_ptr(&block.tablet.server)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(server) => server.insert(store.lengths()?),
        };
        match store.check_presence(block.id, known) {
            Err(e) if Fault::is(&e) => all.push(Damage::from_error(&e.within(block.name), 0..0, None)),
            checked => checked?,
        }
    }
    Ok(all)
}
