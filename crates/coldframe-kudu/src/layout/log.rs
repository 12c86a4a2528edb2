//! A segment of a write-ahead log: a sequence of records, each a batch of entries.
//!
//! ```text
//! segment | "kudulogf" | length u32 | LogSegmentHeaderPB | record | record .. | end |
//! record  | compressed length u32 | length u32 | CRC-32C of the bytes | CRC-32C of the twelve before | LogEntryBatchPB, compressed |
//!         | length u32 | CRC-32C of the bytes | CRC-32C of the eight before | LogEntryBatchPB |         up to Kudu 1.2 (source)
//! closed  | .. | LogSegmentFooterPB | "closedls" | length u32 |
//! open    | .. | zeros: preallocated space |
//! ```
//!
//! Integers are little-endian (`log_util.cc`). A server that stopped may have written only part of the last record of an open
//! segment: the rest is zeros, or the file ends there. A complete record with a wrong checksum was not cut short, but
//! damaged; the same is true for a record with other records after it.

use std::ops::Range;

use bytes::Bytes;
use coldframe_cfile::layout::types::Compression;
use coldframe_core::{Error, ErrorContext, Limits, Result};
use coldframe_encoding::checksum::{check_crc32c, crc32c};
use coldframe_encoding::codec::{Algorithm, Decompressor};
use coldframe_encoding::limits::message;

use super::container::decode;
use super::operations::{SegmentFooter, SegmentHeader};

/// The magic bytes of every segment.
pub(crate) const MAGIC: &[u8] = b"kudulogf";
const CLOSED: &[u8] = b"closedls";
/// Size of the frame at either end of a segment: the magic bytes and a length.
const FRAME: usize = 12;

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
    /// The footer, if the segment was closed.
    pub(crate) footer: Option<SegmentFooter>,
    /// The whole segment, decrypted.
    bytes: Bytes,
    /// The byte range that may hold records.
    records: Range<usize>,
    codec: Algorithm,
    /// Whether the heads of records have only one length (up to Kudu 1.2).
    old: bool,
    checked: bool,
    limits: Limits,
}

/// A record of a segment, or a range without a valid record.
#[derive(Debug)]
pub(crate) enum Record {
    /// A valid record: the bytes of the message with the entries, and the range of the record.
    Whole(Bytes, Range<u64>),
    /// A range that is not a valid record, and the reason.
    Broken(Range<u64>, String),
}

/// The head of a record.
#[derive(Clone, Copy)]
struct Head {
    stored: usize,
    length: usize,
    sum: u32,
}

impl Segment {
    /// Reads the header and footer of a segment; `None` for a file that was created but never written to.
    pub(crate) fn open(bytes: Bytes, checked: bool, limits: &Limits) -> Result<Option<Self>> {
        let Some(frame) = bytes.first_chunk::<FRAME>().filter(|f| f.iter().any(|b| *b != 0)) else {
            if bytes.iter().all(|b| *b == 0) {
                return Ok(None);
            }
            return Err(Error::corrupt(format!("expected a log segment, found {} bytes", bytes.len())).at(0));
        };
        if !frame.starts_with(MAGIC) {
            let text = frame.escape_ascii();
            return Err(Error::corrupt(format!("expected \"kudulogf\", found \"{text}\"")).at(0));
        }
        let length = frame.last_chunk::<4>().map_or(0, |n| u32::from_le_bytes(*n));
        let start = FRAME.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        let Some(header) = bytes.get(FRAME..start) else {
            return Err(Error::corrupt(format!("expected a header of {length} bytes, found the end")).at(8));
        };
        limits.metadata("header of a log segment", length.into())?;
        message::check::<SegmentHeader>(header, limits, bytes.len() as u64)?;
        let header: SegmentHeader = decode(header).map_err(|e| e.at(12))?;
        if !header.incompatible.is_empty() {
            return Err(Error::unsupported("a log segment with a feature of a later Kudu"));
        }
        let codec = match header.codec {
            None | Some(0 | 1) => Algorithm::None,
            Some(number) => Compression::from_number(number)?.algorithm(),
        };
        let (footer, end) = match closing(&bytes, start).within(|| "footer")? {
            Some((footer, end)) => (Some(footer), end),
            None => (None, bytes.len()),
        };
        let old = header.old_version.is_some();
        Ok(Some(Self { header, footer, records: start..end, bytes, codec, old, checked, limits: *limits }))
    }

    /// The offsets at which the header, the records and the file end.
    pub(crate) fn bounds(&self) -> (u64, u64, u64) {
        (self.records.start as u64, self.records.end as u64, self.bytes.len() as u64)
    }

