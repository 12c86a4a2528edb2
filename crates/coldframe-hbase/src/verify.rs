//! Verifies what a scan does not read: indexes, bloom filters, the half of a file that a region does not use,
//! and cells that no view shows.

use coldframe_core::{Damage, Fault, Result, TableFile};

use crate::open::OpenTable;

/// Checks the structure of the store files. Missing files are reported by the scan.
pub(crate) fn structure(table: &OpenTable) -> Result<Vec<Damage>> {
    let mut all = Vec::new();
    for region in &table.regions {
        let open = table.shared.open(region)?;
        for file in &open.files {
            match file.hfile.verify_structure() {
                Ok(damage) => all.extend(damage.into_iter().map(|d| Damage {
                    structure: format!("store file {}: {}", file.path, d.structure),
                    ..d
                })),
                Err(e) if Fault::is(&e) => all.push(Damage::from_error(&file.named(e), 0..0, None)),
                Err(e) => return Err(file.named(e)),
            }
        }
    }
    Ok(all)
}
