//! `_RedElmSummary`: the footers of all files that a job wrote, in one file.
//!
//! ```text
//! summary | count u32 BE | count x (length u16 BE | URI: modified UTF-8 | FileMetaData) |
//! ```
//!
//! It has no magic and no lengths of the metadata; the files are in the order in which the job listed them. The URIs
//! are those of the job's file system: a file is looked up beside the summary by its last component. A job that adds
//! files to a folder does not change the summary of the job before it: the footers of those files are read.

use std::collections::BTreeSet;

use coldframe_core::io::{Entry, Folder, files_below};
use coldframe_core::{Error, ErrorContext, Limits, ReadAt, Result};
use coldframe_encoding::Cursor;

use super::footer;
use crate::layout::footer::MAGIC;
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

/// The Redfiles of a folder that a summary does not name (`named` are its URIs), and their footers. Names
/// that begin with `_` or `.` are not names of data files.
pub(crate) fn unlisted(
    folder: &dyn Folder,
    named: &[&str],
    limits: &Limits,
) -> Result<Vec<(String, FileMetaData)>> {
    let named: BTreeSet<String> = named.iter().map(|path| last(path)).collect();
    let mut files = Vec::new();
    for entry in folder.list("")? {
        let name = last(&entry.path);
        if entry.is_folder || name.starts_with(['_', '.']) || named.contains(&name) {
            continue;
        }
        let source = folder.open(&name)?;
        let head = source.read(0..source.len().min(MAGIC.len() as u64))?;
        if head.as_ref() == MAGIC {
            let footer = footer::read(source.as_ref(), limits).map_err(|e| e.in_file(&name))?;
            files.push((name, footer.metadata));
        }
    }
    Ok(files)
}

/// The files of a summary's folder that hold none of its rows and that neither its job nor Hadoop wrote.
pub(crate) fn unclaimed(folder: &dyn Folder, limits: &Limits) -> Result<Vec<Entry>> {
    let files = read(folder.open(NAME)?.as_ref(), limits).within(|| "summary")?;
    let mut own: BTreeSet<String> = BTreeSet::new();
    for (path, metadata) in &files {
        let chunks = metadata.row_groups.iter().flat_map(|group| &group.columns);
        let paths = chunks.filter_map(|chunk| chunk.file_path.as_deref()).filter(|path| !path.is_empty());
        own.extend(paths.chain([path.as_str()]).map(last));
    }
    let named: Vec<&str> = own.iter().map(String::as_str).collect();
    let unlisted = unlisted(folder, &named, limits)?;
    own.extend(unlisted.into_iter().map(|(name, _)| name));
    files_below(folder, &|path| {
        let summed = path.strip_prefix('.').and_then(|path| path.strip_suffix(".crc")).unwrap_or(path);
        // Hadoop 1 left the history of a job in the folder of its output.
        summed == NAME || summed == "_SUCCESS" || own.contains(summed) || path.starts_with("_logs/")
    })
}

/// The last component of a path.
fn last(path: &str) -> String {
    path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned()
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
