//! Reads a local file with positioned reads.
//!
//! The file is not memory-mapped: if a mapped file is truncated while it is read, a signal kills the process,
//! and the user of a Spark executor gets no message. `benches/README.md` has the cost of the copy.

use std::fs::{File, Metadata};
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
        // Opening a pipe waits for its other end, and opening a device can have effects.
        expect_file(&std::fs::metadata(&path).map_err(in_file)?, &path)?;
        let file = open_at_once(&path).map_err(in_file)?;
        let meta = file.metadata().map_err(in_file)?;
        expect_file(&meta, &path)?;
        Ok(Self { len: meta.len(), modified: modified(&meta), file, path })
    }
}

fn expect_file(meta: &Metadata, path: &Path) -> Result<()> {
    let error = match special(meta) {
        Some(kind) => Error::unsupported(format!("expected a file, found a {kind}")),
        None if meta.is_dir() => Error::invalid("expected a file, found a directory"),
        None => return Ok(()),
    };
    Err(error.in_file(path.display().to_string()))
}

/// Opens a file without waiting: a pipe may have replaced the file.
#[cfg(unix)]
fn open_at_once(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open_at_once(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

/// The kind of an entry that is neither a file nor a directory.
#[cfg(unix)]
pub(crate) fn special(meta: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;
    let kind = meta.file_type();
    if kind.is_fifo() {
        Some("named pipe")
    } else if kind.is_socket() {
        Some("socket")
    } else if kind.is_char_device() || kind.is_block_device() {
        Some("device")
    } else {
        None
    }
}

#[cfg(not(unix))]
pub(crate) fn special(_: &Metadata) -> Option<&'static str> {
    None
}

/// The kind of an entry of a directory that has no bytes to read, although it is listed: a pipe, a socket, a device, a
/// link that leads to itself. None for all other entries, and for entries that do not exist.
pub fn special_kind(path: &Path) -> Option<&'static str> {
    match std::fs::metadata(path) {
        Ok(meta) => special(&meta),
        Err(e) if is_loop(&e) => Some("link that leads to itself"),
        Err(_) => None,
    }
}

/// Whether links lead to each other without end.
#[cfg(unix)]
pub(crate) fn is_loop(e: &std::io::Error) -> bool {
    e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
pub(crate) fn is_loop(_: &std::io::Error) -> bool {
    false
}

/// When a file was last written, in milliseconds since 1970.
pub(crate) fn modified(meta: &Metadata) -> Option<i64> {
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn pipes_sockets_and_devices_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("x.orc");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let socket = dir.path().join("y.orc");
        let _held = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::os::unix::fs::symlink(&pipe, dir.path().join("z.orc")).unwrap();
        for (path, kind) in [
            (pipe, "a named pipe"),
            (socket, "a socket"),
            (dir.path().join("z.orc"), "a named pipe"),
            ("/dev/null".into(), "a device"),
        ] {
            let error = LocalFile::open(&path).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
            assert!(error.to_string().contains(kind) && special_kind(&path).is_some(), "{error}");
        }
    }

    #[test]
    fn links_that_lead_to_themselves_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("a");
        std::os::unix::fs::symlink("a", &link).unwrap();
        assert_eq!(special_kind(&link), Some("link that leads to itself"));
        assert!(LocalFile::open(&link).is_err());
        std::os::unix::fs::symlink("nowhere", dir.path().join("b")).unwrap();
        assert_eq!(special_kind(&dir.path().join("b")), None);
    }
}
