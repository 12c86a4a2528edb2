//! Runs of integers, decoded whole into the memory they are for.
//!
//! ORC specification v1, "Integer Run Length Encoding, version 1" and "version 2". A run has at most 512 values; one that reaches
//! behind the batch is decoded into a buffer and handed out from there.

mod v1;
mod v2;

use coldframe_encoding::bits::Unsigned;
use coldframe_encoding::varint::unzigzag;
use coldframe_encoding::{Error, Result};

use crate::stream::ByteStream;

/// Most values of a run.
const MAX_RUN: usize = 512;

/// Memory for decoded integers: signed ones in two's complement, so that arrays are made of it without a copy.
pub trait Word: Unsigned {
    /// `value`, or nothing if it has more bits.
    fn from_signed(value: i64) -> Option<Self>;
    /// The signed number that zigzag coding maps to it.
    #[must_use]
    fn unzigzag(self) -> Self;
}

macro_rules! words {
    ($($word:ty = $signed:ty;)*) => {$(
        impl Word for $word {
            #[inline(always)]
            fn from_signed(value: i64) -> Option<Self> {
                <$signed>::try_from(value).ok().map(<$signed>::cast_unsigned)
            }

            #[inline(always)]
            fn unzigzag(self) -> Self {
                (self >> 1) ^ (self & 1).wrapping_neg()
            }
        }
    )*};
}

words! { u16 = i16; u32 = i32; u64 = i64; }

/// Which grammar a stream has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Of DIRECT and DICTIONARY.
    V1,
    /// Of `DIRECT_V2` and `DICTIONARY_V2`.
    V2,
}

/// Decodes integers.
#[derive(Debug)]
pub struct IntRle {
    stream: ByteStream,
    version: Version,
    signed: bool,
    /// A run that reaches behind what was asked for.
    pending: Vec<u64>,
    /// Values of it that are handed out.
    taken: usize,
    scratch: Vec<u64>,
}

impl IntRle {
    /// From the start of a run.
    pub fn new(stream: ByteStream, version: Version, signed: bool) -> Self {
        Self { stream, version, signed, pending: Vec::new(), taken: 0, scratch: Vec::new() }
    }

    /// Fills `out`; values that it has not the bits for are an error.
    pub fn read<W: Word>(&mut self, mut out: &mut [W]) -> Result<()> {
        while !out.is_empty() {
            if self.taken < self.pending.len() {
                let held = self.pending.get(self.taken..).unwrap_or_default();
                let n = held.len().min(out.len());
                for (to, from) in out.iter_mut().zip(held) {
                    *to = narrow(from.cast_signed())?;
                }
                self.taken += n;
                out = out.get_mut(n..).unwrap_or_default();
                continue;
            }
            let n = self.run(out)?;
            out = out.get_mut(n..).unwrap_or_default();
        }
        Ok(())
    }

    /// Decodes the next run: into the front of `out`, or aside if it is too long for that. Returns how many values of
    /// `out` were filled.
    fn run<W: Word>(&mut self, out: &mut [W]) -> Result<usize> {
        let (version, signed) = (self.version, self.signed);
        let result = match version {
            Version::V1 => {
                let bytes = self.stream.fill(v1::MAX_BYTES)?;
                v1::head(bytes).and_then(|head| {
                    let (to, n) = place(out, &mut self.pending, head.count);
                    let used = match to {
                        Some(out) => v1::run(bytes, head, signed, out),
                        None => v1::run(bytes, head, signed, &mut self.pending),
                    };
                    used.map(|used| (used, n))
                })
            }
            Version::V2 => {
                let bytes = self.stream.fill(v2::MAX_BYTES)?;
                v2::head(bytes).and_then(|head| {
                    let (to, n) = place(out, &mut self.pending, head.count());
                    let used = match to {
                        Some(out) => v2::run(bytes, head, signed, &mut self.scratch, out),
                        None => v2::run(bytes, head, signed, &mut self.scratch, &mut self.pending),
                    };
                    used.map(|used| (used, n))
                })
            }
        };
        let (used, n) = match result {
            Ok(found) => found,
            Err(e) => {
                self.pending.clear();
                self.taken = 0;
                return Err(e.at(self.stream.offset()));
            }
        };
        if n == 0 {
            self.taken = 0;
        }
        self.stream.consume(used);
        Ok(n)
    }

    /// Passes over `n` values.
    pub fn skip(&mut self, mut n: usize) -> Result<()> {
        while n > 0 {
            if self.taken >= self.pending.len() {
                self.run::<u64>(&mut [])?;
            }
            let some = (self.pending.len() - self.taken).min(n);
            self.taken += some;
            n -= some;
        }
        Ok(())
    }
}

/// Where a run of `count` values goes: the front of `out` if it has the room, else `pending`.
#[inline]
fn place<'a, W: Word>(
    out: &'a mut [W],
    pending: &mut Vec<u64>,
    count: usize,
) -> (Option<&'a mut [W]>, usize) {
    match out.get_mut(..count) {
        Some(front) => (Some(front), count),
        None => {
            pending.clear();
            pending.resize(count, 0);
            (None, 0)
        }
    }
}

#[inline]
fn narrow<W: Word>(value: i64) -> Result<W> {
    W::from_signed(value).ok_or_else(|| too_wide::<W>(value))
}

#[cold]
#[inline(never)]
fn too_wide<W: Word>(value: i64) -> Error {
    Error::corrupt(format!("expected an integer of {} bits, found {value}", W::BITS))
}

#[cold]
#[inline(never)]
fn short() -> Error {
    Error::corrupt("expected a run of integers, found the end of the stream")
}

/// A base-128 varint of at most 64 bits at the front of `bytes`, and its length.
#[inline]
fn varint(bytes: &[u8]) -> Result<(u64, usize)> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if *byte < 0x80 {
            return Ok((value, i + 1));
        }
    }
    Err(short())
}

/// The same, signed as the stream is.
#[inline]
fn signed_varint(bytes: &[u8], signed: bool) -> Result<(i64, usize)> {
    let (value, used) = varint(bytes)?;
    Ok((if signed { unzigzag(value) } else { value.cast_signed() }, used))
}

#[cfg(test)]
mod tests;
