//! The format of RocksDB's logs: of the write-ahead log, and of the manifest, which is a log of edits.
//!
//! ```text
//! blocks of 32,768 bytes, each: fragment | fragment | .. | fewer than 7 bytes, zeros
//! fragment:  | masked crc u32 | length u16 | type u8 | bytes |                          type 1 to 4
//!            | masked crc u32 | length u16 | type u8 | number of the log u32 | bytes |  type 5 to 8: a recycled file
//! type:      1, 5 a whole record | 2, 6 its first | 3, 7 a middle | 4, 8 its last fragment
//! ```
//!
//! Integers are little-endian; the checksum (CRC-32C, masked) covers everything after the length (`db/log_format.h`). The last record
//! may be incomplete, because the server stopped while writing it. After any other damage, reading resumes at
//! the next block.

use std::ops::Range;

use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::checksum::{check_crc32c, unmasked_crc32c};

use super::Losses;

const BLOCK: usize = 32 << 10;
const HEADER: usize = 7;

/// The role of a fragment in its record.
enum FragmentKind {
    Whole,
    First,
    Middle,
    Last,
    /// Unknown, and marked as one that readers may skip.
    Other,
}

struct Fragments<'a> {
    bytes: &'a [u8],
    at: usize,
    number: Option<u64>,
    checked: bool,
}

/// Passes each record to `each`, and adds damage to `losses`. `number`: the number of the log file.
pub(super) fn each_record(
    bytes: &[u8],
    number: Option<u64>,
    checked: bool,
    losses: &mut Losses,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut fragments = Fragments { bytes, at: 0, number, checked };
    // The record read so far, with its offset; and whether a record may have begun in damaged bytes.
    let mut begun: Option<(usize, Vec<u8>)> = None;
    let mut after_damage = false;
    loop {
        let start = fragments.at;
        let (part, content) = match fragments.next() {
            Ok(Some(fragment)) => fragment,
            Ok(None) => return Ok(()),
            Err(e) => {
                losses.note(e, range(start, fragments.at))?;
                (begun, after_damage) = (None, true);
                continue;
            }
        };
        let done = match (part, begun.take()) {
            (FragmentKind::Whole, None) => each(content),
            (FragmentKind::First, None) => {
                begun = Some((start, content.to_vec()));
                Ok(())
            }
            (FragmentKind::Middle, Some((from, mut record))) => {
                record.extend_from_slice(content);
                begun = Some((from, record));
                continue;
            }
            (FragmentKind::Last, Some((_, mut record))) => {
                record.extend_from_slice(content);
                each(&record)
            }
            (FragmentKind::Middle | FragmentKind::Last, None) if after_damage => continue,
            (FragmentKind::Middle | FragmentKind::Last, None) => {
                Err(Error::corrupt("expected the first fragment of a record"))
            }
            (FragmentKind::Other, open) => {
                begun = open;
                continue;
            }
            (part, Some(_)) => {
                let e =
                    Error::corrupt("expected the rest of a record, found another record").at(start as u64);
                losses.note(e, range(start, fragments.at))?;
                if let FragmentKind::Whole = part {
                    each(content)
                } else {
                    begun = Some((start, content.to_vec()));
                    Ok(())
                }
            }
        };
        after_damage = false;
        if let Err(e) = done {
            losses.note(e.at(start as u64), range(start, fragments.at))?;
        }
    }
}

fn range(start: usize, end: usize) -> Range<u64> {
    start as u64..end as u64
}

impl<'a> Fragments<'a> {
    /// The next fragment, or `None` at the end of the log. After an error, reading resumes at the next block.
    fn next(&mut self) -> Result<Option<(FragmentKind, &'a [u8])>> {
        loop {
            let block_end = (self.at / BLOCK + 1) * BLOCK;
            let Some(rest) = self.bytes.get(self.at..block_end.min(self.bytes.len())) else {
                return Ok(None);
            };
            if rest.len() < HEADER && self.bytes.len() <= block_end {
                return Ok(None);
            }
            // Either the end of a block, which has no room for a fragment, or space that was never written
            // to.
            if rest.len() < HEADER
                || rest.iter().take(HEADER).all(|b| *b == 0) && rest.iter().all(|b| *b == 0)
            {
                self.at = block_end;
                continue;
            }
            let start = self.at;
            self.at = block_end.min(self.bytes.len());
            return self.fragment(start, rest, self.bytes.len() <= block_end);
        }
    }

    /// Reads the fragment at the start of `block`, the part of a block that is not read yet.
    fn fragment(
        &mut self,
        start: usize,
        block: &'a [u8],
        is_last: bool,
    ) -> Result<Option<(FragmentKind, &'a [u8])>> {
        let at = start as u64;
        let mut cursor = Cursor::new(block, at);
        let stored = cursor.u32_le()?;
        let len = usize::from(cursor.u16_le()?);
        let kind = cursor.clone().u8()?;
        let recycled = matches!(kind, 5..=8 | 11 | 131);
        let covered = len + if recycled { 5 } else { 1 };
        if cursor.remaining() < covered {
            if is_last {
                return Ok(None);
            }
            return Err(
                Error::corrupt(format!("expected a fragment within its block, found {len} bytes")).at(at)
            );
        }
        let covered = cursor.take(covered)?;
        if self.checked {
            check_crc32c(unmasked_crc32c(stored), covered).map_err(|e| e.at(at))?;
        }
        let mut content = Cursor::new(covered, at);
        content.skip(1)?;
        if recycled {
            let number = content.u32_le()?;
            // The fragment is left over from an older log in a recycled file.
            if self.number.is_some_and(|own| own & 0xffff_ffff != u64::from(number)) {
                self.at = self.bytes.len();
                return Ok(None);
            }
        }
        let part = match kind {
            1 | 5 => FragmentKind::Whole,
            2 | 6 => FragmentKind::First,
            3 | 7 => FragmentKind::Middle,
            4 | 8 => FragmentKind::Last,
            9 => return Err(Error::unsupported("a compressed log of RocksDB")),
            10 | 11 => return Err(Error::unsupported("RocksDB's user-defined timestamps")),
            n if n & 0x80 != 0 => FragmentKind::Other,
            n => return Err(Error::unsupported(format!("a fragment of type {n} in a log of RocksDB"))),
        };
        self.at = start + (block.len() - cursor.remaining());
        Ok(Some((part, content.rest())))
    }
}
