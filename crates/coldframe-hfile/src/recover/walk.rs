//! Walks from block to block by their headers; behind damage, goes on at the next header that fits.

use std::ops::Range;
use std::sync::Arc;

use coldframe_core::io::Window;
use coldframe_core::{Error, Limits, ReadAt, Result};

use crate::layout::block::{BlockType, HEADER_LEN, Header, MAGIC_LEN, find_magic};

/// Bytes read at a time.
const WINDOW: u64 = 256 << 10;
/// Bytes searched for a magic at a time: few, so that a search that ends soon does not read the window anew.
const STRETCH: u64 = 4 << 10;
/// Stretches of damage that are told apart: behind them, one reaches to the next block that holds cells or file info.
const MOST_DAMAGE: usize = 1024;

/// What a walk comes across.
#[derive(Debug)]
pub(crate) enum Step {
    /// A block whose header is in order.
    Block(u64, Header),
    /// Bytes that are no block, up to the next one or the end, and why.
    Damage(Range<u64>, Error),
}

impl Step {
    /// Where it begins.
    pub(crate) fn start(&self) -> u64 {
        match self {
            Self::Block(at, _) => *at,
            Self::Damage(range, _) => range.start,
        }
    }
}

/// A walk over the blocks of a range.
#[derive(Debug)]
pub(crate) struct Walk {
    window: Window,
    with_checksums: bool,
    limits: Limits,
    at: u64,
    end: u64,
    /// Stretches of damage so far.
    damage: usize,
    /// Bytes of blocks whose checksums may still be compared: no more than there are, however blocks overlap.
    spare: u64,
}

impl Walk {
    /// Walks from `range.start`, which should be the place of a block.
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

    /// Goes on at the next header: for a walk that may begin inside a block.
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
                if self.damage > MOST_DAMAGE {
                    self.pass_over()?;
                }
                Ok(Some(Step::Damage(at..self.at, e)))
            }
            Err(e) => Err(e),
        }
    }

    /// Where the next block begins and what is wrong with the block at `at`, if it lost bytes: no header stands where it
    /// says that it ends, its checksums do not fit, and a header stands before its end.
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

    /// Goes to the next block that holds cells or the file info, or to the end.
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

    /// The header of the block at `at`, which must end in the range.
    fn header(&mut self, at: u64) -> Result<Header> {
        let bytes = self.window.read_up_to(at, (HEADER_LEN as u64).min(self.end - at))?;
        let header = Header::parse(&bytes, at, self.with_checksums, &self.limits)?;
        if header.block_len() > self.end - at {
            let (len, end) = (header.block_len(), self.end);
            let message = format!("expected a block that ends at {end} or before, found one of {len} bytes");
            return Err(Error::corrupt(message).at(at).within(header.block_type.name()));
        }
        Ok(header)
    }

    /// The place of the first header from `from` on that fits, or the end.
    fn resume(&mut self, from: u64) -> Result<u64> {
        let mut at = from;
        while at < self.end {
            let bytes = self.window.read_up_to(at, STRETCH.min(self.end - at))?;
            let last = at + bytes.len() as u64 >= self.end;
            let (mut next, mut cut) = (0, None);
            while let Some(found) = find_magic(&bytes, next) {
                let rest = bytes.get(found..).unwrap_or_default();
                let place = at + found as u64;
                if rest.len() < HEADER_LEN && !last {
                    cut = Some(place);
                    break;
                }
                if Header::fits(rest, self.with_checksums, &self.limits, self.end - place) {
                    return Ok(place);
                }
                next = found + 1;
            }
            if last {
                break;
            }
            // A header may begin in the last bytes of the stretch, a magic in fewer still.
            at = cut.unwrap_or(at + (bytes.len() as u64).saturating_sub(MAGIC_LEN as u64 - 1).max(1));
        }
        Ok(self.end)
    }
}
