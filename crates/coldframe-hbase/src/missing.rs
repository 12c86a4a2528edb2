//! Damage records for what a table lacks.

use std::sync::Arc;

use coldframe_core::{Damage, Error, ErrorContext, Fault, Result};

use crate::regions::alive::{self, Region};
use crate::regions::files::Shared;
use crate::regions::unopened::{FileLocation, UnopenedFile};

/// What seems to be missing of a table that must be complete.
pub(crate) fn lacking(text: &str) -> Damage {
    Damage::from_error(&Error::corrupt(text.to_owned()).within("table"), 0..0, None)
}

/// A region folder whose description cannot be read.
pub(crate) fn unreadable(encoded: &str, e: &Error) -> Damage {
    let (region, part) = (format!("region {encoded}"), e.structure());
    let structure = if part.is_empty() { region } else { format!("{region}: {part}") };
    Damage::from_error(&Error::corrupt(e.reason()).within(structure), 0..0, None)
}

/// A region that hbase:meta lists, without a folder.
pub(crate) fn without_folder(region: &Region) -> Damage {
    let e = Error::corrupt("expected the folder of a region that hbase:meta lists, found none");
    Damage::from_error(&e.within(region.describe()), 0..0, None)
}

/// Damage records for rows without a region.
pub(crate) fn missing_rows(alive: &[Region]) -> Vec<Damage> {
    let record = |(from, to): alive::Hole| {
        let to = to.map_or_else(|| "the end".to_owned(), |to| format!("\"{}\"", to.escape_ascii()));
        let message =
            format!("expected a region of the rows from \"{}\" to {to}, found none", from.escape_ascii());
        Damage::from_error(&Error::corrupt(message).within("regions"), 0..0, None)
    };
    alive::holes(alive).into_iter().map(record).collect()
}

/// The store files that lists, links and references name and that are missing or empty. Reads no cells.
pub(crate) fn store_files(shared: &Shared, regions: &[Arc<Region>]) -> Result<Vec<Damage>> {
    let mut all = Vec::new();
    for region in regions {
        for (place, family) in shared.families.iter().enumerate() {
            let of_files = match shared.unopened(region, place) {
                Ok(files) => files.into_iter().map(|file| check_presence(shared, &file?)).collect(),
                Err(e) => vec![Err(e)],
            };
            for checked in of_files {
                let within = || format!("{}: family {}", region.describe(), family.name);
                match checked.within(within) {
                    Err(e) if Fault::is(&e) => all.push(Damage::from_error(&e, 0..0, None)),
                    checked => checked?,
                }
            }
        }
    }
    Ok(all)
}

/// Fails if a store file is missing or empty.
fn check_presence(shared: &Shared, file: &UnopenedFile) -> Result<()> {
    let len = match (&file.place, file.len) {
        (FileLocation::Own(_), Some(len)) => Ok(len),
        (place, _) => shared.source(place).map(|(_, source)| source.len()),
    };
    let check = |len| match len {
        0 => Err(Error::corrupt("expected a store file, found no bytes")),
        _ => Ok(()),
    };
    len.and_then(check).within(|| format!("store file {}", file.name))
}
