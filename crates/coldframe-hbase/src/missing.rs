//! Damage records for what a table lacks.

use coldframe_core::{Damage, Error};

use crate::regions::alive::{self, Region};

/// What seems to be missing of a table that must be complete.
pub(crate) fn lacking(text: &str) -> Damage {
    Damage::from_error(&Error::corrupt(text.to_owned()).within("table"), 0..0, None)
}

/// A region folder whose description cannot be read.
pub(crate) fn unreadable(encoded: &str, e: &Error) -> Damage {
    let e = Error::corrupt(e.reason()).within(e.structure());
    Damage::from_error(&e.within(format!("region {encoded}")), 0..0, None)
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
