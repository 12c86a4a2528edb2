//! What is wrong with a file that a scan of its rows does not meet.

use coldframe_core::{Damage, Error};

use crate::open::RawFile;

/// What is known to be lost of a file that does not end with a footer.
pub(crate) fn lost(file: &RawFile) -> Vec<Damage> {
    let footer = file.parts.first().and_then(|p| p.footer.clone());
    let reason = match footer {
        Some(_) => "expected a footer at the end of the file, found the last one before it",
        None => {
            "expected a row group that a footer speaks of, found no footer and none that the pages make up"
        }
    };
    let lost = file.lost.as_deref().unwrap_or_default().iter().filter(|r| !r.is_empty());
    lost.map(|r| Damage::from_error(&Error::corrupt(reason).within("footer"), r.clone(), None)).collect()
}
