//! What a scan of the latest rows does not come by.

use coldframe_cfile::CFileTable;
use coldframe_core::{Damage, Error, Result, TableFile, scan};

use crate::inspect::{Block, blocks, options};
use crate::open::Found;
use crate::wal::TabletLog;

/// Containers whose metadata cannot be read, contradictions in the
/// column files, and all of the other files.
pub(crate) fn damage(table: &Found) -> Result<Vec<Damage>> {
    let mut all = Vec::new();
    for server in &table.servers {
        all.extend(server.store.containers()?.damage.iter().cloned());
    }
    for log in &table.logs {
        all.extend(harmless(log)?);
    }
    for block in blocks(table) {
        match check(table, &block) {
            Ok((path, offset, found)) => all.extend(found.into_iter().map(|d| Damage {
                bytes: d.bytes.start + offset..d.bytes.end + offset,
                rows_lost: None,
                structure: format!("{} in {path}: {}", block.name, d.structure),
                reason: d.reason,
            })),
            // The scan has reported those that it reads.
            Err(e) if e.is_damage() && block.scanned => {}
            Err(e) if e.is_damage() => {
                all.push(Damage::from_error(&e.within(block.name), 0..0, None));
            }
            Err(e) => return Err(e),
        }
    }
    Ok(all)
}

/// What is broken in a log and cost no row. The scan has reported the rest.
fn harmless(log: &TabletLog) -> Result<Vec<Damage>> {
    let log = log.replayed()?;
    let told = log.lost_changes.values().flatten().chain(&log.lost_rows).chain(&log.lost_inserts);
    let told: Vec<_> = told.map(|loss| loss.what.clone()).collect();
    let broken = log.broken.iter().filter(|what| !told.iter().any(|t| std::sync::Arc::ptr_eq(t, what)));
    Ok(broken.map(|what| what.as_ref().clone()).collect())
}

fn check(table: &Found, block: &Block<'_>) -> Result<(String, u64, Vec<Damage>)> {
    let open = block.tablet.server.store.open(block.id)?;
    let file = CFileTable::open(open.bytes, options(table))?;
    let found = if block.scanned {
        file.verify_structure()?
    } else {
        scan::verify(&file, |_| Ok::<(), Error>(()))?.damage
    };
    Ok((open.path, open.offset, found))
}
