//! Walks from block to block by their headers. After damage it continues at the next header that fits.

use std::ops::Range;
use std::sync::Arc;

use coldframe_core::io::Window;
use coldframe_core::{Error, Limits, ReadAt, Result};

use crate::layout::block::{BlockType, HEADER_LEN, Header, MAGIC_LEN, find_magic};

/// How many bytes the walk reads at a time.
const WINDOW: u64 = 256 << 10;
/// How many bytes a search for a magic reads at a time: only a few bytes, so that a short search does not
/// read a whole window.
const STRETCH: u64 = 4 << 10;
/// After this many damaged ranges, each further one extends to the next block with cells or file info.
const MAX_DAMAGE: usize = 1024;

/// An item of a walk.
#[derive(Debug)]
pub(crate) enum Step {
    /// A block with a valid header.
    Block(u64, Header),
    /// Bytes that are not a block, up to the next block or the end, and the reason.
    Damage(Range<u64>, Error),
}

impl Step {
    /// The offset of the block or of the damage.
    pub(crate) fn start(&self) -> u64 {
        match self {
            Self::Block(at, _) => *at,
            Self::Damage(range, _) => range.start,
        }
    }
}

/// A walk over the blocks of a range.
#[derive(Debug)]
pub(crate) struct BlockWalk {
    window: Window,
    with_checksums: bool,
    limits: Limits,
    at: u64,
    end: u64,
    /// The number of damaged ranges found so far.
    damage: usize,
    /// How many more bytes may be checksummed. Their total is limited to the size of the range, even if
    /// blocks overlap.
    spare: u64,
}

impl BlockWalk {
    /// Walks from `range.start`, which should be the start of a block.
    pub(crate) fn new(
        source: Arc<dyn ReadAt>,
        with_checksums: bool,
        limits: Limits,
        range: Range<u64>,
    ) -> Self {
        let end = range.end.min(source.len());
        let spare = end.saturating_sub(range.start);
        let window = Window::new(source, WINDOW);
        Self { window, with_checksums, limits, at: range.start, end, damage: 0, spare }
    }

    /// Moves to the next header, because the walk may begin inside a block.
    pub(crate) fn align(&mut self) -> Result<()> {
        self.at = self.resume(self.at)?;
        Ok(())
    }

    /// The next block or damage; `None` at the end.
    pub(crate) fn step(&mut self) -> Result<Option<Step>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let at = self.at;
        match self.header(at) {
            Ok(header) => match self.cut_short(at, &header)? {
                Some((next, e)) => {
                    self.at = next;
                    Ok(Some(Step::Damage(at..next, e)))
                }
                None => {
                    self.at = at.saturating_add(header.block_len());
                    Ok(Some(Step::Block(at, header)))
                }
            },
            Err(e) if e.is_damage() => {
                self.at = self.resume(at + 1)?;
                self.damage += 1;
                if self.damage > MAX_DAMAGE {
                    self.pass_over()?;
                }
                Ok(Some(Step::Damage(at..self.at, e)))
            }
            Err(e) => Err(e),
        }
    }

    /// If the block at `at` lost bytes, the offset of the next block and the error. A block has lost bytes if
    /// no header follows its stated end, its checksums do not match, and there is a header before its end.
    fn cut_short(&mut self, at: u64, header: &Header) -> Result<Option<(u64, Error)>> {
        let len = header.block_len();
        let end = at.saturating_add(len);
        if end >= self.end || !self.with_checksums || self.header(end).is_ok() {
            return Ok(None);
        }
        if len > self.spare || self.limits.block("a block", len).is_err() {
            return Ok(None);
        }
        self.spare -= len;
        let bytes = self.window.read(at..end)?;
        let Err(e) = header.data(&bytes, at, true) else { return Ok(None) };
        let next = self.resume(at + 1)?;
        Ok((next < end).then_some((next, e)))
    }

    /// Moves to the next block with cells or with file info, or to the end.
    fn pass_over(&mut self) -> Result<()> {
        while self.at < self.end {
            match self.header(self.at) {
                Ok(h) if h.block_type.is_data() || h.block_type == BlockType::FileInfo => break,
                Ok(h) => self.at = self.at.saturating_add(h.block_len()),
                Err(e) if e.is_damage() => self.at = self.resume(self.at + 1)?,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// The header of the block at `at`. The block must end inside the range.
    fn header(&mut self, at: u64) -> Result<Header> {
        let bytes = self.window.read_up_to(at, (HEADER_LEN as u64).min(self.end - at))?;
        let header = Header::parse(&bytes, at, self.with_checksums)?;
        if header.block_len() > self.end - at {
            let (len, end) = (header.block_len(), self.end);
            let message = format!("expected a block that ends at {end} or before, found one of {len} bytes");
            return Err(Error::corrupt(message).at(at).within(header.block_type.name()));
        }
        Ok(header)
    }

    /// The offset of the first valid header from `from` on, or the end.
    fn resume(&mut self, from: u64) -> Result<u64> {
        let mut at = from;
        while at < self.end {
            let bytes = self.window.read_up_to(at, STRETCH.min(self.end - at))?;
            let last = at + bytes.len() as u64 >= self.end;
            let (mut next, mut cut) = (0, None);
            while let Some(magic) = find_magic(&bytes, next) {
                let rest = bytes.get(magic..).unwrap_or_default();
                let place = at + magic as u64;
                if rest.len() < HEADER_LEN && !last {
                    cut = Some(place);
                    break;
                }
                if Header::fits(rest, self.with_checksums, self.end - place) {
                    return Ok(place);
                }
                next = magic + 1;
            }
            if last {
                break;
            }
            // A magic may begin in the last bytes of the stretch, so they are searched again.
            at = cut.unwrap_or(at + (bytes.len() as u64).saturating_sub(MAGIC_LEN as u64 - 1).max(1));
        }
        Ok(self.end)
    }
}
