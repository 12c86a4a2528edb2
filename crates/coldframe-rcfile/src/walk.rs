//! Goes through a file from row group to row group.
//!
//! A file has no list of its row groups: each row group begins where the previous row group ends, or after a
//! sync marker. A group's key says where it ends. Source: Hive's `RCFile.Reader.nextKeyBuffer` and
//! `RCFile.Reader.sync`.

mod boundary;
mod candidate;
mod resync;
mod sync;

use std::ops::Range;

use bytes::Bytes;
use coldframe_core::io::Window;
use coldframe_core::{Error, ErrorContext, Limits, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::codec::Decompressor;
use coldframe_encoding::codec::hadoop::HadoopCodec;

use self::candidate::Budget;
use self::sync::KnownMarker;
use crate::layout::key::KeyBuffer;
use crate::layout::row_group::{FileContext, RecordHeader, RowGroup, SYNC_ESCAPE, SYNC_MARKER_LEN};

/// How much of the file a walk reads at a time. Groups are 4 MiB by default and keys a few KiB.
const WINDOW: u64 = 64 << 10;

/// A row group or damage, in a walk over the whole file.
pub(crate) enum WalkItem {
    Group(Box<RowGroup>),
    Damaged(Range<u64>, Error),
}

/// Reads the keys of row groups, in order or at a given offset.
pub(crate) struct GroupWalk {
    context: FileContext,
    window: Window,
    decompressor: Decompressor,
    budget: Budget,
    /// The last marker that a search returned.
    marker: Option<KnownMarker>,
}

impl GroupWalk {
    /// A walk over `source`.
    pub(crate) fn new(context: FileContext, source: std::sync::Arc<dyn coldframe_core::ReadAt>) -> Self {
        let budget = Budget::new(source.len());
        let window = Window::new(source, WINDOW);
        Self { context, window, decompressor: Decompressor::new(), budget, marker: None }
    }

    /// The limits on the memory that the file's lengths may request.
    pub(crate) fn limits(&self) -> &Limits {
        &self.context.limits
    }

    /// Length of the file.
    pub(crate) fn file_len(&self) -> u64 {
        self.window.len()
    }

    /// The row group at `at`, if it is anchored: it ends where something begins that can follow it.
    pub(crate) fn read_anchored_group(&mut self, at: u64) -> Result<RowGroup> {
        let group = self.read_group(at)?;
        let end = group.end();
        if self.is_anchored(&group)? {
            return Ok(group);
        }
        let message =
            format!("expected a row group, a sync marker or the end of the file at byte {end}, found none");
        Err(Error::corrupt(message).at(group.key_bytes.start).within("key"))
    }

    /// The row group at `at`, which may begin with a sync marker.
    pub(crate) fn read_group(&mut self, at: u64) -> Result<RowGroup> {
        let sync = self.read_sync(at)?;
        let header_offset = sync.as_ref().map_or(at, |s| s.end);
        let header = self.read_header(header_offset)?;
        self.read_behind_header(sync, header_offset, header)
    }

    /// The row group whose key follows this header.
    fn read_behind_header(
        &mut self,
        sync: Option<Range<u64>>,
        header_offset: u64,
        header: RecordHeader,
    ) -> Result<RowGroup> {
        let (key, key_bytes) = match self.context.codec {
            None => self.read_plain_key(header_offset.saturating_add(12), &header)?,
            Some(codec) => self.read_compressed_key(header_offset.saturating_add(12), &header, codec)?,
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
        Cursor::new(&hash, at + 4).expect("hash", &self.context.sync).within(|| "sync marker")?;
        Ok(Some(at..end))
    }

    fn read_header(&mut self, at: u64) -> Result<RecordHeader> {
        let bytes = self.window.read(at..at.saturating_add(12)).within(|| "record header")?;
        let mut c = Cursor::new(&bytes, at);
        Ok(RecordHeader { record_len: c.i32_be()?, key_len: c.i32_be()?, key_disk_len: c.i32_be()? })
    }

    /// Reads an uncompressed key, which shows where it ends: its stored length, if plausible, only decides
    /// how much is read first.
    fn read_plain_key(&mut self, at: u64, header: &RecordHeader) -> Result<(KeyBuffer, Range<u64>)> {
        let left = self.file_len().saturating_sub(at);
        let max = self.context.limits.max_metadata_bytes.min(left);
        let hint = u64::try_from(header.key_disk_len).unwrap_or(0);
        let hint = if self.is_likely(at, header) { hint } else { 0 };
        let mut want = hint.clamp(64, max.max(64));
        let mut spent = 0;
        loop {
            spent += self.charge(want, at)?;
            let bytes = self.window.read_up_to(at, want)?;
            match KeyBuffer::parse_prefix(&bytes, self.context.columns, at, left) {
                Ok(key) => {
                    // If the key fills at least an eighth of the bytes that were read, they are not charged to the
                    // budget.
                    if key.len as u64 >= want / 8 {
                        self.budget.refund(spent);
                    }
                    let end = at + key.len as u64;
                    return Ok((key, at..end));
                }
                Err(e) if want >= max || !e.incomplete => return Err(e.error.within("key")),
                Err(_) => want = want.saturating_mul(8),
            }
        }
    }

    /// Charges the budget for the part of a key beyond the walk's usual read size.
    fn charge(&mut self, want: u64, at: u64) -> Result<u64> {
        let cost = want.saturating_sub(WINDOW);
        if self.budget.spend(cost) {
            return Ok(cost);
        }
        let message = "expected a key, found none within the bytes that may be searched";
        Err(Error::corrupt(message).at(at).within("key"))
    }

    fn read_compressed_key(
        &mut self,
        at: u64,
        header: &RecordHeader,
        codec: HadoopCodec,
    ) -> Result<(KeyBuffer, Range<u64>)> {
        let disk_len = u64::try_from(header.key_disk_len)
            .map_err(|_| Error::corrupt(format!("expected 0 or more, found {}", header.key_disk_len)))
            .at(at.saturating_sub(4))
            .within(|| "key length on disk")?;
        let range = at..at.saturating_add(disk_len);
        check_end(&range, self.file_len()).within(|| "key")?;
        self.check_key_len(disk_len).at(at.saturating_sub(4)).within(|| "key length on disk")?;
        let cost = self.charge(disk_len, at)?;
        let bytes = self.window.read(range.clone()).within(|| "key")?;
        let key = self.decompress_key(&bytes, header, codec).at(at).within(|| "key")?;
        let key = KeyBuffer::parse(&Bytes::from(key), self.context.columns, at).within(|| "key")?;
        self.budget.refund(cost);
        Ok((key, range))
    }

    /// Checks that a key may have `len` bytes in memory.
    fn check_key_len(&self, len: u64) -> Result<()> {
        self.context.limits.metadata("a key", len)?;
        self.context.limits.decoded("a key", len, self.file_len())
    }

    /// Decompresses a key to its stored length or, since that may be damaged, to the end of the stream.
    fn decompress_key(&mut self, bytes: &[u8], header: &RecordHeader, codec: HadoopCodec) -> Result<Vec<u8>> {
        let mut key = Vec::new();
        let stored_len = u64::try_from(header.key_len).ok().filter(|n| self.check_key_len(*n).is_ok());
        if let Some(len) = stored_len.and_then(|n| usize::try_from(n).ok())
            && codec.decompress_exact(&mut self.decompressor, bytes, len, &mut key).is_ok()
        {
            return Ok(key);
        }
        let limits = &self.context.limits;
        let ceiling = limits.max_metadata_bytes / 8 + self.file_len().saturating_mul(3);
        let ceiling = usize::try_from(ceiling.min(limits.max_metadata_bytes)).unwrap_or(usize::MAX);
        codec.decompress_bounded(&mut self.decompressor, bytes, ceiling, &mut key)?;
        Ok(key)
    }

    /// Walks the whole file; after damage, continues at the next readable group. Damage without a readable
    /// group in between is one item.
    pub(crate) fn each(mut self, mut each: impl FnMut(WalkItem) -> Result<()>) -> Result<()> {
        let mut at = self.context.header_end;
        let mut damaged: Option<(Range<u64>, Error)> = None;
        while at < self.file_len() {
            match self.read_anchored_group(at) {
                Ok(group) => {
                    if let Some((range, e)) = damaged.take() {
                        each(WalkItem::Damaged(range, e))?;
                    }
                    at = group.end();
                    each(WalkItem::Group(Box::new(group)))?;
                }
                Err(e) if e.is_damage() => {
                    let (next, _) = self.resume(at)?;
                    damaged.get_or_insert((at..next, e)).0.end = next;
                    at = next;
                }
                Err(e) => return Err(e),
            }
        }
        damaged.map_or(Ok(()), |(range, e)| each(WalkItem::Damaged(range, e)))
    }
}

/// Refuses a range past the end of the file before the budget is charged for it.
fn check_end(range: &Range<u64>, file_len: u64) -> Result<()> {
    if range.end <= file_len {
        return Ok(());
    }
    let (wanted, left) = (range.end - range.start, file_len.saturating_sub(range.start));
    Err(Error::corrupt(format!("expected {wanted} more bytes, found {left}")).at(range.start))
}
