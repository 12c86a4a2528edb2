//! `_RedElmSummary`: the footers of all files that a job wrote, in one file.
//!
//! ```text
//! summary | count u32 BE | count x (length u16 BE | URI: modified UTF-8 | FileMetaData) |
//! ```
//!
//! It has no magic bytes and does not state the lengths of the metadata; the files are in the order in which
//! the job listed them. The URIs are those of the job's file system: a file is looked up beside the summary,
//! by the last component of its URI.

use coldframe_core::{Error, ErrorContext, Limits, ReadAt, Result};
use coldframe_encoding::Cursor;

use crate::layout::metadata::FileMetaData;
use crate::layout::thrift::Reader;

/// The name of a summary file.
pub(crate) const NAME: &str = "_RedElmSummary";
/// How many bytes at the start of a file are enough to recognise a summary.
pub(crate) const PROBE_LEN: u64 = 4096;

/// Whether a file that begins with `head` is a summary: a count, a path, and metadata of version 1 followed by a
/// schema.
pub(crate) fn probe(head: &[u8]) -> bool {
    let mut c = Cursor::new(head, 0);
    let mut parse = || -> Result<bool> {
        let count = c.u32_be()?;
        let len = c.u16_be()?;
        let path = c.take(len.into())?;
        let begins = c.take(3)? == [0x15, 0x02, 0x19];
        Ok((1..1 << 24).contains(&count) && !path.is_empty() && !path.contains(&0) && begins)
    };
    parse().unwrap_or(false)
}

/// The files and their footers.
pub(crate) fn read(source: &dyn ReadAt, limits: &Limits) -> Result<Vec<(String, FileMetaData)>> {
    limits.metadata("the summary", source.len())?;
    let bytes = source.read(0..source.len())?;
    let mut reader = Reader::new(&bytes, 0, limits);
    let count = reader.cursor_mut().u32_be()?;
    let mut files = Vec::new();
    for i in 0..count {
        let mut file = || -> Result<_> {
            let c = reader.cursor_mut();
            let len = c.u16_be()?;
            let at = c.offset();
            let path = c.take(len.into())?;
            // Modified UTF-8 differs from UTF-8 only for U+0000 and above U+FFFF, which do not occur in paths
            // that can be matched.
            let path = std::str::from_utf8(path)
                .map_err(|_| Error::corrupt("expected a path in UTF-8, found other bytes").at(at))?;
            Ok((path.to_owned(), FileMetaData::decode(&mut reader)?))
        };
        files.push(file().within(|| format!("file {i}"))?);
    }
    reader.cursor().finish()?;
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_summaries_are_recognised() {
        assert!(probe(b"\0\0\0\x01\0\x03a/b\x15\x02\x19\x2c"));
        assert!(!probe(b"\0\0\0\0\0\x03a/b\x15\x02\x19\x2c"));
        assert!(!probe(b"\0\0\0\x01\0\x03a/bRED1"));
        assert!(!probe(b""));
    }
}
