//! The walk from row group to row group.
//!
//! Nothing lists a file's row groups: each is found behind the one before it, or behind a sync marker. A group's key
//! says where it ends. Source: Hive's `RCFile.Reader.nextKeyBuffer` and `RCFile.Reader.sync`.

mod resync;

use std::ops::Range;

use bytes::Bytes;
use coldframe_core::io::Window;
use coldframe_core::{Error, ErrorContext, Limits, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::codec::Decompressor;
use coldframe_encoding::codec::hadoop::HadoopCodec;
use memchr::memmem;

use self::resync::Budget;
use crate::layout::header::SYNC_LEN;
use crate::layout::key::KeyBuffer;
use crate::layout::row_group::{RecordHeader, RowGroup, SYNC_ESCAPE, SYNC_MARKER_LEN, Shape};

/// How much of the file a walk reads at a time. Groups are 4 MiB by default and keys a few KiB.
const WINDOW: u64 = 64 << 10;

/// How much of the file a search for a sync marker reads at a time.
pub(crate) const SEARCH: u64 = 1 << 20;

/// What a walk over the whole file meets.
pub(crate) enum Met {
    Group(Box<RowGroup>),
    Damaged(Range<u64>, Error),
}

/// Reads the keys of row groups, one after another or at a place.
pub(crate) struct Walk {
    shape: Shape,
    window: Window,
    decompressor: Decompressor,
    pub(crate) budget: Budget,
}

impl Walk {
    /// A walk over `source`.
    pub(crate) fn new(shape: Shape, source: std::sync::Arc<dyn coldframe_core::ReadAt>) -> Self {
        let budget = Budget::new(source.len());
        Self { shape, window: Window::new(source, WINDOW), decompressor: Decompressor::new(), budget }
    }

    /// What it knows of the file.
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The bytes of `range`.
    pub(crate) fn read_bytes(&mut self, range: Range<u64>) -> Result<Bytes> {
        self.window.read(range)
    }

    /// Bounds for what the file claims.
    pub(crate) fn limits(&self) -> &Limits {
        &self.shape.limits
    }

    /// Length of the file.
    pub(crate) fn file_len(&self) -> u64 {
        self.window.len()
    }

    /// The row group at `at`, which may begin with a sync marker.
    pub(crate) fn read_group(&mut self, at: u64) -> Result<RowGroup> {
        let sync = self.read_sync(at)?;
        let header_offset = sync.as_ref().map_or(at, |s| s.end);
        let header = self.read_header(header_offset)?;
        let (key, key_bytes) = match self.shape.codec {
            None => self.read_plain_key(header_offset + 12, &header)?,
            Some(codec) => self.read_compressed_key(header_offset + 12, &header, codec)?,
        };
        let group = RowGroup { sync, header_offset, header, key_bytes, key };
        if group.end() > self.file_len() {
            return Err(Error::corrupt(format!(
                "expected columns up to byte {}, found the end of the file at {}",
                group.end(),
                self.file_len()
            ))
            .at(group.key_bytes.end)
            .within("columns"));
        }
        Ok(group)
    }

    /// The sync marker at `at`, if there is one.
    fn read_sync(&mut self, at: u64) -> Result<Option<Range<u64>>> {
        let escape = self.window.read(at..at.saturating_add(4)).within(|| "record length")?;
        if Cursor::new(&escape, at).i32_be()? != SYNC_ESCAPE {
            return Ok(None);
        }
        let end = at.saturating_add(SYNC_MARKER_LEN);
        let hash = self.window.read(at + 4..end).within(|| "sync marker")?;
        Cursor::new(&hash, at + 4).expect("hash", &self.shape.sync).within(|| "sync marker")?;
        Ok(Some(at..end))
    }

    fn read_header(&mut self, at: u64) -> Result<RecordHeader> {
        let bytes = self.window.read(at..at.saturating_add(12)).within(|| "record header")?;
        let mut c = Cursor::new(&bytes, at);
        Ok(RecordHeader { record_len: c.i32_be()?, key_len: c.i32_be()?, key_disk_len: c.i32_be()? })
    }

    /// A key that delimits itself: its stored length is only a hint of how much to read.
    fn read_plain_key(&mut self, at: u64, header: &RecordHeader) -> Result<(KeyBuffer, Range<u64>)> {
        let hint = u64::try_from(header.key_disk_len).unwrap_or(0).min(self.shape.limits.max_metadata_bytes);
        let mut want = hint.max(64);
        loop {
            let bytes = self.window.read_up_to(at, want)?;
            let whole = bytes.len() as u64 == self.file_len().saturating_sub(at);
            match KeyBuffer::parse(&bytes, self.shape.columns, at) {
                Ok(key) => {
                    let end = at + key.len as u64;
                    return Ok((key, at..end));
                }
                Err(e) if whole || want >= self.shape.limits.max_metadata_bytes => {
                    return Err(e.within("key"));
                }
                Err(_) => want = want.saturating_mul(8),
            }
        }
    }

    fn read_compressed_key(
        &mut self,
        at: u64,
        header: &RecordHeader,
        codec: HadoopCodec,
    ) -> Result<(KeyBuffer, Range<u64>)> {
        let disk_len = u64::try_from(header.key_disk_len)
            .map_err(|_| Error::corrupt(format!("expected 0 or more, found {}", header.key_disk_len)))
            .and_then(|n| self.shape.limits.metadata("a key", n).map(|_| n))
            .at(at.saturating_sub(4))
            .within(|| "key length on disk")?;
        let range = at..at.saturating_add(disk_len);
        let bytes = self.window.read(range.clone()).within(|| "key")?;
        let key = self.decompress_key(&bytes, header, codec).at(at).within(|| "key")?;
        Ok((KeyBuffer::parse(&Bytes::from(key), self.shape.columns, at).within(|| "key")?, range))
    }

    /// By the stored length, or else by what the stream itself holds: the length may be what is damaged.
    fn decompress_key(&mut self, bytes: &[u8], header: &RecordHeader, codec: HadoopCodec) -> Result<Vec<u8>> {
        let mut key = Vec::new();
        let stated =
            u64::try_from(header.key_len).ok().and_then(|n| self.shape.limits.metadata("a key", n).ok());
        if let Some(len) = stated
            && codec.decompress_exact(&mut self.decompressor, bytes, len, &mut key).is_ok()
        {
            return Ok(key);
        }
        let ceiling = usize::try_from(self.shape.limits.max_metadata_bytes).unwrap_or(usize::MAX);
        codec.decompress_bounded(&mut self.decompressor, bytes, ceiling, &mut key)?;
        Ok(key)
    }

    /// The first sync marker that starts in `range`: the place of its escape. As Hive does it, the hash alone is
    /// looked for, from `range.start + 4` on.
    pub(crate) fn find_sync(&mut self, range: Range<u64>) -> Result<Option<u64>> {
        let finder = memmem::Finder::new(&self.shape.sync).into_owned();
        let file_len = self.file_len();
        let mut at = range.start.saturating_add(4);
        // A hash may lie across the edge of two reads: each begins with the last bytes of the one before.
        let last_start = range.end.saturating_add(4).min(file_len);
        while at < last_start {
            let end = at.saturating_add(SEARCH + SYNC_LEN as u64).min(file_len);
            let bytes = self.window.read(at..end)?;
            if let Some(found) = finder.find(&bytes) {
                let hash = at + found as u64;
                return Ok((hash < last_start).then(|| hash - 4));
            }
            if end == file_len {
                break;
            }
            at = end - (SYNC_LEN as u64 - 1);
        }
        Ok(None)
    }

    /// Where reading goes on for a byte range that starts at `start`: the position of Hive's `RCFile.Reader.sync`.
    pub(crate) fn sync(&mut self, start: u64) -> Result<u64> {
        if start <= self.shape.header_end {
            return Ok(self.shape.header_end);
        }
        if start.saturating_add(SYNC_MARKER_LEN) >= self.file_len() {
            return Ok(self.file_len());
        }
        Ok(self.find_sync(start..self.file_len())?.unwrap_or_else(|| self.window.len()))
    }

    /// The whole file; behind damage it goes on at the next readable group.
    pub(crate) fn each(mut self, mut each: impl FnMut(Met) -> Result<()>) -> Result<()> {
        let mut at = self.shape.header_end;
        while at < self.file_len() {
            match self.read_group(at) {
                Ok(group) => {
                    at = group.end();
                    each(Met::Group(Box::new(group)))?;
                }
                Err(e) if e.is_damage() => {
                    let (next, _) = self.resume(at)?;
                    each(Met::Damaged(at..next, e))?;
                    at = next;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Whether a sync marker stands at `at`.
    pub(crate) fn is_marker(&mut self, at: u64) -> bool {
        matches!(self.read_sync(at), Ok(Some(_)))
    }
}
