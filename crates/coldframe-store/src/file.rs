//! Reads a local file with positioned reads.
//!
//! The file is not memory-mapped: if a mapped file is truncated while it is read, a signal kills the process,
//! and the user of a Spark executor gets no message. `benches/README.md` has the cost of the copy.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use coldframe_core::io::{Identity, check_range};
use coldframe_core::{Error, ErrorKind, ReadAt, Result};

/// A local file.
#[derive(Debug)]
pub struct LocalFile {
    file: File,
    len: u64,
    modified: Option<i64>,
    path: PathBuf,
}

impl LocalFile {
    /// Opens `path`, which must be a regular file.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let in_file = |e: std::io::Error| not_found_or_io(e, &path);
        let file = File::open(&path).map_err(in_file)?;
        let meta = file.metadata().map_err(in_file)?;
        if meta.is_dir() {
            return Err(
                Error::invalid("expected a file, found a directory").in_file(path.display().to_string())
            );
        }
        Ok(Self { len: meta.len(), modified: modified(&meta), file, path })
    }
}

/// When a file was last written, in milliseconds since 1970.
pub(crate) fn modified(meta: &std::fs::Metadata) -> Option<i64> {
    let since = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// An I/O error with its path; a missing file gets its own error kind.
pub(crate) fn not_found_or_io(e: std::io::Error, path: &Path) -> Error {
    let error = match e.kind() {
        std::io::ErrorKind::NotFound => {
            Error::new(ErrorKind::NotFound("no such file or directory".to_owned()))
        }
        _ => Error::from(e),
    };
    error.in_file(path.display().to_string())
}

impl ReadAt for LocalFile {
    fn identity(&self) -> Identity {
        Identity { len: self.len, modified: self.modified, etag: None }
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges
            .iter()
            .map(|r| {
                check_range(r, self.len)?;
                let len = usize::try_from(r.end - r.start)
                    .map_err(|_| Error::invalid("the range is larger than the address space"))?;
                let bytes = read_at(&self.file, len, r.start)
                    .map_err(|e| Error::from(e).at(r.start).in_file(self.path.display().to_string()))?;
                Ok(Bytes::from(bytes))
            })
            .collect()
    }
}

/// `len` bytes from `offset` on. The buffer is not filled with zeros first, because that would take a tenth
/// of the time of a simple scan.
#[cfg(unix)]
fn read_at(file: &File, len: usize, offset: u64) -> std::io::Result<Vec<u8>> {
    let mut buffer = Vec::with_capacity(len);
    while buffer.len() < len {
        let at = offset + buffer.len() as u64;
        match rustix::io::pread(file, rustix::buffer::spare_capacity(&mut buffer), at) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    buffer.truncate(len); // an allocator may give more than requested
    Ok(buffer)
}

#[cfg(windows)]
fn read_at(file: &File, len: usize, offset: u64) -> std::io::Result<Vec<u8>> {
    let mut buffer = vec![0; len];
    let (mut open, mut offset) = (buffer.as_mut_slice(), offset);
    while !open.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, open, offset)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => {
                offset += n as u64;
                open = open.get_mut(n..).unwrap_or_default();
            }
        }
    }
    Ok(buffer)
}
