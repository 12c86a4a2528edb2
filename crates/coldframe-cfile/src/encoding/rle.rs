//! RLE: runs of one value, and groups of eight literals.
//!
//! ```text
//! run      | n << 1 varint | value, ceil(width / 8) bytes LE |                n times the value
//! literals | n << 1 | 1 varint | n groups of 8 values of `width` bits |       the last group may be incomplete
//! ```
//! The width depends on the type: 8, 16, 32 or 64 bits, or one bit for booleans and for the bitmap of a
//! nullable block. Only the block's header stores the number of values.

use arrow_buffer::BooleanBufferBuilder;
use coldframe_core::{Error, Result};
use coldframe_encoding::Cursor;

use crate::encoding::Word;

/// The rest of the current run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    /// A repeated value, whose bytes are at position `at` of the block.
    Repeat { at: usize, left: usize },
    /// Literals; `at` is the position of the next literal: a byte for whole values, a bit for single bits.
    Literal { at: usize, left: usize },
}

/// A position in a sequence of runs.
#[derive(Clone, Debug)]
pub(crate) struct Rle {
    /// The start of the next run.
    next: usize,
    run: Run,
}

impl Rle {
    /// Runs that begin at byte `start`.
    pub(crate) fn new(start: usize) -> Self {
        Self { next: start, run: Run::Repeat { at: start, left: 0 } }
    }

    /// Begins the next run if the current run is used up.
    fn run(&mut self, bytes: &[u8], bits: bool, size: usize) -> Result<()> {
        while let Run::Repeat { left: 0, .. } | Run::Literal { left: 0, .. } = self.run {
            let rest = bytes.get(self.next..).unwrap_or_default();
            let mut cursor = Cursor::new(rest, 0);
            let head = cursor.uleb128().map_err(|e| e.within("run"))?;
            let n = usize::try_from(head >> 1).unwrap_or(usize::MAX);
            let at = self.next + (rest.len() - cursor.remaining());
            if n == 0 {
                return Err(Error::corrupt("expected a run of 1 or more values, found a run of 0"));
            }
            let rest = cursor.remaining();
            let (len, run) = match head & 1 {
                0 => (size, Run::Repeat { at, left: n }),
                // In the file, the last group is not padded for values of whole bytes, so the block ends with
                // the last value.
                _ if bits => {
                    let len = n.min(rest);
                    (len, Run::Literal { at: at.saturating_mul(8), left: len.saturating_mul(8) })
                }
                _ => {
                    let left = n.saturating_mul(8).min(rest / size.max(1));
                    (left * size, Run::Literal { at, left })
                }
            };
            if len > rest || len == 0 {
                return Err(Error::corrupt(format!("expected a run of {n}, found {rest} bytes")));
            }
            self.next = at + len;
            self.run = run;
        }
        Ok(())
    }

    /// Decodes the next `out.len()` values of a whole-byte type.
    pub(crate) fn decode<T: Word>(&mut self, bytes: &[u8], mut out: &mut [T]) -> Result<()> {
        while !out.is_empty() {
            self.run(bytes, false, T::SIZE)?;
            match &mut self.run {
                Run::Repeat { at, left } => {
                    let n = out.len().min(*left);
                    let value = bytes.get(*at..).and_then(T::first).unwrap_or_default();
                    let (now, later) = out.split_at_mut(n);
                    now.fill(value);
                    *left -= n;
                    out = later;
                }
                Run::Literal { at, left } => {
                    let n = out.len().min(*left);
                    let (now, later) = out.split_at_mut(n);
                    if !T::read(bytes.get(*at..).unwrap_or_default(), now) {
                        return Err(Error::corrupt("expected more literals, found the block's end"));
                    }
                    *at += n * T::SIZE;
                    *left -= n;
                    out = later;
                }
            }
        }
        Ok(())
    }

    /// Skips `n` values of `size` bytes.
    pub(crate) fn skip(&mut self, bytes: &[u8], mut n: usize, size: usize) -> Result<()> {
        while n > 0 {
            self.run(bytes, false, size)?;
            let (Run::Repeat { left, .. } | Run::Literal { left, .. }) = &mut self.run;
            let step = n.min(*left);
            *left -= step;
            n -= step;
            if let Run::Literal { at, .. } = &mut self.run {
                *at += step * size;
            }
        }
        Ok(())
    }

    /// Appends the next `n` bits to `out`.
    pub(crate) fn decode_bits(
        &mut self,
        bytes: &[u8],
        mut n: usize,
        out: &mut BooleanBufferBuilder,
    ) -> Result<()> {
        while n > 0 {
            self.run(bytes, true, 1)?;
            match &mut self.run {
                Run::Repeat { at, left } => {
                    let step = n.min(*left);
                    out.append_n(step, bytes.get(*at).is_some_and(|b| b & 1 == 1));
                    *left -= step;
                    n -= step;
                }
                Run::Literal { at, left } => {
                    let step = n.min(*left);
                    out.append_packed_range(*at..*at + step, bytes);
                    *at += step;
                    *left -= step;
                    n -= step;
                }
            }
        }
        Ok(())
    }

    /// Skips `n` bits.
    pub(crate) fn skip_bits(&mut self, bytes: &[u8], mut n: usize) -> Result<()> {
        while n > 0 {
            self.run(bytes, true, 1)?;
            let (Run::Repeat { left, .. } | Run::Literal { left, .. }) = &mut self.run;
            let step = n.min(*left);
            *left -= step;
            n -= step;
            if let Run::Literal { at, .. } = &mut self.run {
                *at += step;
            }
        }
        Ok(())
    }
}