    /// Iterates over the records in order, and over the broken ranges between them.
    pub(crate) fn records(&self) -> Records<'_> {
        Records { segment: self, at: self.records.start, decompressor: Decompressor::new() }
    }

    fn head_len(&self) -> usize {
        if self.old { 12 } else { 16 }
    }

    /// The record head at `at`, if the checksum shows that there is one.
    fn head(&self, at: usize) -> Option<Head> {
        let bytes = self.bytes.get(at..at.checked_add(self.head_len())?)?;
        let (covered, sum) = bytes.split_last_chunk::<4>()?;
        let word = |i: usize| covered.as_chunks::<4>().0.get(i).map(|w| u32::from_le_bytes(*w));
        let place = |n: u32| usize::try_from(n).ok();
        let head = if self.old {
            Head { stored: place(word(0)?)?, length: place(word(0)?)?, sum: word(1)? }
        } else {
            Head { stored: place(word(0)?)?, length: place(word(1)?)?, sum: word(2)? }
        };
        (crc32c(covered) == u32::from_le_bytes(*sum)).then_some(head)
    }

    fn is_zeros(&self, from: usize) -> bool {
        self.bytes.get(from..self.records.end).unwrap_or_default().iter().all(|b| *b == 0)
    }

    /// Whether a record at `at` may be an incomplete write: the segment is open, nothing follows the record,
    /// and the record is cut off by the end of the file or by zeros.
    fn is_cut_short(&self, at: usize) -> bool {
        let start = at.saturating_add(self.head_len());
        if self.footer.is_some() {
            return false;
        }
        match self.head(at) {
            None => start > self.records.end || self.is_zeros(start),
            Some(head) => {
                let end = start.saturating_add(head.stored);
                end > self.records.end || self.is_zeros(end.saturating_sub(4))
            }
        }
    }
}

/// The footer of a closed segment and the footer's offset.
fn closing(bytes: &[u8], start: usize) -> Result<Option<(SegmentFooter, usize)>> {
    let Some((before, length)) = bytes.split_last_chunk::<4>() else { return Ok(None) };
    let Some(before) = before.strip_suffix(CLOSED) else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let begin = before.len().checked_sub(length).filter(|begin| *begin >= start);
    let Some(begin) = begin else {
        let e = format!("expected at most {} bytes, found {length}", before.len().saturating_sub(start));
        return Err(Error::corrupt(e).at(before.len() as u64));
    };
    let footer = decode(before.get(begin..).unwrap_or_default()).map_err(|e| e.at(begin as u64))?;
    Ok(Some((footer, begin)))
}

/// Iterates over the records of a segment.
pub(crate) struct Records<'a> {
    segment: &'a Segment,
    at: usize,
    decompressor: Decompressor,
}

impl Records<'_> {
    /// The next record or broken range; `None` at the end of the log, or if the rest is an incomplete write.
    /// Failures of the source and exceeded limits are errors.
    pub(crate) fn next_record(&mut self) -> Result<Option<Record>> {
        let (segment, at) = (self.segment, self.at);
        if at >= segment.records.end || (segment.footer.is_none() && segment.is_zeros(at)) {
            return Ok(None);
        }
        let Some(head) = segment.head(at) else {
            return Ok(self.broken(at, None, "the checksum of the record's head differs".to_owned()));
        };
        let start = at.saturating_add(segment.head_len());
        let end = start.checked_add(head.stored).filter(|end| *end <= segment.records.end);
        let Some(stored) = end.and_then(|end| segment.bytes.get(start..end)) else {
            let left = segment.records.end.saturating_sub(start);
            let reason = format!("expected a record of {} bytes, found {left}", head.stored);
            return Ok(self.broken(at, None, reason));
        };
        let end = start.saturating_add(head.stored);
        match self.contents(head, stored, start) {
            Ok(contents) => {
                self.at = end;
                Ok(Some(Record::Whole(contents, at as u64..end as u64)))
            }
            Err(e) if e.is_damage() => Ok(self.broken(at, Some(end), e.reason())),
            Err(e) => Err(e.at(at as u64)),
        }
    }

    /// Decompresses a record and checks it.
    fn contents(&mut self, head: Head, stored: &[u8], start: usize) -> Result<Bytes> {
        let segment = self.segment;
        if segment.checked {
            check_crc32c(head.sum, stored)?;
        }
        if head.length == 0 {
            return Err(Error::corrupt("expected entries, found an empty record"));
        }
        if segment.codec == Algorithm::None {
            return Ok(segment.bytes.slice(start..start.saturating_add(stored.len())));
        }
        let length = segment.limits.block("a record of the log", head.length as u64)?;
        let mut out = Vec::new();
        self.decompressor.decompress_exact(segment.codec, stored, length, &mut out)?;
        Ok(out.into())
    }

    /// Continues after the broken record, or at the next head that is found. If the record was cut short by
    /// an incomplete write, the log ends here.
    fn broken(&mut self, at: usize, end: Option<usize>, reason: String) -> Option<Record> {
        let segment = self.segment;
        let next = end.filter(|end| !segment.is_zeros(*end)).or_else(|| self.find(at.saturating_add(1)));
        if next.is_none() && segment.is_cut_short(at) {
            self.at = segment.records.end;
            return None;
        }
        self.at = next.unwrap_or(segment.records.end);
        Some(Record::Broken(at as u64..self.at as u64, reason))
    }

    /// The next offset at which there is a valid record head.
    fn find(&self, from: usize) -> Option<usize> {
        let segment = self.segment;
        let mut at = from;
        while at < segment.records.end {
            let rest = segment.bytes.get(at..segment.records.end).unwrap_or_default();
            // Zeros are skipped, because a head has a non-zero length in its first four bytes.
            let zeros = rest.iter().take_while(|b| **b == 0).count();
            if zeros > 3 {
                at += zeros - 3;
            }
            let fits = |h: &Head| {
                let end = at.saturating_add(segment.head_len()).saturating_add(h.stored);
                h.length > 0 && h.stored > 0 && end <= segment.records.end
            };
            if segment.head(at).is_some_and(|h| fits(&h)) {
                return Some(at);
            }
            at += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests;
