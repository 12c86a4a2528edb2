//! Reports damage that a scan of a file's rows does not encounter.

use coldframe_core::{Damage, Error};

use crate::open::RawFile;

/// The known losses of a file that does not end with a footer.
pub(crate) fn lost(file: &RawFile) -> Vec<Damage> {
    let footer = file.parts.first().and_then(|p| p.footer.clone());
    let reason = match footer {
        Some(_) => "expected a footer at the end of the file, found only an earlier one",
        None => "expected a footer or pages of a row group, found neither",
    };
    let Some(lost) = &file.lost else { return Vec::new() };
    let record = |reason, bytes| Damage::from_error(&Error::corrupt(reason).within("footer"), bytes, None);
    let damage: Vec<Damage> =
        lost.iter().filter(|r| !r.is_empty()).map(|r| record(reason, r.clone())).collect();
    if !damage.is_empty() {
        return damage;
    }
    // All bytes belong to row groups, but only a footer says that there were no other row groups.
    let len = file.parts.first().map_or(0, |part| part.source.len());
    vec![record(
        "expected a footer at the end of the file, found none: further row groups may be lost",
        len..len,
    )]
}
