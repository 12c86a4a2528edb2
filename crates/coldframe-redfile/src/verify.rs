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
    let lost = file.lost.as_deref().unwrap_or_default().iter().filter(|r| !r.is_empty());
    lost.map(|r| Damage::from_error(&Error::corrupt(reason).within("footer"), r.clone(), None)).collect()
}
